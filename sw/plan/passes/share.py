"""Pass ``share``: common subexpressions. Equal keys with equal selections are stored once, equal tests made once.

What all branches of an OR ask for is asked for once (so that an index may find candidates by it), and what another
branch implies is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from ...lang.ir import Expr
from ...lang.schema import Side
from ..forms import ComputedTest
from ..keys import ExactKey, Key
from ..plan import Plan, Slot, Test, Tree
from .merge import ComputedLeaf, Leaf, Node
from .phases import Placed, Shared

__all__ = ["share"]


def share(node: Node, predicate: Expr, residual: Expr | None, reasons: tuple[str, ...]) -> Shared:
    """The plan of condition ``predicate`` with the tests ``node`` and what these do not decide (see `Plan`)."""
    leaves: dict[tuple[Slot, Slot, frozenset[object]], tuple[int, Leaf]] = {}
    computed: dict[ComputedTest, int] = {}  # numbered from −1 down until it is known how many leaves there are

    def number(inner: Node) -> Tree:
        if isinstance(inner, ComputedLeaf):
            return computed.setdefault(inner.test, -1 - len(computed))
        if not isinstance(inner, Leaf):
            op, *args = inner
            return _combined(str(op), [number(cast(Node, a)) for a in args])
        key = _slot(inner, "r"), _slot(inner, "s"), frozenset(inner.relations)
        return leaves.setdefault(key, (len(leaves), inner))[0]

    tree = number(node)
    used = set(_used(tree))
    slots_r: dict[Slot, int] = {}
    slots_s: dict[Slot, int] = {}
    tests: list[Test] = []
    order: dict[int, int] = {}
    for (r, s, _), (j, leaf) in leaves.items():
        if j in used:
            order[j] = len(tests)
            tests.append(Test(slots_r.setdefault(r, len(slots_r)), slots_s.setdefault(s, len(slots_s)),
                              tuple(leaf.relations)))
    placed: list[Placed] = []
    for test, j in computed.items():
        if j in used:
            order[j] = len(tests) + len(placed)
            placed.append(Placed(test, _places(test.keys("r"), slots_r), _places(test.keys("s"), slots_s)))
    plan = Plan(predicate, tuple(slots_r), tuple(slots_s), tuple(tests), _renumbered(tree, order), residual, reasons)
    return Shared(plan, tuple(placed))


def _places(keys: tuple[Key | None, ...], slots: dict[Slot, int]) -> tuple[int | None, ...]:
    """The numbers of ``keys`` among the slots, to which they are added."""
    return tuple(None if key is None else slots.setdefault(Slot(key), len(slots)) for key in keys)


def _combined(op: str, args: list[Tree]) -> Tree:
    """``args`` combined: each once, without those that others imply, what all have in common in front."""
    parts: dict[frozenset[Tree], tuple[Tree, ...]] = {}
    for a in (x for arg in args for x in _operands(arg, op)):
        parts.setdefault(frozenset(_operands(a, _other(op))), _operands(a, _other(op)))
    # Of a long list nearly all are single tests: only what has several is compared with others of that kind.
    single = {x for key in parts if len(key) == 1 for x in key}
    several = [key for key in parts if len(key) > 1]
    kept = [inner for key, inner in parts.items() if len(key) == 1
            or (single.isdisjoint(key) and not any(other < key for other in several))]
    common = [x for x in kept[0] if all(x in inner for inner in kept)] if len(kept) > 1 else []
    rests = [_joined(_other(op), tuple(x for x in inner if x not in common)) for inner in kept]
    return _joined(_other(op), (*common, _joined(op, tuple(rests))))


def _joined(op: str, operands: tuple[Tree, ...]) -> Tree:
    return operands[0] if len(operands) == 1 else (op, *operands)


def _other(op: str) -> str:
    return "or" if op == "and" else "and"


def _operands(tree: Tree, op: str) -> tuple[Tree, ...]:
    return cast(tuple[Tree, ...], tree[1:]) if isinstance(tree, tuple) and tree[0] == op else (tree,)


def _used(tree: Tree) -> Iterator[int]:
    if isinstance(tree, int):
        yield tree
    else:
        for a in tree[1:]:
            yield from _used(cast(Tree, a))


def _renumbered(tree: Tree, order: dict[int, int]) -> Tree:
    if isinstance(tree, int):
        return order[tree]
    return (tree[0], *(_renumbered(cast(Tree, a), order) for a in tree[1:]))


def _slot(leaf: Leaf, side: Side) -> Slot:
    return Slot(_with_null_code(leaf.keys[side], bool(leaf.guards[side])), tuple(leaf.guards[side]))


def _with_null_code(key: Key, guarded: bool) -> Key:
    """The key with room for code 0 where a guard needs it."""
    if isinstance(key, ExactKey) and guarded and not key.nullable:
        return replace(key, nullable=True)
    return key
