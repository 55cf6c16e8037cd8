"""The gather tree of folds: partial states of many regions become one record for each base tuple."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from splitjoin.circuit.fold_schedule import FoldPlan

from ..hls.fold import MergeUnit, result_layout, state_layout

__all__ = ["FoldTree"]


class FoldTree(wiring.Component):
    """Merges the partial states of ``leaves`` regions, 2 or more, by a tree of `MergeUnit`.

    Every region gives one state for each base tuple, in the order of the base tuples, also if it found no partner. So
    one record leaves for each base tuple, whatever the number of its partners.

    Raises `ValueError` for an aggregate without ``merge``, and for an ordered one: partners are spread over the regions
    in turn, so no region's partners are all earlier than another's.

    Ports: ``i``: `state_layout` of each region. ``o``: `result_layout`, or `state_layout` if the result is computed
    elsewhere.
    """

    def __init__(self, plan: FoldPlan, leaves: int):
        if leaves < 2:
            raise ValueError(f"Leaves must be 2 or more, not {leaves!r}")
        if plan.merge is None or plan.fold.ordered:
            raise ValueError(f"Aggregate must have a merge that does not depend on the order, which {plan.fold.name!r} "
                             f"has not")
        self._plan, self._leaves = plan, leaves
        super().__init__({
            "i": In(stream.Signature(state_layout(plan))).array(leaves),
            "o": Out(stream.Signature(state_layout(plan) if plan.result is None else result_layout(plan))),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        level, depth = [wiring.flipped(port) for port in self.i], 0
        while len(level) > 1:
            merged = []
            for n in range(0, len(level) - 1, 2):
                unit = MergeUnit(self._plan, partial=len(level) > 2)
                m.submodules[f"merge{depth}_{n // 2}"] = unit
                wiring.connect(m, level[n], unit.i_earlier)
                wiring.connect(m, level[n + 1], unit.i_later)
                merged.append(unit.o)
            level, depth = merged + level[2 * len(merged):], depth + 1
        wiring.connect(m, level[0], wiring.flipped(self.o))
        return m
