"""Look-up tables of the probes of two batches: one batch's are read while the other's are written."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import memory

from splitjoin.circuit import geometry
from splitjoin.circuit.geometry import DIGIT

from .delays import Delays, registered
from .table import TableTest


class Lookup:
    """The tables of a region's probes, in each lane one for each of `TableTest.digits` of each test; LUT RAM.

    A bit of ``fill`` says that the bounds of a group of probes are complete. From the next cycle on the group's tables
    are written, one digit value per cycle, so that the bounds of only one group need be stored. ``swap``, in the cycle
    before the first keys are looked up, exchanges the halves of each table: keys are looked up in the half that was
    written, and the next batch is written to the other.
    """

    def __init__(self, m: Module, lanes: int, fill: Value, swap: Value):
        self._m = m
        self.number = _number(m, "number", fill.any())
        # Each lane's tables are driven by its own registers. Each register depends on itself, as synthesis would merge
        # equal ones otherwise.
        begins = registered(m, "begins", fill)
        self._writes, self._at, self._halves = [], [], []
        for lane in range(lanes):
            number = _number(m, f"number_{lane}", begins.any())
            writes = Signal(len(fill), name=f"writes_{lane}")
            half, other = Signal(name=f"half_{lane}"), Signal(name=f"other_half_{lane}", init=1)
            m.d.sync += [writes.eq(begins | (writes & (~number.all()).replicate(len(fill)))),
                         half.eq(half ^ swap), other.eq(other ^ swap)]
            self._writes.append(writes)
            self._at.append(Cat(number, other))
            self._halves.append(half)

    def collected(self, name: str, code: Delays, loads: Delays) -> list[Signal]:
        """The bounds, in ``code``, of the group being collected; ``loads``: one bit per place in the batch, set for the
        place that a bound is loaded to.
        """
        load, found = loads.at(0), []
        for place in range(min(geometry.PROBE_GROUP, len(load))):
            bound = Signal(len(code.at(0)), name=f"{name}_{place}", reset_less=True)
            with self._m.If(load[place::geometry.PROBE_GROUP].any()):
                self._m.d.sync += bound.eq(code.at(0))
            found.append(bound)
        return found

    def written(self, name: str, test: TableTest, bounds: Sequence[Value]) -> list[list[list[Value]]]:
        """The write data of the tables: per digit and output, one bit for each of a group's ``bounds``."""
        m, number = self._m, self.number
        by_probe = [[registered(m, f"{name}_{place}_{n}", bit) for n, bit in enumerate(test.written(number, bound))]
                    for place, bound in enumerate(bounds)]
        found, at = [], 0
        for digit in test.digits:
            found.append([[bits[n] for bits in by_probe] for n in range(at, at + digit.outputs)])
            at += digit.outputs
        return found

    def outputs(self, name: str, test: TableTest, lane: int, probes: int, key: Value,
                written: Sequence[list[list[Value]]]) -> list[list[Value]]:
        """The bits looked up for coded ``key``, per probe, in the order of `TableTest.written`."""
        m = self._m
        found: list[list[Value]] = [[] for _ in range(probes)]
        for n, (digit, data) in enumerate(zip(test.digits, written, strict=True)):
            at = Cat(key[digit.first:digit.stop], Const(0, DIGIT))[:DIGIT]
            for group, first in enumerate(range(0, probes, geometry.PROBE_GROUP)):
                size = min(geometry.PROBE_GROUP, probes - first)
                bits = Cat(bit for output in data for bit in output[:size])
                table = memory.Memory(shape=len(bits), depth=2**(DIGIT + 1), init=[],
                                      attrs={"ram_style": "distributed"})
                m.submodules[f"{name}_table{n}_{group}_{lane}"] = table
                write, read = table.write_port(), table.read_port(domain="comb")
                m.d.comb += [write.en.eq(self._writes[lane][group]), write.addr.eq(self._at[lane]), write.data.eq(bits),
                             read.addr.eq(Cat(at, self._halves[lane]))]
                for output in range(digit.outputs):
                    for place in range(size):
                        found[first + place].append(read.data[output * size + place])
        return found


def _number(m: Module, name: str, begins: Value) -> Signal:
    """Counter of a digit's values, 0 in the cycle after ``begins``."""
    number = Signal(DIGIT, name=name, reset_less=True)
    m.d.sync += number.eq(Mux(begins, 0, number + 1))
    return number
