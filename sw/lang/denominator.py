"""The common denominator of the values of an exact expression, by which circuits and kernels make them whole."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import cast

from .ir import Abs, Arith, Case, Col, Expr, Extreme, Lit, Neg, Within
from .types import Decimal

__all__ = ["denominator"]


def denominator(e: Expr) -> int:
    """The whole number that makes every value of the exact expression ``e`` whole when multiplied with it."""
    match e:
        case Lit():
            return Fraction(cast(Fraction, e.value)).denominator if isinstance(e.value, (int, Fraction)) else 1
        case Col(type=Decimal() as t):
            return int(10**t.scale)
        case Arith(op="*"):
            return denominator(e.a) * denominator(e.b)
        case Arith(op="+" | "-" | "mod" | "%"):
            return math.lcm(denominator(e.a), denominator(e.b))
        case Neg() | Abs() | Within():
            return denominator(e.a)
        case Case():
            return math.lcm(*(denominator(x) for x in (*e.then, e.otherwise)))
        case Extreme():
            return math.lcm(*(denominator(x) for x in e.args))
    return 1
