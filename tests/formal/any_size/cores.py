"""Each pair is given once: by the one core that stored its earlier tuple, when the later one probes there.

Any number of cores takes the same records, each at its own pace. A core's region stores every k-th tuple of its stream,
by a counter that it keeps for itself, and forgets a tuple that has left its window.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import z3

from ..proofs import Fault
from .systems import Model, System, changed, inside

_k = z3.Int("k")
_i, _j, _n, _p, _q, _c = z3.Ints("i j n p q c")
_side = z3.Bool("side")
_INT, _BOOL = z3.IntSort(), z3.BoolSort()


def turn_after(turn: Any) -> Any:
    """The core that stores the next tuple of a stream, when core ``turn`` has stored one."""
    return z3.If(turn + 1 == _k, 0, turn + 1)


def _turns() -> System:
    """The turns of k tuples of a stream, one after the other, from any one on. The state is the tuples looked at."""
    turn = z3.Function("turn_of", _INT, _INT)
    looked = z3.Function("looked", _INT)

    def is_next(now: Any, j: Any) -> Any:
        ahead = turn(_i) + j
        return turn(_i + j) == z3.If(ahead < _k, ahead, ahead - _k)

    return System(
        assumed=(_k >= 1, inside(turn(_i), _k), turn(_i + looked() + 1) == turn_after(turn(_i + looked()))),
        first=SimpleNamespace(looked=lambda: z3.IntVal(0)),
        before=SimpleNamespace(looked=looked),
        steps={"a tuple": (looked() < _k, SimpleNamespace(looked=lambda: looked() + 1))},
        invariants={
            "at most k tuples are looked at": lambda now: z3.And(now.looked() >= 0, now.looked() <= _k),
            "turns go round": lambda now: is_next(now, now.looked()),
        },
        follows={
            "the turn is another core's for k - 1 tuples, then the same core's": lambda now: z3.And(
                z3.Implies(z3.And(now.looked() > 0, now.looked() < _k), turn(_i + now.looked()) != turn(_i)),
                z3.Implies(now.looked() == _k, turn(_i + now.looked()) == turn(_i))),
        })


def _once() -> System:
    """Cores that scan the tuples which they store, for any window that a tuple leaves for good."""
    side = z3.Function("side_of", _INT, _BOOL)
    turn_of = z3.Function("turn_of", _BOOL, _INT, _INT)  # of the next tuple of a stream, after so many records
    fits = z3.Function("fits", _INT, _INT, _BOOL)  # the condition holds for a probe and a stored tuple
    within = z3.Function("within", _INT, _INT, _BOOL)  # a tuple is in its window when a record comes
    before = SimpleNamespace(
        taken=z3.Function("taken", _INT, _INT), turn=z3.Function("turn", _BOOL, _INT, _INT),
        live=z3.Function("live", _INT, _INT, _BOOL), given=z3.Function("given", _INT, _INT, _INT))
    core = z3.Int("core")
    is_core = inside(_c, _k)

    def owner(q: Any) -> Any:
        return turn_of(side(q), q)

    def is_pair(p: Any, q: Any) -> Any:
        return z3.And(inside(q, p), side(p) != side(q), fits(p, q), within(q, p))

    n = before.taken(core)
    return System(
        assumed=(
            _k >= 1,
            z3.ForAll([_side], turn_of(_side, 0) == 0),
            z3.ForAll([_side], turn_of(_side, n + 1) == z3.If(
                side(n) == _side, turn_after(turn_of(_side, n)), turn_of(_side, n))),
            z3.ForAll([_q], z3.Implies(z3.And(_q < n - 1, within(_q, n)), within(_q, n - 1)))),
        first=SimpleNamespace(taken=lambda c: z3.IntVal(0), turn=lambda s, c: z3.IntVal(0),
                              live=lambda c, q: z3.BoolVal(False), given=lambda p, q: z3.IntVal(0)),
        before=before,
        steps={"a record at a core": (inside(core, _k), _takes(before, core, side, fits, within))},
        invariants={
            "only cores take records": lambda now: z3.ForAll(
                [_c], z3.And(now.taken(_c) >= 0, z3.Implies(z3.Not(is_core), now.taken(_c) == 0))),
            "a core knows whose turn it is": lambda now: z3.ForAll([_side, _c], z3.Implies(
                is_core, now.turn(_side, _c) == turn_of(_side, now.taken(_c)))),
            "it is the turn of a core": lambda now: z3.ForAll([_side, _c, _n], z3.Implies(
                z3.And(is_core, _n >= 0, _n <= now.taken(_c)),
                inside(turn_of(_side, _n), _k))),
            "a core has the tuples of its turns that are in their window": lambda now: z3.ForAll(
                [_c, _q], z3.Implies(is_core, now.live(_c, _q) == z3.And(
                    inside(_q, now.taken(_c)), owner(_q) == _c,
                    z3.Or(_q == now.taken(_c) - 1, within(_q, now.taken(_c) - 1))))),
            "a pair is given when the core of its earlier tuple takes the later one": lambda now: z3.ForAll(
                [_p, _q], now.given(_p, _q) == z3.If(z3.And(is_pair(_p, _q), _p < now.taken(owner(_q))), 1, 0)),
        },
        follows={
            "each pair is given once, and nothing else": lambda now: z3.ForAll([_p, _q], z3.Implies(
                z3.ForAll([_c], z3.Implies(is_core, _p < now.taken(_c))),
                now.given(_p, _q) == z3.If(is_pair(_p, _q), 1, 0))),
            "no pair is given twice at any time": lambda now: z3.ForAll([_p, _q], now.given(_p, _q) <= 1),
        })


def _takes(now: Any, core: Any, side: Any, fits: Any, within: Any) -> Any:
    """The state after ``core`` has taken its next record: tuples expire, the record probes, and may be stored."""
    n = now.taken(core)

    def expired(q: Any) -> Any:
        return z3.And(now.live(core, q), within(q, n))

    def given(p: Any, q: Any) -> Any:
        found = z3.And(p == n, expired(q), side(q) != side(n), fits(n, q))
        return now.given(p, q) + z3.If(found, 1, 0)

    stored = now.turn(side(n), core) == core
    return changed(
        now,
        taken=lambda c: z3.If(c == core, n + 1, now.taken(c)),
        turn=lambda s, c: z3.If(z3.And(c == core, s == side(n)), turn_after(now.turn(s, c)), now.turn(s, c)),
        live=lambda c, q: z3.If(c == core, z3.Or(expired(q), z3.And(q == n, stored)), now.live(c, q)),
        given=given)


def _rows() -> System:
    """The ring of a region, for a window of ROWS: a core knows from counters which of its tuples have left."""
    turn_of = z3.Function("turn_of", _INT, _INT)  # the core that stores a row of the stream
    core, window = z3.Ints("core window")
    names = ("count", "turn", "head", "tail")
    before = SimpleNamespace(**{name: z3.Function(name, _INT) for name in names},
                             kept=z3.Function("kept", _INT, _BOOL))
    count, head = before.count(), before.head()

    def go_round(i: Any) -> Any:
        """As `_turns` shows, of k rows from the row ``i`` on."""
        return z3.ForAll([_j], z3.Implies(z3.And(i < _j, _j <= i + _k), (turn_of(_j) == turn_of(i)) == (_j == i + _k)))

    return System(
        assumed=(_k >= 1, inside(core, _k), window >= 1,
                 z3.ForAll([_i], z3.Implies(inside(_i, _k), turn_of(_i) == _i)),
                 turn_of(count + 1) == turn_after(turn_of(count)), go_round(head + core)),
        first=SimpleNamespace(**{name: lambda: z3.IntVal(0) for name in names}, kept=lambda i: z3.BoolVal(False)),
        before=before,
        steps={"a row": (z3.BoolVal(True), _counts(before, core, window))},
        invariants={
            "counters are in their ranges": lambda now: z3.And(
                inside(now.turn(), _k), now.turn() == turn_of(now.count()), now.count() >= 0, now.head() >= 0),
            "row ids and turns advance together": lambda now: now.tail() == now.count() - now.turn() + z3.If(
                now.turn() > core, _k, 0),
            "the oldest tuple is this core's": lambda now: turn_of(now.head() + core) == core,
            "the oldest tuple lies within the window's rows": lambda now: z3.And(
                now.head() + core >= now.count() - window,
                z3.ForAll([_i], z3.Implies(z3.And(_i >= 0, now.count() - window <= _i, _i < now.head() + core),
                                           turn_of(_i) != core))),
            "the ring has the rows from the oldest to the newest": lambda now: z3.ForAll(
                [_i], now.kept(_i) == z3.And(now.head() + core <= _i, _i < now.count(), turn_of(_i) == core)),
        },
        follows={
            "the ring has this core's rows among the window's last": lambda now: z3.ForAll(
                [_i], now.kept(_i) == z3.And(_i >= 0, now.count() - window <= _i, _i < now.count(),
                                             turn_of(_i) == core)),
            "the next tuple to be stored has the row id that follows from the ring's end": lambda now: z3.Implies(
                now.turn() == core, now.tail() + core == now.count()),
        })


def _counts(now: Any, core: Any, window: Any) -> Any:
    """The state of ``core`` after it has counted another row of the stream, and perhaps stored it."""
    mine = now.turn() == core
    leaves = now.count() - (now.head() + core) == window
    row = now.count()
    return SimpleNamespace(
        count=lambda: row + 1,
        turn=lambda: turn_after(now.turn()),
        head=lambda: z3.If(leaves, now.head() + _k, now.head()),
        tail=lambda: z3.If(mine, now.tail() + _k, now.tail()),
        kept=lambda i: z3.Or(z3.And(now.kept(i), z3.Not(z3.And(leaves, i == now.head() + core))),
                             z3.And(mine, i == row)))


_HERE = sys.modules[__name__]
MODELS = (
    Model("turns", "k tuples of a stream that follow each other are stored by k cores", _turns, (
        Fault("turns go round: after a tuple", _HERE, "turn + 1 == _k", "turn == _k", "turn_after"),)),
    Model("pairs once", "each pair is given once, by any number of cores at any pace", _once, (
        Fault("a core has the tuples of its turns that are in their window: after a record at a core", _HERE,
              "now.turn(side(n), core) == core", "z3.BoolVal(True)", "_takes"),
        Fault("a core knows whose turn it is: after a record at a core", _HERE,
              "z3.And(c == core, s == side(n))", "z3.And(c == core, s == side(n), stored)", "_takes"),
        Fault("a pair is given when the core of its earlier tuple takes the later one: after a record at a core",
              _HERE, "z3.And(p == n, expired(q), side(q) != side(n), fits(n, q))",
              "z3.And(p == n, now.live(core, q), side(q) != side(n), fits(n, q))", "_takes"),
        Fault("a pair is given when the core of its earlier tuple takes the later one: after a record at a core",
              _HERE, "side(q) != side(n)", "z3.BoolVal(True)", "_takes"),
        Fault("it is the turn of a core: after a record at a core", _HERE, "turn + 1 == _k", "turn == _k",
              "turn_after"),
    )),
    Model("rows of a window", "the cores' rings have together the last rows of the stream, each once", _rows, (
        Fault("the oldest tuple lies within the window's rows: after a row", _HERE,
              "now.count() - (now.head() + core) == window", "now.count() - now.head() == window", "_counts"),
        Fault("row ids and turns advance together: after a row", _HERE, "z3.If(mine, now.tail() + _k, now.tail())",
              "now.tail() + _k", "_counts"),
        Fault("the ring has the rows from the oldest to the newest: after a row", _HERE,
              "z3.Not(z3.And(leaves, i == now.head() + core))", "z3.Not(z3.And(leaves, i == now.head()))", "_counts"),
        Fault("the oldest tuple is this core's: after a row", _HERE, "z3.If(leaves, now.head() + _k, now.head())",
              "z3.If(leaves, now.head() + 1, now.head())", "_counts"),
    )),
)
