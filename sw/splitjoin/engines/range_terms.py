"""`RangeTerms`: the terms of aggregates over ranges of rows that lie in an order, each in about the same time however
many rows it has.

Counts and exact sums, which have an inverse, are differences of prefixes; least and greatest values the better of two
runs of a power of two of rows; order statistics come from a wavelet matrix, and the most frequent values by Mo's
algorithm. The pairs of base tuples are such ranges as well: one behind the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.base.arrays import Array, Mask, Rows
from splitjoin.lang.aggregate_functions import Term, place_of
from splitjoin.lang.eval.vector import Vector, joined_halves, magnitude
from splitjoin.lang.ir import Expr

from .loops import loops
from .slices import Slices
from .sorting import float_of_bits, ordered_bits, stable_order

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.uint64]

_SIGN = np.uint64(1 << 63)
_NONE, _NO_ROWS = np.empty(0, np.uint64), np.empty(0, np.int64)
#: Times as many rows in all ranges as there are rows and ranges, up to which floats are added range by range.
_FEW = 4
_BITS = {"bit_and": np.bitwise_and, "bit_or": np.bitwise_or}


@dataclass(frozen=True)
class _View:
    """The ranges without the rows in which an argument is NULL. ``order``: the row at each position."""

    order: Rows
    start: Rows
    end: Rows

    @property
    def counts(self) -> Rows:
        return self.end - self.start


class RangeTerms:
    """Terms over the ranges of positions from each ``start`` to before each ``end`` (n,).

    ``order``: the row at each position, where rows are numbered by arrival. ``by_arrival``: True if they rise within
    each range. ``vector``: the values of an expression over the rows. ``firsts``: the first range of each base (m,),
    which has those up to the next base's, one at least; None where each range is a base.
    """

    def __init__(self, order: Rows, start: Rows, end: Rows, vector: Callable[[Expr], Vector], *, by_arrival: bool,
                 work: Slices | None = None, firsts: Rows | None = None):
        self._every, self._of, self._by_arrival = _View(order, start, end), vector, by_arrival
        self._firsts = firsts
        self._work = work or Slices()
        self._vectors: dict[Expr, Vector] = {}
        self._views: dict[tuple[Expr, ...], _View] = {}
        self._codes: dict[Expr, tuple[Codes, bool, bool]] = {}
        self._by_value: dict[tuple[Expr, bool], tuple[Rows, Rows]] = {}
        self._wavelets: dict[Expr, tuple[Codes, Rows, Rows]] = {}
        self._frequencies: dict[tuple[Expr, ...], tuple[Rows, Rows]] = {}

    @staticmethod
    def has(term: Term) -> bool:
        """True if a base of several ranges has a value of ``term``, as of `fold`."""
        return term.reads_ranges and term.kind not in ("distinct", "mode", "quantile", "upper quantile")

    def fold(self, term: Term) -> Vector:
        """The value of ``term`` for each base; NULL where no row has one."""
        if term.of is None:
            return _counted(self._joined(self._every.counts)) if term.value is None else self._end(term)
        view = self._view(term.arguments)
        counts = self._joined(view.counts)
        present, of, taken = counts > 0, self._vector(term.of), self._work.taken
        match term.kind:
            case "count":
                return _counted(counts)
            case "distinct":
                return _counted(self._frequent(term, view)[0])
            case "mode":
                return _taken(of, self._frequent(term, view)[1])
            case "sum" | "deviation" if of.values.dtype.kind == "f":
                values = taken(of.values, view.order).astype(np.float64)
                sums = _FloatSums(values, view, self._firsts, self._work)
                return Vector(sums.totals() if term.kind == "sum" else sums.deviations(), present)
            case "sum":
                totals = _sums(taken(of.values, view.order), view, self._work)
                if self._firsts is not None and magnitude(totals) * max(len(totals), 1) >= 2**63:
                    totals = totals.astype(object)
                return Vector(self._joined(totals), present, of.denominator)
            case "bit_xor":
                before = np.bitwise_xor.accumulate(np.insert(taken(of.values, view.order), 0, 0))
                return Vector(self._joined(before[view.end] ^ before[view.start], np.bitwise_xor), present)
            case "bit_and" | "bit_or":
                of_both = _BITS[term.kind]
                found = extremes(taken(of.values, view.order), view.start, view.end, self._work, of_both)
                return Vector(self._joined(found, of_both, where=view.counts > 0), present)
            case "quantile" | "upper quantile":
                return self._quantile(term, view)
        return self._extreme(term, view)

    def _joined(self, values: Array, of_both: np.ufunc = np.add, where: Mask | None = None) -> Array:
        """The value of each base: its ranges' values, ``where`` these have one, put together by ``of_both``."""
        if self._firsts is None:
            return values
        if where is not None and not where.all():
            other = np.iinfo(values.dtype).max if of_both is np.minimum else -1 if of_both is np.bitwise_and else 0
            values = np.where(where, values, np.array(other, values.dtype))
        return of_both.reduceat(values, self._firsts) if len(self._firsts) else values[:0]

    def _vector(self, e: Expr) -> Vector:
        if e not in self._vectors:
            self._vectors[e] = self._of(e)
        return self._vectors[e]

    def _view(self, of: tuple[Expr, ...]) -> _View:
        """The ranges of the rows in which nothing of ``of`` is NULL."""
        if of not in self._views:
            work, every = self._work, self._every
            masks = [v.valid for e in of if not work.every(len((v := self._vector(e)).valid), lambda mine: bool(
                v.valid[mine].all()))]
            if masks:
                valid = work.taken(np.logical_and.reduce(masks), every.order)
                before = prefix_sums(len(valid), lambda mine: valid[mine], work)
                every = _View(every.order[valid], work.taken(before, every.start), work.taken(before, every.end))
            self._views[of] = every
        return self._views[of]

    def _end(self, term: Term) -> Vector:
        """The value of the first or the last row."""
        assert term.value is not None
        view, work, is_first = self._every, self._work, term.kind == "first"
        if self._by_arrival:
            at, some = view.start if is_first else view.end - 1, view.end > view.start
            rows = work.made(len(at), np.int64, lambda mine: np.where(
                some[mine], view.order[np.where(some[mine], at[mine], 0)], -1)) if len(view.order) else at * 0 - 1
        else:
            some, better = view.end > view.start, np.minimum if is_first else np.maximum
            rows = np.where(some, extremes(view.order, view.start, view.end, work, better), -1)
        if self._firsts is not None:
            rows = self._joined(rows, np.minimum if is_first else np.maximum, where=some)
            rows = np.where(self._joined(view.counts) > 0, rows, -1)
        return _taken(self._vector(term.value), rows)

    def _extreme(self, term: Term, view: _View) -> Vector:
        """The least or greatest value of each range, or another one of the first row that has it."""
        assert term.of is not None
        greatest, of, work = term.kind == "greatest", self._vector(term.of), self._work
        codes, plain, _ = self._coded(term.of)
        some = self._joined(view.counts) > 0
        if plain and term.value in (None, term.of):
            better = np.maximum if greatest else np.minimum
            found = extremes(work.taken(codes, view.order), view.start, view.end, work, better)
            found = self._joined(found, better, where=view.counts > 0)
            return Vector(_decoded(found, of.values.dtype), some, of.denominator)
        ranks, rows = self._ranked(term.of, greatest)
        found = extremes(work.taken(ranks, view.order), view.start, view.end, work)
        found = self._joined(found, np.minimum, where=view.counts > 0)
        return _taken(self._vector(term.value or term.of), np.where(some, rows[np.where(some, found, 0)], -1) if len(
            rows) else np.full(len(found), -1))

    def _quantile(self, term: Term, view: _View) -> Vector:
        assert term.of is not None
        nodes, zeros, rows = self._wavelet(term.of, view)
        counts, bits = view.counts, len(zeros)
        different, which = np.unique(counts, return_inverse=True)
        upper = term.kind == "upper quantile"
        places = np.array([place_of(term.share, n, upper) for n in different.tolist()], np.int64)[which]
        found = np.empty(len(counts), np.int64)
        self._work.each(len(counts), lambda mine: loops()["wavelet_select"](
            nodes, zeros, bits, view.start[mine], view.end[mine], places[mine], found[mine]))
        return _taken(self._vector(term.of), np.where(counts > 0, rows[found], -1) if len(rows) else found - 1)

    def _wavelet(self, of: Expr, view: _View) -> tuple[Codes, Rows, Rows]:
        """A wavelet matrix of the places of values in their order, its zeros by level, and a row for each place."""
        if of not in self._wavelets:
            places, rows = self._dense(of) if self._coded(of)[2] else self._ranked(of, False)
            numbers, bits = self._work.taken(places, view.order), max(len(rows) - 1, 0).bit_length()
            nodes, zeros = np.empty(2 * bits * (len(numbers) // 64 + 1), np.uint64), np.empty(bits, np.int64)
            loops()["wavelet_levels"](numbers, np.empty_like(numbers), bits, nodes, zeros)
            self._wavelets[of] = nodes, zeros, rows
        return self._wavelets[of]

    def _frequent(self, term: Term, view: _View) -> tuple[Rows, Rows]:
        """How many values differ in each range, and the first row of the most frequent one; −1 for none."""
        if term.arguments not in self._frequencies:
            assert term.of is not None
            self._frequencies[term.arguments] = self._counted_values(term.of, view)
        return self._frequencies[term.arguments]

    def _counted_values(self, of: Expr, view: _View) -> tuple[Rows, Rows]:
        numbers, rows = self._dense(of)
        values, order, start, end = numbers[view.order], view.order, view.start, view.end
        blocks = _block(start, end)
        mirrored = _block(len(order) - end, len(order) - start)
        if mirrored[1] < blocks[1]:
            blocks, start, end = mirrored, len(order) - end, len(order) - start
            values, order = np.ascontiguousarray(values[::-1]), np.ascontiguousarray(order[::-1])
        block, by = blocks[0], np.lexsort((end, start // blocks[0]))
        n, different, mode = len(rows), np.empty(len(start), np.int64), np.empty(len(start), np.int64)
        loops()["range_frequencies"](values, order, start, end, by, block, np.zeros(n, np.int64), np.empty(n, np.int64),
                                     np.empty(block, np.int64), different, mode)
        return different, mode

    def _dense(self, of: Expr) -> tuple[Rows, Rows]:
        """Numbers from 0 for the values of all rows, equal for equal ones, in their order; and a row for each."""
        codes = self._coded(of)[0]
        ranks, rows = self._ranked(of, False)
        if not len(rows):
            return ranks, rows
        ordered = codes[rows]
        rises = np.insert(ordered[1:] != ordered[:-1], 0, True)
        return (np.cumsum(rises) - 1)[ranks], rows[rises]

    def _coded(self, of: Expr) -> tuple[Codes, bool, bool]:
        """As of `_codes`."""
        if of not in self._codes:
            self._codes[of] = _codes(self._vector(of))
        return self._codes[of]

    def _ranked(self, of: Expr, greatest: bool) -> tuple[Rows, Rows]:
        """The rank of each row by the values of ``of``, the ``greatest`` first or last, and of equal ones by arrival;
        and the rows by rank. Rows whose value is NULL have none.
        """
        key = of, greatest
        if key not in self._by_value:
            codes, valid = self._coded(of)[0], self._vector(of).valid
            codes = ~codes if greatest else codes
            known = None if valid.all() else np.flatnonzero(valid)
            rows = stable_order(codes) if known is None else known[stable_order(codes[known])]
            ranks = np.zeros(len(codes), np.int64)
            ranks[rows] = np.arange(len(rows))
            self._by_value[key] = ranks, rows
        return self._by_value[key]


class _FloatSums:
    """Sums of the bases of ``values``, float64 at each position: in fixed point as wide as the exponents ask for.

    NaN, or infinities of both signs, give NaN, other infinities themselves; a sum that is too large is infinite.
    """

    def __init__(self, values: Floats, view: _View, firsts: Rows | None, work: Slices):
        self._values, self._start, self._end, self._work = np.ascontiguousarray(values), view.start, view.end, work
        self._bases = None if firsts is None else np.append(firsts, len(view.start))
        extent = np.empty(3, np.int64)
        loops()["float_extent"](self._values, extent)
        self._low, self._bits, self._others = int(extent[0]), int(extent[1] - extent[0]) + 1, int(extent[2])
        counts = view.counts if firsts is None or not len(firsts) else np.add.reduceat(view.counts, firsts)
        self._counts, self._most = counts, int(counts.max(initial=0)).bit_length()
        self._few = int(counts.sum()) <= _FEW * (len(values) + len(view.start))

    def totals(self) -> Floats:
        """The sums, each rounded once; 0 of none."""
        words = self._words(self._bits + self._length)
        step = 1 if words <= 2 else 1 << words.bit_length()
        prefixes, found = self._prefixes(words, step, False), np.empty(len(self._counts))
        self._work.each(len(found), lambda mine: loops()["range_float_sums"](
            self._values, self._low, words, step, prefixes, *self._ranges(mine), found[mine]))
        if self._others:
            nan, above, below = (self._has(test(self._values)) for test in (np.isnan, np.isposinf, np.isneginf))
            found[above], found[below], found[nan | (above & below)] = np.inf, -np.inf, np.nan
        return found

    def deviations(self) -> Floats:
        """The sums of the squared distances from the averages, each rounded once; 0 of one value."""
        words, wide = self._words(self._bits + self._length), self._words(2 * (self._bits + self._length))
        step = 1 << wide.bit_length()
        both = [self._prefixes(words, step, False), self._prefixes(wide, step, True)]
        found = np.empty(len(self._counts))
        self._work.each(len(found), lambda mine: loops()["range_deviations"](
            self._values, self._low, words, both[0], wide, both[1], step, *self._ranges(mine), found[mine]))
        if self._others:
            found[self._has(~np.isfinite(self._values)) & (self._counts > 1)] = np.nan
        return found

    def _ranges(self, mine: slice) -> tuple[Rows, Rows, Rows]:
        """The starts and ends of the ranges of some bases, and the first range of each."""
        if self._bases is None:
            return self._start[mine], self._end[mine], _NO_ROWS
        return self._start, self._end, self._bases[mine.start:mine.stop + 1]

    @property
    def _length(self) -> int:
        """The bits that a sum of as many values as are added may have more than one."""
        return self._most if self._few else max(self._most, len(self._values).bit_length())

    def _words(self, bits: int) -> int:
        return (bits + 1 + 63) // 64

    def _prefixes(self, words: int, step: int, square: bool) -> Codes:
        if self._few:
            return _NONE
        found = np.empty((len(self._values) // step + 1) * words, np.uint64)
        loops()["float_prefixes"](self._values, 2 * self._low if square else self._low, words, square, step, found)
        return found

    def _has(self, where: Mask) -> Mask:
        """True for the bases that have a value ``where`` that is true."""
        at = np.flatnonzero(where)
        found: Mask = np.searchsorted(at, self._start) < np.searchsorted(at, self._end)
        return found if self._bases is None or not len(found) else np.logical_or.reduceat(found, self._bases[:-1])


def range_float_sums(values: Floats, lengths: Rows) -> Floats:
    """The sum of each group of ``values``, which lie one after the other, of ``lengths`` (n,): float64 (n,), exact, and
    rounded once to the nearest double, ties to even.

    NaN, or infinities of both signs, give NaN; other infinities themselves. A sum that is too large is infinite. An
    empty group gives 0.
    """
    end = np.cumsum(lengths, dtype=np.int64)
    return _FloatSums(values.astype(np.float64), _View(_NO_ROWS, end - lengths, end), None, Slices()).totals()


def extremes(values: Array, start: Rows, end: Rows, work: Slices, better: np.ufunc = np.minimum) -> Array:
    """The least of ``values`` from each ``start`` to before each ``end``, or what ``better`` takes of two; 0 of none.

    Two runs of a power of two of values cover a range; these are made power by power, so memory stays that of values.
    """
    found, some = np.zeros(len(start), values.dtype), end > start
    if some.any() and _one_behind_the_other(start[some], end[some], len(values)):
        found[some] = better.reduceat(values, start[some])
        return found
    powers = exponents(end - start)
    runs, power = values, 0
    by_power = np.argsort(powers, kind="stable")
    cuts = np.searchsorted(powers[by_power], np.arange(powers.max(initial=0) + 2))
    for power in range(powers.max(initial=0) + 1):
        mine = by_power[cuts[power]:cuts[power + 1]]

        def find(part: slice, runs: Array = runs, mine: Rows = mine, step: int = 1 << power) -> None:
            of = mine[part]
            of = of[some[of]]
            found[of] = better(runs[start[of]], runs[end[of] - step])

        work.each(len(mine), find)
        if len(runs) > 1 << power:
            runs = _longer(runs, 1 << power, work, better)
    return found


def prefix_sums(rows: int, values: Callable[[slice], Array], work: Slices) -> Rows:
    """Prefix sums, int64 (rows + 1,): the sum of the values before each row, and last the sum of all. ``values`` gives
    those of a slice of the rows.
    """
    found = np.zeros(rows + 1, np.int64)
    slices = work.slices(rows)
    totals = work.map(lambda mine: int(np.cumsum(values(mine), out=found[mine.start + 1:mine.stop + 1])[-1:].sum()),
                      slices)
    before = np.cumsum([0, *totals])

    def move(n: int) -> None:
        found[slices[n].start + 1:slices[n].stop + 1] += before[n]

    work.map(move, range(1, len(slices)))
    return found


def _sums(values: Array, view: _View, work: Slices) -> Array:
    """The sums of whole numbers: int64 if all fit, else Python integers."""
    if values.dtype == object:
        whole: Array = np.insert(np.cumsum(values), 0, 0)
        exact: Array = whole[view.end] - whole[view.start]
        return exact
    values = values.astype(np.int64, copy=False)
    if magnitude(values) * max(len(values), 1) < 2**63:
        before = prefix_sums(len(values), lambda mine: values[mine], work)
        found: Array = work.taken(before, view.end) - work.taken(before, view.start)
        return found
    low = prefix_sums(len(values), lambda mine: values[mine] & 0xFFFF_FFFF, work)
    high = prefix_sums(len(values), lambda mine: values[mine] >> 32, work)
    return joined_halves(low[view.end] - low[view.start], high[view.end] - high[view.start])


def _codes(v: Vector) -> tuple[Codes, bool, bool]:
    """Codes in the order of the values; whether `_decoded` makes the values of them, and whether equal codes are of
    identical values.
    """
    values, valid = v.values, v.valid
    if values.dtype == object:
        known = values[valid].tolist()
        number = {value: n for n, value in enumerate(sorted(set(known)))}
        found = np.zeros(len(values), np.uint64)
        found[valid] = np.fromiter(map(number.__getitem__, known), np.uint64, len(known))
        return found, False, True
    if values.dtype.kind == "f":
        bits = ordered_bits(values.astype(np.float64))
        same = not bool(np.signbit(values[values == 0]).any())  # −0.0 equals 0.0
        return bits.view(np.uint64) ^ _SIGN, same, same
    return values.astype(np.int64, copy=False).view(np.uint64) ^ _SIGN, True, True


def _decoded(codes: Codes, dtype: Any) -> Array:
    """The values of a ``dtype`` with these ``codes``."""
    bits = (codes ^ _SIGN).view(np.int64)
    return (bits if np.dtype(dtype).kind != "f" else float_of_bits(bits)).astype(dtype, copy=False)


def _counted(counts: Rows) -> Vector:
    return Vector(counts, np.ones(len(counts), np.bool_))


def _taken(v: Vector, rows: Rows) -> Vector:
    """The values of ``rows``, NULL for −1."""
    if not len(v.values):
        return Vector(np.zeros(len(rows), v.values.dtype), np.zeros(len(rows), np.bool_), v.denominator)
    present = rows >= 0
    at = np.where(present, rows, 0)
    return Vector(v.values[at], v.valid[at] & present, v.denominator)


def _one_behind_the_other(start: Rows, end: Rows, n: int) -> bool:
    """True if the ranges, of which there is one at least, follow each other up to the last of ``n`` positions."""
    return int(end[-1]) == n and bool((start[1:] == end[:-1]).all())


def _block(start: Rows, end: Rows) -> tuple[int, int]:
    """A length of blocks for the loop ``range_frequencies``, and about how many values are added with it."""
    first, of = np.unique(start, return_inverse=True)
    last = np.zeros(len(first), np.int64)
    np.maximum.at(last, of, end)
    alone = int((last - first).sum()) + len(start)  # each start by itself
    n, pairs = int(last.max(initial=1)), int((end - start).sum())
    block = max(1, int((n * (pairs / max(len(start), 1)) / max(len(start), 1)) ** 0.5))
    many = n + pairs * n // (block * max(len(start), 1)) + 2 * len(start) * block
    return (1, alone) if alone <= many else (block, many)


def _longer(runs: Array, step: int, work: Slices, better: np.ufunc) -> Array:
    """The better one of each of ``runs`` and the one that is ``step`` behind it."""
    return work.made(len(runs) - step, runs.dtype, lambda mine: better(
        runs[mine], runs[mine.start + step:mine.stop + step]))


def exponents(numbers: Rows) -> Rows:
    """The exponent of the greatest power of two that is not above each number, 0 for numbers below 1."""
    return np.maximum(np.frexp(numbers.astype(np.float64))[1].astype(np.int64) - 1, 0)
