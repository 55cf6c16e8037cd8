"""User-defined aggregates as circuits: LUTs and clocks when they are placed and routed, beside those of the model.

Run: python -m bench.folds
"""

from __future__ import annotations

from typing import Any

from tests.support.user_aggregates import EXAMPLES

from bench.record import Recorder, arguments
from splitjoin.circuit.cost.fold import fold_cost
from splitjoin.circuit.fold_schedule import plan_fold
from splitjoin_boards.flow import ecp5
from splitjoin_boards.flow.design import part_design
from splitjoin_hw.hls.fold import FoldUnit

HOW = ("nextpnr-ecp5, timing weight 25, default router, seed 1, LFE5U-85F speed grade 6, of a unit that folds one "
       "partner after the other")
#: The aggregates, and the clocks in MHz that are asked for.
ASKED: tuple[tuple[str, float | None], ...] = (
    ("Variance", 100), ("Histogram", None), ("Histogram", 100), ("SecondBest", 100), ("Smoothed", 100), ("Extent", 150),
    ("Rises", 100), ("Vwap", 100), ("Saturated", 200),
)


def asked(out: Recorder, aggregate: Any, clock: float | None) -> None:
    """One circuit."""
    plan = plan_fold(aggregate.fold, clock)
    model = fold_cost("ecp5", plan)
    design = part_design(FoldUnit(plan), "ecp5")
    found, cells = ecp5.route(design), ecp5.utilization(design)["part"]
    out.add("fold_mhz", found.mhz, "MHz", {
        "aggregate": aggregate.fold.name, "asked": "nothing" if clock is None else clock, "interval": plan.interval,
        "latency": plan.latency, "state_bits": plan.state_bits, "lut4": cells.lut4, "lut4_model": model.lut,
        "ff": cells.ff, "ff_model": model.ff, "dsp": cells.dsp, "dsp_model": model.dsp}, HOW)


def main() -> None:
    """All figures."""
    options = arguments(__doc__ or "")
    out = Recorder("folds", quick=options.quick)
    known = {c.fold.name: c for c, *_ in EXAMPLES}
    for name, clock in ASKED[-1:] if options.quick else ASKED:
        asked(out, known[name], clock)
    print(out.write())


if __name__ == "__main__":
    main()
