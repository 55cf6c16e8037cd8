"""Numbers and durations in SQL text."""

from __future__ import annotations

import re
from fractions import Fraction

from sqlglot import exp

from ...errors import PredicateError
from .. import build
from ..ir import Lit
from ..literals import MAX_DIGITS
from ..schema import suggest
from ..types import UNIT_NS
from .errors import short

__all__ = ["interval", "number"]


def number(text: str) -> Lit:
    """A number as SQL writes it."""
    if not re.fullmatch(r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", text, re.ASCII | re.IGNORECASE):
        raise PredicateError(f"{short(text)!r} cannot be read as a number; write for example 15, 1.5 or 1.5e3")
    digits, _, exponent = text.lower().partition("e")
    if len(digits) > MAX_DIGITS or len(exponent) > 5 or abs(int(exponent or 0)) > MAX_DIGITS:
        raise PredicateError(f"{short(text)!r}: a number must not have more than {MAX_DIGITS} digits")
    return build.literal(Fraction(text), text)


def interval(e: exp.Expr, at: str) -> Lit:
    """``INTERVAL '15' MINUTE``."""
    unit = e.args.get("unit")
    number = e.this.name.strip() if isinstance(e.this, exp.Literal) else ""
    if not isinstance(unit, exp.Var) or not re.fullmatch(r"[+-]?\d{1,20}(\.\d{1,20})?", number):
        raise PredicateError(f"{at!r}: an INTERVAL must be one number and one unit, such as "
                             f"INTERVAL '15' MINUTE")
    word = unit.name.upper()
    per = UNIT_NS.get(word.removesuffix("S"))
    if per is None:
        raise PredicateError(f"{at!r}: the unit of an INTERVAL must be one of "
                             f"{', '.join(u + 'S' for u in UNIT_NS)}, not {word}{suggest(word, UNIT_NS)}")
    ns = Fraction(number) * per
    if ns.denominator != 1:
        raise PredicateError(f"{at!r}: an INTERVAL must be a whole number of nanoseconds")
    return build.duration(ns.numerator)
