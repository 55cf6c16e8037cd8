"""Comparison keys of floats: unsigned integers in SQL's total order of the values.

Where a key takes part in arithmetic that falls as the key grows, NaN is placed below all values instead of above, so
that every condition still selects one interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..lang.eval.vector import Vector, evaluate
from ..lang.ir import Expr
from ..lang.schema import Side
from .text_keys import Codes, Texts

__all__ = ["FloatKey", "float_codes", "float_values"]


@dataclass(frozen=True)
class FloatKey:
    """A float expression; NULL has a code of its own, so nullability costs no bit."""

    side: Side
    expr: Expr
    bits: int
    nan_low: bool
    nullable: bool = True

    @property
    def width(self) -> int:
        """Bits of a code."""
        return self.bits

    def values(self, table: pa.Table, texts: Texts) -> Vector:
        """The floats, for every row."""
        return evaluate(self.expr, table)

    def encode(self, values: Vector) -> Codes:
        """Codes of values; those of NULL are meaningless."""
        return float_codes(values.values, self.bits, self.nan_low)

    @property
    def low_code(self) -> int:
        """The smallest code of a value."""
        if self.nan_low:
            return 1
        return int(float_codes(np.array([-np.inf], _float_dtype(self.bits)), self.bits, False)[0])

    @property
    def high_code(self) -> int:
        """The largest code of a value."""
        top = np.inf if self.nan_low else np.nan
        return int(float_codes(np.array([top], _float_dtype(self.bits)), self.bits, self.nan_low)[0])


def _float_dtype(bits: int) -> type[np.float32] | type[np.float64]:
    return np.float32 if bits == 32 else np.float64


def float_codes(values: npt.NDArray[Any], bits: int, nan_low: bool) -> Codes:
    """Unsigned integers in SQL's order of the floats: −0.0 as 0.0, NaN above all, or 1 (below all) with ``nan_low``."""
    unsigned: Any = np.uint32 if bits == 32 else np.uint64
    canonical: npt.NDArray[Any] = np.where(values == 0, values.dtype.type(0), values)
    raw: Any = canonical.view(unsigned)
    sign = unsigned(1 << (bits - 1))
    codes = np.where(raw & sign, ~raw, raw | sign).astype(np.uint64)
    return np.where(np.isnan(values), np.uint64(1 if nan_low else 2**bits - 1), codes)


def float_values(codes: Codes, bits: int, nan_low: bool) -> npt.NDArray[Any]:
    """The floats of codes; codes that stand for no float give NaN."""
    unsigned: Any = np.uint32 if bits == 32 else np.uint64
    narrow: Any = codes.astype(unsigned)
    sign = unsigned(1 << (bits - 1))
    values = np.where(narrow & sign, narrow & ~sign, ~narrow).view(_float_dtype(bits))
    nan = np.uint64(1 if nan_low else 2**bits - 1)
    return np.where(codes == nan, _float_dtype(bits)(np.nan), values)
