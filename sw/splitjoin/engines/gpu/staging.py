"""Arrays on their way to the GPU: they are put together in memory that the GPU reads by itself, and copied at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .driver import Gpu

__all__ = ["Staging"]

Array = npt.NDArray[Any]


class Staging:
    """A buffer in pinned memory, and its copy on the ``gpu``. ``what`` it holds, in words.

    Attributes:
        longs, words: The copy, as numbers of 64 and of 32 bits.
        sent: Bytes that were copied so far.
    """

    def __init__(self, gpu: Gpu, what: str):
        self._gpu, self._what = gpu, what
        self._host = np.empty(0, np.uint64)
        self.longs: Any = None
        self.words: Any = None
        self.sent = 0

    def send(self, groups: Mapping[str, Sequence[Array]], stream: Any) -> dict[str, tuple[int, int]]:
        """Copy the arrays of ``groups``, (n,) each of uint32 or uint64, in the order of ``stream``. Those of a group
        lie one behind the other: of 32 bits in `words`, of 64 in `longs`. Returns where each group begins in both.

        The next call overwrites the buffer, so ``stream`` must have copied it by then.
        """
        every = [array for of in groups.values() for array in of]
        longs = sum(len(a) for a in every if a.itemsize == 8)
        words = sum(len(a) for a in every if a.itemsize == 4)
        total = longs + (words + 1) // 2
        if total > len(self._host):
            size = 1 << (total - 1).bit_length()
            self.longs = self.words = None  # before new memory is taken
            self.longs = self._gpu.array(size, np.uint64, self._what)
            self.words = self.longs.view(np.uint32)
            self._host = self._gpu.cuda.pinned_array(size, np.uint64)
        to: dict[int, Array] = {8: self._host, 4: self._host.view(np.uint32)}
        at = {8: 0, 4: 2 * longs}
        found = {}
        for name, of in groups.items():
            found[name] = at[4], at[8]
            for array in of:
                size = array.itemsize
                to[size][at[size]:at[size] + len(array)] = array
                at[size] += len(array)
        if total:
            self.longs[:total].copy_to_device(self._host[:total], stream)
        self.sent += sum(a.nbytes for a in every)
        return found
