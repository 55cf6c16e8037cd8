"""Folding of the partners of many base tuples at once, with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa

from splitjoin.base.arrays import Array, Ints
from splitjoin.base.errors import InputError
from splitjoin.engines.device import ITEM, TableFolds
from splitjoin.engines.range_terms import RangeTerms
from splitjoin.lang.aggregate import Aggregate
from splitjoin.lang.aggregate_functions import FoldTerm, Term
from splitjoin.lang.eval.vector import Vector, column, evaluate_columns
from splitjoin.lang.ir import Col, Expr, columns
from splitjoin.lang.properties import causes
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Side
from splitjoin.lang.types import Binary, Bool, Float, String, Type

from ..result_values import result_type, to_arrow
from .decided_bases import DecidedBases
from .user_fold import fold_user

#: The columns ``names`` of the rows of a stream with these ids.
Gather = Callable[[Side, Sequence[str], Ints], Sequence[pa.Array | pa.ChunkedArray]]

#: Pairs that are folded at once, unless one base tuple has more.
_BLOCK = 1 << 20


def aggregate_types(aggregate: Aggregate) -> pa.DataType:
    """The Arrow type of an aggregate's values."""
    definition = aggregate.definition
    of = definition.result(aggregate.args)
    return definition.type(None if of is None else result_type(of, definition.result_text(aggregate.text)))


def aggregate_fields(query: Query) -> list[pa.Field]:
    """The Arrow fields of the query's aggregates; counts are never NULL."""
    return [pa.field(a.name, aggregate_types(a), nullable=a.nullable) for a in query.aggregates]


class FoldedRows:
    """Computes the aggregates of ``query`` for decided base tuples; ``gather`` gets the columns of their partners."""

    def __init__(self, query: Query, gather: Gather):
        self._aggregates, self._gather = query.aggregates, gather
        self._columns = list(dict.fromkeys(c for a in query.aggregates for e in a.args for c in columns(e)))

    def arrays(self, decided: DecidedBases) -> list[pa.ChunkedArray]:
        """The values of each aggregate, one for each base tuple. Raises `InputError` for a sum that does not fit."""
        parts = [self.block(decided.part(mine.start, mine.stop)) for mine in _blocks(decided.lengths)]
        return [pa.chunked_array([part[n] for part in parts], aggregate_types(a))
                for n, a in enumerate(self._aggregates)]

    def block(self, decided: DecidedBases) -> list[pa.Array]:
        """`arrays` of base tuples whose partners fit memory."""
        ids: dict[Side, Ints] = {"r": np.repeat(decided.bases, decided.lengths), "s": decided.partners}
        values: dict[Col, Vector] = {}
        for side, rows in ids.items():
            values |= vectors(self._gather, side, [c for c in self._columns if c.side == side], rows)
        terms = PairTerms(values, decided)
        return [_flat(_folded(aggregate, terms, decided)) for aggregate in self._aggregates]


def vectors(gather: Gather, side: Side, of: Sequence[Col], rows: Ints) -> dict[Col, Vector]:
    """The values of the columns ``of`` of ``side`` in these ``rows``, which ``gather`` gets."""
    return {c: column(chunked(a)) for c, a in zip(of, gather(side, [c.name for c in of], rows), strict=True)}


