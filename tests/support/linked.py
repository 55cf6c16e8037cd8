"""A circuit behind UART pins in Amaranth's simulator, as the byte channel of the host's driver, with damaged bytes."""

from __future__ import annotations

import random
from collections import deque
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
from amaranth.sim import Simulator

from splitjoin.engines.arrival import Arrivals, arrivals
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema

#: Cycles of a bit, the fewest that the UART takes.
BIT = 4
_PERIOD = 1e-6


def small_join(tuples: int, seed: int, on: str = "abs(r.x - s.y) <= 2") -> tuple[Query, Arrivals]:
    """A join of ``tuples`` random tuples a side, with numbers from 0 to 11."""
    chance = random.Random(seed)
    r, s = (pa.table({name: pa.array([chance.randrange(12) for _ in range(tuples)], pa.int8())}) for name in "xy")
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=on, window="ROWS 8", order="total")
    return query, arrivals(query, r, s)


class PinChannel:
    """Sends and receives bytes on the pins of ``circuit``; of those of either direction, ``share`` are damaged."""

    def __init__(self, circuit, share: float = 0.0, seed: int = 0, waveforms: Path | None = None):
        self._circuit, self._share, self._chance = circuit, share, random.Random(seed)
        self._sending: deque[int] = deque()
        self._received = bytearray()
        self._cycle = 0
        self._simulator = Simulator(circuit)
        self._simulator.add_clock(_PERIOD)
        self._simulator.add_testbench(self._send, background=True)
        self._simulator.add_testbench(self._receive, background=True)
        self._files = ExitStack()
        if waveforms is not None:
            self._files.enter_context(self._simulator.write_vcd(str(waveforms)))

    def now(self) -> float:
        """Simulated time in seconds."""
        return self._cycle * _PERIOD

    def sleep(self, seconds: float) -> None:
        """Let simulated time pass."""
        self._cycle += round(seconds / _PERIOD)
        self._simulator.run_until(self._cycle * _PERIOD)

    def write(self, data: bytes) -> None:
        self._sending.extend(self._damaged(data))

    def read(self, seconds: float) -> bytes:
        until = self._cycle + max(1, round(seconds / _PERIOD))
        while self._cycle < until and not self._received:
            self._cycle = min(until, self._cycle + 40 * BIT)
            self._simulator.run_until(self._cycle * _PERIOD)
        got, self._received = bytes(self._received), bytearray()
        return self._damaged(got)

    def close(self) -> None:
        self._files.close()

    def _damaged(self, data: bytes) -> bytes:
        out = bytearray()
        for byte in data:
            fault = self._chance.randrange(3) if self._chance.random() < self._share else None
            out += {None: bytes((byte,)), 0: b"", 1: bytes((byte, byte)),
                    2: bytes((byte ^ 1 << self._chance.randrange(8),))}[fault]
        return bytes(out)

    async def _send(self, ctx) -> None:
        while True:
            if not self._sending:
                await ctx.tick()
                continue
            byte = self._sending.popleft()
            for bit in (0, *(byte >> n & 1 for n in range(8)), 1):
                ctx.set(self._circuit.rx, bit)
                await ctx.tick().repeat(BIT)

    async def _receive(self, ctx) -> None:
        while True:
            await ctx.negedge(self._circuit.tx)
            await ctx.tick().repeat(BIT // 2)
            byte = 0
            for n in range(9):
                await ctx.tick().repeat(BIT)
                byte |= ctx.get(self._circuit.tx) << n
            assert byte >> 8, "a byte must end with a stop bit"
            self._received.append(byte & 0xFF)
