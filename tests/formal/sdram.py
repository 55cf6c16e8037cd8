"""A proof of the controller of SDRAM: a chip finds every time kept, and a read gives what was written last.

The chip is the model that simulations have, without its words. All requests, and the word that is watched, are free.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.wire import Configuration
from splitjoin_hw.memory.port import MasterSignature
from splitjoin_hw.memory.sdram import Sdram, SdramController, SdramCycles
from splitjoin_sim.sdram import CHECKS, SdramChip

from .harness import Harness
from .proofs import Fault, Proof

_CONFIG = Configuration(keys_r=(8,), keys_s=(8,), tests=((0, 0),), tree=0, cores=1, capacity=64, core="hash",
                        index=(0,), memory="sdram", contexts=2)
#: Two banks, and words of 32 bits: two a line.
_SDRAM = Sdram(data_bits=32, bank_bits=1, row_bits=4, column_bits=5)
_CYCLES = SdramCycles(rcd=2, rp=2, ras=5, rc=7, rfc=4, wr=2, refresh=14, start=1, refreshes=1)


class _Attached(wiring.Component):
    """The controller and a chip at its pins. Ports as of both."""

    def __init__(self) -> None:
        chip = SdramChip(_SDRAM, _CYCLES, _SDRAM.burst(_CONFIG))
        super().__init__({"bus": In(MasterSignature(_CONFIG)), "word": In(_SDRAM.data_bits), **{
            name: Out(getattr(chip, name).shape()) for name in ("faults", "read", "write", "written", "stores")}})
        self._chip, self._controller = chip, SdramController(_CONFIG, _SDRAM, _CYCLES)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.chip, m.submodules.controller = chip, controller = self._chip, self._controller
        wiring.connect(m, wiring.flipped(self.bus), controller.bus)
        wiring.connect(m, controller.pins, chip.pins)
        m.d.comb += [chip.word.eq(self.word), *(getattr(self, name).eq(getattr(chip, name)) for name in (
            "faults", "read", "write", "written", "stores"))]
        return m


def controller() -> Harness:
    """The harness of the controller with a chip, from power-up."""
    dut = _Attached()
    h = Harness(dut)
    m, bus = h.m, dut.bus
    for n, name in enumerate(CHECKS):
        if name != "refresh":  # whether one is late shows beyond the bound: simulations look at it
            h.prove(f"the chip finds no fault of {name}", ~dut.faults[n])
    h.assume("an address and its data come together", bus.aw.valid == bus.w.valid)
    words = [bus.w.p.strb[4 * n:4 * n + 4] for n in range(2)]
    h.assume("strobes select whole words, one at least", ~bus.w.valid | (
        Cat(word.all() == word.any() for word in words).all() & bus.w.p.strb.any()))

    # The word at one address, in the chip, and as requests have it.
    line, index = h.constant("line", bus.ar.p.line.shape()), h.constant("index", 1)
    stored, shown, expected = (Signal(_SDRAM.data_bits, name=name) for name in ("stored", "shown", "expected"))
    was_read = Signal(name="was_read")
    with m.If(dut.stores & (dut.write == Cat(index, line))):
        m.d.sync += stored.eq(dut.written)
    m.d.sync += [was_read.eq(dut.read == Cat(index, line)), shown.eq(stored)]
    h.assume("the chip gives what it stores", ~was_read | (dut.word == shown))
    with m.If(bus.aw.valid & bus.aw.ready & (bus.aw.p.line == line) & Mux(index, words[1][0], words[0][0])):
        m.d.sync += expected.eq(bus.w.p.data.word_select(index, _SDRAM.data_bits))

    # One read of it that is picked at any time, and the reads ahead of it.
    pick, picked, wanted = h.free("pick"), Signal(name="picked"), Signal(_SDRAM.data_bits, name="wanted")
    inside, ahead = Signal(3, name="inside"), Signal(3, name="ahead")
    entered = bus.ar.valid & bus.ar.ready
    m.d.sync += inside.eq(inside + entered - bus.r.valid)
    with m.If(entered & pick & ~picked & (bus.ar.p.line == line)):
        m.d.sync += [picked.eq(1), wanted.eq(expected), ahead.eq(inside - bus.r.valid)]
    with m.Elif(picked & bus.r.valid):
        m.d.sync += [ahead.eq(ahead - 1), picked.eq(ahead != 0)]
    h.prove("a read gives what was written last", ~(picked & bus.r.valid & (ahead == 0)) | (
        bus.r.p.data.word_select(index, _SDRAM.data_bits) == wanted))
    h.output = bus.r
    h.assume("answers are taken", bus.r.ready & bus.b.ready)
    return h


_FAULTS = (
    Fault("the chip finds no fault of start", SdramController, "pause.eq(c.rfc - 1)", "pause.eq(c.rfc - 2)", "_start"),
    Fault("the chip finds no fault of activate", SdramController, "Mux(writes, c.wr, burst) + c.rp - 1",
          "Mux(writes, c.wr, burst) + c.rp - 2"),
    Fault("the chip finds no fault of activate", SdramController, "(timer.eq(c.rfc - 1) for timer in wait_bank)",
          "(timer.eq(c.rfc - 2) for timer in wait_bank)"),
    Fault("the chip finds no fault of column", SdramController, "wait_column.eq(opens - 1)",
          "wait_column.eq(opens - 2)"),
    Fault("the chip finds no fault of bus", SdramController, "wait_write.eq(burst + CAS_LATENCY)",
          "wait_write.eq(burst + CAS_LATENCY - 1)"),
    Fault("a read gives what was written last", SdramController, "Signal(burst + CAS_LATENCY + 1)",
          "Signal(burst + CAS_LATENCY)"),
)

PROOFS = (Proof("controller of SDRAM", controller, 24, inductive=False, faults=_FAULTS, search=30, first=24,
                quick=False),)