def chunked(array: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    """``array`` in chunks."""
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _blocks(lengths: Ints) -> list[slice]:
    """Slices of base tuples with so many partners, whose pairs are folded at once."""
    ends, cuts = np.cumsum(lengths), [0]
    while cuts[-1] < len(ends):
        before = int(ends[cuts[-1] - 1]) if cuts[-1] else 0
        cuts.append(max(int(np.searchsorted(ends, before + _BLOCK, side="right")), cuts[-1] + 1))
    return [slice(a, b) for a, b in pairwise(cuts)]


def without_partners(aggregate: Aggregate, values: Mapping[Col, Vector], n: int) -> pa.Array:
    """The values of ``aggregate`` for ``n`` base tuples that meet nothing, each over one row whose columns of S are
    NULL, as SQL's LEFT JOIN has it. ``values``: the columns of R that it needs, as `column` has them.
    """
    lacking = {c: _null(c.type, n) for e in aggregate.args for c in columns(e) if c.side == "s"}
    one = np.ones(n, np.int64)
    decided = DecidedBases(np.empty(0, ITEM), -one, one, -one)
    return _flat(_folded(aggregate, PairTerms({**values, **lacking}, decided), decided))


def may_have_values_without_partners(aggregate: Aggregate) -> bool:
    """False if ``aggregate`` passes over rows whose columns of S are NULL, as one of its arguments is NULL then."""
    if aggregate.definition.listed:
        return True
    return not any(isinstance(c, Col) and c.side == "s" for e in aggregate.args for c in causes(e))


def _null(type_: Type, n: int) -> Vector:
    """``n`` times NULL, as `column` has it."""
    match type_:
        case Float():
            values: Array = np.zeros(n, np.float32 if type_.bits == 32 else np.float64)
        case Bool():
            values = np.zeros(n, np.bool_)
        case String():
            values = np.full(n, "", object)
        case Binary():
            values = np.full(n, b"", object)
        case _:
            values = np.zeros(n, np.int64)
    return Vector(values, np.zeros(n, np.bool_))


def _flat(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _folded(aggregate: Aggregate, pairs: PairTerms, decided: DecidedBases) -> pa.Array | pa.ChunkedArray:
    """The values of ``aggregate`` for each base tuple that is ``decided``, whose pairs ``pairs`` has."""
    if aggregate.definition.listed:
        type_, ends = aggregate_types(aggregate), np.cumsum(decided.lengths)
        values = _flat(to_arrow(pairs.vector(aggregate.args[0]), type_.value_type, aggregate.text))
        return pa.ListArray.from_arrays(pa.array(np.insert(ends, 0, 0), pa.int32()), values, type_,
                                        mask=pa.array(decided.lengths == 0))
    if not aggregate.terms:
        return _checked(aggregate, pairs.whole(aggregate), decided.bases)
    return finished(aggregate, [pairs.fold(term) for term in aggregate.terms], decided.bases)


def finished(aggregate: Aggregate, terms: Sequence[Vector], bases: Ints) -> pa.Array | pa.ChunkedArray:
    """The values of ``aggregate`` by those of its ``terms``. Raises `InputError` for a sum that does not
    fit, naming the row of ``bases``.
    """
    return _checked(aggregate, aggregate.definition.finish(terms), bases)


def _checked(aggregate: Aggregate, found: Vector, bases: Ints) -> pa.Array | pa.ChunkedArray:
    type_ = aggregate_types(aggregate)
    if aggregate.definition.may_overflow and found.values.dtype.kind != "f":
        _check(found.values, found.denominator, type_, aggregate.text, bases)
    return to_arrow(found, type_, aggregate.definition.result_text(aggregate.text))


def _check(sums: Array, denominator: int, type_: pa.DataType, text: str, bases: Ints) -> None:
    """Raise `InputError` for the first of the ``sums`` that does not fit ``type_``, naming its base tuple."""
    if pa.types.is_decimal(type_):
        high = (10**type_.precision - 1) * denominator // 10**type_.scale
        low = -high
    elif type_ == pa.uint64():
        low, high = 0, (2**64 - 1) * denominator
    else:
        low, high = -(2**63) * denominator, (2**63 - 1) * denominator
    if sums.dtype == np.int64 and low <= -(2**63) and high >= 2**63 - 1:
        return
    wrong = np.flatnonzero([not low <= int(v) <= high for v in sums.tolist()])
    if len(wrong):
        value = Fraction(int(sums[wrong[0]]), denominator)
        raise InputError(f"{text!r} of row {bases[wrong[0]]} of r must fit {type_}, but is {value}; sum CAST(… AS "
                         f"DOUBLE)")


def folded_values(query: Query, found: TableFolds, gather: Gather) -> list[pa.ChunkedArray]:
    """The values of each aggregate over whole tables, one for each base tuple: from the terms ``found``, or else from
    the partners of some base tuples after the other, whose columns ``gather`` gets. Raises `InputError` for a sum that
    does not fit.
    """
    bases = found.bases
    others = tuple(a for a in query.aggregates if not a.terms or not found.terms.issuperset(a.terms))
    ranged = [a for a in query.aggregates if a not in others]
    of_partners = iter(_folded_partners(query, others, found, gather) if others else ())

    def fold(mine: slice) -> list[pa.Array | pa.ChunkedArray] | InputError:
        try:
            return [finished(a, [found.term(term, mine) for term in a.terms], bases[mine]) for a in ranged]
        except InputError as error:  # the first row that is wrong is named, whichever thread sees one first
            return error

    parts = list[list[pa.Array]]()
    for part in found.work.each(len(bases), fold):
        if isinstance(part, InputError):
            raise part
        parts.append([_flat(value) for value in part])
    values = iter([pa.chunked_array([part[n] for part in parts], aggregate_types(a)) for n, a in enumerate(ranged)])
    return [next(of_partners if a in others else values) for a in query.aggregates]


def _folded_partners(query: Query, aggregates: tuple[Aggregate, ...], found: TableFolds,
                     gather: Gather) -> list[pa.ChunkedArray]:
    """The values of the ``aggregates`` that ranges do not tell."""
    rows = FoldedRows(replace(query, aggregates=aggregates), gather)
    lengths = found.lengths()
    parts = [rows.block(DecidedBases(np.empty(0, ITEM), found.bases[mine], lengths[mine], found.partners(mine)))
             for mine in _blocks(lengths)]
    return [pa.chunked_array([part[n] for part in parts], aggregate_types(a)) for n, a in enumerate(aggregates)]


class PairTerms:
    """Terms of the base tuples that are ``decided``, whose pairs lie one after the other. ``values``: the columns of
    each pair.
    """

    def __init__(self, values: Mapping[Col, Vector], decided: DecidedBases):
        self._columns, self._decided = values, decided
        end = np.cumsum(decided.lengths)
        self._pairs = int(end[-1]) if len(end) else 0
        self._vectors: dict[Expr, Vector] = {}
        self._ranges = RangeTerms(np.arange(self._pairs), end - decided.lengths, end, self.vector, by_arrival=True)

    def vector(self, e: Expr) -> Vector:
        """The value of ``e`` for each pair."""
        if e not in self._vectors:
            with np.errstate(all="ignore"):
                self._vectors[e] = evaluate_columns(e, self._columns, self._pairs)
        return self._vectors[e]

    def fold(self, term: Term) -> Vector:
        """The value of ``term`` for each base tuple; NULL where no partner has one."""
        if isinstance(term, FoldTerm):
            return fold_user(term, [self.vector(e) for e in term.args], self._decided)
        return self._ranges.fold(term)

    def whole(self, aggregate: Aggregate) -> Vector:
        """The values of a built-in ``aggregate`` without terms."""
        args, lengths = aggregate.args, self._decided.lengths
        valid = np.logical_and.reduce([self.vector(e).valid for e in args])
        counts = np.bincount(np.repeat(np.arange(len(lengths)), lengths)[valid], minlength=len(lengths))
        first = self.vector(args[0])
        chosen = Vector(first.values[valid], first.valid[valid], first.denominator)
        return aggregate.definition.of_pairs(args, chosen, counts, _fold)


def _fold(term: Term, values: Vector, counts: Ints) -> Vector:
    """The value of ``term`` of ``values``, ``counts`` (n,) for each base tuple."""
    end = np.cumsum(counts)
    return RangeTerms(np.arange(len(values.values)), end - counts, end, lambda _: values, by_arrival=True).fold(term)
