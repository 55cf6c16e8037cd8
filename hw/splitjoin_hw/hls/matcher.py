"""The predicate as a datapath: interval, sum and formula tests on integer keys, combined by AND and OR, many pairs a
cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_, or_

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.formula import input_slot
from splitjoin.circuit.geometry import probe_groups
from splitjoin.circuit.schedule import SUM_STAGES, Gate
from splitjoin.circuit.wire import Configuration
from splitjoin.hls.graph import Node
from splitjoin.lang.schema import other_side

from ..layouts import struct
from ..tech.target import family
from .compare import Comparison, WidthTest
from .delays import Delays
from .graph import pipelined
from .lookup import Lookup
from .sums import sum_test
from .table import TableTest


class Matcher(wiring.Component):
    """Compares each of ``lanes`` stored tuples with each of ``probes`` probes, whose bounds it holds.

    The bounds of the batch under comparison, and those of the batch being collected, are in registers next to their
    comparators (double buffering): batches are swapped between two cycles. Keys and bounds are held and compared in the
    codes of the FPGA family that the circuit is built for (`splitjoin_hw.tech.order`).

    Inputs of later pipeline stages are delayed before they fan out: keys, and with them the fields of a batch, have
    delay lines shared by many pairs, so that each pair has registers for outcomes only.

    Ports:
        ``keys``: the stored tuples of stream ``side``, one per lane.
        ``bounds``, ``hold``: the bounds of a probe of the other stream are registered in a cycle without ``hold``.
        ``load``: one bit per place in the batch being collected; the registered bounds are loaded to this place.
        ``swap``: keys from the *next* cycle on are compared with the batch collected so far.
        ``fill``: with tables only; one bit per group of probes (`splitjoin.circuit.geometry.PROBE_GROUP`), whose tables
        are written. It is given once for each group of a batch, with the group's last ``load`` or later, and at least
        ``TABLE_WRITE_CYCLES`` cycles before the next group's ``fill``, the next ``load`` and the swap.
        ``match``: bit ``probe · lanes + lane``, for the keys of ``latency`` cycles ago.

    With ``constant`` there are no registers for bounds, and no ports ``hold``, ``load`` and ``swap``: ``bounds`` are
    those of the only probe, and stay from its first key until its last match. With ``each`` there are neither:
    ``bounds`` come with the keys that are compared with them.
    """

    def __init__(self, config: Configuration, side: str, *, constant: bool = False, each: bool = False):
        if (constant or each) and (config.probes != 1 or config.tables):
            raise ValueError(f"A matcher of constant bounds must have one probe and no tables, not {config.probes!r} "
                             f"and tables={config.tables!r}")
        self._config, self._side, self._constant, self._each = config, side, constant or each, each
        super().__init__({
            "keys": In(struct(config.keys(side))).array(config.lanes),
            "bounds": In(struct(config.bounds(other_side(side)))),
            **({} if self._constant else {"hold": In(1), "load": In(config.probes), "swap": In(1)}),
            **({"fill": In(len(probe_groups(config.probes)))} if config.tables else {}),
            "match": Out(config.probes * config.lanes),
        })

    @property
    def latency(self) -> int:
        """Cycles from keys to match: the codes, the tests, the Boolean tree (`splitjoin.circuit.schedule`)."""
        return self._config.stages

    def elaborate(self, platform) -> Module:
        m = Module()
        config, built_for = self._config, family(platform)
        n = "rs".index(self._side)
        slots = [test[n] for test in config.tests]  # per test, the key that it compares
        widths = dict(config.keys(self._side).fields)
        tests = [_test(config, built_for, widths[f"key{slot}"], wide)
                 for slot, wide in zip(slots, config.test_widths, strict=True)]

        # All inputs are coded and registered; registers of data need no reset.
        swaps, loads = (Delays(m, Const(0) if self._constant else getattr(self, name), name, reset_less=False)
                        for name in ("swap", "load"))
        coded: dict[str, Delays] = {}
        for j, test in enumerate(tests):
            if isinstance(test, TableTest):
                low = self._taken(m, f"lo{j}", self.bounds[f"lo{j}"])
                # The bound is coded behind the register: the wires to it are long where one bound has many comparators.
                coded[f"table{j}"] = Delays(m, test.bound(low.at(0)), f"table{j}")
                if test.low:
                    coded[f"lo{j}"] = Delays(m, low.at(0)[:test.low], f"lo{j}")
                continue
            for end in test.ends:
                for name, code in _parts(f"{end}{j}", test.bounds(self.bounds[f"{end}{j}"])):
                    coded[name] = self._taken(m, name, code)
        for j, sum_ in enumerate(config.sums):
            for name in [f"at{j}_{axis}" for axis in range(len(sum_.axes))] + [f"limit{j}"] * sum_.limited:
                coded[name] = self._taken(m, name, self.bounds[name])
        for key in config.formula_keys(other_side(self._side)):
            coded[f"key{key}"] = self._taken(m, f"probe_key{key}", self.bounds[f"key{key}"])
        lanes: list[dict[str, Delays]] = []
        for lane, keys in enumerate(self.keys):
            codes: dict[str, Delays] = {}
            for j, (slot, test) in enumerate(zip(slots, tests, strict=True)):
                if isinstance(test, TableTest):
                    codes[f"table{j}"] = Delays(m, test.key(keys[f"key{slot}"]), f"table{j}_{lane}")
                    continue
                for name, code in _parts(_key(test, slot), test.keys(keys[f"key{slot}"])):
                    codes.setdefault(name, Delays(m, code, f"{name}_{lane}"))
            read = [key for sum_ in config.sums for key in (*((axis.r, axis.s)[n] for axis in sum_.axes), sum_.rest[n])]
            for number in (*read, *config.formula_keys(self._side)):
                if number is not None and f"key{number}" not in codes:
                    codes[f"key{number}"] = Delays(m, keys[f"key{number}"], f"key{number}_{lane}")
            lanes.append(codes)

        batch: list[_Held | _Constant] = [
            _Constant(coded, self._each) if self._constant else _Held(m, probe, coded, loads, swaps)
            for probe in range(config.probes)]
        found = self._look_up(m, tests, coded, lanes, loads, swaps)
        for probe, held in enumerate(batch):
            for lane, codes in enumerate(lanes):
                name = f"{probe}_{lane}"
                outcomes = [
                    self._looked_up(m, f"{j}_{name}", j, test, found[j][lane][probe], codes, held)
                    if isinstance(test, TableTest) else self._within(m, f"{j}_{name}", j, slot, test, codes, held)
                    for j, (slot, test) in enumerate(zip(slots, tests, strict=True))]
                outcomes += [self._sum(m, f"sum{j}_{name}", j, codes, held) for j in range(len(config.sums))]
                outcomes += [] if config.formula is None else [self._formula(m, f"formula_{name}", codes, held)]
                m.d.sync += self.match[probe * config.lanes + lane].eq(
                    _combined(m, name, config.schedule.root, outcomes))
        return m

    def _taken(self, m: Module, name: str, value: Value) -> Delays:
        if self._constant:
            return Delays(m, value, name)
        taken = Signal(len(value), name=name, reset_less=True)
        with m.If(~self.hold):
            m.d.sync += taken.eq(value)
        return Delays(m, taken, name)

    def _within(self, m: Module, name: str, j: int, slot: int, test: Comparison | WidthTest, codes: dict[str, Delays],
                held: _Held | _Constant) -> Delays:
        """The outcome of interval test ``j``, delayed to the stage of all tests' outcomes."""
        cut = test.cycles if isinstance(test, Comparison) else 1
        keys = [codes[_part(_key(test, slot), n)].at(n + 1) for n in range(cut)]
        ends = [[held.at(_part(f"{end}{j}", n), n + 1) for n in range(cut)] for end in test.ends]
        return _later(m, test.within(m, name, keys, *ends), f"within{name}",
                      self._config.schedule.together - 1 - test.cycles)

    def _look_up(self, m: Module, tests: Sequence[Comparison | WidthTest | TableTest], coded: dict[str, Delays],
                 lanes: list[dict[str, Delays]], loads: Delays, swaps: Delays) -> dict[int, list[list[list[Value]]]]:
        if not self._config.tables:
            return {}
        lookup, found = Lookup(m, len(lanes), self.fill, swaps.at(1)), {}
        for j, test in enumerate(tests):
            if isinstance(test, TableTest):
                name = f"table{j}"
                bounds = lookup.collected(f"collected{j}", coded[name], loads)
                written = lookup.written(f"written{j}", test, bounds)
                found[j] = [lookup.outputs(name, test, lane, self._config.probes, codes[name].at(1), written)
                            for lane, codes in enumerate(lanes)]
        return found

    def _looked_up(self, m: Module, name: str, j: int, test: TableTest, outputs: list[Value], codes: dict[str, Delays],
                   held: _Held | _Constant) -> Delays:
        """The outcome of table test ``j``, delayed to the stage of all tests' outcomes."""
        low = held.at(f"lo{j}", 1) if test.low else None
        schedule = self._config.schedule
        return _later(m, test.within(m, name, outputs, codes[f"table{j}"].at(1), low), f"within{name}",
                      schedule.together - schedule.ready[j])

    def _sum(self, m: Module, name: str, j: int, codes: dict[str, Delays], held: _Held | _Constant) -> Delays:
        """The outcome of sum test ``j``, delayed to the stage of all tests' outcomes."""
        sum_, n, schedule = self._config.sums[j], "rs".index(self._side), self._config.schedule
        rest, apart = sum_.rest[n], self._config.registers.sums
        ready = schedule.ready[len(self._config.tests) + j]
        outcome = sum_test(
            m, name, sum_, [codes[f"key{(axis.r, axis.s)[n]}"].at(1) for axis in sum_.axes],
            [held.at(f"at{j}_{axis}", 1) for axis in range(len(sum_.axes))],
            None if rest is None else codes[f"key{rest}"].at(SUM_STAGES + (apart and sum_.wide)),
            held.at(f"limit{j}", ready - 1) if sum_.limited else None, apart=apart)
        return _later(m, outcome, f"{name}_later", schedule.together - ready)

    def _formula(self, m: Module, name: str, codes: dict[str, Delays], held: _Held | _Constant) -> Delays:
        """The outcome of the formula test, delayed to the stage of all tests' outcomes."""
        pipeline, schedule = self._config.formula, self._config.schedule
        assert pipeline is not None

        def column(node: Node, cycle: int = 0) -> Value:
            key = f"key{input_slot(node)}"
            value = codes[key].at(1 + cycle) if node.side == self._side else held.at(key, 1 + cycle)
            return Cat(value[:-1], ~value[-1]).as_signed() if node.low < 0 else value

        outcome, = pipelined(m, name, pipeline, column, column)
        return _later(m, outcome, f"{name}_later", schedule.together - schedule.ready[-1])


