"""The CPU engine: joins in compiled loops, in this process."""

from __future__ import annotations

from splitjoin.base.memory import MatchMemory
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES

from ..arrival import Arrivals
from .block import Job, run_jobs
from .finder import Batch
from .gather import gather
from .helpers import Team
from .search import Search
from .session import BatchSession, Joined
from .timeline import Timeline

__all__ = ["CpuSession"]

#: Least nanoseconds of work for each thread: the hand-over takes a tenth of it, more if a helper has to be woken.
_SHARE = 25_000.0
#: Nanoseconds for keys, bounds and window of an arrival, and for its result items.
_ENCODE_NS, _GATHER_NS = 9.0, 6.0


class CpuSession(BatchSession):
    """A query in compiled loops."""

    def __init__(self, query: Query, search: Search, threads: int = 1):
        super().__init__(query)
        self._search = search
        self._timeline = Timeline(query)
        self._threads, self._team = threads, Team(threads)
        self._shared = ""  # how many threads find the matches of a batch, in words

    @property
    def ends(self) -> dict[str, int]:
        """Per stream the number of its tuples so far."""
        return self._timeline.ends

    @property
    def candidates(self) -> int:
        """The number of candidate pairs that the engine has compared."""
        return self._search.candidates

    def plan(self) -> str:
        """The engine that runs at present, in words, and how many threads share its work."""
        return self._search.description + self._shared

    def close(self) -> None:
        """Stop the worker threads, after they have finished."""
        super().close()
        self._team.close()

    def join_batch(self, part: Arrivals) -> Joined:
        """Store the batch, find the matches of its probes among all that they see, and gather them in order."""
        first = dict(self._timeline.ends)
        team = self._for(len(part) * _ENCODE_NS)
        stream = part.stream if part.stream.flags.writeable else part.stream.copy()  # one type in compiled loops
        arrived = self._timeline.next(part, stream, team)
        jobs: list[Job] = []
        encoded = {side: self._search.deferred(side, part.table(side), jobs, team.size) for side in SIDES}
        arrived.phases[0] += jobs
        run_jobs(team, *arrived.phases)
        stored, probes = zip(*team.map(lambda side: encoded[side] or self._search.encode(side, part.table(side)), SIDES)
                             if None in encoded.values() else encoded.values(), strict=True)
        batch = Batch(stream, first, dict(zip(SIDES, stored, strict=True)), dict(zip(SIDES, probes, strict=True)),
                      arrived.windows, self._timeline.starts, team, MatchMemory(self._matches), arrived)
        pairs, _ = batch.extent
        finder = self._search.finder(batch)
        cost = self._search.cost(len(part), pairs)
        self._for(min(cost, self._search.most_threads(len(part), pairs) * _SHARE))
        if self._threads > 1:
            self._shared = (f"; {self._team.size} of {self._threads} threads, as a batch takes about {cost / 1e6:.1f} "
                            f"ms of one")
        found = finder.process(batch)
        self._timeline.trim()
        order = self._query.order
        every = {"none": 0, "outer": order.n, "inner": 1, "total": 1}[order.kind]
        self._for(len(part) * _GATHER_NS)
        items, matches = gather(batch, found, every, order.n if order.kind == "inner" else 0, self.open_probes)
        return Joined(items, matches, pairs)

    def _for(self, nanoseconds: float) -> Team:
        """The team, with as many threads as share so much work."""
        self._team.size = max(1, min(self._threads, int(nanoseconds / _SHARE)))
        return self._team
