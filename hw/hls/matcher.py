"""The predicate as a datapath: interval tests on integer keys, combined by AND and OR, for many pairs a cycle."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from splitjoin.device.wire import Configuration, Tree

from ..layouts import other, struct
from ..tech.order import Order, order_of
from ..tech.target import family

__all__ = ["Matcher"]


class Matcher(wiring.Component):
    """Compares each of ``lanes`` stored tuples with each of ``probes`` probes, whose bounds it holds.

    The bounds of the batch under comparison stand in registers next to their comparators, and so do those of the batch
    that is being collected: a new batch takes over between two cycles. Keys and bounds are held and compared in codes
    of the family that the circuit is built for (`splitjoin.hw.tech.order`).

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
        """Cycles from keys to match: the codes, the comparators, the Boolean tree."""
        return self._config.stages

    def elaborate(self, platform) -> Module:
        m = Module()
        config, built_for = self._config, family(platform)
        slots = [r if self._side == "r" else s for r, s in config.tests]  # of each test, the key that it is about
        widths = dict(config.keys(self._side).fields)
        orders = [order_of(built_for, widths[f"key{slot}"]) for slot in slots]

        # Everything arrives coded, a cycle later; registers of data need no reset.
        swap = Signal()
        m.d.sync += swap.eq(self.swap)
        coded = []
        for j, order in enumerate(orders):
            for end in ("lo", "hi"):
                code = Signal(order.bits, name=f"{end}{j}", reset_less=True)
                with m.If(~self.hold):
                    m.d.sync += code.eq(order.bound(self.bounds[f"{end}{j}"]))
                coded.append(code)
        lanes: list[list[Signal]] = []
        for lane, keys in enumerate(self.keys):
            codes: dict[int, Signal] = {}
            for slot, order in zip(slots, orders, strict=True):
                if slot not in codes:
                    codes[slot] = Signal(order.bits, name=f"key{slot}_{lane}", reset_less=True)
                    m.d.sync += codes[slot].eq(order.key(keys[f"key{slot}"]))
            lanes.append([codes[slot] for slot in slots])

        for probe in range(config.probes):
            bounds = []
            for code in coded:
                collected = Signal.like(code, name=f"collected{probe}_{code.name}")
                held = Signal.like(code, name=f"held{probe}_{code.name}")
                with m.If(self.load[probe]):
                    m.d.sync += collected.eq(code)
                with m.If(swap):
                    m.d.sync += held.eq(collected)
                bounds.append(held)
            for lane, keys in enumerate(lanes):
                tests = _compare(m, f"{probe}_{lane}", orders, keys, bounds)
                m.d.sync += self.match[probe * config.lanes + lane].eq(_combine(config.tree, tests))
        return m


def _compare(m: Module, name: str, orders: list[Order], keys: list[Signal], bounds: list[Signal]) -> list[Value]:
    """The tests of one pair, a cycle later."""
    tests = []
    for j, (order, key) in enumerate(zip(orders, keys, strict=True)):
        low, high = bounds[2 * j:2 * j + 2]
        above, below = Signal(name=f"above{j}_{name}"), Signal(name=f"below{j}_{name}")
        m.d.sync += [above.eq(order.above(m, f"ge{j}_{name}", key, low)),
                     below.eq(order.below(m, f"le{j}_{name}", key, high))]
        tests.append(above & below)
    return tests


def _combine(tree: Tree, tests: list[Value]) -> Value:
    if isinstance(tree, int):
        return tests[tree]
    op, *operands = tree
    return reduce(and_ if op == "and" else or_, (_combine(operand, tests) for operand in operands))
