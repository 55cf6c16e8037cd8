"""Sessions of the GPU engine: those of the CPU engine, with a search whose finder works on the GPU."""

from __future__ import annotations

from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, other_side
from splitjoin.plan.plan import Plan

from ..compiled.atoms import AtomLanes
from ..cpu.finder import Batch
from ..cpu.search import PlanSearch, Search, VerifiedSearch, shortened
from ..cpu.session import CpuSession
from ..tuning import Tuning
from .comparison import of_plan, plan_layout
from .driver import Gpu
from .expression import GpuExpressionSearch, expression_layout
from .finder import GpuFinder
from .suits import is_expression
from .tuning import DEFAULTS, GpuTuning

#: Nanoseconds of the CPU's for an arrival: to copy bounds, and to verify candidates.
_ARRIVAL_NS = 4.0


class GpuSearch(PlanSearch):
    """Finds the matches of interval tests on the GPU."""

    def __init__(self, plan: Plan, finder: GpuFinder):
        super().__init__(plan, None, prefilter=False)
        self.gpu_finder = finder

    @property
    def description(self) -> str:
        return "nested loops over the keys, on the GPU"

    @property
    def candidates(self) -> int:
        return self.gpu_finder.candidates

    def cost(self, arrivals: int, pairs: int) -> float:
        return arrivals * _ARRIVAL_NS

    def finder(self, batch: Batch) -> GpuFinder:
        return self.gpu_finder


class GpuSession(CpuSession):
    """A query whose matches are found on a GPU."""

    def __init__(self, query: Query, search: Search, finder: GpuFinder, threads: int, batch: int):
        super().__init__(query, search, threads, Tuning(batch=batch))
        self._finder = finder

    def counters(self) -> dict[str, int]:
        """Those of the CPU engine, and ``bytes_sent`` and ``bytes_received``: copied to the GPU, and from it."""
        return {**super().counters(), "bytes_sent": self._finder.sent, "bytes_received": self._finder.received}

    def close(self) -> None:
        super().close()
        self._finder.close()


def open_session(query: Query, plan: Plan, gpu: Gpu, threads: int, sizes: GpuTuning = DEFAULTS) -> GpuSession:
    """A session of ``query``, whose condition has ``plan``, on ``gpu``. Raises as `GpuFinder`."""
    if is_expression(plan):
        lanes = AtomLanes(query.predicate)
        finder = GpuFinder(expression_layout(query.predicate, lanes), gpu, sizes=sizes)
        return GpuSession(query, GpuExpressionSearch(query.predicate, lanes, finder), finder, threads, sizes.batch)
    plan = shortened(plan)
    finder = GpuFinder(plan_layout(plan), gpu, sizes=sizes)
    finder.compare({side: of_plan(plan, other_side(side)) for side in SIDES})
    tests = GpuSearch(plan, finder)
    search = tests if plan.residual is None else VerifiedSearch(query.predicate, plan.residual, tests, may_bypass=False)
    return GpuSession(query, search, finder, threads, sizes.batch)
