"""Pass ``strength``: comparisons become such as cost a device no more than an interval test, or imply one.

Absolute values become two comparisons, squares and quotients intervals, remainders congruences, what the values' ranges
decide nothing at all; for what is none of these, what it implies takes its place, and a reason is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...lang.eval.vector import constant
from ...lang.ir import Cmp, CmpOp, Lit
from ...lang.nulls import causes
from ...lang.traversal import sides
from ...lang.types import BOOL, Float, is_text
from ..forms import FALSE, TRUE, Both, Computed, ComputedTest, Form, Junction, OneSided, junction, present
from ..linear import Total
from .bounds import NoInterval, direct
from .float_strength import simpler_float
from .nonlinear import simpler

__all__ = ["ComputedTests", "NotComputed", "reduced"]


class NotComputed(Exception):
    """Why a device does not compute a comparison itself; empty where the comparison has not the form for it."""


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
