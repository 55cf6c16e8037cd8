"""The way of a stream through a device: ready tuples in, result rows out, and what has to be kept for that."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..arrival import Arrivals
from ..device.api import PAIR, Device, Items
from ..lang.query import Query
from ..lang.schema import SIDES, Side
from ..output import OutputColumn, output_schema
from .outbox import Outbox
from .retained import Retained
from .runner import Runner
from .stretches import head_and_tail, interleave, seen_by_r

__all__ = ["Core", "Resumed"]

#: Arrivals handed to a device at once: few at first, more where their results are few.
_FEWEST, _MOST = 256, 1 << 16
#: Results of one stretch that are aimed at, unless the limit is lower, and result rows in one batch.
_RESULTS = 1 << 18
_ROWS = 1 << 16


@dataclass(frozen=True)
class Resumed:
    """One stream as another core had it: its retained rows from row id ``first`` on, their event times, how many S
    precede each R (for R only), and the row id before which all probes' results were given out.
    """

    first: int
    table: pa.Table
    ts: npt.NDArray[np.int64] | None
    seen: npt.NDArray[np.int64] | None
    settled: int


class Core:
    """Runs ``query`` on ``device`` and puts result rows of ``columns`` into ``outbox``. Not safe to use from threads.

    Arrivals hold the columns of ``schemas``. The state between two calls, without the device session, is all that is
    needed to go on in another one: `restart`, `resume`.
    """

    def __init__(self, query: Query, device: Device, columns: Sequence[OutputColumn], schemas: Mapping[Side, pa.Schema],
                 outbox: Outbox, results: int | None):
        self._query, self.device, self._columns, self._schemas = query, device, columns, schemas
        self._out_schema = output_schema(columns)
        self._names = {side: list(dict.fromkeys(c.source for c in columns if c.side == side)) for side in SIDES}
        self._outbox = outbox
        self._results = min(results or _RESULTS, _RESULTS)
        self._stretch = _FEWEST
        self.inbox: deque[Arrivals] = deque()
        self.retained = {side: Retained(schemas[side], query.window(side)) for side in SIDES}
        #: After each stretch: the rows (R's, S's) that came by then, and the first ones that later probes need.
        self._checkpoints: deque[tuple[tuple[int, int], tuple[int, int]]] = deque()
        self._now: int | None = None
        self.restarts = 0
        self.ended = False
        self._runner: Runner | None = None

    @property
    def runner(self) -> Runner:
        """The device session. The device is opened when it is first needed."""
        if self._runner is None:
            self._runner = Runner(self._query, self.device)
        return self._runner

    @property
    def now(self) -> int | None:
        """The event time below which nothing will come any more, in ticks."""
        return self._now

    def run(self, full: Callable[[], bool]) -> None:
        """Work on the inbox until it is empty or ``full()``.

        When the device fails, the stretch that it failed on is still in the inbox.
        """
        while self.inbox and not full():
            stretch, rest = head_and_tail(self.inbox[0], self._stretch)
            if not self.runner.fits(stretch):
                self.restart(self.device)
            items = self.runner.push(stretch)
            self._keep(stretch)
            if rest is None:
                self.inbox.popleft()
            else:
                self.inbox[0] = rest
            found = self._emit(items)
            self._trim()
            # As many arrivals as brought the results aimed at, but growing slowly, as results may come in bursts.
            fitting = len(stretch) * self._results // max(found, 1)
            self._stretch = min(max(fitting, _FEWEST), 2 * self._stretch, _MOST)

    def look(self) -> None:
        """Fetch what a device found by itself since the last call."""
        if self.runner.lags and not self.ended:
            self._emit(self.runner.poll())
            self._trim()

    def end(self) -> None:
        """End the input, after all of the inbox."""
        if not self.ended:
            self._emit(self.runner.flush())
            self.ended = True
            self._checkpoints.clear()
            for kept in self.retained.values():
                kept.trim(kept.end)
            self._outbox.end()

    def idle(self, now: int | None) -> None:
        """Let go of what is out of the windows at event time ``now``, below which nothing will come any more."""
        if now is not None and not self.inbox and (self._now is None or now > self._now):
            self._now = now
            self._checkpoint()
            self._trim()

    def restart(self, device: Device) -> None:
        """Go on in a fresh session of ``device``, in which the windows are replayed."""
        fresh = self._replayed(device, self.runner.settled)
        self.close()
        self._runner, self.device = fresh, device
        self.restarts += 1

    def resume(self, streams: Mapping[Side, Resumed], inbox: Arrivals, now: int | None, ended: bool,
               restarts: int) -> None:
        """Go on where another core was, before this one's device was opened."""
        assert self._runner is None
        for side, was in streams.items():
            self.retained[side] = Retained(self._schemas[side], self._query.window(side), was.first)
            self.retained[side].append(was.table, was.ts, was.seen)
        if len(inbox):
            self.inbox.append(inbox)
        self._now, self.ended, self.restarts = now, ended, restarts
        self._checkpoint()
        self._runner = self._replayed(self.device, (streams["r"].settled, streams["s"].settled))
        self._trim()

    def close(self) -> None:
        """Close the device session."""
        if self._runner is not None:
            self._runner.close()

    def _replayed(self, device: Device, settled: tuple[int, int]) -> Runner:
        """A fresh session of ``device`` that has seen all that is retained."""
        runner = Runner(self._query, device, (self.retained["r"].base, self.retained["s"].base), settled)
        try:
            if not self.ended:
                self._replay(runner)
        except BaseException:
            runner.close()
            raise
        return runner

    def _replay(self, runner: Runner) -> None:
        r, s = self.retained["r"], self.retained["s"]
        ts = None if self._query.time is None else (r.ts.values, s.ts.values)
        rest: Arrivals | None = interleave(r.table(), s.table(), ts, r.seen.values, s.base)
        while rest is not None and len(rest):
            stretch, rest = head_and_tail(rest, self._stretch)
            self._emit(runner.push(stretch))

    def _keep(self, stretch: Arrivals) -> None:
        s = self.retained["s"].end
        for number, side in enumerate(SIDES):
            ts = None if stretch.ts is None else stretch.ts[stretch.stream == number]
            self.retained[side].append(stretch.table(side), ts, seen_by_r(stretch.stream, s) if side == "r" else None)
        if stretch.ts is not None and len(stretch):
            self._now = int(stretch.ts[-1])
        self._checkpoint()

    def _checkpoint(self) -> None:
        kept = [self.retained[side] for side in SIDES]
        if self._checkpoints and self._checkpoints[-1][0] == (kept[0].end, kept[1].end):
            self._checkpoints.pop()  # time went on, and nothing came: heartbeats must not pile up
        self._checkpoints.append(((kept[0].end, kept[1].end), (kept[0].needed(self._now), kept[1].needed(self._now))))

    def _trim(self) -> None:
        """Let go of rows that only probes needed whose items have all been given out."""
        settled, first = self.runner.settled, None
        while self._checkpoints and all(a <= b for a, b in zip(self._checkpoints[0][0], settled, strict=True)):
            first = self._checkpoints.popleft()[1]
        if first is not None:
            for side, row in zip(SIDES, first, strict=True):
                self.retained[side].trim(row)

    def _emit(self, items: Items) -> int:
        """Gather the rows of ``items`` into the outbox; how many there are."""
        if not len(items):
            return 0
        at = np.flatnonzero(items["kind"] == PAIR)
        if len(at) <= _ROWS:
            self._outbox.put(self._gather(items[at] if len(at) < len(items) else items), items)
            return len(at)
        done = 0
        for start in range(0, len(at), _ROWS):
            end = len(items) if start + _ROWS >= len(at) else int(at[start + _ROWS])
            self._outbox.put(self._gather(items[at[start:start + _ROWS]]), items[done:end])
            done = end
        return len(at)

    def _gather(self, found: Items) -> pa.RecordBatch:
        arrays: dict[tuple[Side, str], pa.Array] = {}
        for side in SIDES:
            rows: npt.NDArray[np.int64] = np.ascontiguousarray(found[side])
            names = self._names[side]
            arrays |= zip([(side, n) for n in names], self.retained[side].gather(names, rows), strict=True)
        return pa.RecordBatch.from_arrays([arrays[c.side, c.source] for c in self._columns], schema=self._out_schema)
