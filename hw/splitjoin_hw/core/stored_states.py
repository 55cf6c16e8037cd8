"""The output side of a region that stores the tuples whose partners are folded: a state beside each stored tuple, which
later probes add to and which leaves when the tuple expires.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.geometry import position_bits, ring_rows, state_levels, stores
from splitjoin.circuit.wire import Configuration

from ..hls.delays import delay_line
from ..hls.state import initial_state, lift, lift_cycles, masked, merged
from ..layouts import folded_layout, struct
from ..network.queue import Queue
from ..tech.ram import Ram
from . import states
from .states import StateOutput, lane_rows, merge_tree

#: States that wait at the output, in LUT RAM.
_WAITING = 16
#: Cycles from the operation that expires a tuple to its read: an earlier probe has claimed the tuple by then.
_SETTLING = 4


class StoredStates(StateOutput):
    """Folds the hits of each stored tuple, whatever probe makes them, and gives the tuple's state when it has expired.

    Each probe brings values, which are lifted to a state once. For each lane a tree of merges over the probes of a
    batch, with a register behind each level, makes one state of the hits of a read. It is merged with the state of the
    stored tuple, which lies in a memory beside the lane's bank of the ring, at the same address: every read of the ring
    reads the states of its tuples too, and writes them back. Reads of the same row may follow each other, so states
    that are on their way to the memory are forwarded.

    The state of an expired tuple is read through the same pipeline as soon as no probe has still to read the tuple, in
    a cycle that is taken from the scan, and replaced by the initial state. After a reset all states are set to that
    before the first read. States leave in the tuples' order. After a FLUSH an END follows the states of all
    tuples that had expired; if the FLUSH drains the region, those of all tuples.

    Ports:
        Those of `StateOutput`, which needs the outcomes alone.
        ``load``, ``values``, ``take``: of the scanner, a probe becomes the one of that number of the next batch; its
        values, none where nothing is folded but the number of partners; that batch becomes the one under way.
        ``position``, ``scanning``, ``waiting``, ``first``, ``claiming``: of the processing side, as of `RingSignature`.
        ``queued``: a task waits that the processing side has not claimed.
        ``head``, ``written``, ``flushed``, ``drains``: of `splitjoin_hw.core.storage.Storage`.
        ``hold``: no tuple may be stored in the next cycle, as its place has a state that has not left.
        ``ended``: the END enters the output; until then no operation may follow the FLUSH.
    """

    def __init__(self, config: Configuration, *, latency: int):
        payload, bits = config.payload("s"), position_bits(config)
        super().__init__(config, {
            "load": In(config.probes),
            **({"values": In(struct(payload))} if payload.fields else {}),
            "take": In(1),
            "position": In(bits), "scanning": In(1), "waiting": In(1), "first": In(bits),
            "claiming": In(1), "queued": In(1),
            "head": In(bits), "written": In(bits), "flushed": In(1), "drains": In(1),
            "hold": Out(1),
            "ended": Out(1),
        }, latency=latency)

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self._config
        lanes, bits = config.lanes, position_bits(config)
        lane_bits = lanes.bit_length() - 1
        deltas, valid, merge_latency = self._deltas(m)
        leaving = Signal(bits)  # position of the oldest tuple whose state has not been read
        leave = Signal()  # it is read now, in place of a read of the scan
        place, place_lane = self._place(m, leaving, leave, merge_latency)

        # The states that are read, merged and written back.
        initial = initial_state(config)
        clears = delay_line(m, "clears", leave, merge_latency)[-1]  # a state is read and replaced by the initial one
        clearing, cleared = Signal(init=1), Signal(range(ring_rows(config)))  # all states are set, row by row
        m.d.sync += [cleared.eq(cleared + clearing), clearing.eq(clearing & (cleared != ring_rows(config) - 1))]
        found = []
        for lane in range(lanes):
            rows = lane_rows(m, config, lane, place)
            m.submodules[f"states{lane}"] = memory = Ram(config.state.width, ring_rows(config))
            after, writes = Signal(config.state.width, name=f"after{lane}"), Signal(name=f"writes{lane}")
            was_valid = delay_line(m, f"was_valid{lane}_", writes, Ram.latency)[1:]
            state = states.newest(m, lane, memory.r_data, rows, was_valid, after)
            held = Signal(struct(config.state), name=f"held{lane}")
            m.d.comb += Cat(held).eq(state)
            summed = merged(m, config, f"sum{lane}", held, deltas[lane])
            is_place = clears & (place_lane == lane) if lane_bits else clears
            m.d.comb += [
                writes.eq(valid | is_place), after.eq(Mux(clears, initial, Cat(summed))),
                memory.r_addr.eq(rows[0]), memory.w_en.eq(writes | clearing),
                memory.w_addr.eq(Mux(clearing, cleared, rows[Ram.latency])),
                memory.w_data.eq(Mux(clearing, initial, after)),
            ]
            found.append(state)
        self._leave(m, leaving, leave, clears, found, place_lane)

        self._count(m)
        # A place may be read up to a read's lanes behind the newest tuple.
        reach = config.capacity + stores(config) - lanes
        m.d.comb += [
            self.batch.ready.eq(1), self.room.eq(~leave & ~clearing),
            self.hold.eq(((self.written - leaving)[:bits] >= reach) | clearing),
        ]
        return m

    def _place(self, m: Module, leaving: Signal, leave: Signal, latency: int) -> tuple[Value, Value]:
        """The position that was read, in the cycle in which its states are read from the memories; and the lane of
        ``leaving`` when they are merged.
        """
        lane_bits = self._config.lanes.bit_length() - 1
        place = delay_line(m, "place", Mux(leave, leaving, self.position), latency - Ram.latency, reset_less=True)[-1]
        lane = place[:lane_bits]
        return place, delay_line(m, "place_lane", lane, Ram.latency, reset_less=True)[-1] if lane_bits else lane

    def _deltas(self, m: Module) -> tuple[list[Any], Value, int]:
        """For each lane the state of a read's hits; that there was a read; and the cycles from a read to these."""
        config, probes = self._config, self._config.probes
        lanes, payload = config.lanes, config.payload("s")
        # Outcomes wait where lifting takes longer than comparing.
        ahead = max(self._latency, lift_cycles(config))
        outcome = delay_line(m, "outcome", Cat(self.found_valid, self.found.hits), ahead - self._latency)[-1]
        hits = outcome[1:]
        lifted: list[Any]
        if payload.fields:
            values = delay_line(m, "values", self.values, ahead - lift_cycles(config), reset_less=True)[-1]
            made = lift(m, config, "probe", values)
            # The last outcome of a pass comes as many cycles after the next batch was taken.
            swap = delay_line(m, "swap", Cat(self.take, self.load), ahead)[-1]
            lifted = []
            for n in range(probes):
                collected, active = (Signal(struct(config.state), name=f"{name}{n}", reset_less=True)
                                     for name in ("collected", "lifted"))
                with m.If(swap[1 + n]):
                    m.d.sync += Cat(collected).eq(Cat(made))
                with m.If(swap[0]):
                    m.d.sync += Cat(active).eq(Cat(collected))
                lifted.append(active)
        else:
            lifted = [lift(m, config, "probe", None)] * probes
        deltas = [merge_tree(m, config, f"probes{lane}", f"of{lane}", [
            masked(m, config, f"hit{lane}_{probe}", lifted[probe], hits[probe * lanes + lane])
            for probe in range(probes)]) for lane in range(lanes)]
        valid = delay_line(m, "level", outcome[0], state_levels(config))[-1]
        return deltas, valid, ahead + state_levels(config)

    def _leave(self, m: Module, leaving: Signal, leave: Signal, arrives: Value, found: list[Value],
               lane: Value) -> None:
        """Reads the states of expired tuples, and gives them and the END to the output. ``arrives``: a state that is to
        leave has been read; ``found``: for each lane what was read; ``lane``: that of its tuple.
        """
        config, bits = self._config, len(leaving)
        m.submodules.waiting_states = queue = Queue(folded_layout(config), _WAITING)
        wiring.connect(m, queue.o, wiring.flipped(self.o))
        drained, ending = Signal(), Signal()
        with m.If(self.flushed):
            m.d.sync += [ending.eq(1), drained.eq(drained | self.drains)]
        # All tuples before this position have expired, and probes before that have claimed what they read.
        limit = delay_line(m, "limit", Mux(drained, self.written, self.head), _SETTLING)[-1]
        unread_yet, may_leave, left = Signal(), Signal(), Signal()
        behind = [~(leaving - at)[bits - 1] for at in (self.position, self.first)]
        m.d.comb += unread_yet.eq((self.scanning & behind[0]) | (self.waiting & behind[1])
                                  | self.claiming | self.queued)
        # A cycle late, so a tuple is looked at in the second cycle after the one before has left.
        m.d.sync += [may_leave.eq(~unread_yet & (limit != leaving)), left.eq(leave)]
        claimed = Signal(range(_WAITING + 1))  # states under way or in the queue
        place = Signal(init=1)  # there is a place for one more
        pop, end = Signal(), Signal()
        m.d.comb += [leave.eq(may_leave & ~left & place), pop.eq(self.o.valid & self.o.ready)]
        m.d.sync += [claimed.eq(claimed + (leave | end) - pop), place.eq(claimed < _WAITING - 1)]
        with m.If(leave):
            m.d.sync += leaving.eq(leaving + 1)
        under_way = Signal(range(_WAITING + 1))  # states that are read
        m.d.sync += under_way.eq(under_way + leave - arrives)
        # The limit is that of the FLUSH when these cycles have passed.
        since = Signal(range(_SETTLING + 3))
        with m.If(self.flushed):
            m.d.sync += since.eq(_SETTLING + 2)
        with m.Elif(since != 0):
            m.d.sync += since.eq(since - 1)
        m.d.comb += [
            end.eq(ending & (since == 0) & (limit == leaving) & ~left & (under_way == 0) & place),
            self.ended.eq(end), queue.i.valid.eq(arrives | end), queue.i.payload.end.eq(end),
        ]
        with m.If(end):
            m.d.sync += ending.eq(0)
        chosen = Signal(data.ArrayLayout(config.state.width, len(found)), name="found_states")
        m.d.comb += [Cat(chosen).eq(Cat(*found)),
                     Cat(queue.i.payload.state).eq(chosen[lane] if len(found) > 1 else Cat(chosen))]
