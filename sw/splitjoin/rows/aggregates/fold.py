"""Folding of the partners of many base tuples at once, with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.base.errors import InputError
from splitjoin.engines.device import ITEM
from splitjoin.lang.aggregate import Aggregate
from splitjoin.lang.eval.vector import Vector, column, evaluate_columns
from splitjoin.lang.ir import Col, columns
from splitjoin.lang.properties import causes
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Side
from splitjoin.lang.types import Binary, Bool, Float, String, Type

from ..result_values import result_type, to_arrow
from .float_sum import exact_float_sums
from .operator import Decided
from .user_fold import fold_user
from .user_values import user_result_type

__all__ = ["FoldedRows", "Gather", "aggregate_fields", "aggregate_types", "exact_differences", "exact_sums",
           "finished_sums", "may_have_values_without_partners", "without_partners"]

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
#: The columns ``names`` of the rows of a stream with these ids.
Gather = Callable[[Side, Sequence[str], Ints], Sequence[pa.Array | pa.ChunkedArray]]

#: Pairs that are folded at once, unless one base tuple has more.
_BLOCK = 1 << 20


def aggregate_types(aggregate: Aggregate) -> pa.DataType:
    """The Arrow type of an aggregate's values.

    Counts are int64, averages float64. A sum of integers is int64 (uint64 if those are), of decimals a decimal of 38
    digits, of floats float64. User-defined ones have what `user_result_type` says, all others the type of the value.
    """
    if aggregate.function in ("count", "count distinct"):
        return pa.int64()
    if aggregate.function == "avg":
        return pa.float64()
    if aggregate.fold is not None:
        return user_result_type(aggregate.fold)
    type_ = result_type(aggregate.args[0], aggregate.text)
    if aggregate.function != "sum":
        return type_
    if pa.types.is_decimal(type_):
        return pa.decimal128(38, type_.scale)
    if pa.types.is_floating(type_):
        return pa.float64()
    return pa.int64() if pa.types.is_integer(type_) and type_ != pa.uint64() else type_


def aggregate_fields(query: Query) -> list[pa.Field]:
    """The Arrow fields of the query's aggregates; counts are never NULL."""
    return [pa.field(a.name, aggregate_types(a), nullable=not a.function.startswith("count")) for a in query.aggregates]


class FoldedRows:
    """Computes the aggregates of ``query`` for decided base tuples; ``gather`` gets the columns of their partners."""

    def __init__(self, query: Query, gather: Gather):
        self._aggregates, self._gather = query.aggregates, gather
        self._columns = list(dict.fromkeys(c for a in query.aggregates for e in a.args for c in columns(e)))

    def arrays(self, decided: Decided) -> list[pa.ChunkedArray]:
        """The values of each aggregate, one for each base tuple. Raises `InputError` for a sum that does not fit."""
        ends = np.cumsum(decided.lengths)
        cuts = [0]
        while cuts[-1] < len(ends):
            before = int(ends[cuts[-1] - 1]) if cuts[-1] else 0
            cuts.append(max(int(np.searchsorted(ends, before + _BLOCK, side="right")), cuts[-1] + 1))
        parts = [self._block(decided.part(a, b)) for a, b in pairwise(cuts)]
        return [pa.chunked_array([part[n] for part in parts], aggregate_types(a))
                for n, a in enumerate(self._aggregates)]

    def _block(self, decided: Decided) -> list[pa.Array]:
        n = len(decided.partners)
        ids: dict[Side, Ints] = {"r": np.repeat(decided.bases, decided.lengths), "s": decided.partners}
        values: dict[Col, Vector] = {}
        for side, rows in ids.items():
            needed = [c for c in self._columns if c.side == side]
            found = self._gather(side, [c.name for c in needed], rows)
            values |= {c: column(a if isinstance(a, pa.ChunkedArray) else pa.chunked_array([a]))
                       for c, a in zip(needed, found, strict=True)}
        made = []
        for aggregate in self._aggregates:
            with np.errstate(all="ignore"):
                args = [evaluate_columns(e, values, n) for e in aggregate.args]
            made.append(_flat(_folded(aggregate, args, decided)))
        return made


def without_partners(aggregate: Aggregate, values: Mapping[Col, Vector], n: int) -> pa.Array:
    """The values of ``aggregate`` for ``n`` base tuples that meet nothing, each over one row whose columns of S are
    NULL, as SQL's LEFT JOIN has it. ``values``: the columns of R that it needs, as `column` has them.
    """
    lacking = {c: _null(c.type, n) for e in aggregate.args for c in columns(e) if c.side == "s"}
    with np.errstate(all="ignore"):
        args = [evaluate_columns(e, {**values, **lacking}, n) for e in aggregate.args]
    one = np.ones(n, np.int64)
    return _flat(_folded(aggregate, args, Decided(np.empty(0, ITEM), -one, one, -one)))


def may_have_values_without_partners(aggregate: Aggregate) -> bool:
    """False if ``aggregate`` passes over rows whose columns of S are NULL, as one of its arguments is NULL then."""
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


