"""`implies`: a test that one condition implies another. It compares their forms, and the constants of comparisons that
differ in nothing else.

The answer is sound and not complete: `implies` may miss an implication, and never claims one that does not hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import copysign, gcd, isnan

from splitjoin.lang.ir import And, Cmp, Expr, Lit, Or, distinct
from splitjoin.lang.properties import causes
from splitjoin.lang.types import Binary, Bool, Float, is_text

from .forms import FALSE, TRUE, Both, Form, Junction, OneSided, TruthValue, junction, positive
from .linear import Total
from .passes.conditions import TooManyCases, fold, lift
from .passes.strength import reduced

_TRUE: frozenset[TruthValue] = frozenset(("true",))


def implies(a: Expr, b: Expr) -> bool:
    """True if every pair of tuples for which condition ``a`` is true is known to make ``b`` true."""
    if _has_negative_zero(a) or _has_negative_zero(b):
        return False  # it equals 0.0, but not all that is computed of it is equal
    try:
        return _follows(_leaves(positive(lift(fold(a))), stronger=False),
                        _leaves(positive(lift(fold(b))), stronger=True))
    except TooManyCases:
        return False


def weakest(conditions: Sequence[Expr]) -> list[Expr]:
    """``conditions`` without those that imply another one that stays; the order stays."""
    kept: list[Expr] = []
    for condition in conditions:
        if not any(implies(condition, other) for other in kept):
            kept = [other for other in kept if not implies(other, condition)] + [condition]
    return kept


def _leaves(form: Form, *, stronger: bool) -> Form:
    """``form`` with comparisons taken apart. Where that is not exact, the result is ``form`` itself if ``stronger``,
    else it holds wherever ``form`` does.
    """
    match form:
        case Junction():
            return junction(form.op, (_leaves(part, stronger=stronger) for part in form.args))
        case OneSided(condition=And() | Or() as c) if form.values == _TRUE:
            return junction("and" if isinstance(c, And) else "or", (
                _leaves(OneSided(form.side, part, _TRUE), stronger=stronger) for part in c.args))
        case Both():
            undecided: list[str] = []
            parts = reduced(form, undecided)
            if not undecided:
                return parts
            return form if stronger else junction("and", (form, parts))
    return form


def _follows(a: Form, b: Form) -> bool:
    """True if ``b`` follows from ``a``."""
    if a in (b, FALSE) or b == TRUE:
        return True
    if isinstance(a, Junction) and a.op == "or":
        return all(_follows(part, b) for part in a.args)
    if isinstance(b, Junction) and b.op == "and":
        return all(_follows(a, part) for part in b.args)
    if isinstance(b, Junction) and any(_follows(a, part) for part in b.args):
        return True
    if isinstance(a, Junction):
        return any(_follows(part, b) for part in a.args)
    return not isinstance(b, Junction) and _leaf_follows(a, b)


def _leaf_follows(a: Form, b: Form) -> bool:
    if isinstance(a, OneSided) and isinstance(b, OneSided):
        if a.side == b.side and a.condition == b.condition and a.values <= b.values:
            return True
        one, other = a.condition, b.condition
        return a.side == b.side and a.values == b.values == _TRUE and isinstance(one, Cmp) and (
            isinstance(other, Cmp) and _comparison_follows(one, other))
    return isinstance(a, Both) and isinstance(b, Both) and _comparison_follows(a.cmp, b.cmp)


def _comparison_follows(a: Cmp, b: Cmp) -> bool:
    """True if comparison ``b`` is true wherever ``a`` is, as they differ in a constant."""
    if any(isinstance(e, Lit) for e in _causes(a)):
        return True  # with NULL, as in a branch of CASE, ``a`` is never true
    if "<>" in (a.op, b.op):
        return False
    if set(_causes(b)) - set(_causes(a)):  # else something could make b NULL alone
        return False
    if isinstance(a.a.type, Float) and isinstance(b.a.type, Float):
        return a.a == b.a and a.a.type == b.a.type and _beyond(a, b)
    if not (_is_exact(a) and _is_exact(b)):
        return False
    return any(_total_follows(one, other) for one in _totals(a) for other in [_normal(*Total.compared(b))])


def _total_follows(a: tuple[Total, str], b: tuple[Total, str]) -> bool:
    """True if ``total op 0`` of ``b`` follows from that of ``a``."""
    (one, op), (other, wanted) = a, b
    if one.terms != other.terms:
        return False
    if wanted == "=":
        return op == "=" and one.constant == other.constant
    return other.constant <= one.constant  # T <= -c of the one is at most that of the other


def _totals(cmp: Cmp) -> list[tuple[Total, str]]:
    """``cmp`` as ``total op 0``; an equality from both sides."""
    total, op = Total.compared(cmp)
    return [_normal(total, op), *([_normal(total.times(-1), op)] if op == "=" else [])]


def _normal(total: Total, op: str) -> tuple[Total, str]:
    """``total op 0`` with factors of its terms that have no common divisor, so that equal terms can be told."""
    parts = [abs(f) for f in total.terms.values()]
    if not parts or any(f.denominator != 1 for f in parts):
        return total, op
    return total.times(Fraction(1, gcd(*(int(f) for f in parts)))), op


def _beyond(a: Cmp, b: Cmp) -> bool:
    """True if ``b`` follows from ``a``, both of which compare one float with constants."""
    if not isinstance(a.b, Lit) or not isinstance(b.b, Lit):
        return False
    x, y = a.b.value, b.b.value
    if not isinstance(x, float) or not isinstance(y, float) or isnan(x) or isnan(y):
        return False
    if a.op in ("<", "<=", "=") and b.op in ("<", "<="):
        return x < y or (x == y and (b.op == "<=" or a.op == "<"))
    if a.op in (">", ">=", "=") and b.op in (">", ">="):
        return x > y or (x == y and (b.op == ">=" or a.op == ">"))
    return a.op == b.op == "=" and x == y


def _has_negative_zero(e: Expr) -> bool:
    return any(isinstance(node, Lit) and isinstance(node.value, float) and copysign(1.0, node.value) < 0 == node.value
               for node, _ in distinct(e))


def _causes(cmp: Cmp) -> Iterable[Expr]:
    return (*causes(cmp.a), *causes(cmp.b))


def _is_exact(cmp: Cmp) -> bool:
    return not any(isinstance(e.type, (Float, Bool, Binary)) or is_text(e.type) for e in (cmp.a, cmp.b))
