"""The device ``cpu``: joins in this process, in compiled loops."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt

from splitjoin.base.errors import DeviceError, UnsupportedError
from splitjoin.base.processors import processors
from splitjoin.lang.query import Query
from splitjoin.plan.passes.compiler import make_plan
from splitjoin.plan.plan import leading_tests

from ..arrival import Arrivals
from ..compiled.compiler import has_numba, needs_numba
from ..compiled.helpers import Team
from ..device import Device, HostFolds, Session, TableAnswer, check_inner, check_threads
from ..latest import LatestSession
from ..tuning import DEFAULTS, Tuning
from .pair_count import counted_pairs
from .search import make_search
from .session import CpuSession
from .table_choice import join_tables
from .table_work import Work

CpuEngine = Literal["auto", "index", "sorted", "nested", "sliding", "key-oij", "scale-oij", "threads"]
#: Engines that fold aggregates without making pairs (`splitjoin.rows.interval_joins`).
INTERVAL_ENGINES = ("sliding", "key-oij", "scale-oij")


@dataclass(frozen=True, kw_only=True)
class CpuDevice(Device):
    """Runs queries on the CPU. Takes every predicate, window and order.

    Attributes:
        engine: ``"index"`` looks stored tuples up by the keys of one or two conditions; ``"sorted"`` keeps them in
            sorted runs, for two inequalities such as BETWEEN two columns; ``"nested"`` compares every pair of a window,
            in vector code; ``"auto"`` takes the cheapest one for the measured selectivity. Of
            aggregates over joins by equal keys, ``"sliding"``, ``"key-oij"`` and ``"scale-oij"`` make no pairs
            (docs/aggregates.md), and ``"auto"`` takes the first of these where it can. ``"threads"`` is a baseline: an
            architecture of the papers with a thread for each core (`splitjoin.engines.threads`).
        threads: The most threads that share a batch, 1 to 256; ``"auto"`` for as many as pay, up to the processors
            that this process may use (`splitjoin.base.processors`).
        prefilter: True if nested loops may compare narrow copies of the keys first, and verify what passes.
        tuning: Sizes and limits, which change time and memory, never the answer.
        architecture: Of engine ``"threads"``: one of `splitjoin.engines.threads.ARCHITECTURES`, by default
            ``"splitjoin"``. Chains of cores keep no order, and give a pair when its tuples meet: `Session.settle` is
            refused.
    """

    name: ClassVar[str] = "cpu"
    immediate: ClassVar[bool] = True
    settles: ClassVar[bool] = True
    in_total_order: ClassVar[bool] = True
    engine: CpuEngine = "auto"
    threads: int | Literal["auto"] = "auto"
    prefilter: bool = True
    tuning: Tuning = field(default=DEFAULTS, repr=False)
    architecture: str | None = None

    def __post_init__(self) -> None:
        if self.engine not in get_args(CpuEngine):
            raise DeviceError(f"engine must be {', '.join(map(repr, get_args(CpuEngine)[:-1]))} or 'threads', not "
                              f"{self.engine!r}")
        check_threads(self.threads)
        if not isinstance(self.prefilter, bool):
            raise DeviceError(f"prefilter must be True or False, not {self.prefilter!r}")
        if not isinstance(self.tuning, Tuning):
            raise DeviceError(f"tuning must be a Tuning, as in CpuDevice(tuning=Tuning(batch=4096)), not "
                              f"{self.tuning!r}")
        if self.engine == "threads":
            self._check_architecture()
        elif self.architecture is not None:
            raise DeviceError(f"architecture={self.architecture!r} is of engine='threads', but the engine is "
                              f"{self.engine!r}; give engine='threads', or leave architecture out")

    def _check_architecture(self) -> None:
        """Raise `DeviceError` for an unknown architecture, and say what sessions of a known one promise."""
        from ..threads import ARCHITECTURES

        name = self.architecture or "splitjoin"
        if name not in ARCHITECTURES:
            raise DeviceError(f"architecture must be {', '.join(map(repr, ARCHITECTURES))}, not {name!r}")
        object.__setattr__(self, "immediate", ARCHITECTURES[name].is_immediate)
        object.__setattr__(self, "in_total_order", False)

    def open(self, query: Query) -> Session:
        """Start a session of ``query``. Raises `UnsupportedError` if no test suits the required engine."""
        check_inner(query)
        if self.engine in INTERVAL_ENGINES:
            raise UnsupportedError(f"engine={self.engine!r} folds aggregates, but the query gives pairs; use "
                                   f"engine='auto'")
        if self.engine == "threads":
            from ..threads import ThreadSession

            return ThreadSession(query, self.architecture or "splitjoin", self.workers, self.tuning)
        if self.engine not in ("auto", "nested"):
            plan = make_plan(query.predicate)
            if not leading_tests(plan):
                needs = "an index needs" if self.engine == "index" else "sorted runs need"
                raise UnsupportedError(f"{needs} a comparison of both streams that must hold for every match, but "
                                       f"'{plan.predicate}' has none; use engine='nested'")
        search = make_search(query, self.engine, self.prefilter, self.tuning)
        return CpuSession(query, search, self.workers, self.tuning)

    def open_latest(self, query: Query) -> Session:
        """As `Device.open_latest`. Raises `UnsupportedError` if the user asks for an engine."""
        if self.engine != "auto":
            raise UnsupportedError(f"engine={self.engine!r} looks into windows, but an as-of join without a window "
                                   f"looks its partners up by keys; leave engine out, or give a window")
        return LatestSession(query)

    def join_tables(self, query: Query, arrivals: Arrivals, room: int,
                    bases: npt.NDArray[np.int64] | None = None) -> TableAnswer | None:
        """As `Device.join_tables`, unless the user asks for an engine."""
        return None if self._is_asked else join_tables(query, arrivals, room, self._table_work(), bases)

    def count_pairs(self, query: Query, arrivals: Arrivals, room: int) -> int | None:
        return counted_pairs(query, arrivals, room, self._table_work())

    @property
    def has_prevailing(self) -> bool:
        return not self._is_asked

    @property
    def host_folds(self) -> HostFolds | None:
        """As `Device.host_folds`, unless the user asks for an engine that makes pairs."""
        if self.engine != "auto" and self.engine not in INTERVAL_ENGINES:
            return None
        return HostFolds(self.engine, self.workers, self.tuning.batch, self.tuning.schedule_arrivals)

    @property
    def of_pairs(self) -> CpuDevice:
        return replace(self, engine="auto") if self.engine in INTERVAL_ENGINES else self

    def _table_work(self) -> Work:
        """The threads for whole tables."""
        workers = self.workers  # the system is asked for its processors
        return Work(workers, Team(workers), self.tuning)

    @property
    def _is_asked(self) -> bool:
        """True if the user asks for an engine of sessions."""
        return self.engine != "auto"

    def compile(self, query: Query, coming: Arrivals) -> bool:
        """Compile what tests leave of the condition of ``query``, as a session of the ``coming`` arrivals evaluates it
        for candidates or pairs; it stays in the cache. Returns False if they leave nothing. Raises `ToolError` without
        numba.
        """
        if make_plan(query.predicate).residual is None:
            return False
        if not has_numba():
            raise needs_numba("compiling in advance", "let NumPy evaluate what would be compiled")
        with replace(self, tuning=replace(self.tuning, interpreted_pairs=0)).open(query) as session:
            session.push(coming)
            session.flush()
        return True

    @property
    def workers(self) -> int:
        """The number of threads that may run."""
        return min(256, processors()) if self.threads == "auto" else self.threads
