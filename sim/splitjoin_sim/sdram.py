"""A model of an SDR SDRAM at its pins, which finds commands that come too early or too late."""

from __future__ import annotations

from amaranth.back import verilog
from amaranth.hdl import Array, Cat, ClockSignal, Instance, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.wire import Configuration
from splitjoin_hw.memory.port import MasterSignature
from splitjoin_hw.memory.sdram import Command, PinSignature, Sdram, SdramController, SdramCycles, mode_of

#: What a chip checks: output ``faults`` has a bit for each.
CHECKS = ("start", "activate", "column", "bus", "refresh")
#: Intervals without a refresh from which on data may be lost.
_LATE = 2


class SdramChip(wiring.Component):
    """An ``sdram`` with the times ``cycles``, on its own clock. Reads have bursts of ``burst`` words.

    Ports: ``pins``: as of the controller. ``drives``: the chip drives data. ``faults``: the bits of `CHECKS` that were
    broken, sticky. ``start``: the sequence after power-up, and the mode; ``activate``: tRP, tRC, tRFC and tRRD;
    ``column``: tRCD, and tRAS where the row is closed; ``bus``: who drives data; ``refresh``: each tREFI, with no row
    open.

    ``words``: the chip has its words, in Verilog (`sdram_verilog`), as Amaranth would write each of them down. Without,
    they are what drives ``word``: that at address ``read``, a cycle later; ``written`` is to be stored at ``write`` if
    ``stores``. Addresses count the words of a burst, then banks, then bursts of a row.
    """

    def __init__(self, sdram: Sdram, cycles: SdramCycles, burst: int, *, words: bool = False):
        self._sdram, self._cycles, self._burst, self._words = sdram, cycles, burst, words
        bits = sdram.bank_bits + sdram.row_bits + sdram.column_bits
        self.read, self.write = Signal(bits), Signal(bits)
        self.word, self.written, self.stores = Signal(sdram.data_bits), Signal(sdram.data_bits), Signal()
        super().__init__({"pins": In(PinSignature(sdram)), "drives": Out(1), "faults": Out(len(CHECKS))})

    def elaborate(self, platform) -> Module:
        m = Module()
        pins, c, burst, s = self.pins, self._cycles, self._burst, self._sdram
        command, bank, closes = Cat(pins.we, pins.cas, pins.ras), pins.ba, pins.a[10]
        broken = {name: Signal(name=name) for name in CHECKS}
        m.d.sync += self.faults.eq(self.faults | Cat(broken.values()))

        def timers(name: str, most: int) -> list[Signal]:
            found = [Signal(range(most + 1), name=f"{name}{n}") for n in range(2**s.bank_bits)]
            for timer in found:
                with m.If(timer != 0):
                    m.d.sync += timer.eq(timer - 1)
            return found

        # Cycles until a bank may be opened, its open row read or written, and closed.
        to_open = timers("to_open", max(c.rc, c.rfc, burst + c.rp, c.wr + c.rp))
        to_column, to_close = timers("to_column", c.rcd), timers("to_close", c.ras)
        to_any = Signal(range(c.rcd + 1))  # until any bank may be opened
        m.d.sync += to_any.eq(to_any - (to_any != 0))
        opened, rows = Signal(2**s.bank_bits), Array(Signal(s.row_bits, name=f"row{n}") for n in range(2**s.bank_bits))
        idle = ~opened.any() & Cat(timer == 0 for timer in to_open).all()

        wait, first, mode = Signal(range(c.start + 1), init=c.start), Signal(range(c.refreshes + 1)), Signal()
        closed_all = Signal()
        with m.If(wait != 0):
            m.d.sync += wait.eq(wait - 1)
        since, owed = Signal(range(c.refresh), init=c.refresh - 1), Signal(range(_LATE + 1))
        passes, refreshes = Signal(), command == Command.REFRESH
        m.d.comb += [passes.eq(mode & (since == 0)), broken["refresh"].eq((owed == _LATE) | (refreshes & ~idle))]
        m.d.sync += [since.eq(Mux(~mode | passes, c.refresh - 1, since - 1)),
                     owed.eq(Mux(passes & ~refreshes & (owed != _LATE), owed + 1,
                                 Mux(~passes & refreshes & (owed != 0), owed - 1, owed)))]

        at, row = Signal(s.column_bits), rows[bank]
        reading, from_bank, from_row = Signal(range(burst + 1)), Signal.like(bank), Signal(s.row_bits)
        drives = Signal(2)  # the chip drives data in this cycle, and did in the one before
        m.d.sync += drives.eq(Cat(reading != 0, drives))
        m.d.comb += [
            self.drives.eq(drives[0]), self.read.eq(self._address(from_bank, from_row, at)), pins.dq_i.eq(self.word),
            self.stores.eq(command == Command.WRITE), self.written.eq(pins.dq_o),
            self.write.eq(self._address(bank, row, pins.a))]
        with m.If(reading != 0):
            m.d.sync += [reading.eq(reading - 1), at.eq(at + 1)]
        m.d.comb += broken["bus"].eq(
            (pins.dq_oe & (drives.any() | (reading != 0))) | ((command == Command.WRITE) & ~pins.dq_oe)
            | (((command == Command.WRITE) | (command == Command.READ)) & ((reading > 1) | pins.dqm)))
        with m.Switch(command):
            with m.Case(Command.ACTIVATE):
                m.d.comb += [broken["start"].eq(~mode),
                             broken["activate"].eq(opened.bit_select(bank, 1) | (Array(to_open)[bank] != 0)
                                                   | (to_any != 0))]
                m.d.sync += [
                    opened.bit_select(bank, 1).eq(1), row.eq(pins.a), to_any.eq(c.rcd - 1),
                    Array(to_open)[bank].eq(c.rc - 1), Array(to_column)[bank].eq(c.rcd - 1),
                    Array(to_close)[bank].eq(c.ras - 1)]
            with m.Case(Command.READ, Command.WRITE):
                reads = command == Command.READ
                then = Mux(reads, burst, c.wr)
                m.d.comb += broken["column"].eq(~opened.bit_select(bank, 1) | (Array(to_column)[bank] != 0)
                                                | (closes & (Array(to_close)[bank] > then)))
                with m.If(closes):
                    m.d.sync += opened.bit_select(bank, 1).eq(0)
                    with m.If(Array(to_open)[bank] < then + c.rp):
                        m.d.sync += Array(to_open)[bank].eq(then + c.rp - 1)
                with m.If(reads):
                    m.d.sync += [reading.eq(burst), at.eq(pins.a), from_bank.eq(bank), from_row.eq(row)]
            with m.Case(Command.REFRESH):
                m.d.comb += broken["start"].eq(~closed_all)
                m.d.sync += [first.eq(first + (first != c.refreshes)), *(t.eq(c.rfc - 1) for t in to_open)]
            with m.Case(Command.PRECHARGE):
                m.d.comb += broken["start"].eq((wait != 0) | mode | ~closes)
                m.d.sync += [closed_all.eq(1), *(t.eq(c.rp - 1) for t in to_open)]
            with m.Case(Command.MODE):
                m.d.comb += broken["start"].eq((first != c.refreshes) | ~idle | (pins.a != mode_of(burst)))
                m.d.sync += [mode.eq(1), *(t.eq(1) for t in to_open)]
        if self._words:
            m.submodules.array = Instance(
                "sdram_array", p_BITS=len(self.read), p_WIDTH=s.data_bits, i_clk=ClockSignal(), i_read=self.read,
                o_word=self.word, i_write=self.write, i_written=self.written, i_stores=self.stores)
        return m

    def _address(self, bank: Signal, row: Signal, column: Signal) -> Cat:
        inside = self._burst.bit_length() - 1
        return Cat(column[:inside], bank, column[inside:self._sdram.column_bits], row)


