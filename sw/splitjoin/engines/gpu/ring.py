"""The numbers of one stream's stored tuples in the GPU's memory: row id n has place n modulo the size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .driver import Gpu


def _size(tuples: int, least: int) -> int:
    """The places of a ring for so many tuples: a power of two, or ``least`` rounded up to one."""
    return max(1 << (least - 1).bit_length(), 1 << (tuples - 1).bit_length() if tuples else 1)


def ring_bytes(tuples: int, kinds: Sequence[str], least: int) -> int:
    """Bytes of a ring for so many tuples with numbers of these types, and of ``least`` places."""
    return _size(tuples, least) * sum(int(np.dtype(kind).itemsize) for kind in kinds)


class Ring:
    """The ``numbers``, by name and type, of the tuples of stream ``side`` from row id `base` to `end`, in ``least``
    places or more.

    Attributes:
        arrays: By name the numbers on the GPU, (`size`,).
    """

    def __init__(self, gpu: Gpu, side: str, numbers: Sequence[tuple[str, str]], least: int):
        self._gpu, self._side, self._numbers, self._least = gpu, side, numbers, least
        self.base = self.end = self.size = 0
        self.arrays: dict[str, Any] = {}
        self._grow(0)

    def extend(self, n: int) -> int:
        """Add ``n`` tuples, whose numbers the caller writes from the returned place on. Raises `CapacityError` if the
        GPU's memory is full.
        """
        if self.end - self.base + n > self.size:
            self._grow(self.end - self.base + n)
        self.end += n
        return (self.end - n) % self.size

    def trim(self, keep: int) -> None:
        """Drop the tuples before row id ``keep``."""
        self.base = max(self.base, min(keep, self.end))

    def _grow(self, tuples: int) -> None:
        size, used = _size(tuples, self._least), self.end - self.base
        what = f"the keys of {tuples:,} tuples of stream {self._side} within the windows"
        arrays = {name: self._gpu.array(size, np.dtype(kind), what) for name, kind in self._numbers}
        for name, old in self.arrays.items():
            new = arrays[name]
            for place, at, length in self._segments(self.base, used, size):
                for source, skipped, part in self._segments(self.base + at, length, self.size):
                    new[place + skipped:place + skipped + part].copy_to_device(old[source:source + part])
        self.arrays, self.size = arrays, size

    @staticmethod
    def _segments(row: int, n: int, size: int) -> Iterator[tuple[int, int, int]]:
        """The places of ``n`` tuples from ``row`` on in a ring of ``size``: the first, the number before it, and how
        many follow.
        """
        done = 0
        while done < n:
            place = (row + done) % size
            length = min(n - done, size - place)
            yield place, done, length
            done += length
