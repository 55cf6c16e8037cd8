"""The join as a component of a user's own Amaranth design."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import data, wiring

from splitjoin.circuit.wire import Configuration

from .circuit import circuit
from .layouts import struct
from .top import Top


class JoinComponent(Top):
    """The circuit of a query, which `splitjoin.component` makes. All ports are in clock domain ``sync``.

    Ports:
        i: Stream of input records in the low bits of the payload, which has whole words of 32 bits.
        o: Stream of result items, in the same way.
        addr: In, the word address of a register.
        w_stb: In, high for the cycle in which ``w_data`` is written to it.
        w_data: In, 32 bits.
        r_data: Out, the word at the address that ``addr`` had three cycles before.

    Write ``description["settings"]`` first. For twenty cycles after a write or a reset, ``i.ready`` is low. A record is
    a view of ``layouts["input"]``, whose field ``body`` holds that of ``layouts["body_r"]`` or ``["body_s"]``. A
    reset of the domain must last for at least one cycle.

    Attributes:
        config: The configuration that the circuit is built for.
        description: The circuit as plain data, as in the JSON file beside the Verilog (docs/wire.md explains the
            records).
    """

    def __init__(self, config: Configuration, description: dict[str, Any]):
        super().__init__(config)
        self.description = description

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.join = join = circuit(self.config)
        wiring.connect(m, wiring.flipped(self), join)
        return m

    @property
    def layouts(self) -> dict[str, data.StructLayout]:
        """The records by name, lowest bits first: those of `splitjoin.circuit.wire.Configuration.records`."""
        return {name: struct(record) for name, record in self.config.records.items()}
