"""The register block of small circuits: a memory holds what is written, and a few registers the settings in use."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.registers import MAGIC, REGISTERS, register
from splitjoin.circuit.wire import WORD_BITS, Configuration

from ..link.registers import bus_ports

#: Width of the tuple counters.
COUNT_BITS = WORD_BITS


def settings_layout(config: Configuration) -> data.StructLayout:
    """Run-time settings, in as few bits as the circuit needs.

    ``precision``: probes between stars, 0 for no stars. ``slice``: tuples between the inner stars of a probe, 0 for
    none. ``rows``, per stream: the window's length, or, with ``unlimited``, none that the capacity could reach.
    ``range``: event times up to which tuples stay, if ``timed``.
    """
    count = unsigned(config.capacity.bit_length())
    time = {"range": data.ArrayLayout(config.time_bits, 2), "timed": unsigned(2)} if config.time_bits else {}
    return data.StructLayout({"precision": unsigned(config.row_bits), "slice": count,
                              "rows": data.ArrayLayout(count, 2), "unlimited": unsigned(2), **time})


class SmallRegisters(wiring.Component):
    """Implements `splitjoin.circuit.registers.REGISTERS` but for counters other than ``tuples_r`` and ``tuples_s``.

    Bus: as of `splitjoin_hw.link.registers.RegisterBlock`; settings change two cycles after their write. What is
    written is read from a memory. A reset cannot clear that, so a bit for each word says whether it was written since;
    if not, the word reads its reset value. ``tuples``: tuples of R and of S so far. ``overflow``: bit 0 or 1: input has
    stopped at a tuple of R, or of S, without room, whose row id is then the number of tuples of its stream.
    """

    def __init__(self, config: Configuration):
        self._config = config
        super().__init__({**bus_ports(), "settings": Out(settings_layout(config)),
                          "tuples": In(COUNT_BITS).array(2), "overflow": In(2)})

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self._config
        m.submodules.words = words = Memory(shape=WORD_BITS, depth=1 << len(self.addr), init=[],
                                            attrs={"ram_style": "block"})
        write, read = words.write_port(), words.read_port()
        # Reset values are 0 or all ones, by the address of the word.
        ones = {reg.address + n: reg.reset != 0 for reg in REGISTERS if reg.access == "rw"
                for n in range(reg.bits // WORD_BITS)}
        addr, w_data, enable = Signal.like(self.addr, name="addr_held"), Signal(WORD_BITS), Signal()
        m.d.sync += [addr.eq(self.addr), w_data.eq(self.w_data),
                     enable.eq(self.w_stb & self.addr.matches(*ones))]
        m.d.comb += [write.addr.eq(addr), write.data.eq(w_data), write.en.eq(enable), read.addr.eq(self.addr)]
        # What a word shows is decided a cycle before it is read: the memory, ones, a count, or a constant. All other
        # registers read 0, whatever the memory holds.
        constants: dict[int, Value] = {register("id").address: Const(MAGIC, WORD_BITS),
                                       register("overflow").address: self.overflow}
        for n in range(2):
            constants[register("abi").address + n] = Const(config.abi_hash >> WORD_BITS * n & 2**WORD_BITS - 1,
                                                           WORD_BITS)
        written, reads_ones = Signal(), Signal()  # the word was written since the reset; it was not, and reads ones
        counts = Signal(2)  # the word shows R's tuples, or S's
        constant = Signal(WORD_BITS)
        with m.Switch(addr):
            for at, value in constants.items():
                with m.Case(at):
                    m.d.comb += constant.eq(value)
        m.d.sync += [written.eq(0), reads_ones.eq(0)]
        for at, one in ones.items():
            since_reset = Signal(name=f"written{at}")
            with m.If(enable & (addr == at)):
                m.d.sync += since_reset.eq(1)
            with m.If(self.addr == at):
                m.d.sync += [written.eq(since_reset), reads_ones.eq(~since_reset if one else 0)]
        shown = (read.data & written.replicate(WORD_BITS)) | constant | reads_ones.replicate(WORD_BITS)
        for n, side in enumerate("rs"):
            m.d.sync += counts[n].eq((self.addr == register(f"tuples_{side}").address)
                                     | ((self.addr == register(f"overflow_row_{side}").address) & self.overflow[n]))
            shown |= self.tuples[n] & counts[n].replicate(WORD_BITS)
        m.d.sync += self.r_data.eq(shown)

        kept = Signal(settings_layout(config), init={"unlimited": 3})
        m.d.comb += [self.settings[name].eq(kept[name]) for name, _ in kept.shape() if name != "timed"]
        for target, at, value in self._settings(m, kept, w_data):
            with m.If(enable & (addr == at)):
                m.d.sync += target.eq(value)
        return m

    def _settings(self, m: Module, kept: data.View, word: Signal) -> list[tuple[Value, int, Value]]:
        """Registers of settings, each with the address of its word, and its value in terms of that word."""
        found: list[tuple[Value, int, Value]] = [
            (kept.precision, register("precision").address, word), (kept.slice, register("slice").address, word)]
        time_bits = self._config.time_bits
        for n, side in enumerate("rs"):
            at = register(f"rows_{side}").address
            found += [(kept.rows[n], at, word), (kept.unlimited[n], at, word[len(kept.rows[n]):].any())]
            if not time_bits:
                continue
            ones = Signal(2, name=f"ones_{side}", init=3)
            m.d.comb += self.settings.timed[n].eq(~ones.all())
            for half in range(2):
                at = register(f"range_{side}").address + half
                found.append((ones[half], at, word.all()))
                if time_bits > WORD_BITS * half:
                    found.append((kept.range[n][WORD_BITS * half:WORD_BITS * (half + 1)], at, word))
        return found
