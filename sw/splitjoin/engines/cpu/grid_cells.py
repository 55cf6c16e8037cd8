"""The loops of the index engine over a grid of cells, which hold tuples in arrival order and are compared 64 at once.

A grid has two dimensions, each with levels of its own (`levels`). In each dimension, the upper bits of a tuple's level
choose the cell; the cell stores the lower eight bits, the tuple's place within the cell, as a byte. A cell is a ring
buffer of slots, so that new tuples overwrite expired ones. Its slots form blocks of 64. The bytes of a block fill two
cache lines; each line holds the first dimension's bytes of 32 slots, and then the second dimension's. A comparison of
the bytes finds candidates, and the caller verifies them with the keys.

The vectors are LLVM's; where the processor has no registers of 512 bits, LLVM splits them. All functions compiled here
are in this file, as numba's cache does not see changes in other files.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types

from ..compiled.intrinsics import BLOCK, atomic_add, llvm_intrinsic, lowest_bit
from ..compiled.jit import compiled

__all__ = ["bound_levels", "build_grid", "count_ranges", "find_candidates", "insert", "note_cells", "prefetch",
           "scatter"]

#: Tuples of a grid that is built whose cells are noted at once.
_AT_ONCE = 4096
#: The distance of prefetches: how many tuples later the data is used.
_AHEAD = 8
#: Slots of a grid that is probably in the second-level cache, where prefetches only take time; unless other threads
#: have written them.
_NEAR = 1 << 17

_BYTE, _INT = ir.IntType(8), ir.IntType(32)
#: Slots whose bytes share a cache line, and bytes of one dimension in it.
_LINE = BLOCK // 2
_VECTOR = ir.VectorType(_BYTE, _LINE)
#: The type of indices: for signed ones, numba adds a test for negative values, which costs time.
_I = np.uint64


def _data(context: Any, builder: Any, signature: Any, array: Any) -> Any:
    return context.make_array(signature.args[0])(context, builder, array).data


def _splat(builder: Any, value: Any) -> Any:
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    one = builder.insert_element(undefined, builder.trunc(value, _BYTE), ir.Constant(_INT, 0))
    return builder.shuffle_vector(one, undefined, ir.Constant(ir.VectorType(_INT, _LINE), [0] * _LINE))


@llvm_intrinsic
def _block_mask(typing: Any, pool: Any, at: Any, low: Any, width: Any, other_low: Any, other_width: Any) -> Any:
    """A mask of 64 bits of the slots in the block at ``pool[at]``, bit 0 for the first. A bit is 1 if the slot's bytes
    are from ``low`` to ``low`` + ``width`` in the first dimension, and likewise in the other one.

    ``pool``: uint8, aligned to blocks. The others: int64; 0 ≤ low ≤ low + width ≤ 255.
    """
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data, word, halves = _data(context, builder, signature, args[0]), ir.IntType(BLOCK), []
        splats = [_splat(builder, arg) for arg in args[2:]]
        for half in range(2):
            bits = None
            for d in range(2):
                at = builder.add(args[1], ir.Constant(args[1].type, half * BLOCK + d * _LINE))
                pointer = builder.bitcast(builder.gep(data, [at]), _VECTOR.as_pointer())
                above_low = builder.sub(builder.load(pointer, align=_LINE), splats[2 * d])
                inside = builder.icmp_unsigned("<=", above_low, splats[2 * d + 1])
                bits = inside if bits is None else builder.and_(bits, inside)
            halves.append(builder.zext(builder.bitcast(bits, ir.IntType(_LINE)), word))
        return builder.or_(halves[0], builder.shl(halves[1], ir.Constant(word, _LINE)))

    return types.uint64(pool, *[types.int64] * 5), generate


@llvm_intrinsic
def _rotated_right(typing: Any, mask: Any, by: Any) -> Any:
    """``mask``, a uint64, rotated right by ``by`` modulo 64 bits: bit ``by`` becomes bit 0."""
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
def build_grid(levels: Any, stride: Any, head: Any, rows: Any, pool: Any, used: Any) -> Any:
    """Build a grid of stored tuples, whose ``levels`` are (2, n) as of `levels.Levels`, and which are numbered from 0.

    Returns False if the grid has too few slots; ``used`` (1,) is the number that it needs. ``stride``: cells in the
    second dimension. ``head`` (cells, 4) gets of each cell: its first slot, a multiple of 64; its capacity, 64 times a
    power of two; the position in it of the next tuple; and its occupancy.
    """
    head[:, :] = 0
    for n in range(levels.shape[1]):
        head[_cell(levels[0, n], levels[1, n], stride), 1] += 1
    slot = np.int64(0)
    for c in range(len(head)):
        capacity = np.int64(64)
        while capacity * 4 < np.int64(head[c, 1]) * 5:
            capacity *= 2
        head[c, 0] = slot
        head[c, 1] = capacity
        slot += capacity
    used[0] = slot
    if slot > len(rows):
        return False
    entries = np.empty(min(levels.shape[1], _AT_ONCE), np.int64)
    for begin in range(0, levels.shape[1], _AT_ONCE):
        n = min(_AT_ONCE, levels.shape[1] - begin)
        note_cells(levels, begin, n, 0, stride, entries)
        insert(entries, 0, n, n, begin, -1, False, head, rows, pool, used)
    return True


@compiled
def _cell(level: Any, other_level: Any, stride: Any) -> Any:
    return _I((np.int64(level) >> 8) * stride + (np.int64(other_level) >> 8))


@compiled
def note_cells(levels: Any, begin: Any, n: Any, row: Any, stride: Any, noted: Any) -> None:
    """Note where the ``n`` tuples belong that have ``levels`` (2 or more, begin + n or more) from ``begin`` on.

    ``noted`` gets an int64 of each, the first at ``row``: the cell, this row (20 bits), and two bytes.
    """
    of_first, of_second = levels[0], levels[1]
    for i in range(n):
        level, other_level = np.int64(of_first[_I(begin + i)]), np.int64(of_second[_I(begin + i)])
        c = (level >> 8) * stride + (other_level >> 8)
        noted[_I(row + i)] = c << 36 | (row + i) << 16 | (level & 255) << 8 | (other_level & 255)


@compiled
def count_ranges(noted: Any, row: Any, until: Any, scale: Any, spread: Any) -> None:
    """Count in ``spread`` (ranges,) how many tuples from ``row`` to ``until`` are ``noted`` in each range of cells.
    That of a cell is cell · ``scale`` >> 32.
    """
    spread[:] = 0
    for i in range(row, until):
        spread[_I((noted[_I(i)] >> 36) * scale >> 32)] += 1


@compiled
def scatter(noted: Any, row: Any, until: Any, scale: Any, places: Any, entries: Any) -> None:
    """Move what is ``noted`` of tuples ``row`` to ``until`` to ``places`` (ranges,) of their ranges, which move on."""
    for i in range(row, until):
        entry = noted[_I(i)]
        part = _I((entry >> 36) * scale >> 32)
        entries[_I(places[part])] = entry
        places[part] += 1


@compiled
def insert(entries: Any, n: Any, until: Any, end: Any, first: Any, live: Any, shared: Any, head: Any, rows: Any,
           pool: Any, used: Any) -> Any:
    """Store the tuples of ``entries``, as `note_cells` makes them, from number ``n`` on, which lie before ``until`` and
    are of rows before ``end``. Row 0 is tuple number ``first``. Threads may do so at the same time in different cells:
    ``shared`` says so.

    Drops expired tuples, those with numbers below ``live``, where it sees them. Returns where it stopped: at an entry
    of an earlier row than ``end`` if that found no free slot.
    """
    far = shared or len(rows) > _NEAR
    while n < until:
        entry = entries[_I(n)]
        row = entry >> 16 & 0xFFFFF
        if row >= end:
            break
        if far and n + _AHEAD < until:
            prefetch(head, (entries[_I(n + _AHEAD)] >> 36) * 4)
            next_cell = _I(entries[_I(n + _AHEAD // 2)] >> 36)
            next_slot = np.int64(head[next_cell, 0]) + np.int64(head[next_cell, 2])
            prefetch(rows, next_slot)
            prefetch(pool, next_slot * 2)
        c = _I(entry >> 36)
        base, capacity = np.int64(head[c, 0]), np.int64(head[c, 1])
        tail, occupancy = np.int64(head[c, 2]), np.int64(head[c, 3])
        # Occasionally, so that expired tuples are not compared for long, and always before a cell grows.
        if occupancy & 31 == 31 or occupancy == capacity:
            while occupancy > 0 and rows[_I(base + ((tail - occupancy) & (capacity - 1)))] < live:
                occupancy -= 1
        if occupancy == capacity:
            new = atomic_add(used, 0, 2 * capacity)
            if new + 2 * capacity > len(rows):
                head[c, 3] = occupancy
                break
            for j in range(occupancy):
                source, target = base + ((tail - occupancy + j) & (capacity - 1)), new + j
                source_byte, target_byte = source // 32 * 64 + source % 32, target // 32 * 64 + target % 32
                rows[_I(target)] = rows[_I(source)]
                pool[_I(target_byte)] = pool[_I(source_byte)]
                pool[_I(target_byte + 32)] = pool[_I(source_byte + 32)]
            base, tail, capacity = new, capacity, 2 * capacity
            head[c, 0] = base
            head[c, 1] = capacity
        slot = base + tail
        byte = (slot & ~31) * 2 + (slot & 31)
        rows[_I(slot)] = first + row
        pool[_I(byte)] = entry >> 8 & 255
        pool[_I(byte + 32)] = entry & 255
        head[c, 2] = (tail + 1) & (capacity - 1)
        head[c, 3] = occupancy + 1
        n += 1
    return n


@compiled
def find_candidates(levels: Any, p: Any, until: Any, shift: Any, shared: Any, stride: Any, head: Any, rows: Any,
                    pool: Any, found: Any, probe_of: Any) -> Any:
    """Find the candidates of probes ``p`` to ``until`` (excluded), as long as ``found`` has room for those of one more.
    ``shared``: True if threads share the grid.

    ``levels``: the levels between which the probes look (`bound_levels`), from probe ``shift`` on. ``found`` and
    ``probe_of`` receive the candidates' numbers and their probes. Returns the probe to continue with, the number of
    candidates, and the number of tuples that were compared.
    """
    n = compared = np.int64(0)  # n: candidates so far
    lows, highs, other_lows, other_highs = levels[0], levels[1], levels[2], levels[3]
    far = shared or len(rows) > _NEAR
    while p < until and len(found) - n > len(rows):
        if far and p + _AHEAD < until:
            at = _I(p - shift + _AHEAD)
            prefetch(head, np.int64(_cell(lows[at], other_lows[at], stride)) * 4)
            at = _I(p - shift + _AHEAD // 2)
            next_byte = np.int64(head[_cell(lows[at], other_lows[at], stride), 0]) * 2
            prefetch(pool, next_byte)
            prefetch(pool, next_byte + 64)
        at = _I(p - shift)
        first, last = np.int64(lows[at]), np.int64(highs[at])
        other_first, other_last = np.int64(other_lows[at]), np.int64(other_highs[at])
        line, column = (first >> 8) * stride, other_first >> 8
        more, other_more = (last >> 8) - (first >> 8), (other_last >> 8) - column
        if more | other_more == 0:  # most probes visit one cell
            c = _I(line + column)
            base, left = np.int64(head[c, 0]), np.int64(head[c, 3])
            if head[c, 1] == BLOCK and left > 0:
                compared += left
                mask = _block_mask(pool, base * 2, first & 255, last - first, other_first & 255,
                                   other_last - other_first)
                n = _append_of_block(mask, base, np.int64(head[c, 2]) - left, left, p, n, found, probe_of)
                p += 1
                continue
        for i in range(more + 1):
            # In a cell at the edge of the interval only some of the 256 places match.
            low = first & 255 if i == 0 else 0
            width = (last & 255 if i == more else 255) - low
            for j in range(other_more + 1):
                other_low = other_first & 255 if j == 0 else 0
                other_width = (other_last & 255 if j == other_more else 255) - other_low
                # Cyclic levels wrap around from the last to the first.
                at_column = column + j - (stride if column + j >= stride else 0)
                at_line = line + i * stride
                c = _I((at_line - len(head) if at_line >= len(head) else at_line) + at_column)
                base, capacity, left = np.int64(head[c, 0]), np.int64(head[c, 1]), np.int64(head[c, 3])
                oldest = (np.int64(head[c, 2]) - left) & (capacity - 1)
                compared += left
                if left == 0:
                    continue
                if capacity == BLOCK:
                    mask = _block_mask(pool, base * 2, low, width, other_low, other_width)
                    n = _append_of_block(mask, base, oldest, left, p, n, found, probe_of)
                    continue
                while left > 0:
                    skip = oldest & 63
                    part = min(64 - skip, left)
                    block = base + oldest - skip
                    mask = _block_mask(pool, block * 2, low, width, other_low, other_width) >> np.uint64(skip)
                    mask &= ~np.uint64(0) >> np.uint64(64 - part)
                    while mask:
                        found[_I(n)] = block + skip + lowest_bit(mask)
                        probe_of[_I(n)] = p
                        n += 1
                        mask &= mask - np.uint64(1)
                    oldest = (oldest + part) & (capacity - 1)
                    left -= part
        p += 1
    for k in range(n):  # only now, so that no probe waits for the memory of the previous one
        if far and k + _AHEAD < n:
            prefetch(rows, np.int64(found[_I(k + _AHEAD)]))
        found[_I(k)] = rows[_I(found[_I(k)])]
    return p, n, compared


@compiled
def _append_of_block(mask: Any, base: Any, oldest: Any, left: Any, p: Any, n: Any, found: Any, probe_of: Any) -> Any:
    """Append a cell's slots in ``mask`` to the ``n`` candidates, as those of probe ``p``, oldest first.

    The cell is the block at ``base``, with ``left`` tuples (1 or more) from slot ``oldest`` modulo 64 on. Returns the
    new number of candidates.
    """
    bits = _rotated_right(mask, oldest & 63) & (~np.uint64(0) >> np.uint64(64 - left))
    # Most blocks have one candidate or none, which takes no branch.
    found[_I(n)] = base + ((oldest + lowest_bit(bits)) & 63)
    probe_of[_I(n)] = p
    n += bits != 0
    bits &= bits - np.uint64(1)
    while bits:
        found[_I(n)] = base + ((oldest + lowest_bit(bits)) & 63)
        probe_of[_I(n)] = p
        n += 1
        bits &= bits - np.uint64(1)
    return n


@compiled
def bound_levels(lows: Any, highs: Any, low: Any, high: Any, cycle: Any, left: Any, right: Any) -> None:
    """Make the levels ``lows`` and ``highs`` of probes with the bounds ``low`` to ``high`` (n,) those to look between.

    Those of an empty interval get no cell at all: the cell of the last level is the one before the first. Of cyclic
    levels, that of ``high`` is counted on behind the last one. ``cycle``: the number of levels if they are cyclic
    (`levels.CYCLE`), of codes shifted by ``left`` and ``right``; else 0.
    """
    if cycle:
        last = np.int64((cycle >> 8) - 1)
        for i in range(len(low)):
            a, b = np.int64(lows[i]), np.int64(highs[i])
            # All cells, if the interval could reach any of them twice. One of both shifts is by 0 bits.
            apart = (np.uint64(high[i]) >> right) - (np.uint64(low[i]) >> right)
            whole = apart >= np.uint64(cycle - 256) >> left
            more = last if whole else ((b >> 8) - (a >> 8)) & last
            lows[i] = a & ~255 if whole else a
            highs[i] = ((a >> 8) + more) << 8 | (255 if whole else b & 255)
    for i in range(len(low)):
        highs[i] = highs[i] if low[i] <= high[i] else np.int32((lows[i] & ~255) - 1)
