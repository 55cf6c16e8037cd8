"""A two-valued form as a tree of interval tests under construction: conjunctions merge what they can into one test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from .bounds import Relation, Unit
from .compare import Compared, compare
from .ir import Lit
from .keys import ExactKey, Key, UnitKey
from .logic import Both, Form, Junction, OneSided
from .types import BOOL

__all__ = ["Leaf", "Node", "build_tests"]


@dataclass
class Leaf:
    """A test under construction: ``keys`` by stream, each relation an interval, ``guards`` by stream."""

    keys: dict[str, Key]
    relations: list[Relation]
    guards: dict[str, list[OneSided]] = field(default_factory=lambda: {"r": [], "s": []})


#: A leaf, or ("and" | "or", nodes…).
Node = Leaf | tuple[object, ...]


def build_tests(form: Form, undecided: list[str]) -> Node:
    """Tests that hold for every pair for which ``form`` is true. Conditions on one stream become guards of a leaf.

    They hold for no other pair unless something is added to ``undecided``: what they do not decide, and why.
    """
    match form:
        case Both():
            made = compare(form, undecided)
            if isinstance(made, tuple):
                return _join("or", [_compared(m) for m in made])
            return build_tests(made, undecided)
        case OneSided():
            return _guarded(_unit(), [form])
        case Junction(op="and"):
            return _conjunction(form.args, undecided)
        case Junction(op="or", args=()):
            never = OneSided("r", Lit(BOOL, False), frozenset(("true",)))
            return _guarded(_unit(), [never])
        case Junction():
            nodes = [build_tests(a, undecided) for a in form.args]
            return _unit() if any(_is_idle(n) for n in nodes) else _join("or", nodes)
    raise AssertionError(form)


def _compared(made: Compared) -> Node:
    leaf = Leaf(made.keys, list(made.relations))
    if not made.guards:
        return leaf
    return _guarded(leaf, made.guards) if _roomy(leaf) else ("and", leaf, _guarded(_unit(), made.guards))


def _conjunction(args: Sequence[Form], undecided: list[str]) -> Node:
    guards = [a for a in args if isinstance(a, OneSided)]
    nodes = _flatten("and", [build_tests(a, undecided) for a in args if not isinstance(a, OneSided)])
    # Intervals of one key intersect: tests of the same pair of keys are one test.
    leaves: list[Leaf] = []
    others: list[Node] = []
    for node in nodes:
        if not isinstance(node, Leaf):
            others.append(node)
            continue
        twin = next((x for x in leaves if x.keys == node.keys), None)
        if twin is None:
            leaves.append(node)
        else:
            twin.relations += [r for r in node.relations if r not in twin.relations]
            for side in ("r", "s"):
                twin.guards[side] += [g for g in node.guards[side] if g not in twin.guards[side]]
    if guards:
        # A key that already has a code for NULL takes a guard for nothing.
        host = next((x for x in leaves if _roomy(x)), None)
        if host is None:
            host = _unit()
            leaves.append(host)
        _guarded(host, guards)
    if len(leaves) + len(others) > 1:  # a bare unit test beside others tests nothing
        leaves = [x for x in leaves if not _is_idle(x)] or (leaves[:1] if not others else [])
    return _join("and", [*leaves, *others] or [_unit()])


def _roomy(leaf: Leaf) -> bool:
    return all(not isinstance(k, ExactKey) or replace(k, nullable=True).width <= 64 for k in leaf.keys.values())


def _is_idle(node: Node) -> bool:
    """Whether ``node`` is a test that always holds."""
    return (isinstance(node, Leaf) and all(isinstance(k, UnitKey) for k in node.keys.values())
            and not any(node.guards.values()))


def _flatten(op: str, nodes: list[Node]) -> list[Node]:
    flat: list[Node] = []
    for node in nodes:
        flat += node[1:] if isinstance(node, tuple) and node[0] == op else [node]  # type: ignore[arg-type]  # a tuple is ("and" | "or", nodes…)
    return flat


def _join(op: str, nodes: list[Node]) -> Node:
    flat = _flatten(op, nodes)
    return flat[0] if len(flat) == 1 else (op, *flat)


def _unit() -> Leaf:
    return Leaf({"r": UnitKey("r"), "s": UnitKey("s")}, [Unit()])


def _guarded(leaf: Leaf, guards: Sequence[OneSided]) -> Leaf:
    for g in guards:
        if g not in leaf.guards[g.side]:
            leaf.guards[g.side].append(g)
    return leaf
