"""Arrays on their way to the GPU: they are put together in memory that the GPU reads by itself, and copied at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from splitjoin.base.arrays import Array, Ints

from ..compiled.helpers import Team
from .driver import Gpu

#: Numbers of 64 bits that are put together by one thread: to wake others takes as long as to copy some MB.
_FEW = 1 << 18


@dataclass(frozen=True)
class Numbers:
    """An array (n,) of 32 or 64 bits, as it is."""

    array: Array

    @property
    def itemsize(self) -> int:
        """Bytes of a number."""
        return self.array.itemsize

    def write(self, place: Array) -> None:
        """Copy them to ``place``, of unsigned integers."""
        np.copyto(place, self.array.view(place.dtype))


@dataclass(frozen=True)
class StagedRowIds:
    """Row ids, int64 (n,), less ``origin``, from 0 to 2**32 − 1: they travel as numbers of 32 bits."""

    array: Ints
    origin: int
    itemsize: ClassVar[int] = 4

    def write(self, place: Array) -> None:
        """Write them to ``place``: from the lower half of each number, as differences are the same modulo 2**32."""
        np.subtract(self.array.view(np.uint32)[::2], np.uint32(self.origin % 2**32), out=place)


class Staging:
    """A buffer in pinned memory, and its copy on the ``gpu``. ``what`` it holds, in words.

    Attributes:
        sent: Bytes that were copied so far.
    """

    def __init__(self, gpu: Gpu, what: str):
        self._gpu, self._what = gpu, what
        self._host = np.empty(0, np.uint64)
        self._views: dict[str, Any] = {}
        self._copied = gpu.cuda.event()
        self.sent = 0

    def send(self, groups: Mapping[str, Sequence[Numbers | StagedRowIds]], stream: Any, team: Team
             ) -> dict[str, tuple[int, int]]:
        """Copy ``groups`` in the order of ``stream``; where they are many, ``team`` puts them together. Those of a
        group and of one size lie one behind the other. Returns where each group begins, among those of 32 bits and of
        64. The next call overwrites them.
        """
        every = [numbers for of in groups.values() for numbers in of]
        longs = sum(len(a.array) for a in every if a.itemsize == 8)
        words = sum(len(a.array) for a in every if a.itemsize == 4)
        total = longs + (words + 1) // 2
        self._copied.synchronize()  # what was sent last has left the buffer
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
            for numbers in of:
                begin, size = at[numbers.itemsize], numbers.itemsize
                at[size] += len(numbers.array)
                jobs.append(partial(numbers.write, to[size][begin:at[size]]))
        if total < _FEW:
            for job in jobs:
                job()
        else:
            team.map(lambda job: job(), jobs)
        if total:
            self._gpu.copy_in(self._views["uint64"], self._host, 8 * total, stream)
            self._copied.record(stream)
        self.sent += 8 * longs + 4 * words
        return found

    def view(self, kind: str) -> Any:
        """The copy as numbers of type ``kind``."""
        if kind not in self._views:
            self._views[kind] = self._views["uint64"].view(np.dtype(kind))
        return self._views[kind]
