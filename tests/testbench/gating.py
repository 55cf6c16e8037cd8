"""Golden model of the gate, and the test body that compares the circuit with it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from splitjoin.circuit.wire import Configuration, Op

from .models import Operation, packed_operation
from .pauses import Stalls
from .testbench import StreamSink, Testbench

__all__ = ["GATE", "GateModel", "gate", "merged", "random_sources", "record_of"]

#: A record's place in arrival order: event time, stream, source, position in the source.
Place = tuple[int, int, int, int]

#: Small records with times that wrap often; key 0 tells the records of a test apart.
GATE = Configuration(keys_r=(16,), keys_s=(16,), tests=((0, 0),), tree=0, time_bits=8)

#: Cycles to wait for a record that must not arrive.
_QUIET = 24


@dataclass
class GateModel:
    """Golden model of the gate: the records that may leave, by the definition (semantics, section 1).

    A tuple is ready when every other open source has delivered a record that follows it. Heartbeats are ordered like
    tuples and leave in that order. Sources are not open until `add`; event times do not wrap here.

    A source that is added begins after all records delivered before. ``trusting``: that counts as its heartbeat.
    """

    trusting: bool = False
    _last: dict[int, Place | None] = field(default_factory=dict)  # open source → its last record
    _waiting: dict[Place, Operation] = field(default_factory=dict)
    _newest: Place | None = None
    _position: int = 0
    _closed: set[int] = field(default_factory=set)

    def add(self, source: int) -> None:
        """Add ``source``: from now on it holds back records that its own could precede."""
        self._last[source] = None
        if self.trusting and self._newest is not None:
            ts, stream, newest, position = self._newest
            self._last[source] = (ts, stream, newest, position + 1)

    def remove(self, source: int) -> None:
        """Remove ``source``: it delivers no more records until it is added again."""
        self._last.pop(source, None)
        self._closed.discard(source)

    def deliver(self, source: int, op: Operation) -> list[Operation]:
        """Accept the next record of ``source``; returns the records that leave now."""
        assert source in self._last, f"source {source} is not open"
        if op.op == Op.FLUSH:
            del self._last[source]
            self._closed.add(source)
        else:
            place = (op.ts, op.stream, source, self._position)
            before = self._last[source]
            assert before is None or before < place, f"source {source} goes back from {before} to {place}"
            self._last[source] = place
            self._newest = max(place, self._newest or place)
            self._waiting[place] = op
            self._position += 1
        return self.ready()

    def waiting(self, source: int) -> int:
        """The number of records of ``source`` that have not left."""
        return sum(place[2] == source for place in self._waiting)

    def ready(self) -> list[Operation]:
        """The records that leave now. When all sources are closed, a FLUSH leaves and opens them again."""
        out = []
        for place in sorted(self._waiting):
            others = [last for source, last in self._last.items() if source != place[2]]
            if not all(last is not None and last > place for last in others):
                break
            out.append(self._waiting.pop(place))
        if not self._last and self._closed:
            out.append(Operation(Op.FLUSH))
            self._last = dict.fromkeys(self._closed)
            self._closed = set()
        return out


def merged(sources: Sequence[Sequence[Operation]]) -> list[Operation]:
    """The records that leave when all ``sources`` are open from the start and have delivered everything."""
    model = GateModel()
    for n in range(len(sources)):
        model.add(n)
    return [left for n, source in enumerate(sources) for op in source for left in model.deliver(n, op)]


async def gate(tb: Testbench, config: Configuration, sources: Sequence[Sequence[Operation]], stalls: Stalls, *,
               name: str = "") -> StreamSink:
    """A gate with all sources open from the start: exactly what is ready leaves, in arrival order. Returns the sink."""
    wanted = [packed_operation(config, op) for op in merged(sources)]
    tb.set(f"{name}active", 2 ** len(sources) - 1)
    for n, source in enumerate(sources):
        tb.source(f"{name}i__{n}", [packed_operation(config, op) for op in source], stalls.source(n))
    refused = tb.watch(f"{name}refused")
    sink = tb.sink(f"{name}o", stalls.sink())
    await tb.run(lambda: len(sink.items) >= len(wanted), limit=1000 + 60 * sum(map(len, sources)))
    await tb.steps(_QUIET)
    for at, (a, b) in enumerate(zip(sink.items, wanted, strict=False)):
        assert a == b, f"record {at} is {record_of(config, a)}, not {record_of(config, b)}"
    assert len(sink.items) == len(wanted), f"{len(sink.items)} records left, not {len(wanted)}"
    assert refused() == 0, f"{refused()} tuples were refused"
    return sink


def record_of(config: Configuration, payload: int) -> dict[str, int]:
    """A packed record's fields."""
    return {name: payload >> at & (1 << width) - 1
            for name, (at, width) in config.input_record.offsets().items()}


def random_sources(rng: random.Random, count: int, records: int, *, start: int = 0) -> list[list[Operation]]:
    """``count`` sources of R, of S, or of both, with ties and heartbeats; most end with a FLUSH, or else all do.

    Without a FLUSH a source stays open and holds back the others. Steps in time are small, so that the records in the
    gate span no more than a fraction of the range of `GATE`'s counter.
    """
    out = []
    leave_open = rng.random() < 0.3
    serial = 0
    for _ in range(count):
        streams = rng.choice([(0,), (1,), (0, 1)])
        now, stream = start + rng.randrange(4), streams[0]
        steps = rng.choice([(0, 0, 0, 1), (0, 1, 2, 3)])
        source = []
        for _ in range(rng.choice([0, 1, records, records])):
            step = rng.choice(steps)
            now += step
            # At one event time R comes before S.
            stream = rng.choice([s for s in streams if step or s >= stream])
            op = Op.TICK if rng.random() < 0.2 else Op.TUPLE
            serial += 1
            source.append(Operation(op, stream, now, (serial,), ((0, 0),)))
        if not (leave_open and rng.random() < 0.5):
            source.append(Operation(Op.FLUSH))
        out.append(source)
    return out