class _Constant:
    """The bounds of the only probe, which are the same for keys of any age, or come with ``each`` of them."""

    def __init__(self, coded: dict[str, Delays], each: bool):
        self._coded, self._each = coded, each

    def at(self, name: str, age: int) -> Value:
        """The field ``name`` for keys of ``age`` cycles ago."""
        return self._coded[name].at(age if self._each else 0)


class _Held:
    """The bounds of one probe of the batch under comparison, delayed to match keys of any age."""

    def __init__(self, m: Module, probe: int, coded: dict[str, Delays], loads: Delays, swaps: Delays):
        self._m, self._probe, self._coded, self._loads, self._swaps = m, probe, coded, loads, swaps
        self._held: dict[tuple[str, int], Signal] = {}

    def at(self, name: str, age: int) -> Value:
        """The field ``name`` for keys of ``age`` cycles ago."""
        if (name, age) not in self._held:
            m = self._m
            code = self._coded[name].at(age - 1)
            shown = f"{name}_{age}" if age > 1 else name
            collected = Signal(len(code), name=f"collected{self._probe}_{shown}", reset_less=True)
            held = Signal(len(code), name=f"held{self._probe}_{shown}", reset_less=True)
            with m.If(self._loads.at(age - 1)[self._probe]):
                m.d.sync += collected.eq(code)
            with m.If(self._swaps.at(age)):
                m.d.sync += held.eq(collected)
            self._held[name, age] = held
        return self._held[name, age]


