"""A wrapper that lets a circuit with more ports than a device has pins be placed, routed and timed by itself."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, ClockSignal, Instance, Module, ResetSignal, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

#: Bits that one register of the XOR tree folds: the inputs of a LUT4.
_FOLD = 4


class PinHarness(wiring.Component):
    """An instance of module ``name`` with the ports of ``part`` between two shift registers of one pin each.

    A register drives every input and samples every output, so that the reported clock is that of the part. A pipelined
    tree of XORs folds all outputs onto ``o``, so that synthesis removes none of them.
    """

    def __init__(self, part: wiring.Component, name: str):
        self._part, self._name = part, name
        super().__init__({"i": In(1), "o": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        ports: dict[str, Any] = {"i_clk": ClockSignal(), "i_rst": ResetSignal()}
        outputs = []
        last: Value = self.i
        for path, member, value in self._part.signature.flatten(self._part):
            name = "__".join(map(str, path))
            signal = Signal(len(Value.cast(value)), name=name, reset_less=True)
            if member.flow == In:
                m.d.sync += signal.eq(Cat(last, signal))
                last = signal[-1]
                ports[f"i_{name}"] = signal
            else:
                outputs.append(signal)
                ports[f"o_{name}"] = signal
        m.submodules.part = Instance(self._name, **ports)
        bits = list(Cat(outputs))
        level = 0
        while level == 0 or len(bits) > 1:
            # The first level only registers the outputs.
            step = 1 if level == 0 else _FOLD
            folded = Signal(-(-len(bits) // step), name=f"fold{level}", reset_less=True)
            m.d.sync += [folded[n].eq(Cat(bits[n * step:(n + 1) * step]).xor()) for n in range(len(folded))]
            bits = list(folded)
            level += 1
        m.d.comb += self.o.eq(bits[0])
        return m
