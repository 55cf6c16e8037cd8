"""Passes that build the tree of tests, and the plan from it: ``split``, ``merge``, ``share`` and ``main``.

``split`` separates a conjunction into terms of R alone, of S alone, and of both streams. The one-sided ones become
selections at ingress: the host evaluates them once per tuple. A tuple that fails one keeps its place in its window; its
keys are stored as code 0 and its intervals are empty.

``merge`` combines interval tests of a conjunction on the same pair of keys, because intervals of one key intersect:
``lo <= x AND x <= hi`` is one test. A selection that does not hold makes the code of a key 0.

``share`` stores equal keys with equal selections once, and computes equal tests once. A test common to all branches of
an OR is moved in front of it, so that an index may find candidates by it; branches that another branch implies are
dropped.

``main`` chooses the test by which an index core finds candidates, so that it need not compare every stored tuple. The
test must hold for every match, so it is one of the outermost AND. The best choice is a test in which a probe's interval
is a single key (an equality), by hash; the next one is a test of small selectivity, by buckets of neighbouring keys.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import cast

from splitjoin.lang.ir import Expr, Lit
from splitjoin.lang.schema import Side
from splitjoin.lang.types import BOOL

from ..forms import Compared, Computed, ComputedTest, Form, Junction, OneSided, form_text, junction
from ..keys import ExactKey, Key, UnitKey, WideKey
from ..linear import ExactRelation
from ..plan import KeySlot, Main, Placed, Plan, Shared, Test, Tree
from ..relations import FloatBand, FloatOrder, Relation, Unit, WideRelation, tightest
from ..text import key_text, relation_text


@dataclass(frozen=True)
class Split:
    """A conjunction by streams: the selections ``r`` and ``s``, each one condition, and the form ``mixed``."""

    r: tuple[OneSided, ...]
    s: tuple[OneSided, ...]
    mixed: Form

    def __str__(self) -> str:
        lines = [f"{name}: {form_text(x)}" for name, terms in (("R alone", self.r), ("S alone", self.s)) for x in terms]
        return "\n".join([*lines, f"both: {form_text(self.mixed)}"])


def split(form: Form) -> Split:
    """The terms of ``form`` by the streams that they read."""
    terms = form.args if isinstance(form, Junction) and form.op == "and" else (form,)
    alone = [t for t in terms if isinstance(t, OneSided)]
    return Split(tuple(t for t in alone if t.side == "r"), tuple(t for t in alone if t.side == "s"),
                 junction("and", (t for t in terms if not isinstance(t, OneSided))))


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
    """The tests that a match must pass; the selections become guards of the first test whose keys have room."""
    mixed = terms.mixed
    others = mixed.args if isinstance(mixed, Junction) and mixed.op == "and" else (mixed,)
    return _conjunction((*terms.r, *terms.s, *others))


def node_text(node: Node) -> str:
    """The stable text form, a line per test."""
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
    # Intervals of one key intersect, so tests of the same pair of keys become one test.
    by_keys: dict[tuple[Key, Key], Leaf] = {}
    others: list[Node] = []
    for node in nodes:
        if not isinstance(node, Leaf):
            others.append(node)
            continue
        twin = by_keys.setdefault((node.keys["r"], node.keys["s"]), node)
        if twin is not node:
            twin.relations = tightest([*twin.relations, *(r for r in node.relations if r not in twin.relations)])
            for side in ("r", "s"):
                twin.guards[side] += [g for g in node.guards[side] if g not in twin.guards[side]]
    leaves = list(by_keys.values())
    if guards:
        # A guard costs nothing on a key that already has a code for NULL.
        host = next((x for x in leaves if _roomy(x)), None)
        if host is None:
            host = _unit()
            leaves.append(host)
        _guarded(host, guards)
    if len(leaves) + len(others) > 1:  # a unit test without guards is redundant beside others
        leaves = [x for x in leaves if not _is_idle(x)] or (leaves[:1] if not others else [])
    return _join("and", [*leaves, *others] or [_unit()])


def _roomy(leaf: Leaf) -> bool:
    return all(not isinstance(k, ExactKey) or replace(k, nullable=True).width <= 64 for k in leaf.keys.values())


def _is_idle(node: Node) -> bool:
    """True if ``node`` is a test that always holds."""
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


def share(node: Node, predicate: Expr, residual: Expr | None, reasons: tuple[str, ...]) -> Shared:
    """The plan of condition ``predicate`` with the tests ``node`` and the residual that these do not decide (see
    `Plan`).
    """
    leaves: dict[tuple[KeySlot, KeySlot, frozenset[object]], tuple[int, Leaf]] = {}
    computed: dict[ComputedTest, int] = {}  # numbered from −1 down until the number of interval tests is known

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
    slots_r: dict[KeySlot, int] = {}
    slots_s: dict[KeySlot, int] = {}
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


def _places(keys: tuple[Key | None, ...], slots: dict[KeySlot, int]) -> tuple[int | None, ...]:
    """The numbers of ``keys`` among the slots; new keys are added to these."""
    return tuple(None if key is None else slots.setdefault(KeySlot(key), len(slots)) for key in keys)


def _combined(op: str, args: list[Tree]) -> Tree:
    """``args`` combined, without duplicates and operands that others imply; operands common to all are moved to the
    front.
    """
    parts: dict[frozenset[Tree], tuple[Tree, ...]] = {}
    for a in (x for arg in args for x in _operands(arg, op)):
        parts.setdefault(frozenset(_operands(a, _other(op))), _operands(a, _other(op)))
    # In a long list nearly all operands are single tests, so only compound operands are compared with each other.
    single = {x for key in parts if len(key) == 1 for x in key}
    # A compound one is implied by others only if these are shorter.
    several = sorted((key for key in parts if len(key) > 1), key=len)
    shorter = {size: bisect_left(several, size, key=len) for size in {len(key) for key in several}}
    kept = [inner for key, inner in parts.items() if len(key) == 1
            or (single.isdisjoint(key) and not any(other < key for other in several[:shorter[len(key)]]))]
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


def _slot(leaf: Leaf, side: Side) -> KeySlot:
    """The key, with room for code 0 where a guard needs it."""
    key, guards = leaf.keys[side], tuple(leaf.guards[side])
    return KeySlot(replace(key, nullable=True) if guards and isinstance(key, ExactKey) else key, guards)


#: Largest share of the keys that an interval may hold for buckets to save work.
_MOST = Fraction(1, 4)
#: Assumed share for float bands, whose keys are not spread evenly.
_FLOATS = Fraction(1, 64)


def choose_main(plan: Plan) -> Plan:
    """Choose the main test of ``plan``, and return the plan with it."""
    return replace(plan, main=_main(plan))


def _main(plan: Plan) -> Main:
    known = [j for j in plan.required if not isinstance(plan.slots_s[plan.tests[j].s].key, UnitKey)]
    if not known:
        return Main(None, None, "no test must hold for every match")
    points = [j for j in known if plan.tests[j].is_point]
    if points:
        best = max(points, key=lambda j: _codes(_keys(plan, plan.tests[j])[1]))
        others = f", of {len(points)} the one with most keys" if len(points) > 1 else ""
        return Main(best, "hash", f"T{best}: a probe asks for one key{others}")
    parts = {j: _part(plan, plan.tests[j]) for j in known}
    best = min(known, key=lambda j: parts[j])
    part = parts[best]
    if part > _MOST:
        return Main(None, None, f"T{best}: an interval may hold {'all keys' if part == 1 else 'too many'}"
                                f"{'' if part == 1 else f' of the keys, {float(part):.0%}'}")
    share = "a small part of the floats" if part == _FLOATS else f"{float(part):.2g} of the keys at most"
    return Main(best, "bucket", f"T{best}: an interval holds {share}")


def _keys(plan: Plan, test: Test) -> tuple[Key, Key]:
    return plan.slots_r[test.r].key, plan.slots_s[test.s].key


def _codes(key: Key) -> int:
    return key.high - key.low + 1 if isinstance(key, ExactKey) else 2**key.width


def _part(plan: Plan, test: Test) -> Fraction:
    """The largest share of the other stream's keys in the interval of a probe of either stream."""
    parts = []
    for side, key in zip(("r", "s"), _keys(plan, test), strict=True):
        if isinstance(key, (ExactKey, WideKey)):
            parts.append(_exact_part(test.relations, side, key))
        else:
            ops = {x.op for x in test.relations if isinstance(x, (FloatBand, FloatOrder))}
            both = bool(ops & {"<", "<="}) and bool(ops & {">", ">="})
            parts.append(_FLOATS if both or "=" in ops else Fraction(1))
    return max(parts)


def _exact_part(relations: tuple[Relation, ...], side: str, key: ExactKey | WideKey) -> Fraction:
    """The share of stream ``side``'s keys in a probe's interval (see `_part`), which lies between parallel bounds."""
    exact = key.exact if isinstance(key, WideKey) else key
    ends: dict[tuple[Fraction, bool], Fraction] = {}
    for x in relations:
        linear = x.exact if isinstance(x, WideRelation) else x
        if not isinstance(linear, ExactRelation) or linear.op == "=":
            continue
        mine, theirs = linear.factors(side)  # mine·key + theirs·probe + c op 0: key op' slope·probe + at
        slope, at = Fraction(-theirs, mine), Fraction(-linear.c, mine)
        upper = (linear.op == "<=") == (mine > 0)
        tighter = min if upper else max
        ends[slope, upper] = tighter(ends.get((slope, upper), at), at)
    lengths = [ends[slope, True] - low + 1 for (slope, upper), low in ends.items()
               if not upper and (slope, True) in ends]
    return min([Fraction(1), *(length / (exact.high - exact.low + 1) for length in lengths)])