def _test(config: Configuration, built_for: str, width: int, wide: int | None) -> Comparison | WidthTest | TableTest:
    """The test on keys of ``width`` bits; ``wide``: its width if that is constant, else None."""
    if wide is None:
        return Comparison(built_for, width, config.registers.chain)
    if config.tables:
        return TableTest(built_for, width, wide, apart=config.registers.digits)
    return WidthTest(built_for, width + 1, wide, apart=config.registers.digits)


def _later(m: Module, value: Value, name: str, cycles: int) -> Delays:
    """The delay line of ``value``, which is itself ``cycles`` registers late."""
    return Delays(m, Delays(m, value, name).at(cycles), f"{name}_waiting")


def _key(test: Comparison | WidthTest, slot: int) -> str:
    return f"code{slot}" if isinstance(test, Comparison) else f"key{slot}"


def _parts(name: str, codes: list[Value]) -> list[tuple[str, Value]]:
    return [(_part(name, n), code) for n, code in enumerate(codes)]


def _part(name: str, n: int) -> str:
    """The name of part ``n`` of a comparison of ``name``."""
    return f"{name}_{n}" if n else name


def _combined(m: Module, name: str, root: Gate | int, outcomes: list[Delays]) -> Value:
    """The value of the Boolean tree ``root`` at its stage; ``outcomes``: those of the tests, at stage 0."""
    made: dict[int, Delays] = {}
    numbers = iter(range(10**6))

    def at(node: Gate | int, stage: int) -> Value:
        if isinstance(node, int):
            return outcomes[node].at(stage)
        if id(node) not in made:
            inputs = [at(part, node.stage) for part in node.inputs]
            value = reduce(and_ if node.op == "and" else or_, inputs)
            made[id(node)] = Delays(m, value, f"gate{next(numbers)}_{name}")
        return made[id(node)].at(stage - node.stage)

    return at(root, root.stage if isinstance(root, Gate) else 0)
