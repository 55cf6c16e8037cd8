"""The compiler: named passes, in their order, from a typed condition to its plan, and the phases between them.

Up to pass ``bounds`` the passes compile each conjunct separately, so that it is known which conjuncts their tests
decide; the others form the residual. Each pass turns one phase into the next. Each phase is a type, and `str` of one is
its stable text form:

Conjuncts ── fold, narrow, lift ── logic ─→ Forms ── strength, bounds, prune ── split ─→ SplitForms ── merge
─→ TreeOfTests ── share ─→ Shared ── main ─→ Shared, which holds the `Plan`
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar, Union

from splitjoin.lang.ir import And, Expr, Lit, text
from splitjoin.lang.types import BOOL

from ..forms import TRUE, Form, form_text, junction, positive
from ..plan import Plan, Shared
from .bounds import bounded
from .conditions import TooManyCases, fold, lift, narrow
from .prune import LEAST, pruned
from .strength import ComputedTests, reduced
from .tree import Node, Split, choose_main, merge, node_text, share, split

Now = TypeVar("Now", Expr, Form)


@dataclass(frozen=True)
class Conjunct(Generic[Now]):
    """A conjunct of the condition: as the user wrote it, and as it is now, an expression or a two-valued form.

    ``undecided``: the reasons why tests will not decide it, one for each comparison.
    """

    origin: Expr
    now: Now
    undecided: tuple[str, ...] = ()


@dataclass(frozen=True)
class Conjuncts:
    """The condition as three-valued expressions, all of which must be true."""

    conjuncts: tuple[Conjunct[Expr], ...]

    @classmethod
    def of(cls, predicate: Expr) -> Conjuncts:
        """Condition ``predicate`` before the first pass."""
        return cls(tuple(Conjunct(p, p) for p in (predicate.args if isinstance(predicate, And) else (predicate,))))

    def __str__(self) -> str:
        return "\n".join(text(c.now) for c in self.conjuncts)


@dataclass(frozen=True)
class Forms:
    """The condition as two-valued forms, all of which must hold."""

    conjuncts: tuple[Conjunct[Form], ...]

    @property
    def predicate(self) -> Expr:
        """The condition as the user wrote it."""
        origins = tuple(c.origin for c in self.conjuncts)
        return origins[0] if len(origins) == 1 else And(BOOL, origins)

    def __str__(self) -> str:
        return "\n".join(form_text(c.now) for c in self.conjuncts)


@dataclass(frozen=True)
class SplitForms:
    """The condition by the streams that its terms read."""

    forms: Forms
    split: Split

    def __str__(self) -> str:
        return str(self.split)


@dataclass(frozen=True)
class TreeOfTests:
    """The condition as tests, combined by AND and OR."""

    forms: Forms
    root: Node

    def __str__(self) -> str:
        return node_text(self.root)


#: The attribute of a condition that holds its plan.
_PLAN = "_plan"
#: The types that passes take and return.
Phase = Union[Conjuncts, Forms, SplitForms, TreeOfTests, Shared]


Before = TypeVar("Before")
After = TypeVar("After")


@dataclass(frozen=True)
class Pass(Generic[Before, After]):
    """A step of the compiler. ``what``: its purpose in a sentence."""

    name: str
    what: str
    run: Callable[[Before], After]


#: Called with each pass and the phase that it made; with None and the condition before the first pass.
Observer = Callable[["Pass[object, object] | None", Phase], None]


def make_plan(predicate: Expr) -> Plan:
    """The plan of condition ``predicate``; its residual holds the conjuncts that interval tests cannot decide.

    A condition is compiled once, and carries its plan from then on. The plan belongs to the object: conditions that are
    equal may differ, as 0.0 and -0.0 do.
    """
    carried = vars(predicate)
    if _PLAN not in carried:
        carried[_PLAN] = compiled(predicate).plan
    plan: Plan = carried[_PLAN]
    return plan


def compiled(predicate: Expr, computed: ComputedTests | None = None, observe: Observer | None = None) -> Shared:
    """Condition ``predicate`` after all passes.

    Args:
        predicate: The condition, of type bool.
        computed: The tests that a device computes itself; None for a device with interval tests only.
        observe: Called after each pass.
    """
    def apply(step: Pass[Before, After], phase: Before) -> After:
        made = step.run(phase)
        if observe is not None:
            observe(step, made)  # type: ignore[arg-type]  # each pass returns a phase
        return made

    start = Conjuncts.of(predicate)
    if observe is not None:
        observe(None, start)
    conjuncts = apply(LIFT, apply(NARROW, apply(FOLD, start)))
    forms = apply(PRUNE, apply(BOUNDS, apply(strength(computed), apply(LOGIC, conjuncts))))
    return apply(MAIN, apply(SHARE, apply(MERGE, apply(SPLIT, forms))))


def strength(computed: ComputedTests | None) -> Pass[Forms, Forms]:
    """Pass ``strength`` for a device that also computes the tests ``computed``."""
    return Pass("strength", "comparisons become simpler ones",
                lambda forms: _each(forms, lambda form, undecided: reduced(form, undecided, computed)))


def _each(forms: Forms, function: Callable[[Form, list[str]], Form]) -> Forms:
    """``forms`` with ``function`` applied to every conjunct; the function appends reasons for undecided comparisons to
    its list.
    """
    def of(conjunct: Conjunct[Form]) -> Conjunct[Form]:
        undecided = list(conjunct.undecided)
        form = function(conjunct.now, undecided)
        return replace(conjunct, now=form, undecided=tuple(dict.fromkeys(undecided)))

    return Forms(tuple(map(of, forms.conjuncts)))


def _narrow(phase: Conjuncts) -> Conjuncts:
    made = narrow([c.now for c in phase.conjuncts])
    return Conjuncts(tuple(replace(c, now=e) for c, e in zip(phase.conjuncts, made, strict=True)))


def _tried(conjunct: Conjunct[Expr], function: Callable[[Expr], Now], otherwise: Now) -> Conjunct[Now]:
    """``conjunct`` with ``function`` applied; or with ``otherwise``, where it is left to the residual."""
    try:
        return Conjunct(conjunct.origin, function(conjunct.now), conjunct.undecided)
    except TooManyCases:
        return Conjunct(conjunct.origin, otherwise, (f"'{conjunct.origin}': it would make too many comparisons",))


def _prune(phase: Forms) -> Forms:
    def of(conjunct: Conjunct[Form]) -> Conjunct[Form]:
        form = pruned(conjunct.now) if conjunct.undecided else conjunct.now
        if form == conjunct.now:
            return conjunct
        why = f"'{conjunct.origin}': tests that exclude less than one pair in {1 / LEAST} are left out"
        return replace(conjunct, now=form, undecided=(*conjunct.undecided, why))

    return Forms(tuple(map(of, phase.conjuncts)))


def _share(phase: TreeOfTests) -> Shared:
    left = [c.origin for c in phase.forms.conjuncts if c.undecided]
    residual = None if not left else left[0] if len(left) == 1 else And(BOOL, tuple(left))
    reasons = tuple(dict.fromkeys(reason for c in phase.forms.conjuncts for reason in c.undecided))
    return share(phase.root, phase.forms.predicate, residual, reasons)


FOLD: Pass[Conjuncts, Conjuncts] = Pass("fold", "constants are folded", lambda phase: Conjuncts(tuple(
    replace(c, now=fold(c.now)) for c in phase.conjuncts)))
NARROW = Pass("narrow", "ranges of columns are narrowed by what must hold besides", _narrow)
LIFT: Pass[Conjuncts, Conjuncts] = Pass("lift", "CASE, least and greatest are lifted out of comparisons", lambda phase:
    Conjuncts(tuple(_tried(c, lift, Lit(BOOL, True)) for c in phase.conjuncts)))
LOGIC: Pass[Conjuncts, Forms] = Pass("logic", "three-valued logic becomes two-valued", lambda phase: Forms(tuple(
    _tried(c, positive, TRUE) for c in phase.conjuncts)))
STRENGTH = strength(None)
BOUNDS: Pass[Forms, Forms] = Pass("bounds", "comparisons become interval tests", lambda forms: _each(forms, bounded))
PRUNE = Pass("prune", "tests that exclude hardly any pair are left out", _prune)
SPLIT: Pass[Forms, SplitForms] = Pass("split", "terms of one stream become selections at ingress", lambda phase: (
    SplitForms(phase, split(junction("and", (c.now for c in phase.conjuncts))))))
MERGE: Pass[SplitForms, TreeOfTests] = Pass("merge", "tests of one pair of keys become one", lambda phase: TreeOfTests(
    phase.forms, merge(phase.split)))
SHARE = Pass("share", "equal keys and tests become one", _share)
MAIN: Pass[Shared, Shared] = Pass("main", "an index's test is chosen",
                                  lambda shared: replace(shared, plan=choose_main(shared.plan)))

#: In the order in which they run.
PASSES = (FOLD, NARROW, LIFT, LOGIC, STRENGTH, BOUNDS, PRUNE, SPLIT, MERGE, SHARE, MAIN)
