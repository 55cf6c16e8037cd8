"""Parts that the output sides share which fold, and the filter of first hits: memories beside the lanes of the ring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.geometry import ring_rows
from splitjoin.circuit.wire import Configuration

from ..hls.delays import delay_line
from ..hls.state import merged
from ..layouts import folded_layout, struct, window_layout
from ..tech.ram import Ram
from .interfaces import OutcomeSignature
from .layouts import batch_layout


class StateOutput(wiring.Component):
    """The base of both output sides that give states in place of results, and need no list.

    Ports: ``batch``, `OutcomeSignature`, ``window``, ``index``: as of `splitjoin_hw.core.emitter.Emitter`. ``o``:
    `folded_layout`. ``matched``: hits of a read. ``stall_output``, ``list_high``: for `RegionCounters`.
    """

    counters = ("stall_output", "list_high")

    def __init__(self, config: Configuration, further: Mapping[str, wiring.Member], *, latency: int):
        """``further``: the other ports. ``latency``: cycles from a read to its outcome."""
        self._config, self._latency = config, latency
        super().__init__({
            "batch": In(stream.Signature(batch_layout(config))),
            **OutcomeSignature(config).flip().members,
            "index": In(range(max(2, config.cores))),
            "window": In(window_layout(config)),
            **further,
            "o": Out(stream.Signature(folded_layout(config))),
            "matched": Out(range(config.lanes * config.probes + 1)),
            "stall_output": Out(1),
            "list_high": Out(1),
        })

    def _count(self, m: Module) -> None:
        """Drives the counters."""
        hits = Signal(len(self.found.hits))
        m.d.sync += [hits.eq(self.found.hits & self.found_valid.replicate(len(hits))), self.matched.eq(sum(hits))]
        m.d.comb += self.stall_output.eq(self.o.valid & ~self.o.ready)


def merge_tree(m: Module, config: Configuration, name: str, merge: str, states: Sequence[Any]) -> Any:
    """One state of all ``states``, by a tree of merges with a register behind each level. ``name``, ``merge``: how the
    names of registers and of merges begin.
    """
    depth = 0
    while len(states) > 1:
        level = []
        for n in range(0, len(states), 2):
            register = Signal(struct(config.state), name=f"{name}_{depth}_{n}", reset_less=True)
            both = states[n:n + 2]
            m.d.sync += Cat(register).eq(Cat(
                merged(m, config, f"{merge}_{depth}_{n}", *both) if len(both) == 2 else both[0]))
            level.append(register)
        states, depth = level, depth + 1
    return states[0]


def lane_rows(m: Module, config: Configuration, lane: int, position: Value) -> list[Value]:
    """The row of the ring from which a read at ``position`` takes the tuple of ``lane``, now and some cycles later."""
    lane_bits = config.lanes.bit_length() - 1
    row = Signal(range(ring_rows(config)), name=f"row{lane}")
    m.d.comb += row.eq(position[lane_bits:] + (position[:lane_bits] > lane if lane_bits else 0))
    return delay_line(m, f"row{lane}_", row, Ram.latency + 2, reset_less=True)


def newest(m: Module, lane: int, read: Value, rows: Sequence[Value], was_valid: Sequence[Value],
           after: Signal) -> Value:
    """The content of the row that was ``read`` from the memory of ``lane``, to which ``after`` is written back: the
    last two values may be of the same row, and have not reached the memory yet. ``rows``: as of `lane_rows`;
    ``was_valid``: a value was written one cycle ago, and two.
    """
    recent = delay_line(m, f"after{lane}_", after, Ram.latency, reset_less=True)[1:]
    for n in reversed(range(Ram.latency)):
        same = Signal(name=f"same{lane}_{n}")
        m.d.sync += same.eq(rows[Ram.latency - 1] == rows[Ram.latency + n])
        read = Mux(same & was_valid[n], recent[n], read)
    return read
