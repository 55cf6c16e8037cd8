"""The gather tree of stored tuples' states: those of all cores, in the order of the tuples."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.geometry import split
from splitjoin.circuit.wire import Configuration

from ..layouts import folded_layout
from ..parts import Submodules


class TurnMerger(wiring.Component):
    """Takes states from two inputs in turn, as many from each in a row as cores lie behind it; a state in two cycles.

    An END leaves when both inputs show theirs. Behind it the turns go on as if there had been none.

    Ports: ``i``: states. ``o``: states. No combinational path leads from ``o.ready`` to an input.
    """

    def __init__(self, config: Configuration, first: int, second: int):
        """``first``, ``second``: the numbers of cores behind the inputs."""
        self._first, self._second = first, second
        states = stream.Signature(folded_layout(config))
        super().__init__({"i": In(states).array(2), "o": Out(states)})

    def elaborate(self, platform) -> Module:
        m = Module()
        a, b = self.i
        cores = self._first + self._second
        turn = Signal(range(cores))  # states that were taken, modulo the number of cores
        second, end, take = Signal(), Signal(), Signal()
        chosen = Signal(a.payload.shape())
        m.d.comb += [
            second.eq(turn >= self._first),
            end.eq(a.valid & a.payload.end & b.valid & b.payload.end & ~self.o.valid),
            chosen.eq(b.payload), take.eq(b.valid & ~b.payload.end & ~self.o.valid),
            a.ready.eq(end | (take & ~second)), b.ready.eq(end | (take & second)),
        ]
        with m.If(~second):
            m.d.comb += [chosen.eq(a.payload), take.eq(a.valid & ~a.payload.end & ~self.o.valid)]
        with m.If(take):
            m.d.sync += turn.eq(turn + 1)
            with m.If(turn == cores - 1):
                m.d.sync += turn.eq(0)
        with m.If(take | end):
            m.d.sync += [self.o.valid.eq(1), self.o.payload.eq(chosen)]
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        return m


class TurnTree(wiring.Component):
    """Joins the states of all cores' stored tuples in the order of the tuples: tuple n is that of core n mod cores.

    Ports: ``i``: `folded_layout` of each core. ``o``: `folded_layout`.
    """

    def __init__(self, config: Configuration, parts: Submodules | None = None):
        self._config, self._parts = config, parts or Submodules()
        signature = stream.Signature(folded_layout(config))
        super().__init__({"i": In(signature).array(config.cores), "o": Out(signature)})

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self._config

        def grow(sink: stream.Interface, first: int, count: int, name: str) -> None:
            """The subtree of cores ``first`` to before ``first`` + ``count``, which drives ``sink``."""
            if count == 1:
                wiring.connect(m, wiring.flipped(self.i[first]), sink)
                return
            a, b = split(count, 2)
            node = self._parts.add(m, name, f"turn_merger{a}_{b}", lambda: TurnMerger(config, a, b))
            wiring.connect(m, node.o, sink)
            grow(node.i[0], first, a, f"{name}_0")
            grow(node.i[1], first + a, b, f"{name}_1")

        grow(wiring.flipped(self.o), 0, config.cores, "turn")
        return m
