"""Mergers of any number of inputs, trees of them, and the combiner: nothing is lost, and the order is the promised one.

Inputs bring pairs in groups that end with a barrier each, a star or an END. With total order, the pairs of a group are
sorted by the row ids of their stored tuples. What is proved of the output is what is assumed of an input (`in_groups`,
`in_order`), so it holds for a merger of mergers, and for trees of any depth and shape.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import z3

from ..proofs import Fault
from .systems import Model, System, changed, inside

_n, _total = z3.Int("inputs"), z3.Bool("total")
_i, _j, _l, _o, _d = z3.Ints("i j l o d")
_INT, _BOOL = z3.IntSort(), z3.BoolSort()
_is_input = inside(_i, _n)


def in_groups(items: Any, n: Any) -> Any:
    """True if the item ``n`` of a stream ends its group exactly if it is a barrier."""
    return items.group(n + 1) == items.group(n) + z3.If(items.is_pair(n), 0, 1)


def in_order(items: Any, n: Any) -> Any:
    """True if the items ``n`` and ``n`` + 1 of a stream are not two pairs of which the later is the older one."""
    return z3.Implies(z3.And(_total, items.is_pair(n), items.is_pair(n + 1)), items.row(n) <= items.row(n + 1))


def _merger() -> System:
    """A merger whose inputs' items arrive at any time. ``at``: the place where an input's item left; ``source`` and
    ``place``: the input and the number there of an item that left.
    """
    is_pair = z3.Function("is_pair", _INT, _INT, _BOOL)
    row, group = z3.Function("row", _INT, _INT, _INT), z3.Function("group", _INT, _INT, _INT)
    before = SimpleNamespace(
        taken=z3.Function("taken", _INT, _INT), come=z3.Function("come", _INT, _INT), at=z3.Function(
            "at", _INT, _INT, _INT), length=z3.Function("length", _INT), groups=z3.Function("groups", _INT),
        o_pair=z3.Function("o_pair", _INT, _BOOL), o_row=z3.Function("o_row", _INT, _INT),
        o_group=z3.Function("o_group", _INT, _INT), source=z3.Function("source", _INT, _INT),
        place=z3.Function("place", _INT, _INT))
    zero = z3.IntVal(0)
    first = SimpleNamespace(**{name: lambda *_: zero for name in vars(before)})
    first.o_pair = lambda o: z3.BoolVal(False)
    i = z3.Int("chosen")
    is_input = inside(i, _n)

    def head(now: Any) -> tuple[Any, Any]:
        """Whether the next item of the input i is a pair, and its row id."""
        return is_pair(_i, now.taken(_i)), row(_i, now.taken(_i))

    def heads_follow(now: Any) -> Any:
        is_last = z3.And(now.length() > 0, now.o_pair(now.length() - 1))
        return z3.ForAll([_i], z3.Implies(z3.And(_total, is_last, _is_input, head(now)[0]),
                                          now.o_row(now.length() - 1) <= head(now)[1]))

    def left(now: Any) -> Any:
        at = now.at(_i, _j)
        return z3.ForAll([_i, _j], z3.Implies(
            z3.And(_is_input, inside(_j, now.taken(_i)), is_pair(_i, _j)), z3.And(
                inside(at, now.length()), now.o_pair(at), now.source(at) == _i, now.place(at) == _j,
                now.o_row(at) == row(_i, _j), now.o_group(at) == group(_i, _j))))

    def came(now: Any) -> Any:
        source, place = now.source(_o), now.place(_o)
        return z3.ForAll([_o], z3.Implies(z3.And(inside(_o, now.length()), now.o_pair(_o)), z3.And(
            inside(source, _n), inside(place, now.taken(source)), is_pair(source, place),
            now.at(source, place) == _o)))

    def each(now: Any, holds: Any, items: int) -> Any:
        """``holds`` of all items that have left, seen ``items`` at a time."""
        out = SimpleNamespace(is_pair=now.o_pair, row=now.o_row, group=now.o_group)
        return z3.ForAll([_j], z3.Implies(z3.And(_j >= 0, _j + items <= now.length()), holds(out, _j)))

    given = SimpleNamespace(**{name: lambda n, of=of: of(_i, n) for name, of in (
        ("is_pair", is_pair), ("row", row), ("group", group))})
    return System(
        assumed=(_n >= 1, z3.ForAll([_i], z3.Implies(_is_input, group(_i, 0) == 0)),
                 *(z3.ForAll([_i, _j], z3.Implies(z3.And(_is_input, _j >= 0), holds(given, _j)))
                   for holds in (in_groups, in_order))),
        first=first, before=before,
        steps={
            "an arrival": (is_input, changed(
                before, come=lambda n: before.come(n) + z3.If(n == i, 1, 0))),
            "a pair": (z3.And(is_input, _may_pass(before, i, is_pair, row)), _passes(before, i, row)),
            "a barrier": (_may_end(before, is_pair), _ends(before)),
        },
        invariants={
            "items leave after they have come": lambda now: z3.ForAll([_i], z3.Implies(_is_input, z3.And(
                now.taken(_i) >= 0, now.taken(_i) <= now.come(_i)))),
            "all inputs are in the group that leaves": lambda now: z3.And(
                now.length() >= 0, now.o_group(now.length()) == now.groups(),
                z3.ForAll([_i], z3.Implies(_is_input, group(_i, now.taken(_i)) == now.groups()))),
            "each pair that was taken has left, unchanged and in its group": left,
            "each pair that left was taken, and left there alone": came,
            "the next pair of no input precedes the last that left": heads_follow,
            "pairs of an input leave in their order": lambda now: z3.ForAll([_i, _j, _l], z3.Implies(
                z3.And(_is_input, inside(_j, _l), _l < now.taken(_i), is_pair(_i, _j), is_pair(_i, _l)),
                now.at(_i, _j) < now.at(_i, _l))),
            "the groups that left are numbered": lambda now: each(now, in_groups, 1),
            "each group leaves sorted": lambda now: each(now, in_order, 2),
        },
        follows={
            "a pair leaves its input once": lambda now: z3.ForAll([_o, _d], z3.Implies(
                z3.And(inside(_o, _d), _d < now.length(), now.o_pair(_o), now.o_pair(_d)),
                z3.Or(now.source(_o) != now.source(_d), now.place(_o) != now.place(_d)))),
            "when a group has left, all its pairs have": lambda now: z3.ForAll([_i, _j], z3.Implies(
                z3.And(_is_input, _j >= 0, is_pair(_i, _j), group(_i, _j) < now.groups(),
                       # As `_numbering` shows:
                       z3.Implies(now.taken(_i) <= _j, group(_i, now.taken(_i)) <= group(_i, _j))),
                z3.And(now.at(_i, _j) < now.length(), now.o_group(now.at(_i, _j)) == group(_i, _j)))),
        })


def _may_pass(now: Any, i: Any, is_pair: Any, row: Any) -> Any:
    """True if the next item of the input ``i`` may leave: a pair, with total order none of whose rivals is older."""
    here, mine = now.taken(i), row(i, now.taken(i))
    rival = z3.And(now.taken(_i) < now.come(_i),
                   z3.Or(z3.Not(is_pair(_i, now.taken(_i))), mine <= row(_i, now.taken(_i))))
    return z3.And(here < now.come(i), is_pair(i, here),
                  z3.Implies(_total, z3.ForAll([_i], z3.Implies(_is_input, rival))))


def _may_end(now: Any, is_pair: Any) -> Any:
    """True if all inputs have reached a barrier."""
    return z3.ForAll([_i], z3.Implies(_is_input, z3.And(
        now.taken(_i) < now.come(_i), z3.Not(is_pair(_i, now.taken(_i))))))


def _passes(now: Any, i: Any, row: Any) -> Any:
    """The state after a pair of the input ``i`` has left."""
    end, here = now.length(), now.taken(i)
    return changed(
        now,
        taken=lambda n: now.taken(n) + z3.If(n == i, 1, 0),
        at=lambda n, j: z3.If(z3.And(n == i, j == here), end, now.at(n, j)),
        length=lambda: end + 1,
        o_pair=lambda o: z3.If(o == end, z3.BoolVal(True), now.o_pair(o)),
        o_row=lambda o: z3.If(o == end, row(i, here), now.o_row(o)),
        o_group=lambda o: z3.If(o == end + 1, now.groups(), now.o_group(o)),
        source=lambda o: z3.If(o == end, i, now.source(o)),
        place=lambda o: z3.If(o == end, here, now.place(o)))


def _ends(now: Any) -> Any:
    """The state after a barrier has left, which all inputs had reached."""
    end = now.length()
    return changed(
        now,
        taken=lambda n: now.taken(n) + 1,
        length=lambda: end + 1,
        groups=lambda: now.groups() + 1,
        o_pair=lambda o: z3.If(o == end, z3.BoolVal(False), now.o_pair(o)),
        o_group=lambda o: z3.If(o == end + 1, now.groups() + 1, now.o_group(o)))


def _numbering() -> System:
    """Items of a stream, from any one on: the numbers of their groups do not fall."""
    items = SimpleNamespace(group=z3.Function("group", _INT, _INT), is_pair=z3.Function("is_pair", _INT, _BOOL))
    before = SimpleNamespace(looked=z3.Function("looked", _INT))
    return System(
        assumed=(in_groups(items, _j + before.looked()),),
        first=SimpleNamespace(looked=lambda: z3.IntVal(0)), before=before,
        steps={"an item": (z3.BoolVal(True), SimpleNamespace(looked=lambda: before.looked() + 1))},
        invariants={"groups are numbered in order": lambda now: items.group(_j) <= items.group(_j + now.looked())},
        follows={})


def _oldest() -> System:
    """A search through inputs that all offer an item for the oldest pair: the merger can take it, or there is none."""
    is_pair, row = z3.Function("is_pair", _INT, _INT, _BOOL), z3.Function("row", _INT, _INT, _INT)
    merger = SimpleNamespace(taken=z3.Function("taken", _INT, _INT), come=z3.Function("come", _INT, _INT))
    before = SimpleNamespace(looked=z3.Function("looked", _INT), found=z3.Function("found", _INT))

    def pair(i: Any) -> Any:
        return is_pair(i, merger.taken(i))

    def head(i: Any) -> Any:
        return row(i, merger.taken(i))

    return System(
        assumed=(_n >= 1, z3.ForAll([_i], z3.Implies(_is_input, merger.taken(_i) < merger.come(_i)))),
        first=SimpleNamespace(looked=lambda: z3.IntVal(0), found=lambda: z3.IntVal(-1)), before=before,
        steps={"an input": (before.looked() < _n, _compares(before, pair, head))},
        invariants={
            "the inputs are looked at in turn": lambda now: z3.And(
                now.looked() >= 0, now.looked() <= _n, now.found() >= -1, now.found() < now.looked()),
            "the oldest pair so far is found": lambda now: z3.And(
                z3.Or(now.found() == -1, pair(now.found())),
                z3.ForAll([_i], z3.Implies(z3.And(inside(_i, now.looked()), pair(_i)),
                                           z3.And(now.found() != -1, head(now.found()) <= head(_i)))))},
        follows={
            "a pair or a barrier can leave": lambda now: z3.Implies(now.looked() == _n, z3.If(
                now.found() == -1, _may_end(merger, is_pair), _may_pass(merger, now.found(), is_pair, row)))})


def _compares(now: Any, pair: Any, head: Any) -> Any:
    """The state after the next input's first item was compared with the oldest pair so far."""
    is_older = z3.Or(now.found() == -1, head(now.looked()) < head(now.found()))
    return SimpleNamespace(
        looked=lambda: now.looked() + 1,
        found=lambda: z3.If(z3.And(pair(now.looked()), is_older), now.looked(), now.found()))


