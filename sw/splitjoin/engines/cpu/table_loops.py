"""Compiled loops over whole tables, by keys: partitions, pairs and groups (`table_loop` tells how they are compiled).

An empty array of group numbers stands for one group of all rows; −1 is a row without a group. `partitions` tells what
fine buckets, partitions and directories are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import table_match_loops, table_time_loops  # noqa: F401  # whose loops are among `LOOPS`
from .jit import compiled
from .table_loop import LOOPS, loop

__all__ = ["LOOPS"]

#: Tuples that are compared one by one before a directory is asked for the end of a range.
_STEPS = 8
#: Numbers up to which insertion sorts fastest.
_FEW = 24


@loop("iuwwwI")
def stored_counts(numbers: Any, keys: Any, least: Any, stride: Any, shift: Any, counts: Any) -> None:
    """Count in ``counts`` the tuples of each fine bucket."""
    for i in range(len(keys)):
        place = keys[i] - least
        if len(numbers):
            if numbers[i] < 0:
                continue
            place += np.uint64(numbers[i]) * stride
        counts[place >> shift] += 1


@loop("iuwwwinIUI")
def stored_scatter(numbers: Any, keys: Any, least: Any, stride: Any, shift: Any, parts: Any, first: Any, offsets: Any,
                   places: Any, rows: Any) -> None:
    """Write the tuples, whose rows begin at ``first``, into their partitions, from ``offsets`` on, which move."""
    for i in range(len(keys)):
        place = keys[i] - least
        if len(numbers):
            if numbers[i] < 0:
                continue
            place += np.uint64(numbers[i]) * stride
        part = parts[place >> shift]
        at = offsets[part]
        offsets[part] = at + 1
        places[at] = place
        rows[at] = first + i


@loop("iuuwwwwI")
def probe_counts(numbers: Any, low: Any, high: Any, least: Any, most: Any, stride: Any, shift: Any,
                 counts: Any) -> None:
    """Count in ``counts`` the probes of each fine bucket, which is that of the low end of their interval, or of the
    high end where the low one is below all keys.
    """
    for i in range(len(low)):
        if low[i] > high[i] or low[i] > most or high[i] < least:
            continue
        place = (low[i] if low[i] > least else min(high[i], most)) - least
        if len(numbers):
            if numbers[i] < 0:
                continue
            place += np.uint64(numbers[i]) * stride
        counts[place >> shift] += 1


@loop("iuuwwwwinIUUI")
def probe_scatter(numbers: Any, low: Any, high: Any, least: Any, most: Any, stride: Any, shift: Any, parts: Any,
                  first: Any, offsets: Any, lows: Any, highs: Any, rows: Any) -> None:
    """Write the probes, whose rows begin at ``first``, into their partitions, as `stored_scatter`."""
    for i in range(len(low)):
        if low[i] > high[i] or low[i] > most or high[i] < least:
            continue
        base = np.uint64(0)
        if len(numbers):
            if numbers[i] < 0:
                continue
            base = np.uint64(numbers[i]) * stride
        place, end = base + (max(low[i], least) - least), base + (min(high[i], most) - least)
        part = parts[(place if low[i] > least else end) >> shift]
        at = offsets[part]
        offsets[part] = at + 1
        lows[at] = place
        highs[at] = end
        rows[at] = first + i


@compiled
def _sort_places(places: Any, rows: Any, x: Any, y: Any, counts: Any) -> None:
    """Sort ``places`` (n,) in place, equal ones as they come, and ``rows`` with them: by bytes, from the lowest that
    differs (radix sort; Knuth, The Art of Computer Programming 3, section 5.2.5). ``x``, ``y`` (n,) are written over,
    and ``counts`` (2048,), which are 0 before.
    """
    n = len(places)
    differs, rises = np.uint64(0), True
    for i in range(1, n):
        differs |= places[i] ^ places[0]
        rises &= places[i] >= places[i - 1]
    if rises:
        return
    if n <= _FEW:
        for i in range(1, n):
            place, row, at = places[i], rows[i], i
            while at and places[at - 1] > place:
                places[at], rows[at] = places[at - 1], rows[at - 1]
                at -= 1
            places[at], rows[at] = place, row
        return
    swapped, a, b = False, places, rows
    for byte in range(8):
        shift, first = np.uint64(8 * byte), 256 * byte
        if not (differs >> shift) & np.uint64(255):
            continue
        for i in range(n):
            counts[first + np.int64((a[i] >> shift) & np.uint64(255))] += 1
        total = 0
        for i in range(first, first + 256):
            counts[i], total = total, total + counts[i]
        for i in range(n):
            digit = first + np.int64((a[i] >> shift) & np.uint64(255))
            at = counts[digit]
            counts[digit] = at + 1
            x[at] = a[i]
            y[at] = b[i]
        a, b, x, y, swapped = x, y, a, b, not swapped
    if swapped:
        for i in range(n):
            x[i] = a[i]
            y[i] = b[i]


@loop("UIUIIwwI")
def sort_partition(places: Any, rows: Any, places_room: Any, rows_room: Any, counts: Any, base: Any, shift: Any,
                   directory: Any) -> None:
    """Sort ``places`` and with them ``rows``, and write for each bucket of 2^``shift`` places from ``base`` on how many
    are below it. ``places_room`` and ``rows_room`` of the same size are written over, and ``counts`` (2048,), which
    are 0 before.
    """
    _sort_places(places, rows, places_room, rows_room, counts)
    bucket = 0
    for i in range(len(places)):
        of = np.int64((places[i] - base) >> shift)
        while bucket <= of:
            directory[bucket] = i
            bucket += 1
    while bucket < len(directory):
        directory[bucket] = len(places)
        bucket += 1


@compiled
def _found(place: Any, shift: Any, parts: Any, bases: Any, shifts: Any, starts: Any, begins: Any, directory: Any,
           places: Any) -> Any:
    """The position of the first of ``places`` that is not below ``place``."""
    part = parts[place >> shift]
    bucket = begins[part] + np.int64((place - bases[part]) >> shifts[part])
    low, high = starts[part] + directory[bucket], starts[part] + directory[bucket + 1]
    while low < high:
        middle = (low + high) >> 1
        if places[middle] < place:
            low = middle + 1
        else:
            high = middle
    return low


@loop("uuwwiuuiiiuII")
def probe_ranges(lows: Any, highs: Any, top: Any, shift: Any, parts: Any, bases: Any, shifts: Any, starts: Any,
                 begins: Any, directory: Any, places: Any, first: Any, behind: Any) -> Any:
    """The positions of ``places`` from each of ``lows`` to each of ``highs``; returns how many there are in all."""
    total = 0
    for i in range(len(lows)):
        start = _found(lows[i], shift, parts, bases, shifts, starts, begins, directory, places)
        high, end = highs[i], start
        while end < len(places) and places[end] <= high:
            end += 1
            if end == start + _STEPS:
                end = len(places) if high == top else _found(
                    high + np.uint64(1), shift, parts, bases, shifts, starts, begins, directory, places)
                break
        first[i], behind[i] = start, end
        total += end - start
    return total


@loop("iiiiII")
def expand(first: Any, behind: Any, rows: Any, order: Any, probe: Any, stored: Any) -> None:
    """All pairs of the probes ``rows`` with the positions of ``order`` from ``first`` to before ``behind``."""
    at = 0
    for i in range(len(rows)):
        for position in range(first[i], behind[i]):
            probe[at] = rows[i]
            stored[at] = order[position]
            at += 1


@loop("iiuuuB")
def within(r: Any, s: Any, keys: Any, low: Any, high: Any, met: Any) -> None:
    """Leave of the pairs that are ``met`` those whose stored key is from the probe's ``low`` to its ``high``."""
    for i in range(len(r)):
        key = keys[s[i]]
        met[i] &= np.uint8(low[r[i]] <= key) & np.uint8(key <= high[r[i]])


