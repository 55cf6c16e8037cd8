"""Proofs and planted faults, and the functions that run them."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType

from .harness import Harness
from .solve import Verdict, bounded, induction, to_smt

__all__ = ["Fault", "Proof", "alive", "check", "find", "planted"]


@dataclass(frozen=True)
class Fault:
    """A fault that breaks the property ``breaks`` of a proof: ``part.method`` has ``new`` instead of ``old``.

    ``part``: a class, or the module of a function. ``old``: an expression or a statement that the method's syntax tree
    has once, however it is laid out; where it is neither, a text that its source has once.
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
    source = textwrap.dedent(inspect.getsource(sound))
    tree = _replaced(source, fault)
    if tree is None:
        assert source.count(fault.old) == 1, f"{part.__name__}.{name} has {source.count(fault.old)} times: {fault.old}"
        tree = ast.parse(source.replace(fault.old, fault.new))
    names: dict[str, object] = {}
    exec(compile(tree, f"<{part.__name__} with a fault>", "exec"),
         vars(part if isinstance(part, ModuleType) else sys.modules[part.__module__]), names)
    setattr(part, name, names[name])
    try:
        yield
    finally:
        setattr(part, name, sound)


def _replaced(source: str, fault: Fault) -> ast.Module | None:
    """The syntax tree of ``source`` with the fault; None if it has ``fault.old`` not once as a node."""
    try:
        (old,), new = ast.parse(fault.old).body, ast.parse(fault.new).body
    except (SyntaxError, ValueError):  # neither an expression nor a statement
        return None
    if isinstance(old, ast.Expr) and len(new) == 1 and isinstance(new[0], ast.Expr):
        searched, replacement = ast.dump(old.value), new[0].value
    else:
        searched, replacement = ast.dump(old), new
    tree, nodes = ast.parse(source), 0

    class Planting(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt]:
            nonlocal nodes
            if ast.dump(node) != searched:
                return self.generic_visit(node)
            nodes += 1
            return replacement

    Planting().visit(tree)
    return ast.fix_missing_locations(tree) if nodes == 1 else None
