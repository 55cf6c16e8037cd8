"""The storage side of a region: the sub-window as a ring, its round-robin turn, and expiry."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from splitjoin.device.wire import ROW_BITS, Configuration, Op

from ..layouts import STREAM_R, STREAM_S, input_layout, other, struct, window_layout
from ..network.queue import Queue
from ..tech.ram import Ram
from .layouts import STORES, position_bits, task_layout

__all__ = ["Storage"]


class Storage(wiring.Component):
    """Applies operations in arrival order (SplitJoin, section 4, Algorithms 2 and 4).

    A tuple of the region's own stream is counted, and stored when it is this core's turn: row id mod cores = index. A
    tuple of the other stream becomes a task for the processing side, with a snapshot of the live positions; storing
    goes on meanwhile. Tuples expire on any arrival: by time, one per two cycles, before the operation takes effect; by
    count, together with the store that pushes them out.

    The ring is banked: position p lies in lane p mod lanes. A store counts at once, but is written only when no probe
    has to read any more what its slot holds; up to `STORES` of them wait for that.

    Ports:
        ``i``: input records, in arrival order. ``task``: probes, as `task_layout`.
        ``index``: this core's number, 0 to cores − 1, constant. ``window``: settings, constant while tuples are in
        flight.
        ``rows``, ``keys``: read ports of the ring, one a lane; ``keys`` belong to the ``rows`` of two cycles ago.
        ``scanning``, ``position``: whether a pass is under way, and the first position it has still to read.
        ``waiting``, ``first``: whether probes wait for the next pass, and the first position that will read.
        ``written``: the position up to which, exclusive, tuples are written.
        ``stall_…``, ``stores_high``: for `RegionCounters`.
        ``overflow``, ``overflow_row``: sticky; the tuple that found the ring full of live tuples. Input then stops.
        ``overflow_after``: how many tuples of the other stream had arrived before it.
    """

    def __init__(self, config: Configuration, side: str):
        self._config, self._side = config, side
        position = position_bits(config)
        super().__init__({
            "i": In(stream.Signature(input_layout(config))),
            "task": Out(stream.Signature(task_layout(config, side))),
            "index": In(range(max(2, config.cores))),
            "window": In(window_layout(config)),
            "rows": In(range(config.capacity // config.lanes)).array(config.lanes),
            "keys": Out(struct(config.keys(side))).array(config.lanes),
            "scanning": In(1),
            "position": In(position),
            "waiting": In(1),
            "first": In(position),
            "written": Out(position),
            "stall_probe": Out(1),
            "stall_store": Out(1),
            "stall_expiry": Out(1),
            "stores_high": Out(range(STORES + 1)),
            "overflow": Out(1),
            "overflow_row": Out(ROW_BITS),
            "overflow_after": Out(ROW_BITS),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        config, op = self._config, self.i.payload
        depth = config.capacity
        own = STREAM_R if self._side == "r" else STREAM_S

        live = Signal(range(depth + 1))  # tuples in the sub-window
        head = Signal(position_bits(config))  # position of the oldest one
        tail = Signal(position_bits(config))  # position for the next one
        head_row = Signal(ROW_BITS)  # row id of the oldest one, less index
        count = Signal(ROW_BITS)  # own tuples so far
        turn = Signal(range(max(2, config.cores)))  # count mod cores
        probes = Signal(ROW_BITS)  # tuples of the other stream so far

        store, probe, flush = Signal(), Signal(), Signal()
        timed = Signal()  # the operation has an event time
        masked = Signal()
        is_tuple = op.op == Op.TUPLE
        m.d.comb += [
            store.eq(self.i.valid & is_tuple & (op.stream == own)),
            probe.eq(self.i.valid & is_tuple & (op.stream != own)),
            flush.eq(self.i.valid & (op.op == Op.FLUSH)),
            timed.eq((op.op != Op.FLUSH) & (op.op != Op.MASK)),
        ]
        with m.If(self.i.valid & (op.op == Op.MASK) & (op.body[:len(self.index)] == self.index)):
            m.d.sync += masked.eq(op.stream)

        # Expiry by count happens with a store, so that afterwards the window is that of any later probe.
        mine = Signal()
        by_count = Signal()
        live_left = Signal(range(depth + 1))
        m.d.comb += [
            mine.eq(turn == self.index),
            by_count.eq((live != 0) & ((count + 1 - head_row)[:ROW_BITS] > self.window.rows + self.index)
                        & ~self.window.rows.all()),
            live_left.eq(live - by_count),
        ]

        settled = Const(1)  # whether it is known that the oldest tuple is not too old
        by_time = Const(0)
        full = Signal()
        m.d.comb += full.eq(store & mine & (live_left == depth))
        stored = Signal()
        advance = Signal()  # the oldest tuple leaves
        if config.time_bits:
            m.submodules.times = times = memory.Memory(shape=config.time_bits, depth=depth, init=[])
            t_write, t_read = times.write_port(), times.read_port()
            fresh = Signal()  # whether t_read.data is the time of the tuple at the head
            by_time = Signal()
            settled = Signal()
            age = Signal(config.time_bits)
            m.d.comb += [
                t_write.addr.eq(tail), t_write.data.eq(op.ts), t_write.en.eq(stored),
                t_read.addr.eq(head),
                age.eq(op.ts - t_read.data),
                by_time.eq(self.i.valid & (live != 0) & fresh & self.window.timed & timed
                           & (age > self.window.range)),
                settled.eq((live == 0) | ~timed | ~self.window.timed | (fresh & ~by_time)),
            ]
            # A read sees the new head, or a tuple just written to it, one cycle later.
            m.d.sync += fresh.eq(~(advance | (stored & (live_left == 0))))

        m.submodules.stores = stores = Queue(struct(config.keys(self._side)), STORES)
        go = Signal()  # the operation takes effect
        m.d.comb += go.eq(self.i.valid & settled & (
            (store & ~full & (~mine | stores.i.ready)) | ((probe | flush) & self.task.ready)
            | (op.op == Op.TICK) | (op.op == Op.MASK)))
        m.d.comb += [
            self.i.ready.eq(go),
            stored.eq(go & store & mine),
            stores.i.valid.eq(stored),
            self.stall_probe.eq(self.task.valid & ~self.task.ready),
            self.stall_store.eq(store & settled & mine & ~full & ~stores.i.ready),
            self.stall_expiry.eq(self.i.valid & ~settled),
            self.stores_high.eq(stores.level),
            advance.eq(by_time | (go & store & by_count)),
        ]
        m.d.sync += [
            live.eq(live + stored - advance),
            tail.eq(tail + stored),
            head.eq(head + advance),
        ]
        with m.If(advance):
            m.d.sync += head_row.eq(head_row + config.cores)
        with m.If(go & store):
            m.d.sync += [count.eq(count + 1), turn.eq(Mux(turn == config.cores - 1, 0, turn + 1))]
        with m.If(self.i.valid & settled & full & ~self.overflow):
            m.d.sync += [self.overflow.eq(1), self.overflow_row.eq(count)]
        m.d.comb += self.overflow_after.eq(probes)  # stands still, as the input does

        bounds_at = config.keys(other(self._side)).width
        bounds = op.body[bounds_at:bounds_at + config.bounds(other(self._side)).width]
        task = self.task.payload
        m.d.comb += [
            self.task.valid.eq((probe | flush) & settled),
            task.start.eq(head),
            task.count.eq(Mux(flush, 0, live)),
            task.row.eq(head_row),
            task.masked.eq(masked),
            task.flush.eq(flush),
            Cat(task.bounds).eq(bounds),
        ]
        with m.If(self.task.valid & self.task.ready):
            m.d.sync += probes.eq(probes + probe)

        body = data.View(struct(config.body(self._side)), op.body[:config.body(self._side).width])
        m.d.comb += [stores.i.payload[name].eq(body[name]) for name, _ in config.keys(self._side).fields]
        self._ring(m, stores)
        return m

    def _ring(self, m: Module, stores: Queue) -> None:
        """The banks, and the write of the oldest store that waits."""
        config = self._config
        lane_bits = config.lanes.bit_length() - 1
        # What the slot holds, `capacity` positions ago, must have been read: compared in modular arithmetic.
        unread, promised = Signal(position_bits(config)), Signal(position_bits(config))
        write = Signal()
        m.d.comb += [
            unread.eq(self.written - config.capacity - self.position),
            promised.eq(self.written - config.capacity - self.first),
            write.eq(stores.o.valid & ~(self.scanning & ~unread[-1]) & ~(self.waiting & ~promised[-1])),
            stores.o.ready.eq(write),
        ]
        m.d.sync += self.written.eq(self.written + write)
        for lane in range(config.lanes):
            bank = Ram(struct(config.keys(self._side)), config.capacity // config.lanes)
            m.submodules[f"bank{lane}"] = bank
            m.d.comb += [
                bank.r_addr.eq(self.rows[lane]),
                self.keys[lane].eq(bank.r_data),
                bank.w_addr.eq(self.written[lane_bits:]),
                bank.w_data.eq(stores.o.payload),
                bank.w_en.eq(write & (self.written[:lane_bits] == lane)),
            ]
