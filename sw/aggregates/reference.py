"""The reference for aggregates: plain Python, a base tuple at a time (semantics, section 8)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from ..arrival import Arrivals
from ..device.api import PAIR, Items
from ..errors import InputError
from ..golden import row_values
from ..kinds import reference_rows
from ..lang.aggregate import Aggregate
from ..lang.eval.scalar import RowValue, compile_condition
from ..lang.ir import columns
from ..lang.query import Query
from ..lang.types import Date, Decimal, Duration, Float, Timestamp
from .float_sum import rounded_sum
from .fold import aggregate_types

__all__ = ["reference_aggregates"]


def reference_aggregates(query: Query, arrivals: Arrivals, items: Items) -> tuple[Items, list[pa.Array]]:
    """The rows of ``query`` from all arrivals and all items of the inner join, and the values of its aggregates."""
    rows = reference_rows(query, arrivals, items, bases=True)
    partners = defaultdict(list)
    for kind, _, r, s in items.tolist():
        if kind == PAIR:
            partners[r].append(s)
    tuples = {side: _tuples(query, side, arrivals.table(side)) for side in ("r", "s")}
    bases = [r for kind, _, r, _ in rows.tolist() if kind == PAIR]
    made = []
    for aggregate in query.aggregates:
        evaluators = [compile_condition(e) for e in aggregate.args]
        values = []
        for base in bases:
            with np.errstate(all="ignore"):
                folded = [[f(tuples["r"][base], tuples["s"][s]) for f in evaluators] for s in sorted(partners[base])]
            values.append(_checked(aggregate, _fold(aggregate, folded), base))
        made.append(_array(aggregate, values))
    return rows, made


def _tuples(query: Query, side: str, table: pa.Table) -> list[dict[str, RowValue]]:
    """The values of the aggregates' columns of each tuple."""
    needed = {c.name: c.type for a in query.aggregates for e in a.args for c in columns(e) if c.side == side}
    values = [row_values(table.column(name), type_) for name, type_ in needed.items()]
    return [dict(zip(needed, row, strict=True)) for row in zip(*values, strict=True)] if needed else [{}] * len(table)


def _fold(aggregate: Aggregate, rows: list[list[RowValue]]) -> Any:
    """The aggregate of the arguments' values, one list for each partner, by arrival."""
    function = aggregate.function
    if not aggregate.args:
        return len(rows)
    if function in ("first", "last"):
        return None if not rows else rows[0 if function == "first" else -1][0]
    present = [row for row in rows if None not in row]
    values = [row[0] for row in present]
    if function == "count":
        return len(values)
    if function == "count distinct":
        return len({_key(v) for v in values})
    if not values:
        return None
    if function in ("sum", "avg"):
        is_float = isinstance(aggregate.args[0].type, Float)
        if is_float:
            total = _float_sum([float(v) for v in values])
            return total if function == "sum" else total / len(values)
        exact = sum((Fraction(v) for v in values), Fraction(0))
        mean = exact / len(values)
        return exact if function == "sum" else mean.numerator / mean.denominator
    best = present[0]
    for row in present[1:]:
        ours, theirs = _key(row[-1]), _key(best[-1])
        if ours > theirs if function in ("max", "argmax") else ours < theirs:
            best = row
    return best[0]


def _float_sum(values: list[float]) -> float:
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # of a partial sum; infinities of both signs
        return rounded_sum(values)


def _key(value: Any) -> tuple[bool, Any]:
    """``value`` for comparisons: NaN equals NaN, and is greater than all others."""
    nan = value != value
    return nan, 0 if nan else value


def _checked(aggregate: Aggregate, value: Any, base: int) -> Any:
    type_ = aggregate_types(aggregate)
    if aggregate.function != "sum" or value is None or pa.types.is_floating(type_):
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


def _array(aggregate: Aggregate, values: Sequence[Any]) -> pa.Array:
    """``values``, as the scalar evaluator has them, in Arrow's type."""
    type_ = aggregate_types(aggregate)
    of = aggregate.args[0].type if aggregate.args else None
    if pa.types.is_decimal(type_):
        # Through text, which Arrow reads exactly.
        return pa.array([None if v is None else _digits(Fraction(v), type_.scale) for v in values],
                        pa.string()).cast(type_)
    if pa.types.is_floating(type_):
        return pa.array([None if v is None else float(v) for v in values], type_, from_pandas=False)
    if pa.types.is_temporal(type_) and isinstance(of, (Date, Timestamp, Duration)):
        plain = pa.int32() if pa.types.is_date(type_) else pa.int64()
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
