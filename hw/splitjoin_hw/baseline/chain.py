"""SplitJoin's cores on a chain in place of its trees."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.geometry import credit_fifo_depth, order_bits
from splitjoin.circuit.wire import Configuration

from ..gather.tree import add_merger
from ..layouts import input_layout, result_layout
from ..network.distributor import Distributor
from ..network.queue import Queue
from ..parts import Submodules
from ..splitjoin import SplitJoin


class DistributionChain(wiring.Component):
    """Hands every record from core to core: a cycle for each, with a queue at each core, as at a tree's leaves."""

    def __init__(self, config: Configuration):
        self._config = config
        record = stream.Signature(input_layout(config))
        super().__init__({"i": In(record), "o": Out(record).array(config.cores)})

    def elaborate(self, platform) -> Module:
        m = Module()
        source, last, layout = wiring.flipped(self.i), self._config.cores - 1, input_layout(self._config)
        for n in range(self._config.cores):
            m.submodules[f"queue{n}"] = queue = Queue(layout, credit_fifo_depth(0))
            wiring.connect(m, queue.o, wiring.flipped(self.o[n]))
            if n == last:
                wiring.connect(m, source, queue.i)
                continue
            m.submodules[f"node{n}"] = node = Distributor(layout, 2)
            wiring.connect(m, source, node.i)
            wiring.connect(m, node.o[0], queue.i)
            source = node.o[1]
        return m


class GatherChain(wiring.Component):
    """Merges the results of core after core, from core 0 on, which the records reach first.

    So results and records go the same way, and a probe's results pass k − 1 mergers and nodes together.
    """

    def __init__(self, config: Configuration, parts: Submodules, leaves: int | None = None):
        """``leaves``: the number of inputs, if it is not that of the cores."""
        self._config, self._parts, self._leaves = config, parts, leaves or config.cores
        result = stream.Signature(result_layout())
        super().__init__({"i": In(result).array(self._leaves), "o": Out(result), "total": In(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        config, results = self._config, wiring.flipped(self.i[0])
        for n in range(1, self._leaves):
            node = add_merger(m, self._parts, f"node{n}", 2, order_bits(config), False, fixed=config.merger == "fixed")
            m.d.comb += node.total.eq(self.total)
            wiring.connect(m, results, node.i[0])
            wiring.connect(m, wiring.flipped(self.i[n]), node.i[1])
            results = node.o
        wiring.connect(m, results, wiring.flipped(self.o))
        return m


class Chain(SplitJoin):
    """A chain of SplitJoin's cores: distribution and collection take (k − 1)·T, and with trees log k."""

    def _distribution(self) -> Any:
        return DistributionChain(self.config)

    def _gathering(self) -> Any:
        return GatherChain(self.config, self._parts)
