"""`pieces`: ranges of rows whose second key is within bounds, too, as ranges of a range tree's levels.

A range tree (Bentley, "Decomposable searching problems") has the positions of an order in blocks of a power of two,
level by level, each block sorted by a second key. A range of positions is at most two blocks a level, and in each of
them the keys within bounds are a range, whose place follows from that in the block above (Chazelle's fractional
cascading, by counts as in a wavelet matrix).
"""

from __future__ import annotations

import numpy as np

from splitjoin.base.arrays import Rows
from splitjoin.plan.keys import Codes

from ..sorting import stable_order


def levels_of(positions: int) -> int:
    """The number of levels over so many positions."""
    return (positions + 1).bit_length()


def pieces(keys: Codes, start: Rows, end: Rows, low: Codes, high: Codes) -> tuple[Rows, Rows, Rows, Rows]:
    """The positions of all levels, and of each range from ``start`` to before ``end`` (m,) of the positions of ``keys``
    (n,) those with keys from ``low`` to ``high``, in pieces: the number of its range, and its start and end in the
    levels. Pieces are sorted by these numbers, and none is empty.
    """
    n, levels = len(keys), levels_of(len(keys))
    order = stable_order(keys)
    sorted_keys = keys[order]
    below = np.searchsorted(sorted_keys, low).astype(np.int64)
    upto = np.searchsorted(sorted_keys, high, side="right").astype(np.int64)
    of = np.flatnonzero((end > start) & (upto > below))
    # Positions count from 1, so that a path of the tree lies on each side of a range.
    at = order + 1
    left, right = start[of], end[of] + 1
    low_left, high_left = low_right, high_right = below[of], upto[of]
    positions, found = [order], list[tuple[Rows, Rows, Rows]]()
    for level in range(levels):
        shift = levels - level - 1
        goes_left = (at >> shift & 1) == 0
        zeros = np.zeros(n + 1, np.int64)
        np.cumsum(goes_left, out=zeros[1:])
        # A block begins at as many positions as there are before it.
        block = at >> (shift + 1)
        begin = _begin(block, shift + 1, n)
        inside = zeros[:-1] - zeros[begin]
        to = np.where(goes_left, begin + inside, _begin(2 * block + 1, shift, n) + np.arange(n) - begin - inside)
        moved = np.empty_like(at)
        moved[to] = at
        at = moved
        positions.append(at - 1)

        def child(path: Rows, low: Rows, high: Rows, bit: Rows | int, zeros: Rows = zeros, shift: int = shift) -> tuple[
                Rows, Rows, Rows]:
            """The range in a child of the block of each path, and where the child begins."""
            block = path >> (shift + 1)
            begin = _begin(block, shift + 1, n)
            before = zeros[begin]
            low_zeros, high_zeros = zeros[begin + low] - before, zeros[begin + high] - before
            to_left = np.equal(bit, 0)
            return (np.where(to_left, low_zeros, low - low_zeros), np.where(to_left, high_zeros, high - high_zeros),
                    _begin(2 * block + bit, shift, n))

        apart = left >> (shift + 1) != right >> (shift + 1)
        for path, ends, own in ((left, (low_left, high_left), 0), (right, (low_right, high_right), 1)):
            mine = np.flatnonzero(apart & ((path >> shift & 1) == own))
            some_low, some_high, begin = child(path[mine], ends[0][mine], ends[1][mine], 1 - own)
            some = some_high > some_low
            begin = begin[some] + (level + 1) * n
            found.append((of[mine[some]], begin + some_low[some], begin + some_high[some]))
        low_left, high_left, _ = child(left, low_left, high_left, left >> shift & 1)
        low_right, high_right, _ = child(right, low_right, high_right, right >> shift & 1)
        going = np.flatnonzero((high_left > low_left) | (high_right > low_right))
        if len(going) < len(of):
            of, left, right = of[going], left[going], right[going]
            low_left, high_left, low_right, high_right = (
                a[going] for a in (low_left, high_left, low_right, high_right))
    owner, first, behind = (np.concatenate(parts) for parts in zip(*found, strict=True))
    by = stable_order(owner.astype(np.uint64))
    return np.concatenate(positions), owner[by], first[by], behind[by]


def _begin(block: Rows, shift: int, n: int) -> Rows:
    """The number of positions from 1 to ``n`` before each block of 2^``shift``."""
    found: Rows = np.clip((block << shift) - 1, 0, n)
    return found
