# amaranth: UnusedElaboratable=no
"""The controller of SDRAM, with a chip that checks every time, gives what was written last; and what is refused."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.sim import Simulator

from splitjoin import CapacityError, UnsupportedError
from splitjoin.circuit.wire import Configuration
from splitjoin_hw.link.linked import LinkedJoin
from splitjoin_hw.memory import sdram
from splitjoin_hw.memory.sdram import Sdram, SdramController, board_controller
from splitjoin_sim.sdram import CHECKS, SdramChip

from ...support.planting import faulty
from ...support.sampling import at_length

#: Rings of 64 tuples, in lines of 64 bits.
CONFIG = Configuration(keys_r=(8,), keys_s=(8,), tests=((0, 0),), tree=0, cores=1, capacity=64, core="hash", index=(0,),
                       memory="sdram", contexts=4)
#: Two chips of 16 bits beside each other, without lines for masks.
WIDE = Sdram(data_bits=32, bank_bits=1, row_bits=11, column_bits=8)
_REQUESTS, _LINES, _IDS = 100, 40, 8


class WithChip(SdramController):
    """A controller with a chip."""

    def __init__(self, sdram: Sdram, hertz: int, config: Configuration = CONFIG):
        cycles = sdram.cycles(hertz)._replace(start=20, refresh=120)
        super().__init__(config, sdram, cycles)
        self.chip = SdramChip(sdram, cycles, sdram.burst(config))

    def elaborate(self, platform: Any) -> Module:
        m = super().elaborate(platform)
        m.submodules.chip = self.chip
        wiring.connect(m, self.pins, self.chip.pins)
        return m


def traffic(dut: WithChip, idle: float) -> None:
    """Runs random reads and writes of few lines, with pauses; raises `AssertionError` at a fault or wrong data."""
    rng, chip, bus = random.Random(1), dut.chip, dut.bus
    width, bits = len(bus.w.p.data), len(dut.pins.dq_o)
    words: dict[int, int] = {}
    wanted: list[tuple[int, int]] = []  # data and id of each read under way
    lines: dict[int, int] = {}

    async def array(ctx: Any) -> None:
        async for _, _, at, to, word, stores in ctx.tick().sample(chip.read, chip.write, chip.written, chip.stores):
            ctx.set(chip.word, words.get(at, 0))
            if stores:
                words[to] = word

    async def requests(ctx: Any) -> None:
        offered: dict[str, Any] = {"ar": None, "aw": None}
        begun = answered = taken = rests = 0
        for _ in range(60 * _REQUESTS):
            for name, is_write in (("ar", False), ("aw", True)):
                channel = getattr(bus, name)
                if offered[name] is None and begun < _REQUESTS and rng.random() >= idle:
                    begun += 1
                    heads = rng.randrange(1, 2**(width // bits))
                    offered[name] = (rng.randrange(_LINES), rng.randrange(_IDS), rng.getrandbits(width),
                                     sum(2**(bits // 8) - 1 << bits // 8 * n for n in range(width // bits)
                                         if heads >> n & 1))
                    line, number, data, strobes = offered[name]
                    ctx.set(channel.payload, {"line": line, "id": number})
                    ctx.set(channel.valid, 1)
                    if is_write:
                        ctx.set(bus.w.payload, {"data": data, "strb": strobes})
                        ctx.set(bus.w.valid, 1)
            _, _, reads, writes, read, answer, done, rest, faults = await ctx.tick().sample(
                bus.ar.ready, bus.aw.ready, bus.r.valid, bus.r.payload, bus.b.valid, dut.idle, chip.faults)
            assert not faults, [name for n, name in enumerate(CHECKS) if faults >> n & 1]
            assert not rest or taken == answered, "a request is under way"
            rests += rest
            taken += bool(offered["ar"] and reads) + bool(offered["aw"] and writes)
            if offered["ar"] and reads:
                line, number, *_ = offered["ar"]
                wanted.append((lines.get(line, 0), number))
                offered["ar"] = None
                ctx.set(bus.ar.valid, 0)
            if offered["aw"] and writes:
                line, number, data, strobes = offered["aw"]
                mask = sum(0xFF << 8 * n for n in range(width // 8) if strobes >> n & 1)
                lines[line] = lines.get(line, 0) & ~mask | data & mask
                offered["aw"] = None
                ctx.set(bus.aw.valid, 0)
                ctx.set(bus.w.valid, 0)
            if read:
                assert (answer.data, answer.id) == wanted.pop(0)
            answered += read + done
            if answered == _REQUESTS and rest:
                assert rests > 1, "before the first request, and behind the last"
                return
        pytest.fail("requests are not answered")

    simulation = Simulator(dut)
    simulation.add_clock(1e-8)
    simulation.add_testbench(array, background=True)
    simulation.add_testbench(requests)
    simulation.run()


@pytest.mark.parametrize(("chip", "hertz", "idle"), [
    (Sdram(), 100_000_000, 0.5), (WIDE, 25_000_000, 0.9), at_length(WIDE, 100_000_000, 0.0)])
def test_reads_give_what_was_written_last(chip: Sdram, hertz: int, idle: float) -> None:
    traffic(WithChip(chip, hertz), idle)


def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of those that the proof finds (`tests/formal/sdram.py`)."""
    monkeypatch.setattr(SdramController, "elaborate", faulty(
        SdramController, "elaborate", "wait_read.eq(burst - 1)", "wait_read.eq(burst - 2)"))
    with pytest.raises(AssertionError, match="bus"):
        traffic(WithChip(Sdram(), 25_000_000), 0.0)


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnsupportedError, match="clock of a circuit with memory='sdram' must be at most 100000000 Hz"):
        Sdram().cycles(133_000_000)
    assert Sdram().cycles(100_000_000).wr == 2
    with pytest.raises(UnsupportedError, match="must be bram, or sdram on a board that has SDRAM"):
        board_controller(CONFIG, None, 25_000_000)
    with pytest.raises(UnsupportedError, match="must be at most 66000000 Hz"):
        board_controller(CONFIG, Sdram(), 66_000_001)
    monkeypatch.setattr(sdram, "SdramController", lambda *given: given)
    assert board_controller(CONFIG, Sdram(), 66_000_000) == (CONFIG, Sdram(), Sdram().cycles(66_000_000))
    assert board_controller(replace(CONFIG, memory="bram", contexts=0), None, 10**9) is None
    with pytest.raises(CapacityError, match="SDRAM of 4,194,304 bytes, but those of 131,072 tuples take 5,242,880"):
        WIDE.burst(replace(CONFIG, capacity=2**17))
    with pytest.raises(ValueError, match="memory must be 'sdram' with a controller of SDRAM, and 'bram' without"):
        LinkedJoin(CONFIG, clock_hz=25_000_000, baud=3_000_000)
