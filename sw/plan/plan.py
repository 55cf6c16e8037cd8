"""What a predicate is planned as: keys, interval tests on them, and a Boolean tree over the tests.

This is all that a device which compares knows of a predicate. What a tuple brings is computed on the host, once per
tuple: its own keys, by which it is found while stored, and its bounds on the other stream's keys, with which it probes.

What is no interval test becomes the strongest tests that it implies, and the parts of the predicate which those do not
decide are its *residual*: the host verifies them on the pairs that the tests let through.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ..circuit.schedule import Registers
from ..circuit.sum_relations import SumRelation
from ..lang.ir import Expr
from .forms import OneSided
from .keys import Key
from .linear import ExactRelation
from .relations import EqualText, FloatOrder, Relation, TextOrder

__all__ = ["Main", "Plan", "Slot", "SumTest", "Test", "Tree"]

#: A positive Boolean combination of tests, as `splitjoin.circuit.wire.Tree`.
Tree = int | tuple[object, ...]


@dataclass(frozen=True)
class Slot:
    """A key as a stored tuple has it: its code, or 0 where it is NULL or a guard does not hold."""

    key: Key
    guards: tuple[OneSided, ...] = ()

    @property
    def null_code(self) -> bool:
        """Whether code 0 occurs."""
        return self.key.nullable or bool(self.guards)


@dataclass(frozen=True)
class Test:
    """One interval test: ``r`` and ``s`` index the plan's slots; all ``relations`` must hold, each an interval.

    ``width``: for circuits, how much more the high end of an interval is than the low end, in every interval but those
    that a key's range cuts off or that are empty; None where that differs, or both ends are needed.
    """

    r: int
    s: int
    relations: tuple[Relation, ...]
    width: int | None = None

    @property
    def is_point(self) -> bool:
        """Whether a probe's interval is at most one key, so that equal keys can be looked up."""
        return any(isinstance(x, (ExactRelation, FloatOrder, EqualText, TextOrder)) and x.op == "="
                   for x in self.relations)


@dataclass(frozen=True)
class SumTest:
    """One sum test: of each axis the slots of its keys, and those of the keys beside them; None where there is none."""

    relation: SumRelation
    r: tuple[int, ...]
    s: tuple[int, ...]
    rest_r: int | None = None
    rest_s: int | None = None


@dataclass(frozen=True)
class Main:
    """The test that an index core finds candidates by.

    Attributes:
        test: Its number in the plan, None where every stored tuple has to be looked at.
        kind: "hash": equal keys are looked up; "bucket": keys near each other lie together, and a probe visits those
            that its interval meets; None where every stored tuple has to be looked at.
        reason: Why, in words.
    """

    test: int | None
    kind: Literal["hash", "bucket"] | None
    reason: str

    def __str__(self) -> str:
        return f"{self.kind or 'scan'}: {self.reason}"


@dataclass(frozen=True)
class Plan:
    """How a predicate maps onto interval tests, and for circuits onto sum tests beside them. In ``tree`` the sum tests
    follow the interval tests.

    ``residual``: None where the tests decide. Else the tests are necessary only, and a pair for which they hold is a
    result exactly if this condition is true as well. ``reasons`` says, for every comparison that the tests do not
    decide, why. ``main``: what an index finds candidates by; None before it is
    chosen. ``registers``: what a circuit's datapath has for a ``clock``, in MHz, that was asked for.
    """

    slots_r: tuple[Slot, ...]
    slots_s: tuple[Slot, ...]
    tests: tuple[Test, ...]
    tree: Tree
    residual: Expr | None = None
    reasons: tuple[str, ...] = ()
    main: Main | None = None
    sums: tuple[SumTest, ...] = ()
    registers: Registers = field(default_factory=Registers)
    clock: float | None = None

    def slots(self, side: str) -> tuple[Slot, ...]:
        """The keys that stream ``side`` is stored with."""
        return self.slots_r if side == "r" else self.slots_s

    @property
    def required(self) -> tuple[int, ...]:
        """The interval tests that must hold for every match: those that stand in the outermost AND, or alone."""
        args = self.tree[1:] if isinstance(self.tree, tuple) and self.tree[0] == "and" else (self.tree,)
        return tuple(j for j in args if isinstance(j, int) and j < len(self.tests))
