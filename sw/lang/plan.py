"""Pass: a predicate becomes keys, interval tests on them, and a Boolean tree over the tests.

This is all that a circuit knows of a predicate. What a tuple brings is computed on the host, once per tuple: its own
keys, by which it is found while stored, and its bounds on the other stream's keys, with which it probes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from ..errors import UnsupportedError
from . import build
from .bounds import EqualText, FloatBand, FloatOrder, Relation, Unit
from .ir import MIRRORED, Arith, Cast, Cmp, Col, Expr, Lit, Neg, columns, sides, walk
from .keys import ExactKey, FloatKey, Key, TextKey, UnitKey, exact_key
from .linear import ExactRelation, relations, strip_abs
from .logic import FALSE, Both, Form, Junction, OneSided, positive
from .schema import Side
from .types import BOOL, Float, String

__all__ = ["Leaf", "Plan", "Slot", "Test", "make_plan"]

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
    """How a predicate maps onto a circuit."""

    slots_r: tuple[Slot, ...]
    slots_s: tuple[Slot, ...]
    tests: tuple[Test, ...]
    tree: Tree

    def slots(self, side: str) -> tuple[Slot, ...]:
        """The keys that stream ``side`` is stored with."""
        return self.slots_r if side == "r" else self.slots_s


@dataclass
class Leaf:
    """A test under construction."""

    keys: dict[str, Key]
    relations: list[Relation]
    guards: dict[str, list[OneSided]] = field(default_factory=lambda: {"r": [], "s": []})


def make_plan(predicate: Expr) -> Plan:
    """Plan ``predicate``. Raises `UnsupportedError` that quotes the part that circuits cannot take."""
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

    tree = number(_build(positive(predicate)))
    return Plan(tuple(slots["r"]), tuple(slots["s"]), tuple(tests), tree)


def _with_null_code(key: Key, guarded: bool) -> Key:
    """The key with room for code 0 where a guard needs it."""
    if isinstance(key, ExactKey) and guarded and not key.nullable:
        return ExactKey(key.side, key.terms, key.low, key.high, True)
    return key


def _build(form: Form) -> Leaf | tuple[object, ...]:
    """Leaves and their combination. Conditions on one stream become guards of a leaf beside them."""
    match form:
        case Both():
            return _comparison(form.cmp)
        case OneSided():
            return _guarded(_unit(), [form])
        case Junction(op="and"):
            return _conjunction(form.args)
        case Junction(op="or", args=()):
            never = OneSided("r", Lit(BOOL, False), frozenset(("true",)))
            return _guarded(_unit(), [never])
        case Junction():
            return _join("or", [_build(a) for a in form.args])
    raise AssertionError(form)


def _conjunction(args: Sequence[Form]) -> Leaf | tuple[object, ...]:
    guards = [a for a in args if isinstance(a, OneSided)]
    nodes = _flatten("and", [_build(a) for a in args if not isinstance(a, OneSided)])
    # Intervals of one key intersect: tests of the same pair of keys are one test.
    leaves: list[Leaf] = []
    others: list[Leaf | tuple[object, ...]] = []
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
    if len(leaves) > 1:  # a bare unit test beside others tests nothing
        leaves = [x for x in leaves if not _is_idle(x)] or leaves[:1]
    return _join("and", [*leaves, *others] or [_unit()])


def _roomy(leaf: Leaf) -> bool:
    return all(not isinstance(k, ExactKey) or ExactKey(k.side, k.terms, k.low, k.high, True).width <= 64
               for k in leaf.keys.values())


def _is_idle(leaf: Leaf) -> bool:
    return all(isinstance(k, UnitKey) for k in leaf.keys.values()) and not any(leaf.guards.values())


def _flatten(op: str, nodes: list[Leaf | tuple[object, ...]]) -> list[Leaf | tuple[object, ...]]:
    flat: list[Leaf | tuple[object, ...]] = []
    for node in nodes:
        flat += node[1:] if isinstance(node, tuple) and node[0] == op else [node]  # type: ignore[arg-type]  # a tuple is ("and" | "or", nodes…)
    return flat


def _join(op: str, nodes: list[Leaf | tuple[object, ...]]) -> Leaf | tuple[object, ...]:
    flat = _flatten(op, nodes)
    return flat[0] if len(flat) == 1 else (op, *flat)


def _unit() -> Leaf:
    return Leaf({"r": UnitKey("r"), "s": UnitKey("s")}, [Unit()])


def _guarded(leaf: Leaf, guards: Sequence[OneSided]) -> Leaf:
    for g in guards:
        leaf.guards[g.side].append(g)
    return leaf


def _comparison(cmp: Cmp) -> Leaf | tuple[object, ...]:
    if any(isinstance(n, Lit) and n.value is None for n in walk(cmp)):
        return _build(FALSE)  # NULL is not true
    plain = strip_abs(cmp)
    if plain is not None:
        return _build(plain)
    if cmp.op == "<>":
        halves = [Both(Cmp(BOOL, op, cmp.a, cmp.b)) for op in ("<", ">")]
        return _join("or", [_comparison(h.cmp) for h in halves])
    if isinstance(cmp.a.type, String):
        return _texts(cmp)
    if isinstance(cmp.a.type, Float):
        return _floats(cmp)
    return _exact(cmp, relations(cmp))


def _exact(cmp: Cmp, relation: ExactRelation) -> Leaf:
    keys: dict[str, Key] = {}
    guards: dict[str, list[OneSided]] = {"r": [], "s": []}
    for side in ("r", "s"):
        key = exact_key(side, relation.terms(side), str(cmp))
        in_key = {c for t in key.terms for c in columns(t.expr)} if key.nullable else set()
        nullable = [c for c in columns(cmp) if c.side == side and c.nullable and c not in in_key]
        if nullable:
            # The key's values fill all 64 bits, or a column cancels out: its NULL goes to a test of its own.
            guards[side] = [OneSided(side, build.is_null(c, str(c)), frozenset(("false",))) for c in nullable]
        keys[side] = key
    leaf = Leaf(keys, [relation])
    extra = [g for side in ("r", "s") for g in guards[side]]
    return cast(Leaf, _join("and", [leaf, _guarded(_unit(), extra)])) if extra else leaf


def _texts(cmp: Cmp) -> Leaf:
    a, b, op = cmp.a, cmp.b, cmp.op
    assert isinstance(a, Col) and isinstance(b, Col)
    if a.side == "s":
        a, b = b, a
        op = MIRRORED[op]
    return Leaf({"r": TextKey("r", a), "s": TextKey("s", b)}, [EqualText(op)])


def _floats(cmp: Cmp) -> Leaf:
    a, b, op = cmp.a, cmp.b, cmp.op
    if sides(a) == {"s"} and sides(b) == {"r"}:
        a, b, op = b, a, MIRRORED[op]
    if sides(a) == {"r"} and sides(b) == {"s"}:
        return Leaf({"r": _float_key("r", a, False), "s": _float_key("s", b, False)}, [FloatOrder(op)])
    if isinstance(a, Lit):
        a, b, op = b, a, MIRRORED[op]
    if not isinstance(b, Lit):
        raise UnsupportedError(f"'{cmp}': circuits compare a float expression over both streams with a constant only; "
                               f"bring one stream to each side, or use device='cpu'")
    found: dict[str, tuple[Expr, int]] = {}
    _direction(a, 1, found, cmp)
    keys: dict[str, Key] = {side: _float_key(cast(Side, side), e, way < 0) for side, (e, way) in found.items()}
    return Leaf(keys, [FloatBand(a, found["r"][0], found["s"][0], op, float(cast(float, b.value)))])


def _float_key(side: Side, e: Expr, nan_low: bool) -> FloatKey:
    assert isinstance(e.type, Float)
    return FloatKey(side, e, e.type.bits, nan_low)


def _direction(e: Expr, way: int, found: dict[str, tuple[Expr, int]], cmp: Cmp) -> None:
    """Find the one-sided parts of ``e`` and whether ``e`` rises (+1) or falls (−1) with each."""
    streams = sides(e)
    if len(streams) == 1:
        side = next(iter(streams))
        if side in found:
            raise UnsupportedError(f"'{cmp}': circuits take one term of {side} in a float expression over both "
                                   f"streams, but '{found[side][0]}' and '{e}' stand apart; bring them together, or "
                                   f"use device='cpu'")
        found[side] = (e, way)
        return None
    match e:
        case Lit():
            return None
        case Neg():
            return _direction(e.a, -way, found, cmp)
        case Cast():
            return _direction(e.a, way, found, cmp)
        case Arith(op="+" | "-"):
            _direction(e.a, way, found, cmp)
            return _direction(e.b, way if e.op == "+" else -way, found, cmp)
        case Arith(a=Lit() as c, b=x) | Arith(a=x, b=Lit() as c) if c.value != 0:
            return _direction(x, way if cast(float, c.value) > 0 else -way, found, cmp)
    raise UnsupportedError(f"'{e}' in '{cmp}': circuits take sums, differences and multiples of one term of each "
                           f"stream here; rewrite it, or use device='cpu'")

