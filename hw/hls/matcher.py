"""The predicate as a datapath: interval and sum tests on integer keys, combined by AND and OR, many pairs a cycle."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from splitjoin.device.wire import SUM_STAGES, Configuration, Tree

from ..layouts import other, struct
from ..tech.order import Order, order_of
from ..tech.target import family
from .delays import Delays
from .sums import sum_test

__all__ = ["Matcher"]


class Matcher(wiring.Component):
    """Compares each of ``lanes`` stored tuples with each of ``probes`` probes, whose bounds it holds.

    The bounds of the batch under comparison stand in registers next to their comparators, and so do those of the batch
    that is being collected: a new batch takes over between two cycles. Keys and bounds are held and compared in codes
    of the family that the circuit is built for (`splitjoin.hw.tech.order`).

    What a later stage compares comes later: keys, and with them everything about a batch, are delayed where they are
    one for many pairs, so that only outcomes are registered for each pair.

    Ports:
        ``keys``: the stored tuples of stream ``side``, one a lane.
        ``bounds``, ``hold``: the bounds of a probe of the other stream are taken in a cycle without ``hold``.
        ``load``: the place (one bit each) in the batch being collected that the bounds taken go to.
        ``swap``: the batch collected so far is what the keys of the *next* cycle are compared with.
        ``match``: bit ``probe · lanes + lane``, for the keys of ``latency`` cycles ago.
    """

    def __init__(self, config: Configuration, side: str):
        self._config, self._side = config, side
        super().__init__({
            "keys": In(struct(config.keys(side))).array(config.lanes),
            "bounds": In(struct(config.bounds(other(side)))),
            "hold": In(1),
            "load": In(config.probes),
            "swap": In(1),
            "match": Out(config.probes * config.lanes),
        })

    @property
    def latency(self) -> int:
        """Cycles from keys to match: the codes, the tests, the Boolean tree."""
        return self._config.stages

    def elaborate(self, platform) -> Module:
        m = Module()
        config, built_for = self._config, family(platform)
        n = "rs".index(self._side)
        slots = [test[n] for test in config.tests]  # of each test, the key that it is about
        widths = dict(config.keys(self._side).fields)
        orders = [order_of(built_for, widths[f"key{slot}"]) for slot in slots]

        # Everything arrives coded, a cycle later; registers of data need no reset.
        swaps, loads = (Delays(m, value, name, reset_less=False)
                        for value, name in ((self.swap, "swap"), (self.load, "load")))
        coded: dict[str, Delays] = {}
        for j, order in enumerate(orders):
            for end in ("lo", "hi"):
                coded[f"{end}{j}"] = self._taken(m, f"{end}{j}", order.bound(self.bounds[f"{end}{j}"]))
        for j, sum_ in enumerate(config.sums):
            for name in [f"at{j}_{axis}" for axis in range(len(sum_.axes))] + [f"limit{j}"] * sum_.limited:
                coded[name] = self._taken(m, name, self.bounds[name])
        lanes: list[dict[str, Delays]] = []
        for lane, keys in enumerate(self.keys):
            codes: dict[str, Delays] = {}
            for slot, order in zip(slots, orders, strict=True):
                if f"code{slot}" not in codes:
                    codes[f"code{slot}"] = Delays(m, order.key(keys[f"key{slot}"]), f"code{slot}_{lane}")
            for sum_ in config.sums:
                for key in [(axis.r, axis.s)[n] for axis in sum_.axes] + [sum_.rest[n]]:
                    if key is not None and f"key{key}" not in codes:
                        codes[f"key{key}"] = Delays(m, keys[f"key{key}"], f"key{key}_{lane}")
            lanes.append(codes)

        for probe in range(config.probes):
            held = _Held(m, probe, coded, loads, swaps)
            for lane, codes in enumerate(lanes):
                name = f"{probe}_{lane}"
                tests = _compare(m, name, config, slots, orders, codes, held)
                tests += [self._sum(m, f"sum{j}_{name}", j, codes, held) for j in range(len(config.sums))]
                m.d.sync += self.match[probe * config.lanes + lane].eq(_combine(config.tree, tests))
        return m

    def _taken(self, m: Module, name: str, value: Value) -> Delays:
        taken = Signal(len(value), name=name, reset_less=True)
        with m.If(~self.hold):
            m.d.sync += taken.eq(value)
        return Delays(m, taken, name)

    def _sum(self, m: Module, name: str, j: int, codes: dict[str, Delays], held: _Held) -> Value:
        sum_, n = self._config.sums[j], "rs".index(self._side)
        rest = sum_.rest[n]
        return sum_test(
            m, name, sum_, [codes[f"key{(axis.r, axis.s)[n]}"].at(1) for axis in sum_.axes],
            [held.at(f"at{j}_{axis}", 1) for axis in range(len(sum_.axes))],
            None if rest is None else codes[f"key{rest}"].at(SUM_STAGES),
            held.at(f"limit{j}", SUM_STAGES) if sum_.limited else None)


class _Held:
    """What a probe of the batch under comparison brought, for keys that are so many cycles old."""

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


def _compare(m: Module, name: str, config: Configuration, slots: list[int], orders: list[Order],
             codes: dict[str, Delays], held: _Held) -> list[Value]:
    """The interval tests of one pair, when the sum tests are there."""
    tests: list[Value] = []
    for j, (order, slot) in enumerate(zip(orders, slots, strict=True)):
        key = codes[f"code{slot}"].at(1)
        above, below = Signal(name=f"above{j}_{name}"), Signal(name=f"below{j}_{name}")
        m.d.sync += [above.eq(order.above(m, f"ge{j}_{name}", key, held.at(f"lo{j}", 1))),
                     below.eq(order.below(m, f"le{j}_{name}", key, held.at(f"hi{j}", 1)))]
        tests.append(Delays(m, above & below, f"within{j}_{name}").at(config.stages - 3))
    return tests


def _combine(tree: Tree, tests: list[Value]) -> Value:
    if isinstance(tree, int):
        return tests[tree]
    op, *operands = tree
    return reduce(and_ if op == "and" else or_, (_combine(operand, tests) for operand in operands))
