"""Pass ``strength``: replaces comparisons by ones that cost a device no more than an interval test, or that imply one.

Absolute values become two comparisons, squares and quotients intervals, remainders congruences; comparisons that the
values' ranges decide are dropped. Any other comparison is replaced by comparisons that it implies, and a reason is
recorded.

Exact comparisons with nonlinear terms over both streams are replaced by linear ones that are equivalent or implied:

* abs: one comparison for each sign, so that a Manhattan distance of two axes is a band of ``x + y`` and one of
  ``x - y``.
* A square: a comparison with the integer root of the rest, which the host computes. In a sum of squares (Euclidean
  distance) each square alone: a band per axis.
* Quotients by constants: the equivalent interval. Remainders (`.residues`) and differing bits (`.bits`): intervals and
  equalities of residues, and of the highest bits.
* A calendar unit of a time: the time is compared with the beginning of a unit.
* All other terms: the bounds that follow from the values' ranges.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import cast

from splitjoin.lang import ir
from splitjoin.lang.build import whole
from splitjoin.lang.calendar import tick, unit_number, unit_start
from splitjoin.lang.eval.vector import constant
from splitjoin.lang.ir import MIRRORED, NEGATED, Cmp, CmpOp, Expr, Lit, sides
from splitjoin.lang.properties import causes, denominator, value_range
from splitjoin.lang.schema import Side
from splitjoin.lang.types import BOOL, EXACT, Float, is_text

from ..forms import FALSE, TRUE, Both, Computed, ComputedTest, Form, Junction, OneSided, junction, present
from ..linear import Total
from .bits import equal_bits, within_blocks
from .bounds import NoInterval, direct
from .float_strength import Simpler, simpler_float
from .residues import remainder

#: Largest number of absolute values in one comparison that are split; each one doubles the comparisons.
_MOST_SIGNS = 3


def simpler(total: Total, op: CmpOp) -> Simpler | None:
    """Simpler comparisons for ``total op 0``, op ``<=`` or ``=``, of a whole total with terms over both streams; None
    if it implies none.
    """
    mixed = total.mixed
    signs = [e for e in mixed if isinstance(e, ir.Abs)]
    if op == "=" and (len(mixed) > 1 or not _has_equality(mixed[0])):
        return Simpler("and", (total.cmp("<="), total.cmp(">=")))
    if signs and (len(signs) <= _MOST_SIGNS or len(mixed) == 1):
        return _without_sign(total, signs[0])
    if len(mixed) > 1:
        return _each_alone(total)
    single = _single(total, mixed[0], op)
    return single or _by_range(total, mixed[0])


def _has_equality(e: Expr) -> bool:
    """True if ``e = constant`` is stronger than ``<=`` and ``>=`` together."""
    return isinstance(e, (ir.Arith, ir.Call)) and e.op in ("%", "mod", "^")


def _without_sign(total: Total, e: ir.Abs) -> Simpler:
    """``f·|u| + rest <= 0`` with u and −u in the place of |u|: both must hold for f > 0, one for f < 0."""
    f, rest, inner = total.terms[e], total.without(e), Total.of(e.a)
    parts = (rest.plus(inner, f).cmp("<="), rest.plus(inner, -f).cmp("<="))
    return Simpler("and" if f > 0 else "or", parts)


def _each_alone(total: Total) -> Simpler | None:
    """A comparison for each of several terms over both streams, with the others at their least values."""
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
    """``f·e + rest op 0`` as simpler comparisons, with a single term ``e`` over both streams."""
    f, rest = total.terms[e], total.without(e)
    if isinstance(e, ir.Arith) and e.op == "*" and e.a == e.b:
        return _square(e.a, f, rest)
    turned: CmpOp = op if f > 0 else MIRRORED[op]
    if isinstance(e, ir.Arith) and e.op in ("%", "mod"):
        return _condition(remainder(e, turned, rest.times(-1 / f)))
    if isinstance(e, ir.Call) and e.op == "^":
        return _of_differing(e, turned, rest.times(-1 / f))
    if rest.terms:
        return None
    at = -rest.constant / f  # e op' at
    if isinstance(e, ir.Call):
        return _of_bits(e, at) if f > 0 else None
    if isinstance(e, (ir.UnitNumber, ir.UnitStart)):
        return _of_unit(e, at, f > 0)
    if not isinstance(e, ir.Arith):
        return None
    if not isinstance(e.b, Lit) or not isinstance(e.b.value, int) or e.b.value <= 0:
        return None
    n = e.b.value
    if e.op in ("//", "div"):
        return _quotient(e, n, at, f > 0)
    return None


def _condition(e: Expr | None) -> Simpler | None:
    if isinstance(e, Lit):
        return Simpler("and" if e.value else "false", ())
    return None if e is None else Simpler("and", (e,))


def _of_bits(e: ir.Call, at: Fraction) -> Simpler | None:
    """``e <= at`` as simpler comparisons, for an operation ``e`` on integers other than ``^``."""
    if e.op == "bit_count" and isinstance(e.args[0], ir.Call) and e.args[0].op == "^":
        if at < 0:
            return Simpler("false", ())
        # No bit differs: the two are equal.
        return Simpler("and", (Cmp(BOOL, "=", *e.args[0].args),)) if at < 1 else None
    return None


def _of_differing(e: ir.Call, op: CmpOp, at: Total) -> Simpler | None:
    """``e op at``, op one of ``<= >= =``, as simpler comparisons, for ``e`` the bits in which two values differ."""
    if op == "=":
        if at.unit > 1:
            return None if at.terms else Simpler("false", ())
        return _condition(equal_bits(e, at.expr()))
    if at.terms:
        return None
    low, high = value_range(e)
    found = within_blocks(e, math.ceil(at.constant), int(high)) if op == ">=" else within_blocks(
        e, int(low), math.floor(at.constant))
    if found is None:
        return None
    equalities, exact = found
    return Simpler("and", (equalities,), None if exact else f"of '{e}' only the highest bits are compared")


def _of_unit(e: ir.UnitNumber | ir.UnitStart, at: Fraction, at_most: bool) -> Simpler:
    """The comparison that a calendar unit's number, or its first time, is at most, or at least, ``at``, as one of the
    time itself.
    """
    if isinstance(e, ir.UnitNumber):
        unit = math.floor(at) + 1 if at_most else math.ceil(at)
    else:  # the first unit that begins after `at`, or at it
        unit = unit_number(math.floor(at) if at_most else math.ceil(at) - 1, e.unit, tick(e.type)) + 1
    # Ticks of a nanosecond hold the beginning of every unit; the total makes both sides whole.
    begins = Fraction(unit_start(unit, e.unit, 1), tick(e.a.type))
    return Simpler("and", (Cmp(BOOL, "<" if at_most else ">=", e.a, Lit(EXACT, whole(begins))),))


def _square(u: Expr, f: Fraction, rest: Total) -> Simpler | None:
    """``f·u² + rest <= 0`` as simpler comparisons."""
    streams = {side for e in rest.terms for side in sides(e)}
    if len(streams) > 1:
        # The other stream's terms are at their least values: one comparison for each stream.
        parts = []
        for side, other in (("r", "s"), ("s", "r")):
            low = rest.only(cast(Side, other)).range[0]
            remaining = rest.only(cast(Side, side)).plus(Total({}, rest.constant + low))
            parts += _square_of(u, f, remaining)
        return Simpler("and", tuple(parts), "a square over both streams is compared with what one of them adds")
    return Simpler("and", tuple(_square_of(u, f, rest)))


def _square_of(u: Expr, f: Fraction, rest: Total) -> list[Cmp]:
    # d·u is whole, and so is its square.
    d = denominator(u)
    size = ir.Abs(EXACT, Total.of(u).times(d).expr())
    bound = rest.times(-Fraction(d * d) / f)
    if f > 0:
        return [Cmp(BOOL, "<=", size, _root(bound))]
    # (d·u)² >= X is (d·u)² > the greatest whole number below X.
    least = bound.plus(Total({}, Fraction(-1, math.lcm(1, denominator(bound.expr())))))
    return [Cmp(BOOL, ">", size, _root(least))]


def _root(total: Total) -> Expr:
    if not total.terms:
        return Lit(EXACT, math.isqrt(math.floor(total.constant)) if total.constant >= 0 else -1)
    return ir.Isqrt(EXACT, total.expr())


def _quotient(e: ir.Arith, n: int, at: Fraction, at_most: bool) -> Simpler:
    """The comparison that ``u // n`` or ``u div n`` is at most, or at least, ``at``, without the division."""
    k = math.floor(at) if at_most else math.ceil(at)
    if at_most:
        op, bound = ("<=", k * n) if e.op == "div" and k < 0 else ("<", (k + 1) * n)
    else:
        op, bound = (">", (k - 1) * n) if e.op == "div" and k <= 0 else (">=", k * n)
    return Simpler("and", (Cmp(BOOL, cast(CmpOp, op), e.a, Lit(EXACT, bound)),))


