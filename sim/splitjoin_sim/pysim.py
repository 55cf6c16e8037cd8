"""The device ``pysim``: the circuit on Amaranth's own simulator.

It is slow, needs no compiler and shares no code with Verilator, so each simulator checks the other.
"""

from __future__ import annotations

import os
import random
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from amaranth.hdl import Cat, Fragment
from amaranth.sim import Simulator

from splitjoin.circuit.driver import DeviceStalled, Transport
from splitjoin.circuit.encode import Words, single_items
from splitjoin.circuit.sources import Sources
from splitjoin.circuit.wire import WORD_BITS, Configuration, ItemKind
from splitjoin.engines.device import Items
from splitjoin_hw.backend.source_names import source_names
from splitjoin_hw.circuit import circuit
from splitjoin_hw.top import padded

from .memory import EXTERNAL, MemoryModel, SimulatedMemory
from .simulated import SimulatedDevice, SimulatedTransport
from .waveforms import trace_file

#: Clock period in seconds; its value has no effect.
_PERIOD = 1e-6
#: Cycles simulated between two checks for the end of a transfer.
_STRETCH = 64


@dataclass(frozen=True, kw_only=True)
class PysimDevice(SimulatedDevice):
    """Simulation by Amaranth. Parameters as of `SimulatedDevice`; ``trace`` is .vcd only."""

    name: ClassVar[str] = "pysim"
    traces: ClassVar[tuple[str, ...]] = (".vcd",)

    def _connect(self, config: Configuration) -> Transport:
        return PysimTransport(config, **self._options(config))


