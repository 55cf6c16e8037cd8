"""Pass: a predicate becomes keys, interval tests on them, and a Boolean tree over the tests.

This is all that a device which compares knows of a predicate. What a tuple brings is computed on the host, once per
tuple: its own keys, by which it is found while stored, and its bounds on the other stream's keys, with which it probes.

What is no interval test becomes the strongest tests that it implies, and the parts of the predicate which those do not
decide are its *residual*: the host verifies them on the pairs that the tests let through.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

from .bounds import Relation
from .ir import And, Expr
from .keys import ExactKey, Key
from .leaves import Leaf, build_tests
from .lift import TooManyCases, lift
from .logic import TRUE, Form, OneSided, junction, positive
from .types import BOOL

__all__ = ["Plan", "Slot", "Test", "make_plan"]

#: A positive Boolean combination of tests, as `splitjoin.device.wire.Tree`.
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
    """One interval test: ``r`` and ``s`` index the plan's slots; all ``relations`` must hold, each an interval."""

    r: int
    s: int
    relations: tuple[Relation, ...]


@dataclass(frozen=True)
class Plan:
    """How a predicate maps onto interval tests.

    ``residual``: None where the tests decide. Else the tests are necessary only, and a pair for which they hold is a
    result exactly if this condition is true as well. ``reasons`` says, for every comparison that the tests do not
    decide, why.
    """

    slots_r: tuple[Slot, ...]
    slots_s: tuple[Slot, ...]
    tests: tuple[Test, ...]
    tree: Tree
    residual: Expr | None = None
    reasons: tuple[str, ...] = ()

    def slots(self, side: str) -> tuple[Slot, ...]:
        """The keys that stream ``side`` is stored with."""
        return self.slots_r if side == "r" else self.slots_s


def make_plan(predicate: Expr) -> Plan:
    """Plan ``predicate``, whatever it is: what tests cannot decide is in the residual."""
    tests: list[Test] = []
    slots: dict[str, dict[Slot, int]] = {"r": {}, "s": {}}

    def place(leaf: Leaf) -> int:
        at = {}
        for side in ("r", "s"):
            slot = Slot(_with_null_code(leaf.keys[side], bool(leaf.guards[side])), tuple(leaf.guards[side]))
            at[side] = slots[side].setdefault(slot, len(slots[side]))
        tests.append(Test(at["r"], at["s"], tuple(leaf.relations)))
        return len(tests) - 1

    def number(node: object) -> Tree:
        if isinstance(node, Leaf):
            return place(node)
        op, *args = cast(tuple[object, ...], node)
        return (op, *(number(a) for a in args))

    reasons: list[str] = []
    left: list[Expr] = []
    forms: list[Form] = []
    for part in predicate.args if isinstance(predicate, And) else (predicate,):
        undecided: list[str] = []
        try:
            form = positive(lift(part))
            build_tests(form, undecided)
        except TooManyCases:
            form, undecided = TRUE, [f"'{part}': it would make too many comparisons"]
        forms.append(form)
        if undecided:
            left.append(part)
            reasons += [r for r in dict.fromkeys(undecided) if r not in reasons]
    residual = None if not left else left[0] if len(left) == 1 else And(BOOL, tuple(left))
    tree = number(build_tests(junction("and", forms), []))
    return Plan(tuple(slots["r"]), tuple(slots["s"]), tuple(tests), tree, residual, tuple(reasons))


def _with_null_code(key: Key, guarded: bool) -> Key:
    """The key with room for code 0 where a guard needs it."""
    if isinstance(key, ExactKey) and guarded and not key.nullable:
        return replace(key, nullable=True)
    return key
