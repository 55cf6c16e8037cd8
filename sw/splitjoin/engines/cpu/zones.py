"""Zone maps for the CPU engine's NumPy tier: candidates of conditions whose intervals are wide but seldom overlap.

Each half of ``r.x BETWEEN s.low AND s.high`` lets half of all tuples through. Over tuples in the order of ``low``, the
least and the greatest ``high`` of each block tell which blocks may hold a match, as in the extremes of sorted runs
(`runs`), which the compiled loops have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Zones", "blocks_of", "ranges"]

Codes = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]

#: Tuples of the smallest blocks, and blocks of each larger one: a power of two, and its exponent.
_FAN, _BITS = 16, 4


class Zones:
    """The least and the greatest of ``keys``, arrays (n,) each, in blocks of 16, 256, 4,096, … tuples; n ≥ 1."""

    def __init__(self, keys: Sequence[Codes]):
        self._levels: list[list[tuple[Codes, Codes]]] = []
        ends = [(key, key) for key in keys]
        while not self._levels or len(ends[0][0]) > 1:
            at = np.arange(0, len(ends[0][0]), _FAN)
            ends = [(np.minimum.reduceat(least, at), np.maximum.reduceat(most, at)) for least, most in ends]
            self._levels.append(ends)

    def pairs(self, first: Rows, count: Rows, bounds: Sequence[tuple[Codes, Codes]],
              most: int) -> Iterator[tuple[Rows, Rows]]:
        """Pairs of probe and tuple, in blocks of whole probes, in their order: of the ``count`` tuples from ``first``
        on, those whose blocks of 16 have keys within the probe's ``bounds``, low and high for each key, (probes,) each.

        A block has up to ``most`` pairs, or is one probe's.
        """
        last = first + count - 1
        level = min(len(self._levels), max(1, -(-int(count.max(initial=0)).bit_length() // _BITS))) - 1
        shift = _BITS * (level + 1)
        nodes = np.where(count > 0, (last >> shift) - (first >> shift) + 1, 0)
        for a, b in blocks_of(nodes, most):
            probe, node = ranges(a, first[a:b] >> shift, nodes[a:b])
            yield from self._down(level, probe, node, first, last, bounds, most)

    def _down(self, level: int, probe: Rows, node: Rows, first: Rows, last: Rows,
              bounds: Sequence[tuple[Codes, Codes]], most: int) -> Iterator[tuple[Rows, Rows]]:
        """The pairs in blocks ``node`` of ``level``, for each the ``probe`` that looks, in the order of probes."""
        for (least, greatest), (low, high) in zip(self._levels[level], bounds, strict=True):
            met = (greatest[node] >= low[probe]) & (least[node] <= high[probe])
            probe, node = probe[met], node[met]
        if not len(probe):
            return
        shift = _BITS * level
        begin = np.maximum(node << _BITS, first[probe] >> shift)
        sizes = np.minimum((node << _BITS) + _FAN - 1, last[probe] >> shift) + 1 - begin
        starts = np.flatnonzero(np.diff(probe, prepend=-1))
        for a, b in blocks_of(np.add.reduceat(sizes, starts), most):
            begun, ended = int(starts[a]), int(starts[b]) if b < len(starts) else len(probe)
            of, child = ranges(begun, begin[begun:ended], sizes[begun:ended])
            if level:
                yield from self._down(level - 1, probe[of], child, first, last, bounds, most)
            else:
                yield probe[of], child


def blocks_of(counts: Rows, most: int) -> Iterator[tuple[int, int]]:
    """Slices of probes that have ``most`` pairs together, or one probe each."""
    sums, first = np.cumsum(counts), 0
    while first < len(counts):
        before = int(sums[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(sums, before + most, side="right")))
        yield first, last
        first = last


def ranges(first: int, begins: Rows, counts: Rows) -> tuple[Rows, Rows]:
    """``counts`` numbers from each of ``begins`` on; and the number of the one that each is of, from ``first`` on."""
    of = np.repeat(np.arange(len(counts)), counts)
    return of + first, np.arange(len(of)) + np.repeat(begins - (np.cumsum(counts) - counts), counts)
