"""Transition systems, their inductive invariants, and the obligations that Z3 decides.

A state is an object whose attributes are functions of terms. A system names the invariants that hold in its first state
and that every step keeps, and what follows from them. An obligation is proved if Z3 finds no counterexample: there is
no bound on the numbers of cores, inputs or records in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import z3

from ..proofs import Fault

#: Units of Z3's own count of its work, which is the same on every machine. The proofs need at most a sixth.
_WORK = 400_000

State = Any
Formula = Any


@dataclass(frozen=True)
class System:
    """A system whose steps keep its invariants.

    Attributes:
        assumed: What is assumed of its inputs and constants, and what the definitions that it uses say.
        first: The first state.
        steps: By name, what must hold for the step, and the state after it.
        before: The state before a step, of uninterpreted functions.
        invariants: By name, a formula on a state.
        follows: By name, a formula on a state that the invariants imply.
    """

    assumed: tuple[Formula, ...]
    first: State
    before: State
    steps: Mapping[str, tuple[Formula, State]]
    invariants: Mapping[str, Callable[[State], Formula]]
    follows: Mapping[str, Callable[[State], Formula]]


@dataclass(frozen=True)
class Model:
    """A system with its name, the sentence that its proof shows, and the faults that must break it."""

    name: str
    shows: str
    make: Callable[[], System]
    faults: tuple[Fault, ...]


def changed(state: State, **functions: Any) -> State:
    """``state`` with other ``functions``."""
    return SimpleNamespace(**{**vars(state), **functions})


def inside(n: Any, end: Any) -> Formula:
    """True if ``n`` is 0 or more and less than ``end``."""
    return z3.And(n >= 0, n < end)


def obligations(system: System) -> Iterator[tuple[str, list[Formula], Formula]]:
    """Each obligation's name, what it may use, and what must follow."""
    held = [holds(system.before) for holds in system.invariants.values()]
    for name, holds in system.invariants.items():
        yield f"{name}: at first", [*system.assumed], holds(system.first)
        for step, (guard, after) in system.steps.items():
            yield f"{name}: after {step}", [*system.assumed, *held, guard], holds(after)
    for name, holds in system.follows.items():
        yield name, [*system.assumed, *held], holds(system.before)


def broken(system: System, only: str | None = None) -> list[str]:
    """The obligations that Z3 does not prove; of the one named ``only``, if given."""
    return [name for name, given, wanted in obligations(system)
            if only in (None, name) and not _contradict(*given, z3.Not(wanted))]


def idle(system: System) -> list[str]:
    """The steps that assumptions and invariants rule out: all of them would be proved to keep anything."""
    held = [holds(system.before) for holds in system.invariants.values()]
    return [step for step, (guard, _) in system.steps.items() if _contradict(*system.assumed, *held, guard)]


def _contradict(*formulas: Formula) -> bool:
    solver = z3.SolverFor("ALL")
    solver.set("rlimit", _WORK)
    solver.add(*formulas)
    return bool(solver.check() == z3.unsat)
