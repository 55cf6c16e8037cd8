"""Pass ``strength``: comparisons become such as cost a device no more than an interval test, or imply one.

Absolute values become two comparisons, squares and quotients intervals, remainders congruences, what the values' ranges
decide nothing at all; for what is none of these, what it implies takes its place, and a reason is given.

Exact comparisons with terms that are not linear over both streams, as comparisons that are, or that they imply.

* abs: of each sign one comparison, so that a Manhattan distance of two axes is a band of ``x + y`` and one of
  ``x - y``.
* A square: the whole root of the rest, on the host. Of a sum of squares (Euclidean distance) each alone: a band an
  axis.
* Quotients, remainders and xor with constants: the interval or the congruence that they state.
* All else: the bounds that the values' ranges leave.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, cast

from ...lang.eval.vector import constant
from ...lang.ir import Abs, Arith, Call, Cmp, CmpOp, Expr, Isqrt, Lit, sides
from ...lang.properties import causes, denominator, value_range
from ...lang.schema import Side
from ...lang.types import BOOL, EXACT, Float, is_text
from ..forms import FALSE, TRUE, Both, Computed, ComputedTest, Form, Junction, OneSided, junction, present
from ..linear import Total
from .bounds import NoInterval, direct
from .float_strength import simpler_float

__all__ = ["ComputedTests", "NotComputed", "Simpler", "reduced", "simpler"]

#: Absolute values in one comparison that are taken apart, which doubles the comparisons each time.
_MOST_SIGNS = 3


@dataclass(frozen=True)
class Simpler:
    """Comparisons of which all ("and") or one ("or") must be true. ``why``: set if they are implied only."""

    op: Literal["and", "or", "false"]
    args: tuple[Cmp, ...]
    why: str | None = None


def simpler(total: Total, op: CmpOp) -> Simpler | None:
    """``total op 0``, op ``<=`` or ``=``, of a whole total with terms of both streams; None if nothing is implied."""
    mixed = total.mixed
    signs = [e for e in mixed if isinstance(e, Abs)]
    if op == "=" and (len(mixed) > 1 or not _has_equality(mixed[0])):
        return Simpler("and", (total.cmp("<="), total.cmp(">=")))
    if signs and (len(signs) <= _MOST_SIGNS or len(mixed) == 1):
        return _without_sign(total, signs[0])
    if len(mixed) > 1:
        return _each_alone(total)
    found = _single(total, mixed[0], op)
    return found or _by_range(total, mixed[0])


def _has_equality(e: Expr) -> bool:
    """True if ``e = constant`` says more than ``<=`` and ``>=`` do."""
    return isinstance(e, (Arith, Call)) and e.op in ("%", "mod", "^")


def _without_sign(total: Total, e: Abs) -> Simpler:
    """``f·|u| + rest <= 0`` with u and −u in the place of |u|: both must hold for f > 0, one for f < 0."""
    f, rest, inner = total.terms[e], total.without(e), Total.of(e.a)
    parts = (rest.plus(inner, f).cmp("<="), rest.plus(inner, -f).cmp("<="))
    return Simpler("and" if f > 0 else "or", parts)


def _each_alone(total: Total) -> Simpler | None:
    """Of several terms of both streams each alone, the others at their least."""
    parts = []
    for e in total.mixed:
        others = [x for x in total.mixed if x != e]
        least = sum((min(total.terms[x] * v for v in value_range(x)) for x in others), Fraction(0))
        alone = total.without(*others).plus(Total({}, least))
        if alone.range[1] > 0:
            parts.append(alone.cmp("<="))
    return Simpler("and", tuple(parts), "each of its terms over both streams is compared alone")


def _by_range(total: Total, e: Expr) -> Simpler | None:
    f = total.terms[e]
    least = min(f * v for v in value_range(e))
    alone = total.without(e).plus(Total({}, least))
    if alone.range[1] <= 0 or not alone.terms:
        return None
    return Simpler("and", (alone.cmp("<="),), f"of '{e}' over both streams only the range of its values is known")


def _single(total: Total, e: Expr, op: CmpOp) -> Simpler | None:
    """``f·e + rest op 0`` with one term ``e`` of both streams."""
    f, rest = total.terms[e], total.without(e)
    if isinstance(e, Arith) and e.op == "*" and e.a == e.b:
        return _square(e.a, f, rest)
    if rest.terms:
        return None
    at = -rest.constant / f  # e op' at
    if isinstance(e, Call):
        return _of_bits(e, op, at) if f > 0 or e.op == "^" else None
    if not isinstance(e, Arith):
        return None
    if not isinstance(e.b, Lit) or not isinstance(e.b.value, int) or e.b.value <= 0:
        return None
    n = e.b.value
    if e.op in ("//", "div"):
        return _quotient(e, n, at, f > 0)
    if e.op in ("%", "mod") and op == "=" and at.denominator == 1 and denominator(e.a) == 1:
        return _remainder(e, n, int(at))
    return None


def _of_bits(e: Call, op: CmpOp, at: Fraction) -> Simpler | None:
    """``e op at`` of an operation on integers."""
    match e:
        case Call(op="bit_count", args=(Call(op="^", args=(a, b)),)):
            if at < 0:
                return Simpler("false", ())
            # No bit differs: the two are equal.
            return Simpler("and", (Cmp(BOOL, "=", a, b),)) if at < 1 else None
        case Call(op="^", args=(a, b)) if op == "=" and at.denominator == 1:
            one, other = (a, b) if len(sides(a)) == 1 else (b, a)
            if len(sides(one)) == 1 and len(sides(other)) == 1:
                return Simpler("and", (Cmp(BOOL, "=", one, replace(e, args=(other, Lit(EXACT, int(at))))),))
    return None


def _square(u: Expr, f: Fraction, rest: Total) -> Simpler | None:
    """``f·u² + rest <= 0``."""
    streams = {side for e in rest.terms for side in sides(e)}
    if len(streams) > 1:
        # What the other stream adds is at its least: once for each stream.
        parts = []
        for side, other in (("r", "s"), ("s", "r")):
            low = rest.only(cast(Side, other)).range[0]
            kept = rest.only(cast(Side, side)).plus(Total({}, rest.constant + low))
            parts += _square_of(u, f, kept)
        return Simpler("and", tuple(parts), "a square over both streams is compared with what one of them adds")
    return Simpler("and", tuple(_square_of(u, f, rest)))


def _square_of(u: Expr, f: Fraction, rest: Total) -> list[Cmp]:
    # d·u is whole, and so is its square.
    d = denominator(u)
    size = Abs(EXACT, Total.of(u).times(d).expr())
    bound = rest.times(-Fraction(d * d) / f)
    if f > 0:
        return [Cmp(BOOL, "<=", size, _root(bound))]
    # (d·u)² >= X is (d·u)² > the greatest whole number below X.
    least = bound.plus(Total({}, Fraction(-1, math.lcm(1, denominator(bound.expr())))))
    return [Cmp(BOOL, ">", size, _root(least))]


def _root(total: Total) -> Expr:
    if not total.terms:
        return Lit(EXACT, math.isqrt(math.floor(total.constant)) if total.constant >= 0 else -1)
    return Isqrt(EXACT, total.expr())


def _quotient(e: Arith, n: int, at: Fraction, at_most: bool) -> Simpler:
    """``u // n`` or ``u div n`` at most, or at least, ``at``."""
    k = math.floor(at) if at_most else math.ceil(at)
    if at_most:
        op, bound = ("<=", k * n) if e.op == "div" and k < 0 else ("<", (k + 1) * n)
    else:
        op, bound = (">", (k - 1) * n) if e.op == "div" and k <= 0 else (">=", k * n)
    return Simpler("and", (Cmp(BOOL, cast(CmpOp, op), e.a, Lit(EXACT, bound)),))


