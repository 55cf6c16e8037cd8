"""How a query's matches are found, now: encodes tuples, and keeps the workers of the engine that suits them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import UnsupportedError
from ..lang.ir import Expr
from ..lang.plan import Plan, make_plan
from ..lang.query import Query
from .choice import Choice, choose, measure
from .codes import LaneCoder, Lanes
from .expression import ExpressionWorker, column_arrays
from .index import IndexWorker
from .nested import NestedWorker
from .tests_source import leading_tests
from .worker import Batch, Worker

__all__ = ["EngineName", "ExpressionSearch", "PlanSearch", "Search", "make_search"]

Array = npt.NDArray[Any]
EngineName = Literal["auto", "index", "nested"]

#: Arrivals after which the choice is thought over, beside those of a whole window.
_RETHINK = 1 << 18


class Search(ABC):
    """Encodes tuples for the workers, and says which workers there are."""

    def __init__(self, threads: int):
        self.threads = threads

    @property
    @abstractmethod
    def words(self) -> str:
        """What runs, for people."""

    @property
    @abstractmethod
    def candidates(self) -> int:
        """Pairs that the engine has looked at."""

    @abstractmethod
    def encode(self, side: str, table: pa.Table) -> tuple[list[Array], list[Array]]:
        """What the tuples of ``table`` are stored as, and what they probe with: arrays (n,) each."""

    @abstractmethod
    def workers(self, batch: Batch) -> Sequence[Worker]:
        """Who processes the batch."""


def make_search(query: Query, engine: EngineName, prefilter: bool, threads: int) -> Search:
    """Interval tests where they decide the predicate, else the expression itself over blocks of pairs."""
    plan = make_plan(query.predicate)
    if plan.residual is not None:
        if engine == "index":
            raise UnsupportedError(f"an index needs a condition that interval tests decide, but {plan.reasons[0]}; use "
                                   f"engine='nested'")
        return ExpressionSearch(query.predicate, threads)
    if engine == "index" and not leading_tests(plan):
        raise UnsupportedError(f"an index needs a comparison of both streams that must hold for every match, but "
                               f"'{query.predicate}' has none; use engine='nested'")
    return PlanSearch(plan, None if engine == "auto" else engine, prefilter, threads)


class ExpressionSearch(Search):
    """The predicate itself, for every pair."""

    def __init__(self, predicate: Expr, threads: int):
        super().__init__(threads)
        self._predicate = predicate
        self._workers = [ExpressionWorker(n, threads, predicate) for n in range(threads)]

    @property
    def words(self) -> str:
        """What runs, for people."""
        return "nested loops over the expression"

    @property
    def candidates(self) -> int:
        """Pairs that the engine has looked at."""
        return sum(worker.candidates for worker in self._workers)

    def encode(self, side: str, table: pa.Table) -> tuple[list[Array], list[Array]]:
        """The columns that the predicate reads."""
        arrays = column_arrays(self._predicate, side, table)
        return arrays, arrays

    def workers(self, batch: Batch) -> Sequence[Worker]:
        """The same ones always."""
        return self._workers


class PlanSearch(Search):
    """Interval tests on keys, by nested loops or an index, as chosen for what came so far."""

    def __init__(self, plan: Plan, forced: str | None, prefilter: bool, threads: int):
        super().__init__(threads)
        self._plan, self._forced, self._prefilter = plan, forced, prefilter
        self._coder = LaneCoder(plan)
        self._choice: Choice | None = None
        self._workers: Sequence[IndexWorker | NestedWorker] = []
        self._earlier = 0  # candidates of workers that were replaced
        self._live = 0  # the longest window when it was chosen
        self._since = 0

    @property
    def words(self) -> str:
        """What runs, for people."""
        return "nothing yet" if self._choice is None else self._choice.why

    @property
    def candidates(self) -> int:
        """Pairs that the engine has looked at."""
        return self._earlier + sum(worker.candidates for worker in self._workers)

    def encode(self, side: str, table: pa.Table) -> tuple[list[Array], list[Array]]:
        """Keys, and bounds: all tests' lows, then all highs."""
        lanes = self._coder.codes(side, table)
        return lanes.keys, lanes.lows + lanes.highs

    def workers(self, batch: Batch) -> Sequence[Worker]:
        """Those of the engine that is cheaper, new ones that take over the window when that changes."""
        live = max((int((end - start).max()) for start, end in batch.windows.values() if len(start)), default=0)
        self._since += len(batch.stream)
        if self._choice is None or live > 2 * self._live or self._since > _RETHINK + 16 * self._live:
            self._rethink(batch, max(live, 1))
        return self._workers

    def _rethink(self, batch: Batch, live: int) -> None:
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
        choice = choose(self._plan, selectivity, live, self._forced, self._prefilter)
        self._live, self._since = live, 0
        if self._choice is not None and choice.engine == self._choice.engine == "nested" and choice.tests == ():
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
