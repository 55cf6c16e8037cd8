"""The choice of engine and tests, by the predicate's shape and the selectivity measured on the tuples so far."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.lang.schema import other_side
from splitjoin.plan.plan import Plan, is_equality, leading_tests

from .codes import Lanes
from .suitable import bounded_end, is_inequality, slot_tests, suits_runs

__all__ = ["Choice", "Selectivity", "choose", "levels_for", "measure"]

Array = npt.NDArray[Any]

#: Tuples in the sample of each stream.
_PROBES, _STORED = 256, 4096
#: Nanoseconds: a pair in the nested loop (exact, with narrow keys), a cell looked up, a tuple in it, and one of these
#: that has to be verified.
_EXACT, _NARROW, _CELL, _CANDIDATE, _VERIFIED = 0.07, 0.03, 12.0, 0.2, 6.0
#: Nanoseconds of sorted runs: a probe and storing a tuple, a block of 64 tuples, a tuple found in it. They are taken if
#: they need at most this part of the time of the others.
_SORTED, _BLOCK, _ROW, _CLEARLY = 130.0, 8.0, 6.0, 0.7
#: Probes of the sample whose intervals are intersected.
_JOINT_PROBES = 64
#: Target number of stored tuples per cell; half of it in windows that fit the second-level cache with their cells.
_FILL, _SMALL = 32, 1 << 13
#: Largest share of chunks in which narrow keys may find candidates.
_SUSPECTED = 0.3


@dataclass(frozen=True)
class Selectivity:
    """Fractions of stored tuples that a probe meets, measured; NaN where none could be.

    ``fractions``: by test, over both streams. ``slots``: per stored stream by slot, of all leading tests on that slot.
    ``joint``: per stored stream, of all leading tests.
    """

    fractions: dict[int, float]
    slots: dict[str, dict[int, float]] = field(default_factory=dict)
    joint: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Choice:
    """An engine, "nested", "index" or "sorted", the tests that it narrows the search by, and the levels of each.

    ``levels``: for "index" how many levels each test has; for "nested" those of the narrow keys (256 or 65536), none
    for exact keys only; for "sorted" the slots that R's and S's runs are sorted by. ``why``: the same in words.
    ``cost``: nanoseconds a probe, about. ``lookups``: the tuples that a probe should find in the cells of an index.
    """

    engine: str
    tests: tuple[int, ...]
    levels: tuple[int, ...]
    why: str
    cost: float
    lookups: float = 0.0

    def is_similar_to(self, other: Choice) -> bool:
        """True if a change from ``other`` to this choice is not worthwhile."""
        return (self.engine, self.tests) == (other.engine, other.tests) and all(
            2 * b <= 3 * a <= 4 * b if self.engine == "index" else a == b
            for a, b in zip(self.levels, other.levels, strict=True))


def measure(plan: Plan, r: Lanes, s: Lanes) -> Selectivity:
    """Compare a sample of ``r``'s tuples, as probes, with a sample of ``s``'s, and the reverse."""
    fractions = {}
    for j in leading_tests(plan):
        found = []
        for probes, stored, slot in ((r, s, plan.tests[j].s), (s, r, plan.tests[j].r)):
            keys = np.sort(_sample(stored.keys[slot], _STORED))
            lows, highs = _sample(probes.lows[j], _PROBES), _sample(probes.highs[j], _PROBES)
            if len(keys) and len(lows):
                inside = np.searchsorted(keys, highs, side="right") - np.searchsorted(keys, lows, side="left")
                found.append(float(np.maximum(inside, 0).mean() / len(keys)))
        fractions[j] = float(np.mean(found)) if found else float("nan")
    slots: dict[str, dict[int, float]] = {}
    joint: dict[str, float] = {}
    for side, probes, stored in (("s", r, s), ("r", s, r)):
        slots[side], joint[side] = _measure_slots(plan, side, probes, stored)
    return Selectivity(fractions, slots, joint)


def _measure_slots(plan: Plan, side: str, probes: Lanes, stored: Lanes) -> tuple[dict[int, float], float]:
    """The fractions of tuples of stream ``side`` that a probe meets: by slot, and by all of them at once."""
    both, found = np.ones((), np.bool_), {}
    for slot, tests in slot_tests(plan, side).items():
        keys = _sample(stored.keys[slot], _STORED)
        lows, highs = (np.stack([_sample(ends[j], _JOINT_PROBES) for j in tests])
                       for ends in (probes.lows, probes.highs))
        met = (keys >= lows.max(axis=0)[:, None]) & (keys <= highs.min(axis=0)[:, None])
        both = both & met
        found[slot] = float(met.mean()) if met.size else float("nan")
    return found, float(both.mean()) if both.size else float("nan")


def choose(plan: Plan, selectivity: Selectivity, live: int, forced: str | None, prefilter: bool) -> Choice:
    """The engine for windows of about ``live`` tuples. ``forced``: its name, or None for the cheapest one."""
    known = sorted((f, j) for j, f in selectivity.fractions.items() if f == f)
    nested = _nested(known, live, prefilter)
    if not known or forced == "nested":
        return nested
    if forced == "sorted":
        return _sorted(plan, selectivity, live)
    index = _index(plan, known, live)
    best = index if forced == "index" or index.cost < nested.cost else nested
    if forced is None and suits_runs(plan):
        runs = _sorted(plan, selectivity, live)
        if runs.cost < _CLEARLY * best.cost:
            return runs
    return best


def _sorted(plan: Plan, selectivity: Selectivity, live: int) -> Choice:
    by, costs = {}, []
    for side in ("r", "s"):
        fractions, joint = selectivity.slots.get(side, {}), selectivity.joint.get(side, float("nan"))
        slots = slot_tests(plan, side)
        least = min(fractions.values(), default=1.0)
        # Of those that are about equal the first that probes bound above, which are met in the order of the keys, or
        # the first: chance changes nothing.
        equal = [slot for slot in slots if fractions.get(slot, 1.0) <= 2 * least]
        above = [slot for slot in equal if all(bounded_end(plan, j, other_side(side)) == "high" for j in slots[slot])]
        by[side] = next(iter(above or equal), min(slots))
        wide = fractions.get(by[side], float("nan")) * live / 64
        others = [tests for slot, tests in slots.items() if slot != by[side]]
        if wide == wide and joint == joint:
            # An extreme of one end tells exactly which blocks hold a match.
            exact = len(others) == 1 and len(others[0]) == 1 and is_inequality(plan, others[0][0])
            blocks = 0.0 if not others else min(wide, joint * live) if exact else wide
            costs.append(blocks * _BLOCK + joint * live * _ROW)
    named = "; ".join(f"{side.upper()} by key {slot}" for side, slot in by.items())
    return Choice("sorted", tuple(leading_tests(plan)), (by["r"], by["s"]), f"sorted runs, {named}",
                  _SORTED + float(np.mean(costs)) if costs else math.inf)


def _nested(known: list[tuple[float, int]], live: int, prefilter: bool) -> Choice:
    best = known[:2]
    for levels in (256, 65536) if prefilter and best else ():
        suspected = 2048.0 * math.prod(f + 1 / levels for f, _ in best)
        if suspected < _SUSPECTED:
            cost = live * (_NARROW * levels.bit_length() / 9 + suspected * _EXACT)
            tests = tuple(j for _, j in best)
            return Choice("nested", tests, (levels,) * len(tests),
                          f"nested loops over {levels.bit_length() - 1}-bit copies of the keys, verified", cost)
    return Choice("nested", (), (), "nested loops over the keys", live * _EXACT)


def _index(plan: Plan, known: list[tuple[float, int]], live: int) -> Choice:
    cells, choices = _cells(live), []
    for dims in ([known[0]], known[:2]):
        counts = _levels(plan, dims, cells)
        visited = candidates = passing = 1.0
        for (f, j), n in zip(dims, counts, strict=True):
            visited *= 1.0 if is_equality(plan, j) else 1 + f * n
            candidates *= max(f, 1 / n) if is_equality(plan, j) else min(1.0, f + 1 / n)
            passing *= f
        cost = visited * _CELL + candidates * live * _CANDIDATE + passing * live * _VERIFIED
        kinds = " and ".join("hash" if is_equality(plan, j) else "range" for _, j in dims)
        choices.append(Choice("index", tuple(j for _, j in dims), counts,
                              f"an index of {' × '.join(map(str, counts))} cells by {kinds}", cost,
                              64 * visited + 3 * candidates * live))
    return min(choices, key=lambda choice: choice.cost)


def levels_for(plan: Plan, selectivity: Selectivity, tests: tuple[int, ...], live: int) -> tuple[int, ...]:
    """The number of levels that an index of ``live`` tuples has in each of ``tests``."""
    return _levels(plan, [(selectivity.fractions[j], j) for j in tests], _cells(live))


def _cells(live: int) -> int:
    return max(1, live // (_FILL if live > _SMALL else _FILL // 2))


def _levels(plan: Plan, dims: list[tuple[float, int]], cells: int) -> tuple[int, ...]:
    """The number of levels of each dimension: as even as the width of the intervals allows."""
    def limit(f: float, j: int) -> int:
        return 1 << 20 if is_equality(plan, j) else max(1, int(1 / max(f, 1e-6)))

    first = min(cells if len(dims) == 1 else max(1, round(cells ** (1 / len(dims)))), limit(*dims[0]))
    counts = [first]
    if len(dims) == 2:
        second = min(max(1, cells // first), limit(*dims[1]))
        counts = [min(max(first, cells // second), limit(*dims[0])), second]
    return tuple(1 << (n - 1).bit_length() if is_equality(plan, j) else n
                 for (_, j), n in zip(dims, counts, strict=True))


def _sample(array: Array, n: int) -> Array:
    return array[np.linspace(0, len(array) - 1, n).astype(np.int64)] if len(array) > n else array
