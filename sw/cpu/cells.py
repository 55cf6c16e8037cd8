"""The index engine's loops: cells that hold tuples in arrival order, 64 of which are compared at once.

A grid has two dimensions of levels (`levels`). A level's upper bits are the tuple's place in the grid, its lower eight
bits the place within the cell, which the cell keeps as a byte: 64 slots make a block of 128 bytes, one dimension's
behind the other's. Bytes find candidates; whoever calls verifies them with the keys.

The vectors are LLVM's own: where the processor has no registers of 512 bits, LLVM splits them. Everything that is
compiled here stands in this file, as numba looks for changes nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]  # llvmlite is not typed
from numba.core import cgutils, types
from numba.extending import intrinsic

from .jit import compiled

__all__ = ["BLOCK", "DONE", "FULL", "GROW", "STATE", "lay_out", "prefetch", "search"]

#: Slots in a block.
BLOCK = 64
#: Why `search` came back: all is done, there is no room for candidates, or the grid is full.
DONE, FULL, GROW = 0, 1, 2
#: How long the state of `search` is.
STATE = 6
#: How many probes ahead memory is asked for.
_AHEAD = 8

_BYTE, _INT = ir.IntType(8), ir.IntType(32)
_VECTOR = ir.VectorType(_BYTE, BLOCK)


def _vector(function: Callable[..., Any]) -> Callable[..., Any]:
    """Numba's decorator; the function it makes is called with one argument less."""
    return cast(Callable[..., Any], intrinsic(function))


def _data(context: Any, builder: Any, signature: Any, array: Any) -> Any:
    return context.make_array(signature.args[0])(context, builder, array).data


def _splat(builder: Any, value: Any) -> Any:
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    one = builder.insert_element(undefined, builder.trunc(value, _BYTE), ir.Constant(_INT, 0))
    return builder.shuffle_vector(one, undefined, ir.Constant(ir.VectorType(_INT, BLOCK), [0] * BLOCK))


@_vector
def _near(typing: Any, pool: Any, at: Any, low: Any, width: Any, other_low: Any, other_width: Any) -> Any:
    """Which slots of the block at ``pool[at]`` lie within ``width`` above ``low`` in both dimensions: 64 bits, bit 0
    the first. ``pool``: uint8. The others: int64; 0 ≤ low ≤ low + width ≤ 255.
    """
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data, bits = _data(context, builder, signature, args[0]), None
        for d, (low, width) in enumerate((args[2:4], args[4:6])):
            pointer = builder.gep(data, [builder.add(args[1], ir.Constant(args[1].type, d * BLOCK))])
            keys = builder.load(builder.bitcast(pointer, _VECTOR.as_pointer()), align=1)
            met = builder.icmp_unsigned("<=", builder.sub(keys, _splat(builder, low)), _splat(builder, width))
            bits = met if bits is None else builder.and_(bits, met)
        return builder.bitcast(bits, ir.IntType(BLOCK))

    return types.uint64(pool, *[types.int64] * 5), generate