class NotComputed(Exception):
    """The reason why a device does not compute a comparison; empty if it does not have the required form."""


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
    """``form`` with comparisons simplified until each is an interval test or implies one (see `.bounds.bounded`), or is
    one of the tests that the device computes itself.

    The result is true for every pair for which ``form`` is. It may be true for others only if a reason is added to
    ``undecided``.
    """
    match form:
        case Both():
            simplified = _comparison(form, undecided, computed)
            return form if simplified is None else reduced(simplified, undecided, computed)
        case Junction():
            return junction(form.op, [reduced(a, undecided, computed) for a in form.args])
    return form


def _comparison(part: Both, undecided: list[str], computed: ComputedTests | None) -> Form | None:
    """``part`` as simpler comparisons; None if it cannot be simplified."""
    cmp = part.cmp
    if any(isinstance(c, Lit) for c in (*causes(cmp.a), *causes(cmp.b))):
        return FALSE  # NULL is not true
    if is_text(cmp.a.type):
        return None
    if cmp.op == "<>":
        return _unequal(part)
    if isinstance(cmp.a.type, Float):
        simplified = simpler_float(cmp)
        return None if simplified is None else _simplified(simplified, part, undecided)
    return _exact(part, undecided, computed)


def _simplified(found: Simpler, part: Both, undecided: list[str]) -> Form:
    """The form of ``found``, which takes the place of ``part``."""
    if found.why is not None:
        _beyond(part, found.why, undecided)
    if found.op == "false":
        return FALSE
    # A comparison that is true for all values is not true for NULL.
    return junction(found.op, [_part(cmp, part) for cmp in found.args] or present(part.cmp))