def _remainder(e: Arith, n: int, k: int) -> Simpler | None:
    """``u % n`` or ``u mod n`` equal to ``k``, for whole u: a congruence of one key of each stream."""
    if abs(k) >= n or (e.op == "%" and k < 0):
        return Simpler("false", ())
    u = Total.of(e.a)
    if u.mixed:
        return None
    r, s = u.only("r"), u.only("s")
    rest = s.times(-1).plus(Total({}, k - u.constant))
    parts = [Cmp(BOOL, "=", *(Arith(EXACT, "%", x.expr(), Lit(EXACT, n)) for x in (r, rest)))]
    if e.op == "mod" and k:  # the dividend has the remainder's sign
        parts.append(Cmp(BOOL, ">" if k > 0 else "<", e.a, Lit(EXACT, 0)))
    return Simpler("and", tuple(parts))


class NotComputed(Exception):
    """The reason why a device does not compute a comparison; empty where the comparison has not the form for it."""


@dataclass(frozen=True)
class ComputedTests:
    """The comparisons that a device computes itself, where no interval test decides them.

    Attributes:
        test: Makes the test of ``total op 0``. Raises `NotComputed` if there is none.
        with_bounds: True if the interval tests that such a test implies are kept beside it, for an index to find
            candidates by.
    """

    test: Callable[[Total, CmpOp], ComputedTest]
    with_bounds: bool


