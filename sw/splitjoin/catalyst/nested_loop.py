"""`matched_pairs`: the pairs for which a condition is true, by Spark's own rules, one block of pairs after the other.

For the rows of a task for which integers may overflow, or a key raises an error, in Spark: there a condition in exact
numbers would not be Spark's. As quick as Spark's own nested loop, about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from splitjoin.base.errors import InputError

from .condition import BITS

Array = npt.NDArray[Any]
#: Pairs that are compared at once, about.
_BLOCK = 1 << 20
_EXACT = Context(prec=100)


@dataclass(frozen=True)
class _PairValues:
    """Values of pairs, where ``valid``; where ``raises``, Spark would raise an error."""

    values: Array
    valid: Array
    raises: Array


@dataclass(frozen=True)
class SideKeys:
    """The keys of one side: columns ``k0``, ``k1``, …, and for each the rows for which it raises an error, or None."""

    columns: pa.Table
    raises: Sequence[Array | None]
    texts: Sequence[str]


def matched_pairs(condition: Sequence[Any], r: SideKeys, s: SideKeys, *, until_first: bool = False
                  ) -> Iterator[tuple[Array, Array]]:
    """The pairs (rows of r, rows of s) for which ``condition`` is true. Raises `InputError` where Spark raises one;
    with ``until_first``, not for the pairs of a row of r behind its first match, as Spark does not look at these.
    """
    sides = {"l": _SideArrays(r), "r": _SideArrays(s)}
    for texts in _text_columns(condition):
        _rank(texts, sides)
    rows = max(1, _BLOCK // max(1, s.columns.num_rows))
    for start in range(0, r.columns.num_rows if s.columns.num_rows else 0, rows):
        end = min(start + rows, r.columns.num_rows)
        truth = _evaluated(condition, sides, slice(start, end))
        shape = end - start, s.columns.num_rows
        true = np.broadcast_to(truth.values & truth.valid & ~truth.raises, shape)
        if np.any(truth.raises & ~np.logical_or.accumulate(true, axis=1) if until_first else truth.raises):
            named = ", ".join(t for t in (*r.texts, *s.texts) if t) or "its arithmetic"
            raise InputError(f"the join's condition raises an error for some rows, as an integer does not fit its "
                             f"type, a divisor is 0 or a text is no number, in {named}; set "
                             f"spark.splitjoin.sql.enabled to false to get Spark's own error, or "
                             f"spark.sql.ansi.enabled to false for none")
        at, other = np.nonzero(true)
        yield at + start, other


class _SideArrays:
    """The keys of a side as arrays."""

    def __init__(self, keys: SideKeys):
        self.keys = keys
        self.columns: dict[int, tuple[Array, Array]] = {}

    def key(self, n: int, kind: str) -> tuple[Array, Array]:
        """The values of key ``n``, and where they are valid."""
        if n not in self.columns:
            column = self.keys.columns.column(n).combine_chunks()
            valid = pc.is_valid(column).to_numpy(zero_copy_only=False)
            self.columns[n] = _array(column, kind, valid), valid
        return self.columns[n]


def _array(column: pa.Array, kind: str, valid: Array) -> Array:
    if kind in BITS:
        return np.asarray(column.fill_null(0).to_numpy(zero_copy_only=False), f"i{BITS[kind] // 8}")
    if kind in ("float", "double", "boolean"):
        filled = column.fill_null(False if kind == "boolean" else 0.0)
        return np.asarray(filled.to_numpy(zero_copy_only=False))
    if kind.startswith("decimal"):
        return np.array([v if v is not None else Decimal(0) for v in column.to_pylist()], object)
    numbers = column.cast(pa.int32()) if pa.types.is_date32(column.type) else column
    return np.asarray(numbers.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False))


def _text_columns(node: Sequence[Any]) -> list[set[tuple[str, int]]]:
    """The text and the binary keys, which are compared with each other."""
    by_type: dict[str, set[tuple[str, int]]] = {"string": set(), "binary": set()}

    def visit(node: Sequence[Any]) -> None:
        if node[0] in ("l", "r"):
            if node[1] in by_type:
                by_type[node[1]].add((node[0], node[2]))
        elif node[0] != "lit":
            for a in node[3:]:
                visit(a)

    visit(node)
    return [f for f in by_type.values() if f]


def _rank(keys: set[tuple[str, int]], sides: Mapping[str, _SideArrays]) -> None:
    """Replace texts by numbers in the same order, that of their bytes."""
    named = sorted(keys)
    columns = [sides[side].keys.columns.column(n).combine_chunks() for side, n in named]
    data = [c.cast(pa.large_binary()) for c in columns]
    every = np.array([v if v is not None else b"" for c in data for v in c.to_pylist()], object)
    ranks = np.unique(every, return_inverse=True)[1].astype(np.int64)
    ends = np.cumsum([0, *map(len, data)])
    for (side, n), column, start, end in zip(named, columns, ends, ends[1:], strict=False):
        sides[side].columns[n] = ranks[start:end], pc.is_valid(column).to_numpy(zero_copy_only=False)


def _evaluated(node: Sequence[Any], sides: Mapping[str, _SideArrays], rows: slice) -> _PairValues:
    op, kind = node[0], node[1]
    if op in ("l", "r"):
        values, valid = sides[op].key(node[2], kind)
        raises = sides[op].keys.raises[node[2]]
        raised = np.zeros(len(values), bool) if raises is None else raises
        place = (rows, None) if op == "l" else (None, slice(None))
        return _PairValues(values[place], valid[place], raised[place])
    if op == "lit":
        return _PairValues(np.array([[_constant(kind, node[2])]], _dtype(kind)), np.array([[True]]),
                           np.array([[False]]))
    parts = [_evaluated(a, sides, rows) for a in node[3:]]
    if op in _LOGIC:
        return _LOGIC[op](parts)
    if op == "cast":
        return _PairValues(_cast(parts[0].values, node[3][1], kind), parts[0].valid, parts[0].raises)
    valid, raises = parts[0].valid, parts[0].raises
    for part in parts[1:]:  # Spark evaluates the second operand where the first one is not NULL
        raises = raises | valid & part.raises
        valid = valid & part.valid
    if op in _COMPARED:
        return _PairValues(_COMPARED[op](*(p.values for p in parts)), valid, raises)
    values, bad = _arithmetic(op, kind, [p.values for p in parts])
    return _PairValues(values, valid, raises | valid & bad if node[2] else raises)


def _constant(kind: str, value: Any) -> Any:
    if kind in ("float", "double"):
        return float.fromhex(value)
    return Decimal(value) if kind.startswith("decimal") else value


def _dtype(kind: str) -> Any:
    if kind in BITS:
        return f"i{BITS[kind] // 8}"
    return {"float": np.float32, "double": np.float64, "boolean": bool}.get(kind, object if "decimal" in kind else "i8")


def _cast(values: Array, kind: str, to: str) -> Array:
    if not to.startswith("decimal"):
        return values.astype(_dtype(to))
    return values if kind.startswith("decimal") else np.vectorize(lambda v: Decimal(int(v)), otypes=[object])(values)


def _arithmetic(op: str, kind: str, parts: list[Array]) -> tuple[Array, Array]:
    """The values in the type ``kind``, wrapped, and where they do not fit it."""
    none = np.zeros((1, 1), bool)
    if op == "sqrt":
        with np.errstate(invalid="ignore"):
            return np.sqrt(parts[0].astype(np.float64)), none
    if op == "datediff":
        return (parts[0].astype(np.int64) - parts[1].astype(np.int64)).astype(np.int32), none
    if kind.startswith("decimal"):
        exact: Any = {"+": _EXACT.add, "-": _EXACT.subtract, "*": _EXACT.multiply, "abs": _EXACT.abs,
                      "neg": _EXACT.minus}[op]
        return np.vectorize(exact, otypes=[object])(*parts), none
    with np.errstate(all="ignore"):
        result = _MADE[op](*parts)
    if kind in ("float", "double") or op in _WITHIN:
        return result, none
    a, b = parts[0], parts[-1]
    least = np.iinfo(result.dtype).min
    if op == "+":
        return result, ((a ^ result) & (b ^ result)) < 0
    if op == "-":
        return result, ((a ^ b) & (a ^ result)) < 0
    if op != "*":
        return result, a == least
    # What Python's integers give, where the product of the floats is not far below the limit.
    near = np.abs(a.astype(np.float64) * b.astype(np.float64)) >= -float(least) * 0.99
    bad = np.zeros(np.shape(near), bool)
    for at in zip(*np.nonzero(near), strict=True):
        product = int(np.broadcast_to(a, near.shape)[at]) * int(np.broadcast_to(b, near.shape)[at])
        bad[at] = not int(least) <= product < -int(least)
    return result, bad


#: Operations on numbers; the divisors of whole numbers are positive constants.
_MADE: Mapping[str, Callable[..., Array]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "abs": np.abs, "neg": np.negative, "mod": np.fmod,
    "pmod": np.mod, "div": lambda a, b: (a - np.fmod(a, b)) // b, "&": np.bitwise_and, "|": np.bitwise_or,
    "^": np.bitwise_xor}
#: Those of whole numbers whose values fit the type of these.
_WITHIN = ("div", "mod", "pmod", "&", "|", "^")


def _less(a: Array, b: Array) -> Array:
    if a.dtype.kind != "f":
        return np.asarray(a < b, bool)
    return (a < b) | ~np.isnan(a) & np.isnan(b)  # NaN is the greatest


def _equal(a: Array, b: Array) -> Array:
    return np.asarray(a == b, bool) if a.dtype.kind != "f" else (a == b) | np.isnan(a) & np.isnan(b)


_COMPARED: Mapping[str, Callable[[Array, Array], Array]] = {
    "=": _equal, "<": _less, ">": lambda a, b: _less(b, a), "<=": lambda a, b: ~_less(b, a),
    ">=": lambda a, b: ~_less(a, b),
}


def _and(parts: list[_PairValues]) -> _PairValues:
    a, b = parts
    false = a.valid & ~a.values | b.valid & ~b.values
    return _PairValues(~false, false | a.valid & b.valid, a.raises | b.raises & ~(a.valid & ~a.values))


def _or(parts: list[_PairValues]) -> _PairValues:
    a, b = parts
    true = a.valid & a.values | b.valid & b.values
    return _PairValues(true, true | a.valid & b.valid, a.raises | b.raises & ~(a.valid & a.values))


def _same(parts: list[_PairValues]) -> _PairValues:
    a, b = parts
    values = a.valid & b.valid & _equal(a.values, b.values) | ~a.valid & ~b.valid
    return _PairValues(values, np.ones((1, 1), bool), a.raises | b.raises)


def _null(parts: list[_PairValues]) -> _PairValues:
    return _PairValues(~parts[0].valid, np.ones((1, 1), bool), parts[0].raises)


def _not_null(parts: list[_PairValues]) -> _PairValues:
    return _PairValues(parts[0].valid, np.ones((1, 1), bool), parts[0].raises)


def _extreme(better: Callable[[Array, Array], Array]) -> Callable[[list[_PairValues]], _PairValues]:
    def of(parts: list[_PairValues]) -> _PairValues:
        extreme = parts[0]
        for part in parts[1:]:
            takes = part.valid & (~extreme.valid | better(part.values, extreme.values))
            extreme = _PairValues(np.where(takes, part.values, extreme.values), extreme.valid | part.valid,
                              extreme.raises | part.raises)
        return extreme

    return of


def _coalesce(parts: list[_PairValues]) -> _PairValues:
    first = parts[0]
    for part in parts[1:]:
        first = _PairValues(np.where(first.valid, first.values, part.values), first.valid | part.valid,
                        first.raises | ~first.valid & part.raises)
    return first


def _case(parts: list[_PairValues]) -> _PairValues:
    if len(parts) % 2:
        chosen = parts[-1]
    else:
        none = np.zeros((1, 1), bool)
        chosen = _PairValues(np.zeros_like(parts[1].values), none, none)
    for when, then in zip(parts[-2 - len(parts) % 2::-2], parts[-1 - len(parts) % 2::-2], strict=True):
        takes = when.valid & when.values
        chosen = _PairValues(np.where(takes, then.values, chosen.values), np.where(takes, then.valid, chosen.valid),
                         when.raises | np.where(takes, then.raises, chosen.raises))
    return chosen


def _in(parts: list[_PairValues]) -> _PairValues:
    matches = _compared(parts[0], parts[1])
    for part in parts[2:]:
        matches = _or([matches, _compared(parts[0], part)])
    return matches


def _compared(a: _PairValues, b: _PairValues) -> _PairValues:
    return _PairValues(_equal(a.values, b.values), a.valid & b.valid, a.raises | a.valid & b.raises)


_LOGIC: Mapping[str, Callable[[list[_PairValues]], _PairValues]] = {
    "and": _and, "or": _or, "not": lambda p: _PairValues(~p[0].values, p[0].valid, p[0].raises), "<=>": _same,
    "isnull": _null, "isnotnull": _not_null, "greatest": _extreme(lambda a, b: _less(b, a)), "least": _extreme(_less),
    "coalesce": _coalesce, "if": _case, "case": _case, "in": _in,
}
