"""The matcher's look-up tables in its proofs: properties of rows, and the assumed order of loads, fills and swaps.

A proof of the tables of all keys would have to state the contents of all their rows. So the solver picks a key for each
lane; the proofs look at the rows of this key, and at the outcomes of this key alone. It may pick any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Mux, Signal, Value

from splitjoin.circuit import geometry
from splitjoin.circuit.geometry import DIGIT, TABLE_WRITE_CYCLES as WRITING
from splitjoin.circuit.wire import Configuration
from splitjoin_hw.hls.lookup import Lookup
from splitjoin_hw.hls.table import TableTest

from .harness import Harness
from .proofs import Fault

STEPS = "a group's tables are written row by row from its request on"
CONTENTS = "each table holds the interval of its probe"


class TableOrder:
    """A monitor of the ports ``fill``, ``swap`` and ``load`` of a matcher with tables for groups of ``group`` probes.

    Attributes:
        rules: The rules that the ports keep, by name: the scanner is shown to keep them, the matcher's proof assumes
            them.
        filled: Since the last swap, the groups whose tables were written.
        pending: The groups with bounds that were loaded and not written to tables.
        age: Cycles since any tables were requested to be written, at most ``TABLE_WRITE_CYCLES`` + 1.
    """

    def __init__(self, h: Harness, *, fill: Value, swap: Value, load: Value, group: int):
        loaded = Cat(load[first:first + group].any() for first in range(0, len(load), group))
        self.filled, self.pending = Signal.like(fill, name="filled"), Signal.like(fill, name="pending")
        self.age = Signal(range(WRITING + 2), name="age", init=WRITING + 1)
        is_written = self.age >= WRITING
        h.m.d.sync += [
            self.filled.eq(Mux(swap, 0, self.filled | fill)), self.pending.eq((self.pending | loaded) & ~fill),
            self.age.eq(Mux(fill.any(), 1, Mux(self.age <= WRITING, self.age + 1, self.age))),
        ]
        self.rules = {
            "each group's tables are written once for a batch, one group at a time":
                ((fill & self.filled) == 0) & ((fill & (fill - 1)[:len(fill)]) == 0),
            "a group's tables are written only after those of the previous group": ~fill.any() | is_written,
            "a batch is looked up only after its tables are written":
                ~swap | (is_written & self.filled.any() & ~(self.pending | loaded | fill).any()),
            "no bounds are loaded while tables are written": ~load.any() | is_written,
            "bounds are loaded for one group at a time, and before its tables are written":
                ((loaded & self.filled) == 0) & (~loaded.any() | ((self.pending & ~loaded) == 0)),
        }


class Tables:
    """The tables of a matcher, for one key in each lane that the solver picks.

    ``filled``: per probe, its tables have been written since the last swap. ``is_picked``: per lane, its port ``keys``
    has the picked key.
    """

    def __init__(self, h: Harness, config: Configuration):
        self._h, self._config = h, config
        dut, self._group = h.dut, min(geometry.PROBE_GROUP, config.probes)
        self._order = TableOrder(h, fill=dut.fill, swap=dut.swap, load=dut.load, group=self._group)
        for name, holds in self._order.rules.items():
            h.assume(name, holds)
        h.assume("one bound is loaded at a time", (dut.load & (dut.load - 1)[:config.probes]) == 0)
        self._keys = [h.constant(f"picked_key{lane}", keys.shape()) for lane, keys in enumerate(dut.keys)]
        self.is_picked = [Value.cast(keys) == Value.cast(key) for keys, key in zip(dut.keys, self._keys, strict=True)]
        self.filled = Cat(self._order.filled[self._group_of(p)] for p in range(config.probes))

    def _group_of(self, probe: int) -> int:
        return probe // self._group

    def prove(self, tests: Sequence[tuple[str, str, TableTest]], collected: Sequence[Any], is_collected: Value,
              held: Sequence[Any], is_held: Value) -> None:
        """Prove what the tables hold.

        Args:
            tests: Per table test its number, the name of the key that it compares, and the test.
            collected: Per probe the bounds of the batch being collected.
            is_collected: Per probe, they are known.
            held: Per probe the bounds of the batch under comparison.
            is_held: Per probe, they are known, and the tables hold them.
        """
        h, m, dut, order, config = self._h, self._h.m, self._h.dut, self._order, self._config
        probes, lanes = range(config.probes), range(config.lanes)
        last = Signal.like(dut.fill, name="last_filled")
        with m.If(dut.fill.any()):
            m.d.sync += last.eq(dut.fill)
        number, begins = h.inner("number"), h.inner("begins")
        numbers, writes, halves, others = ([h.inner(f"{name}_{lane}") for lane in lanes] for name in (
            "number", "writes", "half", "other_half"))
        age, which = h.past(order.age, "age_before"), h.past(last, "last_filled_before")
        busy, was_busy = (order.age >= 1) & (order.age <= WRITING), (age >= 1) & (age <= WRITING)
        steps: list[Value] = [begins == h.past(dut.fill, "fill_before"), ~busy | (number == order.age - 1),
                              order.age != 0, ~busy | ((last & ~order.filled) == 0)]
        for lane in lanes:
            steps += [writes[lane] == Mux(was_busy, which, 0), ~was_busy | (numbers[lane] == age - 1),
                      others[lane] == ~halves[lane]]
        # The bounds of the group that is collected or written are stored once more.
        for p in probes:
            g, place = self._group_of(p), p % self._group
            of_group = order.pending[g] | (last[g] & busy)
            steps.append(~is_collected[p] | order.pending[g] | order.filled[g])
            steps += [~(is_collected[p] & of_group) | (
                h.inner(f"collected{j}_{place}") == test.bound(collected[p][f"lo{j}"])) for j, _, test in tests]
        h.prove(STEPS, Cat(steps).all())

        filled = h.past(order.filled, "filled_before")
        was_collected, was_held = h.past(is_collected, "collected_before"), h.past(is_held, "held_before")
        contents: list[Value] = []
        for j, key, test in tests:
            writing = [test.bound(h.past(collected[p][f"lo{j}"], f"collected_lo{j}_{p}")) for p in probes]
            reading = [test.bound(h.past(held[p][f"lo{j}"], f"held_lo{j}_{p}")) for p in probes]
            for lane in lanes:
                code, first = test.key(self._keys[lane][key]), 0
                for n, digit in enumerate(test.digits):
                    row = Cat(code[digit.first:digit.stop], Const(0, DIGIT))[:DIGIT]
                    for g, size in enumerate(geometry.probe_groups(config.probes)):
                        table = f"table{j}_table{n}_{g}_{lane}"
                        read = h.look(table, Cat(row, halves[lane]))
                        written = h.look(table, Cat(row, ~halves[lane]))
                        # This row is still to be written.
                        missing = writes[lane][g] & (numbers[lane] <= row)
                        for place in range(size):
                            p = g * self._group + place
                            for output in range(digit.outputs):
                                bit, at = output * size + place, first + output
                                contents += [
                                    ~was_held[p] | (read[bit] == test.written(row, reading[p])[at]),
                                    ~(was_collected[p] & filled[g]) | missing | (
                                        written[bit] == test.written(row, writing[p])[at])]
                    first += digit.outputs
        h.prove(CONTENTS, Cat(contents).all())


TABLE_FAULTS = (
    Fault(STEPS, Lookup, "(~number.all())", "(number.any())", "__init__"),
    Fault(CONTENTS, Lookup, "half.eq(half ^ swap)", "half.eq(half)", "__init__"),
)
