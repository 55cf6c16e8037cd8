"""The rest of a condition, which tests do not decide: compiled nested loops over the whole expression, or NumPy over
blocks of pairs (`ExpressionFinder`); and the candidates of tests, verified by the rest (`VerifiedFinder`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import ModuleType

import numpy as np

from splitjoin.base.arrays import Array, Mask, Rows
from splitjoin.base.memory import MatchMemory
from splitjoin.base.progress import tell
from splitjoin.lang.eval.pairs import PairTest
from splitjoin.lang.ir import Expr, columns
from splitjoin.lang.schema import SIDES, other_side

from ..compiled.atoms import Atom, AtomLanes, ValueRange
from ..compiled.compiler import has_numba
from ..compiled.exact_source import NotCompiled, TooWide
from ..compiled.expression_source import Code, compile_pair
from ..tuning import DEFAULTS, Tuning
from .finder import Batch, Finder, Found, assembled
from .grid_index import IndexFinder

#: Probes that share each chunk of the window.
PROBES = 64
#: Stored tuples per chunk.
CHUNK = 1024
#: Stored tuples that are marked at once in chunks with matches.
STEP = 256
_HEAD = '''import numba
import numpy as np
from splitjoin.engines.compiled.intrinsics import popcount
from splitjoin.engines.compiled.jit import compiled_as_numpy

'''
_FIND = '''
@numba.njit(nogil=True, error_model="numpy")
def some({parameters}):
    found = False
    for i in range(n):
        {lines}
        found = found | {truth}
    return found


@numba.njit(nogil=True, error_model="numpy")
def mark(marks, {parameters}):
    for i in range(n):
        {lines}
        marks[i] = {truth}


@compiled_as_numpy
def find(p, start, end, base, stored, counts, rows, flags, marks, {arrays}):
    """Matches of probes p and later, of the {name} probing; returns the first probe for which ``rows`` had no room, and
    how many are in it. ``marks`` ({step},): scratch.
    """
    at, n = np.int64(0), len(start)
    words = marks.view(np.uint64)
    dense = False
    while p < n:
        until = min(p + {probes}, n)
        least, most = start[p], end[until - 1]
        chunks = (most - least + {chunk} - 1) // {chunk}
        for c in range(0 if dense else chunks):
            origin = least + c * {chunk}
            for j in range(p, until):
                # Whole vectors: what lies beside the window is found out in the second pass.
                lo = (max(start[j], origin) - base) // 64 * 64
                hi = min((min(end[j], origin + {chunk}) - base + 63) // 64 * 64, stored)
                flags[j - p, c] = some({survey}) if hi > lo else False
        visited = matched = 0
        for j in range(p, until):
            if len(rows) - at <= end[j] - start[j]:  # one more than can match, as what does not match is written too
                return j, at
            before = at
            for c in range(chunks):
                if dense or flags[j - p, c]:
                    visited += 1
                    here = at
                    last = min(end[j], least + (c + 1) * {chunk}) - base
                    for lo in range(max(start[j], least + c * {chunk}) - base, last, {step}):
                        hi = min(lo + {step}, last)
                        mark(marks, {survey})
                        marks[hi - lo:(hi - lo + 7) // 8 * 8] = False
                        for w in range((hi - lo + 7) // 8):
                            if words[w]:
                                for i in range(8 * w, 8 * w + 8):
                                    rows[at] = base + lo + i
                                    at += np.int64(marks[i])
                    matched += at > here
            counts[j] = at - before
        dense = 2 * matched > chunks * (until - p)
        p = until
    return p, at
'''
_VERIFY = '''
@compiled_as_numpy
def verify(base, counts, rows, {arrays}):
    """Keep the matches among the candidates ``rows``, ``counts`` of each probe of the {name}; both change in place."""
    n, at = np.int64(0), np.int64(0)
    for j in range(len(counts)):
        before = n
        {load}
        for _ in range(counts[j]):
            k = rows[at]
            at += 1
            i = k - base
            {lines}
            rows[n] = k
            n += np.int64({truth})
        counts[j] = n - before
    return n
'''
#: Matches of some probes: the first, the one behind the last, and the row ids.
_Piece = tuple[int, int, Rows]
#: Arrivals in a part at most.
_MOST = 1 << 15
#: Parts that an index may give up, and how many times shorter the next try is: each time its grids are built anew.
_FAILURES, _SHORTER = 4, 16


@dataclass(frozen=True)
class Kernel:
    """Compiled code for one condition, valid for values within the ranges at compile time.

    Per probing stream: ``modules``, with ``find`` or ``verify``; ``lanes``, the atoms whose values and then those
    whose validity it reads, each the other stream's first.
    """

    modules: Mapping[str, ModuleType]
    values: tuple[Atom, ...]
    valids: tuple[Atom, ...]
    width: int

    def lanes(self, side: str, probes: Sequence[Array], stored: Sequence[Array]) -> list[Array]:
        """The lanes that the code reads, of ``probes`` of stream ``side`` and ``stored`` of the other one."""
        return [arrays[a.number + is_valid * len(arrays) // 2] for mine, arrays in ((False, stored), (True, probes))
                for a, is_valid in read_lanes(self.values, self.valids, side, mine)]


def make_kernel(e: Expr, atoms: Sequence[Atom], ranges: Mapping[Expr, ValueRange], *, verify: bool = False) -> Kernel:
    """Code for the condition ``e`` in the narrowest width in which nothing wraps. Raises `NotCompiled`."""
    code, width = narrowest(e, atoms, ranges)
    from ..compiled.jit import load  # here, as numba takes a third of a second to import

    make = verify_source if verify else find_source
    return Kernel({side: load(make(code, side)) for side in ("r", "s")}, code.values, code.valids, width)


def narrowest(e: Expr, atoms: Sequence[Atom], ranges: Mapping[Expr, ValueRange]) -> tuple[Code, int]:
    """Code for ``e`` in the narrowest width in which nothing wraps, and that width. Raises `NotCompiled`."""
    try:
        return compile_pair(e, atoms, ranges, 32), 32
    except TooWide:
        return compile_pair(e, atoms, ranges, 64), 64


def find_source(code: Code, side: str) -> str:
    """The module whose ``find`` compares probes of stream ``side`` with the other stream's stored tuples."""
    stored, probes = _names(code, side)
    lines = [f"{name} = {name}s[i]" for name in stored] + list(code.lines)
    return _HEAD + _FIND.format(
        parameters=", ".join(["n", *(f"{name}s" for name in stored), *probes]), name=side.upper(),
        lines="\n        ".join(lines) or "pass", truth=code.truth, step=STEP, probes=PROBES, chunk=CHUNK,
        arrays=", ".join(f"{name}s" for name in stored + probes),
        survey=", ".join(["hi - lo", *(f"{name}s[lo:hi]" for name in stored), *(f"{name}s[j]" for name in probes)]))