def reduced(form: Form, undecided: list[str], computed: ComputedTests | None = None) -> Form:
    """``form`` with simpler comparisons, until each is an interval test or implies one (see `.bounds.bounded`), or is
    one of the tests that the device computes itself.

    It is true for every pair for which ``form`` is, and for no other unless something is added to ``undecided``.
    """
    match form:
        case Both():
            made = _comparison(form, undecided, computed)
            return form if made is None else reduced(made, undecided, computed)
        case Junction():
            return junction(form.op, [reduced(a, undecided, computed) for a in form.args])
    return form


def _comparison(part: Both, undecided: list[str], computed: ComputedTests | None) -> Form | None:
    """``part`` as simpler comparisons; None if it stays."""
    cmp = part.cmp
    if any(isinstance(c, Lit) for c in (*causes(cmp.a), *causes(cmp.b))):
        return FALSE  # NULL is not true
    if is_text(cmp.a.type):
        return None
    if cmp.op == "<>":
        return junction("or", (_part(Cmp(BOOL, op, cmp.a, cmp.b), part) for op in ("<", ">")))
    if isinstance(cmp.a.type, Float):
        made = simpler_float(cmp)
        if made is None:
            return None
        if made.why is not None:
            _beyond(part, made.why, undecided)
        if made.op == "false":
            return FALSE
        present_ = () if made.args else present(cmp)
        return junction(made.op, (*(_halves(c, part) for c in made.args), *present_))
    return _exact(part, undecided, computed)


def _halves(parts: Cmp | tuple[Cmp, ...], of: Both) -> Form:
    """A comparison, or several of which one must be true."""
    return _part(parts, of) if isinstance(parts, Cmp) else junction("or", (_part(c, of) for c in parts))


def _exact(part: Both, undecided: list[str], computed: ComputedTests | None) -> Form | None:
    total, op = Total.compared(part.cmp)
    low, high = total.range
    if op == "<=" and high <= 0:
        return junction("and", present(part.cmp))
    if low > 0 or (op == "=" and high < 0):
        return FALSE
    try:
        tests = direct(part, [])
        return tests if tests == FALSE else None
    except NoInterval:
        pass
    if not total.mixed:  # the columns of a stream cancel out
        return _part(total.cmp(op), part)
    made = simpler(total, op)
    if computed is not None and (made is None or made.why is not None):
        try:
            test = junction("and", (Computed(computed.test(total, op)), *present(part.cmp)))
        except NotComputed as error:
            if str(error):
                _beyond(part, str(error), undecided)
        else:
            bands = () if made is None or not computed.with_bounds else made.args
            return junction("and", (test, *(_part(cmp, part) for cmp in bands)))
    if made is None:
        _beyond(part, f"'{total.mixed[0]}' over both streams gives no interval", undecided)
        return junction("and", present(part.cmp))
    if made.why is not None:
        _beyond(part, made.why, undecided)
    if made.op == "false":
        return FALSE
    return junction(made.op, (_part(cmp, part) for cmp in made.args))


def _part(cmp: Cmp, of: Both) -> Form:
    """``cmp``, which ``of`` was taken apart into, and that nothing in ``of`` is NULL that ``cmp`` does not read."""
    if not sides(cmp):
        return TRUE if constant(cmp) is True else FALSE
    here = {*causes(cmp.a), *causes(cmp.b)}
    form: Form = Both(cmp, of.origin or of.cmp)
    if len(sides(cmp)) == 1:
        form = OneSided(next(iter(sides(cmp))), cmp, frozenset(("true",)))
    return junction("and", (form, *present(of.cmp, here)))


def _beyond(part: Both, why: str, undecided: list[str]) -> None:
    undecided.append(f"'{part.origin or part.cmp}': {why}")
