"""Comparison keys of whole numbers: sums of terms of one stream as unsigned integers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..lang.eval.vector import Vector, evaluate, magnitude, widen
from ..lang.nulls import may_be_null
from ..lang.ranges import value_range
from ..lang.schema import Side
from .linear import Term
from .text_keys import Codes, Texts

__all__ = ["ExactKey", "WideKey", "exact_key"]


@dataclass(frozen=True)
class ExactKey:
    """A whole number: the sum of ``terms``, between ``low`` and ``high``."""

    side: Side
    terms: tuple[Term, ...]
    low: int
    high: int
    nullable: bool

    @property
    def width(self) -> int:
        """Bits of a code."""
        return max(1, (self.high - self.low + self.nullable).bit_length())

    def values(self, table: pa.Table, texts: Texts) -> Vector:
        """The whole numbers, for every row."""
        total: Any = np.zeros(table.num_rows, np.int64)
        valid = np.ones(table.num_rows, np.bool_)
        for term in self.terms:
            v = evaluate(term.expr, table)
            scale = term.scale // v.denominator
            size = magnitude(v.values) * abs(term.factor) * scale
            scaled = widen(v.values.astype(np.int64) if v.values.dtype == np.bool_ else v.values, size) * scale
            scaled = scaled * term.factor
            total = widen(total, magnitude(total) + magnitude(scaled)) + scaled
            valid &= v.valid
        return Vector(total, valid)

    def encode(self, values: Vector) -> Codes:
        """Codes of values; those of NULL are meaningless."""
        return self.code(values.values)

    def code(self, values: npt.NDArray[Any]) -> Codes:
        """Codes of whole numbers from ``low`` to ``high``."""
        offset = self.nullable - self.low
        if values.dtype == np.int64:  # modulo 2**64, in which the result is right whatever wraps on the way
            return values.astype(np.uint64) + np.uint64(offset % 2**64)
        return np.array([int(v) + offset & (2**64 - 1) for v in values], np.uint64)


@dataclass(frozen=True)
class WideKey:
    """The whole number ``exact``, which needs more than 64 bits, without its last ``shift`` bits.

    Its order is that of the numbers but for equal codes, so that intervals of numbers become intervals of codes which
    hold those numbers, and others near their ends.
    """

    exact: ExactKey
    shift: int

    @property
    def side(self) -> Side:
        """The stream."""
        return self.exact.side

    @property
    def nullable(self) -> bool:
        """Whether code 0 stands for NULL."""
        return True

    @property
    def width(self) -> int:
        """Bits of a code."""
        return self._code(self.exact.high).bit_length()

    def values(self, table: pa.Table, texts: Texts) -> Vector:
        """The whole numbers, for every row."""
        return self.exact.values(table, texts)

    def encode(self, values: Vector) -> Codes:
        """Codes of values; those of NULL are meaningless."""
        return self.code(values.values)

    def code(self, values: npt.NDArray[Any]) -> Codes:
        """Codes of whole numbers from the exact key's ``low`` to its ``high``."""
        if values.dtype == np.int64:
            offset = 1 - (self.exact.low >> self.shift)
            return (values >> self.shift).astype(np.uint64) + np.uint64(offset % 2**64)
        return np.array([self._code(int(v)) & (2**64 - 1) for v in values], np.uint64)

    def _code(self, value: int) -> int:
        return (value >> self.shift) - (self.exact.low >> self.shift) + 1


def exact_key(side: Side, terms: tuple[Term, ...]) -> ExactKey | WideKey:
    """The key for ``terms``; where it would be wider than 64 bits, without as many of its last ones."""
    low = high = 0
    for t in terms:
        a, b = (x * t.factor * t.scale for x in value_range(t.expr))
        low, high = low + min(int(a), int(b)), high + max(int(a), int(b))
    key = ExactKey(side, terms, low, high, any(may_be_null(t.expr) for t in terms))
    if key.width <= 64:
        return key
    if (high - low).bit_length() <= 64:
        return replace(key, nullable=False)  # NULL is then a matter of the guard
    shift = 1
    while WideKey(key, shift).width > 64:
        shift += 1
    return WideKey(key, shift)
