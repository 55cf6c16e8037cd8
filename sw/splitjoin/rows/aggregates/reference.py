"""The reference for aggregates: plain Python, a base tuple at a time (semantics, section 8)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from splitjoin.base.arrays import Ints
from splitjoin.base.errors import InputError
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import ITEM, PAIR, Items
from splitjoin.engines.golden import tuples_of
from splitjoin.lang.aggregate import Aggregate
from splitjoin.lang.aggregate_functions import FoldFailure, FoldTerm
from splitjoin.lang.eval.column_values import narrowed
from splitjoin.lang.eval.scalar import compile_condition
from splitjoin.lang.ir import columns
from splitjoin.lang.properties import denominator
from splitjoin.lang.query import Query
from splitjoin.lang.types import Date, Decimal, Duration, Timestamp, is_exact

from ..kinds import reference_rows
from ..result_values import to_arrow
from .fold import aggregate_types
from .user_values import argument_error, overflow_error, result_error


def reference_aggregates(query: Query, arrivals: Arrivals, items: Items,
                         groups: Ints | None = None) -> tuple[Items, list[pa.ChunkedArray]]:
    """The rows of ``query`` from all arrivals and all items of the inner join, and the values of its aggregates.
    ``groups``: as of `identical_rows`, for SQL's GROUP BY; identical tuples of R are one base.
    """
    rows = reference_rows(query, arrivals, items, bases=True)
    partners = defaultdict[int, list[int]](list)
    for kind, _, r, s in items.tolist():
        if kind == PAIR:
            partners[r].append(s)
    if groups is not None:
        rows, partners = _grouped(query, rows, partners, groups)
    read = [c for a in query.aggregates for e in a.args for c in columns(e)]
    tuples = {side: tuples_of(arrivals.table(side), side, read) for side in ("r", "s")}
    tuples["s"].append(dict.fromkeys(c.name for c in read if c.side == "s"))  # partner -1: NULL
    bases = [r for kind, _, r, _ in rows.tolist() if kind == PAIR]
    made = []
    for aggregate in query.aggregates:
        evaluators, partners_of = [compile_condition(e) for e in aggregate.args], [sorted(partners[b]) for b in bases]
        with np.errstate(all="ignore"):
            given = [[[f(tuples["r"][base], tuples["s"][s]) for f in evaluators] for s in mine]
                     for base, mine in zip(bases, partners_of, strict=True)]
            try:
                values = aggregate.definition.references(given, aggregate.args)
            except FoldFailure as failure:
                raise _failed(aggregate, failure, bases, partners_of) from None
        made.append(pa.chunked_array([_array(aggregate, [_checked(aggregate, value, base) for value, base in zip(
            values, bases, strict=True)])]))
    return rows, made


def _grouped(query: Query, rows: Items, partners: Mapping[int, list[int]],
             groups: Ints) -> tuple[Items, defaultdict[int, list[int]]]:
    """``rows`` with one base tuple for identical ones, and the partners of all of these; -1 for one without."""
    chosen: dict[int, int] = {}
    kept, met = [], defaultdict[int, list[int]](list)
    for item in rows.tolist():
        kind, _, base, _ = item
        if kind != PAIR:
            kept.append(item)
            continue
        group = int(groups[base])
        if group not in chosen:
            chosen[group] = base
            kept.append(item)
        met[chosen[group]] += partners[base] or ([] if query.kind.is_inner else [-1])
    return np.array(kept, ITEM), met


def _failed(aggregate: Aggregate, failure: FoldFailure, bases: Sequence[int],
            partners: Sequence[Sequence[int]]) -> InputError:
    """The error for the ``failure`` of a user-defined aggregate, with the rows."""
    (term,) = aggregate.terms
    assert isinstance(term, FoldTerm)
    base = bases[failure.base]
    if failure.argument is not None and failure.partner is not None:
        return argument_error(term, failure.argument, failure.value, base, partners[failure.base][failure.partner])
    if failure.slot is not None:
        return overflow_error(term, failure.slot, failure.value, base)
    return result_error(term, failure.value, base)


def _checked(aggregate: Aggregate, value: Any, base: int) -> Any:
    type_ = aggregate_types(aggregate)
    if not aggregate.definition.may_overflow or value is None or pa.types.is_floating(type_):
        return value
    high = Fraction(2**64 - 1 if type_ == pa.uint64() else 2**63 - 1)
    low = Fraction(0 if type_ == pa.uint64() else -(2**63))
    if pa.types.is_decimal(type_):
        high = Fraction(10**type_.precision - 1, 10**type_.scale)
        low = -high
    if not low <= value <= high:
        raise InputError(f"{aggregate.text!r} of row {base} of r must fit {type_}, but is {value}; sum CAST(… AS "
                         f"DOUBLE)")
    return value


def _array(aggregate: Aggregate, values: Sequence[Any], type_: pa.DataType | None = None) -> pa.Array:
    """``values``, as the scalar evaluator has them, in Arrow's type: that of the aggregate by default."""
    type_ = type_ or aggregate_types(aggregate)
    result = aggregate.definition.result(aggregate.args)
    exact = result is not None and is_exact(result.type) and not pa.types.is_floating(type_)
    if aggregate.definition.computed and exact and result is not None:
        per = denominator(result)
        whole = np.array([0 if v is None else int(v * per) for v in values], object)
        made = narrowed(whole, np.array([v is not None for v in values], np.bool_), per)
        return to_arrow(made, type_, aggregate.definition.result_text(aggregate.text))
    of = aggregate.args[0].type if aggregate.args else None
    if pa.types.is_list(type_):
        return pa.array([None if v is None else _array(aggregate, v, type_.value_type) for v in values], type_)
    if pa.types.is_decimal(type_):
        # Through text, which Arrow reads exactly.
        return pa.array([None if v is None else _digits(Fraction(v), type_.scale) for v in values],
                        pa.string()).cast(type_)
    if pa.types.is_floating(type_):
        return pa.array([None if v is None else float(v) for v in values], type_, from_pandas=False)
    if pa.types.is_temporal(type_) and isinstance(of, (Date, Timestamp, Duration)):
        plain = pa.int32() if type_.bit_width == 32 else pa.int64()
        return pa.array([None if v is None else int(v) for v in values], plain).view(type_)
    if pa.types.is_integer(type_):
        return pa.array([None if v is None else int(v) for v in values], type_)
    assert not isinstance(of, Decimal), "decimals are decimals"
    return pa.array(values, type_)


def _digits(value: Fraction, scale: int) -> str:
    scaled = value * 10**scale
    assert scaled.denominator == 1, "the type has all digits"
    digits = str(abs(scaled.numerator)).rjust(scale + 1, "0")
    point = len(digits) - scale
    return f"{'-' * (scaled < 0)}{digits[:point]}{'.' * (scale > 0)}{digits[point:]}"
