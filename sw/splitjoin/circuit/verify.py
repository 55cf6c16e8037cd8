"""Verification on the host: keeps those of a device's candidates for which the rest of the condition is true.

A device runs a plan's interval tests. Where those are necessary but not sufficient (`Plan.residual`), the pairs among
its items are candidates. Stars stay as they are, because they say which probes are done, not how many pairs those have.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import PAIR, STAR, Items
from splitjoin.lang.eval.vector import Vector, column, evaluate_columns
from splitjoin.lang.ir import Col, Expr, columns
from splitjoin.lang.query import Query
from splitjoin.lang.windows import Extent

__all__ = ["Verifier"]

Rows = npt.NDArray[np.int64]


class _StoredTuples:
    """The tuples of one stream that a candidate may still refer to: the residual's columns, and the columns that tell
    their age. ``slack``: unneeded tuples that may be kept before memory is released.
    """

    def __init__(self, extent: Extent, cols: list[Col], slack: int):
        self.extent, self._cols, self._slack = extent, cols, slack
        self.base = self.end = 0
        self.covered = 0  # rows below are done as probes, as a star has confirmed
        self._buffers: dict[str, npt.NDArray[Any]] = {}

    def append(self, part: dict[str, npt.NDArray[Any]], n: int) -> None:
        used = self.end - self.base
        for name, new in part.items():
            buffer = self._buffers.setdefault(name, np.empty(0, new.dtype))
            if used + n > len(buffer):
                buffer = _grown(buffer[:used], 2 * (used + n))
            buffer[used:used + n] = new
            self._buffers[name] = buffer
        self.end += n

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays of all kept tuples, each (end − base,)."""
        return {name: buffer[:self.end - self.base] for name, buffer in self._buffers.items()}

    def trim(self, first: int) -> None:
        """Release the rows below ``first`` when they are worth a copy."""
        if first - self.base > max(self._slack, self.end - first):
            # Copies, as a view would keep the whole array alive.
            self._buffers = {name: _grown(a[first - self.base:], 0) for name, a in self.arrays().items()}
            self.base = first

    def take(self, rows: Rows) -> dict[Col, Vector]:
        """The residual's columns of ``rows``."""
        arrays, index = self.arrays(), rows - self.base
        return {c: Vector(arrays[f"v{n}"][index], arrays[f"n{n}"][index]) for n, c in enumerate(self._cols)}


def _grown(array: npt.NDArray[Any], room: int) -> npt.NDArray[Any]:
    """A copy of ``array`` with room for ``room`` elements, and at least for its own."""
    out = np.empty(max(room, len(array)), array.dtype)
    out[:len(array)] = array
    return out


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
        self._cols = {side: [c for c in columns(residual) if c.side == side] for side in ("r", "s")}
        self._kept = {side: _StoredTuples(query.window(side), cols, slack) for side, cols in self._cols.items()}
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
            mine = arrivals.stream == number
            table = arrivals.table(side)
            part: dict[str, npt.NDArray[Any]] = {"seen": before[other] + np.cumsum(~mine)[mine]}
            if arrivals.ts is not None:
                part["ts"] = arrivals.ts[mine]
            for n, c in enumerate(self._cols[side]):
                v = column(table.column(c.name))
                part |= {f"v{n}": v.values, f"n{n}": v.valid}
            self._kept[side].append(part, len(table))
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
            arrays, at = probes.arrays(), probes.covered - probes.base
            seen = int(arrays["seen"][at])
            now = int(arrays["ts"][at]) if "ts" in arrays else None
        first = stored.base
        if stored.extent.rows is not None:
            first = max(first, seen - stored.extent.rows)
        if stored.extent.length is not None and now is not None and stored.end > stored.base:
            least = max(now - stored.extent.length, -(2**63))
            first = max(first, stored.base + int(np.searchsorted(stored.arrays()["ts"], least)))
        return first
