"""Searches: each encodes tuples, and supplies the workers of the engine that suits the tuples so far."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import UnsupportedError
from ..lang.ir import Expr, distinct, sides
from ..lang.query import Query
from ..lang.types import is_text
from ..plan.passes.pipeline import make_plan
from ..plan.plan import Plan, Tree, leading_tests, tests_nothing
from .atoms import AtomLanes
from .choice import Choice, choose, measure
from .codes import LaneCoder, Lanes
from .expression import Compiler, ExpressionWorker, column_arrays
from .expression_kernel import Kernel
from .index import IndexWorker
from .nested import NestedWorker
from .verified import VerifiedWorker
from .worker import Batch, Worker

__all__ = ["EngineName", "ExpressionSearch", "PlanSearch", "Search", "VerifiedSearch", "make_search"]

Array = npt.NDArray[Any]
EngineName = Literal["auto", "index", "nested"]

#: Interval tests that are compiled at most.
_MOST_TESTS = 16
#: Pairs by which interval tests with a residual are judged, and how many of them may be candidates.
_JUDGED, _POOR = 1 << 24, 0.05
#: An index that finds so many times what it should in its cells learns anew, after so many arrivals at least.
_WORSE, _FEW = 4, 4096
#: Nanoseconds that a compiled expression takes for a pair.
_PAIR = 0.3
#: Arrivals after which the engine is chosen anew, beside those of a whole window.
_RETHINK = 1 << 20


class Search(ABC):
    """Encodes tuples for the workers, and supplies the workers."""

    def __init__(self, threads: int):
        self.threads = threads

    @property
    @abstractmethod
    def description(self) -> str:
        """The engine that runs, in words."""

    @property
    @abstractmethod
    def candidates(self) -> int:
        """Pairs that the engine has looked at."""

    @abstractmethod
    def cost(self, arrivals: int, pairs: int) -> float:
        """An estimate of the nanoseconds that all workers need for ``arrivals``, whose windows hold ``pairs``."""

    @abstractmethod
    def encode(self, side: str, table: pa.Table) -> tuple[list[Array], list[Array]]:
        """The arrays (n,) that the tuples of ``table`` are stored as, and those that they probe with."""

    @abstractmethod
    def workers(self, batch: Batch) -> Sequence[Worker]:
        """The workers that process the batch."""


def make_search(query: Query, engine: EngineName, prefilter: bool, threads: int) -> Search:
    """Choose the search: interval tests with verification of the residual, or the expression itself if no test compares
    the streams.
    """
    plan = make_plan(query.predicate)
    if engine == "index" and not leading_tests(plan):
        raise UnsupportedError(f"an index needs a comparison of both streams that must hold for every match, but "
                               f"'{query.predicate}' has none; use engine='nested'")
    if _is_long(plan):
        plan = _required_only(plan)
    if plan.residual is not None and tests_nothing(plan):
        return ExpressionSearch(query.predicate, threads)
    tests = PlanSearch(plan, None if engine == "auto" else engine, prefilter, threads)
    if plan.residual is None:
        return tests
    return VerifiedSearch(query.predicate, plan.residual, tests, engine != "index", threads)


def _is_long(plan: Plan) -> bool:
    """True if ``plan`` has too many tests to compile, and its predicate can be compiled itself.

    CASE, coalesce, least and greatest of both streams become many more tests than they have operations, and compiling
    takes time for each test. For texts of both streams there are only tests.
    """
    return len(plan.tests) > _MOST_TESTS and not any(
        len(sides(e)) == 2 and any(is_text(a.type) for a in e.children) for e, _ in distinct(plan.predicate))


def _required_only(plan: Plan) -> Plan:
    """The first tests of ``plan`` that must hold for every match, with all of the predicate as the residual."""
    kept = leading_tests(plan)[:_MOST_TESTS]
    r, s = (sorted({test.r if side == "r" else test.s for test in (plan.tests[j] for j in kept)}) for side in "rs")
    tests = tuple(replace(plan.tests[j], r=r.index(plan.tests[j].r), s=s.index(plan.tests[j].s)) for j in kept)
    tree: Tree = ("and", *range(len(tests))) if len(tests) > 1 else 0
    return Plan(plan.predicate, tuple(plan.slots_r[i] for i in r), tuple(plan.slots_s[i] for i in s), tests, tree,
                residual=plan.predicate)


class ExpressionSearch(Search):
    """The predicate itself, for every pair. ``compiling``: False leaves everything to NumPy."""

    def __init__(self, predicate: Expr, threads: int, *, compiling: bool = True):
        super().__init__(threads)
        self._predicate = predicate
        self._lanes = AtomLanes(predicate)
        self._compiler = Compiler(predicate, self._lanes) if compiling else None
        self._workers = [ExpressionWorker(n, threads, predicate) for n in range(threads)]
        self._pairs = 0

    @property
    def description(self) -> str:
        """The engine that runs, in words."""
        return f"nested loops over the expression, {self._compiler.why if self._compiler else 'by NumPy'}"

    @property
    def candidates(self) -> int:
        """Pairs that the engine has looked at."""
        return sum(worker.candidates for worker in self._workers)

    def cost(self, arrivals: int, pairs: int) -> float:
        """An estimate of the nanoseconds that all workers need for ``arrivals``, whose windows hold ``pairs``."""
        return pairs * _PAIR

    def encode(self, side: str, table: pa.Table) -> tuple[list[Array], list[Array]]:
        """The columns that the predicate reads, and its lanes."""
        arrays = column_arrays(self._predicate, side, table) + self._lanes.encode(side, table)
        return arrays, arrays

    def workers(self, batch: Batch) -> Sequence[Worker]:
        """Always the same workers, with the kernel for the values in the windows now."""
        self._pairs += sum(int((end - start).sum()) for start, end in batch.windows.values())
        kernel = None if self._compiler is None else self._compiler.kernel(batch, self._pairs)
        for worker in self._workers:
            worker.kernel = kernel
        return self._workers


class PlanSearch(Search):
    """Interval tests on keys, by nested loops or an index, as chosen for the tuples so far."""

    def __init__(self, plan: Plan, forced: str | None, prefilter: bool, threads: int):
        super().__init__(threads)
        self._plan, self._forced, self._prefilter = plan, forced, prefilter
        self._coder = LaneCoder(plan)
        self._choice: Choice | None = None
        self._workers: Sequence[IndexWorker | NestedWorker] = []
        self._earlier = 0  # candidates of workers that were replaced
        self._live = 0  # the longest window when it was chosen
        self._since = self._last = self._looked = 0  # arrivals since then, those of the batch before, candidates then
        self._stale_again = 0

    @property
    def description(self) -> str:
        """The engine that runs, in words."""
        return "nothing yet" if self._choice is None else self._choice.why

    @property
    def candidates(self) -> int:
        """Pairs that the engine has looked at."""
        return self._earlier + sum(worker.candidates for worker in self._workers)

    def cost(self, arrivals: int, pairs: int) -> float:
        """An estimate of the nanoseconds that all workers need for ``arrivals``, whose windows hold ``pairs``."""
        return 0.0 if self._choice is None else arrivals * self._choice.cost

    def encode(self, side: str, table: pa.Table) -> tuple[list[Array], list[Array]]:
        """Keys, and bounds: all tests' lows, then all highs."""
        lanes = self._coder.codes(side, table)
        return lanes.keys, lanes.lows + lanes.highs

    def workers(self, batch: Batch) -> Sequence[Worker]:
        """The workers of the cheaper engine; when that changes, new ones that take over the window."""
        live = max((int((end - start).max()) for start, end in batch.windows.values() if len(start)), default=0)
        self._since += self._last
        stale = self._stale(live)
        self._last = len(batch.stream)
        if self._choice is None or stale or live > 2 * self._live or self._since > _RETHINK + 16 * self._live:
            self._choose_again(batch, max(live, 1), stale)
        return self._workers

    def _stale(self, live: int) -> bool:
        """True if the index finds far more tuples in its cells than expected: the values have changed."""
        looked, probes = self.candidates - self._looked, self._last
        if self._choice is None or self._choice.engine != "index" or self._since < max(live // 4, _FEW):
            return False
        self._looked = self.candidates
        return looked > _WORSE * self._choice.lookups * max(probes, 1)

    def _choose_again(self, batch: Batch, live: int, stale: bool) -> None:
        tests = len(self._plan.tests)
        lanes, samples = {}, {}
        for side in ("r", "s"):
            probes = batch.probes[side]
            keys = [[k] for k in batch.stored[side]]
            for worker in self._workers:
                for k, stored in zip(keys, worker.stores[side].arrays, strict=False):
                    k.append(stored)
            samples[side] = [np.concatenate(k) for k in keys]
            lanes[side] = Lanes(samples[side], probes[:tests], probes[tests:])
        selectivity = measure(self._plan, lanes["r"], lanes["s"])
        # An index that was stale when it had just been learnt will be so again: then not so soon.
        self._stale_again = self._stale_again + 1 if stale and self._since <= 2 * self._last + _FEW else 0
        forced = self._forced or ("nested" if self._stale_again > 1 else None)
        choice = choose(self._plan, selectivity, live, forced, self._prefilter)
        self._live, self._since, self._looked = live, 0, self.candidates
        if self._choice is not None and not stale and choice.is_similar_to(self._choice):
            return
        self._choice = choice
        made: list[IndexWorker | NestedWorker] = []
        for n in range(self.threads):
            new = (IndexWorker(n, self.threads, self._plan, choice, selectivity) if choice.engine == "index"
                   else NestedWorker(n, self.threads, self._plan, choice, samples))
            if self._workers:
                self._earlier += self._workers[n].candidates
                new.adopt(self._workers[n].stores)
            made.append(new)
        self._workers = made

    def renew(self) -> None:
        """Make new workers for the next batch, from the tuples that the present ones have stored."""
        self._choice = None


class VerifiedSearch(Search):
    """Interval tests find candidates, and ``residual`` says which of them match.

    If the tests let too many pairs through, the whole ``predicate`` is evaluated for every pair instead, provided that
    ``may_leave`` is set and it can be compiled.
    """

    def __init__(self, predicate: Expr, residual: Expr, tests: PlanSearch, may_leave: bool, threads: int):
        super().__init__(threads)
        self._predicate, self._tests, self._may_leave = predicate, tests, may_leave
        self._lanes = AtomLanes(predicate)
        self._whole = Compiler(predicate, self._lanes)
        self._check = Compiler(residual, self._lanes, verify=True)
        self._workers = [VerifiedWorker(n, threads, predicate, residual, self._lanes) for n in range(threads)]
        self._seen = self._passed = 0  # pairs, and candidates, when the tests were judged last
        self._left = 0  # arrivals for which the tests are not asked

    @property
    def description(self) -> str:
        """The engine that runs, in words."""
        if self._left:
            return f"nested loops over the expression, {self._whole.why}"
        return f"{self._tests.description}; candidates verified, {self._check.why}"

    @property
    def candidates(self) -> int:
        """Pairs that the engine has looked at."""
        return self._tests.candidates + sum(worker.candidates for worker in self._workers)

    def cost(self, arrivals: int, pairs: int) -> float:
        """An estimate of the nanoseconds that all workers need for ``arrivals``, whose windows hold ``pairs``."""
        return pairs * _PAIR if self._left else self._tests.cost(arrivals, pairs)

    def encode(self, side: str, table: pa.Table) -> tuple[list[Array], list[Array]]:
        """The arrays of the tests, then the columns that the predicate reads, and its lanes."""
        keys, bounds = self._tests.encode(side, table)
        arrays = column_arrays(self._predicate, side, table) + self._lanes.encode(side, table)
        return keys + arrays, bounds + arrays

    def workers(self, batch: Batch) -> Sequence[Worker]:
        """Always the same workers, which have the tests' workers within them."""
        kernel = self._kernel_of_all_pairs(batch)
        if kernel is None:
            finders = self._tests.workers(self._workers[0].for_tests(batch))
            for worker, tests in zip(self._workers, finders, strict=True):
                worker.tests = tests
        passed = sum(worker.passed for worker in self._workers)
        check = None if kernel is not None else self._check.kernel(batch, passed)
        for worker in self._workers:
            worker.kernel, worker.check = kernel, check
        return self._workers

    def _kernel_of_all_pairs(self, batch: Batch) -> Kernel | None:
        """The kernel for all pairs if the tests are left out."""
        if self._left:
            self._left = max(0, self._left - len(batch.stream))
            kernel = self._whole.kernel(batch, self._seen) if self._left else None
            if kernel is None:
                self._left = 0
                self._tests.renew()
            return kernel
        seen, passed = (sum(getattr(worker, name) for worker in self._workers) for name in ("tested", "passed"))
        if not self._may_leave or seen - self._seen < _JUDGED:
            return None
        poor = passed - self._passed > _POOR * (seen - self._seen)
        self._seen, self._passed = seen, passed
        kernel = self._whole.kernel(batch, seen) if poor else None
        if kernel is not None:
            live = max((int((end - start).max()) for start, end in batch.windows.values() if len(start)), default=0)
            self._left = _RETHINK + 16 * live
        return kernel
