"""The index engine's loops: cells that hold tuples in arrival order, 64 of which are compared at once.

A grid has two dimensions of levels (`levels`). A level's upper bits are the tuple's place in the grid, its lower eight
bits the place within the cell, which the cell keeps as a byte. A cell is a ring buffer of slots, so that expired tuples
are overwritten: blocks of 64, whose bytes fill two cache lines, each with both dimensions of 32 slots, one behind the
other. The bytes find candidates; the caller verifies them with the keys.

The vectors are LLVM's own: where the processor has no registers of 512 bits, LLVM splits them. Everything that is
compiled here is in this file, as numba looks for changes nowhere else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]  # llvmlite is not typed
from numba.core import cgutils, types

from .intrinsics import BLOCK, llvm_intrinsic, lowest_bit
from .jit import compiled

__all__ = ["build_grid", "find_candidates", "insert", "prefetch", "probe_places", "stored_places"]

#: Tuples between a prefetch and the use of its data.
_AHEAD = 8

_BYTE, _INT = ir.IntType(8), ir.IntType(32)
#: Slots whose bytes share a cache line.
_LINE = BLOCK // 2
_VECTOR = ir.VectorType(_BYTE, _LINE)
#: Numba takes a signed index from the end if it is negative, which costs time.
_I = np.uint64


def _data(context: Any, builder: Any, signature: Any, array: Any) -> Any:
    return context.make_array(signature.args[0])(context, builder, array).data


def _splat(builder: Any, value: Any) -> Any:
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    one = builder.insert_element(undefined, builder.trunc(value, _BYTE), ir.Constant(_INT, 0))
    return builder.shuffle_vector(one, undefined, ir.Constant(ir.VectorType(_INT, _LINE), [0] * _LINE))


@llvm_intrinsic
def _block_mask(typing: Any, pool: Any, at: Any, low: Any, width: Any, other_low: Any, other_width: Any) -> Any:
    """A mask of the slots of the block at ``pool[at]`` that lie within ``width`` above ``low`` in both dimensions: 64
    bits, bit 0 the first. ``pool``: uint8, aligned to blocks. The others: int64; 0 ≤ low ≤ low + width ≤ 255.
    """
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data, word, halves = _data(context, builder, signature, args[0]), ir.IntType(BLOCK), []
        splats = [_splat(builder, arg) for arg in args[2:]]
        for half in range(2):
            bits = None
            for d in range(2):
                at = builder.add(args[1], ir.Constant(args[1].type, half * BLOCK + d * _LINE))
                pointer = builder.bitcast(builder.gep(data, [at]), _VECTOR.as_pointer())
                near = builder.sub(builder.load(pointer, align=_LINE), splats[2 * d])
                met = builder.icmp_unsigned("<=", near, splats[2 * d + 1])
                bits = met if bits is None else builder.and_(bits, met)
            halves.append(builder.zext(builder.bitcast(bits, ir.IntType(_LINE)), word))
        return builder.or_(halves[0], builder.shl(halves[1], ir.Constant(word, _LINE)))

    return types.uint64(pool, *[types.int64] * 5), generate


@llvm_intrinsic
def _rotated_right(typing: Any, mask: Any, by: Any) -> Any:
    """``mask``, a uint64, rotated right by ``by`` modulo 64 bits: bit ``by`` comes first."""
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = args[0].type
        function: Any = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]  # numba is not typed
            builder.module, ir.FunctionType(word, [word] * 3), "llvm.fshr.i64")
        return builder.call(function, [args[0], args[0], args[1]])

    return types.uint64(types.uint64, types.int64), generate


@llvm_intrinsic
def prefetch(typing: Any, array: Any, at: Any) -> Any:
    """Prefetch the cache line of ``array[at]``."""
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.bitcast(builder.gep(_data(context, builder, signature, args[0]), [args[1]]),
                                  _BYTE.as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), _INT, _INT, _INT])
        function: Any = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]  # numba is not typed
            builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [pointer, _INT(0), _INT(3), _INT(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@compiled
def build_grid(own: Any, first: Any, head: Any, rows: Any, pool: Any, used: Any) -> Any:
    """Build a grid of stored tuples with places ``own`` (n, 2), numbered from ``first`` on; False if it needs more
    room, ``used`` (1,) slots.

    ``head`` (cells, 4): each cell's first slot, a multiple of 64, and its capacity, 64 times a power of two; the place
    in it of the next tuple, and its occupancy.
    """
    head[:, :] = 0
    for n in range(len(own)):
        head[own[n, 0], 1] += 1
    at = np.int64(0)
    for c in range(len(head)):
        room = np.int64(64)
        while room * 4 < np.int64(head[c, 1]) * 5:
            room *= 2
        head[c, 0] = at
        head[c, 1] = room
        at += room
    used[0] = at
    if at > len(rows):
        return False
    insert(own, 0, len(own), first, -1, head, rows, pool, used)
    return True


@compiled
def insert(own: Any, n: Any, until: Any, first: Any, dead: Any, head: Any, rows: Any, pool: Any, used: Any) -> Any:
    """Store the tuples whose places are lines ``n`` to ``until`` of ``own``, line 0's numbered ``first``; returns the
    first for which there is no room. Expired ones, numbered below ``dead``, may be dropped.
    """
    while n < until:
        if n + _AHEAD < until:
            prefetch(head, np.int64(own[_I(n + _AHEAD), 0]) * 4)
            near = _I(own[_I(n + _AHEAD // 2), 0])
            soon = np.int64(head[near, 0]) + np.int64(head[near, 2])
            prefetch(rows, soon)
            prefetch(pool, soon * 2)
        c = _I(own[_I(n), 0])
        at, room = np.int64(head[c, 0]), np.int64(head[c, 1])
        following, held = np.int64(head[c, 2]), np.int64(head[c, 3])
        if held & 7 == 7:  # occasionally, so that expired tuples are not compared for long
            while held > 0 and rows[_I(at + ((following - held) & (room - 1)))] < dead:
                held -= 1
        if held == room:
            if used[0] + 2 * room > len(rows):
                head[c, 3] = held
                return n
            new = used[0]
            used[0] += 2 * room
            for j in range(held):
                slot, target = at + ((following - held + j) & (room - 1)), new + j
                byte, to = slot // 32 * 64 + slot % 32, target // 32 * 64 + target % 32
                rows[_I(target)] = rows[_I(slot)]
                pool[_I(to)] = pool[_I(byte)]
                pool[_I(to + 32)] = pool[_I(byte + 32)]
            at, following, room = new, room, 2 * room
            head[c, 0] = at
            head[c, 1] = room
        slot = at + following
        byte = (slot & ~31) * 2 + (slot & 31)
        rows[_I(slot)] = first + n
        pool[_I(byte)] = own[_I(n), 1] & 255
        pool[_I(byte + 32)] = own[_I(n), 1] >> 8
        head[c, 2] = (following + 1) & (room - 1)
        head[c, 3] = held + 1
        n += 1
    return n


@compiled
def find_candidates(probe_cells: Any, p: Any, until: Any, shift: Any, stride: Any, head: Any, rows: Any, pool: Any,
                    found: Any, probe_of: Any) -> Any:
    """Find the candidates of probes ``p`` to ``until``, while there is room in ``found`` for another one's.

    ``probe_cells``: the cells that they visit (`probe_places`), from probe ``shift`` on. ``found`` and ``probe_of``
    receive the candidates' numbers and their probes. Returns the probe to continue with, the number of candidates, and
    the number of tuples that were compared.
    """
    m = seen = np.int64(0)
    while p < until and len(found) - m > len(rows):
        n = p - shift
        if p + _AHEAD < until:
            prefetch(head, (np.int64(probe_cells[_I(n + _AHEAD), 0]) + probe_cells[_I(n + _AHEAD), 1]) * 4)
            near = _I(n + _AHEAD // 2)
            soon = np.int64(head[_I(np.int64(probe_cells[near, 0]) + probe_cells[near, 1]), 0]) * 2
            prefetch(pool, soon)
            prefetch(pool, soon + 64)
        line = _I(n)
        cell, column = np.int64(probe_cells[line, 0]), np.int64(probe_cells[line, 1])
        more, other_more = np.int64(probe_cells[line, 2]), np.int64(probe_cells[line, 3])
        edges = np.int64(probe_cells[line, 4])
        for i in range(more + 1):
            # In a cell at the edge of the interval only some of the 256 places match.
            low = edges & 255 if i == 0 else 0
            width = ((edges >> 8) & 255 if i == more else 255) - low
            for j in range(other_more + 1):
                other_low = (edges >> 16) & 255 if j == 0 else 0
                other_width = ((edges >> 24) & 255 if j == other_more else 255) - other_low
                # Cyclic levels wrap around from the last to the first.
                beside = column + j - (stride if column + j >= stride else 0)
                at_line = cell + i * stride
                c = _I((at_line - len(head) if at_line >= len(head) else at_line) + beside)
                at, room, held = np.int64(head[c, 0]), np.int64(head[c, 1]), np.int64(head[c, 3])
                oldest = (np.int64(head[c, 2]) - held) & (room - 1)
                seen += held
                if held == 0:
                    continue
                if room == BLOCK:
                    bits = _rotated_right(_block_mask(pool, at * 2, low, width, other_low, other_width), oldest)
                    bits &= ~np.uint64(0) >> np.uint64(64 - held)
                    # Most blocks have one candidate or none, which takes no branch.
                    found[_I(m)] = at + ((oldest + lowest_bit(bits)) & 63)
                    probe_of[_I(m)] = p
                    m += bits != 0
                    bits &= bits - np.uint64(1)
                    while bits:
                        found[_I(m)] = at + ((oldest + lowest_bit(bits)) & 63)
                        probe_of[_I(m)] = p
                        m += 1
                        bits &= bits - np.uint64(1)
                    continue
                while held > 0:
                    skip = oldest & 63
                    part = min(64 - skip, held)
                    block = at + oldest - skip
                    mask = _block_mask(pool, block * 2, low, width, other_low, other_width) >> np.uint64(skip)
                    mask &= ~np.uint64(0) >> np.uint64(64 - part)
                    while mask:
                        found[_I(m)] = block + skip + lowest_bit(mask)
                        probe_of[_I(m)] = p
                        m += 1
                        mask &= mask - np.uint64(1)
                    oldest = (oldest + part) & (room - 1)
                    held -= part
        p += 1
    for k in range(m):  # only now, so that no probe waits for the memory of the previous one
        if k + _AHEAD < m:
            prefetch(rows, np.int64(found[_I(k + _AHEAD)]))
        found[_I(k)] = rows[_I(found[_I(k)])]
    return p, m, seen


@compiled
def stored_places(levels: Any, n: Any, stride: Any, out: Any) -> None:
    """Compute the places of n stored tuples of ``levels`` (2 or more, n): the cell, and the place within it, 8 bits a
    dimension, the first dimension's lowest.
    """
    for i in range(n):
        a, b = levels[0, i], levels[1, i]
        out[i, 0] = (a >> 8) * stride + (b >> 8)
        out[i, 1] = (a & 255) | (b & 255) << 8


@compiled
def probe_places(levels: Any, low: Any, high: Any, other_low: Any, other_high: Any, around: Any, left: Any, right: Any,
                other_around: Any, other_left: Any, other_right: Any, stride: Any, out: Any) -> None:
    """Compute the cells that probes with bounds ``low`` to ``other_high`` (n,) of ``levels`` (4, n) visit.

    Of each probe: the first cell's line and column, how many more cells follow in the first and in the second
    dimension (−1 where an interval is empty), and the edges. ``around``: the number of levels where they are cyclic
    (`levels.CYCLE`), of codes shifted by ``left`` and ``right``; 0 where they are not.

    Edges: the first place that counts in the first cells, and the last one in the last, of the first dimension; then
    those of the second; 8 bits each, lowest first.
    """
    for i in range(len(low)):
        a, b, more = _span(levels[0, i], levels[1, i], low[i], high[i], around, left, right)
        c, d, other_more = _span(levels[2, i], levels[3, i], other_low[i], other_high[i], other_around, other_left,
                              other_right)
        some = (low[i] <= high[i]) & (other_low[i] <= other_high[i])
        out[i, 0] = (a >> 8) * stride
        out[i, 1] = c >> 8
        out[i, 2] = more if some else -1
        out[i, 3] = other_more
        out[i, 4] = (a & 255) | (b & 255) << 8 | (c & 255) << 16 | (d & 255) << 24


@compiled
def _span(a: Any, b: Any, low: Any, high: Any, around: Any, left: Any, right: Any) -> Any:
    """The levels from ``a`` to ``b`` of the codes ``low`` to ``high``, and how many cells come after the first."""
    more = (np.int64(b) >> 8) - (np.int64(a) >> 8)
    if around == 0:
        return np.int64(a), np.int64(b), more
    # All of them if any could come twice. One of the moves is by 0 bits.
    apart = (np.uint64(high) >> right) - (np.uint64(low) >> right)
    whole = apart >= np.uint64(around - 256) >> left
    last = (around >> 8) - 1
    return (np.int64(a) & ~255 if whole else np.int64(a), np.int64(b) | 255 if whole else np.int64(b),
            last if whole else more & last)
