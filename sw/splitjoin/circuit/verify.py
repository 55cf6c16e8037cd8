"""Verification on the host: keeps those of a device's candidates for which the rest of the condition is true.

A device runs a plan's interval tests. Where those are necessary but not sufficient (`Plan.residual`), the pairs among
its items are candidates. Stars stay as they are, because they say which probes are done, not how many pairs those have.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.compiled.store import Store
from splitjoin.engines.device import PAIR, STAR, Items
from splitjoin.lang.eval.vector import Vector, column, evaluate_columns
from splitjoin.lang.ir import Col, Expr, columns
from splitjoin.lang.query import Query
from splitjoin.lang.windows import Extent

Rows = npt.NDArray[np.int64]


class _StoredTuples(Store):
    """The tuples of one stream that a candidate may still refer to. The arrays: values and validity of each of the
    residual's columns, ``cols``, then what tells a tuple's age: the tuples of the other stream before it, and its
    event time, if there are any.
    """

    def __init__(self, extent: Extent, cols: list[Col], slack: int):
        super().__init__(slack)
        self.extent, self.cols = extent, cols
        self.covered = 0  # rows below are done as probes, as a star has confirmed

    def take(self, rows: Rows) -> dict[Col, Vector]:
        """The residual's columns of ``rows``."""
        arrays, index = self.arrays, rows - self.base
        return {c: Vector(arrays[2 * n][index], arrays[2 * n + 1][index]) for n, c in enumerate(self.cols)}

    def ages(self) -> list[npt.NDArray[Any]]:
        """The arrays that tell ages."""
        return self.arrays[2 * len(self.cols):]


class Verifier:
    """Keeps the columns of ``query``'s tuples that ``residual`` reads for as long as a candidate may refer to them.

    A tuple is kept until its own star has arrived, and the stars of all probes that see it. So a device must put stars
    among its items, at the latest at the end.
    """

    def __init__(self, query: Query, residual: Expr, *, keeps: bool = False, batch: int = 1 << 18,
                 slack: int = 1 << 14):
        """``keeps``: probes may see tuples that are no longer in their window, so none is released. ``batch``:
        candidates that are verified together. ``slack``: unneeded tuples of a stream that may be kept before memory is
        released.
        """
        self._residual, self._order, self._keeps, self._batch = residual, query.order, keeps, batch
        self._kept = {side: _StoredTuples(query.window(side), [c for c in columns(residual) if c.side == side], slack)
                      for side in ("r", "s")}
        self._now: int | None = None
        self.candidates = self.matches = 0

    @property
    def tuples(self) -> int:
        """The number of tuples of both streams that are kept now."""
        return sum(k.end - k.base for k in self._kept.values())

    def push(self, arrivals: Arrivals) -> None:
        """Keep the tuples of ``arrivals``, before the device sees them."""
        before = {side: self._kept[side].end for side in ("r", "s")}
        for number, (side, other) in enumerate((("r", "s"), ("s", "r"))):
            mine, kept, table = arrivals.stream == number, self._kept[side], arrivals.table(side)
            read = [column(table.column(c.name)) for c in kept.cols]
            times = [] if arrivals.ts is None else [arrivals.ts[mine]]
            kept.append([*(array for v in read for array in (v.values, v.valid)),
                         before[other] + np.cumsum(~mine)[mine], *times], len(table))
        if arrivals.ts is not None and len(arrivals):
            self._now = int(arrivals.ts[-1])

    def filter(self, items: Items) -> Items:
        """``items`` without the candidates for which the residual is not true."""
        is_pair = items["kind"] == PAIR
        keep = ~is_pair
        at = np.flatnonzero(is_pair)
        for first in range(0, len(at), self._batch):
            some = at[first:first + self._batch]
            values = self._kept["r"].take(items["r"][some]) | self._kept["s"].take(items["s"][some])
            v = evaluate_columns(self._residual, values, len(some))
            keep[some] = v.valid & v.values
        self.candidates += len(at)
        self.matches += int(keep[at].sum())
        stars = items[items["kind"] == STAR]
        for number, side in enumerate(("r", "s")):
            rows = stars[side][stars["side"] == number]
            if len(rows):
                # In inner order, more pairs of the last star's probe may follow.
                self._kept[side].covered = int(rows[-1]) + (self._order.kind != "inner")
        for side, other in (("r", "s"), ("s", "r")):
            self._kept[side].trim(min(self._kept[side].covered, self._visible(side, self._kept[other])))
        kept: Items = items[keep]
        return kept

    def _visible(self, side: str, probes: _StoredTuples) -> int:
        """The first row of stream ``side`` that the next probe without a star can see."""
        if self._keeps:
            return 0
        stored = self._kept[side]
        seen, now = stored.end, self._now
        if probes.covered < probes.end:
            ages = [int(age[probes.covered - probes.base]) for age in probes.ages()]
            seen, now = ages[0], ages[1] if len(ages) > 1 else None
        first = stored.base
        if stored.extent.rows is not None:
            first = max(first, seen - stored.extent.rows)
        if stored.extent.length is not None and now is not None and stored.end > stored.base:
            least = max(now - stored.extent.length, -(2**63))
            first = max(first, stored.base + int(np.searchsorted(stored.ages()[1], least)))
        return first
