"""`BatchSession`: a query in this process, a batch at a time; `CpuSession`: by compiled loops."""

from __future__ import annotations

import os
from abc import abstractmethod
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from splitjoin.base.arrays import Ints
from splitjoin.base.errors import DeviceError, InputError
from splitjoin.base.memory import MatchMemory, check_memory, too_large
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES

from ..arrival import Arrivals
from ..compiled.helpers import Team
from ..device import ITEM, STAR, Items, Session, checked_precision
from ..tuning import DEFAULTS, Tuning
from .finder import Batch, Joined
from .fused_batch import FusedBatch
from .gather import gather
from .search import Search
from .tasks import Job, run_jobs
from .timeline import Timeline

#: Batches of a turn, of which the first is not compared, as caches have to follow; and turns in a comparison.
_TURN, _TURNS = 3, 2
#: Batches between a comparison and the next one: at first, and at most. They double.
_SOON, _LATE = 64, 4096
#: Several threads must take less than this part of one thread's time.
_PAYS = 0.95
_NEVER = float("inf")
#: Several threads must save so many shares of one (`Tuning`): what they take for phases, and to be woken.
_SAVED = 4
#: Nanoseconds for keys, bounds and window of an arrival, and for its result items.
_ENCODE_NS, _GATHER_NS = 9.0, 6.0


@dataclass
class _Batches:
    """A comparison of one thread with several, for batches of about one size.

    ``least``: seconds an arrival of one thread and of several, the least of each. ``is_one``: True if one thread goes
    on. ``counted``: batches since the last comparison; ``wait``: batches from one comparison to the next.
    """

    least: list[float] = field(default_factory=lambda: [_NEVER, _NEVER])
    is_one: bool = False
    counted: int = 0
    wait: int = 0