@loop("iiiiB")
def in_windows(r: Any, s: Any, start: Any, end: Any, met: Any) -> None:
    """The same of those whose row of S is from ``start`` to before ``end`` of the row of R."""
    for i in range(len(r)):
        met[i] &= np.uint8(start[r[i]] <= s[i]) & np.uint8(s[i] < end[r[i]])


@loop("bII")
def keep_met(met: Any, r: Any, s: Any) -> Any:
    """Move the pairs that are ``met`` to the beginning of ``r`` and ``s``; returns how many they are."""
    n = 0
    for i in range(len(met)):
        r[n], s[n] = r[i], s[i]
        n += met[i]
    return n


@loop("iiiuuuuuiiIII")
def expand_within(first: Any, behind: Any, rows: Any, low: Any, high: Any, keys: Any, least: Any, most: Any,
                  begins: Any, order: Any, state: Any, probe: Any, stored: Any) -> Any:
    """As `expand`, the pairs whose ``keys`` (n,), by position, are in the interval of the probe: ``low`` to ``high``
    (m,), by row. ``least``, ``most``: of each aligned run of 16, 64, 256, … keys, level after level, which begin at
    ``begins``. ``state`` (2,): the number of the next probe and its position, from which the next call goes on once
    ``probe`` is full. Returns how many pairs there are; without room, it counts them all.
    """
    room, n, at = len(probe), 0, state[1]
    for i in range(state[0], len(rows)):
        lowest, highest, end = low[rows[i]], high[rows[i]], behind[i]
        at = max(at, first[i])
        while at < end:
            level = -1
            while level + 1 < len(begins) and not at & ((16 << 2 * (level + 1)) - 1):
                level += 1
            while level >= 0:
                run = begins[level] + (at >> (4 + 2 * level))
                if least[run] > highest or most[run] < lowest:
                    break
                level -= 1
            if level >= 0:
                at += 16 << 2 * level
                continue
            stop = min(end, (at | 15) + 1)
            if room and n + stop - at > room:
                state[0], state[1] = i, at
                return n
            for position in range(at, stop):
                if lowest <= keys[position] and keys[position] <= highest:
                    if room:
                        probe[n] = rows[i]
                        stored[n] = order[position]
                    n += 1
            at = stop
        at = 0
    state[0] = len(rows)
    return n