def _combiner() -> System:
    """The combiner in total order: the sides' groups leave in the order in which the probes arrived."""
    side = z3.Function("side_of", _INT, _BOOL)
    count = z3.Function("count", _BOOL, _INT, _INT)  # records of a stream among so many
    s, n = z3.Bool("s"), z3.Int("n")
    before = SimpleNamespace(ended=z3.Function("ended", _BOOL, _INT), done=z3.Function("done", _INT))
    done = before.done()
    return System(
        assumed=(z3.ForAll([s], count(s, 0) == 0),
                 z3.ForAll([s], count(s, done + 1) == count(s, done) + z3.If(side(done) == s, 1, 0))),
        first=SimpleNamespace(ended=lambda s: z3.IntVal(0), done=lambda: z3.IntVal(0)), before=before,
        steps={"a star": (z3.BoolVal(True), _turns_over(before, side))},
        invariants={
            "as many groups of a stream have left as records of it are done": lambda now: z3.And(
                now.done() >= 0, z3.ForAll([s], now.ended(s) == count(s, now.done())))},
        follows={
            "the group that leaves is that of the next record": lambda now: z3.ForAll([n], z3.Implies(
                n == now.done(), now.ended(side(n)) == count(side(n), n)))})


def _turns_over(now: Any, side: Any) -> Any:
    """The state after the star that ends the turn of a side has left."""
    return SimpleNamespace(
        ended=lambda s: now.ended(s) + z3.If(s == side(now.done()), 1, 0),
        done=lambda: now.done() + 1)


