"""Comparisons of remainders ``u % n`` and ``u mod n``, u = R + S whole and linear, as comparisons of two residues, one
of each stream.

The residues of u that make a comparison true are an interval on the circle of n residues. Counted from where that
begins, ``(R - S') mod n`` is less than the interval's length, and the residues of R and S' themselves have a difference
from 1 − n to n − 1: one band and a bound beside it, an equality for a single residue, and ``<>`` for all but one.
"""

from __future__ import annotations

import math
from fractions import Fraction

from splitjoin.lang.ir import And, Arith, Cmp, CmpOp, Expr, Lit, Or
from splitjoin.lang.types import BOOL, EXACT

from ..linear import Total

_ZERO = Lit(EXACT, 0)
_TRUE, _FALSE = Lit(BOOL, True), Lit(BOOL, False)


def remainder(e: Arith, op: CmpOp, at: Total) -> Expr | None:
    """``e op at``, op one of ``<= >= =``, for ``e`` a remainder by a constant other than 0, as a condition on linear
    values that is equivalent; None if there is none: ``e``'s dividend is not linear, or ``at`` is neither constant nor
    compared for equality, or not linear either.
    """
    if not isinstance(e.b, Lit) or not isinstance(e.b.value, (int, Fraction)):
        return None
    u, n = Total.of(e.a), Fraction(e.b.value)
    if u.mixed or at.mixed or (at.terms and op != "="):
        return None
    if n < 0 and e.op == "%":  # down for a negative divisor: the negative of −u % −n
        u, at, op = u.times(-1), at.times(-1), {"<=": ">=", ">=": "<=", "=": "="}[op]  # type: ignore[assignment]  # of these
    n = abs(n)
    # In units in which all parts are whole.
    unit = math.lcm(u.unit, n.denominator, at.unit if at.terms else 1)
    u, at, modulus = u.times(unit), at.times(unit), int(n * unit)
    if at.terms:
        return _equal(u, at, modulus, rounds_down=e.op == "%")
    low = 1 - modulus if op == "<=" else math.ceil(at.constant)
    high = modulus - 1 if op == ">=" else math.floor(at.constant)
    if e.op == "%":
        return _within(u, modulus, max(low, 0), min(high, modulus - 1))
    # The remainder has the dividend's sign.
    rising = _within(u, modulus, max(low, 0), min(high, modulus - 1))
    falling = _within(u, modulus, max(low, 1 - modulus), min(high, 0))
    if rising == falling or u.range[0] >= 0:
        return rising
    if u.range[1] <= 0:
        return falling
    negative = u.cmp("<") if rising == _FALSE or falling == _TRUE else u.cmp("<=")
    positive = u.cmp(">") if falling == _FALSE or rising == _TRUE else u.cmp(">=")
    return _or(_and(rising, positive), _and(falling, negative)) if _TRUE not in (rising, falling) else _or(
        *((positive, falling) if rising == _TRUE else (negative, rising)))


def _equal(u: Total, at: Total, n: int, *, rounds_down: bool) -> Expr:
    """``u % n = at``: the two are congruent, and ``at`` is a remainder."""
    congruent = _within(u.plus(at, -1), n, 0, 0)
    up = _and(at.cmp(">="), at.plus(Total({}, Fraction(-n))).cmp("<"))
    if rounds_down or u.range[0] >= 0:
        return _and(congruent, up)
    down = _and(at.cmp("<="), at.plus(Total({}, Fraction(n))).cmp(">"))
    if u.range[1] <= 0:
        return _and(congruent, down)
    return _and(congruent, _or(_and(u.cmp(">="), up), _and(u.cmp("<="), down)))


def _within(u: Total, n: int, low: int, high: int) -> Expr:
    """The condition that ``u`` is congruent modulo ``n`` to a number from ``low`` to ``high``."""
    count = high - low + 1
    if count <= 0 or count >= n:
        return _FALSE if count <= 0 else _TRUE
    if count == 1:
        return Cmp(BOOL, "=", *_residues(u, n, low))
    if count == n - 1:
        return Cmp(BOOL, "<>", *_residues(u, n, high + 1))
    a, b = _residues(u, n, low)
    above = Total.of(a).plus(Total.of(b), -1)
    return _or(_and(above.cmp(">="), above.plus(Total({}, Fraction(1 - count))).cmp("<=")),
               above.plus(Total({}, Fraction(n + 1 - count))).cmp("<="))


def _residues(u: Total, n: int, first: int) -> tuple[Expr, Expr]:
    """Two residues, of R and of S, whose difference is congruent to ``u − first`` modulo ``n``."""
    r, s = u.only("r"), u.only("s")
    rest = s.times(-1).plus(Total({}, first - u.constant))
    return Arith(EXACT, "%", r.expr(), Lit(EXACT, n)), Arith(EXACT, "%", rest.expr(), Lit(EXACT, n))


def _and(*conditions: Expr) -> Expr:
    return _FALSE if _FALSE in conditions else And(BOOL, conditions)


def _or(*conditions: Expr) -> Expr:
    some = tuple(c for c in conditions if c != _FALSE)
    return some[0] if len(some) == 1 else Or(BOOL, some)
