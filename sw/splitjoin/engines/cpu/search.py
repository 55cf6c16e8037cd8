"""Searches: each encodes tuples, and supplies the finder of the engine that is cheapest for the tuples so far."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np
import pyarrow as pa

from splitjoin.base.arrays import Array
from splitjoin.lang.eval.pairs import column_arrays
from splitjoin.lang.ir import Expr, distinct, sides
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES
from splitjoin.lang.types import is_text
from splitjoin.plan.passes.compiler import make_plan
from splitjoin.plan.plan import Plan, Tree, leading_tests, tests_nothing

from ..compiled.atoms import AtomLanes
from ..tuning import DEFAULTS, Tuning
from .codes import FusedColumn, LaneCoder, Lanes
from .finder import Batch, Finder
from .grid_index import MANY, GridIndex, IndexFinder, shared_step
from .nested_loop import NestedLoop
from .residual import Compiler, ExpressionFinder, Kernel, VerifiedFinder
from .selectivity import SessionAlgorithm, SessionJob, ThreadWork, measure
from .sorted_runs import SortedRuns
from .tasks import Job

#: The most interval tests that are compiled.
_MOST_TESTS = 16
#: The largest share of the pairs that may become candidates of interval tests with a residual.
_MOST_CANDIDATES = 0.05
#: An index is stale if it compares so many times the tuples that were predicted.
_STALE_FACTOR = 4
#: Nanoseconds that a compiled expression takes for a pair.
_PAIR_NS = 0.3
#: Threads that must have work in a step of an index, as fewer gain less than sorting a batch's tuples by cells takes.
_FEWEST = 4


#: The algorithms for windows. README.md says when each of them runs.
SESSION_ALGORITHMS: tuple[type[SessionAlgorithm], ...] = (NestedLoop, GridIndex, SortedRuns)


def choose(job: SessionJob, engine: str | None) -> SessionAlgorithm:
    """The cheapest algorithm that suits ``job``, or the one of ``engine``, if that suits."""
    every = [kind(replace(job, forced=kind.engine == engine)) for kind in SESSION_ALGORITHMS]
    suited = [one for one in every if one.suits]
    return next((one for one in suited if one.engine == engine), None) or min(suited, key=lambda one: one.cost)


class Search(ABC):
    """Base of searches: encodes tuples, and supplies the finder of their matches."""

    @property
    @abstractmethod
    def description(self) -> str:
        """The engine that runs, in words."""

    @property
    @abstractmethod
    def candidates(self) -> int:
        """The number of candidate pairs that the engine has compared."""

    @property
    def work(self) -> ThreadWork | None:
        """The counters of the threads; None unless nested loops over the keys did all work."""
        return None

    @abstractmethod
    def cost(self, arrivals: int, pairs: int) -> float:
        """An estimate of the nanoseconds that one thread needs for ``arrivals``, whose windows hold ``pairs`` pairs."""

    def most_threads(self, arrivals: int, pairs: int) -> float:
        """The number of threads beyond which they would wait for each other for most of the time."""
        return float("inf")

    @abstractmethod
    def encode(self, side: str, table: pa.Table) -> tuple[list[Array], list[Array]]:
        """The tuples of ``table`` as arrays (n,): those to store, and those to probe with."""

    def deferred(self, side: str, table: pa.Table, jobs: list[Job],
                 parts: int) -> tuple[list[Array], list[Array]] | None:
        """As `encode`, for arrays that are there when all ``jobs`` have run, each of which has ``parts``; None if they
        take more than simple loops.
        """
        return None

    @abstractmethod
    def finder(self, batch: Batch) -> Finder:
        """The finder that processes the batch."""


def make_search(query: Query, engine: str, prefilter: bool, tuning: Tuning = DEFAULTS) -> Search:
    """Choose the search: interval tests, with verification of a residual, or the expression itself if no test compares
    both streams.
    """
    plan = make_plan(query.predicate)
    plan = shortened(plan)
    if plan.residual is not None and tests_nothing(plan):
        return ExpressionSearch(query.predicate, tuning)
    tests = PlanSearch(plan, None if engine == "auto" else engine, prefilter, tuning)
    if plan.residual is None:
        return tests
    return VerifiedSearch(query.predicate, plan.residual, tests, engine not in ("index", "sorted"))


def shortened(plan: Plan) -> Plan:
    """``plan``, or one with fewer tests and more to verify where it has too many to compile."""
    return _required_only(plan) if _is_long(plan) else plan


def _is_long(plan: Plan) -> bool:
    """True if ``plan`` has too many tests to compile, while its predicate itself can be compiled.

    CASE, coalesce, least and greatest of both streams become many more tests than they have operations, and each test
    takes time to compile. An operation on texts of both streams can only be compiled as tests.
    """
    return len(plan.tests) > _MOST_TESTS and not any(
        len(sides(e)) == 2 and any(is_text(a.type) for a in e.children) for e, _ in distinct(plan.predicate))


def _required_only(plan: Plan) -> Plan:
    """A plan of the first tests of ``plan`` that must hold for every match, with the whole predicate as residual."""
    kept = leading_tests(plan)[:_MOST_TESTS]
    r, s = (sorted({plan.tests[j].slot(side) for j in kept}) for side in "rs")
    tests = tuple(replace(plan.tests[j], r=r.index(plan.tests[j].r), s=s.index(plan.tests[j].s)) for j in kept)
    tree: Tree = ("and", *range(len(tests))) if len(tests) > 1 else 0
    return Plan(plan.predicate, tuple(plan.slots_r[i] for i in r), tuple(plan.slots_s[i] for i in s), tests, tree,
                residual=plan.predicate)


class ExpressionSearch(Search):
    """Evaluates the predicate itself for every pair. ``compiling``: False to use NumPy only."""

    def __init__(self, predicate: Expr, tuning: Tuning = DEFAULTS, *, compiling: bool = True):
        self._predicate = predicate
        self._lanes = AtomLanes(predicate, tuning)
        self._compiler = Compiler(predicate, self._lanes, tuning) if compiling else None
        self._finder = ExpressionFinder(predicate, tuning)
        self._pairs = 0

    @property
    def description(self) -> str:
        return f"nested loops over the expression, {self._compiler.why if self._compiler else 'by NumPy'}"

    @property
    def candidates(self) -> int:
        return self._finder.candidates

    def cost(self, arrivals: int, pairs: int) -> float:
        return pairs * _PAIR_NS

    def encode(self, side: str, table: pa.Table) -> tuple[list[Array], list[Array]]:
        """The columns that the predicate reads, and its lanes."""
        arrays = column_arrays(self._predicate, side, table) + self._lanes.encode(side, table)
        return arrays, arrays

    def finder(self, batch: Batch) -> Finder:
        """Always the same finder, with the kernel for the values that are in the windows now."""
        self._pairs += batch.extent[0]
        self._finder.kernel = None if self._compiler is None else self._compiler.kernel(batch, self._pairs)
        return self._finder


class PlanSearch(Search):
    """Evaluates interval tests on keys by nested loops or an index, whichever is cheaper for the tuples so far."""

    def __init__(self, plan: Plan, forced: str | None, prefilter: bool, tuning: Tuning = DEFAULTS):
        self._plan, self._forced, self._prefilter, self.tuning = plan, forced, prefilter, tuning
        self._coder = LaneCoder(plan)
        self._chosen: SessionAlgorithm | None = None
        self._cost = 0.0  # nanoseconds of a probe, about
        self._finder: Finder | None = None
        self._replaced_candidates = 0  # candidates of finders that were replaced
        self._work: ThreadWork | None = ThreadWork()
        # At the last choice: the tuples of the longest window; and, also moved by each check, the candidates so far.
        self._live = self._candidates_before = 0
        self._arrivals = self._last_arrivals = 0  # since the last choice; those of the previous batch
        self._stale_in_a_row = 0

    @property
    def description(self) -> str:
        return "nothing yet" if self._chosen is None else self._chosen.explain

    @property
    def candidates(self) -> int:
        return self._replaced_candidates + (0 if self._finder is None else self._finder.candidates)

    @property
    def work(self) -> ThreadWork | None:
        return self._work

    def cost(self, arrivals: int, pairs: int) -> float:
        return arrivals * self._cost

    def most_threads(self, arrivals: int, pairs: int) -> float:
        if not isinstance(self._chosen, GridIndex):
            return float("inf")
        found = 0.0
        for threads in (MANY, 1):  # many have longer steps
            if found < MANY:
                step = min(arrivals, shared_step(pairs // max(arrivals, 1), self.tuning.shared_arrivals, threads))
                found = step * self._cost / self.tuning.step
        return found if found >= _FEWEST else 1.0

    def encode(self, side: str, table: pa.Table) -> tuple[list[Array], list[Array]]:
        """The keys to store; and the bounds to probe with: the low bounds of all tests, then all high bounds."""
        lanes = self._coder.codes(side, table)
        return lanes.keys, lanes.lows + lanes.highs

    def deferred(self, side: str, table: pa.Table, jobs: list[Job],
                 parts: int) -> tuple[list[Array], list[Array]] | None:
        lanes = self._coder.deferred(side, table, jobs, parts)
        return None if lanes is None else (lanes.keys, lanes.lows + lanes.highs)

    @property
    def fused(self) -> dict[str, list[FusedColumn]] | None:
        """Per stream the loops that make its codes, if such loops make all of them."""
        found = {side: fused for side, fused in self._coder.fused.items() if fused is not None}
        return found if len(found) == len(SIDES) else None

    @property
    def known(self) -> dict[str, pa.Schema | None]:
        """Per stream the schema of tables that these loops take."""
        return self._coder.known

    def settled_index(self) -> tuple[IndexFinder, int] | None:
        """The index that finds the matches of the next batch if its longest window has no more tuples than the second
        number says; None if there is none, or it is to be chosen anew.
        """
        if not isinstance(self._finder, IndexFinder) or self._chosen is None:
            return None
        arrivals = self._arrivals + self._last_arrivals
        due = arrivals > self.tuning.choice_arrivals + 16 * self._live
        if due or (self._is_judged(arrivals, self._live) and self._compares_too_much):
            return None
        return self._finder, 2 * self._live

    def settle(self, arrivals: int) -> None:
        """Count the ``arrivals`` of a batch in which `settled_index` finds the matches, before it does."""
        self._arrivals += self._last_arrivals
        if self._is_judged(self._arrivals, self._live):
            self._candidates_before = self.candidates
        self._last_arrivals = arrivals

    def finder(self, batch: Batch) -> Finder:
        """The finder of the cheapest engine; after a change of engine, a new one that takes over the stored tuples."""
        _, live = batch.extent
        self._arrivals += self._last_arrivals
        stale = self._is_stale(live)
        self._last_arrivals = len(batch.stream)
        due = self._arrivals > self.tuning.choice_arrivals + 16 * self._live
        if self._chosen is None or stale or due or live > 2 * self._live:
            self._choose_again(batch, max(live, 1), stale)
        assert self._finder is not None
        return self._finder

    def _is_stale(self, live: int) -> bool:
        """True if the index compares far more tuples than predicted, as the distribution of values has changed."""
        if not isinstance(self._chosen, GridIndex) or not self._is_judged(self._arrivals, live):
            return False
        stale = self._compares_too_much
        self._candidates_before = self.candidates
        return stale

    def _is_judged(self, arrivals: int, live: int) -> bool:
        """True if so many arrivals since the last choice tell whether it is stale, in windows of ``live`` tuples."""
        return arrivals >= max(live // 4, self.tuning.check_arrivals)

    @property
    def _compares_too_much(self) -> bool:
        assert self._chosen is not None
        compared = self.candidates - self._candidates_before
        return compared > _STALE_FACTOR * self._chosen.choice.lookups * max(self._last_arrivals, 1)

    def _choose_again(self, batch: Batch, live: int, stale: bool) -> None:
        tests = len(self._plan.tests)
        lanes, samples = {}, {}
        for side in ("r", "s"):
            probes = batch.probes[side]
            stored = [] if self._finder is None else self._finder.stores[side].arrays
            samples[side] = [np.concatenate(keys) for keys in zip(batch.stored[side], stored, strict=False)] or list(
                batch.stored[side])
            lanes[side] = Lanes(samples[side], probes[:tests], probes[tests:])
        selectivity = measure(self._plan, lanes["r"], lanes["s"])
        # An index that became stale soon after it was learnt would do so again: the second time, use nested loops.
        soon = self._arrivals <= 2 * self._last_arrivals + self.tuning.check_arrivals
        self._stale_in_a_row = self._stale_in_a_row + 1 if stale and soon else 0
        forced = self._forced or ("nested" if self._stale_in_a_row > 1 else None)
        chosen = choose(SessionJob(self._plan, selectivity, live, False, self._prefilter, samples,
                                   self._work or ThreadWork(), self.tuning), forced)
        self._live, self._arrivals, self._candidates_before = live, 0, self.candidates
        self._cost = chosen.choice.cost  # also of the same algorithm, as windows may have grown since
        if self._chosen is not None and not stale and chosen.is_similar_to(self._chosen):
            return
        self._chosen, new = chosen, chosen.run()
        if not isinstance(chosen, NestedLoop):
            self._work = None
        if self._finder is not None:
            self._replaced_candidates += self._finder.candidates
            new.adopt(self._finder.stores, self._plan)
        self._finder = new

    def renew(self) -> None:
        """Choose the engine again for the next batch; its new finder takes over the stored tuples."""
        self._chosen = None


class VerifiedSearch(Search):
    """Finds candidates by interval tests, and verifies them by ``residual``.

    If the tests let too many pairs through, bypasses them for some time: evaluates the whole ``predicate`` for every
    pair, provided that ``may_bypass`` is set and the predicate can be compiled.
    """

    def __init__(self, predicate: Expr, residual: Expr, tests: PlanSearch, may_bypass: bool):
        self._predicate, self._tests, self._may_bypass = predicate, tests, may_bypass
        self._tuning = tuning = tests.tuning
        self._lanes = AtomLanes(predicate, tuning)
        self._all_pairs = Compiler(predicate, self._lanes, tuning)
        self._verifier = Compiler(residual, self._lanes, tuning, verify=True)
        self._finder = VerifiedFinder(predicate, residual, self._lanes, tuning)
        self._reviewed_pairs = self._reviewed_candidates = 0  # pairs and candidates up to the last review of the tests
        self._bypassed_arrivals = 0  # further arrivals for which the tests are bypassed

    @property
    def description(self) -> str:
        if self._bypassed_arrivals:
            return f"nested loops over the expression, {self._all_pairs.why}"
        return f"{self._tests.description}; candidates verified, {self._verifier.why}"

    @property
    def candidates(self) -> int:
        return self._tests.candidates + self._finder.candidates

    def cost(self, arrivals: int, pairs: int) -> float:
        return pairs * _PAIR_NS if self._bypassed_arrivals else self._tests.cost(arrivals, pairs)

    def most_threads(self, arrivals: int, pairs: int) -> float:
        return float("inf") if self._bypassed_arrivals else self._tests.most_threads(arrivals, pairs)

    def encode(self, side: str, table: pa.Table) -> tuple[list[Array], list[Array]]:
        """The arrays of the tests, then the columns that the predicate reads, and its lanes."""
        keys, bounds = self._tests.encode(side, table)
        arrays = column_arrays(self._predicate, side, table) + self._lanes.encode(side, table)
        return keys + arrays, bounds + arrays

    def finder(self, batch: Batch) -> Finder:
        """Always the same finder, which contains that of the interval tests."""
        found = self._finder
        found.kernel = self._kernel_of_all_pairs(batch)
        if found.kernel is None:
            found.tests = self._tests.finder(found.for_tests(batch))
        found.check = None if found.kernel is not None else self._verifier.kernel(batch, found.passed)
        return found

    def _kernel_of_all_pairs(self, batch: Batch) -> Kernel | None:
        """The kernel that evaluates the predicate for all pairs, if the tests are bypassed; else None."""
        if self._bypassed_arrivals:
            self._bypassed_arrivals = max(0, self._bypassed_arrivals - len(batch.stream))
            kernel = self._all_pairs.kernel(batch, self._reviewed_pairs) if self._bypassed_arrivals else None
            if kernel is None:
                self._bypassed_arrivals = 0
                self._tests.renew()
            return kernel
        pairs, candidates = self._finder.tested, self._finder.passed
        if not self._may_bypass or pairs - self._reviewed_pairs < self._tuning.review_pairs:
            return None
        too_many = candidates - self._reviewed_candidates > _MOST_CANDIDATES * (pairs - self._reviewed_pairs)
        self._reviewed_pairs, self._reviewed_candidates = pairs, candidates
        kernel = self._all_pairs.kernel(batch, pairs) if too_many else None
        if kernel is not None:
            _, live = batch.extent
            self._bypassed_arrivals = self._tuning.choice_arrivals + 16 * live
        return kernel
