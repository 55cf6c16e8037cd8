"""`ThreadSession`: a query on the threads of one architecture."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

import numpy as np

from splitjoin.base.arrays import Rows
from splitjoin.base.errors import CapacityError, OrderError, UnsupportedError
from splitjoin.base.memory import too_large
from splitjoin.base.processors import processors
from splitjoin.base.threads import thread
from splitjoin.lang.eval.pairs import PairTest, column_arrays
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side, other_side
from splitjoin.plan.encoding import Coder
from splitjoin.plan.passes.compiler import make_plan

from ..arrival import Arrivals
from ..compiled.helpers import Team
from ..compiled.store import Store
from ..cpu.finder import Joined
from ..cpu.pair_tests import conditions
from ..cpu.session import BatchSession
from ..cpu.tasks import run_jobs
from ..cpu.timeline import Timeline
from ..device import ITEM, PAIR, Items, joined_items
from ..loops import loops
from ..tuning import DEFAULTS, Tuning

#: Words of a result (``parts.hpp``), and of a message ahead of its keys.
_ITEM_WORDS, _HEAD = 5, 5
#: The kind of message that ends the input.
_END = 2
#: Ways of tuples to the cores.
_BROADCAST, _PARTS, _CHAIN, _GATES = range(4)
_NO_LIMIT = 2**62


@dataclass(frozen=True)
class ThreadForm:
    """An architecture: the loop of its cores, the way of tuples to them, and the orders that it keeps.

    Attributes:
        block, threshold: Tuples that a core of a chain sends at once, and by how many more it must have than the next.
        places: Messages that a queue to a core holds, a power of two.
        results: Results that the queue of a core holds, likewise.
        items: Results that the feeder takes at once.
    """

    loop: str
    way: int
    orders: tuple[str, ...]
    block: int = 1
    threshold: int = 1
    places: int = 1024
    results: int = 1024
    items: int = 1 << 14

    @property
    def is_immediate(self) -> bool:
        """True if results of all pushed tuples can be waited for."""
        return self.way != _CHAIN


#: The architectures by name.
ARCHITECTURES = {
    "splitjoin": ThreadForm("splitjoin_core", _BROADCAST, ("none", "outer", "inner", "total")),
    "celljoin": ThreadForm("celljoin_core", _PARTS, ("none", "outer", "total")),
    "scalejoin": ThreadForm("scalejoin_core", _GATES, ("none", "outer", "total")),
    "handshake": ThreadForm("handshake_core", _CHAIN, ("none",), places=64),
    "cascade": ThreadForm("handshake_core", _CHAIN, ("none",), block=4, threshold=4, places=64),
    "low-latency-handshake": ThreadForm("low_latency_core", _CHAIN, ("none",), places=64)}


class ThreadSession(BatchSession):
    """A query on ``cores`` threads of an architecture, which run until the session is closed.

    The threads decide all that interval tests do; what is left of the condition is evaluated here. Raises `OrderError`
    for an order that the architecture does not keep.

    Attributes:
        accepted: Where it is a list, it gets the times in nanoseconds at which tuples were accepted, an array for each
            batch, and ``left`` those of results. ``pace`` is the least number of nanoseconds between two tuples.
    """

    def __init__(self, query: Query, architecture: str, cores: int, tuning: Tuning = DEFAULTS) -> None:
        super().__init__(query, tuning)
        of, order = ARCHITECTURES[architecture], query.order
        if order.kind not in of.orders:
            raise OrderError(f"engine='threads' with architecture={architecture!r} keeps the order "
                             f"{' or '.join(of.orders)}, not {order}; use architecture='splitjoin', or another engine")
        self._name, self._of, self._cores = architecture, of, cores
        self._plan = make_plan(query.predicate)
        self._coder, self._condition = Coder(self._plan), PairTest(query.predicate)
        self._tests, self._junctions = conditions(self._plan)
        self._columns = {side: Store(tuning.slack) for side in SIDES}
        self._timeline, self._team, self._compared = Timeline(query, tuning.slack), Team(1), 0
        self._every = {"none": 0, "outer": order.n, "inner": 1, "total": 1}[order.kind]
        self._noted = [0, perf_counter_ns()]
        self.accepted: list[Rows] | None = None
        self.left: list[Rows] = []
        self.pace = 0
        self._room = np.empty(of.items * _ITEM_WORDS, np.int64)
        self._loops = loops(package=__package__)
        extents = [query.window(side) for side in SIDES]
        numbers = [cores, len(self._tests), self._every, self._slice, order.kind == "total",
                   of.block, of.threshold, of.way,
                   *(_NO_LIMIT if one.rows is None else min(one.rows, _NO_LIMIT) for one in extents),
                   *(_signed(min(one.length or 0, 2**64 - 1)) for one in extents),
                   *(one.length is not None for one in extents), of.places, of.results]
        self._address = self._loops["open_session"](np.array(numbers, np.int64), self._junctions)
        if not self._address:
            raise CapacityError(f"there is no memory for the queues of {cores} threads; use fewer")
        running: list[Any] = []
        self._end = weakref.finalize(self, _stop, self._loops, self._address, running, self._junctions)
        for core in range(cores):
            one = thread(_core, (self._loops[of.loop], self._address, core, cores), name=f"{architecture} {core}")
            try:
                one.start()
            except RuntimeError as error:
                self._end()
                raise CapacityError(f"only {core} of {cores} threads could be started ({error}); use fewer") from error
            running.append(one)

    @property
    def _ends(self) -> dict[str, int]:
        return self._timeline.ends

    @property
    def _candidates(self) -> int:
        return self._compared

    def plan(self) -> str:
        return f"{self._name} with {self._cores} threads, all pairs"

    def settle(self) -> Items:
        """As `Session.settle`. Raises `UnsupportedError` in a chain, where pairs wait until their tuples meet."""
        if not self._of.is_immediate:
            raise UnsupportedError(f"engine='threads' with architecture={self._name!r} gives a pair when its tuples "
                                   f"meet, which later tuples bring about; flush the session")
        return super().settle()

    def flush(self) -> Items:
        if not self._of.is_immediate and not self._flushed:
            self._check_usable()
            end = np.zeros((1, _HEAD + 3 * len(self._tests)), np.int64)
            end[0, 0] = _END
            self._broken = True  # until all is there, as in `push`
            try:
                items = self._verified(self._fed(end, waits=True))
            except MemoryError as error:
                raise too_large(self._matches) from error
            self._broken = False
            self._matches += len(items)
            self._items.append(items)
        return super().flush()

    def precision(self, n: int) -> None:
        super().precision(n)  # all that was pushed is done
        self._loops["adjust"](self._address, self._slice)

    def waiting(self) -> float:
        """The share of the cores' time in which the merger had not taken their results."""
        before, self._noted = self._noted, [self._loops["adjust"](self._address, 0), perf_counter_ns()]
        waited, passed = (now - then for now, then in zip(self._noted, before, strict=True))
        return min(1.0, waited / max(1, passed * self._cores))

    def close(self) -> None:
        super().close()
        self._end()

    def _join_batch(self, part: Arrivals) -> Joined:
        first, n = dict(self._timeline.ends), len(part)
        stream = part.stream if part.stream.flags.writeable else part.stream.copy()  # one type in compiled loops
        arrived = self._timeline.next(part, stream, self._team)
        run_jobs(self._team, *arrived.phases)
        self._timeline.trim()
        messages = np.zeros((n, _HEAD + 3 * len(self._tests)), np.int64)
        messages[:, 0] = part.stream
        messages[:, 3] = sum(first.values()) + np.arange(n)
        if part.ts is not None:
            messages[:, 2] = part.ts
        for side in SIDES:
            table, at = part.table(side), part.positions(side)
            codes, tests = self._coder.codes(side, table), [self._plan.tests[j] for j in self._tests]
            words = [*(codes.keys[test.slot(side)] for test in tests),
                     *(codes.lows[j] for j in self._tests), *(codes.highs[j] for j in self._tests)]
            messages[at, 1] = first[side] + np.arange(len(at))
            for place, of in enumerate(words, _HEAD):
                messages[at, place] = of.view(np.int64)
            if self._plan.residual is not None:
                self._columns[side].append(column_arrays(self._query.predicate, side, table), len(at))
            messages[at, 4] = start = arrived.windows[side][0]
            if len(start) and self._of.is_immediate:
                self._gone(other_side(side), int(start[0]))
        pairs = int(arrived.extents[::2].sum())
        self._compared += pairs
        if self._every:
            self._open_probes = (self._open_probes + np.bincount(part.stream, minlength=2)) % self._every
        items = self._verified(self._fed(messages, waits=self._of.is_immediate))
        return Joined(items, int(np.count_nonzero(items["kind"] == PAIR)), pairs)

    def _gone(self, side: Side, row: int) -> None:
        """No pair with a tuple of stream ``side`` before ``row`` comes any more."""
        store = self._columns[side]
        store.trim(min(row, store.end))

    def _fed(self, messages: Rows, *, waits: bool) -> Items:
        """The items of the threads while they are fed with ``messages``; with ``waits`` all of these."""
        n = len(messages)
        accepted = np.empty(n if self.accepted is not None else 0, np.int64)
        progress, found = np.zeros(3, np.int64), list[tuple[Items, Rows]]()
        flat = messages.reshape(-1)
        while progress[0] < n:
            words = self._loops["feed"](self._address, flat, self.pace, accepted, progress, self._room)
            found.append(self._taken(words))
        if self.accepted is not None:
            self.accepted.append(accepted)
        progress[0] = 0
        while True:
            words = self._loops["collect"](self._address, int(waits), progress, self._room)
            found.append(self._taken(words))
            if progress[0] if waits else words + _ITEM_WORDS <= len(self._room):
                break
        if self.accepted is not None:
            self.left.append(np.concatenate([times for _, times in found]))
        self._expired = dict(zip(SIDES, progress[1:].tolist(), strict=True))
        return joined_items([items for items, _ in found])

    def _taken(self, words: int) -> tuple[Items, Rows]:
        """The items in the first ``words`` of those written, and the times at which they left."""
        if words < 0:
            raise MemoryError
        of = self._room[:words].reshape(-1, _ITEM_WORDS)
        items = np.empty(len(of), ITEM)
        for name, values in zip(("kind", "side", "r", "s"), of.T, strict=False):
            items[name] = values
        return items, of[:, 4].copy()

    def _verified(self, items: Items) -> Items:
        """Those of ``items`` for which the rest of the condition holds."""
        if self._plan.residual is not None:
            pair = items["kind"] == PAIR
            stores = {side: self._columns[side] for side in SIDES}
            r, s = (items[side][pair] - stores[side].base for side in SIDES)
            pair[pair] = ~self._condition.true("r", stores["r"].arrays, r, stores["s"].arrays, s, self._plan.residual)
            items = items[~pair]
            if self.accepted is not None:
                self.left[-1] = self.left[-1][~pair]
            if not self._of.is_immediate:
                for side, row in self._expired.items():
                    self._gone(side, row)
        return items


def _signed(length: int) -> int:
    return length - 2**64 if length >= 2**63 else length


def _core(loop: Callable[..., int], address: int, core: int, cores: int) -> None:
    """A core, which has a processor of its own where there is one more for the session's first thread."""
    if cores < processors() and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[core]})
    loop(address, core)


def _stop(found: Any, address: int, running: list[Any], kept: Rows) -> None:
    """End the threads of a session, and release it. ``kept``: what they read."""
    found["stop_session"](address)
    for one in running:
        one.join()
    found["close_session"](address)
