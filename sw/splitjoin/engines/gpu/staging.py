"""Arrays on their way to the GPU: they are put together in memory that the GPU reads by itself, and copied at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..cpu.helpers import Team
from .driver import Gpu

__all__ = ["Staging"]

Array = npt.NDArray[Any]

#: Numbers of 64 bits that are put together by one thread, as a hand-over takes longer.
_FEW = 1 << 15


class Staging:
    """A buffer in pinned memory, and its copy on the ``gpu``. ``what`` it holds, in words.

    Attributes:
        sent: Bytes that were copied so far.
    """

    def __init__(self, gpu: Gpu, what: str):
        self._gpu, self._what = gpu, what
        self._host = np.empty(0, np.uint64)
        self._views: dict[str, Any] = {}
        self.sent = 0

    def send(self, groups: Mapping[str, Sequence[Array]], stream: Any, team: Team) -> dict[str, tuple[int, int]]:
        """Copy the arrays of ``groups``, (n,) each of 32 or 64 bits, in the order of ``stream``; ``team`` puts them
        together. Those of a group and
        of one size lie one behind the other. Returns where each group begins, among those of 32 bits and of 64.

        The next call overwrites the buffer, so ``stream`` must have copied it by then.
        """
        every = [array for of in groups.values() for array in of]
        longs = sum(len(a) for a in every if a.itemsize == 8)
        words = sum(len(a) for a in every if a.itemsize == 4)
        total = longs + (words + 1) // 2
        if total > len(self._host):
            size = 1 << (total - 1).bit_length()
            self._views.clear()  # before new memory is taken
            self._views["uint64"] = self._gpu.array(size, np.uint64, self._what)
            self._host = self._gpu.cuda.pinned_array(size, np.uint64)
        to: dict[int, Array] = {8: self._host, 4: self._host.view(np.uint32)}
        at = {8: 0, 4: 2 * longs}
        found, jobs = {}, []
        for name, of in groups.items():
            found[name] = at[4], at[8]
            for array in of:
                size = array.itemsize
                place = to[size][at[size]:at[size] + len(array)]
                jobs.append(partial(np.copyto, place, array.view(place.dtype)))
                at[size] += len(array)
        if total < _FEW:
            for job in jobs:
                job()
        else:
            team.map(lambda job: job(), jobs)
        if total:
            self._views["uint64"][:total].copy_to_device(self._host[:total], stream)
        self.sent += sum(a.nbytes for a in every)
        return found

    def view(self, kind: str) -> Any:
        """The copy as numbers of type ``kind``."""
        if kind not in self._views:
            self._views[kind] = self._views["uint64"].view(np.dtype(kind))
        return self._views[kind]
