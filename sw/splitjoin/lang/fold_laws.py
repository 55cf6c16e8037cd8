"""Checks, on chosen values, that ``merge`` and ``remove`` of a user-defined aggregate give what ``add`` gives.

Engines may use any of them (semantics, section 8), so a difference would be an answer that depends on the engine.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from splitjoin.base.errors import PredicateError

from .fold import Fold, Overflow, Program

#: Sequences of partners that are tried, and the most partners of one.
_SEQUENCES, _LENGTH = 60, 5


def check_laws(fold: Fold) -> None:
    """Raise `PredicateError`, with an example, where ``merge`` or ``remove`` differs from ``add``, and where a merge
    that is not declared ordered depends on the order.

    The state after them must have the result of the state that ``add`` alone makes, at once and after one more
    partner. Values at which a state leaves its width are passed over.
    """
    if fold.merge is None and fold.remove is None:
        return
    runs = {id(p): p.evaluator() for p in (fold.add, fold.merge, fold.remove, fold.result) if p is not None}
    chance = random.Random(1)  # the same values every time

    def step(program: Program, state: Sequence[int], incoming: dict[str, int]) -> list[int]:
        return fold.checked(runs[id(program)](fold.row(state), incoming))

    def added(state: Sequence[int], partners: Sequence[dict[str, int]]) -> Sequence[int]:
        for partner in partners:
            state = step(fold.add, state, partner)
        return state

    def result(state: Sequence[int]) -> Any:
        return runs[id(fold.result)](fold.row(state), {})

    for n in range(_SEQUENCES):
        partners = [_partner(fold, chance, small=n < _SEQUENCES // 2) for _ in range(chance.randint(1, _LENGTH))]
        cut = chance.randint(0, len(partners))
        try:
            expected, more = added(fold.init, partners), [_partner(fold, chance, small=True)]
            ways: list[tuple[str, Sequence[int]]] = []
            if fold.merge is not None:
                parts = [added(fold.init, partners[:cut]), added(fold.init, partners[cut:])]
                ways.append(("merge", step(fold.merge, parts[0], fold.row(parts[1]))))
                if not fold.ordered:
                    ways.append(("merge, the later state first,", step(fold.merge, parts[1], fold.row(parts[0]))))
            if fold.remove is not None:
                extra = _partner(fold, chance, small=True)
                ways.append(("remove, of the first partner,", step(fold.remove, added(fold.init, [extra, *partners]),
                                                                   extra)))
            for way, state in ways:
                for further in ([], more):
                    mine, theirs = result(added(state, further)), result(added(expected, further))
                    if mine != theirs and not (mine[0] != mine[0] and theirs[0] != theirs[0]):
                        raise PredicateError(_differs(fold, way, partners + further, cut, mine[0], theirs[0]))
        except Overflow:
            continue


def _partner(fold: Fold, chance: random.Random, *, small: bool) -> dict[str, int]:
    """Values of the arguments: small ones, or any of their widths."""
    made = {}
    for argument in fold.arguments:
        low, high = argument.width.range
        made[argument.name] = max(low, min(high, chance.randint(-9, 9))) if small else chance.randint(low, high)
    return made


def _differs(fold: Fold, way: str, partners: Sequence[dict[str, int]], cut: int, mine: Any, theirs: Any) -> str:
    widths = {a.name: a.width for a in fold.arguments}
    shown = ", ".join("(" + ", ".join(f"{n}={widths[n].shown(v)}" for n, v in p.items()) + ")" for p in partners)
    remedy = (" (or declare it with @splitjoin.aggregate(ordered=True), if the order of partners counts)"
              if "later" in way else "")
    return (f"{fold.name}: {way} must give what add gives alone, but for the partners {shown}, cut after {cut}, the "
            f"result is {mine} and not {theirs}; correct it, or leave it out{remedy}")
