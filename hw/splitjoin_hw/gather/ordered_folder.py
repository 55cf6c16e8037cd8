"""The unit behind the gather trees that folds the partners of R's tuples one by one, in the order of their arrival."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.geometry import window_rows
from splitjoin.circuit.wire import Configuration, ItemKind, Op

from ..hls.delays import delay_line
from ..hls.ordered_pipeline import PartnerPipeline
from ..hls.state import initial_state
from ..layouts import STREAM_R, STREAM_S, folded_layout, result_layout, struct, window_layout
from ..tech.ram import Ram


def operation_layout(config: Configuration) -> data.StructLayout:
    """An operation as the unit needs it: its kind, its stream, its time, and the values of a tuple of S."""
    time = {"ts": config.time_bits} if config.time_bits else {}
    return data.StructLayout({"op": 2, "stream": 1, **time, "values": struct(config.payload("s"))})


class OrderedFolder(wiring.Component):
    """Folds the partners of each tuple of R in order of arrival, and gives its state when it has expired.

    Operations come in order of arrival, and each probe's results, oldest first, up to its star. So a tuple of R meets
    its partners in order: those before it when it probes, the later ones when they do. A probe of R begins with the
    initial state, which a register holds. For a probe of S the state of each tuple that it meets is read from a memory.
    Either way the state with one more partner is written to the memory, where it stays until its tuple expires: as soon
    as an operation comes that makes it expire, or a FLUSH that drains the circuit. The values of S's tuples wait in a
    memory for later probes of R.

    A partner takes `Configuration.in_order` cycles. The next operation begins when all partners have been added.

    Ports: ``operation``: `operation_layout`, in order of arrival. ``left``, ``right``: results of R's and of S's
    probes, sorted. ``window``: settings of R's window. ``o``: `folded_layout`, R's tuples in their order, and an END.
    """

    def __init__(self, config: Configuration):
        self._config = config
        super().__init__({
            "operation": In(stream.Signature(operation_layout(config))),
            "left": In(stream.Signature(result_layout())),
            "right": In(stream.Signature(result_layout())),
            "window": In(window_layout(config)),
            "o": Out(stream.Signature(folded_layout(config))),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        rows = window_rows(config)
        m.submodules.states = states = Ram(config.state.width, rows)
        m.submodules.partners = partners = PartnerPipeline(config)
        now = Signal(operation_layout(config), reset_less=True)  # the operation under way
        head, count = Signal(range(2 * rows)), Signal(range(2 * rows))  # tuples of R that have left, and that have come
        leaves = Signal()  # the state at the head is read
        star, pair, met = Signal(), Signal(), Signal()  # at the probe's results; it has met a tuple
        is_r = now.stream == STREAM_R
        results = data.View(result_layout(), Mux(is_r, self.left.payload.as_value(), self.right.payload.as_value()))
        offered = Signal()

        # Partners on their way: their tuple of R; the state of the memory comes with their values, or later.
        m.d.comb += [
            pair.eq(offered & (results.kind == ItemKind.PAIR) & partners.ready),
            star.eq(offered & (results.kind == ItemKind.STAR)),
            partners.valid.eq(pair), partners.from_memory.eq(~is_r),
        ]
        places = delay_line(m, "place", Mux(is_r, count[:-1], results.stored[:len(count) - 1]), partners.latency,
                            reset_less=True)
        clears = Signal()  # a probe of R has met nothing
        m.d.comb += [
            clears.eq(star & is_r & ~met), partners.state.eq(states.r_data),
            states.r_addr.eq(Mux(leaves, head[:-1], places[partners.state_read])),
            states.w_en.eq(partners.made_valid | clears), states.w_addr.eq(Mux(clears, count[:-1], places[-1])),
            states.w_data.eq(Mux(clears, initial_state(config), Cat(partners.made))),
        ]
        if config.payload("s").fields:
            m.submodules.values = values = Ram(struct(config.payload("s")), rows)
            stored = Signal(range(rows))  # tuples of S that have come
            m.d.comb += [
                values.r_addr.eq(results.stored), values.w_en.eq(star & ~is_r), values.w_addr.eq(stored),
                Cat(values.w_data).eq(Cat(now["values"])),
                Cat(partners.values).eq(Mux(is_r, Cat(values.r_data), Cat(now["values"]))),
            ]
            with m.If(star & ~is_r):
                m.d.sync += stored.eq(stored + 1)

        expires = self._expires(m, now, head, count, leaves, star & is_r)
        payload = self.o.payload
        with m.FSM():
            with m.State("NEXT"):
                m.d.comb += [self.operation.ready.eq(~partners.busy), partners.begin.eq(~partners.busy)]
                m.d.sync += [now.eq(self.operation.payload), met.eq(0)]
                with m.If(self.operation.valid & ~partners.busy):
                    m.next = "EXPIRE"
            with m.State("EXPIRE"):
                with m.If(expires):
                    m.next = "READ"
                with m.Elif(now.op == Op.TUPLE):
                    m.next = "PROBE"
                with m.Elif(now.op == Op.FLUSH):
                    m.next = "END"
                with m.Else():
                    m.next = "NEXT"
            for n in range(Ram.latency):
                with m.State("READ" + "_" * n):
                    m.d.comb += leaves.eq(1)
                    m.next = "READ" + "_" * (n + 1) if n + 1 < Ram.latency else "LEAVE"
            with m.State("LEAVE"):
                m.d.comb += [leaves.eq(1), self.o.valid.eq(1), Cat(payload.state).eq(states.r_data)]
                with m.If(self.o.ready):
                    m.d.sync += head.eq(head + 1)
                    m.next = "EXPIRE"
            with m.State("PROBE"):
                m.d.comb += [offered.eq(Mux(is_r, self.left.valid, self.right.valid)),
                             self.left.ready.eq(is_r & (pair | star)), self.right.ready.eq(~is_r & (pair | star))]
                with m.If(pair):
                    m.d.sync += met.eq(1)
                with m.If(star):
                    m.d.sync += count.eq(count + is_r)
                    m.next = "PAUSE"
            with m.State("PAUSE"):  # the time at the head is read anew
                m.next = "NEXT"
            with m.State("END"):
                m.d.comb += [payload.end.eq(1), self.o.valid.eq(self.left.valid & self.right.valid),
                             *(port.ready.eq(self.o.valid & self.o.ready) for port in (self.left, self.right))]
                with m.If(self.o.valid & self.o.ready):
                    m.next = "NEXT"
        return m

    def _expires(self, m: Module, now: Any, head: Signal, count: Signal, leaves: Value, stored: Value) -> Value:
        """True if the tuple of R at the ``head`` expires before the operation ``now``. ``leaves``: it leaves, so that
        the next one is looked at. ``stored``: R's tuple ``now`` is the next one.
        """
        config, window = self._config, self.window
        live = Signal(len(count))
        full, drains = Signal(), Signal()
        m.d.comb += [
            live.eq(count - head),
            full.eq((now.op == Op.TUPLE) & (now.stream == STREAM_R) & (window.rows == live)),
            drains.eq((now.op == Op.FLUSH) & (now.stream == STREAM_S)),
        ]
        old: Value = Signal(name="old")
        if config.time_bits:
            m.submodules.times = times = Ram(config.time_bits, window_rows(config))
            m.d.comb += [times.r_addr.eq(head + leaves), times.w_en.eq(stored), times.w_addr.eq(count[:-1]),
                         times.w_data.eq(now.ts)]
            age = Signal(config.time_bits)
            m.d.comb += [age.eq(now.ts - times.r_data),
                         old.eq(window.timed & (now.op != Op.FLUSH) & (age > window.range))]
        return (live != 0) & (full | drains | old)
