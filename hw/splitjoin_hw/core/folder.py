"""The output side of a region that folds: one state for each probe, whatever the number of its partners."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.geometry import MEMORY_LATENCY
from splitjoin.circuit.wire import ROW_BITS, Configuration

from ..hls.state import lift, lift_cycles, masked, merged
from ..layouts import folded_layout, struct, window_layout
from .emitter import times
from .interfaces import OutcomeSignature
from .layouts import batch_layout

__all__ = ["FoldingEmitter"]


class FoldingEmitter(wiring.Component):
    """Folds the hits of a pass while it is under way, and gives the state of each of its probes, in their order.

    Each lane lifts its stored tuple to a state once, for all probes. For each probe a tree of merges over the lanes,
    with a register behind each level, makes one state of the hits of a read, and a last merge adds it to the probe's
    own. So every read is folded in a cycle, whatever it hits, and the scan never waits for its hits. States of a pass
    leave, one in two cycles, while the next pass is under way; a pass after that begins when they have left.

    Ports: ``batch``, `OutcomeSignature`, ``window``, ``index``: as of `splitjoin_hw.core.emitter.Emitter`, of which
    this one ignores settings, as every probe ends a group. ``values``: those of the tuples of each read, with their
    keys; none where nothing is stored for the fold. ``o``: `folded_layout`. ``matched``: hits of a read.
    ``stall_output``, ``list_high``: for `RegionCounters`; no list is needed.
    """

    counters = ("stall_output", "list_high")

    def __init__(self, config: Configuration, *, latency: int):
        """``latency``: cycles from a read to its outcome."""
        self._config, self._latency = config, latency
        payload = config.payload("s")
        super().__init__({
            "batch": In(stream.Signature(batch_layout(config))),
            **OutcomeSignature(config).flip().members,
            **({"values": In(struct(payload)).array(config.lanes)} if payload.fields else {}),
            "index": In(range(max(2, config.cores))),
            "window": In(window_layout(config)),
            "o": Out(stream.Signature(folded_layout(config))),
            "matched": Out(range(config.lanes * config.probes + 1)),
            "stall_output": Out(1),
            "list_high": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self._config
        probes, state = config.probes, struct(config.state)
        folded, last, valid = self._folded(m)

        # The states of the pass under way; ``fresh``: its first outcome is the next one.
        states = [Signal(state, name=f"state{n}", reset_less=True) for n in range(probes)]
        fresh, ended = Signal(init=1), Signal()
        for n in range(probes):
            before = masked(m, config, f"before{n}", states[n], ~fresh)
            with m.If(valid):
                m.d.sync += Cat(states[n]).eq(Cat(merged(m, config, f"sum{n}", before, folded[n])))
        with m.If(valid):
            m.d.sync += fresh.eq(last)

        # Those of the pass before, the next one to leave first. A batch is accepted when all of them have left; until
        # then no pass begins after the one whose batch it is, so nothing overwrites states that have ended.
        leaving = [Signal(state, name=f"leaving{n}", reset_less=True) for n in range(probes)]
        held, busy, move, take = (Signal(name=name) for name in ("held", "busy", "move", "take"))
        left = Signal(range(max(2, probes)))
        flush, taken_flush = Signal(name="flush"), Signal(name="taken_flush")
        taken = Signal.like(left, name="taken")
        m.d.comb += [self.batch.ready.eq(~held & ~busy), move.eq(ended & held & ~busy),
                     take.eq(busy & ~self.o.valid), self.room.eq(1)]
        with m.If(self.batch.ready & self.batch.valid):
            m.d.sync += [held.eq(1), taken.eq(self.batch.payload.probes), taken_flush.eq(self.batch.payload.flush)]
        with m.If(move):
            m.d.sync += [held.eq(0), busy.eq(1), left.eq(taken), flush.eq(taken_flush),
                         *(Cat(a).eq(Cat(b)) for a, b in zip(leaving, states, strict=True))]
        m.d.sync += ended.eq((valid & last) | (ended & ~move))
        with m.If(take):
            m.d.sync += [*(Cat(a).eq(Cat(b)) for a, b in pairwise(leaving)),
                         left.eq(left - 1), busy.eq(left != 0), self.o.valid.eq(1),
                         self.o.payload.end.eq(flush & (left == 0)), Cat(self.o.payload.state).eq(Cat(leaving[0]))]
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)

        hits = Signal(len(self.found.hits))
        m.d.sync += [hits.eq(self.found.hits & self.found_valid.replicate(len(hits))), self.matched.eq(sum(hits))]
        m.d.comb += self.stall_output.eq(self.o.valid & ~self.o.ready)
        return m

    def _folded(self, m: Module) -> tuple[list, Signal, Signal]:
        """For each probe the state of a read's hits; and, at the same time, that it is the last read of its pass, and
        that there is one.
        """
        config = self._config
        lanes, probes = config.lanes, config.probes
        # Values come with the keys, outcomes later: the values wait, or the outcomes where lifting takes longer.
        spare = self._latency - MEMORY_LATENCY - lift_cycles(config)
        payload, rows = config.payload("s"), None
        if any(value.row for value in config.values):
            rows, spare = self._rows(m), -1 - lift_cycles(config)
        lifted = []
        for lane in range(lanes):
            values: Any = self.values[lane] if payload.fields else None
            if rows is not None:
                values = {f"value{n}": rows[lane] for n in range(len(config.values))}
            for n in range(max(0, spare) if payload.fields else 0):
                later = Signal(struct(payload), name=f"values{lane}_{n}", reset_less=True)
                m.d.sync += Cat(later).eq(Cat(values))
                values = later
            lifted.append(lift(m, config, f"lane{lane}", values))
        valid, last, hits = self.found_valid, self.found.last, self.found.hits

        def delay(cycles: int, name: str) -> None:
            nonlocal valid, last, hits
            for n in range(cycles):
                outcome = Signal(2 + len(hits), name=f"{name}{n}")
                m.d.sync += outcome.eq(Cat(valid, last, hits))
                valid, last, hits = outcome[0], outcome[1], outcome[2:]

        delay(max(0, -spare), "outcome")
        levels = []
        for probe in range(probes):
            level = [masked(m, config, f"hit{probe}_{lane}", lifted[lane], hits[probe * lanes + lane])
                     for lane in range(lanes)]
            depth = 0
            while len(level) > 1:
                pairs = []
                for n in range(0, len(level), 2):
                    register = Signal(struct(config.state), name=f"lanes{probe}_{depth}_{n}", reset_less=True)
                    m.d.sync += Cat(register).eq(Cat(merged(m, config, f"of{probe}_{depth}_{n}", *level[n:n + 2])))
                    pairs.append(register)
                level, depth = pairs, depth + 1
            levels.append(level[0])
        delay(lanes.bit_length() - 1, "level")
        return levels, last, valid

    def _rows(self, m: Module) -> list[Signal]:
        """For each lane the row id of its tuple, a cycle after the outcome of its read."""
        config, offered = self._config, self.batch.payload
        lanes, lane_bits = config.lanes, config.lanes.bit_length() - 1
        # Outcomes of a pass may come before its batch is accepted, or after it, when that of the pass before has left.
        held_row, held_lane = Signal(ROW_BITS, reset_less=True), Signal(max(1, lane_bits), reset_less=True)
        held, begun, offered_begun, fresh = Signal(), Signal(), Signal(), Signal(init=1)
        row, lane0 = Signal(ROW_BITS), Signal(max(1, lane_bits))  # of the read whose outcome is there
        next_row, pass_lane = Signal(ROW_BITS, reset_less=True), Signal(max(1, lane_bits), reset_less=True)
        begins, is_held, accepted = Signal(), Signal(), Signal()
        m.d.comb += [
            begins.eq(self.found_valid & fresh), is_held.eq(held & ~begun),
            accepted.eq(self.batch.valid & self.batch.ready),
            row.eq(Mux(~fresh, next_row, Mux(is_held, held_row, offered.row))),
            lane0.eq(Mux(~fresh, pass_lane, Mux(is_held, held_lane, offered.lane))),
        ]
        with m.If(begins & is_held):
            m.d.sync += begun.eq(1)
        with m.Elif(begins):
            m.d.sync += offered_begun.eq(1)
        with m.If(accepted):
            m.d.sync += [held.eq(1), held_row.eq(offered.row), held_lane.eq(offered.lane),
                         begun.eq(offered_begun | (begins & ~is_held)), offered_begun.eq(0)]
        with m.If(self.found_valid):
            m.d.sync += [fresh.eq(self.found.last), next_row.eq(row + lanes * config.cores), pass_lane.eq(lane0)]
        made = []
        for lane in range(lanes):
            made.append(Signal(ROW_BITS, name=f"row{lane}", reset_less=True))
            number = (lane - lane0)[:lane_bits] if lane_bits else Const(0)
            m.d.sync += made[lane].eq(row + times(number, config.cores) + self.index)
        return made
