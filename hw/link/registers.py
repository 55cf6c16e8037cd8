"""The register block: settings, counters and the ABI hash behind a simple synchronous bus."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from splitjoin.device.registers import MAGIC, REGISTERS
from splitjoin.device.wire import Configuration, OrderMode

from ..layouts import settings_layout

__all__ = ["RegisterBlock", "bus_ports"]


def bus_ports() -> dict[str, wiring.Member]:
    """The ports of the register bus."""
    last = REGISTERS[-1]
    return {"addr": In(range(last.address + last.bits // 32)), "w_stb": In(1), "w_data": In(32), "r_data": Out(32)}


class RegisterBlock(wiring.Component):
    """Implements `splitjoin.device.registers.REGISTERS`.

    Bus: ``addr`` (a word address); ``w_stb`` with ``w_data`` writes in the next cycle; ``r_data`` holds the word that
    ``addr`` named two cycles ago. Reading the low word of a 64-bit register keeps its high word for the next read, so
    that a counter is read in one piece. Inputs: one signal per read-only register but ``id`` and ``abi``.
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
        no_limit = {"rows_r", "rows_s", "range_r", "range_s"}
        for reg in REGISTERS:
            if reg.access == "rw":
                init = (1 << reg.bits) - 1 if reg.name in no_limit else 0
                values[reg.name] = Signal(reg.bits, name=reg.name, init=init)
            elif reg.name not in values:
                values[reg.name] = getattr(self, reg.name)

        # The bus is looked at by all registers, so it gets a stage of its own. When the address changes, the old one's
        # word is read once more: the high word that is kept is that of the low word read before.
        addr, w_stb, w_data = Signal.like(self.addr), Signal(), Signal(32)
        m.d.sync += [addr.eq(self.addr), w_stb.eq(self.w_stb), w_data.eq(self.w_data)]
        high, latest = Signal(32), Signal(32)
        with m.Switch(addr):
            for reg in REGISTERS:
                value = values[reg.name]
                with m.Case(reg.address):
                    m.d.sync += self.r_data.eq(value[:32])
                    if reg.bits == 64:
                        m.d.sync += [latest.eq(value[32:]), high.eq(latest)]
                    if reg.access == "rw":
                        with m.If(w_stb):
                            m.d.sync += value[:32].eq(w_data)
                if reg.bits == 64:
                    with m.Case(reg.address + 1):
                        m.d.sync += self.r_data.eq(high)
                        if reg.access == "rw":
                            with m.If(w_stb):
                                m.d.sync += value[32:].eq(w_data)

        m.d.comb += self.select.eq(values["select"])
        order = values["order"]
        m.d.comb += [self.settings.total.eq(order == OrderMode.TOTAL),
                     self.settings.sorted.eq((order == OrderMode.TOTAL) | (order == OrderMode.INNER))]
        for side in ("r", "s"):
            window, limit = self.settings[side], values[f"range_{side}"]
            m.d.comb += [
                window.rows.eq(values[f"rows_{side}"]),
                window.range.eq(limit[:config.time_bits]),
                window.timed.eq(~limit.all()),
                window.precision.eq(values["precision"]),
                window.slice.eq(values["slice"]),
            ]
        return m
