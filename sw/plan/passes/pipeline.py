"""The compiler: named passes, in their order, from a typed condition to its plan.

A condition is compiled conjunct by conjunct up to pass ``bounds``, so that each is known to be decided by its tests or
not: those that are not make the residual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ...circuit.passes.clock import pipelined
from ...circuit.passes.width import widths
from ...lang.ir import And, Expr, text
from ...lang.types import BOOL
from ..forms import TRUE, Both, Compared, Form, Junction, Measured, OneSided, form_text, junction
from ..plan import Plan
from ..text import plan_lines
from .bounds import bounded
from .fold import fold
from .lift import TooManyCases, lift
from .logic import positive
from .main import choose_main
from .merge import Node, merge, node_text
from .narrow import narrow
from .share import share
from .split import Split, split
from .strength import Sums, reduced

__all__ = ["PASSES", "Pass", "Program", "compiled", "program", "stages"]


@dataclass(frozen=True)
class Part:
    """A conjunct of the condition: as it was written, and what has become of it.

    ``undecided``: why tests will not decide it, once for each comparison.
    """

    origin: Expr
    now: Expr | Form
    undecided: tuple[str, ...] = ()


@dataclass(frozen=True)
class Program:
    """A condition on its way: its conjuncts, then what all of them together have become."""

    parts: tuple[Part, ...]
    whole: Split | Node | Plan | None = None
    #: What becomes of comparisons that are sum tests (see `.strength`).
    sums: Sums = "none"
    #: MHz that a circuit's datapath gets registers for.
    clock: float | None = None

    def __str__(self) -> str:
        """The stable text form."""
        match self.whole:
            case None:
                return "\n".join(text(p.now) if isinstance(p.now, Expr) else form_text(p.now) for p in self.parts)
            case Plan():
                return "\n".join(plan_lines(self.whole))
            case Split():
                return str(self.whole)
        return node_text(self.whole)


@dataclass(frozen=True)
class Pass:
    """A step of the compiler. ``what``: what it does, in words."""

    name: str
    what: str
    run: Callable[[Program], Program]


def program(predicate: Expr, sums: Sums = "none", clock: float | None = None) -> Program:
    """Condition ``predicate`` as no pass has seen it yet."""
    parts = predicate.args if isinstance(predicate, And) else (predicate,)
    return Program(tuple(Part(p, p) for p in parts), sums=sums, clock=clock)


def stages(predicate: Expr, sums: Sums = "none", clock: float | None = None) -> Iterator[tuple[Pass, Program]]:
    """Every pass and the program as it leaves it."""
    now = program(predicate, sums, clock)
    for step in PASSES:
        now = step.run(now)
        yield step, now


def compiled(predicate: Expr, sums: Sums = "none", clock: float | None = None) -> Plan:
    """The plan of condition ``predicate``, whatever it is: what tests cannot decide is in its residual."""
    now = program(predicate, sums, clock)
    for step in PASSES:
        now = step.run(now)
    assert isinstance(now.whole, Plan)
    return now.whole


def _expressions(function: Callable[[Expr], Expr]) -> Callable[[Program], Program]:
    def run(now: Program) -> Program:
        return replace(now, parts=tuple(replace(p, now=function(p.now)) if isinstance(p.now, Expr) else p
                                        for p in now.parts))

    return run


def _forms(function: Callable[[Form, list[str], Sums], Form]) -> Callable[[Program], Program]:
    def of(part: Part, sums: Sums) -> Part:
        assert isinstance(part.now, (OneSided, Both, Compared, Measured, Junction))
        undecided = list(part.undecided)
        made = function(part.now, undecided, sums)
        return replace(part, now=made, undecided=tuple(dict.fromkeys(undecided)))

    return lambda now: replace(now, parts=tuple(of(p, now.sums) for p in now.parts))


def _narrow(now: Program) -> Program:
    made = narrow([p.now for p in now.parts if isinstance(p.now, Expr)])
    return replace(now, parts=tuple(replace(p, now=e) for p, e in zip(now.parts, made, strict=True)))


def _lift(now: Program) -> Program:
    def of(part: Part) -> Part:
        assert isinstance(part.now, Expr)
        try:
            return replace(part, now=lift(part.now))
        except TooManyCases:
            return replace(part, now=TRUE, undecided=(f"'{part.origin}': it would make too many comparisons",))

    return replace(now, parts=tuple(map(of, now.parts)))


def _logic(now: Program) -> Program:
    return replace(now, parts=tuple(replace(p, now=positive(p.now)) if isinstance(p.now, Expr) else p
                                    for p in now.parts))


def _split(now: Program) -> Program:
    return replace(now, whole=split(junction("and", (p.now for p in now.parts if not isinstance(p.now, Expr)))))


def _merge(now: Program) -> Program:
    assert isinstance(now.whole, Split)
    return replace(now, whole=merge(now.whole))


def _share(now: Program) -> Program:
    assert now.whole is not None and not isinstance(now.whole, (Split, Plan))
    left = [p.origin for p in now.parts if p.undecided]
    residual = None if not left else left[0] if len(left) == 1 else And(BOOL, tuple(left))
    reasons = tuple(dict.fromkeys(reason for p in now.parts for reason in p.undecided))
    return replace(now, whole=replace(share(now.whole), residual=residual, reasons=reasons))


def _main(now: Program) -> Program:
    assert isinstance(now.whole, Plan)
    return replace(now, whole=choose_main(now.whole))


def _width(now: Program) -> Program:
    assert isinstance(now.whole, Plan)
    return replace(now, whole=widths(now.whole, now.sums, now.clock))


def _clock(now: Program) -> Program:
    assert isinstance(now.whole, Plan)
    return replace(now, whole=pipelined(now.whole, now.clock))


#: In the order in which they run.
PASSES: tuple[Pass, ...] = (
    Pass("fold", "constants are folded", _expressions(fold)),
    Pass("narrow", "ranges of columns are narrowed by what must hold besides", _narrow),
    Pass("lift", "CASE, least and greatest are lifted out of comparisons", _lift),
    Pass("logic", "three-valued logic becomes two-valued", _logic),
    Pass("strength", "comparisons become simpler ones", _forms(reduced)),
    Pass("bounds", "comparisons become interval tests", _forms(lambda form, undecided, sums: bounded(form, undecided))),
    Pass("split", "terms of one stream become selections at ingress", _split),
    Pass("merge", "tests of one pair of keys become one", _merge),
    Pass("share", "equal keys and tests become one", _share),
    Pass("main", "an index's test is chosen", _main),
    Pass("width", "tests of constant width get by with one bound", _width),
    Pass("clock", "the datapath gets registers for a clock", _clock),
)