#: Clock of a simulated circuit with SDRAM, in Hz, and its chip: 32 MB of 16 bits, as boards have.
_CLOCK, _CHIP = 100_000_000, Sdram()


class SdramMemory(wiring.Component):
    """The SDRAM of a simulated circuit of ``config``, with its controller: 32 MB of 16 bits at 100 MHz.

    Ports: ``bus``: of the join. Once the chip has found a fault, answers are errors.
    """

    def __init__(self, config: Configuration):
        cycles = _CHIP.cycles(_CLOCK)
        self._controller = SdramController(config, _CHIP, cycles)
        self._chip = SdramChip(_CHIP, cycles, _CHIP.burst(config), words=True)
        super().__init__({"bus": In(MasterSignature(config))})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.controller, m.submodules.chip = controller, chip = self._controller, self._chip
        wiring.connect(m, controller.pins, chip.pins)
        wiring.connect(m, wiring.flipped(self.bus), controller.bus)
        for answer in (self.bus.r, self.bus.b):
            m.d.comb += answer.p.resp.eq(Mux(chip.faults.any(), 2, 0))
        return m


def sdram_verilog(component: wiring.Component, name: str) -> str:
    """The Verilog of ``component``, a chip with its words or more, as module ``name``."""
    text: str = verilog.convert(component, name=name, emit_src=False)
    return text + """
module sdram_array #(parameter BITS = 1, WIDTH = 1) (input clk, input [BITS-1:0] read, output reg [WIDTH-1:0] word,
    input [BITS-1:0] write, input [WIDTH-1:0] written, input stores);
  reg [WIDTH-1:0] words [0:(1<<BITS)-1];
  always @(posedge clk) begin
    word <= words[read];
    if (stores) words[write] <= written;
  end
endmodule
"""
