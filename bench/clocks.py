"""Clocks that datapaths are asked for, and those that they have when they are placed and routed.

Run: python -m bench.clocks
"""

from __future__ import annotations

import pyarrow as pa

from bench.place_and_route import ecp5
from bench.place_and_route.design import part_design
from bench.record import Recorder, arguments
from splitjoin.circuit.lowering import configure, plan_for
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin_hw.hls.matcher import Matcher

#: Lanes and probes of the datapaths.
LANES, PROBES = 1, 2
HOW = (f"nextpnr-ecp5, timing weight 25, default router, seed 1, LFE5U-85F speed grade 6, of the module that holds "
       f"bounds and compares; {LANES} lane, {PROBES} probes")
_DISTANCE = " + ".join(f"(r.{x} - s.{a}) * (r.{x} - s.{a})" for x, a in ("xa", "yb"))
_RANGES = " OR ".join(f"(abs(r.x - s.a) <= {n} AND abs(r.y - s.b) <= {90 - n} AND r.z >= s.c + {n})"
                      for n in (1, 10, 20, 30))
#: Condition, and the clocks that are asked for; None: as few registers as there can be.
CLOCKS: tuple[tuple[str, str, tuple[float | None, ...]], ...] = (
    ("two 32-bit bands", "abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10", (None, 260, 290)),
    ("a band of 64 bits", "abs(r.u - s.v) <= 10", (None, 260)),
    ("four boxes of two bands and an order", _RANGES, (None, 200, 260)),
    ("distance of two axes, 16 bits kept", f"{_DISTANCE} <= 1000000000", (None, 140)),
    ("distance of two axes, 32 bits kept", f"{_DISTANCE} <= 4000000000000000000", (None, 140)),
    ("Manhattan distance of four axes",
     "abs(r.x - s.a) + abs(r.y - s.b) + abs(r.x - s.b) + abs(r.y + s.a) <= 1000000000", (None, 150)),
)


def schema(side: str, names: str, wide: str) -> Schema:
    """Columns of 32 bits, and one of 64."""
    return Schema.from_arrow(side, pa.schema([*(pa.field(n, pa.int32(), False) for n in names),
                                              pa.field(wide, pa.int64(), False)]))


def asked(out: Recorder, name: str, on: str, clock: float | None) -> None:
    """One datapath."""
    query = Query.make(schema("r", "xyz", "u"), schema("s", "abc", "v"), on=on, window="ROWS 64")
    parameters = CircuitParameters(cores=1, capacity=64, lanes=LANES, probes=PROBES, core="scan", clock=clock)
    config = configure(query, plan_for(query, parameters), parameters)
    design = part_design(Matcher(config, "s"), "ecp5")
    found, cells = ecp5.route(design), ecp5.utilization(design)["part"]
    out.add("datapath_mhz", found.mhz, "MHz", {
        "condition": name, "asked": "nothing" if clock is None else clock, "stages": config.stages, "lut4": cells.lut4,
        "ff": cells.ff, "dsp": cells.dsp}, HOW)


def main() -> None:
    """All figures."""
    options = arguments(__doc__ or "")
    out = Recorder("clocks", quick=options.quick)
    for name, on, clocks in CLOCKS[:1] if options.quick else CLOCKS:
        for clock in clocks:
            asked(out, name, on, clock)
    print(out.write())


if __name__ == "__main__":
    main()
