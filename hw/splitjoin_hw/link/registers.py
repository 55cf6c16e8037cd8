"""The register block: settings, counters and the ABI hash behind a simple synchronous bus."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.registers import MAGIC, REGISTERS
from splitjoin.circuit.wire import Configuration, OrderMode

from ..layouts import settings_layout

#: Bits of each half.
_HALF = 32


class Counter(wiring.Component):
    """Adds up ``step``, of ``bits`` bits, at most 32.

    ``value`` (64 bits): the sum of the steps until two cycles ago, modulo 2^64. The adder is pipelined in two halves;
    the low half is delayed by a cycle, so that both are of the same cycle.
    """

    def __init__(self, bits: int):
        if not (isinstance(bits, int) and 1 <= bits <= _HALF):
            raise ValueError(f"Bits of a step must be an integer from 1 to {_HALF}, not {bits!r}")
        super().__init__({"step": In(bits), "value": Out(2 * _HALF)})

    def elaborate(self, platform) -> Module:
        m = Module()
        sum_ = Signal(_HALF + 1, name="sum")  # the low half and its carry
        low = Signal(_HALF)
        high = Signal(_HALF)
        m.d.sync += [sum_.eq(sum_[:_HALF] + self.step), low.eq(sum_[:_HALF]), high.eq(high + sum_[-1])]
        m.d.comb += self.value.eq(Cat(low, high))
        return m


#: Bits of an address within a group of words, and words per group.
_LOW = 3
_GROUP = 1 << _LOW
#: Times that a word is read again after the address has changed: pipeline stages before the last one.
_EXTRA = 2


def bus_ports() -> dict[str, wiring.Member]:
    """The ports of the register bus."""
    last = REGISTERS[-1]
    return {"addr": In(range(last.address + last.bits // 32)), "w_stb": In(1), "w_data": In(32), "r_data": Out(32)}


class RegisterBlock(wiring.Component):
    """Implements `splitjoin.circuit.registers.REGISTERS`.

    Bus: ``addr`` (a word address); ``w_stb`` with ``w_data`` writes, and settings change four cycles later; ``r_data``
    is the word at the ``addr`` of three cycles ago. Reading the low word of a 64-bit register latches its high word
    for the next read, so that a counter is read consistently. Inputs: one signal per read-only register but ``id``
    and ``abi``.
    """

    def __init__(self, config: Configuration):
        self._config = config
        super().__init__({
            **bus_ports(),
            "settings": Out(settings_layout(config)),
            "select": Out(32),
            **{reg.name: In(reg.bits) for reg in REGISTERS if reg.access == "r" and reg.name not in ("id", "abi")},
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self._config
        values = {"id": Const(MAGIC, 32), "abi": Const(config.abi_hash, 64)}
        for reg in REGISTERS:
            if reg.access == "rw":
                values[reg.name] = Signal(reg.bits, name=reg.name, init=reg.reset)
            elif reg.name not in values:
                values[reg.name] = getattr(self, reg.name)

        # Three pipeline stages: the first registers the bus, which drives all registers, and decodes the word within a
        # group; the second reads that word of each group; the third selects the group. As words come from all over the
        # device, only an AND and an OR precede the second stage.
        addr, w_stb = Signal.like(self.addr, name="addr_held"), Signal(name="w_stb_held")
        w_data = Signal(32, name="w_data_held")
        word_select = Signal(_GROUP)
        m.d.sync += [addr.eq(self.addr), w_stb.eq(self.w_stb), w_data.eq(self.w_data),
                     word_select.eq(Cat(self.addr[:_LOW] == at for at in range(_GROUP)))]
        words = {reg.address + n: values[reg.name][32 * n:32 * n + 32] for reg in REGISTERS
                 for n in range(reg.bits // 32)}
        # High words of the 64-bit registers, by the address of the low word.
        highs = {reg.address: words[reg.address + 1] for reg in REGISTERS if reg.bits == 64}
        groups = range(-(-(1 + max(words)) // _GROUP))
        word, high = (Array(Signal(32, name=f"{name}{n}", reset_less=True) for n in groups)
                      for name in ("word", "high"))
        for read, of in ((word, words), (high, highs)):
            for n in groups:
                m.d.sync += read[n].eq(reduce(or_, (
                    word_select[at % _GROUP].replicate(32) & value for at, value in of.items() if at // _GROUP == n),
                    Const(0, 32)))
        # The address is that of the low, or of the high, word of a 64-bit register.
        is_low, is_high = Signal(name="is_low"), Signal(name="is_high")
        for reg in REGISTERS:
            if reg.access == "rw":
                for n in range(reg.bits // 32):
                    with m.If(w_stb & (addr == reg.address + n)):
                        m.d.sync += words[reg.address + n].eq(w_data)
        group = Signal(range(len(groups)))
        m.d.sync += [group.eq(addr[_LOW:]), is_low.eq(Cat(addr == at for at in highs).any()),
                     is_high.eq(Cat(addr == at + 1 for at in highs).any())]
        # After a change of the address the old word is still read `_EXTRA` times. The latched high word must belong to
        # the low word read before these.
        high_held = [Signal(32, name=f"high_held{n}", reset_less=True) for n in range(_EXTRA + 1)]
        m.d.sync += self.r_data.eq(Mux(is_high, high_held[-1], word[group]))
        with m.If(is_low):
            m.d.sync += [high_held[0].eq(high[group]),
                         *(new.eq(old) for new, old in zip(high_held[1:], high_held, strict=False))]

        m.d.comb += self.select.eq(values["select"])
        # Settings drive loads all over the device, so they are registered here; wide ones are decoded in two stages.
        order = Signal(2)
        upper = Signal()
        m.d.sync += [order.eq(values["order"]), upper.eq(values["order"][2:].any()),
                     self.settings.total.eq(~upper & (order == OrderMode.TOTAL)),
                     self.settings.sorted.eq(~upper & ((order == OrderMode.TOTAL) | (order == OrderMode.INNER)))]
        for side in ("r", "s"):
            window, limit = self.settings[side], values[f"range_{side}"]
            ones = Signal(len(limit) // 16, name=f"ones_{side}")
            m.d.sync += [
                window.rows.eq(values[f"rows_{side}"]),
                window.range.eq(limit[:config.time_bits]),
                ones.eq(Cat(limit[at:at + 16].all() for at in range(0, len(limit), 16))), window.timed.eq(~ones.all()),
                window.precision.eq(values["precision"]),
                window.slice.eq(values["slice"]),
            ]
        return m
