"""cocotb bench of the circuit with AXI ports, against the agents of cocotbext-axi and the master of cocotb-bus.

The variable SPLITJOIN_VECTORS names a JSON file: a list of vectors of `splitjoin.circuit.export.vectors` for one
circuit, each scenario in the same orders, one after the other.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from cocotbext.axi import (
    AxiBus,
    AxiSlave,
    AxiStreamBus,
    AxiStreamFrame,
    AxiStreamMonitor,
    AxiStreamSink,
    AxiStreamSource,
)

from splitjoin.circuit.axi import CONTROL_WORD, IDLE_CYCLES, MEMORY_WORD, PACKET_BEATS
from splitjoin.circuit.registers import MAGIC, MEMORY_FAULT, REGISTERS, register
from splitjoin.circuit.wire import ItemKind

from .axi_masters import APART, MASTERS, LiteMaster, cases
from .bodies import combined
from .checks import check_answer
from .contract import Contract
from .pauses import MATRIX, Stalls
from .sampling import every_value

_JOBS = json.loads(Path(os.environ["SPLITJOIN_VECTORS"]).read_text())
_ORDERS = len({job["order"] for job in _JOBS})
_HIGHEST = REGISTERS[-1].address + REGISTERS[-1].bits // 32
#: Where a circuit's windows lie in memory, if not in block RAM: beyond 32 bits.
_BASE = 0x1_2300_0000


#: Signals of the AXI4 master that are low in reset.
_MEMORY_SIGNALS = ("awvalid", "wvalid", "arvalid", "bready", "rready")


class Memory:
    """What lies behind the circuit's AXI4 master: the bytes from `_BASE` on, which nobody has cleared. The access that
    begins when ``left`` is 0, and all behind it, are errors, for which `AxiSlave` answers SLVERR.
    """

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self._bytes: defaultdict[int, int] = defaultdict(lambda: rng.randrange(256))
        self.left = sys.maxsize

    def _begin(self, address: int) -> None:
        self.left -= 1
        if address < _BASE or self.left < 0:
            raise ValueError(f"there is no memory at {address:x}")

    async def read(self, address: int, length: int, **_: Any) -> bytes:
        self._begin(address)
        return bytes(self._bytes[at] for at in range(address, address + length))

    async def write(self, address: int, data: bytes, **_: Any) -> None:
        self._begin(address)
        self._bytes |= dict(enumerate(data, address))


class TB:
    """Sources, sinks and masters on the ports of the circuit."""

    def __init__(self, dut: Any, stalls: Stalls, master: str):
        self.dut = dut
        reset = {"reset": dut.aresetn, "reset_active_level": False}
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.aclk, **reset)
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.aclk, **reset)
        self.monitor = AxiStreamMonitor(AxiStreamBus.from_prefix(dut, "m_axis"), dut.aclk, **reset)
        self.lite: LiteMaster = MASTERS[master](dut, stalls)
        self.record_bytes, self.item_bytes = len(dut.s_axis_tdata) // 8, len(dut.m_axis_tdata) // 8
        self.source.set_pause_generator(stalls.source())
        self.sink.set_pause_generator(stalls.sink())
        self.memory = Memory(stalls.seed) if hasattr(dut, "m_axi_awaddr") else None
        if self.memory is not None:
            self.slave = slave = AxiSlave(AxiBus.from_prefix(dut, "m_axi"), dut.aclk, **reset, target=self.memory)
            write, read = slave.write_if, slave.read_if
            for n, channel in enumerate((write.b_channel, read.r_channel)):
                channel.set_pause_generator(stalls.source(n + 9))
            for n, channel in enumerate((write.aw_channel, write.w_channel, read.ar_channel)):
                channel.set_pause_generator(stalls.sink(n + 9))
        dut.aresetn.value = 0
        Clock(dut.aclk, 10, unit="ns").start(start_high=False)  # at time 0 nothing has a value yet
        cocotb.start_soon(self._watch())

    async def reset(self, cycles: int = 1) -> None:
        """Pull ``aresetn`` low for ``cycles``."""
        self.dut.aresetn.value = 0
        self.lite.reset()
        await ClockCycles(self.dut.aclk, cycles)
        for name in ("s_axis_tready", "m_axis_tvalid", "s_axil_awready", "s_axil_wready", "s_axil_arready",
                     "s_axil_bvalid", "s_axil_rvalid",
                     *(f"m_axi_{name}" for name in _MEMORY_SIGNALS if self.memory is not None)):
            assert not int(getattr(self.dut, name).value), f"{name} is high in reset"
        self.dut.aresetn.value = 1
        await RisingEdge(self.dut.aclk)

    async def _watch(self) -> None:
        """The handshake rule on every channel that the circuit drives: an offer stays as it is until it is taken."""
        dut = self.dut
        channels = {"m_axis": ("m_axis_t", ("m_axis_tdata", "m_axis_tlast")), "b": ("s_axil_b", ("s_axil_bresp",)),
                    "r": ("s_axil_r", ("s_axil_rdata", "s_axil_rresp"))}
        if self.memory is not None:
            channels |= {f"m_axi_{name}": (f"m_axi_{name}", tuple(f"m_axi_{name}{field}" for field in fields))
                         for name, fields in (("aw", ("id", "addr")), ("w", ("data", "strb")), ("ar", ("id", "addr")))}
        ports = {name: (getattr(dut, f"{prefix}valid"), getattr(dut, f"{prefix}ready"),
                        [getattr(dut, field) for field in fields]) for name, (prefix, fields) in channels.items()}
        contracts, waiting = {name: Contract(name) for name in ports}, dict.fromkeys(ports, False)
        for cycle in itertools.count():
            await RisingEdge(dut.aclk)
            in_reset = not int(dut.aresetn.value)
            for name, (valid, ready, fields) in ports.items():
                if in_reset:
                    contracts[name], waiting[name] = Contract(name), False
                    continue
                offers, takes, payload = bool(int(valid.value)), bool(int(ready.value)), 0
                if offers and (waiting[name] or not takes):  # what is taken at once may be anything, and takes long
                    for handle in fields:
                        payload = payload << len(handle) | int(handle.value)
                contracts[name].check(cycle, offers, takes, payload)
                waiting[name] = offers and not takes

    async def read(self, name: str) -> int:
        """The value of register ``name``."""
        reg = register(name)
        got = await self.lite.read(4 * reg.address, reg.bits // 8)
        assert got.okay
        return int.from_bytes(got.data, "little")

    async def write(self, word: int, value: int) -> None:
        """Write the word at word address ``word``."""
        got = await self.lite.write(4 * word, value.to_bytes(4, "little"))
        assert got.okay, f"word {word}"

    async def prepare(self, job: dict[str, Any]) -> None:
        """Check the identity of the circuit, and write the settings."""
        assert await self.read("id") == MAGIC
        assert f"{await self.read('abi'):016x}" == job["abi"]
        if self.memory is not None:
            for n in (1, 0):  # the low word opens the port
                await self.write(MEMORY_WORD + n, _BASE >> 32 * n & 0xFFFFFFFF)
        for word, value in job["writes"]:
            await self.write(word, value)

    async def send(self, records: list[int], rng: random.Random) -> None:
        """Send ``records`` in packets of random lengths, which have no meaning."""
        at = 0
        while at < len(records):
            beats = rng.choice((1, 2, 7, 64))
            part = b"".join(n.to_bytes(self.record_bytes, "little") for n in records[at:at + beats])
            await self.source.send(AxiStreamFrame(part))
            at += beats

    async def receive(self) -> tuple[list[int], list[int]]:
        """The items up to END, and the lengths of their packets."""
        items: list[int] = []
        packets: list[int] = []
        while not items or items[-1] & 3 != ItemKind.END:
            frame = await with_timeout(self.sink.recv(compact=False), 400, "us")
            data = bytes(frame.tdata)
            got = [int.from_bytes(data[at:at + self.item_bytes], "little")
                   for at in range(0, len(data), self.item_bytes)]
            items += got
            packets.append(len(got))
        return items, packets


async def answer(tb: TB, job: dict[str, Any], rng: random.Random) -> None:
    """Run ``job``, and fail unless its answer comes."""
    await tb.prepare(job)
    records = [int(n, 16) for n in job["records"]]
    sender = cocotb.start_soon(tb.send(records, rng))
    items, packets = await tb.receive()
    await sender
    wanted = [combined(int(n, 16)) for n in job["items"]]
    assert combined(items[-1]) == wanted[-1], "END is last"
    check_answer([combined(n) for n in items[:-1]], wanted[:-1], job["order"])
    assert max(packets) <= PACKET_BEATS
    # After END nothing follows.
    await ClockCycles(tb.dut.aclk, 2 * IDLE_CYCLES)
    assert tb.sink.empty()
    counters = {name: await tb.read(name) for name in ("tuples_r", "tuples_s", "overflow", "matches")}
    pairs = sum(item.kind == ItemKind.PAIR for _, item in wanted)
    assert counters["tuples_r"] + counters["tuples_s"] == len(records) - 1
    assert (counters["matches"], counters["overflow"]) == (pairs, 0)


@cocotb.test()
@cocotb.parametrize((("scenario", "order", "stalls", "master"), cases(len(_JOBS) // _ORDERS, _ORDERS)))
async def same_answer_as_the_golden_model(dut: Any, scenario: int, order: int, stalls: str, master: str) -> None:
    rng = random.Random(random.getrandbits(32))
    tb = TB(dut, MATRIX[stalls].seeded(rng.getrandbits(32)), master)
    await tb.reset()
    await answer(tb, _JOBS[scenario * _ORDERS + order], rng)


@cocotb.test()
@cocotb.parametrize((("cycles", "stalls", "master"), every_value([1, 2, 16], ["flowing", "both"], list(MASTERS))))
async def a_reset_in_mid_stream_leaves_nothing(dut: Any, cycles: int, stalls: str, master: str) -> None:
    """Resets at random moments, of whatever length, in the middle of records, results and register accesses."""
    rng = random.Random(random.getrandbits(32))
    tb = TB(dut, MATRIX[stalls].seeded(rng.getrandbits(32)), master)
    await tb.reset()
    for _ in range(2):
        job = rng.choice(_JOBS)
        await tb.prepare(job)
        cocotb.start_soon(tb.send([int(n, 16) for n in job["records"]], rng))
        access = cocotb.start_soon(tb.lite.read(0, 64))
        await ClockCycles(dut.aclk, rng.randint(20, 600))
        access.cancel()
        tb.source.clear()
        await tb.reset(cycles)
        tb.source.clear()
        tb.sink.clear()
    await answer(tb, rng.choice(_JOBS), rng)


@cocotb.test()
@cocotb.parametrize((("stalls", "master"), APART))
async def the_control_register_resets_the_join(dut: Any, stalls: str, master: str) -> None:
    """The AXI ports keep their rules meanwhile: `TB` watches them. Old items end within the idle time."""
    rng = random.Random(random.getrandbits(32))
    tb = TB(dut, MATRIX[stalls].seeded(rng.getrandbits(32)), master)
    await tb.reset()
    for _ in range(2):
        job = rng.choice(_JOBS)
        await tb.prepare(job)
        part = [int(n, 16) for n in job["records"]][:rng.randint(1, len(job["records"]))]
        await tb.send(part, rng)
        await tb.source.wait()
        await tb.write(CONTROL_WORD, 1)
        await ClockCycles(dut.aclk, 40 * IDLE_CYCLES)
        tb.sink.clear()
    await answer(tb, rng.choice(_JOBS), rng)


@cocotb.test()
@cocotb.parametrize((("stalls", "master"), APART))
async def registers_follow_axi_lite(dut: Any, stalls: str, master: str) -> None:
    """Byte strobes, bursts of accesses, and responses at every address."""
    rng = random.Random(random.getrandbits(32))
    tb = TB(dut, MATRIX[stalls].seeded(rng.getrandbits(32)), master)
    await tb.reset()
    words = {reg.address + n: reg for reg in REGISTERS for n in range(reg.bits // 32)}
    writable = sorted(at for at, reg in words.items() if reg.access == "rw")
    memory = {}
    for at in writable:
        memory[at] = rng.randbytes(4)
        await tb.write(at, int.from_bytes(memory[at], "little"))
    for _ in range(20):
        at = rng.choice(writable)
        first = rng.randrange(4)
        part = rng.randbytes(rng.randint(1, 4 - first))
        memory[at] = memory[at][:first] + part + memory[at][first + len(part):]
        assert (await tb.lite.write(4 * at + first, part)).okay
    for reg in REGISTERS:
        if reg.access == "rw":
            wanted = b"".join(memory[reg.address + n] for n in range(reg.bits // 32))
            assert (await tb.lite.read(4 * reg.address, len(wanted))).data == wanted, reg.name
    base = [] if tb.memory is None else [MEMORY_WORD, MEMORY_WORD + 1]
    for at in range(64):
        got = await tb.lite.read(4 * at, 4)
        assert got.okay == (at < _HIGHEST or at in (CONTROL_WORD, *base)), at
        if at != CONTROL_WORD and at not in (*writable, *base):
            assert not (await tb.lite.write(4 * at, b"\xff" * 4)).okay, at
    # Reads and writes at once: neither waits for the other for good.
    reads = [cocotb.start_soon(tb.lite.read(0, 4)) for _ in range(30)]
    writes = [cocotb.start_soon(tb.lite.write(4 * writable[n % 4], bytes(4))) for n in range(30)]
    for task in (*reads, *writes):
        assert (await task).okay


@cocotb.test()
@cocotb.parametrize(stalls=["both"])
async def memory_is_where_it_is_told(dut: Any, stalls: str) -> None:
    """Nothing is asked before the base is known; an error of memory is told, and a reset of the join ends it."""
    rng = random.Random(random.getrandbits(32))
    tb = TB(dut, MATRIX[stalls].seeded(rng.getrandbits(32)), "cocotbext-axi")
    await tb.reset()
    if tb.memory is None:
        assert not (await tb.lite.read(4 * MEMORY_WORD, 4)).okay
        return
    job = rng.choice(_JOBS)
    untouched = tb.memory.left
    await tb.write(MEMORY_WORD + 1, _BASE >> 32)
    await ClockCycles(dut.aclk, 200)
    assert tb.memory.left == untouched
    await tb.lite.write(4 * MEMORY_WORD + 2, (_BASE >> 16 & 0xFFFF).to_bytes(2, "little"))
    await tb.lite.write(4 * MEMORY_WORD, b"\x21\x03")
    low = int.from_bytes((await tb.lite.read(4 * MEMORY_WORD, 8)).data, "little")
    assert low == _BASE, "bits below the memory's size are 0"
    await tb.prepare(job)
    await ClockCycles(dut.aclk, 300)
    tb.memory.left = 0
    cocotb.start_soon(tb.send([int(n, 16) for n in job["records"]], rng))
    await ClockCycles(dut.aclk, 600)
    assert await tb.read("overflow") == 1 << MEMORY_FAULT
    tb.memory.left = sys.maxsize
    for _ in range(2):  # the rest of the records enters the join before its second reset
        await tb.write(CONTROL_WORD, 1)
        await with_timeout(tb.source.wait(), 400, "us")
        await ClockCycles(dut.aclk, 40 * IDLE_CYCLES)
    tb.sink.clear()
    assert await tb.read("overflow") == 0
    # Answers to what the join asked before its reset come late.
    for _ in range(2):
        await tb.prepare(job)
        await tb.send([int(n, 16) for n in job["records"][:6]], rng)
        await ClockCycles(dut.aclk, rng.randint(60, 120))
        answers = (tb.slave.read_if.r_channel, tb.slave.write_if.b_channel)
        for channel in answers:
            channel.set_pause_generator(itertools.chain(itertools.repeat(True, 700), [False]))
        await ClockCycles(dut.aclk, 30)
        await tb.write(CONTROL_WORD, 1)
        await ClockCycles(dut.aclk, 20 * IDLE_CYCLES)
        tb.sink.clear()
        await answer(tb, job, rng)