def _is_older(difference: Any, half: Any) -> Any:
    """How circuits compare: the top bit of a difference, of 0 to 2 · ``half`` - 1."""
    return difference >= half


def _modular() -> System:
    """Row ids and times that count round, compared by the top bit of their difference. It has no steps."""
    a, b, half, turns = z3.Ints("a b half turns")
    difference = a - b + 2 * half * turns
    product = 2 * half * turns
    lemma = (z3.Implies(turns >= 1, product >= 2 * half), z3.Implies(turns <= -1, product <= -2 * half))
    none = SimpleNamespace()
    return System(
        assumed=(half >= 1, -half < a - b, a - b < half, inside(difference, 2 * half)),
        first=none, before=none, steps={},
        invariants={},
        follows={
            "products grow": lambda now: z3.And(*lemma),
            "the top bit of a difference says which is older": lambda now: z3.Implies(
                z3.And(*lemma), _is_older(difference, half) == (a < b))})


_HERE = sys.modules[__name__]
_SORTED = "the next pair of no input precedes the last that left: after a pair"
MODELS = (
    Model("merger", "a merger of any number of inputs loses and doubles nothing, keeps groups, sorts them", _merger, (
        Fault("all inputs are in the group that leaves: after a barrier", _HERE,
              "z3.Not(is_pair(_i, now.taken(_i)))", "z3.BoolVal(True)", "_may_end"),
        Fault("items leave after they have come: after a barrier", _HERE,
              "now.taken(_i) < now.come(_i)", "now.taken(_i) <= now.come(_i)", "_may_end"),
        Fault(_SORTED, _HERE, "mine <= row(_i, now.taken(_i))", "row(_i, now.taken(_i)) <= mine", "_may_pass"),
        Fault("all inputs are in the group that leaves: after a pair", _HERE, "is_pair(i, here)",
              "z3.BoolVal(True)", "_may_pass"),
        Fault("each pair that left was taken, and left there alone: after a pair", _HERE,
              "now.taken(n) + z3.If(n == i, 1, 0)", "now.taken(n)", "_passes"),
        Fault("each pair that was taken has left, unchanged and in its group: after a pair", _HERE,
              "z3.If(o == end, row(i, here), now.o_row(o))", "now.o_row(o)", "_passes"),
        Fault("the groups that left are numbered: after a barrier", _HERE,
              "z3.If(o == end + 1, now.groups() + 1, now.o_group(o))", "now.o_group(o)", "_ends"),
    )),
    Model("groups", "the numbers of groups do not fall", _numbering, (
        Fault("groups are numbered in order: after an item", _HERE, "z3.If(items.is_pair(n), 0, 1)",
              "z3.If(items.is_pair(n), 0, -1)", "in_groups"),)),
    Model("oldest pair", "a merger whose inputs all offer an item can go on", _oldest, (
        Fault("the oldest pair so far is found: after an input", _HERE, "head(now.looked()) < head(now.found())",
              "head(now.found()) < head(now.looked())", "_compares"),)),
    Model("combiner", "in total order the probes' groups leave in the order of arrival", _combiner, (
        Fault("as many groups of a stream have left as records of it are done: after a star", _HERE,
              "s == side(now.done())", "s != side(now.done())", "_turns_over"),)),
    Model("modular order", "row ids of any width compare as they count, within half their range", _modular, (
        Fault("the top bit of a difference says which is older", _HERE, "difference >= half", "difference <= half",
              "_is_older"),)),
)
