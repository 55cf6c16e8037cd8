"""One stream's window in the CPU engine: structure of arrays, appended at the end and trimmed at the front."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..lang.windows import Extent

__all__ = ["ALIGNMENT", "Store"]

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]

#: Bytes of the widest vector: a load that straddles two cache lines costs two.
ALIGNMENT = 64
#: Tuples that may be kept beyond the window before memory is given back.
_SLACK = 1 << 16


class Store:
    """The tuples that a probe may still see. Row ids count from 0 over the whole session."""

    def __init__(self, extent: Extent):
        self._extent = extent
        self._arrays: list[Array] = []
        self._ts: Rows = np.empty(0, np.int64)
        self.base = 0
        self.end = 0

    @property
    def arrays(self) -> list[Array]:
        """The stored arrays, from row id `base` to `end`."""
        return [a[: self.end - self.base] for a in self._arrays]

    def append(self, arrays: list[Array], ts: Rows | None, n: int) -> None:
        """Add ``n`` tuples: arrays (n,) each, and their event times where there are any."""
        used = self.end - self.base
        if not self._arrays:
            self._arrays = [np.empty(0, a.dtype) for a in arrays]
        if arrays and used + n > len(self._arrays[0]):
            room = max(2 * (used + n), _SLACK)
            self._arrays = [_grown(a, used, room) for a in self._arrays]
        for mine, new in zip(self._arrays, arrays, strict=True):
            mine[used:used + n] = new
        if ts is not None and self._extent.length is not None:
            self._ts = np.concatenate([self._ts, ts])
        self.end += n

    def window(self, seen: Rows, now: Rows | None) -> tuple[Rows, Rows]:
        """Per probe the row ids that it sees, half open: ``seen`` tuples came before it, at event time ``now``."""
        start = np.zeros(len(seen), np.int64)
        if self._extent.rows is not None:
            start = np.maximum(start, seen - min(self._extent.rows, 2**62))
        if self._extent.length is not None:
            assert now is not None
            start = np.maximum(start, self.base + np.searchsorted(self._ts, _minus(now, self._extent.length)))
        return np.minimum(start, seen), seen

    def trim(self, now: int | None) -> None:
        """Let go of tuples that no later probe sees, which come at event time ``now`` or later."""
        keep = self.base
        if self._extent.rows is not None:
            keep = max(keep, self.end - self._extent.rows)
        if self._extent.length is not None and now is not None:
            limit = max(now - self._extent.length, -(2**63))
            keep = max(keep, self.base + int(np.searchsorted(self._ts, limit)))
        drop = keep - self.base
        if drop < max(_SLACK, self.end - keep):
            return
        # Copies, as a view would keep the whole array alive.
        used = self.end - keep
        self._arrays = [_grown(a[drop:], used, used + _SLACK) for a in self._arrays]
        self._ts = self._ts[drop:].copy()
        self.base = keep


def _grown(array: Array, used: int, room: int) -> Array:
    """A copy of the first ``used`` of ``array`` with room for ``room``, aligned for whole vector loads."""
    item = array.dtype.itemsize
    if array.dtype == object:
        out = np.empty(room, object)
    else:
        raw = np.empty(room * item + ALIGNMENT, np.uint8)
        skip = -raw.ctypes.data % ALIGNMENT
        out = raw[skip:skip + room * item].view(array.dtype)
    out[:used] = array[:used]
    return out


def _minus(times: Rows, length: int) -> Rows:
    """``times − length``, or the least int64 where that would wrap."""
    least = -(2**63)
    if length >= 2**63:
        return np.array([max(t - length, least) for t in times.tolist()], np.int64)
    return np.where(times < least + length, least, times - length)
