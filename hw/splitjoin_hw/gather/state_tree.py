"""The gather tree of folded states: one state of all cores for each probe, and the items that carry it."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.geometry import state_fifo_depth
from splitjoin.circuit.wire import ROW_BITS, Configuration, ItemKind

from ..hls.state import merged
from ..layouts import folded_layout, result_layout, struct
from ..network.block_fifo import BlockFifo
from ..parts import Submodules
from .turns import TurnTree


class StateMerger(wiring.Component):
    """Merges the states that two inputs have for the same probe; a state in two cycles.

    Ports: ``i``: states, of which one is taken from both inputs or from none. ``o``: merged states. No combinational
    path leads from ``o.ready`` to an input.
    """

    def __init__(self, config: Configuration):
        self._config = config
        states = stream.Signature(folded_layout(config))
        super().__init__({"i": In(states).array(2), "o": Out(states)})

    def elaborate(self, platform) -> Module:
        m = Module()
        a, b = (port.payload for port in self.i)
        take = Signal()
        m.d.comb += [take.eq(self.i[0].valid & self.i[1].valid & ~self.o.valid), *(p.ready.eq(take) for p in self.i)]
        with m.If(take):
            m.d.sync += [self.o.valid.eq(1), self.o.payload.end.eq(a.end),
                         Cat(self.o.payload.state).eq(Cat(merged(m, self._config, "sum", a.state, b.state)))]
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        return m


class StateTree(wiring.Component):
    """Merges the states of all cores, and gives for each probe its state in items of `result_layout`.

    Every core gives one state for each probe, in the order of the probes, also if it found no partner. A probe's state
    leaves in `Configuration.beats` items of kind PAIR, 64 bits each, and its star, which holds the probe's row id and
    the last 32 bits; an END as such.

    Where states leave whole, these states wait in block RAM until their tuples expire, and are merged with those that
    the tuples' regions have made of later partners. An END leaves when both sides have one; states of tuples that have
    not expired stay where they are.

    Ports: ``i``: `folded_layout` of each core. ``later``, where states leave whole: the same of stored tuples. ``o``:
    `result_layout`.
    """

    def __init__(self, config: Configuration, parts: Submodules | None = None):
        self._config, self._parts = config, parts or Submodules()
        states = stream.Signature(folded_layout(config))
        super().__init__({
            "i": In(states).array(config.cores),
            **({"later": In(states).array(config.cores)} if config.whole_states else {}),
            "o": Out(stream.Signature(result_layout())),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self._config
        level, depth = [wiring.flipped(port) for port in self.i], 0
        while len(level) > 1:
            made = []
            for n in range(0, len(level) - 1, 2):
                node = self._parts.add(m, f"node{depth}_{n // 2}", "state_merger", lambda: StateMerger(config))
                wiring.connect(m, level[n], node.i[0])
                wiring.connect(m, level[n + 1], node.i[1])
                made.append(node.o)
            level, depth = made + level[2 * len(made):], depth + 1
        found: Any = level[0]
        if config.whole_states:
            found = self._whole(m, found)

        state_items(m, config, found, self.o)
        return m

    def _whole(self, m: Module, earlier: Any) -> Any:
        """The stream of whole states, from ``earlier`` and ``later`` partners."""
        config = self._config
        m.submodules.turns = turns = TurnTree(config, self._parts)
        for n, port in enumerate(self.later):
            wiring.connect(m, wiring.flipped(port), turns.i[n])
        m.submodules.earlier = fifo = BlockFifo(config.state.width, state_fifo_depth(config))
        later, made = turns.o, stream.Signature(folded_layout(config)).create(path=("whole",))
        ended = Signal()  # the earlier side has shown its END, and nothing behind it is taken
        state = Signal(struct(config.state), name="earlier_state")
        end, leave = earlier.payload.end, Signal(name="whole_leaves")
        m.d.comb += [
            fifo.i.payload.eq(Cat(earlier.payload.state)), fifo.i.valid.eq(earlier.valid & ~end & ~ended),
            earlier.ready.eq(~ended & (end | fifo.i.ready)), Cat(state).eq(Cat(fifo.o.payload)),
            made.payload.end.eq(later.payload.end),
            Cat(made.payload.state).eq(Cat(merged(m, config, "whole", state, later.payload.state))),
            made.valid.eq(later.valid & Mux(later.payload.end, ended, fifo.o.valid)),
            leave.eq(made.valid & made.ready), later.ready.eq(leave), fifo.o.ready.eq(leave & ~later.payload.end),
        ]
        with m.If(earlier.valid & end):
            m.d.sync += ended.eq(1)
        with m.If(leave & later.payload.end):
            m.d.sync += ended.eq(0)
        return made


def state_items(m: Module, config: Configuration, found: Any, out: Any) -> None:
    """Gives the states of stream ``found``, of consecutive probes, to stream ``out``, as items of `result_layout`."""
    # The rest of a state, the next beat lowest.
    rest = Signal(2 * ROW_BITS * config.beats + ROW_BITS, reset_less=True)
    left = Signal(range(config.beats + 1))
    end = Signal()
    probe = Signal(ROW_BITS, init=-1)
    leave = Signal()
    item = out.payload
    m.d.comb += [
        found.ready.eq(~out.valid), leave.eq(out.valid & out.ready), item.probe.eq(probe),
        item.stored.eq(rest[:ROW_BITS]), item.kind.eq(ItemKind.STAR),
    ]
    with m.If(end):
        m.d.comb += item.kind.eq(ItemKind.END)
    if config.beats:
        with m.Elif(left != 0):
            m.d.comb += [item.kind.eq(ItemKind.PAIR), item.probe.eq(rest[:ROW_BITS]),
                         item.stored.eq(rest[ROW_BITS:2 * ROW_BITS])]
    with m.If(found.valid & ~out.valid):
        m.d.sync += [out.valid.eq(1), rest.eq(Cat(found.payload.state)), end.eq(found.payload.end),
                     left.eq(config.beats), probe.eq(probe + ~found.payload.end)]
    with m.If(leave):
        m.d.sync += [out.valid.eq((left != 0) & ~end), left.eq(left - 1), rest.eq(rest >> 2 * ROW_BITS)]
