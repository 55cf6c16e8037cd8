"""Compiled loops that turn values into keys and bounds; `splitjoin.engines.cpu.codes` calls them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiled.jit import compiled

__all__ = ["exact_band", "exact_bounds", "exact_keys", "exact_lanes", "float_keys32", "float_keys64", "float_lanes32",
           "float_lanes64", "ordered_bounds", "unit_lanes", "void_lanes", "wide_lanes"]


@compiled
def exact_keys(values: Any, valid: Any, offset: Any, keys: Any) -> None:
    """``keys[i] = values[i] + offset`` modulo the width of ``keys``, 0 where not valid. ``offset``: uint64."""
    for i in range(len(values)):
        keys[i] = np.uint64(values[i]) + offset if valid[i] else np.uint64(0)


@compiled
def float_keys32(values: Any, raw: Any, valid: Any, nan: Any, keys: Any) -> None:
    """Order-preserving codes of float32 ``values``, whose bits are ``raw``; NaN becomes ``nan``, 0 where not valid."""
    for i in range(len(values)):
        bits = raw[i] if values[i] != 0 else np.uint32(0)
        code = ~bits if bits & np.uint32(0x80000000) else bits | np.uint32(0x80000000)
        code = code if values[i] == values[i] else nan
        keys[i] = code if valid[i] else np.uint32(0)


@compiled
def float_keys64(values: Any, raw: Any, valid: Any, nan: Any, keys: Any) -> None:
    """Order-preserving codes of float64 ``values``; see `float_keys32`."""
    top = np.uint64(0x8000000000000000)
    for i in range(len(values)):
        bits = raw[i] if values[i] != 0 else np.uint64(0)
        code = ~bits if bits & top else bits | top
        code = code if values[i] == values[i] else nan
        keys[i] = code if valid[i] else np.uint64(0)


@compiled
def exact_bounds(values: Any, valid: Any, mine: Any, theirs: Any, c: Any, op: Any, low: Any, high: Any, offset: Any,
                 lows: Any, highs: Any) -> None:
    """Narrow ``lows`` and ``highs`` to the codes of keys K with ``mine · value + theirs · K + c op 0``.

    ``op``: −1 for ≤, 0 for =, 1 for ≥. K lies between ``low`` and ``high``, its code is K + ``offset`` modulo 2**64.
    The caller ensures that no step overflows int64. Where not valid, the interval becomes empty.
    """
    if theirs < 0:
        mine, theirs, c, op = -mine, -theirs, -c, -op
    if theirs != 1:
        for i in range(len(values)):
            target = -(mine * np.int64(values[i]) + c)
            a = max(low, -((-target) // theirs)) if op >= 0 else low
            b = min(high, target // theirs) if op <= 0 else high
            some = valid[i] and a <= b
            lows[i] = max(lows[i], np.uint64(a) + offset) if some else ~np.uint64(0)
            highs[i] = min(highs[i], np.uint64(b) + offset) if some else np.uint64(0)
        return
    # Without division and with one bound at a time these become vector code.
    if op >= 0:
        for i in range(len(values)):
            target = -(mine * np.int64(values[i]) + c)
            some = valid[i] & (target <= high)
            code = np.uint64(max(low, target)) + offset
            lows[i] = max(lows[i], code) if some else ~np.uint64(0)
            highs[i] = highs[i] if some else np.uint64(0)
    if op <= 0:
        for i in range(len(values)):
            target = -(mine * np.int64(values[i]) + c)
            some = valid[i] & (target >= low)
            code = np.uint64(min(high, target)) + offset
            highs[i] = min(highs[i], code) if some else np.uint64(0)
            lows[i] = lows[i] if some else ~np.uint64(0)


@compiled
def exact_band(values: Any, valid: Any, mine: Any, c_low: Any, c_high: Any, low: Any, high: Any, offset: Any,
               lows: Any, highs: Any) -> None:
    """Narrow ``lows`` and ``highs`` to the codes of keys K with ``-mine · value - c_low ≤ K ≤ -mine · value - c_high``.

    The rest as for `exact_bounds`.
    """
    for i in range(len(values)):
        moved = mine * np.int64(values[i])
        a, b = -(moved + c_low), -(moved + c_high)
        some = valid[i] & (a <= high) & (b >= low)
        code, other = np.uint64(max(low, a)) + offset, np.uint64(min(high, b)) + offset
        lows[i] = max(lows[i], code) if some else ~np.uint64(0)
        highs[i] = min(highs[i], other) if some else np.uint64(0)


@compiled
def exact_lanes(values: Any, own_offset: Any, mine: Any, c_low: Any, c_high: Any, low: Any, high: Any, offset: Any,
                null: Any, keys: Any, lows: Any, highs: Any) -> None:
    """Write the ``keys`` of ``values`` (n,), integers without NULL, as `exact_keys` with ``own_offset`` does, and the
    bounds that `exact_band` leaves of those from ``null``, a uint64, on.
    """
    for i in range(len(values)):
        keys[i] = np.uint64(np.int64(values[i])) + own_offset
        moved = mine * np.int64(values[i])
        a, b = -(moved + c_low), -(moved + c_high)
        some = (a <= high) & (b >= low)
        lows[i] = max(np.uint64(max(low, a)) + offset, null) if some else ~np.uint64(0)
        highs[i] = np.uint64(min(high, b)) + offset if some else np.uint64(0)


@compiled
def wide_lanes(values: Any, own_offset: Any, flip: Any, ends: Any, less_low: Any, less_high: Any, low: Any, high: Any,
               offset: Any, null: Any, keys: Any, lows: Any, highs: Any) -> None:
    """As `exact_lanes`, for values and keys of any 64 bits: the keys K with ``v - less_low ≤ K ≤ v - less_high``, where
    v is the value, or with ``flip`` = −1 its complement. ``ends``: 1 if K has the lower bound alone, 2 the upper one, 3
    both.
    """
    has_low, has_high = (ends & 1) != 0, (ends & 2) != 0
    for i in range(len(values)):
        keys[i] = np.uint64(np.int64(values[i])) + own_offset
        v = np.int64(values[i]) ^ flip
        # Unsigned, as LLVM takes it for granted that others do not wrap.
        a, b = np.int64(np.uint64(v) - np.uint64(less_low)), np.int64(np.uint64(v) - np.uint64(less_high))
        # A difference beyond 64 bits has wrapped: it is not on its side of v. Then it is beyond all keys.
        low_wraps, high_wraps = (a < v) != (less_low > 0), (b < v) != (less_high > 0)
        some = (not (low_wraps and less_low < 0)) & (not (high_wraps and less_high > 0))
        a = low if low_wraps or not has_low else a
        b = high if high_wraps or not has_high else b
        some = some & (a <= high) & (b >= low)
        lows[i] = max(np.uint64(max(low, a)) + offset, null) if some else ~np.uint64(0)
        highs[i] = np.uint64(min(high, b)) + offset if some else np.uint64(0)


@compiled
def float_lanes32(values: Any, nan: Any, op: Any, low: Any, high: Any, null: Any, keys: Any, lows: Any,
                  highs: Any) -> None:
    """Write the ``keys`` of ``values`` (n,), float32 without NULL, as `float_keys32` does, and the bounds that
    `ordered_bounds` leaves of those from ``null`` on.
    """
    for i in range(len(values)):
        bits = np.float32(values[i] + np.float32(0)).view(np.uint32)
        code = np.uint64(~bits if bits & np.uint32(0x80000000) else bits | np.uint32(0x80000000))
        code = code if values[i] == values[i] else nan
        keys[i] = code
        a = code + np.uint64(op == 2) if op >= 0 else low
        b = code - np.uint64(op == -2) if op <= 0 else high
        some = (a <= b) & ((op != 2) | (code < high))
        lows[i] = max(a, null) if some else ~np.uint64(0)
        highs[i] = min(b, high) if some else np.uint64(0)


@compiled
def float_lanes64(values: Any, nan: Any, op: Any, low: Any, high: Any, null: Any, keys: Any, lows: Any,
                  highs: Any) -> None:
    """As `float_lanes32`, of float64."""
    top = np.uint64(0x8000000000000000)
    for i in range(len(values)):
        bits = np.float64(values[i] + np.float64(0)).view(np.uint64)
        code = ~bits if bits & top else bits | top
        code = code if values[i] == values[i] else nan
        keys[i] = code
        a = code + np.uint64(op == 2) if op >= 0 else low
        b = code - np.uint64(op == -2) if op <= 0 else high
        some = (a <= b) & ((op != 2) | (code < high))
        lows[i] = max(a, null) if some else ~np.uint64(0)
        highs[i] = min(b, high) if some else np.uint64(0)


@compiled
def unit_lanes(values: Any, keys: Any, lows: Any, highs: Any) -> None:
    """Write the ``keys`` and the bounds of the test that is always true, for so many tuples as there are ``values``."""
    for i in range(len(values)):
        keys[i] = lows[i] = highs[i] = 1


@compiled
def void_lanes(begin: Any, end: Any, bits: Any, offset: Any, keys: Any, lows: Any, highs: Any) -> None:
    """Write what NULL has to ``keys``, ``lows`` and ``highs``, of tuples ``begin`` to ``end``: code 0, and no interval.
    A tuple is NULL where its bit of ``bits`` is 0, the first of which is number ``offset``.
    """
    for i in range(begin, end):
        at = offset + i
        if not (bits[at >> 3] >> (at & 7)) & 1:
            keys[i], lows[i], highs[i] = np.uint64(0), ~np.uint64(0), np.uint64(0)


@compiled
def ordered_bounds(codes: Any, valid: Any, op: Any, low: Any, high: Any, lows: Any, highs: Any) -> None:
    """Narrow ``lows`` and ``highs`` to the keys with ``key op code``, between ``low`` and ``high``.

    ``op``: −2 for <, −1 for ≤, 0 for =, 1 for ≥, 2 for >.
    """
    for i in range(len(codes)):
        a, b, code = low, high, np.uint64(codes[i])
        if op >= 0:
            a = code + np.uint64(op == 2)
        if op <= 0:
            b = code - np.uint64(op == -2)
        if valid[i] and a <= b and not (op == 2 and code >= high):
            lows[i] = max(lows[i], a)
            highs[i] = min(highs[i], b)
        else:
            lows[i] = ~np.uint64(0)
            highs[i] = 0
