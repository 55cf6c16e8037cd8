"""The top of small circuits, which have registers of their own, and no cores and trees."""

from __future__ import annotations

from amaranth.hdl import Module

from ..top import Top
from .join import SmallJoin
from .registers import SmallRegisters


class SmallTop(Top):
    """A `SmallJoin` and its registers."""

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.registers = registers = SmallRegisters(self.config)
        m.submodules.join = join = SmallJoin(self.config)
        m.d.comb += [
            join.i.payload.eq(self._record), join.i.valid.eq(self.i.valid), self.i.ready.eq(join.i.ready),
            self.o.payload.eq(join.o.payload.as_value()), self.o.valid.eq(join.o.valid), join.o.ready.eq(self.o.ready),
            join.settings.eq(registers.settings), registers.overflow.eq(join.overflow),
            *(registers.tuples[n].eq(join.tuples[n]) for n in range(2)),
            *self._bus(registers),
        ]
        return m
