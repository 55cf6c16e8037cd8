"""One stream's window: structure of arrays, appended at the end and trimmed at the front."""

from __future__ import annotations

from typing import Any

import numpy as np

from splitjoin.base.arrays import Array

from ..tuning import DEFAULTS

#: Bytes of the widest vector: a load that straddles two cache lines costs two.
ALIGNMENT = 64


class Store:
    """Arrays that grow together; positions count from 0 over the whole session, `base` is the first one kept.

    ``slack``: tuples that may be kept beyond the window before memory is released.

    Attributes:
        room: The stored arrays, with what lies behind position `end`; mostly the same from batch to batch.
    """

    def __init__(self, slack: int = DEFAULTS.slack) -> None:
        self._slack = slack
        self.room: list[Array] = []
        self.base = 0
        self.end = 0

    @property
    def arrays(self) -> list[Array]:
        """The stored arrays, from position `base` to `end`."""
        return [a[: self.end - self.base] for a in self.room]

    def append(self, arrays: list[Array], n: int) -> None:
        """Add ``n`` tuples: arrays (n,) each, of the same types in every call."""
        for mine, new in zip(self.added([a.dtype for a in arrays], n), arrays, strict=True):
            mine[:] = new

    def added(self, kinds: list[Any], n: int) -> list[Array]:
        """Add ``n`` tuples of arrays of ``kinds``, the same in every call. Returns the arrays (n,) to fill."""
        used = self.end - self.base
        if not self.room:
            self.room = [np.empty(0, kind) for kind in kinds]
        self.reserve(n)
        self.end += n
        return [a[used:used + n] for a in self.room]

    def reserve(self, n: int) -> None:
        """Make room for ``n`` more tuples behind the last one."""
        used = self.end - self.base
        if self.room and used + n > len(self.room[0]):
            room = max(2 * (used + n), self._slack)
            self.room = [_grown(a, used, room) for a in self.room]

    def replace(self, arrays: list[Array]) -> None:
        """Keep ``arrays`` instead, each from position `base` to `end`."""
        used = self.end - self.base
        self.room = [_grown(a, used, used + self._slack) for a in arrays]

    def trim(self, keep: int) -> None:
        """Drop the tuples before position ``keep``, now or when enough memory can be freed."""
        drop = keep - self.base
        if drop < max(self._slack, self.end - keep):
            return
        used = self.end - keep
        for n, array in enumerate(self.room):
            if len(array) > 4 * (used + self._slack):  # a copy, as a view would keep all alive
                self.room[n] = _grown(array[drop:], used, used + self._slack)
            else:
                array[:used] = array[drop:drop + used]  # which do not overlap
        self.base = keep


class ReusedArrays:
    """Arrays by name that each batch overwrites: new ones would be looked up, and their memory be got, each time."""

    def __init__(self) -> None:
        self._kept: dict[str, Array] = {}
        self._last: dict[str, Array] = {}

    def array(self, name: str, n: int, kind: Any) -> Array:
        """The array (n,) of ``kind`` with this name, not filled: the same object as long as ``n`` is the same."""
        last = self._last.get(name)
        if last is not None and len(last) == n:
            return last
        kept = self._kept.get(name)
        if kept is None or len(kept) < n:
            kept = self._kept[name] = aligned(n, kind)
        last = self._last[name] = kept[:n]
        return last


def aligned(n: int, kind: Any) -> Array:
    """An array (n,) of ``kind`` that is not filled, aligned for whole vector loads. Behind it is memory for 64 elements
    more, as compiled loops read so many at once.
    """
    size = n * np.dtype(kind).itemsize
    raw = np.empty(size + 64 * np.dtype(kind).itemsize + ALIGNMENT, np.uint8)
    skip = -raw.ctypes.data % ALIGNMENT
    return raw[skip:skip + size].view(kind)


def _grown(array: Array, used: int, room: int) -> Array:
    """A copy of the first ``used`` of ``array`` with room for ``room``."""
    out = np.empty(room, object) if array.dtype == object else aligned(room, array.dtype)
    out[:used] = array[:used]
    return out
