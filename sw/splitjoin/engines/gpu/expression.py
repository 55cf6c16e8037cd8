"""Conditions that compare no keys: the GPU evaluates the expression itself for every pair."""

from __future__ import annotations

from splitjoin.lang.ir import Expr, columns
from splitjoin.lang.schema import SIDES, other_side

from ..compiled.atoms import AtomLanes, ValueRange
from ..compiled.exact_source import NotCompiled
from ..compiled.expression_source import Code
from ..cpu.finder import Batch, Found
from ..cpu.residual import ExpressionFinder, live_ranges, narrowest
from ..cpu.search import ExpressionSearch
from .comparison import Layout, kind_of, of_expression
from .finder import GpuFinder


def expression_layout(predicate: Expr, lanes: AtomLanes) -> Layout:
    """The lanes of ``predicate``, behind its columns."""
    stored: dict[str, list[tuple[str, str, int]]] = {}
    probe: dict[str, dict[str, int]] = {}
    for side in SIDES:
        first = 2 * sum(c.side == side for c in columns(predicate))
        half, mine = lanes.count(side) // 2, [a for a in lanes.atoms if a.side == side]
        stored[side] = [(f"{side}{a.number}", kind_of(a), first + a.number) for a in mine]
        stored[side] += [(f"{side}{a.number}v", "bool", first + half + a.number) for a in mine]
        probe[side] = {name: n for name, _, n in stored[side]}
    return Layout(stored, probe)


class GpuExpressionFinder(ExpressionFinder):
    """Evaluates ``predicate`` for every pair by ``loops`` on the GPU; by NumPy while ``code`` is None."""

    def __init__(self, predicate: Expr, loops: GpuFinder):
        super().__init__(predicate)
        self.loops = loops
        self.code: Code | None = None

    def keep(self, batch: Batch) -> None:
        """Store the tuples of the batch here and on the GPU."""
        super().keep(batch)
        self.loops.keep(batch)

    def expire(self, batch: Batch) -> None:
        super().expire(batch)
        self.loops.expire(batch)

    def find(self, batch: Batch) -> dict[str, Found]:
        if self.code is None:
            return super().find(batch)
        self.loops.compare({side: of_expression(self.code, other_side(side)) for side in SIDES})
        return self.loops.find(batch)


class GpuExpressionSearch(ExpressionSearch):
    """Evaluates ``predicate``, whose ``lanes`` `expression_layout` has placed, for every pair by ``loops``."""

    def __init__(self, predicate: Expr, lanes: AtomLanes, loops: GpuFinder):
        super().__init__(predicate, compiling=False)
        self._lanes, self._gpu_finder = lanes, GpuExpressionFinder(predicate, loops)
        self._ranges: dict[Expr, ValueRange] | None = None
        self._why = "on the GPU"

    @property
    def description(self) -> str:
        return f"nested loops over the expression, {self._why}"

    @property
    def candidates(self) -> int:
        return self._gpu_finder.candidates + self._gpu_finder.loops.candidates

    def finder(self, batch: Batch) -> GpuExpressionFinder:
        """Always the same finder, with code for the values that are in the windows now."""
        found, ranges = self._gpu_finder, live_ranges(batch, self._lanes)
        if ranges != self._ranges:
            self._ranges = ranges
            try:
                found.code, width = narrowest(self._predicate, self._lanes.atoms, ranges)
            except NotCompiled as reason:
                found.code, self._why = None, f"by NumPy, as there is no code for {reason}"
                return found
            self._why = f"on the GPU, whole numbers in {width} bits"
        return found
