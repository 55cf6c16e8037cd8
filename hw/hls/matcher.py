"""The predicate as a datapath: interval tests on integer keys, combined by AND and OR, for many pairs a cycle."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from splitjoin.device.wire import Configuration, Tree

from ..layouts import other, struct

__all__ = ["Matcher"]


class Matcher(wiring.Component):
    """Compares each of ``lanes`` stored tuples with each of ``probes`` probes, whose bounds it holds.

    The bounds of the batch under comparison stand in registers next to their comparators, and so do those of the batch
    that is being collected: a new batch takes over between two cycles.

    Ports:
        ``keys``: the stored tuples of stream ``side``, one a lane.
        ``bounds``, ``load``: the bounds of a probe of the other stream, and the place (one bit each) that takes them in
        the batch being collected.
        ``swap``: the batch collected so far is what the keys of the *next* cycle are compared with.
        ``match``: bit ``probe · lanes + lane``, for the keys of ``latency`` cycles ago.
    """

    #: Cycles from keys to match: one for the comparators, one for the Boolean tree.
    latency = 2

    def __init__(self, config: Configuration, side: str):
        self._config, self._side = config, side
        super().__init__({
            "keys": In(struct(config.keys(side))).array(config.lanes),
            "bounds": In(struct(config.bounds(other(side)))),
            "load": In(config.probes),
            "swap": In(1),
            "match": Out(config.probes * config.lanes),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self._config
        matches = []
        for probe in range(config.probes):
            collected = Signal(struct(config.bounds(other(self._side))), name=f"collected{probe}")
            bounds = Signal(struct(config.bounds(other(self._side))), name=f"bounds{probe}")
            with m.If(self.load[probe]):
                m.d.sync += collected.eq(self.bounds)
            with m.If(self.swap):
                m.d.sync += bounds.eq(collected)
            matches += [self._compare(m, keys, bounds, f"{probe}_{lane}") for lane, keys in enumerate(self.keys)]
        m.d.comb += self.match.eq(Cat(matches))
        return m

    def _compare(self, m: Module, keys, bounds, name: str) -> Signal:
        """One pair."""
        tests = []
        for j, (r, s) in enumerate(self._config.tests):
            key = keys[f"key{r if self._side == 'r' else s}"]
            above, below = Signal(name=f"above{j}_{name}"), Signal(name=f"below{j}_{name}")
            m.d.sync += [above.eq(key >= bounds[f"lo{j}"]), below.eq(key <= bounds[f"hi{j}"])]
            tests.append(above & below)

        def combine(tree: Tree):
            if isinstance(tree, int):
                return tests[tree]
            op, *operands = tree
            return reduce(and_ if op == "and" else or_, map(combine, operands))

        match = Signal(name=f"match{name}")
        m.d.sync += match.eq(combine(self._config.tree))
        return match
