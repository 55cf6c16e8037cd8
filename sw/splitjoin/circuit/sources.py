"""The sources of a circuit with a gate: which source hands over which tuple, and what each promises."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from splitjoin.base.errors import DeviceError
from splitjoin.engines.arrival import Arrivals

from .encode import Words, pack
from .wire import Configuration, Op

#: The source (n,) of each record.
Sources = npt.NDArray[np.intp]


@dataclass
class SourceQueues:
    """Hands records to several sources, so that a circuit's gate merges them in arrival order again.

    A source promises by a TICK that none of its records comes before an event time. So the gate can pass on what is
    earlier; tuples of the last event time wait here, as further ones of that time may come.
    """

    config: Configuration
    _held: Words = field(init=False)
    _of: Sources = field(init=False)
    _last: tuple[int, int] | None = None  # event time and stream of the last tuple
    _turn: int = 0  # its source

    def __post_init__(self) -> None:
        self._held, self._of = self._none()

    def _none(self) -> tuple[Words, Sources]:
        return np.empty((0, self.config.input_record.words), np.uint32), np.empty(0, np.intp)

    def spread(self, arrivals: Arrivals) -> Sources:
        """The sources in turn, tuples of one stream and event time from one: the gate orders these by their sources."""
        assert arrivals.ts is not None
        n = len(arrivals)
        if not n:
            return self._none()[1]
        ts, stream = arrivals.ts, arrivals.stream
        begins = np.ones(n, bool)
        begins[1:] = (ts[1:] != ts[:-1]) | (stream[1:] != stream[:-1])
        begins[0] = self._last is not None and self._last != (int(ts[0]), int(stream[0]))
        found: Sources = ((np.cumsum(begins) + self._turn) % self.config.sources).astype(np.intp)
        return found

    def push(self, arrivals: Arrivals, records: Words, sources: Sources) -> tuple[Words, Sources]:
        """The records to hand over now, in arrival order, and their sources; ``sources`` (n,) has those of arrivals.

        Raises `DeviceError` if there is no such source, or if the sources of tuples of one stream and event time fall,
        by which the gate would give them another order.
        """
        assert arrivals.ts is not None
        if len(arrivals) == 0:
            return self._none()
        if sources.shape != (len(arrivals),) or sources.min() < 0 or sources.max() >= self.config.sources:
            raise DeviceError(f"sources must be a number from 0 to {self.config.sources - 1} for each of the "
                              f"{len(arrivals)} tuples")
        first_ts, first_stream = self._last or (int(arrivals.ts[0]), -1)
        ts, stream, of = (np.concatenate([np.array([first], np.int64), values]) for first, values in (
            (first_ts, arrivals.ts), (first_stream, arrivals.stream), (self._turn, sources)))
        same = (ts[1:] == ts[:-1]) & (stream[1:] == stream[:-1])
        if (same & (of[1:] < of[:-1])).any():
            raise DeviceError("tuples of one stream and event time must come from sources that do not fall, as the "
                              "gate orders them by their sources")
        self._last, self._turn = (int(ts[-1]), int(stream[-1])), int(of[-1])
        records, of = np.concatenate([self._held, records]), np.concatenate([self._of, sources])
        # The times of what was held are one and the same, and not above the first one of these.
        last = np.concatenate([np.full(len(self._held), ts[0]), arrivals.ts]) == arrivals.ts[-1]
        self._held, self._of = records[last], of[last]
        return self._promised(records[~last], of[~last], int(ts[-1]))

    def advance(self, now: int) -> tuple[Words, Sources]:
        """The records to push now, as no tuple before event time ``now`` comes any more."""
        if self._last is not None and now <= self._last[0]:
            return self._none()
        self._last = (now, -1)
        return self._promised(*self.rest(), now)

    def rest(self) -> tuple[Words, Sources]:
        """The records held back."""
        (self._held, self._of), found = self._none(), (self._held, self._of)
        return found

    def everywhere(self, record: Words) -> tuple[Words, Sources]:
        """The records held back, and behind them ``record`` (1, words) from each source."""
        records, of = self.rest()
        return (np.concatenate([records, np.repeat(record, self.config.sources, axis=0)]),
                np.concatenate([of, np.arange(self.config.sources)]))

    def _promised(self, records: Words, of: Sources, now: int) -> tuple[Words, Sources]:
        """``records``, and from each source the promise that it has none before ``now``."""
        ticks = pack(self.config.input_record, {"op": Op.TICK, "ts": now % 2**64}, self.config.sources)
        return np.concatenate([records, ticks]), np.concatenate([of, np.arange(self.config.sources)])
