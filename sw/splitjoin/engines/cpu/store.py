"""A worker's share of one stream's window: structure of arrays, appended at the end and trimmed at the front."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["ALIGNMENT", "Store", "aligned"]

Array = npt.NDArray[Any]

#: Bytes of the widest vector: a load that straddles two cache lines costs two.
ALIGNMENT = 64
#: Tuples that may be kept beyond the window before memory is released.
_SLACK = 1 << 16


class Store:
    """Arrays that grow together; positions count from 0 over the whole session, `base` is the first one kept."""

    def __init__(self) -> None:
        self._arrays: list[Array] = []
        self.base = 0
        self.end = 0

    @property
    def arrays(self) -> list[Array]:
        """The stored arrays, from position `base` to `end`."""
        return [a[: self.end - self.base] for a in self._arrays]

    def append(self, arrays: list[Array], n: int) -> None:
        """Add ``n`` tuples: arrays (n,) each, of the same types in every call."""
        used = self.end - self.base
        if not self._arrays:
            self._arrays = [np.empty(0, a.dtype) for a in arrays]
        if arrays and used + n > len(self._arrays[0]):
            room = max(2 * (used + n), _SLACK)
            self._arrays = [_grown(a, used, room) for a in self._arrays]
        for mine, new in zip(self._arrays, arrays, strict=True):
            mine[used:used + n] = new
        self.end += n

    def replace(self, arrays: list[Array]) -> None:
        """Keep ``arrays`` instead, each from position `base` to `end`."""
        used = self.end - self.base
        self._arrays = [_grown(a, used, used + _SLACK) for a in arrays]

    def trim(self, keep: int) -> None:
        """Drop the tuples before position ``keep``, now or when enough memory can be freed."""
        drop = keep - self.base
        if drop < max(_SLACK, self.end - keep):
            return
        # Copies, as a view would keep the whole array alive.
        used = self.end - keep
        self._arrays = [_grown(a[drop:], used, used + _SLACK) for a in self._arrays]
        self.base = keep


def aligned(n: int, kind: Any) -> Array:
    """An array (n,) of ``kind`` that is not filled, aligned for whole vector loads."""
    size = n * np.dtype(kind).itemsize
    raw = np.empty(size + ALIGNMENT, np.uint8)
    skip = -raw.ctypes.data % ALIGNMENT
    return raw[skip:skip + size].view(kind)


def _grown(array: Array, used: int, room: int) -> Array:
    """A copy of the first ``used`` of ``array`` with room for ``room``."""
    out = np.empty(room, object) if array.dtype == object else aligned(room, array.dtype)
    out[:used] = array[:used]
    return out