def verify_source(code: Code, side: str) -> str:
    """The module whose ``verify`` checks candidates of the probes of stream ``side``."""
    stored, probes = _names(code, side)
    lines = [f"{name} = {name}s[i]" for name in stored] + list(code.lines)
    return _HEAD + _VERIFY.format(
        arrays=", ".join(f"{name}s" for name in stored + probes), name=side.upper(), truth=code.truth,
        load="\n        ".join(f"{name} = {name}s[j]" for name in probes) or "pass",
        lines="\n            ".join(lines) or "pass")


def _names(code: Code, side: str) -> tuple[list[str], list[str]]:
    """Names of the lanes, stored and of the probes, in the order of `Kernel.lanes`."""
    stored, probes = ([f"{a.side}{a.number}{'v' * is_valid}" for a, is_valid in read_lanes(
        code.values, code.valids, side, mine)] for mine in (False, True))
    return stored, probes


def read_lanes(values: Sequence[Atom], valids: Sequence[Atom], side: str, mine: bool) -> list[tuple[Atom, bool]]:
    """The atoms of stream ``side`` (``mine``), or of the other one: those whose values and then, with True, those whose
    validity code reads.
    """
    return [(a, is_valid) for is_valid, atoms in ((False, values), (True, valids)) for a in atoms
            if (a.side == side) == mine]


