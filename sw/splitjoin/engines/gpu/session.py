"""Sessions of the GPU engine: those of the CPU engine, whose search has a finder that works on the GPU, by nested loops
over keys, or over the condition itself where it compares no keys.
"""

from __future__ import annotations

from collections.abc import Mapping

from splitjoin.lang.ir import Expr, columns
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, other_side
from splitjoin.plan.plan import Plan

from ..compiled.atoms import AtomLanes, ValueRange
from ..compiled.exact_source import NotCompiled
from ..compiled.expression_source import Code
from ..cpu.finder import Batch, Finder, Found
from ..cpu.residual import ExpressionFinder, live_ranges, narrowest
from ..cpu.search import ExpressionSearch, PlanSearch, Search, VerifiedSearch, shortened
from ..cpu.session import CpuSession
from ..tuning import Tuning
from .comparison import KernelComparison, Layout, kind_of, of_expression, of_plan, plan_layout
from .driver import Gpu, is_simulated
from .kernel_source import KernelShape
from .suits import is_expression
from .tuning import DEFAULTS, GpuTuning
from .work import ProbeWork

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


#: How kernels divide the work; the simulator, which makes a thread of Python's of each of the GPU's, has small blocks.
SHAPE = KernelShape(threads=2, probes=4, tile=16, unrolled=2, few=3) if is_simulated() else KernelShape()


class GpuFinder(Finder):
    """Compares probes with all that they see, on ``gpu``.

    The keys that a batch adds to S travel with the bounds of R's probes, which compare them, and the other way round.
    So the GPU looks for the matches of R's probes while those of S are sent.
    """

    def __init__(self, layout: Layout, gpu: Gpu, shape: KernelShape = SHAPE, sizes: GpuTuning = DEFAULTS):
        super().__init__()
        self._gpu = gpu
        with gpu:
            self.works: dict[str, ProbeWork] = {side: ProbeWork(side, layout, gpu, shape, sizes) for side in SIDES}
        self._bytes = 0, 0  # sent and received, when the session is closed
        self._kept: Batch | None = None  # whose keys are not sent yet

    def compare(self, comparisons: Mapping[str, KernelComparison]) -> None:
        """Find matches by ``comparisons``, one for the probes of each stream, from the next batch on."""
        for side, one in comparisons.items():
            self.works[side].compare(one)

    @property
    def sent(self) -> int:
        """Bytes of keys, bounds and windows that were copied to the GPU."""
        return self._bytes[0] + sum(work.sent for work in self.works.values())

    @property
    def received(self) -> int:
        """Bytes that were copied from the GPU."""
        return self._bytes[1] + sum(work.received for work in self.works.values())

    def keep(self, batch: Batch) -> None:
        """Store the keys of the batch on the GPU: with the bounds, if `find` is next."""
        self._store_kept()
        self._kept = batch

    def expire(self, batch: Batch) -> None:
        self._store_kept()
        for side, work in self.works.items():
            work.ring.trim(batch.starts[other_side(side)])

    def find(self, batch: Batch) -> dict[str, Found]:
        """Per stream its probes' matches, which the next batch overwrites."""
        if self._kept is not batch:
            self._store_kept()
        storing, self._kept = self._kept is batch, None
        self.count_candidates(batch.extent[0])
        with self._gpu:
            for work in self.works.values():
                work.begin(batch, storing=storing, finding=True)
            return {side: work.found(batch) for side, work in self.works.items()}

    def close(self) -> None:
        """Release the GPU's memory."""
        with self._gpu:
            self._bytes = self.sent, self.received
            self.works.clear()
            self._gpu.release()

    def _store_kept(self) -> None:
        """Store the keys of a batch whose probes are not looked at."""
        if (batch := self._kept) is not None:
            self._kept = None
            with self._gpu:
                for work in self.works.values():
                    work.begin(batch, storing=True, finding=False)


def expression_layout(predicate: Expr, lanes: AtomLanes) -> Layout:
    """The lanes of ``predicate``, behind its columns."""
    stored: dict[str, list[tuple[str, str, int]]] = {}
    probe: dict[str, dict[str, int]] = {}
    for side in SIDES:
        first = 2 * sum(c.side == side for c in columns(predicate))
        half, mine = lanes.count(side) // 2, [a for a in lanes.atoms if a.side == side]
        stored[side] = [(f"{side}{a.number}", kind_of(a), first + a.number) for a in mine]
        stored[side] += [(f"{side}{a.number}v", "bool", first + half + a.number) for a in mine]
        probe[side] = {name: n for name, _, n in stored[side]}
    return Layout(stored, probe)


class GpuExpressionFinder(ExpressionFinder):
    """Evaluates ``predicate`` for every pair by ``loops`` on the GPU; by NumPy while ``code`` is None."""

    def __init__(self, predicate: Expr, loops: GpuFinder):
        super().__init__(predicate)
        self.loops = loops
        self.code: Code | None = None

    def keep(self, batch: Batch) -> None:
        super().keep(batch)
        self.loops.keep(batch)

    def expire(self, batch: Batch) -> None:
        super().expire(batch)
        self.loops.expire(batch)

    def find(self, batch: Batch) -> dict[str, Found]:
        if self.code is None:
            return super().find(batch)
        self.loops.compare({side: of_expression(self.code, other_side(side)) for side in SIDES})
        return self.loops.find(batch)


class GpuExpressionSearch(ExpressionSearch):
    """Evaluates ``predicate``, whose ``lanes`` `expression_layout` has placed, for every pair by ``loops``."""

    def __init__(self, predicate: Expr, lanes: AtomLanes, loops: GpuFinder):
        super().__init__(predicate, compiling=False)
        self._lanes, self._gpu_finder = lanes, GpuExpressionFinder(predicate, loops)
        self._ranges: dict[Expr, ValueRange] | None = None
        self._why = "on the GPU"

    @property
    def description(self) -> str:
        return f"nested loops over the expression, {self._why}"

    @property
    def candidates(self) -> int:
        return self._gpu_finder.candidates + self._gpu_finder.loops.candidates

    def finder(self, batch: Batch) -> GpuExpressionFinder:
        """Always the same finder, with code for the values that are in the windows now."""
        found, ranges = self._gpu_finder, live_ranges(batch, self._lanes)
        if ranges != self._ranges:
            self._ranges = ranges
            try:
                found.code, width = narrowest(self._predicate, self._lanes.atoms, ranges)
            except NotCompiled as reason:
                found.code, self._why = None, f"by NumPy, as there is no code for {reason}"
                return found
            self._why = f"on the GPU, whole numbers in {width} bits"
        return found
