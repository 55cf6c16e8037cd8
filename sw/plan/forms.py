"""Two-valued forms: what a condition becomes when its three-valued logic is resolved (semantics, section 3).

A form is a positive combination (AND, OR) of leaves that are simply true or false. On its way to interval tests its
comparisons are replaced by simpler ones, and at last by `Compared`, each an interval test.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Literal, Protocol, Union

from ..lang import build
from ..lang.ir import Cmp, Expr, text
from ..lang.nulls import causes
from ..lang.schema import Side
from ..lang.traversal import sides
from .keys import Key
from .relations import Relation
from .text import key_text, relation_text

__all__ = ["FALSE", "TRUE", "Both", "Compared", "Computed", "ComputedTest", "Form", "Junction", "OneSided", "Value",
           "form_text", "junction", "present"]

Value = Literal["true", "false", "null"]


@dataclass(frozen=True)
class OneSided:
    """A condition on stream ``side`` alone: true when ``condition`` has one of the ``values``."""

    side: Side
    condition: Expr
    values: frozenset[Value]


@dataclass(frozen=True)
class Both:
    """A comparison of values (not of conditions) that reads both streams; false when an operand is NULL.

    ``origin``: the comparison that the user wrote, where this one is a part of it.
    """

    cmp: Cmp
    origin: Cmp | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Compared:
    """A comparison as an interval test on one key of each stream: all ``relations`` must hold."""

    r: Key
    s: Key
    relations: tuple[Relation, ...]


class ComputedTest(Protocol):
    """A test that a kind of device computes itself from keys of both streams, beside interval tests; hashable.

    `str` of it is its stable text form.
    """

    def keys(self, side: str) -> tuple[Key | None, ...]:
        """The keys of stream ``side`` that it reads, by their roles; None where a role has no key."""

    def described(self, r: tuple[int | None, ...], s: tuple[int | None, ...]) -> str:
        """The test in words, with its keys by their numbers among the stored ones."""


@dataclass(frozen=True)
class Computed:
    """A comparison as a test that the device computes itself."""

    test: ComputedTest


@dataclass(frozen=True)
class Junction:
    """Conjunction or disjunction; without operands, the constant true ("and") or false ("or")."""

    op: Literal["and", "or"]
    args: tuple[Form, ...]


Form = Union[OneSided, Both, Compared, Computed, Junction]
TRUE, FALSE = Junction("and", ()), Junction("or", ())


def junction(op: Literal["and", "or"], args: Iterable[Form]) -> Form:
    """``args`` combined: flat, each once, without what decides nothing."""
    neutral, absorbing = (TRUE, FALSE) if op == "and" else (FALSE, TRUE)
    flat: list[Form] = []
    for a in args:
        if a == absorbing:
            return absorbing
        flat += a.args if isinstance(a, Junction) and a.op == op else (a,)
    distinct = tuple(dict.fromkeys(flat))
    if not distinct:
        return neutral
    return distinct[0] if len(distinct) == 1 else Junction(op, distinct)


def present(cmp: Cmp, known: Container[Expr] = ()) -> tuple[OneSided, ...]:
    """That nothing of one stream in ``cmp`` is NULL, but for what is ``known`` to be tested anyway."""
    return tuple(OneSided(next(iter(sides(c))), build.is_null(c, str(c)), frozenset(("false",)))
                 for c in dict.fromkeys((*causes(cmp.a), *causes(cmp.b))) if len(sides(c)) == 1 and c not in known)


def form_text(form: Form) -> str:
    """The stable text form, on one line; equal for equal forms."""
    match form:
        case OneSided():
            return f"[{form.side}: {text(form.condition)} is {' or '.join(sorted(form.values))}]"
        case Both():
            return text(form.cmp)
        case Compared():
            said = " and ".join(relation_text(x, "R", "S") for x in form.relations)
            return f"<{said}; R = {key_text(form.r)}; S = {key_text(form.s)}>"
        case Computed():
            return f"<{form.test}>"
        case Junction(args=()):
            return "TRUE" if form.op == "and" else "FALSE"
        case Junction():
            return "(" + f" {form.op.upper()} ".join(map(form_text, form.args)) + ")"
    raise AssertionError(form)