def _folded(aggregate: Aggregate, args: Sequence[Vector], decided: Decided) -> pa.Array | pa.ChunkedArray:
    """The values of ``aggregate`` for each base tuple, from its arguments' values for each pair."""
    if aggregate.fold is not None:
        return fold_user(aggregate, args, decided)
    lengths, function, type_ = decided.lengths, aggregate.function, aggregate_types(aggregate)
    if not args:
        return pa.array(lengths)
    value = args[0]
    if function in ("first", "last"):
        present = lengths > 0
        at = np.cumsum(lengths) - (lengths if function == "first" else 1)
        return to_arrow(_taken(value, np.where(present, at, 0), present), type_, aggregate.text)
    # All other functions pass over NULL.
    valid = value.valid if len(args) == 1 else value.valid & args[1].valid
    group = np.repeat(np.arange(len(lengths)), lengths)[valid]
    counts = np.bincount(group, minlength=len(lengths))
    present = counts > 0
    values = value.values[valid]
    if function == "count":
        return pa.array(counts)
    if function == "count distinct":
        _, codes = np.unique(values, return_inverse=True)
        distinct = np.unique(group * (int(codes.max(initial=0)) + 1) + codes)
        return pa.array(np.bincount(distinct // (int(codes.max(initial=0)) + 1), minlength=len(lengths)))
    if function in ("sum", "avg"):
        return _total(aggregate, values, value.denominator, counts, decided.bases)
    if function in ("argmin", "argmax"):
        _, ranks = np.unique(args[1].values[valid], return_inverse=True)
        order = np.lexsort((ranks if function == "argmin" else -ranks, group))  # stable: the first of equal ones
        best = np.flatnonzero(valid)[order[(np.cumsum(counts) - counts)[present]]]
        at = np.zeros(len(lengths), np.int64)
        at[present] = best
        return to_arrow(_taken(value, at, present), type_, aggregate.text)
    # NaN is the greatest value: maximum keeps it, fmin passes over it.
    ufunc = np.maximum if function == "max" else np.fmin if values.dtype.kind == "f" else np.minimum
    found = np.zeros(len(lengths), values.dtype)
    if len(values):
        found[present] = ufunc.reduceat(values, (np.cumsum(counts) - counts)[present])
    return to_arrow(Vector(found, present, value.denominator), type_, aggregate.text)


def _taken(v: Vector, at: Ints, present: npt.NDArray[np.bool_]) -> Vector:
    """The values at ``at``, NULL where not ``present``."""
    if not len(v.values):
        return Vector(np.zeros(len(at), v.values.dtype), np.zeros(len(at), np.bool_), v.denominator)
    return Vector(v.values[at], v.valid[at] & present, v.denominator)


def _total(aggregate: Aggregate, values: Array, denominator: int, counts: Ints, bases: Ints) -> pa.Array:
    """Sums, or averages, of ``counts`` of the ``values`` each; NULL where there is none."""
    empty = counts == 0
    if values.dtype.kind == "f":
        totals = exact_float_sums(values, counts)
        if aggregate.function == "avg":
            with np.errstate(all="ignore"):
                totals = totals / np.maximum(counts, 1)
        return pa.array(totals, pa.float64(), mask=empty, from_pandas=False)
    return finished_sums(aggregate, exact_sums(values, counts), denominator, counts, bases)


def finished_sums(aggregate: Aggregate, sums: Array, denominator: int, counts: Ints, bases: Ints) -> pa.Array:
    """The values of a sum or an average of exact numbers, from ``sums / denominator`` of ``counts`` values each; NULL
    where there is none. Raises `InputError` for a sum that does not fit, naming the row of ``bases``.
    """
    empty = counts == 0
    if aggregate.function == "avg":
        if isinstance(aggregate.args[0].type, Float):
            raise AssertionError("floats have floats as values")
        return pa.array(_quotients(sums, counts, denominator), pa.float64(), mask=empty, from_pandas=False)
    type_ = aggregate_types(aggregate)
    _check(sums, denominator, type_, aggregate.text, bases)
    return to_arrow(Vector(sums, ~empty, denominator), type_, aggregate.text)


def exact_sums(values: Array, counts: Ints) -> Array:
    """The sum of each group: int64 if all fit, else Python integers."""
    present = counts > 0
    starts = (np.cumsum(counts) - counts)[present]
    if values.dtype == object:
        sums = np.zeros(len(counts), object)
        if len(values):
            sums[present] = np.add.reduceat(values, starts)
        return sums
    values = values.astype(np.int64)
    low, high = np.zeros(len(counts), np.int64), np.zeros(len(counts), np.int64)
    if len(values):  # neither half can overflow with fewer than 2^31 values
        low[present] = np.add.reduceat(values & 0xFFFF_FFFF, starts)
        high[present] = np.add.reduceat(values >> 32, starts)
    return _joined(low, high)


def exact_differences(values: Ints, start: Ints, end: Ints) -> Array:
    """The sum of ``values`` from each ``start`` to before each ``end``: int64 if all fit, else Python integers."""
    low, high = (np.concatenate([[0], np.cumsum(half)]) for half in (values & 0xFFFF_FFFF, values >> 32))
    return _joined(low[end] - low[start], high[end] - high[start])


def _joined(low: Ints, high: Ints) -> Array:
    """``high`` · 2^32 + ``low``: int64 if all fit, else Python integers. Both arrays are changed."""
    high += low >> 32
    low &= 0xFFFF_FFFF
    if not len(high) or (int(high.min()) >= -(2**31) and int(high.max()) < 2**31):
        return (high << 32) | low
    exact: Array = high.astype(object) * 2**32 + low.astype(object)
    return exact


def _quotients(sums: Array, counts: Ints, denominator: int) -> npt.NDArray[np.float64]:
    """``sums / (counts · denominator)``, each rounded once."""
    below = np.maximum(counts, 1)
    exact = 2**53
    if sums.dtype == np.int64 and len(sums) and max(abs(int(sums.min())), abs(int(sums.max()))) < exact and (
            int(below.max()) * denominator < exact):
        return np.asarray(sums / (below * denominator), np.float64)
    return np.array([int(a) / (int(b) * denominator) for a, b in zip(sums.tolist(), below.tolist(), strict=True)],
                    np.float64)


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