class MeasuredThreads:
    """Chooses between one thread and those that an estimate proposes, batch by batch."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], _Batches] = {}
        self._now: tuple[_Batches, int, int] | None = None

    def choose(self, several: int, arrivals: int) -> int:
        """The number of threads for a batch of so many ``arrivals``: 1 or ``several``, which an estimate proposes."""
        self._now = None
        if several == 1:
            return 1
        known = self._known.setdefault((arrivals.bit_length(), several), _Batches())
        turn = (known.counted - known.wait) // _TURN
        # A comparison begins with those that the estimate proposes.
        alone = known.is_one if turn < 0 else turn % _TURNS > 0
        size = 1 if alone else several
        self._now = known, size, arrivals
        return size

    def note(self, seconds: float) -> None:
        """Note the time of the batch for which `choose` was asked last."""
        if self._now is None:
            return
        known, size, arrivals = self._now
        at = known.counted - known.wait
        known.counted += 1
        if at < 0:
            return
        if at % _TURN:
            which = int(size > 1)
            known.least[which] = min(known.least[which], seconds / arrivals)
        if at + 1 == _TURN * _TURNS:
            one, several = known.least
            known.is_one = several > one * _PAYS
            known.least = [_NEVER, _NEVER]
            known.wait = min(max(2 * known.wait, _SOON), _LATE)
            known.counted = 0

    @property
    def is_one(self) -> bool:
        """True if one thread has been found faster, or not much slower, for batches like the last one."""
        return self._now is not None and self._now[0].is_one


class BatchSession(Session):
    """A query in this process, a batch of arrivals at a time. All pushed arrivals are processed when `push` returns."""

    def __init__(self, query: Query, tuning: Tuning = DEFAULTS):
        self._query, self._tuning = query, tuning
        self._is_timed = any(query.window(side).length is not None for side in SIDES)
        self._open_probes: Ints = np.zeros(2, np.int64)  # of R and of S, since the last star
        self._slice = query.order.n if query.order.kind == "inner" else 0  # comparisons between stars of a probe
        self._last_time: int | None = None
        self._items: list[Items] = []
        self._comparisons = self._matches = 0
        self._flushed = self._broken = self._closed = False
        self._process = os.getpid()

    @property
    @abstractmethod
    def _ends(self) -> dict[str, int]:
        """Per stream the number of its tuples so far."""

    @property
    @abstractmethod
    def _candidates(self) -> int:
        """The number of pairs that the engine has looked at."""

    @abstractmethod
    def _join_batch(self, part: Arrivals) -> Joined:
        """Store the batch, find the matches of its probes among all that they see, and gather them in order."""

    def push(self, arrivals: Arrivals) -> None:
        """Take the next arrivals, in order.

        Raises `InputError` when event time decreases, and `CapacityError` when the results do not fit into memory.
        """
        self._check_usable()
        if self._flushed:
            raise DeviceError("nothing can be pushed after flush; open a new session")
        self._check_times(arrivals)
        self._broken = True  # until all is done: an interrupt may come at any point
        rest: Arrivals | None = arrivals if len(arrivals) else None
        while rest is not None:
            part, rest = rest.split(self._tuning.batch)
            self._add(part)
        self._broken = False

    def poll(self) -> Items:
        """The result items since the last call. Raises `CapacityError` if they do not fit into memory."""
        self._check_usable()
        try:
            items = self._items[0] if len(self._items) == 1 else np.concatenate([np.empty(0, ITEM), *self._items])
        except MemoryError as error:
            raise too_large(self._matches) from error
        self._items = []
        return items

    def settle(self) -> Items:
        return self.poll()  # a push returns after all its results are there

    def flush(self) -> Items:
        if not self._flushed:
            self._flushed = True
            ends = self._ends
            last = [(STAR, 0, ends["r"] - 1, -1)] if self._open_probes[0] else []
            last += [(STAR, 1, -1, ends["s"] - 1)] if self._open_probes[1] else []
            self._items.append(np.array(last, ITEM))
        return self.poll()

    def precision(self, n: int) -> None:
        self._slice = checked_precision(self._query.order, n, ("inner",))

    def counters(self) -> dict[str, int]:
        """``tuples_r``, ``tuples_s``, ``comparisons`` (pairs within the windows), ``candidates`` (those that the engine
        looked at), ``matches``.
        """
        ends = self._ends
        return {"tuples_r": ends["r"], "tuples_s": ends["s"], "comparisons": self._comparisons,
                "candidates": self._candidates, "matches": self._matches}

    def close(self) -> None:
        self._closed = True

    def _check_usable(self) -> None:
        if self._closed:
            raise DeviceError("the session is closed; open a new one")
        if self._process != os.getpid():
            raise DeviceError("the session was opened before this process was forked, and its threads are not here; "
                              "open a new one")
        if self._broken:
            raise DeviceError("the session was stopped in the middle of a push or a flush, and part of its results is "
                              "lost; open a new one, or restart a streaming session")

    def _check_times(self, arrivals: Arrivals) -> None:
        ts = arrivals.ts
        if ts is None:
            if self._is_timed and len(arrivals):
                raise InputError("a RANGE window needs event times, but these arrivals have none")
            return
        if len(ts):
            rises = arrivals.merged is not None or not (ts[1:] < ts[:-1]).any()
            if not rises or (self._last_time is not None and int(ts[0]) < self._last_time):
                raise InputError("event time must not decrease in arrival order; sort both streams by it first")
            self._last_time = int(ts[-1])

    def _add(self, part: Arrivals) -> None:
        """Add the items of ``part``, as long as `poll` can give all that there are in one array."""
        try:
            joined = self._join_batch(part)
        except MemoryError as error:
            raise too_large(self._matches) from error
        self._matches += joined.matches
        self._comparisons += joined.pairs
        self._items.append(joined.items)
        if len(self._items) > 1:
            check_memory(self._matches, sum(items.nbytes for items in self._items))


class CpuSession(BatchSession):
    """A query in compiled loops, by as many threads as batches have been fastest with."""

    def __init__(self, query: Query, search: Search, threads: int = 1, tuning: Tuning = DEFAULTS):
        super().__init__(query, tuning)
        self._search = search
        self._timeline = Timeline(query, tuning.slack)
        self._threads, self._team = threads, Team(threads)
        self._shared: tuple[int, float] | None = None  # how many threads share a batch, and its nanoseconds with one
        self._measured = MeasuredThreads()
        self._pairs = 0  # in the windows of the last batch
        self._fused_batch = FusedBatch.of(query, search, self._timeline, self._open_probes, self._team)

    @property
    def _ends(self) -> dict[str, int]:
        return self._timeline.ends

    @property
    def _candidates(self) -> int:
        return self._search.candidates

    def region_counters(self) -> dict[str, Ints] | None:
        """``comparisons`` and ``matches`` of each thread, (threads, 2): in stored R, and in stored S. None if not all
        was compared by nested loops over the keys (``engine="nested"``).
        """
        work = self._search.work
        if work is None:
            return None
        missing = np.zeros((max(0, self._threads - len(work.matches)), 2), np.int64)
        return {"comparisons": np.concatenate([work.comparisons, missing]),
                "matches": np.concatenate([work.matches, missing])}

    def plan(self) -> str:
        """The engine that runs at present, in words, and how many threads share its work."""
        if self._threads > 1 and self._team.awake == 1:
            return f"{self._search.description}; one of {self._threads} threads, as there is one processor"
        if self._threads == 1 or self._shared is None:
            return self._search.description
        size, cost = self._shared
        if self._measured.is_one:
            return f"{self._search.description}; one of {self._threads} threads, as {size} took longer"
        few = f", {self._team.awake} at a time" if self._team.awake < size else ""
        return (f"{self._search.description}; {size} of {self._threads} threads{few}, as a batch takes about "
                f"{cost / 1e6:.1f} ms of one")

    def close(self) -> None:
        super().close()
        self._team.close()

    def _join_batch(self, part: Arrivals) -> Joined:
        if self._fused_batch is not None:
            self._team.size = self._measured.choose(self._threads_for(len(part), self._pairs), len(part))
            began = perf_counter()
            joined = self._fused_batch.join(part, self._matches)
            if joined is not None:
                self._measured.note(perf_counter() - began)
                self._pairs = joined.pairs
                return joined
            self._measured.choose(1, len(part))  # of the parts, the estimate says how many threads share them
        joined = self._join_by_parts(part)
        self._pairs = joined.pairs
        return joined

    def _threads_for(self, arrivals: int, pairs: int) -> int:
        """The number of threads that search for ``arrivals`` tuples, which have ``pairs`` pairs in their windows."""
        if self._threads == 1 or self._team.awake == 1:
            return 1
        cost = self._search.cost(arrivals, pairs)
        size = self._most_for(min(cost, self._search.most_threads(arrivals, pairs) * self._tuning.share))
        if self._fused_batch is not None and cost - cost / size < _SAVED * self._tuning.share:
            size = 1
        self._shared = size, cost
        return size

    def _join_by_parts(self, part: Arrivals) -> Joined:
        first = dict(self._timeline.ends)
        team = self._for(len(part) * _ENCODE_NS)
        stream = part.stream if part.stream.flags.writeable else part.stream.copy()  # one type in compiled loops
        arrived = self._timeline.next(part, stream, team)
        jobs: list[Job] = []
        encoded = {side: self._search.deferred(side, part.table(side), jobs, team.size) for side in SIDES}
        arrived.phases[0] += jobs
        run_jobs(team, *arrived.phases)
        stored, probes = zip(*team.map(lambda side: encoded[side] or self._search.encode(side, part.table(side)), SIDES,
                                       stay=True) if None in encoded.values() else encoded.values(), strict=True)
        batch = Batch(stream, first, dict(zip(SIDES, stored, strict=True)), dict(zip(SIDES, probes, strict=True)),
                      arrived.windows, self._timeline.starts, team, MatchMemory(self._matches), arrived)
        pairs, _ = batch.extent
        finder = self._search.finder(batch)
        self._team.size = self._threads_for(len(part), pairs)
        found = finder.process(batch)
        self._timeline.trim()
        order = self._query.order
        every = {"none": 0, "outer": order.n, "inner": 1, "total": 1}[order.kind]
        self._for(len(part) * _GATHER_NS)
        items, matches = gather(batch, found, every, self._slice, self._open_probes)
        return Joined(items, matches, pairs)

    def _for(self, nanoseconds: float) -> Team:
        """The team, with as many threads as share so much work."""
        self._team.size = self._most_for(nanoseconds)
        return self._team

    def _most_for(self, nanoseconds: float) -> int:
        most = self._threads if self._team.awake > 1 else 1  # work that is divided takes longer, if nobody shares it
        return max(1, min(most, int(nanoseconds / self._tuning.share)))
