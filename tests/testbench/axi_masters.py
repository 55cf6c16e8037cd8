"""Third-party AXI4-Lite masters behind one interface, for benches: those of cocotbext-axi and of cocotb-bus."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol

import cocotb
from cocotb.task import Task
from cocotb.triggers import RisingEdge
from cocotb_bus.drivers import BitDriver
from cocotb_bus.drivers.amba import AXI4LiteMaster, AXIProtocolError, AXIxRESP
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

from .pauses import MATRIX, Pauses, Stalls
from .sampling import every_value, sampled

_WORD = 4  # bytes


@dataclass(frozen=True)
class Access:
    """The result of an access: whether all responses were OKAY (else one was SLVERR), and the bytes that were read."""

    okay: bool
    data: bytes = b""


class LiteMaster(Protocol):
    """A master on the ports ``s_axil_*`` of a circuit with clock ``aclk`` and reset ``aresetn``."""

    async def read(self, address: int, count: int) -> Access:
        """Read ``count`` bytes, a word at a time."""

    async def write(self, address: int, data: bytes) -> Access:
        """Write ``data``, a word at a time; byte strobes where it begins or ends within a word."""

    def reset(self) -> None:
        """Drop what is under way; called when ``aresetn`` goes low."""


class CocotbextMaster:
    """The master of cocotbext-axi, whose five channels pause independently."""

    def __init__(self, dut: Any, stalls: Stalls):
        self._master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.aclk, reset=dut.aresetn,
                                     reset_active_level=False)
        write, read = self._master.write_if, self._master.read_if
        for n, channel in enumerate((write.aw_channel, write.w_channel, write.b_channel, read.ar_channel,
                                     read.r_channel)):
            channel.set_pause_generator(stalls.source(n + 2))

    async def read(self, address: int, count: int) -> Access:
        got = await self._master.read(address, count)
        return Access(got.resp == AxiResp.OKAY, bytes(got.data))

    async def write(self, address: int, data: bytes) -> Access:
        return Access((await self._master.write(address, data)).resp == AxiResp.OKAY)

    def reset(self) -> None:
        """Nothing to do: it watches ``aresetn`` itself."""


class CocotbBusMaster:
    """The master of cocotb-bus. Address and data come with random delays of their own, in either order, and `BitDriver`
    lowers ``bready`` and ``rready``.

    Reads and writes run beside each other, each one at a time: the master itself hands answers to whoever waits.
    """

    def __init__(self, dut: Any, stalls: Stalls):
        self._dut, self._stalls, self._rng = dut, stalls, random.Random(stalls.seed)
        self._tasks: set[Task[Any]] = set()
        dut.s_axil_awprot.value = dut.s_axil_arprot.value = 0
        for signal in (dut.s_axil_awaddr, dut.s_axil_araddr, dut.s_axil_wdata, dut.s_axil_wstrb):
            signal.value = 0
        self._begin()
        for n, ready in enumerate((dut.s_axil_bready, dut.s_axil_rready)):
            if stalls.backpressure:
                BitDriver(ready, dut.aclk).start(_on_and_off(stalls.sink(n + 2)))

    def _begin(self) -> None:
        self._master = AXI4LiteMaster(self._dut, "s_axil", self._dut.aclk)
        self._reading, self._writing = cocotb.triggers.Lock(), cocotb.triggers.Lock()

    async def read(self, address: int, count: int) -> Access:
        data, okay = b"", True
        async with self._reading:
            for at in range(address - address % _WORD, address + count, _WORD):
                for _ in range(self._delay()):
                    await RisingEdge(self._dut.aclk)
                try:
                    word = await self._run(self._master.read(at))
                    data += int(word).to_bytes(_WORD, "little")
                except AXIProtocolError as error:
                    assert error.xresp == AXIxRESP.SLVERR
                    data, okay = data + bytes(_WORD), False
        return Access(okay, data[address % _WORD:][:count])

    async def write(self, address: int, data: bytes) -> Access:
        okay = True
        async with self._writing:
            for word, places in groupby(range(address, address + len(data)), lambda at: at // _WORD):
                held, strobes = 0, 0
                for at in places:
                    held |= data[at - address] << 8 * (at % _WORD)
                    strobes |= 1 << at % _WORD
                try:
                    await self._run(self._master.write(_WORD * word, held, byte_enable=strobes,
                                                       address_latency=self._delay(), data_latency=self._delay()))
                except AXIProtocolError as error:
                    assert error.xresp == AXIxRESP.SLVERR
                    okay = False
        return Access(okay)

    def reset(self) -> None:
        """Cancel what is under way: the master says itself that it does not do so."""
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()
        self._begin()

    async def _run(self, access: Any) -> Any:
        task = cocotb.start_soon(access)
        self._tasks.add(task)
        try:
            return await task
        finally:
            self._tasks.discard(task)

    def _delay(self) -> int:
        return self._rng.choice((0, 0, 1, 2, 9)) if self._stalls.idle else 0


def _on_and_off(pauses: Pauses) -> Iterator[tuple[int, int]]:
    """``pauses`` as `BitDriver` takes them: cycles on, cycles off."""
    for paused, run in groupby(pauses):
        length = sum(1 for _ in run)
        yield (0, length) if paused else (length, 0)


#: By name.
MASTERS: dict[str, Callable[[Any, Stalls], LiteMaster]] = {
    "cocotbext-axi": CocotbextMaster, "cocotb-bus": CocotbBusMaster}
#: Stalls and masters that differ most, for what need not meet all of them.
APART = [("flowing", "cocotb-bus"), ("both", "cocotbext-axi")]


def cases(scenarios: int, orders: int) -> list[tuple[Any, ...]]:
    """Scenario, order, stalls and master of each answer: fewer of a single job."""
    choose = every_value if scenarios * orders == 1 else sampled
    return choose(range(scenarios), range(orders), list(MATRIX), list(MASTERS))
