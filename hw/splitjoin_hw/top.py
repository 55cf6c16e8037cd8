"""The top of a circuit, of any architecture: link records in, result items out, settings and counters in registers.

`splitjoin_hw.circuit` makes the top for a configuration. Tops share their ports, and all but small ones the registers,
the time that settings take, and the counters.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.wire import WORD_BITS, Configuration, Op, Record

from .layouts import STREAM_R, STREAM_S, input_layout
from .link.registers import Counter, RegisterBlock, bus_ports
from .memory.port import MasterSignature
from .network.skid_buffer import SkidBuffer
from .parts import Submodules

#: Cycles after a write to a register in which no record is accepted: more than settings take to reach their loads.
#: They pass one register per level of the gather tree, which has ten levels with the most cores.
_SETTLING = 20


def padded(record: Record) -> int:
    """Width in bits of a record's port: whole words, at least three, so that every simulator sees a wide vector."""
    return max(3, record.words) * WORD_BITS


def top_ports(config: Configuration) -> dict[str, wiring.Member]:
    """The ports of a top with one stream of records."""
    return {
        "i": In(stream.Signature(padded(config.input_record))),
        "o": Out(stream.Signature(padded(config.output_record))),
        **bus_ports(),
        **({} if config.memory == "bram" else {"m": Out(MasterSignature(config)) if config.cores == 1 else
                                               Out(MasterSignature(config)).array(config.cores)}),
    }


class Top(wiring.Component):
    """The base of the tops of all architectures (`splitjoin.circuit.architectures`).

    Ports: ``i``: input records, padded to whole words. ``o``: result items, padded. ``addr``, ``w_stb``, ``w_data``,
    ``r_data``: the register bus. ``m``: the AXI4 master for external memory, one for each core. ``parts`` adds repeated
    parts as submodules, or, for Verilog, as instances of one module per kind.
    """

    def __init__(self, config: Configuration, parts: Submodules | None = None):
        self.config, self._parts = config, parts or Submodules()
        super().__init__(top_ports(config))

    def elaborate(self, platform) -> Module:
        raise NotImplementedError

    @property
    def _record(self) -> data.View:
        return data.View(input_layout(self.config), self.i.payload[:self.config.input_record.width])

    def _bus(self, registers: Any) -> list[Any]:
        return [
            registers.addr.eq(self.addr), registers.w_stb.eq(self.w_stb), registers.w_data.eq(self.w_data),
            self.r_data.eq(registers.r_data),
        ]

    def driven_by(self, outer: Top) -> list[Any]:
        """Assignments that connect its register bus with that of a top around it."""
        return outer._bus(self)

    def _accepting(self, m: Module, room: Value) -> tuple[Signal, Signal]:
        """True while records are accepted, which demands ``room`` a cycle earlier; and the cycles until settings are
        settled.

        Settings take some cycles to reach the cores and mergers, and the registers derived from them. No record is
        accepted meanwhile, so that settings are stable while records and results are under way.
        """
        settling = Signal(range(_SETTLING + 1), init=_SETTLING)  # after a reset too: not all registers have one
        accepting = Signal()
        m.d.sync += [settling.eq(Mux(self.w_stb, _SETTLING, settling - (settling != 0))),
                     accepting.eq(~self.w_stb & (settling <= 1) & room)]
        return accepting, settling

    def _buffered(self, m: Module, room: Value) -> stream.Interface:
        """The records that are accepted, one of them a cycle later; ``room`` as of `_accepting`."""
        m.submodules.input = buffer = SkidBuffer(input_layout(self.config))
        accepting, _ = self._accepting(m, room)
        m.d.comb += [buffer.i.payload.eq(self._record), buffer.i.valid.eq(self.i.valid & accepting),
                     self.i.ready.eq(buffer.i.ready & accepting)]
        return buffer.o

    def _count(self, m: Module, registers: RegisterBlock, record: data.View, compared: list[Value],
               matched: list[Value]) -> None:
        """Counters. ``compared``, ``matched``: numbers of comparisons and of matches in a cycle."""
        accepted = Signal()
        m.d.comb += accepted.eq(self.i.valid & self.i.ready & (record.op == Op.TUPLE))
        steps = {
            "cycles": 1,
            "tuples_r": accepted & (record.stream == STREAM_R),
            "tuples_s": accepted & (record.stream == STREAM_S),
            "input_stalls": self.i.valid & ~self.i.ready,
            "output_stalls": self.o.valid & ~self.o.ready,
        }
        for name, signals in (("comparisons", compared), ("matches", matched)):
            steps[name] = total(m, signals, name)
        for name, value in steps.items():
            m.submodules[f"{name}_count"] = counter = Counter(Value.cast(value).shape().width)
            step = Signal.like(counter.step, name=f"{name}_step")
            m.d.sync += step.eq(value)
            m.d.comb += [counter.step.eq(step), getattr(registers, name).eq(counter.value)]


def total(m: Module, values: list[Value], name: str) -> Value:
    """The sum of ``values`` some cycles ago: a tree of adders with a register behind each."""
    level = 0
    while True:
        registers = [Signal(value.shape(), name=f"{name}_{level}_{n}") for n, value in enumerate(values)]
        m.d.sync += [register.eq(value) for register, value in zip(registers, values, strict=True)]
        if len(registers) == 1:
            return registers[0]
        values = [a + b for a, b in zip(registers[::2], registers[1::2], strict=False)]
        values += registers[2 * len(values):]
        level += 1