class PysimTransport(SimulatedTransport):
    """One circuit under Amaranth's simulator, advanced by several cycles at a time."""

    def __init__(self, config: Configuration, *, seed: int, stall_in: float, stall_out: float, patience: int,
                 pace: float | None = None, trace: str | os.PathLike[str] | None = None,
                 external: SimulatedMemory = EXTERNAL):
        super().__init__()
        self._files = ExitStack()
        if trace is not None:
            self._files.enter_context(trace_file(trace))
        self._patience = patience
        self._random = random.Random(seed)
        self._stall_in, self._stall_out, self._pace = stall_in, stall_out, pace
        self._gated, self._width = config.sources > 1, padded(config.input_record)
        self._to_send: list[deque[tuple[int, int]]] = [deque() for _ in range(config.sources)]  # number, record
        self._sent: dict[int, int] = {}  # number of a record → cycle of its transfer
        self._start = 0  # cycle in which the transfer began
        self._items: list[tuple[int, int]] = []  # payload and cycle of each item
        self._bus: deque[tuple[int, int | None]] = deque()
        self._answer: int | None = None
        self._cycle = 0
        self._moved = 0  # cycle of the last transfer at either end
        self._reading = False  # results are taken during a transfer only, as on any device
        with source_names():
            self._top = circuit(config)
            self._simulator = Simulator(Fragment.get(self._top, None))
        self._simulator.add_clock(_PERIOD)
        for process in (*(partial(self._source, n) for n in range(config.sources)), self._sink, self._registers):
            self._simulator.add_testbench(process, background=True)
        if config.memory != "bram":
            for n, port in enumerate([self._top.m] if config.cores == 1 else self._top.m):
                self._simulator.add_testbench(MemoryModel(port, external, seed + n).play, background=True)
        if trace is not None:
            self._files.enter_context(self._simulator.write_vcd(os.fspath(trace)))

    def read(self, address: int) -> int:
        self._answer = None
        self._bus.append((address, None))
        while self._answer is None:
            self._advance(1)
        return self._answer

    def write(self, address: int, word: int) -> None:
        self._bus.append((address, word))
        while self._bus:
            self._advance(1)

    def transfer_from(self, records: Words, sources: Sources, *, until_end: bool) -> Items:
        for number, (source, word) in enumerate(zip(sources.tolist(), _integers(records), strict=True)):
            self._to_send[source].append((number, word))
        self._sent, self._start = {}, self._cycle
        self._reading, self._moved = True, self._cycle
        while len(self._sent) < len(records) or (until_end and not self._ended()):
            self._advance(_STRETCH)
            if self._cycle - self._moved > self._patience:
                raise DeviceStalled(f"the simulated circuit made no progress for {self._patience} cycles (at cycle "
                                    f"{self._cycle}, {len(self._sent)} of {len(records)} records sent); this is a "
                                    f"fault of the circuit, please report it with the query")
        self._reading = False
        # The sink may accept one more item in the cycle after this, which is kept for the next call.
        taken, self._items = self._items, []
        words = _words([payload for payload, _ in taken], len(self._top.o.payload) // WORD_BITS)
        self._log.sent(records, np.array([self._sent[n] for n in range(len(records))], np.uint64))
        items, record = single_items(words, self._top.config)
        self._log.received(items, np.array([cycle for _, cycle in taken], np.uint64)[record])
        return items

    def close(self) -> None:
        self._files.close()

    def _ended(self) -> bool:
        return bool(self._items) and self._items[-1][0] & 3 == ItemKind.END

    def _advance(self, cycles: int) -> None:
        self._simulator.run_until((self._cycle + cycles) * _PERIOD)
        self._cycle += cycles

    # Testbenches. Each drives one port, and communicates through the queues above. Whatever is set, the circuit settles
    # anew: so inputs that change together are set together, and only those that change.

    async def _source(self, n: int, ctx: Any) -> None:
        port, cycle, queue = self._top.i, 0, self._to_send[n]
        payload, valid, ready = ((port.payload[n * self._width:][:self._width], port.valid[n], port.ready[n])
                                 if self._gated else (port.payload, port.valid, port.ready))
        offer, offering = Cat(payload, valid), False
        while True:
            if not queue or not self._has_come(queue[0][0], cycle) or self._random.random() < self._stall_in:
                if offering:
                    ctx.set(valid, 0)
                    offering = False
                await ctx.tick()
                cycle += 1
                continue
            number, record = queue.popleft()
            ctx.set(offer, record | 1 << len(payload))
            offering, taken = True, False
            while not taken:
                _, _, taken = await ctx.tick().sample(ready)
                cycle += 1
            self._sent[number] = cycle - 1
            self._moved = cycle

    def _has_come(self, number: int, cycle: int) -> bool:
        """The record of this number of the transfer has come, however many wait before the input."""
        return self._pace is None or (cycle - self._start + 1) * self._pace >= number + 1

    async def _sink(self, ctx: Any) -> None:
        port, cycle, before = self._top.o, 0, False
        while True:
            ready = self._reading and self._random.random() >= self._stall_out
            if ready != before:
                ctx.set(port.ready, ready)
                before = ready
            _, _, valid, payload = await ctx.tick().sample(port.valid, port.payload)
            cycle += 1
            if valid and ready:
                self._items.append((payload, cycle - 1))
                self._moved = cycle

    async def _registers(self, ctx: Any) -> None:
        top = self._top
        while True:
            if not self._bus:
                await ctx.tick()
                continue
            address, word = self._bus[0]
            ctx.set(top.addr, address)
            if word is not None:
                ctx.set(top.w_data, word)
                ctx.set(top.w_stb, 1)
            await ctx.tick()
            ctx.set(top.w_stb, 0)
            if word is None:
                await ctx.tick()
                await ctx.tick()
                self._answer = ctx.get(top.r_data)
            self._bus.popleft()


def _integers(records: Words) -> list[int]:
    return [int.from_bytes(row.astype("<u4").tobytes(), "little") for row in records]


def _words(payloads: list[int], words: int) -> Words:
    raw = b"".join(p.to_bytes(4 * words, "little") for p in payloads)
    return np.frombuffer(raw, "<u4").reshape(len(payloads), words).astype(np.uint32)
