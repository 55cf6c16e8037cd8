"""Tables of the probes of two batches: one is looked up, the other is written meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import memory

from .delays import registered
from .table import DIGIT, TableTest

__all__ = ["WRITING", "Lookup"]

#: Cycles from asking for the tables to be written until, at the earliest, for the swap to that batch.
WRITING = 8


class Lookup:
    """The tables of a region's probes, `TableTest.digits` of each test in each lane; LUT RAM of 16 rows.

    In a cycle with ``fill`` the batch is complete. From the next one on its bounds are what is written, number by
    number of a digit, `splitjoin.hw.hls.table.DIGIT` bits; ``swap``, in the cycle before the first keys are looked up,
    makes that batch the one that they are compared with, and the next one's tables are the other half.
    """

    def __init__(self, m: Module, lanes: int, fill: Value, swap: Value):
        self._m = m
        busy, self.number = Signal(name="fills"), Signal(DIGIT, name="number", reset_less=True)
        half = Signal(name="fills_half")
        with m.If(fill):
            m.d.sync += [busy.eq(1), self.number.eq(0), half.eq(~half)]
        with m.Else():
            m.d.sync += [busy.eq(busy & ~self.number.all()), self.number.eq(self.number + 1)]
        # Registers of its own for each lane, as equal ones would be merged otherwise: all its tables hang on them.
        self._writes, self._at, self._halves = [], [], []
        for lane in range(lanes):
            writes = Signal(name=f"writes_{lane}", attrs={"keep": 1})
            at = Signal(DIGIT + 1, name=f"at_{lane}", reset_less=True, attrs={"keep": 1})
            held = Signal(name=f"half_{lane}", attrs={"keep": 1})
            m.d.sync += [writes.eq(busy), at.eq(Cat(self.number, half)), held.eq(held ^ swap)]
            self._writes.append(writes)
            self._at.append(at)
            self._halves.append(held)

    def written(self, name: str, test: TableTest, bounds: Sequence[Value]) -> list[Value]:
        """Of each table what is written in it, output by output, of each output all probes'."""
        by_probe = [[registered(self._m, f"{name}_{probe}_{n}", bit)
                     for n, bit in enumerate(test.written(self.number, bound))] for probe, bound in enumerate(bounds)]
        found, at = [], 0
        for digit in test.digits:
            found.append(Cat(bits[n] for n in range(at, at + digit.outputs) for bits in by_probe))
            at += digit.outputs
        return found

    def outputs(self, name: str, test: TableTest, lane: int, probes: int, key: Value,
                written: Sequence[Value]) -> list[list[Value]]:
        """Of each of the probes what is looked up for a key of this code, in the order of `TableTest.written`."""
        m = self._m
        found: list[list[Value]] = [[] for _ in range(probes)]
        for n, (digit, data) in enumerate(zip(test.digits, written, strict=True)):
            table = memory.Memory(shape=len(data), depth=2**(DIGIT + 1), init=[], attrs={"ram_style": "distributed"})
            m.submodules[f"{name}_table{n}_{lane}"] = table
            write, read = table.write_port(), table.read_port(domain="comb")
            at = Cat(key[digit.first:digit.stop], Const(0, DIGIT))[:DIGIT]
            m.d.comb += [write.en.eq(self._writes[lane]), write.addr.eq(self._at[lane]), write.data.eq(data),
                         read.addr.eq(Cat(at, self._halves[lane]))]
            for output in range(digit.outputs):
                for probe in range(probes):
                    found[probe].append(read.data[output * probes + probe])
        return found
