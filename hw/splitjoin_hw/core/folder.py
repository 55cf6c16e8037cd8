"""The output side of a region that folds: one state for each probe, whatever the number of its partners."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In

from splitjoin.circuit.geometry import MEMORY_LATENCY
from splitjoin.circuit.wire import ROW_BITS, Configuration

from ..hls.delays import delay_line
from ..hls.state import lift, lift_cycles, masked, merged
from ..layouts import struct
from .emitter import times
from .states import StateOutput, merge_tree


class FoldingEmitter(StateOutput):
    """Folds the hits of a pass while it is under way, and gives the state of each of its probes, in their order.

    Each lane lifts its stored tuple to a state once, for all probes. For each probe a tree of merges over the lanes,
    with a register behind each level, makes one state of the hits of a read, and a last merge adds it to the probe's
    own. So every read is folded in a cycle, whatever it hits, and the scan never waits for its hits. States of a pass
    leave, one in two cycles, while the next pass is under way; a pass after that begins when they have left.

    Ports: those of `StateOutput`, which ignores settings, as every probe ends a group. ``values``: those of the tuples
    of each read, with their keys; none where nothing is stored for the fold.
    """

    def __init__(self, config: Configuration, *, latency: int):
        payload = config.payload("s")
        super().__init__(config, {"values": In(struct(payload)).array(config.lanes)} if payload.fields else {},
                         latency=latency)

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

        self._count(m)
        return m

    def _folded(self, m: Module) -> tuple[list, Signal, Signal]:
        """For each probe the state of a read's hits; and flags of the last read of a pass, and of a read."""
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
            if payload.fields:
                values = delay_line(m, f"values{lane}_", values, max(0, spare), reset_less=True)[-1]
            lifted.append(lift(m, config, f"lane{lane}", values))
        outcome = delay_line(m, "outcome", Cat(self.found_valid, self.found.last, self.found.hits), max(0, -spare))[-1]
        hits = outcome[2:]
        levels = [merge_tree(m, config, f"lanes{probe}", f"of{probe}", [
            masked(m, config, f"hit{probe}_{lane}", lifted[lane], hits[probe * lanes + lane])
            for lane in range(lanes)]) for probe in range(probes)]
        valid, last = delay_line(m, "level", outcome, lanes.bit_length() - 1)[-1][:2]
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
