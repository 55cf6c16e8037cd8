"""Tiered execution: a query starts by NumPy, and moves to its compiled loops between two batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from splitjoin.base import threads
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES

from ..arrival import Arrivals
from ..device import PAIR, Items, Session, joined_items
from ..tuning import DEFAULTS, Tuning
from .compilation import Compilation
from .numpy_session import NumpySession
from .session import BatchSession

__all__ = ["TieredSession"]

#: Arrivals of a batch by NumPy at most; the seconds that it may take, so that a change is soon possible.
_MOST = 1 << 16
_SECONDS = 0.2
#: Seconds that NumPy has taken, and would take for the rest of a push, from which on this process compiles the loops
#: itself: the one that compiles them has a low priority, and may get no processor where others are busy.
_PATIENCE = 5.0


class TieredSession(Session):
    """A query by NumPy until ``compilation`` has its loops compiled; from then on in the session of ``compiled``.

    A process that has not loaded compiled loops yet does so when NumPy would take longer than loading. Loops that are
    not in the cache are compiled from the first batch on, or when NumPy takes as long as the tuning says.

    The new session first joins all arrivals again that later tuples may see, and drops their results. So it need not
    know how the other one stores tuples, and row ids are counted on.
    """

    def __init__(self, query: Query, compiled: Callable[[], BatchSession], compilation: Compilation,
                 tuning: Tuning = DEFAULTS):
        self._compiled, self._compilation = compiled, compilation
        self._loading, self._compiling = tuning.loading_seconds, tuning.compiling_seconds
        self._first = NumpySession(query, tuning)
        self._second: BatchSession | None = None
        self._query = query
        self._kept: deque[Arrivals] = deque()  # what later tuples may see, and the rest of its oldest batch
        self._before = dict.fromkeys(SIDES, 0)  # the tuples before `_kept`
        self._replayed: dict[str, int] = {}  # counters of the second session that the first one has counted, too
        self._size = tuning.first_batch
        self._joined, self._spent = 0, 0.0  # arrivals joined by NumPy, and the seconds that it took

    def push(self, arrivals: Arrivals) -> None:
        """Take the next arrivals, in order. Raises as `BatchSession.push`."""
        rest: Arrivals | None = arrivals
        while rest is not None:
            if self._second is None and self._is_compiled(rest) and self._worth_loading(len(rest)):
                self._move()
            if self._second is not None:
                self._second.push(rest)
                return
            part, rest = rest.split(self._size)
            began = threads.monotonic()
            self._first.push(part)
            took = threads.monotonic() - began
            self._joined, self._spent = self._joined + len(part), self._spent + took
            self._size = min(2 * self._size, _MOST) if 2 * took < _SECONDS else max(1, int(
                self._size * min(1.0, _SECONDS / took)))
            self._keep(part)

    def poll(self) -> Items:
        """The result items since the last call. Raises `CapacityError` if they do not fit into memory."""
        items = self._first.poll()
        if self._second is None:
            return items
        found = self._numbered(self._second.poll())
        return joined_items([items, found]) if len(items) else found

    def settle(self) -> Items:
        """As `poll`, since a push returns after all its results are there."""
        return self.poll()

    def flush(self) -> Items:
        """Close each open group with a last star, R's before S's, and return the items that were not polled yet."""
        if self._second is None:
            return self._first.flush()
        return np.concatenate([self._first.poll(), self._numbered(self._second.flush())])

    def counters(self) -> dict[str, int]:
        """Those of `BatchSession.counters`, of both tiers together."""
        found = self._first.counters()
        if self._second is not None:
            for name, value in self._second.counters().items():
                found[name] += value - self._replayed[name]
        return found

    def plan(self) -> str:
        """The engine that runs at present, in words."""
        if self._second is not None:
            return self._second.plan()
        if self._compilation.is_known:
            return f"{self._first.plan()}, as that is done before compiled loops are loaded"
        return f"{self._first.plan()}, until the loops of the query are compiled"

    def close(self) -> None:
        """Stop the worker threads, after they have finished."""
        self._first.close()
        if self._second is not None:
            self._second.close()

    def _keep(self, part: Arrivals) -> None:
        """Keep ``part``, and drop the oldest arrivals that no later tuple sees."""
        if len(part):
            self._kept.append(part)
        needed = self._first.needed
        while self._kept:
            ends = {side: self._before[side] + len(self._kept[0].table(side)) for side in SIDES}
            if any(ends[side] > needed[side] for side in SIDES):
                return
            self._before = ends
            self._kept.popleft()

    def _worth_loading(self, coming: int) -> bool:
        """True if compiled loops are loaded, or NumPy takes longer than loading, as far as that is known before the
        next ``coming`` arrivals.
        """
        return self._compilation.is_loaded or self._takes(self._loading, coming)

    def _is_compiled(self, rest: Arrivals) -> bool:
        """True if the loops are compiled; has them compiled if that is due."""
        pays = not self._compiling or self._compilation.is_known or self._takes(self._compiling, len(rest))
        return (pays and self._compilation.is_done(rest)) or (
            self._spent > _PATIENCE and self._spent / self._joined * len(rest) > _PATIENCE)

    def _takes(self, seconds: float, coming: int) -> bool:
        """True if NumPy takes longer than so many ``seconds``, with the next ``coming`` arrivals."""
        return bool(self._joined) and self._spent * (1 + coming / self._joined) > seconds

    def _move(self) -> None:
        """Go on in a compiled session."""
        made = self._compiled()
        for part in self._kept:
            made.push(part)
            made.poll()
        made.open_probes[:], made.last_time = self._first.open_probes, self._first.last_time
        self._replayed = made.counters()
        self._kept.clear()
        self._first.forget()
        self._second = made

    def _numbered(self, items: Items) -> Items:
        """``items`` of the second session with the row ids of the whole."""
        for number, side in enumerate(SIDES):
            if self._before[side]:
                # A last star may close probes that are all before: the second session has no number for its tuple.
                named = (items["kind"] == PAIR) | (items["side"] == number)
                items[side][named] += self._before[side]
        return items
