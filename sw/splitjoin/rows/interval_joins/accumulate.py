"""Folding of sliding windows: what engines add, remove and read for each key, as machine code.

An engine only decides which rows come and go. It writes that down as operations, and `fold` carries them out on the
state of its worker. What has an inverse is added and subtracted (exactly: sums are whole numbers); the least and
greatest keep two stacks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from splitjoin.engines.compiled.jit import compiled

#: An operation is ``row << 2 | code``: add or remove an S row, empty the slot, or emit the values for base ``row``.
ADD, REMOVE, EMIT, RESET = 0, 1, 2, 3
#: Kinds of primitives.
COUNT, INT_SUM, FLOAT_SUM, LEAST, GREATEST, DISTINCT = 0, 1, 2, 3, 4, 5
#: Numbers that a primitive has for a base tuple: the number of values, and two more by kind.
OUTPUTS = 3

_LOW = np.int64(0xFFFF_FFFF)


class Primitives(NamedTuple):
    """The primitives that are folded: of each its kind, the feed of its values, and its number among the states of its
    kind. ``stacked``: whether there are stacks; ``linked``: whether the rows of a slot are linked.
    """

    kinds: Any
    feeds: Any
    at: Any
    stacked: bool
    linked: bool


class SlotStates(NamedTuple):
    """What is folded for each slot: (slots,), (primitives, slots), or (primitives of a kind, slots, …).

    ``count`` rows from ``head`` to ``tail`` by ``link``, of which the first ``front`` are the front stack, with
    ``suffix``; ``back`` is the best of the others. ``counts``: valid values of each primitive. A sum of whole numbers
    is ``low + high · 2^32``, a float sum ``digits`` of weight 2^32, the first of 2^(32·base), and ``special`` the
    numbers of NaNs and infinities. ``link`` and ``suffix`` have a place for each row.
    """

    count: Any
    head: Any
    tail: Any
    front: Any
    counts: Any
    low: Any
    high: Any
    back: Any
    digits: Any
    base: Any
    special: Any
    link: Any
    suffix: Any


class Different(NamedTuple):
    """Hash tables of the different values of each slot, with their counts: (distinct counts, size)."""

    slots: Any
    values: Any
    counts: Any


_MANTISSA = np.int64((1 << 52) - 1)


@compiled
def _sum_bits(digits: Any, base: Any, scratch: Any) -> Any:
    """The bits of the float64 nearest to Σ digits[i] · 2^(32·(base + i)) · 2^−1074, ties to even."""
    n = len(digits)
    sign = np.int64(0)
    for attempt in range(2):
        carry = np.int64(0)
        for i in range(n):
            t = (-digits[i] if attempt else digits[i]) + carry
            scratch[i] = t & _LOW
            carry = t >> np.int64(32)
        scratch[n] = carry
        if carry >= 0:
            break
        sign = np.int64(1)
    top = n
    while top >= 0 and scratch[top] == 0:
        top -= 1
    if top < 0:
        return np.int64(0)
    width = np.int64(0)
    while width < 32 and scratch[top] >> width:
        width += 1
    # The highest bit's place, in units of 2^−1074, and the 64 bits from it on.
    place = 32 * (top + base) + width - 1
    first = np.uint64(scratch[top]) << np.uint64(64 - width)
    second = np.uint64(scratch[top - 1]) if top >= 1 else np.uint64(0)
    third = np.uint64(scratch[top - 2]) if top >= 2 else np.uint64(0)
    window = first | (second << np.uint64(32 - width))
    window |= third >> np.uint64(width)
    if place <= 52:  # fits 53 bits: the bits of a small float64 are the number itself
        bits = np.int64(window >> np.uint64(63 - place))
        return bits | (sign << np.int64(63))
    rest = third & ((np.uint64(1) << np.uint64(width)) - np.uint64(1))
    i = top - 3
    while rest == 0 and i >= 0:
        rest = np.uint64(scratch[i])
        i -= 1
    mantissa = np.int64(window >> np.uint64(11))
    below = np.int64(window & np.uint64(0x7FF))
    if below > 0x400 or (below == 0x400 and (rest != 0 or mantissa & 1)):
        mantissa += 1
    bits = (np.int64(place - 52) << np.int64(52)) + mantissa  # one too many in the exponent is the hidden bit
    if bits >= np.int64(0x7FF0_0000_0000_0000):
        bits = np.int64(0x7FF0_0000_0000_0000)
    return bits | (sign << np.int64(63))


@compiled
def _add_float(bits: Any, sign: Any, digits: Any, base: Any, special: Any) -> None:
    """Add ``sign`` times the float64 with these bits to fixed-point ``digits``, the first of weight 2^(32·base)."""
    exponent = (bits >> np.int64(52)) & np.int64(0x7FF)
    mantissa = bits & _MANTISSA
    if exponent == 0x7FF:
        special[0 if mantissa else 1 if bits >= 0 else 2] += sign
        return
    if exponent:
        mantissa |= np.int64(1) << np.int64(52)
    else:
        exponent = np.int64(1)
    if bits < 0:
        sign = -sign
    place = exponent - np.int64(1)
    at = (place >> np.int64(5)) - base
    shift = place & np.int64(31)
    rest = mantissa >> (np.int64(32) - shift)
    digits[at] += sign * ((mantissa << shift) & _LOW)
    digits[at + 1] += sign * (rest & _LOW)
    digits[at + 2] += sign * (rest >> np.int64(32))


@compiled
def _count_value(slot: Any, value: Any, change: Any, slots: Any, values: Any, counts: Any) -> Any:
    """Change the count of ``value`` in ``slot`` by 1 or −1; 1 if it is new, −1 if it is gone, else 0."""
    mask = len(counts) - 1
    at = ((value ^ (slot * np.int64(-3750763034362895579))) * np.int64(-7046029254386353131) >> np.int64(20)) & mask
    while counts[at] and (slots[at] != slot or values[at] != value):
        at = (at + 1) & mask
    if change > 0:
        slots[at], values[at] = slot, value
        counts[at] += 1
        return 1 if counts[at] == 1 else 0
    counts[at] -= 1
    if counts[at]:
        return 0
    hole = at  # what follows moves up, as a search ends at the first empty place
    at = (at + 1) & mask
    while counts[at]:
        home = ((values[at] ^ (slots[at] * np.int64(-3750763034362895579))) * np.int64(-7046029254386353131)
                >> np.int64(20)) & mask
        if (at - home) & mask >= (at - hole) & mask:
            slots[hole], values[hole], counts[hole] = slots[at], values[at], counts[at]
            counts[at] = 0
            hole = at
        at = (at + 1) & mask
    return -1


@compiled
def _flip(kinds: Any, feeds: Any, at: Any, values: Any, valid: Any, mask: Any, head: Any, count: Any, link: Any,
          suffix: Any) -> None:
    """Make all ``count`` rows of a slot the front stack: ``suffix`` gets the best of each row and those behind it."""
    rows = np.empty(count, np.int64)
    row = head
    for i in range(count):
        rows[i] = row
        row = link[row & mask]
    for p in range(len(kinds)):
        if kinds[p] == LEAST or kinds[p] == GREATEST:
            feed, best = feeds[p], np.int64(-1)
            for i in range(count - 1, -1, -1):
                place = rows[i] & mask
                if valid[feed, place]:
                    if best < 0:
                        best = rows[i]
                    else:
                        ours, theirs = values[feed, place], values[feed, best & mask]
                        # Of equal ones the first in arrival order.
                        if ours <= theirs if kinds[p] == LEAST else ours >= theirs:
                            best = rows[i]
                suffix[at[p], place] = best


@compiled
def fold(ops: Any, slots: Any, n: Any, primitives: Any, values: Any, valid: Any, mask: Any, states: Any,
         different: Any, out: Any) -> None:
    """Carry out ``n`` operations on rows with these ``values``, where ``valid``: row i is at place ``i & mask``. The
    folded values go to ``out``, the values, counts and ends of `FoldedBases`.
    """
    kinds, feeds, at, stacked, linked = primitives
    count, head, tail, front, counts, low, high, back, digits, base, special, link, suffix = states
    out_values, out_count, out_ends = out
    scratch = np.empty(digits.shape[2] + 1, np.int64)
    for i in range(n):
        op, slot = ops[i], slots[i]
        code, row = op & 3, op >> np.int64(2)
        if code == ADD:
            place = row & mask
            if linked:
                if count[slot]:
                    link[tail[slot] & mask] = row
                else:
                    head[slot] = row
                tail[slot] = row
            count[slot] += 1
            for p in range(len(kinds)):
                feed, kind = feeds[p], kinds[p]
                if not valid[feed, place]:
                    continue
                counts[p, slot] += 1
                value = values[feed, place]
                if kind == INT_SUM:
                    low[at[p], slot] += value & _LOW
                    high[at[p], slot] += value >> np.int64(32)
                elif kind == FLOAT_SUM:
                    _add_float(value, np.int64(1), digits[at[p], slot], base, special[at[p], slot])
                elif kind == DISTINCT:
                    low[at[p], slot] += _count_value(slot, value, 1, different.slots[at[p]], different.values[at[p]],
                                                     different.counts[at[p]])
                elif kind != COUNT:
                    best = back[at[p], slot]
                    if best < 0 or (value < values[feed, best & mask] if kind == LEAST else
                                    value > values[feed, best & mask]):
                        back[at[p], slot] = row
        elif code == REMOVE:
            place = row & mask
            if stacked:
                if front[slot] == 0:
                    _flip(kinds, feeds, at, values, valid, mask, head[slot], count[slot], link, suffix)
                    front[slot] = count[slot]
                    for p in range(len(kinds)):
                        if kinds[p] == LEAST or kinds[p] == GREATEST:
                            back[at[p], slot] = -1
                front[slot] -= 1
            count[slot] -= 1
            if linked:
                head[slot] = link[place]
            for p in range(len(kinds)):
                feed, kind = feeds[p], kinds[p]
                if not valid[feed, place]:
                    continue
                counts[p, slot] -= 1
                value = values[feed, place]
                if kind == INT_SUM:
                    low[at[p], slot] -= value & _LOW
                    high[at[p], slot] -= value >> np.int64(32)
                elif kind == FLOAT_SUM:
                    _add_float(value, np.int64(-1), digits[at[p], slot], base, special[at[p], slot])
                elif kind == DISTINCT:
                    low[at[p], slot] += _count_value(slot, value, -1, different.slots[at[p]], different.values[at[p]],
                                                     different.counts[at[p]])
        elif code == EMIT:
            if slot < 0:
                out_count[row] = 0
                for p in range(len(kinds)):
                    out_values[p, 0, row] = 0
                continue
            out_count[row] = count[slot]
            if linked and count[slot]:
                out_ends[0, row], out_ends[1, row] = head[slot], tail[slot]
            for p in range(len(kinds)):
                feed, kind = feeds[p], kinds[p]
                out_values[p, 0, row] = counts[p, slot]
                if kind == INT_SUM:
                    out_values[p, 1, row], out_values[p, 2, row] = low[at[p], slot], high[at[p], slot]
                elif kind == FLOAT_SUM:
                    s = special[at[p], slot]
                    if s[0] or (s[1] and s[2]):
                        out_values[p, 1, row] = np.int64(0x7FF8_0000_0000_0000)
                    elif s[1]:
                        out_values[p, 1, row] = np.int64(0x7FF0_0000_0000_0000)
                    elif s[2]:
                        out_values[p, 1, row] = np.int64(-0x10_0000_0000_0000)
                    else:
                        out_values[p, 1, row] = _sum_bits(digits[at[p], slot], base, scratch)
                elif kind == DISTINCT:
                    out_values[p, 1, row] = low[at[p], slot]
                elif kind != COUNT:
                    ahead = suffix[at[p], head[slot] & mask] if front[slot] else np.int64(-1)
                    behind = back[at[p], slot]
                    if ahead < 0 or (behind >= 0 and (
                            values[feed, behind & mask] < values[feed, ahead & mask] if kind == LEAST else
                            values[feed, behind & mask] > values[feed, ahead & mask])):
                        ahead = behind
                    out_values[p, 1, row] = ahead
        else:
            row = head[slot] if linked else np.int64(-1)
            for p in range(len(kinds)):
                counts[p, slot] = 0
                if kinds[p] == INT_SUM:
                    low[at[p], slot] = 0
                    high[at[p], slot] = 0
                elif kinds[p] == FLOAT_SUM:
                    digits[at[p], slot, :] = 0
                    special[at[p], slot, :] = 0
                elif kinds[p] == DISTINCT:
                    low[at[p], slot] = 0
                    place = row
                    for _ in range(count[slot]):
                        if valid[feeds[p], place & mask]:
                            _count_value(slot, values[feeds[p], place & mask], -1, different.slots[at[p]],
                                         different.values[at[p]], different.counts[at[p]])
                        place = link[place & mask]
                elif kinds[p] != COUNT:
                    back[at[p], slot] = -1
            count[slot] = 0
            front[slot] = 0
