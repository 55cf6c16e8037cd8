"""One node of the gate's tournament tree: merges two streams of records by arrival order."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.wire import Configuration, Op

from ..layouts import input_layout
from ..network.skid_buffer import SkidBuffer


class ReadyMerger(wiring.Component):
    """Passes on a record when none that precedes it can still arrive (semantics, section 1; ScaleJoin, Definition 2).

    Arrival order here is event time, modulo the counter's width, then R before S, then input 0 before input 1. A record
    is passed on when the other input offers one that follows it, or is not open and offers none. Heartbeats are ordered
    like tuples, and passed on too, as the next node needs their promise as well.

    A record that precedes one already passed on is refused: accepted and dropped. So the output is always in order,
    whatever the sources do. When neither input is open and no record is left, the next record may have any event time.

    Ports: ``i``: two streams of input records, each in arrival order. ``i_open``: 1 if an input may deliver more
    records than the one that it offers; may fall only if nothing is under way to that input. ``o``, ``o_open``: the
    same towards the root. ``refused``: one bit per input, 1 if a tuple of it is refused in this cycle. All event times
    under way must lie within half the counter's range. Registered: latency 1 cycle, 1 record per cycle.
    """

    def __init__(self, config: Configuration):
        if not config.time_bits:
            raise ValueError("A gate merges by event time, so time_bits must be from 2 to 64, not 0; "
                             "without a time column arrival order is the order in which tuples are handed over")
        self._config = config
        record = stream.Signature(input_layout(config))
        super().__init__({"i": In(record).array(2), "i_open": In(2), "o": Out(record), "o_open": Out(1),
                          "refused": Out(2)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.buffer = buffer = SkidBuffer(input_layout(self._config))
        wiring.connect(m, buffer.o, wiring.flipped(self.o))
        top = self._config.time_bits  # the sign of a difference of keys
        keys = [Cat(i.payload.stream, i.payload.ts) for i in self.i]

        last = Signal(top + 1)  # key of the record that was passed on last
        last_input = Signal()
        last_valid = Signal()  # a record has been passed on, so ``last`` is valid
        late = Signal(2)
        on_time = Signal(2)
        precedes = Signal()  # input 0's record precedes input 1's
        grant = Signal(2)
        exhausted = Signal(2)  # this input is not open and offers no record
        m.d.comb += [
            late[0].eq(last_valid & (keys[0] - last - last_input)[top]),
            late[1].eq(last_valid & (keys[1] - last)[top]),
            precedes.eq(~(keys[1] - keys[0])[top]),
            grant[0].eq(on_time[0] & Mux(on_time[1], precedes, exhausted[1])),
            grant[1].eq(on_time[1] & Mux(on_time[0], ~precedes, exhausted[0])),
            buffer.i.valid.eq(grant.any()),
            buffer.i.payload.eq(Mux(grant[0], self.i[0].payload.as_value(), self.i[1].payload.as_value())),
        ]
        for n, i in enumerate(self.i):
            m.d.comb += [
                on_time[n].eq(i.valid & ~late[n]),
                exhausted[n].eq(~i.valid & ~self.i_open[n]),
                i.ready.eq(late[n] | (grant[n] & buffer.i.ready)),
                self.refused[n].eq(i.valid & late[n] & (i.payload.op == Op.TUPLE)),
            ]
        busy = Signal()
        m.d.comb += busy.eq(self.i_open.any() | self.i[0].valid | self.i[1].valid | buffer.o.valid)
        # `o_open` is a cycle late: it rises no later than the first record is at `o`, and falls when all have left.
        m.d.sync += self.o_open.eq(busy)
        with m.If(grant.any() & buffer.i.ready):
            m.d.sync += [last.eq(Mux(grant[0], keys[0], keys[1])), last_input.eq(~grant[0]), last_valid.eq(1)]
        with m.Elif(~busy):
            m.d.sync += last_valid.eq(0)
        return m
