"""Slots: numbers by which the tuples of a stream are spread over groups, each a function of the tuple's values alone.

A tuple is stored by the group ``slot mod groups``. Where the condition has an equality, the slot is a hash of the
equality's operand, so that partners have equal slots; else it is a hash of the tuple's own values, which spreads tuples
evenly (SplitJoin, section 4: any distribution of storage that no coordinator has to decide).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.lang.eval.vector import evaluate
from splitjoin.lang.ir import And, Cmp, Expr, sides
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Side
from splitjoin.lang.types import Binary, Float, is_text, plain

#: Number of slots, and so the most groups.
SLOTS = 1 << 15

U64 = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Slots:
    """The slots of tuples.

    Attributes:
        keys: For each stream the operand of an equality that all pairs fulfil; None where there is none.
    """

    keys: Mapping[Side, Expr] | None

    @classmethod
    def make(cls, query: Query) -> Slots:
        """The slots for ``query``: by an equality of its condition, if it has one and its windows count no rows."""
        by_rows = query.window_r.rows is not None or query.window_s.rows is not None
        return cls(None if by_rows or query.order.kind == "total" else equality(query.predicate))

    @property
    def hashed(self) -> bool:
        """True if a tuple goes to the one group of its key, False if it goes to all groups."""
        return self.keys is not None

    def of(self, side: Side, table: pa.Table, hot: frozenset[int]) -> npt.NDArray[np.uint16]:
        """The slots of tuples of stream ``side``, uint16 (n,), where those of the slots ``hot`` are spread evenly."""
        if not self.hashed:
            return self.of_values(table)
        slots = self.of_keys(side, table)
        everywhere = are_hot(slots, hot)
        return np.where(everywhere, self.of_values(table), slots) if everywhere.any() else slots

    def of_keys(self, side: Side, table: pa.Table) -> npt.NDArray[np.uint16]:
        """Slots by the key, uint16 (n,). A tuple whose key is NULL has no partner, and gets any slot."""
        assert self.keys is not None
        vector = evaluate(self.keys[side], table)
        return _slots(_hashed(vector.values, vector.denominator, self.keys[side]))

    def of_values(self, table: pa.Table) -> npt.NDArray[np.uint16]:
        """Slots by all columns of fixed width, uint16 (n,)."""
        mixed = np.full(table.num_rows, len(table.schema), np.uint64)
        for column in table.columns:
            if (bits := _bits(plain(column))) is not None:
                mixed = _mix(mixed ^ bits)
        return _slots(mixed)


def are_hot(slots: npt.NDArray[np.uint16], hot: frozenset[int]) -> npt.NDArray[np.bool_]:
    """True where ``slots``, (n,), are in ``hot``."""
    return np.isin(slots, np.array(sorted(hot), np.uint16)) if hot else np.zeros(len(slots), np.bool_)


def equality(predicate: Expr) -> dict[Side, Expr] | None:
    """The operands of an equality of R and S that every pair of ``predicate`` fulfils; None if it has none."""
    for part in predicate.args if isinstance(predicate, And) else (predicate,):
        if isinstance(part, Cmp) and part.op == "=":
            left, right = list(sides(part.a)), list(sides(part.b))
            if len(left) == len(right) == 1 and left != right:
                return {left[0]: part.a, right[0]: part.b}
    return None


def _slots(hashes: U64) -> npt.NDArray[np.uint16]:
    return (_mix(hashes) >> np.uint64(49)).astype(np.uint16)


def _mix(x: U64) -> U64:
    """A bijection of 64 bits in which each bit of the result depends on all bits (the finalizer of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: U64 = x ^ (x >> np.uint64(31))
    return mixed


def _hashed(values: npt.NDArray[Any], denominator: int, key: Expr) -> U64:
    """Hashes of a key's values, equal for values that compare equal."""
    if isinstance(key.type, Float):
        doubles = values.astype(np.float64) + 0.0  # −0.0 equals 0.0
        doubles[np.isnan(doubles)] = np.nan
        return doubles.view(np.uint64)
    if is_text(key.type) or isinstance(key.type, Binary):
        found = {v: zlib.crc32(v.encode() if isinstance(v, str) else v) for v in set(values.tolist())}
        return np.array([found[v] for v in values.tolist()], np.uint64)
    if values.dtype == np.bool_:
        return values.astype(np.uint64)
    if values.dtype.kind == "i" and denominator == 1:
        return _mix(values.astype(np.int64).view(np.uint64))
    # Whole numbers have the hash of int64 where they fit, whatever their type.
    found = {v: _exact(Fraction(v, denominator)) for v in set(values.tolist())}
    return np.array([found[v] for v in values.tolist()], np.uint64)


def _exact(value: Fraction) -> int:
    if value.denominator == 1 and -(2**63) <= value < 2**63:
        return int(_mix(np.array([int(value)], np.int64).view(np.uint64))[0])
    return hash(value) % 2**64  # Python's hashes of numbers are the same in every process


def _bits(column: pa.ChunkedArray) -> U64 | None:
    """The values of a column of fixed width as 64 bits each; None for other columns."""
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    elif pa.types.is_date32(kind) or pa.types.is_time32(kind):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time64(kind):
        column = column.cast(pa.int64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return None
    values = column.fill_null(pa.scalar(0, column.type)).to_numpy()
    if values.dtype.kind == "f":
        wide = values.astype(np.float64) + 0.0
        wide[np.isnan(wide)] = np.nan
    else:
        wide = values.astype(np.int64 if values.dtype.kind == "i" else np.uint64)
    bits: U64 = wide.view(np.uint64)
    return bits
