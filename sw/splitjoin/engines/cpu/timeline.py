"""The window of each probe, as an interval of the other stream's row ids (semantics, section 2)."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES
from splitjoin.lang.windows import Extent

from ..arrival import Arrivals
from ..compiled.helpers import Team
from ..compiled.jit import compiled
from ..compiled.store import ReusedArrays, Store
from ..tuning import DEFAULTS
from .block import Block, Field, Job, entry_of

__all__ = ["CHUNK", "Arriving", "Timeline", "Windows", "count_part", "divide_part", "entries", "extent", "narrow_part",
           "ones", "place_part"]

Rows = npt.NDArray[np.int64]
#: Per stream its probes' windows: first row id of the other stream, and the one behind the last.
Windows = dict[str, tuple[Rows, Rows]]

#: Arrivals of a part, if several threads share a batch.
CHUNK = 2048
_UNLIMITED = 2**62


@dataclass(frozen=True)
class Arriving:
    """A batch of arrivals, as far as jobs tell that run with the others of the batch.

    Attributes:
        windows: Those of their probes.
        before: Behind the first entry, how many tuples of S are in each part of the arrivals; all but the last part
            are as long as the first.
        extents: Per part the pairs in its windows and the tuples of the longest one, one behind the other.
        phases: The jobs that write these arrays, in phases that follow each other.
    """

    windows: Windows
    before: Rows
    extents: Rows
    phases: list[list[Job]]


class Timeline:
    """Counter of both streams' tuples, and the event times that RANGE windows need."""

    def __init__(self, query: Query, slack: int = DEFAULTS.slack):
        self._extents = {side: query.window(side) for side in ("r", "s")}
        #: Event times of what RANGE windows may hold.
        self.times = {side: Store(slack) for side in ("r", "s")}
        self.moving = np.zeros(2, np.int64)  # where R's and S's windows begin, for the last probe that looked
        #: Rows of the windows of R and of S.
        self.limits = np.array([_limit(extent) for extent in self._extents.values()])
        self._ranged = [side for side, extent in self._extents.items() if extent.length is not None]
        self._block, self._reused = self.new_block(), ReusedArrays()
        self.ends = {"r": 0, "s": 0}

    def new_block(self) -> Block:
        """A block of the entries, which knows the session's windows."""
        block = Block(_FIELDS)
        block.put("starts", self.moving)
        for number, (side, extent) in enumerate(self._extents.items()):
            block.put(f"limit_{side}", int(self.limits[number]))
            length = 2**64 - 1 if extent.length is None else min(extent.length, 2**64 - 1)
            block.put(f"length_{side}", length - 2**64 if length >= 2**63 else length)
        return block

    @property
    def starts(self) -> dict[str, int]:
        """Per stream the first row that a future probe may still see."""
        found = {}
        for n, side in enumerate(("r", "s")):
            rows = self._extents[side].rows
            found[side] = max(int(self.moving[n]), 0 if rows is None else self.ends[side] - rows)
        return found

    def next(self, arrivals: Arrivals, stream: npt.NDArray[np.uint8], team: Team) -> Arriving:
        """What is known of the next arrivals, of ``stream`` (n,), which are counted."""
        n, lengths, put, array = len(stream), {side: len(arrivals.table(side)) for side in SIDES}, self._block.put, (
            self._reused.array)
        parts = -(-n // CHUNK) if team.size > 1 else 1
        before, extents = array("before", parts + 1, np.int64), array("extents", 2 * parts, np.int64)
        before[-1] = lengths["s"]
        windows: Windows = {side: (array(f"first_{side}", k, np.int64), array(f"last_{side}", k, np.int64))
                   for side, k in lengths.items()}
        for name, value in (("stream", stream), ("size", -(-n // parts) if n else 1), ("before", before),
                            ("extents", extents)):
            put(name, value)
        for number, side in enumerate(SIDES):
            put(f"begin_{side}", int(self.moving[number]))
            put(f"row_{side}", self.ends[side])
            put(f"first_{side}", windows[side][0])
            put(f"last_{side}", windows[side][1])
            self.ends[side] += lengths[side]
            self.moving[number] = max(int(self.moving[number]), self.ends[side] - int(self.limits[number]))
        phases = [[Job(_count_entry(), self._block, parts)]] if parts > 1 else [[]]
        phases.append([Job(_place_entry(), self._block, parts)])
        if self._ranged and n:
            assert arrivals.ts is not None
            put("ts", arrivals.ts)
            for side in SIDES:
                times, k = self.times[side], lengths[side]
                put(f"now_{side}", times.added([np.int64], k)[0] if side in self._ranged else array(
                    f"now_{side}", k, np.int64))
                put(f"times_{side}", times.room[0] if side in self._ranged else self.moving)
                put(f"base_{side}", times.base)
            phases[1].append(Job(_divide_entry(), self._block, parts))
            phases.append([Job(_narrow_entry(), self._block, parts)])
        return Arriving(windows, before, extents, phases)

    def trim(self) -> None:
        """Drop the event times that no future probe needs."""
        if not any(times.end for times in self.times.values()):
            return
        starts = self.starts
        for side, times in self.times.items():
            if times.end:
                times.trim(min(starts[side], times.end))


def _limit(extent: Extent) -> int:
    return _UNLIMITED if extent.rows is None else min(extent.rows, _UNLIMITED)


def extent(windows: Windows) -> tuple[int, int]:
    """The number of pairs of probes and stored tuples in ``windows``, and the tuples of the longest window."""
    return cast(tuple[int, int], _extent(*windows["r"], *windows["s"]))


@compiled
def _extent(start_r: Any, end_r: Any, start_s: Any, end_s: Any) -> Any:
    pairs_r, longest_r = _extent_of(start_r, end_r)
    pairs_s, longest_s = _extent_of(start_s, end_s)
    return pairs_r + pairs_s, max(longest_r, longest_s)


@compiled
def _extent_of(start: Any, end: Any) -> Any:
    pairs = longest = np.int64(0)
    for i in range(len(start)):
        pairs += end[i] - start[i]
        longest = max(longest, end[i] - start[i])
    return pairs, longest


@compiled
def count_part(part: Any, stream: Any, size: Any, before: Any) -> None:
    """Count the tuples of S in ``part`` of the arrivals ``stream``, of ``size`` each, in ``before[part + 1]``."""
    before[part + 1] = ones(stream[part * size:(part + 1) * size])


@compiled
def ones(stream: Any) -> Any:
    """The number of tuples of S among the arrivals ``stream``."""
    found = np.int32(0)
    for of in stream:  # over a slice and in 32 bits, so that it becomes vector code
        found = np.int32(found + np.int32(of))
    return np.int64(found)


@compiled
def place_part(part: Any, stream: Any, size: Any, before: Any, begin_r: Any, begin_s: Any, row_r: Any, row_s: Any,
               limit_r: Any, limit_s: Any, first_r: Any, last_r: Any, first_s: Any, last_s: Any,
               extents: Any) -> None:
    """Write the windows of the probes of ``part`` of the arrivals ``stream``, of ``size`` each: the last ``limit_s``
    and ``limit_r`` rows of the other stream, from row ``begin_s`` and ``begin_r`` on, whose next rows are ``row_s`` and
    ``row_r`` at first. ``extents`` gets their pairs, and the tuples of the longest one.

    ``before``: how many tuples of S are in each part before. Without branches on the stream, as arrivals may come in
    any order.
    """
    at, until = part * size, min((part + 1) * size, len(stream))
    r, s, end_r, end_s = _span(part, size, before, until)
    p_r, p_s = r, s
    while p_r < end_r and p_s < end_s:
        last_r[np.uint64(p_r)], last_s[np.uint64(p_s)] = row_s + p_s, row_r + p_r
        mine = np.int64(stream[at])
        p_s += mine
        p_r += 1 - mine
        at += 1
    for i in range(p_r, end_r):
        last_r[i] = row_s + p_s
    for i in range(p_s, end_s):
        last_s[i] = row_r + p_r
    _start(first_r[r:end_r], last_r[r:end_r], begin_s, limit_s)
    _start(first_s[s:end_s], last_s[s:end_s], begin_r, limit_r)
    _note_extent(part, first_r[r:end_r], last_r[r:end_r], first_s[s:end_s], last_s[s:end_s], extents)


@compiled
def _note_extent(part: Any, first_r: Any, last_r: Any, first_s: Any, last_s: Any, extents: Any) -> None:
    extents[2 * part], extents[2 * part + 1] = _extent(first_r, last_r, first_s, last_s)


@compiled
def divide_part(part: Any, stream: Any, size: Any, before: Any, ts: Any, now_r: Any, now_s: Any) -> None:
    """Write the event times ``ts`` of the arrivals of ``part`` to those of the tuples of R and of S."""
    at, until = part * size, min((part + 1) * size, len(stream))
    r, s, end_r, end_s = _span(part, size, before, until)
    while r < end_r and s < end_s:
        now_r[np.uint64(r)] = now_s[np.uint64(s)] = ts[at]
        mine = np.int64(stream[at])
        s += mine
        r += 1 - mine
        at += 1
    for i in range(r, end_r):
        now_r[i] = ts[at + i - r]
    for i in range(s, end_s):
        now_s[i] = ts[at + i - s]


@compiled
def narrow_part(part: Any, stream: Any, size: Any, before: Any, ts: Any, now_r: Any, now_s: Any, times_r: Any,
                times_s: Any, base_r: Any, base_s: Any, length_r: Any, length_s: Any, first_r: Any, last_r: Any,
                first_s: Any, last_s: Any, row_r: Any, row_s: Any, extents: Any, starts: Any) -> None:
    """Narrow the windows of the probes of ``part`` to the tuples that are at most ``length_r`` and ``length_s`` old, by
    ``times_r`` and ``times_s``, of rows from ``base_r`` and ``base_s`` on. The last part also moves ``starts`` (2,) to
    what tuples after the batch may see. A length of −1 is none.
    """
    until = min((part + 1) * size, len(stream))
    r, s, end_r, end_s = _span(part, size, before, until)
    if length_s != -1:
        _narrow(now_r[r:end_r], first_r[r:end_r], last_r[r:end_r], times_s, base_s, np.uint64(length_s))
    if length_r != -1:
        _narrow(now_s[s:end_s], first_s[s:end_s], last_s[s:end_s], times_r, base_r, np.uint64(length_r))
    _note_extent(part, first_r[r:end_r], last_r[r:end_r], first_s[s:end_s], last_s[s:end_s], extents)
    if until == len(stream):  # tuples expire on any arrival
        if length_r != -1:
            starts[0] = _first_seen(ts[until - 1], starts[0], row_r + end_r, times_r, base_r, np.uint64(length_r))
        if length_s != -1:
            starts[1] = _first_seen(ts[until - 1], starts[1], row_s + end_s, times_s, base_s, np.uint64(length_s))


@compiled
def _span(part: Any, size: Any, before: Any, until: Any) -> Any:
    """The first tuples of R and of S in ``part`` of a batch, which ends with arrival ``until``, and those behind it."""
    s = np.int64(0)
    for other in range(part):
        s += before[other + 1]
    end_s = s + before[part + 1]
    return part * size - s, s, until - end_s, end_s


@compiled
def _first_seen(now: Any, least: Any, most: Any, times: Any, base: Any, length: Any) -> Any:
    """The first row from ``least`` to ``most`` whose time is at most ``length`` before ``now``."""
    while least < most:
        middle = (least + most) // 2
        if np.uint64(now) - np.uint64(times[middle - base]) > length:  # the difference of two int64 fits uint64
            least = middle + 1
        else:
            most = middle
    return least


@compiled
def _narrow(now: Any, first: Any, last: Any, times: Any, base: Any, length: Any) -> None:
    at = _first_seen(now[0], first[0], last[0], times, base, length) if len(now) else np.int64(0)
    for i in range(len(now)):
        at = max(at, first[i])
        while at < last[i] and np.uint64(now[i]) - np.uint64(times[at - base]) > length:
            at += 1
        first[i] = at


@compiled
def _start(first: Any, last: Any, begin: Any, limit: Any) -> None:
    for i in range(len(first)):
        first[i] = max(begin, last[i] - limit)


_COUNTED = (Field("stream", "uint8"), Field("size", dimensions=0), Field("before"))
_PLACED = (*_COUNTED, *(Field(f"{name}_{side}", dimensions=0) for name in ("begin", "row", "limit") for side in SIDES),
           *(Field(f"{name}_{side}") for side in SIDES for name in ("first", "last")), Field("extents"))
_DIVIDED = Field("ts"), Field("now_r"), Field("now_s")
_FIELDS = (*_PLACED, *_DIVIDED, Field("times_r"), Field("times_s"),
           *(Field(f"{name}_{side}", dimensions=0) for name in ("base", "length") for side in SIDES), Field("starts"))


@cache
def _count_entry() -> int:
    return entry_of(count_part, _COUNTED, sys.modules[__name__])


@cache
def _place_entry() -> int:
    return entry_of(place_part, _PLACED, sys.modules[__name__])


@cache
def _divide_entry() -> int:
    return _entry(divide_part)


@cache
def _narrow_entry() -> int:
    return _entry(narrow_part)


def entries(*, ranged: bool, counted: bool) -> list[tuple[int, int]]:
    """The phases and the entries of jobs for the windows of a batch, in their order; ``ranged``: by times too;
    ``counted``: of a batch of several parts, in phase 0.
    """
    return [*([(0, _count_entry())] if counted else []), (1, _place_entry()),
            *([(1, _divide_entry()), (2, _narrow_entry())] if ranged else [])]


def _entry(function: Any) -> int:
    """The entry of a compiled function that takes some of all fields."""
    names = ", ".join(list(inspect.signature(function.py_func).parameters)[1:])
    return entry_of(function, _FIELDS, sys.modules[__name__], body=f"{function.__name__}(number, {names})")
