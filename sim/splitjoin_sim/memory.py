"""External memory of a simulated circuit: latency, rate, stalls, answers out of order, and errors, by a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from splitjoin.base.errors import DeviceError
from splitjoin.circuit.parameters import within


@dataclass(frozen=True, kw_only=True)
class SimulatedMemory:
    """A memory behind an AXI4 slave. All of its choices at random follow from the device's seed.

    Attributes:
        latency: Cycles from a request to its answer, if no other one is under way, from 1.
        interval: Cycles of the memory for each line, from 1.
        reorder: Up to so many further cycles for each request, so that answers of several ids, and reads and writes,
            overtake each other; 0 for none.
        stall: Share of cycles, from 0 to less than 1, in which a channel takes nothing, for each by itself.
        fails: Number of the request that is answered by SLVERR, from 0 on; None for none.
    """

    latency: int = 45
    interval: int = 1
    reorder: int = 0
    stall: float = 0.0
    fails: int | None = None

    def __post_init__(self) -> None:
        for name, low in (("latency", 1), ("interval", 1), ("reorder", 0)):
            if not within(getattr(self, name), low, 2**20):
                raise DeviceError(f"{name} of a simulated memory must be a number of cycles from {low} to {2**20}, not "
                                  f"{getattr(self, name)!r}")
        if isinstance(self.stall, bool) or not isinstance(self.stall, (int, float)) or not 0 <= self.stall < 1:
            raise DeviceError(f"stall of a simulated memory must be a share of cycles, from 0 to less than 1, not "
                              f"{self.stall!r}")
        if self.fails is not None and not within(self.fails, 0, 2**62):
            raise DeviceError(f"fails of a simulated memory must be the number of a request, or None, not "
                              f"{self.fails!r}")

    @property
    def longest(self) -> int:
        """Most cycles from a request that nothing is ahead of to its answer, but for stalls."""
        return self.latency + self.interval + self.reorder


#: The memory if none is given: DDR4 behind the AXI port of a Zynq, as it is assumed, at 250 MHz.
EXTERNAL = SimulatedMemory()


class MemoryModel:
    """The memory as a process of Amaranth's simulator, at the AXI4 master ``bus`` of a circuit."""

    def __init__(self, bus: Any, memory: SimulatedMemory, seed: int):
        self._bus, self._memory, self._random = bus, memory, random.Random(seed)
        self._lines: dict[int, int] = {}
        self._free = 0  # cycle from which on the memory can serve another request
        self._served = 0
        #: Cycle in which it is done, order, request: a line, an id, and of a write the data and strobes.
        self._under_way: list[tuple[int, int, tuple[int, int, int | None, int]]] = []
        self._answers: dict[str, list[tuple[int, ...]]] = {"r": [], "b": []}

    async def play(self, ctx: Any) -> None:
        """The process."""
        bus, addresses, data, now = self._bus, [], [], 0
        offered: dict[str, tuple[int, ...] | None] = {"r": None, "b": None}
        ready = [False] * 3
        while True:
            before, ready = ready, [self._random.random() >= self._memory.stall for _ in range(3)]
            for name, was, is_ready in zip(("ar", "aw", "w"), before, ready, strict=True):
                if was != is_ready:
                    ctx.set(getattr(bus, name).ready, is_ready)
            _, _, *sampled = await ctx.tick().sample(
                bus.ar.valid, bus.ar.payload, bus.aw.valid, bus.aw.payload, bus.w.valid, bus.w.payload, bus.r.ready,
                bus.b.ready)
            reads, read, writes, write, sends, sent, *taken = sampled
            now += 1
            if reads and ready[0]:
                self._begin(now, (read.line, read.id, None, 0))
            if writes and ready[1]:
                addresses.append((write.line, write.id))
            if sends and ready[2]:
                data.append((sent.data, sent.strb))
            if addresses and data:
                (line, number), (word, strobes) = addresses.pop(0), data.pop(0)
                self._begin(now, (line, number, word, strobes))
            self._finish(now)
            for name, was_taken in zip("rb", taken, strict=True):
                if was_taken:
                    had, offered[name] = offered[name] is not None, None
                else:
                    had = offered[name] is not None
                queue = self._answers[name]
                if offered[name] is None and queue and self._random.random() >= self._memory.stall:
                    offered[name] = found = queue.pop(self._random.randrange(len(queue)) if self._memory.reorder else 0)
                    fields = ("id", "data", "resp") if name == "r" else ("id", "resp")
                    ctx.set(getattr(bus, name).payload, dict(zip(fields, found, strict=True)))
                if had != (offered[name] is not None):
                    ctx.set(getattr(bus, name).valid, offered[name] is not None)

    def _begin(self, now: int, request: tuple[int, int, int | None, int]) -> None:
        self._free = max(self._free, now) + self._memory.interval
        done = max(now + self._memory.latency, self._free) + self._random.randint(0, self._memory.reorder)
        self._under_way.append((done, self._served, request))
        self._served += 1

    def _finish(self, now: int) -> None:
        due = sorted(one for one in self._under_way if one[0] <= now)
        if due:
            self._under_way = [one for one in self._under_way if one[0] > now]
        for _, number, (line, of, word, strobes) in due:
            resp = 2 if number == self._memory.fails else 0
            old = self._lines.get(line)
            if old is None:  # what memory holds after power-up
                old = self._lines[line] = self._random.getrandbits(len(self._bus.r.payload.data))
            if word is None:
                self._answers["r"].append((of, old if resp == 0 else 0, resp))
                continue
            if resp == 0:
                mask = sum(0xFF << 8 * n for n in range(len(self._bus.w.payload.strb)) if strobes >> n & 1)
                self._lines[line] = old & ~mask | word & mask
            self._answers["b"].append((of, resp))