@_vector
def _lowest(typing: Any, mask: Any) -> Any:
    """The number of the lowest bit that is set in ``mask``, a uint64 that is not 0."""
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@_vector
def prefetch(typing: Any, array: Any, at: Any) -> Any:
    """Have the cache line of ``array[at]`` brought in."""
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
def lay_out(own: Any, stride: Any, first: Any, worker: Any, workers: Any, head: Any, rows: Any, pool: Any,
            used: Any) -> Any:
    """Lay out a grid for stored tuples of levels ``own`` (n, 2), the first at position ``first``; False if it needs
    more room, ``used`` (1,) slots.

    ``head`` (cells, 4): where each cell begins and its room, both multiples of 64, and how many tuples it holds.
    """
    head[:, :] = 0
    for n in range(len(own)):
        head[(np.int64(own[n, 0]) >> 8) * stride + (np.int64(own[n, 1]) >> 8), 1] += 1
    at = np.int64(0)
    for c in range(len(head)):
        room: Any = max((np.int64(head[c, 1]) * 5 // 4 + 63) // 64 * 64, 64)
        head[c, 0] = at
        head[c, 1] = room
        at += room
    used[0] = at
    if at > len(rows):
        return False
    _insert(own, 0, len(own), first, -1, stride, worker, workers, head, rows, pool, used)
    return True


@compiled
def _insert(own: Any, n: Any, until: Any, first: Any, dead: Any, stride: Any, worker: Any, workers: Any, head: Any,
            rows: Any, pool: Any, used: Any) -> Any:
    """Store tuples n to ``until``; returns the first for which there is no room. Rows below ``dead`` may be dropped."""
    while n < until:
        a, b = np.int64(own[n, 0]), np.int64(own[n, 1])
        c = (a >> 8) * stride + (b >> 8)
        at, room, held = np.int64(head[c, 0]), np.int64(head[c, 1]), np.int64(head[c, 2])
        if held == room:
            gone = np.int64(0)
            while gone < room and rows[at + gone] < dead:
                gone += 1
            new = at
            if 4 * gone < room:
                if used[0] + 2 * room > len(rows):
                    return n
                new = used[0]
                used[0] += 2 * room
                head[c, 0] = new
                head[c, 1] = 2 * room
            held = room - gone
            for j in range(held):
                slot, target = at + gone + j, new + j
                byte, to = slot // 64 * 128 + slot % 64, target // 64 * 128 + target % 64
                rows[target] = rows[slot]
                pool[to] = pool[byte]
                pool[to + 64] = pool[byte + 64]
            at = new
        slot = at + held
        byte = slot // 64 * 128 + slot % 64
        rows[slot] = (first + n) * workers + worker
        pool[byte] = a & 255
        pool[byte + 64] = b & 255
        head[c, 2] = held + 1
        n += 1
    return n


@compiled
def _look(looked: Any, until: Any, stride: Any, head: Any, rows: Any, pool: Any, count: Any, found: Any,
          state: Any) -> Any:
    """Find the candidates of probes up to ``until``; False if ``found`` has no room for those of the next one."""
    p, m = state[2], state[3]
    before, seen = m, np.int64(0)
    while p < until and len(found) - m >= len(rows):
        if p + _AHEAD < until:
            prefetch(head, ((np.int64(looked[p + _AHEAD, 0]) >> 8) * stride
                            + (np.int64(looked[p + _AHEAD, 2]) >> 8)) * 4)
            near = p + _AHEAD // 2
            soon = np.int64(head[(np.int64(looked[near, 0]) >> 8) * stride + (np.int64(looked[near, 2]) >> 8), 0]) * 2
            prefetch(pool, soon)
            prefetch(pool, soon + 64)
        start = m
        first, last = np.int64(looked[p, 0]), np.int64(looked[p, 1])
        other_first, other_last = np.int64(looked[p, 2]), np.int64(looked[p, 3])
        for i in range(first >> 8, (last >> 8) + 1):
            # Within a cell at the edge of the interval only some of the 256 places count.
            low = first & 255 if i == first >> 8 else 0
            width = (last & 255 if i == last >> 8 else 255) - low
            for j in range(other_first >> 8, (other_last >> 8) + 1):
                other_low = other_first & 255 if j == other_first >> 8 else 0
                other_width = (other_last & 255 if j == other_last >> 8 else 255) - other_low
                c = i * stride + j
                slot, held = np.int64(head[c, 0]), np.int64(head[c, 2])
                seen += held
                for q in range(0, held, 64):
                    mask: Any = _near(pool, (slot + q) * 2, low, width, other_low, other_width)
                    if held - q < 64:
                        mask &= (np.uint64(1) << np.uint64(held - q)) - np.uint64(1)
                    while mask:
                        found[m] = slot + q + _lowest(mask)
                        prefetch(rows, found[m])
                        m += 1
                        mask &= mask - np.uint64(1)
        count[p] = m - start
        p += 1
    for j in range(before, m):  # only now, so that none waited for the row of the one before
        found[j] = rows[found[j]]
    state[2], state[3] = p, m
    state[4] += seen
    return p >= until


@compiled
def search(bounds: Any, state: Any, worker: Any, workers: Any, first: Any, start: Any, own: Any, looked: Any,
           stride: Any, head: Any, rows: Any, pool: Any, used: Any, count: Any, found: Any) -> Any:
    """A region: store one stream's tuples of a batch, and find the candidates of the other stream's probes among what
    is stored, some arrivals at a time: these are stored first, then all look.

    ``bounds`` (parts, 2): tuples to store, and probes, up to the end of each part. ``state`` (6,): the part; tuples
    stored, probes done, candidates found; pairs looked at; the row below which all are dead. ``first``: the position of
    the first tuple to store. ``start`` (n,): the first row that each probe sees. ``own`` (m, 2), ``looked`` (n, 4):
    levels. Then the grid; and how many candidates each probe has, ``found`` one after the other. Returns why it came
    back; call it again when that is mended.
    """
    while state[0] < len(bounds):
        b = state[0]
        if state[2] < len(start):
            state[5] = start[state[2]]
        state[1] = _insert(own, state[1], bounds[b, 0], first, state[5], stride, worker, workers, head, rows, pool,
                           used)
        if state[1] < bounds[b, 0]:
            return GROW
        if not _look(looked, bounds[b, 1], stride, head, rows, pool, count, found, state):
            return FULL
        state[0] += 1
    return DONE
