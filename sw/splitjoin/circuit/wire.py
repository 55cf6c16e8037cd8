"""The contract between host and circuit: configuration, records, registers and the ABI hash, defined once.

Plain Python without any HDL: the circuits (`splitjoin_hw`), the drivers, the benches and the Verilog sidecar all read
these definitions. Fields are packed least significant first, without gaps, and a record is padded to whole 32-bit
words.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any

from splitjoin.base.errors import check
from splitjoin.hls.pipeline import ScheduledGraph
from splitjoin.plan.plan import Tree

from .core_kinds import KINDS, CoreKind, kind_names
from .fold_parts import FoldPart, FoldValue
from .formula import input_slot
from .parameters import BuildParameters, declared, within
from .registers import COUNTERS, REGISTERS, Register
from .schedule import PipelineRegisters, Schedule
from .sums import Axis, Sum

__all__ = ["NO_ITEM", "ROW_BITS", "WORD_BITS", "Axis", "Configuration", "ItemKind", "Op", "OrderMode", "Record", "Sum",
           "item_record"]

WORD_BITS = 32
#: Width of row ids in circuits, and on the wire unless a configuration says less.
ROW_BITS = 32
_DECLARED = BuildParameters.__dataclass_fields__
#: Version of the ABI, incremented whenever the meaning of a record or register changes while its layout stays.
ABI_VERSION = 2


class Op(IntEnum):
    """The kind of an input record."""

    TUPLE = 0
    #: A heartbeat: event time has reached ``ts``; expires tuples, yields nothing.
    TICK = 1
    #: End of input: a last star closes every open group, then an END item follows.
    FLUSH = 2
    #: From here on the tuples stored in core number ``body`` are visible to probes (``stream`` 0) or masked (1).
    MASK = 3


class ItemKind(IntEnum):
    """The kind of an output record; PAIR and STAR have the values of `splitjoin.engines.device`."""

    PAIR = 0
    STAR = 1
    END = 2
    #: Within the circuit only: a star between the slices of one probe (order ``inner``).
    SLICE = 3


#: The kind at a place of an output record that holds no item (`Configuration.output_record`). SLICE never leaves.
NO_ITEM = 3


class OrderMode(IntEnum):
    """The values of the ORDER register."""

    NONE = 0
    OUTER = 1
    TOTAL = 2
    INNER = 3


@dataclass(frozen=True)
class Record:
    """Named bit fields, least significant first."""

    fields: tuple[tuple[str, int], ...]

    @property
    def width(self) -> int:
        """Bits of all fields together."""
        return sum(w for _, w in self.fields)

    @property
    def words(self) -> int:
        """32-bit words of the padded record."""
        return -(-self.width // WORD_BITS)

    def offsets(self) -> dict[str, tuple[int, int]]:
        """Name → (first bit, width)."""
        out, at = {}, 0
        for name, width in self.fields:
            out[name] = (at, width)
            at += width
        return out


@dataclass(frozen=True, kw_only=True)
class Configuration(BuildParameters):
    """The complete configuration of a circuit; circuits with equal configurations are identical.

    Attributes:
        keys_r, keys_s: RegionWidths in bits (1 to 64) of the comparison keys that R's and S's tuples are stored with.
        tests: Per interval test the index into ``keys_r`` and into ``keys_s``: an R probe holds bounds for the S key,
            an S probe holds bounds for the R key.
        sums: Sum tests: per axis a probe holds its place among the other stream's keys.
        tree: How the tests combine; the sum tests are numbered on from the interval tests, and the formula test from
            these.
        capacity: The capacity of `BuildParameters`, never None here.
        core: The name of the cores' kind, of `splitjoin.circuit.core_kinds.KINDS`.
        index: The tests whose keys the cores' index is built on, each of which must hold for every match: for ``hash``
            one or more, for ``bucket`` one or two; empty for ``scan``.
        time_bits: Width of event times, 0 (no RANGE windows) or 2 to 64.
        registers: Pipeline registers of the datapath beside those that every datapath has.
        widths: The constant width of each test's intervals (high end minus low end), of which a probe then holds the
            low end alone; None where it holds both ends, as always for tests of the index. Empty if all are None.
        formula: The pipeline of the formula test, whose inputs are keys (`splitjoin.circuit.formula.Formula`); None
            without one. A probe holds its own keys for it.
        values: The values that S's tuples are stored with, beside their keys, to be folded.
        folds: The parts of the state that the partners of each R probe are folded to; empty for circuits whose pairs
            leave. Pairs of S probes leave either way, unless ``whole_states``. With an ``add``, one unit folds them in
            the order of their arrival, behind the gather trees.
        first_hits: True if of the pairs of S probes only the first one of each tuple of R leaves. It demands folds.
        whole_states: True if partners that come after a tuple of R are folded too, so that no pairs leave, and states
            leave when R's tuples expire. It demands folds, without row ids as values and without ``first_hits``.
    """

    keys_r: tuple[int, ...]
    keys_s: tuple[int, ...]
    tests: tuple[tuple[int, int], ...]
    tree: Tree
    capacity: int = field(default=1024, metadata=_DECLARED["capacity"].metadata)
    core: str = field(default="scan", metadata=_DECLARED["core"].metadata)
    index: tuple[int, ...] = ()
    time_bits: int = 0
    sums: tuple[Sum, ...] = ()
    registers: PipelineRegisters = field(default_factory=PipelineRegisters)
    widths: tuple[int | None, ...] = ()
    formula: ScheduledGraph | None = None
    values: tuple[FoldValue, ...] = ()
    folds: tuple[FoldPart, ...] = ()
    first_hits: bool = False
    whole_states: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check("capacity", self.capacity, self.capacity is not None, "a power of two from 2 to 65536")
        check("core", self.core, self.core != "auto", kind_names())  # `splitjoin.circuit.lowering` chooses
        check(f"index of core {self.core}", self.index,
              len(self.index) in self.kind.index_sizes(len(self.tests)) and len(set(self.index)) == len(self.index)
              and all(within(j, 0, len(self.tests) - 1) for j in self.index), self.kind.index_must)
        check("time_bits", self.time_bits, within(self.time_bits, 0, 64) and self.time_bits != 1, "0, or 2 to 64")
        for name, widths in (("keys_r", self.keys_r), ("keys_s", self.keys_s)):
            for width in widths:
                check(f"a width in {name}", width, within(width, 1, 64), "1 to 64 bits")
        for a, b in self.tests:
            check("a test", (a, b), within(a, 0, len(self.keys_r) - 1) and within(b, 0, len(self.keys_s) - 1),
                   "indices into the keys")
        for sum_ in self.sums:
            self._check_sum(sum_)
        for side, widths in (("r", self.keys_r), ("s", self.keys_s)):
            for key, bits in self.formula_keys(side).items():
                check("a key of the formula", key, within(key, 0, len(widths) - 1) and widths[key] == bits,
                      "an index into the keys, of the width of its input")
        check("widths", self.widths, len(self.widths) in (0, len(self.tests)), "one of each test, or empty")
        for j, ((a, b), wide) in enumerate(zip(self.tests, self.test_widths, strict=True)):
            most = 2**min(self.keys_r[a], self.keys_s[b]) - 1
            both = j in self.index or max(self.keys_r[a], self.keys_s[b]) == 64
            check(f"the width of test {j}", wide, wide is None or (not both and within(wide, 0, most)),
                   "None, as it is of the index or has keys of 64 bits" if both else f"None, or 0 to {most}")
        check(f"tables with core {self.core}", self.tables, not self.tables or self.kind.has_tables,
              "False, as it compares a probe with few candidates; give core='scan' for tables")
        check("tables", self.tables, not self.tables or any(wide is not None for wide in self.test_widths),
              "False for a condition without a test that is looked up, an equality or a band of constant width on keys "
              "of less than 64 bits")
        intervals = {None if p.add is None else p.add.interval for p in self.folds}
        check("the intervals of folds in order", intervals, len(intervals) <= 1, "one, or None for all")
        check("whole_states of folds in order", self.whole_states, self.in_order is None or self.whole_states, "True")
        in_order = self.in_order is not None
        check(f"folds with core {self.core}", len(self.folds), not self.folds or self.kind.folds or in_order,
              "0, as it compares a probe with few candidates; give core='scan' to fold")
        check("architecture of a circuit that folds", self.architecture, not self.folds or self.structure.folds,
              "splitjoin")
        for name, given, must in (("row_bits", self.row_bits, ROW_BITS), ("root_width", self.root_width, 1)):
            check(f"{name} of a circuit that folds", given, not self.folds or given == must, str(must))
        check("memory of a circuit that folds", self.memory, not self.folds or self.memory == "bram",
              "bram, as states of tuples lie there; leave out fold='always', and the host folds the circuit's pairs")
        if self.sources > 1:
            check("time_bits with several sources", self.time_bits, self.time_bits == 64, "64, for the gate")
        if self.stage_counters:
            check("core with stage_counters", self.core, self.core == "scan", "scan")
            check("stage_counters of a circuit that folds", True, not self.folds, "False")
        if self.fault_timeout:
            check("fault_timeout of a circuit that folds", self.fault_timeout, not self.folds,
                  "0, as a state of some cores cannot be told from one of all; give fold='never'")
            check(f"fault_timeout with {self.capacity} tuples a core", self.fault_timeout,
                  self.fault_timeout >= self.longest_silence, f"{self.longest_silence} or more")
        check("first_hits", self.first_hits, bool(self.folds) or not self.first_hits, "False without folds")
        check("whole_states", self.whole_states, not self.whole_states or (
            bool(self.folds) and not self.first_hits and not any(value.row for value in self.values)),
            "False without folds, with first_hits, and with row ids as values")
        for value in self.values:
            check("the bits of a value", value.bits, within(value.bits, 0, 64), "0 to 64")
        for part in self.folds:
            check("the values of a fold", part.values, all(within(n, 0, len(self.values) - 1) for n in part.values),
                  "numbers of values")
        check(f"row_bits with windows of up to {self.window_capacity} tuples", self.row_bits,
              2**self.row_bits > self.window_capacity, f"{self.window_capacity.bit_length()} or more")
        check("chain of the registers", self.registers.chain, within(self.registers.chain, 1, 64), "1 to 64 bits")
        check("levels of the registers", self.registers.levels, within(self.registers.levels, 0, 64), "0 to 64")

    def _check_sum(self, sum_: Sum) -> None:
        check("axes of a sum", len(sum_.axes), len(sum_.axes) > 0, "one or more")
        check("the limit of a sum", sum_.limit, within(sum_.limit, -1 if sum_.limited else 0, 2**63 - 2),
               "0 to 2^63 - 2")
        for axis in sum_.axes:
            check("the kind of an axis", axis.kind, axis.kind in ("square", "absolute", "differing"),
                   "square, absolute or differing")
            check("the bits of an axis", axis.bits, within(axis.bits, 1 if axis.kind == "differing" else 2, 64),
                   "2 to 64")
            check("the shift of an axis", axis.shift, within(axis.shift, 0, 63), "0 to 63")
        for keys, used in ((self.keys_r, [a.r for a in sum_.axes] + [sum_.rest[0]]),
                           (self.keys_s, [a.s for a in sum_.axes] + [sum_.rest[1]])):
            check("the keys of a sum", used, all(n is None or within(n, 0, len(keys) - 1) for n in used),
                   "indices into the keys")

    @property
    def longest_silence(self) -> int:
        """More cycles than a core that works can go without taking a record, beginning a comparison or giving a result
        while it has work to do: an operation may expire a whole sub-window, a tuple in four cycles, or follow a chain
        through it.
        """
        return 8 * self.capacity + 32 * self.probes + 4 * self.stages + 128

    @property
    def kind(self) -> CoreKind:
        """The cores' kind."""
        return KINDS[self.core]

    @property
    def window_capacity(self) -> int:
        """The largest ROWS window that fits, in tuples per stream."""
        return self.turns * self.capacity

    @property
    def buckets(self) -> int:
        """Buckets of a region's index, a power of two: one per tuple, and no fewer than a probe may look up."""
        return max(4, self.capacity)

    @property
    def stages(self) -> int:
        """Latency in cycles of the predicate's datapath, from a stored key to its outcome."""
        return self.schedule.stages

    @cached_property
    def schedule(self) -> Schedule:
        """The schedule of the datapath; a test's cycles are those of the slower region."""
        widths = [max(self.keys_r[r], self.keys_s[s]) for r, s in self.tests]
        return Schedule.of(self.registers, widths, [sum_.further for sum_ in self.sums], self.tree, self.test_widths,
                           tables=self.tables, formula=None if self.formula is None else self.formula.ahead)

    @property
    def test_widths(self) -> tuple[int | None, ...]:
        """`widths` for all tests, None where it is empty."""
        return self.widths or (None,) * len(self.tests)

    def formula_keys(self, side: str) -> dict[int, int]:
        """The keys of stream ``side`` that the formula test reads, in their order, and the bits of each."""
        nodes = () if self.formula is None else self.formula.graph.nodes
        return dict(sorted((input_slot(n), n.width) for n in nodes if n.kind == "input" and n.side == side))

    def keys(self, side: str) -> Record:
        """The stored part of a tuple of stream ``side``."""
        return Record(tuple((f"key{i}", w) for i, w in enumerate(self.keys_r if side == "r" else self.keys_s)))

    def bounds(self, side: str) -> Record:
        """The bounds in a *probe of* stream ``side``: per interval test the closed interval for the other stream's key,
        or for constant width the interval's low end modulo twice the key's range (the length of the range if the
        interval is empty); per sum test the probe's place on each axis, and a limit if it depends on the probe; for the
        formula test those of its own keys that this reads.
        """
        other = self.keys_s if side == "r" else self.keys_r
        fields: list[tuple[str, int]] = []
        for j, (a, b) in enumerate(self.tests):
            width = other[b if side == "r" else a]
            fields += [(f"lo{j}", width), (f"hi{j}", width)] if self.test_widths[j] is None else [(f"lo{j}", width + 1)]
        for j, sum_ in enumerate(self.sums):
            fields += [(f"at{j}_{n}", axis.bits) for n, axis in enumerate(sum_.axes)]
            fields += [(f"limit{j}", sum_.limit_bits)] if sum_.limited else []
        fields += [(f"key{n}", bits) for n, bits in self.formula_keys(side).items()]
        return Record(tuple(fields))

    def cells(self, side: str) -> Record:
        """The fields, beside its keys, with which the cores' index stores a tuple of stream ``side``."""
        return Record(self.kind.stored_fields(self, side))

    def reach(self, side: str) -> Record:
        """The fields of a *probe of* stream ``side`` for the cores' index, beside its bounds."""
        return Record(self.kind.probe_fields(self, side))

    def payload(self, side: str) -> Record:
        """The values that a tuple of stream ``side`` is stored with to be folded: only S's are."""
        fields: list[tuple[str, int]] = []
        for n, value in enumerate(self.values if side == "s" else ()):
            fields += [(f"value{n}", value.bits)] if value.bits and not value.row else []
            fields += [(f"present{n}", 1)] if value.nullable else []
            fields += [(f"wrong{n}", 1)] if value.ranged else []
        return Record(tuple(fields))

    @property
    def in_order(self) -> int | None:
        """The cycles from one partner to the next of the unit that folds in order; None where regions fold."""
        of = self.folds[0].add if self.folds else None
        return None if of is None else of.interval

    def stored_values(self, side: str) -> Record:
        """The part of `payload` that cores store: all where they fold."""
        return Record(()) if self.in_order else self.payload(side)

    def brought(self, side: str) -> Record:
        """The values that a *probe of* ``side`` brings a core to be folded: those of S where states leave whole."""
        return self.stored_values(side) if self.whole_states else Record(())

    def body(self, side: str) -> Record:
        """A tuple of stream ``side`` on the link: keys, bounds that are no keys, an index's fields, and values."""
        return Record(tuple(dict.fromkeys(
            self.keys(side).fields + self.bounds(side).fields + self.cells(side).fields + self.reach(side).fields
            + self.payload(side).fields)))

    @cached_property
    def state(self) -> Record:
        """The folded state of an R tuple. ``any``: it has a partner. Of part n: ``added``: a partner that is not passed
        over, if values may be NULL; ``over``: a slot left its width, if it may; ``slot``: a number.
        """
        fields: list[tuple[str, int]] = [("any", 1)]
        for n, part in enumerate(self.folds):
            fields += [(f"added{n}", 1)] if any(self.values[v].nullable for v in part.values) else []
            fields += [(f"over{n}", 1)] if self.may_exceed(part) else []
            fields += [(f"slot{n}_{i}", slot.bits) for i, slot in enumerate(part.slots)]
        return Record(tuple(fields))

    def may_exceed(self, part: FoldPart) -> bool:
        """True if a slot of ``part`` may leave its width, or an argument be outside its own."""
        return part.checked or any(self.values[v].ranged for v in part.values)

    @property
    def beats(self) -> int:
        """Items of kind PAIR, each with 64 bits of a state, before its star, whose ``s`` has the last 32."""
        return max(0, -(-(self.state.width - ROW_BITS) // (2 * ROW_BITS))) if self.folds else 0

    @cached_property
    def input_record(self) -> Record:
        """The host-to-device record. ``body`` is `body` of the record's stream, or a core number, zero-extended."""
        time = (("ts", self.time_bits),) if self.time_bits else ()
        body = max(self.body("r").width, self.body("s").width, (self.cores - 1).bit_length())
        return Record((("op", 2), ("stream", 1), *time, ("body", body)))

    @property
    def item_record(self) -> Record:
        """An item from device to host: `item_record` with row ids of ``row_bits``."""
        return item_record(self.row_bits)

    @property
    def output_record(self) -> Record:
        """The device-to-host record: `item_record`, or so many of them as ``root_width`` says, the first one lowest.

        With two or four, each field's name ends with its item's number, places without an item have kind `NO_ITEM`,
        items take the lowest places, and an END comes alone.
        """
        if self.root_width == 1:
            return self.item_record
        return Record(tuple((f"{name}{n}", width) for n in range(self.root_width)
                            for name, width in self.item_record.fields))

    @property
    def records(self) -> dict[str, Record]:
        """The records on the wire by name: ``input``, the bodies of both streams, ``output``, and ``state`` where the
        circuit folds.
        """
        return {"input": self.input_record, "body_r": self.body("r"), "body_s": self.body("s"),
                "output": self.output_record, **({"state": self.state} if self.folds else {})}

    def describe(self) -> dict[str, Any]:
        """The configuration and its records as plain data, for sidecars and messages."""
        configuration = asdict(self)
        if not self.structure.baseline:  # ``small`` says it
            del configuration["architecture"]
        for found, parameter in declared(type(self)):
            if (parameter.baseline or parameter.later) and configuration[found.name] == found.default:
                del configuration[found.name]
        del configuration["formula"]
        if self.formula is not None:  # it says nothing of a circuit without one
            graph = self.formula.graph
            configuration["formula"] = {
                "nodes": [(n.kind, n.args, n.low, n.high, n.side, n.name, n.places) for n in graph.nodes],
                "outputs": graph.outputs, "cycles": self.formula.cycles}
        if not self.folds:  # they say nothing of a circuit whose pairs leave
            del configuration["values"], configuration["folds"], configuration["first_hits"]
        else:
            for part in configuration["folds"]:  # the ABI of circuits that exist has other fields of pipelines
                lift = part["lift"]
                lift["loop"] = (False,) * len(lift["cycles"])
                del lift["interval"], lift["units"], lift["carried"]
                in_order = [part["add"]["graph"]] if part["add"] else []
                for graph in (lift["graph"], part["merge"], *in_order):
                    del graph["places"]  # lines of source
                if in_order:
                    part["add"]["writes"] = [(of["read"], of["write"]) for of in part["add"].pop("carried")]
                else:
                    del part["add"]
        for name, plain in (("whole_states", False), ("queue", 0), ("fault_timeout", 0), ("root_width", 1)):
            if configuration[name] == plain:  # it says nothing of other circuits
                del configuration[name]
        return {
            "abi_version": ABI_VERSION,
            "configuration": configuration,
            # The state follows from the folds.
            "records": {name: list(record.fields) for name, record in self.records.items() if name != "state"},
            "register_map": [(reg.name, reg.address, reg.bits, reg.access) for reg in REGISTERS],
        }

    def reset_value(self, register: Register) -> int | None:
        """The value of ``register`` in this circuit after a reset and after power-up; None if it counts on at once."""
        if register.name == "abi":
            return self.abi_hash
        return 0 if self.always_zero(register) else register.reset

    def always_zero(self, register: Register) -> bool:
        """True if the circuit is built without what ``register`` shows, which then always reads 0."""
        if register.name == "selected":
            return not (self.region_counters or self.stage_counters or self.fault_timeout)
        return register.name in COUNTERS and register.name not in self.structure.counters

    @cached_property
    def abi_hash(self) -> int:
        """A 64-bit hash of everything that the driver must know; readable from the device's registers."""
        text = json.dumps(self.describe(), sort_keys=True, separators=(",", ":"))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def item_record(row_bits: int = ROW_BITS) -> Record:
    """The device-to-host record. ``r`` and ``s`` are row ids modulo 2^``row_bits``; in a star, the probe stream's field
    is the last probe that it covers.
    """
    return Record((("kind", 2), ("side", 1), ("r", row_bits), ("s", row_bits)))