class Compiler:
    """Supplies the kernel of ``condition`` for each batch, and compiles a new one when the values require it.

    ``verify``: for candidates, else for nested loops.
    """

    def __init__(self, condition: Expr, lanes: AtomLanes, tuning: Tuning = DEFAULTS, *, verify: bool = False):
        self._interpreted = tuning.interpreted_pairs
        self._condition, self._lanes, self._verify = condition, lanes, verify
        self._ranges: object = None
        self._kernel: Kernel | None = None
        self.why = "by NumPy as long as there are few pairs" if has_numba() else "by NumPy, as numba is not installed"

    def kernel(self, batch: Batch, pairs: int) -> Kernel | None:
        """The kernel for every pair of the batch; None where NumPy evaluates them, and `why` says so.

        ``pairs``: how many there were so far; NumPy is done with a few before anything is compiled.
        """
        if pairs < self._interpreted:
            return None
        if not has_numba():
            _tell_of_numba()
            return None
        ranges = live_ranges(batch, self._lanes)
        if ranges != self._ranges:
            self._ranges = ranges
            try:
                self._kernel = make_kernel(self._condition, self._lanes.atoms, ranges, verify=self._verify)
                self.why = f"compiled, whole numbers in {self._kernel.width} bits"
            except NotCompiled as reason:
                self._kernel, self.why = None, f"by NumPy, as there is no compiled code for {reason}"
        return self._kernel


@cache
def _tell_of_numba() -> None:
    tell("numba is not installed, so NumPy evaluates this condition, which takes longer; pip install numba")


def live_ranges(batch: Batch, lanes: AtomLanes) -> dict[Expr, ValueRange]:
    """The ranges of the values of ``lanes`` that ``batch`` stores, probes with, or sees."""
    first = {"r": batch.first["r"], "s": batch.first["s"]}
    for side, other in (("r", "s"), ("s", "r")):
        start = batch.windows[other][0]
        first[side] = min(first[side], int(start[0])) if len(start) else first[side]
    return lanes.ranges(first)


