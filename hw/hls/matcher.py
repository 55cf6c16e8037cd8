"""The predicate as a datapath: interval tests on integer keys, combined by AND and OR."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from splitjoin.device.wire import Configuration, Tree

from ..layouts import other, struct

__all__ = ["Matcher"]


class Matcher(wiring.Component):
    """Compares the keys of a stored tuple with the bounds that a probe brought.

    Ports: ``keys`` (stored tuple of stream ``side``), ``bounds`` (probe of the other stream), ``match``. Fully
    pipelined: ``match`` belongs to the inputs of ``latency`` cycles ago.
    """

    #: Cycles from inputs to output: one for the comparators, one for the Boolean tree.
    latency = 2

    def __init__(self, config: Configuration, side: str):
        self._config, self._side = config, side
        super().__init__({
            "keys": In(struct(config.keys(side))),
            "bounds": In(struct(config.bounds(other(side)))),
            "match": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        tests = []
        for j, (r, s) in enumerate(self._config.tests):
            key = self.keys[f"key{r if self._side == 'r' else s}"]
            above, below = Signal(name=f"above{j}"), Signal(name=f"below{j}")
            m.d.sync += [above.eq(key >= self.bounds[f"lo{j}"]), below.eq(key <= self.bounds[f"hi{j}"])]
            tests.append(above & below)

        def combine(tree: Tree):
            if isinstance(tree, int):
                return tests[tree]
            op, *operands = tree
            return reduce(and_ if op == "and" else or_, map(combine, operands))

        m.d.sync += self.match.eq(combine(self._config.tree))
        return m
