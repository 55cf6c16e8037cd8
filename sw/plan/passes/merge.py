"""Pass ``merge``: interval tests of a conjunction on one pair of keys become one, and selections find their keys.

Intervals of one key intersect, so that ``lo <= x AND x <= hi`` is one test. A selection makes the code of a key 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ...lang.ir import Lit
from ...lang.types import BOOL
from ..forms import Compared, Computed, ComputedTest, Form, Junction, OneSided, form_text
from ..keys import ExactKey, Key, UnitKey
from ..relations import Relation, Unit
from ..text import key_text, relation_text
from .split import Split

__all__ = ["ComputedLeaf", "Leaf", "Node", "merge", "node_text"]


@dataclass
class Leaf:
    """A test under construction: ``keys`` by stream, each relation an interval, ``guards`` by stream."""

    keys: dict[str, Key]
    relations: list[Relation]
    guards: dict[str, list[OneSided]] = field(default_factory=lambda: {"r": [], "s": []})


@dataclass(frozen=True)
class ComputedLeaf:
    """A test that the device computes itself."""

    test: ComputedTest


#: A leaf, or ("and" | "or", nodes…).
Node = Leaf | ComputedLeaf | tuple[object, ...]


def merge(terms: Split) -> Node:
    """The tests for a pair to pass: the selections are among what must hold for the first test that has room."""
    mixed = terms.mixed
    others = mixed.args if isinstance(mixed, Junction) and mixed.op == "and" else (mixed,)
    return _conjunction((*terms.r, *terms.s, *others))


def node_text(node: Node) -> str:
    """The stable text form, a line a test."""
    if isinstance(node, Leaf):
        said = " and ".join(relation_text(x, "R", "S") for x in node.relations)
        guards = "; ".join(form_text(g) for side in ("r", "s") for g in node.guards[side])
        return (f"<{said}; R = {key_text(node.keys['r'])}; S = {key_text(node.keys['s'])}"
                f"{'; if ' + guards if guards else ''}>")
    if isinstance(node, ComputedLeaf):
        return f"<{node.test}>"
    op, *args = node
    inner = "\n".join(node_text(a) for a in args)  # type: ignore[arg-type]  # a tuple is ("and" | "or", nodes…)
    return f"{op}\n" + "\n".join("  " + line for line in inner.splitlines())


def _node(form: Form) -> Node:
    match form:
        case Compared():
            return Leaf({"r": form.r, "s": form.s}, list(form.relations))
        case Computed():
            return ComputedLeaf(form.test)
        case OneSided():
            return _guarded(_unit(), [form])
        case Junction(op="and"):
            return _conjunction(form.args)
        case Junction(op="or", args=()):
            never = OneSided("r", Lit(BOOL, False), frozenset(("true",)))
            return _guarded(_unit(), [never])
        case Junction():
            nodes = [_node(a) for a in form.args]
            return _unit() if any(_is_idle(n) for n in nodes) else _join("or", nodes)
    raise AssertionError(f"pass bounds leaves no comparison, but here is {form_text(form)}")


def _conjunction(args: Sequence[Form]) -> Node:
    guards = [a for a in args if isinstance(a, OneSided)]
    nodes = _flatten("and", [_node(a) for a in args if not isinstance(a, OneSided)])
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