class ExpressionFinder(Finder):
    """Evaluates ``predicate`` for every pair, with `kernel` if there is one.

    Stores, and probes with, the predicate's columns (`column_arrays`), then its lanes (`AtomLanes`).
    """

    def __init__(self, predicate: Expr, tuning: Tuning = DEFAULTS):
        super().__init__(tuning)
        self._predicate, self._pairs = predicate, PairTest(predicate)
        self._columns = {side: [c for c in columns(predicate) if c.side == side] for side in ("r", "s")}
        self.kernel: Kernel | None = None

    def find(self, batch: Batch) -> dict[str, Found]:
        parts = batch.parts(PROBES)
        return assembled(parts, batch.team.map(lambda part: self._find(batch, *part), parts))

    def _lanes(self, side: str, arrays: list[Array]) -> list[Array]:
        return arrays[2 * len(self._columns[side]):]

    def _find(self, batch: Batch, side: str, first: int, last: int) -> tuple[Rows, Rows]:
        """The matches of the probes ``first`` to ``last`` of stream ``side`` among all that they see."""
        start, end = (a[first:last] for a in batch.windows[side])
        self.count_candidates(int((end - start).sum()))
        if self.kernel is None:
            return self._by_numpy(batch, side, first, start, end)
        store, counts = self.stores[other_side(side)], np.zeros(len(start), np.int64)
        if int(end[-1]) == int(start[0]):
            return counts, np.empty(0, np.int64)
        rows = self.room(int((end - start).max()) + self.tuning.room)
        flags = np.empty((PROBES, int(end[-1] - start[0]) // CHUNK + 2), np.bool_)
        lanes = self._kernel_lanes(self.kernel, batch, side, first, last)
        find, parts, p = self.kernel.modules[side].find, [], 0
        while p < len(start):
            p, at = find(p, start, end, store.base, store.end - store.base, counts, rows, flags,
                         np.zeros(STEP, np.bool_), *lanes)
            batch.memory.add(int(at))
            parts.append(rows[:at].copy())
        return counts, parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _kernel_lanes(self, kernel: Kernel, batch: Batch, side: str, first: int, last: int) -> list[Array]:
        other = other_side(side)
        return kernel.lanes(side, [a[first:last] for a in self._lanes(side, batch.probes[side])],
                            self._lanes(other, self.stores[other].arrays))

    def _by_numpy(self, batch: Batch, side: str, before: int, start: Rows, end: Rows) -> tuple[Rows, Rows]:
        """The matches of the probes behind the first ``before``, which have these windows."""
        store = self.stores[other_side(side)]
        lengths, most = end - start, self.tuning.numpy_pairs
        counts, found = np.zeros(len(start), np.int64), [np.empty(0, np.int64)]
        first = 0
        while first < len(start):
            # The probes that fill a block, at least one.
            last = first + max(1, int(np.searchsorted(np.cumsum(lengths[first:]), most, side="right")))
            sizes = lengths[first:last]
            probe = np.repeat(np.arange(first, first + len(sizes)), sizes)
            rows = np.arange(len(probe)) + np.repeat(start[first:last] - (np.cumsum(sizes) - sizes), sizes)
            true = self.true(self._predicate, batch, side, probe + before, rows - store.base)
            counts[first:last] = np.bincount(probe[true] - first, minlength=len(sizes))
            found.append(rows[true])
            batch.memory.add(len(found[-1]))
            first = last
        return counts, np.concatenate(found)

    def true(self, condition: Expr, batch: Batch, side: str, probe: Rows, at: Rows) -> Mask:
        """True for each pair (n,) of which ``condition``, of the predicate's columns, is true: with NumPy.

        ``probe``: positions among the batch's probes of stream ``side``; ``at``: among the other one's stored arrays.
        """
        stored = self.stores[other_side(side)].arrays
        return self._pairs.true(side, batch.probes[side], probe, stored, at, condition)


def slice_of(batch: Batch, start: int, stop: int) -> Batch:
    """The arrivals ``start`` to ``stop`` of ``batch``, as a batch."""
    ends = {}
    for at in (start, stop):
        s = int(np.count_nonzero(batch.stream[:at]))
        ends[at] = {"r": at - s, "s": s}
    part = {side: slice(ends[start][side], ends[stop][side]) for side in ("r", "s")}
    starts = dict(batch.starts)
    for side, other in (("r", "s"), ("s", "r")):
        later = batch.windows[other][0][part[other].stop:]
        if len(later):
            starts[side] = int(later[0])
    return Batch(
        stream=batch.stream[start:stop],
        first={side: batch.first[side] + ends[start][side] for side in ("r", "s")},
        stored={side: [a[part[side]] for a in batch.stored[side]] for side in ("r", "s")},
        probes={side: [a[part[side]] for a in batch.probes[side]] for side in ("r", "s")},
        windows={side: (a[part[side]], b[part[side]]) for side, (a, b) in batch.windows.items()},
        starts=starts, team=batch.team, memory=batch.memory)


class _TooMany(Exception):
    """A part has more candidates than memory should hold."""


class _Limited(MatchMemory):
    """Counts candidates; raises `_TooMany` once there are more than ``most``."""

    def __init__(self, most: int):
        super().__init__(size=0)
        self._most = most

    def add(self, matches: int) -> None:
        super().add(matches)
        if self._matches > self._most:
            raise _TooMany


class VerifiedFinder(ExpressionFinder):
    """Has another finder, ``tests``, find candidates, and keeps those for which ``residual`` is true.

    With `kernel` the tests are left out, and the whole predicate is evaluated for every pair. Batches have what
    ``tests`` takes, then what `ExpressionFinder` takes.

    Attributes:
        check: What verifies candidates; NumPy if None.
        tested: Pairs that were tested.
        passed: Candidates that they let through.
    """

    def __init__(self, predicate: Expr, residual: Expr, lanes: AtomLanes, tuning: Tuning = DEFAULTS):
        super().__init__(predicate, tuning)
        self._residual = residual
        self.tests: Finder | None = None
        self.check: Kernel | None = None
        self.tested = self.passed = 0
        self._size = tuning.verified_first
        self._failures = 0
        self._own = {side: 2 * len(of) + lanes.count(side) for side, of in self._columns.items()}

    def for_tests(self, batch: Batch) -> Batch:
        """The part of ``batch`` that ``tests`` takes."""
        return self._split(batch)[0]

    def process(self, batch: Batch) -> dict[str, Found]:
        """Store, find and verify, a part of the batch after the other, so that candidates do not pile up."""
        assert self.tests is not None
        keys, own = self._split(batch)
        if self.kernel is not None:
            self.tests.keep(keys)
            self.tests.expire(keys)
            return super().process(own)
        self.keep(own)
        parts = []
        for part, candidates in self._candidates(self.tests, keys, own):
            parts.append({side: self._verified(part, side, found) for side, found in candidates.items()})
            batch.memory.add(sum(len(rows) for of in parts[-1].values() for *_, rows in of[1]))
        self.expire(own)
        return {side: _joined([part[side] for part in parts]) for side in SIDES}

    def _candidates(self, tests: Finder, keys: Batch, own: Batch) -> Iterator[tuple[Batch, dict[str, Found]]]:
        longest = max((int((end - start).max()) for start, end in keys.windows.values() if len(start)), default=0)
        limit = self.tuning.verified_limit
        few = max(1, limit // max(longest, 1))  # which have no more, even if tests let everything through
        at, n = 0, len(keys.stream)
        while at < n or at == 0:
            # An index gives up a part that has too many, so it may have as long ones as others had few candidates.
            may_fail = isinstance(tests, IndexFinder) and self._failures < _FAILURES
            stop = min(at + (self._size if may_fail else min(self._size, few)), n)
            whole = (at, stop) == (0, n)
            ends = {side: store.end for side, store in tests.stores.items()}
            try:
                found = tests.process(replace(keys if whole else slice_of(keys, at, stop), memory=_Limited(
                    limit if may_fail and stop - at > few else 2**62)))
            except _TooMany:
                assert isinstance(tests, IndexFinder)
                tests.take_back(ends)
                self._failures += 1
                self._size = max(few, (stop - at) // _SHORTER)
                continue
            passed = sum(of.matches for of in found.values())
            self.passed += passed
            part = own if whole else slice_of(own, at, stop)
            self.tested += sum(int((end - start).sum()) for start, end in part.windows.values())
            yield part, found
            # Approach the target gradually: the next tuples may be distributed differently.
            self._size = max(1, min(2 * self._size, self._size * self.tuning.verified // max(passed, 1), _MOST))
            at = max(stop, 1)

    def _split(self, batch: Batch) -> tuple[Batch, Batch]:
        def part(arrays: dict[str, list[Array]], first: bool) -> dict[str, list[Array]]:
            return {side: of[:-self._own[side] or None] if first else of[len(of) - self._own[side]:]
                    for side, of in arrays.items()}

        keys, own = (replace(batch, stored=part(batch.stored, first), probes=part(batch.probes, first))
                     for first in (True, False))
        return replace(keys, memory=MatchMemory(size=0)), own

    def _verified(self, batch: Batch, side: str, found: Found) -> tuple[Rows, list[_Piece]]:
        """The matches among the candidates of the probes of stream ``side``: how many each has, and where they lie."""
        pieces = batch.team.map(lambda n: self._true_of(batch, side, found, n), range(len(found.pieces)))
        return found.counts.copy(), pieces  # the finder's own are those of the next part

    def _true_of(self, batch: Batch, side: str, found: Found, n: int) -> _Piece:
        """The matches of piece ``n``, whose counts become theirs."""
        first, last = int(found.pieces[n, 0]), int(found.pieces[n, 1])
        counts, rows, store = found.counts[first:last], found.rows(n), self.stores[other_side(side)]
        if self.check is not None:
            lanes = self._kernel_lanes(self.check, batch, side, first, last)
            return first, last, rows[:self.check.modules[side].verify(store.base, counts, rows, *lanes)].copy()
        probe, block = np.repeat(np.arange(len(counts)), counts), self.tuning.numpy_pairs
        true = np.concatenate([self.true(self._residual, batch, side, probe[at:at + block] + first,
                                         rows[at:at + block] - store.base) for at in range(0, len(rows), block)])
        counts[:] = np.bincount(probe[true], minlength=len(counts))
        return first, last, rows[true]


def _joined(parts: list[tuple[Rows, list[_Piece]]]) -> Found:
    """The matches of parts of the probes, one after the other."""
    before, pieces = 0, []
    for counts, of in parts:
        pieces += [(before + first, before + last, rows) for first, last, rows in of]
        before += len(counts)
    return Found.of(np.concatenate([counts for counts, _ in parts]), pieces)