def _unequal(part: Both) -> Form:
    """The form of ``part``, a comparison for being unequal: what is equivalent to its being equal, negated, or two
    halves.
    """
    cmp = part.cmp
    if not isinstance(cmp.a.type, Float):
        total, _ = Total.compared(replace(cmp, op="="))
        equal = simpler(total, "=") if len(total.mixed) == 1 and _has_equality(total.mixed[0]) else None
        if equal is not None and equal.why is None:
            if equal.op == "false":
                return junction("and", present(cmp))
            return _part(ir.Or(BOOL, tuple(map(_negated, equal.args))), part)
    return junction("or", (_part(Cmp(BOOL, op, cmp.a, cmp.b), part) for op in ("<", ">")))


def _negated(e: Expr) -> Expr:
    """The opposite of ``e``, comparisons joined by AND and OR, of values that are not NULL."""
    if isinstance(e, (ir.And, ir.Or)):
        return (ir.Or if isinstance(e, ir.And) else ir.And)(BOOL, tuple(map(_negated, e.args)))
    if isinstance(e, Cmp):
        return replace(e, op=NEGATED[e.op])
    assert isinstance(e, Lit)
    return Lit(BOOL, e.value is False)


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
    simplified = simpler(total, op)
    if computed is not None and (simplified is None or simplified.why is not None):
        try:
            test = junction("and", (Computed(computed.test(total, op)), *present(part.cmp)))
        except NotComputed as error:
            if str(error):
                _beyond(part, str(error), undecided)
        else:
            bands = () if simplified is None or not computed.with_bounds else simplified.args
            return junction("and", (test, *(_part(cmp, part) for cmp in bands)))
    if simplified is None:
        _beyond(part, f"'{total.mixed[0]}' over both streams gives no interval", undecided)
        return junction("and", present(part.cmp))
    return _simplified(simplified, part, undecided)


def _part(cmp: Expr, of: Both) -> Form:
    """The form of ``cmp``, comparisons joined by AND and OR that are a part of ``of``, each together with the
    conditions that the parts of ``of`` that it does not read are not NULL.
    """
    if isinstance(cmp, (ir.And, ir.Or)):
        return junction("and" if isinstance(cmp, ir.And) else "or", (_part(c, of) for c in cmp.args))
    if not sides(cmp):
        return TRUE if constant(cmp) is True else FALSE
    assert isinstance(cmp, Cmp)
    here = {*causes(cmp.a), *causes(cmp.b)}
    form: Form
    if len(sides(cmp)) == 2:
        form = Both(cmp, of.origin or of.cmp)
    else:
        form = OneSided(next(iter(sides(cmp))), cmp, frozenset(("true",)))
    return junction("and", (form, *present(of.cmp, here)))


def _beyond(part: Both, why: str, undecided: list[str]) -> None:
    undecided.append(f"'{part.origin or part.cmp}': {why}")
