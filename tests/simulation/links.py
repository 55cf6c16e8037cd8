"""Links beneath the daemon: frames that are lost, doubled, overtaken or damaged, plugs pulled, and boards reset."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from splitjoin.base.errors import DeviceLost
from splitjoin.circuit.encode import decode
from splitjoin.circuit.wire import Configuration, ItemKind, Op
from splitjoin.engines import registry
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import ITEM, Items, Session
from splitjoin.engines.golden import GoldenDevice, GoldenSession
from splitjoin.lang.query import Query
from splitjoin.link.frames import END, NAK, ReplyKind, RequestKind
from splitjoin.link.transport import ChannelLost, LinkTransport

from ..support.link_model import ITEM_BYTES, Line, ModelDevice
from ..support.packed_items import item_words
from ..support.scheduler import Scheduler
from .daemon import OneUser, joined, serve
from .sessions import tuples

#: The first bytes of frames with which a session may begin.
_OPENING = {"down": (bytes((RequestKind.OPEN,)),),
            "up": (bytes((ReplyKind.ABOUT,)), bytes((ReplyKind.ABOUT | NAK,)))}


@cache
def _configuration() -> Configuration:
    """That of a circuit for the query of `serve`."""
    made: Any = registry.device("uart:none", cores=1, capacity=64)
    found: Configuration = made.configuration(joined())
    return found


class _Line(Line):
    """A line in the time of a schedule, which also loses, doubles and exchanges frames."""

    def __init__(self, scheduler: Scheduler, board: _Board):
        chance, self._scheduler = scheduler.chance, scheduler
        self.may_lose, at, events = False, scheduler.now, list[tuple[float, str]]()
        for _ in range(chance.choice([0, 0, 1, 2])):
            at += chance.uniform(0.1, 20)
            events.append((at, "unplug"))
            if chance.random() < 0.3:
                self.may_lose = True
                events.append((at, "power"))
            at += chance.uniform(0.01, 5)
            events.append((at, "plug"))
        super().__init__(board, share=chance.choice([0, 0.0003, 0.002]), seed=chance.getrandbits(32),
                         byte_seconds=10 / chance.choice([115_200, 3e6]), latency=chance.choice([1e-4, 1e-3, 8e-3]),
                         events=tuple(events))
        self._now = scheduler.now
        self._held = {"down": b"", "up": b""}
        reply = board.reply
        board.reply = lambda: self._frames("up", reply())  # type: ignore[method-assign]  # this board alone is behind the line

    def now(self) -> float:
        """The time, at which all that was due has happened."""
        now = self._scheduler.monotonic()
        while times := [time for time in (self._up_free, *(at for at, _ in [*self._events][:1]),
                                          *(at for at, _ in [*self._down][:1])) if self._now < time < now]:
            self._pass(min(times))
        self._pass(now)
        return now

    def sleep(self, seconds: float) -> None:
        self._scheduler.sleep(seconds)
        self.now()

    def write(self, data: bytes) -> None:
        super().write(self._frames("down", data))

    def read(self, seconds: float) -> bytes:
        until = self.now() + max(seconds, self._byte)
        while not (self._up and self._up[0][0] <= self._now) and self._now < until and self._plugged:
            self.sleep(min(until, *(queue[0][0] for queue in (self._down, self._up) if queue), until) - self._now)
        return super().read(0)

    def _frames(self, way: str, data: bytes) -> bytes:
        """``data``, whose frames may be lost, come twice, or behind the next one of the same session."""
        made = bytearray()
        for frame in data.split(bytes((END,)))[:-1]:
            whole = frame + bytes((END,))
            if frame[:1] in _OPENING[way]:  # a serial line keeps its order: nothing older comes behind
                self._held[way] = b""
            if self._scheduler.buggify(f"{way} lost", 0.1):
                continue
            if not self._held[way] and self._scheduler.buggify(f"{way} overtaken", 0.1):
                self._held[way] = whole
                continue
            made += whole * (1 + self._scheduler.buggify(f"{way} twice", 0.1)) + self._held[way]
            self._held[way] = b""
        return bytes(made)


class _Board(ModelDevice):
    """A board whose circuit joins as the golden model: a record has the stream and the number of its tuple."""

    def __init__(self, record_bytes: int, abi: int, query: Query):
        self._query = query
        self._join: GoldenSession | None = None
        super().__init__(record_bytes, abi)

    def _begin(self, session: int, limit: int) -> None:
        self._join = GoldenDevice().open(self._query)
        super()._begin(session, limit)

    def _records(self, records: list[bytes]) -> None:
        assert self._join is not None
        for record in records:
            word = int.from_bytes(record[:4], "little")
            if word & 3 == Op.FLUSH:
                self._give(self._join.flush())
                end = np.zeros(1, ITEM)
                end["kind"] = ItemKind.END
                self._give(end)
                return
            side, number = word >> 2 & 1, word >> 3
            self._join.push(Arrivals(np.array([side], np.uint8), np.array([2 * number + side]),
                                     tuples("r", [] if side else [number]), tuples("s", [number] if side else [])))
            self._give(self._join.poll())

    def _give(self, items: Items) -> None:
        record = _configuration().item_record
        words = item_words(record, items).view(np.uint8).reshape(-1, 4 * record.words)
        self._items.extend(bytes(row)[:ITEM_BYTES] for row in words)


class _LinkedDevice(OneUser):
    """A device behind a line. ``errors``: what its sessions raised."""

    def __init__(self, scheduler: Scheduler, query: Query):
        super().__init__()
        self._scheduler, config = scheduler, _configuration()
        self.line = _Line(scheduler, _Board(-(-config.input_record.width // 8), config.abi_hash, query))
        self.errors: list[Exception] = []

    def made(self, query: Query) -> Session:
        """A session over the line."""
        return _LinkedSession(self)

    def transport(self) -> LinkTransport:
        """A new session of the link."""
        return LinkTransport(self.line.open, _configuration(), byte_seconds=self.line._byte, clock=self.line.now,
                             sleep=self.line.sleep, session=self._scheduler.chance.randint(1, 2**32 - 1))


class _LinkedSession(Session):
    def __init__(self, device: _LinkedDevice):
        self._device, self._found = device, list[Items]()
        try:
            self._transport = device.transport()
        except Exception as error:
            if not isinstance(error, ChannelLost):  # nobody waits for a plug to open a session
                device.errors.append(error)
            raise

    def push(self, arrivals: Arrivals) -> None:
        assert arrivals.ts is not None
        self._send((arrivals.stream.astype(np.uint32) << 2 | arrivals.ts.astype(np.uint32) // 2 << 3), until_end=False)

    def poll(self) -> Items:
        found, self._found = np.concatenate([np.empty(0, ITEM), *self._found]), []
        return decode(found[found["kind"] != ItemKind.END])

    def flush(self) -> Items:
        self._send(np.array([Op.FLUSH], np.uint32), until_end=True)
        return self.poll()

    def close(self) -> None:
        self._transport.close()

    def _send(self, first: np.ndarray, *, until_end: bool) -> None:
        records = np.zeros((len(first), _configuration().input_record.words), np.uint32)
        records[:, 0] = first
        try:
            self._found.append(self._transport.transfer(records, until_end=until_end))
        except Exception as error:
            self._device.errors.append(error)
            raise


def link(scheduler: Scheduler, folder: Path) -> None:
    """Clients get the rows of their tuples, in order, or an error where a board has lost its session."""
    devices: list[_LinkedDevice] = []

    def made(query: Query) -> _LinkedDevice:
        devices.append(_LinkedDevice(scheduler, query))
        return devices[-1]

    serve(scheduler, folder, made, most=12, is_prompt=False)
    for device in devices:
        for error in device.errors:
            assert isinstance(error, DeviceLost) and device.line.may_lose, error
