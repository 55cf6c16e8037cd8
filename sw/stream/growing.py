"""A growing row of int64 that is trimmed at the front."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Growing"]

_ROOM = 1024


class Growing:
    """int64 values that are appended at the end and let go at the front, each copied a few times at most."""

    def __init__(self) -> None:
        self._array = np.empty(_ROOM, np.int64)
        self._start = self._end = 0

    def __len__(self) -> int:
        return self._end - self._start

    @property
    def values(self) -> npt.NDArray[np.int64]:
        """What is there: a view, valid until the next change."""
        return self._array[self._start:self._end]

    def append(self, values: npt.NDArray[np.int64]) -> None:
        """Add ``values`` at the end."""
        n = len(values)
        if self._end + n > len(self._array):
            used = len(self)
            grown = np.empty(max(2 * (used + n), _ROOM), np.int64)
            grown[:used] = self.values
            self._array, self._start, self._end = grown, 0, used
        self._array[self._end:self._end + n] = values
        self._end += n

    def drop(self, n: int) -> None:
        """Let go of the first ``n``."""
        self._start += n
        if len(self._array) > max(_ROOM, 8 * len(self)):
            kept = self.values.copy()
            self._array = np.empty(max(2 * len(kept), _ROOM), np.int64)
            self._array[:len(kept)] = kept
            self._start, self._end = 0, len(kept)
