"""The order of appended matches: by probe and row. A kernel puts those of each block of probes in order.

It counts the matches of each probe, puts these together, and then compares the few of a probe with each other: as many
as are less come before one. The host sorts those of a probe that has more.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from splitjoin.base.arrays import Rows

from .kernel_source import KernelShape

_ORDER = '''import numba
import numpy as np
from numba import cuda


@cuda.jit
def order(n, origin, room, counters, hits, placed, ordered):
    """Put the matches of ``n`` probes in order, which each block of {block} has in ``hits`` (blocks · room,), as probe
    · 2**32 + row: as many as its one of ``counters`` (blocks,), or ``room``. ``placed``, as ``hits``, is overwritten.

    Writes to ``ordered`` the ``counters``, how many matches each probe has, and their rows behind ``origin``, one
    block's behind the other's.
    """
    thread, block = numba.int64(cuda.threadIdx.x), numba.int64(cuda.blockIdx.x)
    blocks = numba.int64(cuda.gridDim.x)
    first, begin = block * {block}, block * room
    size = min(numba.int64(counters[block]), room)
    # For each probe how many matches it has, where they begin, and the place of the next; then a sum for each thread.
    held = cuda.shared.array({held}, numba.int32)
    for p in range(thread, {block}, {threads}):
        held[p] = 0
    cuda.syncthreads()
    for i in range(thread, size, {threads}):
        cuda.atomic.add(held, numba.int64(hits[begin + i] >> np.uint64(32)) - first, 1)
    cuda.syncthreads()
    total = numba.int64(0)
    for p in range(thread * {probes}, (thread + 1) * {probes}):
        total += held[p]
    held[{sums} + thread] = total
    cuda.syncthreads()
    if thread == 0:
        total = numba.int64(0)
        for t in range({sums}, {sums} + {threads}):
            more = held[t]
            held[t] = total
            total += more
    cuda.syncthreads()
    total = numba.int64(held[{sums} + thread])
    for p in range(thread * {probes}, (thread + 1) * {probes}):
        held[{starts} + p] = held[{places} + p] = total
        total += held[p]
        if first + p < n:
            ordered[blocks + first + p] = held[p]
    cuda.syncthreads()
    for i in range(thread, size, {threads}):
        hit = hits[begin + i]
        placed[begin + cuda.atomic.add(held, {places} + numba.int64(hit >> np.uint64(32)) - first, 1)] = hit
    cuda.syncthreads()
    at = blocks + n
    for b in range(block):
        at += min(numba.int64(counters[b]), room)
    for i in range(thread, size, {threads}):
        hit = placed[begin + i]
        p = numba.int64(hit >> np.uint64(32)) - first
        place, start = i, numba.int64(held[{starts} + p])
        if held[p] <= {few}:
            place = start
            for j in range(start, start + held[p]):
                if placed[begin + j] < hit:
                    place += 1
        ordered[at + place] = origin + numba.int64(hit & np.uint64(0xFFFFFFFF))
    if thread == 0:
        ordered[block] = counters[block]
'''


def order_source(shape: KernelShape) -> str:
    """The module of the kernel ``order``, of a thread block for each block of probes."""
    n = shape.block
    return _ORDER.format(block=n, threads=shape.threads, probes=shape.probes, few=shape.few, starts=n, places=2 * n,
                         sums=3 * n, held=3 * n + shape.threads)


def sort_many(rows: Rows, counts: Rows, few: int) -> None:
    """Put the ``rows`` (n,) in order that `order_source` has left: of probes that have more than ``few``, of which each
    has its one of ``counts``.
    """
    if int(counts.max(initial=0)) > few:
        ends = np.cumsum(counts)
        for probe in np.flatnonzero(counts > few).tolist():
            rows[ends[probe] - counts[probe]:ends[probe]].sort()


def pieces(counters: Rows, block: int, n: int, least: int, most: int) -> list[tuple[int, int, int, int]]:
    """Parts of ``n`` probes, whose blocks of ``block`` have so many matches each: the first probe, the one behind the
    last, the first match and the one behind the last. ``most`` parts or fewer, of about ``least`` matches or more.
    """
    ends, blocks = np.concatenate([[0], np.cumsum(counters)]), len(counters)
    parts = max(1, min(most, blocks, int(ends[-1]) // least))
    cuts = [blocks * i // parts for i in range(parts + 1)]
    return [(a * block, min(b * block, n), int(ends[a]), int(ends[b])) for a, b in pairwise(cuts)]
