"""Cost of cores that scan (`splitjoin_hw.core.scanner`)."""

from __future__ import annotations

from splitjoin.base.errors import plural

from ...geometry import comparisons
from ...wire import Configuration
from ..elements import adder, control, counter, equal, gate, mux
from ..emitter import emitter
from ..folding import first_hits, folding_emitter, stored_states
from ..resources import Family, Resources
from ..widths import Widths
from .kind import CoreCost

__all__ = ["ScanCost"]

#: LUT4 of control.
_CONTROL = {"scanner": 20, "tables": 8}


class ScanCost(CoreCost):
    """The cost of cores that compare every stored tuple."""

    def parts(self, config: Configuration, side: str, family: Family, w: Widths) -> dict[str, Resources]:
        if config.folds and side == "s":
            return {"scanner": _scanner(config, family, w), "folding": folding_emitter(config, family)}
        if config.whole_states:
            return {"scanner": _scanner(config, family, w), "folding": stored_states(config, family)}
        first = {"first hits": first_hits(config, family)} if config.first_hits else {}
        return {"scanner": _scanner(config, family, w), **first, "emitter": emitter(config, family, w)}

    def comparing(self, config: Configuration, lut: int, lut_name: str) -> str:
        if config.structure.sequential:
            return f"a comparison a cycle, {lut:,} {lut_name}, everything counted"
        each = lut / comparisons(config)
        cores = f"{config.cores} {plural(config.cores, 'core')}"
        return (f"{comparisons(config):,} comparisons a cycle (2 streams × {cores} × lanes {config.lanes} "
                f"× probes {config.probes}), {each:,.0f} {lut_name} each, everything counted")


def _scanner(config: Configuration, family: Family, w: Widths) -> Resources:
    lanes, probes = config.lanes, config.probes
    number = probes.bit_length()
    # Adders: a window's start and end, and the test for the last read. Counters: position, remaining tuples, the ring's
    # row, the read's number.
    sums = adder(family, *[w.position] * 4) + counter(family, w.group, w.group, w.rows, w.group)
    logic = mux(family, 2, 2 * w.position + w.live) + control(family, _CONTROL["scanner"])
    # A probe takes part from the read whose number equals its start to the read whose number equals its end; in these
    # two reads only some lanes count.
    logic += probes * (2 * (equal(family, w.group) + 2) + 2 * gate(family, number + 2) + 4)
    logic += probes * lanes * (2 if lanes == 1 else 3 + 2 * gate(family, 2 * w.lane + 1))
    # The waiting task, the batch that is being collected, the current pass, and its report to the emitter.
    base = (2 * w.position + w.live + w.row + 3 + 2 * number + w.row + w.position + 4
            + 3 * w.position + 2 * w.rows + 3 + w.row + max(1, w.lane) + w.probe + 1 + w.live
            + 2 + 2 * (config.stages + 3) + 1 + 2 * w.position + w.group)
    if config.tables:  # flags: the batch is complete, and its tables are written
        logic, base = logic + control(family, _CONTROL["tables"]), base + 11 + -(-probes // 4)
    held = probes * (4 * w.group + 9) + probes * lanes * (config.stages + 4)
    return Resources(lut=sums + logic, ff=base + held)