@compiled
def _position(row: Any, of: Any, common: Any, is_s: Any) -> Any:
    """The position in arrival order of a row of a stream, whose positions are ``of``, if that is not empty; else the
    streams arrive by turns for ``common`` rows.
    """
    if len(of):
        return of[row]
    return 2 * row + is_s if row < common else row + common


@loop("iiiinnI")
def pack(r: Any, s: Any, of_r: Any, of_s: Any, common: Any, bits: Any, packed: Any) -> None:
    """For each pair the position of its later tuple, and in the low ``bits`` the row of the other."""
    for i in range(len(r)):
        at_r, at_s = _position(r[i], of_r, common, 0), _position(s[i], of_s, common, 1)
        packed[i] = at_r << bits | s[i] if at_r > at_s else at_s << bits | r[i]


@loop("inI")
def packed_counts(packed: Any, shift: Any, counts: Any) -> None:
    """Count in ``counts`` the pairs of each part of arrival order."""
    for i in range(len(packed)):
        counts[packed[i] >> shift] += 1


@loop("inII")
def packed_scatter(packed: Any, shift: Any, offsets: Any, ordered: Any) -> None:
    """Write the pairs into their parts of arrival order, from ``offsets`` on, which move."""
    for i in range(len(packed)):
        part = packed[i] >> shift
        at = offsets[part]
        offsets[part] = at + 1
        ordered[at] = packed[i]


@loop("inbinnIII")
def unpack(packed: Any, bits: Any, stream: Any, number: Any, common: Any, common_s: Any, r: Any, s: Any,
           at: Any) -> None:
    """The rows of each pair and the position of its later tuple, which is of ``stream`` and has a ``number`` there;
    without these, the streams arrive by turns for ``common`` rows, and then S's, if ``common_s``, or R's.
    """
    for i in range(len(packed)):
        position = packed[i] >> bits
        stored = packed[i] - (position << bits)
        if len(stream):
            is_s, row = stream[position] == 1, number[position]
        elif position < 2 * common:
            is_s, row = position & 1 == 1, position >> 1
        else:
            is_s, row = common_s == 1, position - common
        at[i] = position
        r[i] = stored if is_s else row
        s[i] = row if is_s else stored


