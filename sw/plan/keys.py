"""Comparison keys: one-sided values as unsigned integers whose order is the order of the values.

Code 0 stands for NULL, and for a tuple whose guard (a condition on its own stream) is not true: it lies outside every
interval that a probe can ask for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

import numpy as np
import pyarrow as pa

from ..lang.eval.vector import Vector
from ..lang.schema import Side
from .exact_keys import ExactKey, WideKey, exact_key
from .float_keys import FloatKey, float_codes, float_values
from .text_keys import Codes, PrefixKey, TextKey, Texts

__all__ = ["Codes", "ExactKey", "FloatKey", "Key", "PrefixKey", "TextKey", "Texts", "UnitKey", "WideKey", "exact_key",
           "float_codes", "float_values"]


@dataclass(frozen=True)
class UnitKey:
    """No value at all: only whether the tuple takes part (1) or not (0)."""

    side: Side
    nullable: bool = True
    width: int = 1

    def values(self, table: pa.Table, texts: Texts) -> Vector:
        """All present."""
        return Vector(np.ones(table.num_rows, np.uint64), np.ones(table.num_rows, np.bool_))

    def encode(self, values: Vector) -> Codes:
        """All 1."""
        return values.values.astype(np.uint64)


Key = Union[ExactKey, WideKey, FloatKey, PrefixKey, TextKey, UnitKey]
