"""Selectivity, measured on the tuples so far, by which the algorithm for a session's windows is chosen."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from splitjoin.base.arrays import Array
from splitjoin.plan.plan import Plan, leading_tests, slot_tests

from ..tuning import DEFAULTS, Tuning
from .algorithm import Algorithm
from .codes import Lanes
from .finder import Finder

#: Tuples in the sample of each stream.
_PROBES, _STORED = 256, 4096
#: Probes of the sample whose intervals are intersected.
_JOINT_PROBES = 64


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
    """Parameters of a search: the tests that narrow it, and the levels of each.

    ``levels``: of an index how many levels each test has; of nested loops those of the narrow keys (256 or 65536), none
    for exact keys only; of sorted runs the slots that R's and S's runs are sorted by. ``why``: the same in words.
    ``cost``: nanoseconds a probe, about. ``lookups``: the tuples that a probe should find in the cells of an index.
    """

    tests: tuple[int, ...]
    levels: tuple[int, ...]
    why: str
    cost: float
    lookups: float = 0.0


class ThreadWork:
    """Counters of the threads: ``comparisons`` and ``matches``, (threads, 2), in stored R and in stored S."""

    def __init__(self) -> None:
        self.comparisons, self.matches = (np.zeros((0, 2), np.int64) for _ in range(2))

    def add(self, side: int, thread: int, comparisons: int, matches: int) -> None:
        """Count what a ``thread``, numbered from 0, has done; ``side``: 0 where it looked in R, 1 in S."""
        if (missing := thread + 1 - len(self.matches)) > 0:
            more = np.zeros((missing, 2), np.int64)
            self.comparisons, self.matches = (np.concatenate([a, more]) for a in (self.comparisons, self.matches))
        self.comparisons[thread, side] += comparisons
        self.matches[thread, side] += matches


@dataclass(frozen=True)
class SessionJob:
    """Grounds on which a session chooses its algorithm: the ``plan``, the ``selectivity`` of its tests, and about how
    many tuples its windows hold, ``live``.

    ``forced``: True if the user asks for the algorithm. ``prefilter``: True if nested loops may compare narrow copies
    of the keys first, learnt from ``samples``, the keys of each stream; ``work`` counts what their threads do.
    """

    plan: Plan
    selectivity: Selectivity
    live: int
    forced: bool = False
    prefilter: bool = True
    samples: Mapping[str, list[Array]] = field(default_factory=dict)
    work: ThreadWork = field(default_factory=ThreadWork)
    tuning: Tuning = DEFAULTS

    @property
    def known(self) -> list[tuple[float, int]]:
        """The leading tests whose fraction is known, with it, the least first."""
        return sorted((f, j) for j, f in self.selectivity.fractions.items() if f == f)


class SessionAlgorithm(Algorithm[Finder]):
    """An algorithm for the windows of ``job``; `run` makes what finds the partners of each batch.

    Attributes:
        engine: The name by which users ask for it.
    """

    engine: ClassVar[str]

    def __init__(self, job: SessionJob):
        self.job = job

    @property
    @abstractmethod
    def choice(self) -> Choice:
        """Parameters of the search that it would make."""

    @property
    def suits(self) -> bool:
        return bool(self.job.known)

    @property
    def cost(self) -> float:
        return self.choice.cost

    @property
    def explain(self) -> str:
        return self.choice.why

    def is_similar_to(self, other: SessionAlgorithm) -> bool:
        """True if a change from ``other`` to this one is not worthwhile."""
        mine, its = self.choice, other.choice
        return (self.engine, mine.tests) == (other.engine, its.tests) and all(
            2 * b <= 3 * a <= 4 * b if self.engine == "index" else a == b
            for a, b in zip(mine.levels, its.levels, strict=True))


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


def _sample(array: Array, n: int) -> Array:
    return array[np.linspace(0, len(array) - 1, n).astype(np.int64)] if len(array) > n else array