@loop("uiU")
def extremes(keys: Any, numbers: Any, ends: Any) -> None:
    """Widen ``ends``, the least and the greatest key, by the ``keys`` whose number is not negative."""
    least, most = ends[0], ends[1]
    for i in range(len(keys)):
        if numbers[i] >= 0:
            least, most = min(least, keys[i]), max(most, keys[i])
    ends[0], ends[1] = least, most


@loop("uwwnI")
def add_dense(keys: Any, least: Any, most: Any, count: Any, numbers: Any) -> None:
    """Combine ``numbers`` with keys from ``least`` to ``most``, of which there may be ``count``; −1 for others."""
    for i in range(len(keys)):
        if numbers[i] >= 0:
            key = keys[i]
            numbers[i] = numbers[i] * count + np.int64(key - least) if least <= key and key <= most else -1


@compiled
def _slot(key: Any, known: Any, taken: Any) -> Any:
    """The slot of ``key`` in a hash table with open addressing (Knuth, volume 3, section 6.4, algorithm L): its own, or
    the free one where it belongs. Multiplied by 2^64 over the golden ratio, the key's high bits are mixed most.
    """
    mask = np.uint64(len(known) - 1)
    mixed = key * np.uint64(0x9E3779B97F4A7C15)
    at = (mixed ^ (mixed >> np.uint64(32))) & mask
    while taken[at] >= 0 and known[at] != key:
        at = (at + np.uint64(1)) & mask
    return at


@loop("uinUII")
def fill_table(keys: Any, numbers: Any, begin: Any, known: Any, taken: Any, count: Any) -> Any:
    """Enter the ``keys`` from row ``begin`` on whose number is not negative into a hash table: ``known`` gets the
    different ones, and ``taken``, −1 for a free slot, numbers for them, from 0. ``count`` (1,): how many there are.
    Returns the row before which the table became half full, or the number of keys.
    """
    for i in range(begin, len(keys)):
        if numbers[i] < 0:
            continue
        at = _slot(keys[i], known, taken)
        if taken[at] >= 0:
            continue
        if 2 * count[0] >= len(known):
            return i
        known[at], taken[at] = keys[i], count[0]
        count[0] += 1
    return len(keys)


@loop("uiUI")
def move_table(known: Any, taken: Any, new_known: Any, new_taken: Any) -> None:
    """Enter the keys of a hash table, with their numbers, into a new one, which is larger."""
    for k in range(len(known)):
        if taken[k] >= 0:
            at = _slot(known[k], new_known, new_taken)
            new_known[at], new_taken[at] = known[k], taken[k]


@loop("uuinI")
def add_hashed(keys: Any, known: Any, taken: Any, count: Any, numbers: Any) -> None:
    """Combine ``numbers`` with those of ``keys`` in a hash table of so many; −1 for keys that it does not have."""
    for i in range(len(keys)):
        if numbers[i] >= 0:
            number = taken[_slot(keys[i], known, taken)]
            numbers[i] = numbers[i] * count + number if number >= 0 else -1


@loop("iiiII")
def by_row(rows: Any, first: Any, behind: Any, starts: Any, ends: Any) -> None:
    """Write the ranges of the probes ``rows`` to their places."""
    for i in range(len(rows)):
        starts[rows[i]] = first[i]
        ends[rows[i]] = behind[i]


@loop("iiiI")
def least_rows(order: Any, first: Any, behind: Any, found: Any) -> None:
    """The least of ``order`` from each of ``first`` to before each of ``behind``; 0 where that is none."""
    for i in range(len(first)):
        least = order[first[i]] if first[i] < behind[i] else 0
        for position in range(first[i] + 1, behind[i]):
            least = min(least, order[position])
        found[i] = least
