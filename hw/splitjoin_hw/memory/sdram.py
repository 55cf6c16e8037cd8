"""SDR SDRAM: the times that a chip demands, its pins, and a controller between them and the port of a join."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from enum import IntEnum
from math import ceil

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from splitjoin.base.errors import CapacityError, UnsupportedError
from splitjoin.circuit.memory import address_bits, id_bits, line_bits, lines
from splitjoin.circuit.wire import Configuration

from ..network.queue import Queue
from .port import MasterSignature

#: Cycles from a read to its first word.
CAS_LATENCY = 2
#: Cycles behind the load of the mode register.
_MODE_CYCLES = 2
#: The address bit that closes the row behind a read or write, or closes all rows.
_CLOSES = 10
#: The highest clock in Hz: with a latency of two cycles, chips need 10 ns each; and that of boards, where words come
#: some 12 ns behind the edge of the chip's clock, with pads and lines, and are taken a cycle behind it.
_HIGHEST, _BOARDS_HIGHEST = 100_000_000, 66_000_000


class Command(IntEnum):
    """Commands by RAS, CAS and WE, active high."""

    NONE = 0b000
    READ = 0b010
    WRITE = 0b011
    ACTIVATE = 0b100
    PRECHARGE = 0b101
    REFRESH = 0b110
    MODE = 0b111


#: The least numbers of cycles between commands to an `Sdram`, by the names there; the most for ``refresh``.
SdramCycles = namedtuple("SdramCycles", "rcd rp ras rc rfc wr refresh start refreshes")


@dataclass(frozen=True, kw_only=True)
class Sdram:
    """An SDR SDRAM chip, or two beside each other. The times hold for all speed grades of 143 MHz and better.

    Attributes:
        data_bits, bank_bits, row_bits, column_bits: Widths of a word, and of the parts of its address.
        rcd, rp, ras, rc, rfc, wr: Nanoseconds of tRCD, which no tRRD exceeds, tRP, tRAS, tRC, tRFC, and of tWR, which
            has two cycles at least.
        refresh, start: Nanoseconds for each refresh, on average (tREFI), and from power-up to the first command.
        refreshes: Refreshes before the first use.
    """

    data_bits: int = 16
    bank_bits: int = 2
    row_bits: int = 13
    column_bits: int = 9
    rcd: float = 20
    rp: float = 20
    ras: float = 45
    rc: float = 70
    rfc: float = 70
    wr: float = 15
    refresh: float = 64e6 / 8192
    start: float = 200_000
    refreshes: int = 8

    @property
    def size(self) -> int:
        """Its bytes."""
        return (self.data_bits << self.bank_bits + self.row_bits + self.column_bits) // 8

    def cycles(self, clock_hz: int, highest: int = _HIGHEST) -> SdramCycles:
        """The times in cycles of ``clock_hz`` Hz. Raises `UnsupportedError` for more than ``highest``, 100 MHz."""
        if clock_hz > highest:
            raise UnsupportedError(f"the clock of a circuit with memory='sdram' must be at most {highest} Hz, as the "
                                   f"chip's data come two cycles behind a read, not {clock_hz}; give a lower --pll")
        of = {name: ceil(getattr(self, name) * clock_hz / 1e9) for name in ("rcd", "rp", "ras", "rc", "rfc", "start")}
        return SdramCycles(**of, wr=max(2, ceil(self.wr * clock_hz / 1e9)), refresh=int(self.refresh * clock_hz / 1e9),
                           refreshes=self.refreshes)

    def burst(self, config: Configuration) -> int:
        """Words of a line of ``config``. Raises `CapacityError` if its windows do not fit the chip."""
        needed = lines(config) * line_bits(config) // 8
        if needed > self.size:
            raise CapacityError(f"the windows of a circuit with memory='sdram' must fit the board's SDRAM of "
                                f"{self.size:,} bytes, but those of {config.capacity:,} tuples take {needed:,}; give a "
                                f"smaller capacity")
        return line_bits(config) // self.data_bits


def mode_of(burst: int) -> int:
    """The mode register: reads in bursts of ``burst`` words in a row, writes of single ones."""
    return 1 << 9 | CAS_LATENCY << 4 | burst.bit_length() - 1


class PinSignature(wiring.Signature):
    """The pins of an `Sdram`, all active high; clock and chip select are left to the board.

    ``dqm``: masks data. ``dq_o``, ``dq_oe``, ``dq_i``: the data, driven by the controller or by the chip.
    """

    def __init__(self, sdram: Sdram):
        super().__init__({
            "ras": Out(1), "cas": Out(1), "we": Out(1), "ba": Out(sdram.bank_bits),
            "a": Out(max(sdram.row_bits, _CLOSES + 1)), "dqm": Out(1), "dq_o": Out(sdram.data_bits), "dq_oe": Out(1),
            "dq_i": In(sdram.data_bits)})


class SdramController(wiring.Component):
    """Executes reads and writes of a join's `MasterSignature` in an `Sdram`, in the order in which it takes them.

    Each request opens a row and closes it; the next row is opened while the burst of a read moves. Lines that follow
    each other lie in different banks. A write sends its words one by one, those alone that its strobes select: all
    bytes of a word, or none; one word at least.

    Ports: ``bus``, ``pins``. ``idle``: no request is under way. ``dq_i`` is taken at the edge of the clock that follows
    on the chip's own edge.
    """

    def __init__(self, config: Configuration, sdram: Sdram, cycles: SdramCycles):
        self._config, self._sdram, self._cycles, self._burst = config, sdram, cycles, sdram.burst(config)
        super().__init__({"bus": In(MasterSignature(config)), "pins": Out(PinSignature(sdram)), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        bus, pins, c, burst = self.bus, self.pins, self._cycles, self._burst
        command, address, bank = Signal(Command), Signal.like(pins.a), Signal.like(pins.ba)
        m.d.sync += [Cat(pins.we, pins.cas, pins.ras).eq(command), pins.a.eq(address), pins.ba.eq(bank),
                     pins.dq_oe.eq(command == Command.WRITE)]
        ready, due = self._start(m, command, address)

        # The request whose row is opened next: of a kind with the one before it if there is one, as turns take time.
        writes = Signal()
        chooses, line = Signal(), Signal(address_bits(self._config))
        m.d.comb += [chooses.eq(Mux(writes, bus.aw.valid, ~bus.ar.valid)),
                     line.eq(Mux(chooses, bus.aw.p.line, bus.ar.p.line))]
        next_bank, column, row = self._place(line)

        # A row is open for as long as it must be, even if it is closed behind a single word.
        least = min(burst, c.wr)
        opens = max(c.rcd, c.ras - least, c.rc - c.rp - least)

        # Cycles until banks may be opened, and until a read or a write may be sent.
        most = max(opens, c.rfc, max(burst, c.wr) + max(c.rp, CAS_LATENCY) + 1)
        wait_bank = [self._timer(m, f"wait_bank{n}", most) for n in range(2**self._sdram.bank_bits)]
        wait_read, wait_write, wait_column = (self._timer(m, f"wait_{name}", most)
                                              for name in ("read", "write", "column"))
        opened, number, data, mask = Signal(), Signal(id_bits(self._config)), Signal(len(bus.w.p.data)), Signal(burst)
        at, of = Signal.like(column), Signal.like(pins.ba)
        quiet = ~opened & Cat(timer == 0 for timer in wait_bank).all()
        moves, last = Signal(), Signal()
        m.d.comb += [moves.eq(opened & (wait_column == 0) & (Mux(writes, wait_write, wait_read) == 0)),
                     last.eq(~writes | ~mask[1:].any()), bank.eq(Mux(opened, of, next_bank))]
        m.d.sync += [self.bus.b.valid.eq(moves & writes & last), self.bus.b.p.id.eq(number)]
        m.submodules.under_way = under_way = Queue(number.shape(), 4)
        m.d.comb += [under_way.i.valid.eq(moves & ~writes), under_way.i.payload.eq(number)]
        with m.If(moves):
            m.d.comb += [command.eq(Mux(writes, Mux(mask[0], Command.WRITE, Command.NONE), Command.READ)),
                         address.eq(at | last << _CLOSES)]
            m.d.sync += [data.eq(data >> self._sdram.data_bits), mask.eq(mask >> 1), at.eq(at + 1),
                         pins.dq_o.eq(data), opened.eq(~last)]
            with m.If(~writes):
                m.d.sync += [wait_read.eq(burst - 1), wait_write.eq(burst + CAS_LATENCY)]
            with m.If(last):
                m.d.sync += Array(wait_bank)[of].eq(Mux(writes, c.wr, burst) + c.rp - 1)
        with m.Elif(due & quiet):
            m.d.comb += command.eq(Command.REFRESH)
            m.d.sync += [due.eq(0), *(timer.eq(c.rfc - 1) for timer in wait_bank)]
        with m.Elif(ready & ~opened & ~due & (Array(wait_bank)[next_bank] == 0)
                    & Mux(chooses, bus.aw.valid & bus.w.valid, bus.ar.valid)):
            m.d.comb += [command.eq(Command.ACTIVATE), address.eq(row), bus.ar.ready.eq(~chooses),
                         bus.aw.ready.eq(chooses), bus.w.ready.eq(chooses)]
            m.d.sync += [opened.eq(1), writes.eq(chooses), number.eq(Mux(chooses, bus.aw.p.id, bus.ar.p.id)),
                         data.eq(bus.w.p.data), mask.eq(Cat(bus.w.p.strb[n * self._sdram.data_bits // 8]
                                                            for n in range(burst))),
                         at.eq(column), of.eq(next_bank), wait_column.eq(opens - 1)]

        coming = Signal(burst + CAS_LATENCY + 1)
        m.d.sync += [coming.eq(Cat(moves & ~writes, coming)), bus.r.p.data.eq(Cat(bus.r.p.data, pins.dq_i)[
            self._sdram.data_bits:])]
        m.d.comb += [bus.r.valid.eq(coming[-1]), bus.r.p.id.eq(under_way.o.payload), under_way.o.ready.eq(coming[-1]),
                     self.idle.eq(~opened & ~coming.any() & ~bus.b.valid)]
        return m

    def _place(self, line: Signal) -> tuple[Value, Value, Value]:
        """The bank, first column and row of ``line``."""
        banks, inside = self._sdram.bank_bits, self._burst.bit_length() - 1
        rows = banks + self._sdram.column_bits - inside
        return line[:banks], Cat(Const(0, inside), line[banks:rows]), line[rows:]

    def _timer(self, m: Module, name: str, most: int) -> Signal:
        """A counter that counts down to 0."""
        timer = Signal(range(most + 1), name=name)
        with m.If(timer != 0):
            m.d.sync += timer.eq(timer - 1)
        return timer

    def _start(self, m: Module, command: Signal, address: Signal) -> tuple[Signal, Signal]:
        """Initialises the chip; returns whether it is ready, and whether a refresh is due."""
        c = self._cycles
        ready, due, step = Signal(), Signal(), Signal(range(c.refreshes + 3))
        pause = Signal(range(max(c.start, c.rfc) + 1), init=c.start)
        since = Signal(range(c.refresh), init=c.refresh - 1)
        m.d.comb += self.pins.dqm.eq(~ready)
        with m.If(pause != 0):
            m.d.sync += pause.eq(pause - 1)
        with m.Elif(~ready):
            m.d.sync += step.eq(step + 1)
            with m.Switch(step):
                with m.Case(0):
                    m.d.comb += [command.eq(Command.PRECHARGE), address.eq(1 << _CLOSES)]
                    m.d.sync += pause.eq(c.rp - 1)
                with m.Case(c.refreshes + 1):
                    m.d.comb += [command.eq(Command.MODE), address.eq(mode_of(self._burst))]
                    m.d.sync += pause.eq(_MODE_CYCLES - 1)
                with m.Case(c.refreshes + 2):
                    m.d.sync += ready.eq(1)
                with m.Default():
                    m.d.comb += command.eq(Command.REFRESH)
                    m.d.sync += pause.eq(c.rfc - 1)
        m.d.sync += since.eq(Mux(~ready | (since == 0), c.refresh - 1, since - 1))
        with m.If(since == 0):
            m.d.sync += due.eq(1)
        return ready, due


def board_controller(config: Configuration, sdram: Sdram | None, clock_hz: int) -> SdramController | None:
    """The controller for the circuit of ``config`` on a board with ``sdram`` and a clock of ``clock_hz`` Hz; None for
    windows in block RAM. Raises `UnsupportedError` if the board has no such memory, or its clock is too fast, and
    `CapacityError` if the windows do not fit.
    """
    if config.memory == "bram":
        return None
    if config.memory != "sdram" or sdram is None:
        raise UnsupportedError(f"memory of a circuit with a UART must be bram, or sdram on a board that has SDRAM, as "
                               f"`splitjoin boards` says, not {config.memory}")
    cycles, _ = sdram.cycles(clock_hz, _BOARDS_HIGHEST), sdram.burst(config)
    return SdramController(config, sdram, cycles)
