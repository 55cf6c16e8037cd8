"""Proofs and planted faults, and the functions that run them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType

from ..support.planting import faulty
from .harness import Harness
from .solve import Verdict, bounded, induction, to_smt


@dataclass(frozen=True)
class Fault:
    """A fault that breaks the property ``breaks`` of a proof: ``part.method`` has ``new`` instead of ``old``.

    ``part``: a class, or the module of a function. ``old``: an expression or a statement that the method's syntax tree
    has once, however it is laid out.
    """

    breaks: str
    part: type | ModuleType
    old: str
    new: str
    method: str = "elaborate"


@dataclass(frozen=True)
class Proof:
    """A proof of the properties of one circuit.

    Attributes:
        name: The name of the circuit, for the table; a file of `tests/formal` may have several.
        make: Makes the harness; called anew for every run.
        inductive: True for a proof by induction, False for a bounded one.
        depth: The number of cycles: those that the induction looks back; or those from power-up for which a bounded
            proof holds.
        faults: Faults to plant, at least one for each property.
        search: The number of cycles within which each fault shows.
        first: The number of cycles within which an item can leave the circuit.
        apart: True if the induction looks for a failure of one property after the other: many small searches instead of
            one that takes long. Each still assumes all properties in the cycles before.
        quick: True if it takes only seconds, and so runs with all other tests; the rest runs by ``make formal``.
    """

    name: str
    make: Callable[[], Harness]
    depth: int
    inductive: bool = True
    faults: tuple[Fault, ...] = ()
    search: int = 12
    first: int = 12
    apart: bool = False
    quick: bool = True

    @cached_property
    def properties(self) -> tuple[str, ...]:
        """Names of the properties that it proves."""
        return tuple(self.make().properties)


def check(proof: Proof, folder: Path) -> Verdict:
    """The properties of ``proof`` that fail; none if it is proved."""
    to_smt(proof.make().rtlil(), folder)
    if (broken := bounded(folder, proof.depth)) or not proof.inductive:
        return broken
    if not proof.apart:
        return induction(folder, proof.depth)
    for name in proof.properties:
        to_smt(proof.make().rtlil(only=name, held=True), folder)
        broken += induction(folder, proof.depth)
    return broken


def find(proof: Proof, fault: Fault, folder: Path) -> Verdict:
    """The properties that fail in the circuit with ``fault`` planted: the one that it breaks, or none."""
    with planted(fault):
        to_smt(proof.make().rtlil(only=fault.breaks), folder)
    return bounded(folder, proof.search)


def alive(proof: Proof, folder: Path) -> bool:
    """True if the assumptions of ``proof`` let an item leave the circuit.

    Contradictory assumptions, or a clock that never ticks, would prove any property.
    """
    h = proof.make()
    output = h.output or (h.dut.o if hasattr(h.dut, "o") else h.dut.task)
    if not hasattr(output, "valid"):
        output = output[-1]
    h.prove("nothing ever leaves", ~(output.valid & output.ready))
    to_smt(h.rtlil(only="nothing ever leaves"), folder)
    return bounded(folder, proof.first) == ["nothing ever leaves"]


@contextmanager
def planted(fault: Fault) -> Iterator[None]:
    """Context manager: ``fault.part`` elaborates with the fault."""
    part, name = fault.part, fault.method
    sound = getattr(part, name)
    setattr(part, name, faulty(part, name, fault.old, fault.new))
    try:
        yield
    finally:
        setattr(part, name, sound)
