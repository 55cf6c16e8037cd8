"""Operations on integers, each declared once: its names, its type, the range of its values, and how to evaluate it.

An operand is an integer column, an integer literal or another such operation. If an operand is NULL, so is the value.
The front ends, the evaluators and the passes read `OPERATIONS`. The CPU engine compiles operations that have a template
in `splitjoin.engines.compiled.expression_source`, and evaluates the others by NumPy. For circuits, the host computes an
operation on columns of one stream once for each tuple; one on columns of both streams is computed in the
circuit where `splitjoin.hls.condition` has it, and verified by the host else.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

from splitjoin.base.arrays import Array

from .types import EXACT, Int, Type

#: Least and greatest value, both included.
Range = tuple[Fraction, Fraction]


@dataclass(frozen=True, kw_only=True)
class Operation:
    """An operation on one or two integers.

    ``t`` is the operands' common type: the wider one, signed if one operand is.

    Attributes:
        name: In SQL, in PySpark and in the IR's text: a function's name, or an operator's symbol. In Python a function
            is a method of that name.
        help: A phrase that says what it computes.
        type: Returns the type of the value, given ``t``.
        range: Returns a range that contains all values, given ``t`` and the operands' ranges.
        value: Returns the value, a Python integer, given ``t`` and the operands.
        array: The same for int64 arrays (n,), as int64 (n,); None to call ``value`` row by row.
        operands: The number of operands, 1 or 2.
        sql: The names of an operator's nodes in `sqlglot.exp`.
        python: The name of an operator's special method in Python, without underscores.
        numpy: The name of NumPy's universal function for an operator.
        commutative: True if the two operands may be exchanged.
        neutral: The right operand with which the value is the left operand; None if there is none.
        absorbing: The operand with which the value is that operand itself; None if there is none.
    """

    name: str
    help: str
    type: Callable[[Int], Type]
    range: Callable[..., Range]
    value: Callable[..., int]
    array: Callable[..., Array] | None = None
    operands: int = 2
    sql: tuple[str, ...] = ()
    python: str = ""
    numpy: str = ""
    commutative: bool = False
    neutral: int | None = None
    absorbing: int | None = None

    @property
    def is_function(self) -> bool:
        """True for a function, False for an operator."""
        return self.name.isidentifier()


def _bits(_: Int, a: Range, b: Range) -> Range:
    """The range of all values with as many bits as the operands have."""
    bits = max((int(x) if x >= 0 else ~int(x)).bit_length() for x in (*a, *b))
    return (Fraction(0) if min(a[0], b[0]) >= 0 else Fraction(-(2**bits))), Fraction(2**bits - 1)


def _common_bits(t: Int, a: Range, b: Range) -> Range:
    if a[0] >= 0 or b[0] >= 0:
        return Fraction(0), min(x[1] for x in (a, b) if x[0] >= 0)
    return _bits(t, a, b)


def _bit_counts(t: Int, a: Array) -> Array:
    counts: Array = np.bitwise_count(a.view(np.uint64) & np.uint64(2**t.bits - 1)).astype(np.int64)
    return counts


_DECLARED = (
    Operation(name="&", help="the bits that are 1 in both", type=lambda t: t, range=_common_bits,
              value=lambda t, a, b: a & b, array=lambda t, a, b: a & b, sql=("BitwiseAnd",),
              python="and", numpy="bitwise_and", commutative=True, absorbing=0),
    Operation(name="|", help="the bits that are 1 in one or both", type=lambda t: t, range=_bits,
              value=lambda t, a, b: a | b, array=lambda t, a, b: a | b, sql=("BitwiseOr",),
              python="or", numpy="bitwise_or", commutative=True, neutral=0),
    Operation(name="^", help="the bits that differ", type=lambda t: t, range=_bits,
              value=lambda t, a, b: a ^ b, array=lambda t, a, b: a ^ b, sql=("BitwiseXor", "Xor"),
              python="xor", numpy="bitwise_xor", commutative=True, neutral=0),
    Operation(name="bit_count", help="the number of bits of the integer that are 1, in two's complement of its width",
              type=lambda t: EXACT, range=lambda t, a: (Fraction(0), Fraction(t.bits)),
              value=lambda t, a: (a % 2**t.bits).bit_count(), array=_bit_counts, operands=1),
)

#: Name → operation.
OPERATIONS = {operation.name: operation for operation in _DECLARED}


def _square_root(x: Array) -> Array:
    with np.errstate(invalid="ignore"):  # NaN of negative numbers
        root: Array = np.sqrt(x)
        return root


def _nearest(x: Array) -> Array:
    """The nearest whole numbers, halves away from zero; the difference to the part before the point is exact."""
    with np.errstate(invalid="ignore"):  # inf − inf
        whole = np.trunc(x)
        return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(x.dtype.type(1), x), whole)


_FLOAT_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "sqrt": _square_root, "floor": np.floor, "ceil": np.ceil, "round": _nearest}
#: The most decimal places that floats are rounded to: greater powers of ten are no float64.
MAX_PLACES = 22


def float_values(function: str, places: int, x: Array) -> Array:
    """The values of `splitjoin.lang.ir.FloatCall` for an array of floats, in their type."""
    return _rounded(x, places) if places else _FLOAT_FUNCTIONS[function](x)


def _rounded(x: Array, places: int) -> Array:
    """As DuckDB: multiplied, rounded and divided in float64. A value beyond the largest is left as it is with places
    behind the point, and 0 with places before it.
    """
    wide, power = x.astype(np.float64), np.float64(10 ** abs(places))
    with np.errstate(all="ignore"):
        made = _nearest(wide * power) / power if places > 0 else _nearest(wide / power) * power
        beyond = wide if places > 0 else np.zeros_like(wide)
        kept: Array = np.where(np.isfinite(wide), np.where(np.isfinite(made), made, beyond), wide).astype(x.dtype)
    return kept


@cache
def like_pattern(pattern: str) -> re.Pattern[str]:
    """The regular expression of a pattern of LIKE without an escape character.

    Each piece between two % matches where it first fits, in an atomic group: if what follows does not fit behind the
    first place, it does not behind a later one either. With backtracking, the time would grow exponentially with the
    number of %.
    """
    first, *rest = ("".join("." if c == "_" else re.escape(c) for c in piece) for piece in pattern.split("%"))
    middle = "".join(f"(?>.*?{piece})" for piece in rest[:-1] if piece)
    return re.compile(f"{first}{middle}.*{rest[-1]}" if rest else first, re.DOTALL)


def operators() -> tuple[Operation, ...]:
    """The operations that are written as operators."""
    return tuple(o for o in _DECLARED if not o.is_function)


def functions() -> tuple[Operation, ...]:
    """The operations that are written as functions."""
    return tuple(o for o in _DECLARED if o.is_function)
