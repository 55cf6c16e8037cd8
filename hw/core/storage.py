"""The storage side of a region: the sub-window as a ring, its round-robin turn, and expiry."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for
from splitjoin.device.wire import ROW_BITS, Configuration, Op

from ..layouts import STREAM_R, STREAM_S, input_layout, other, struct, window_layout

__all__ = ["Storage", "task_layout"]


def task_layout(config: Configuration, side: str) -> data.StructLayout:
    """What the storage side hands to the processing side of the region that stores ``side``.

    ``start`` and ``count``: ring slot of the oldest live tuple and how many are live; ``row``: its row id less the
    core's index; ``probe``: the probe's row id; then whether a star and an END item follow; ``bounds``.
    """
    return data.StructLayout({
        "start": unsigned(bits_for(config.capacity - 1)),
        "count": unsigned(bits_for(config.capacity)),
        "row": unsigned(ROW_BITS),
        "probe": unsigned(ROW_BITS),
        "star": unsigned(1),
        "end": unsigned(1),
        "bounds": struct(config.bounds(other(side))),
    })


class Storage(wiring.Component):
    """Applies operations in arrival order (SplitJoin, section 4, Algorithms 2 and 4).

    A tuple of the region's own stream is counted, and stored when it is this core's turn: row id mod cores = index. A
    tuple of the other stream becomes a task for the processing side, with a snapshot of the live slots; storing goes on
    meanwhile. Tuples expire on any arrival: by time, one per two cycles, before the operation takes effect; by count,
    together with the store that pushes them out.

    Ports:
        ``i``: input records, in arrival order. ``task``: probes, as `task_layout`.
        ``index``: this core's number, 0 to cores − 1, constant. ``window``: settings, constant while tuples are in
        flight.
        ``slot``, ``keys``: read port of the ring; ``keys`` belongs to the ``slot`` of two cycles ago.
        ``busy``, ``unread``: whether the processing side still has to read slots, and the first of them.
        ``overflow``, ``overflow_row``: sticky; the tuple that found the ring full of live tuples. Input then stops.
        ``overflow_after``: how many tuples of the other stream had arrived before it.
    """

    def __init__(self, config: Configuration, side: str):
        self._config, self._side = config, side
        slot = unsigned(bits_for(config.capacity - 1))
        super().__init__({
            "i": In(stream.Signature(input_layout(config))),
            "task": Out(stream.Signature(task_layout(config, side))),
            "index": In(range(max(2, config.cores))),
            "window": In(window_layout(config)),
            "slot": In(slot),
            "keys": Out(struct(config.keys(side))),
            "busy": In(1),
            "unread": In(slot),
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
        head = Signal(range(depth))  # slot of the oldest one
        tail = Signal(range(depth))  # slot for the next one
        head_row = Signal(ROW_BITS)  # row id of the oldest one, less index
        count = Signal(ROW_BITS)  # own tuples so far
        turn = Signal(range(max(2, config.cores)))  # count mod cores
        probes = Signal(ROW_BITS)  # tuples of the other stream so far
        since = Signal(32)  # probes since the last star

        m.submodules.ring = ring = memory.Memory(shape=struct(config.keys(self._side)), depth=depth, init=[])
        write, read = ring.write_port(), ring.read_port()
        keys = Signal(struct(config.keys(self._side)))
        # Two registers: block RAM without its output register is the slowest thing on the chip (ECP5: 5.6 ns).
        m.d.sync += keys.eq(read.data)
        body = data.View(struct(config.body(self._side)), op.body[:config.body(self._side).width])
        m.d.comb += [
            read.addr.eq(self.slot),
            self.keys.eq(keys),
            write.addr.eq(tail),
            *(write.data[name].eq(body[name]) for name, _ in config.keys(self._side).fields),
        ]

        store, probe, flush = Signal(), Signal(), Signal()
        is_tuple = op.op == Op.TUPLE
        m.d.comb += [
            store.eq(self.i.valid & is_tuple & (op.stream == own)),
            probe.eq(self.i.valid & is_tuple & (op.stream != own)),
            flush.eq(self.i.valid & (op.op == Op.FLUSH)),
        ]

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
        # The slot at the tail may be expired and yet not read by the scan under way: then the store waits.
        unread = Signal()
        m.d.comb += unread.eq(self.busy & (self.unread == tail))

        settled = Const(1)  # whether it is known that the oldest tuple is not too old
        by_time = Const(0)
        full = Signal()
        m.d.comb += full.eq(store & mine & (live_left == depth))
        written = Signal()
        advance = Signal()  # the oldest tuple leaves
        if config.time_bits:
            m.submodules.times = times = memory.Memory(shape=config.time_bits, depth=depth, init=[])
            t_write, t_read = times.write_port(), times.read_port()
            fresh = Signal()  # whether t_read.data is the time of the tuple at the head
            by_time = Signal()
            settled = Signal()
            age = Signal(config.time_bits)
            m.d.comb += [
                t_write.addr.eq(tail), t_write.data.eq(op.ts), t_write.en.eq(written),
                t_read.addr.eq(head),
                age.eq(op.ts - t_read.data),
                by_time.eq(self.i.valid & (live != 0) & fresh & self.window.timed & (op.op != Op.FLUSH)
                           & (age > self.window.range)),
                settled.eq((live == 0) | (op.op == Op.FLUSH) | ~self.window.timed | (fresh & ~by_time)),
            ]
            # A read sees the new head, or a tuple just written to it, one cycle later.
            m.d.sync += fresh.eq(~(advance | (written & (live_left == 0))))

        go = Signal()  # the operation takes effect
        m.d.comb += go.eq(self.i.valid & settled & (
            (store & ~full & ~(mine & unread)) | ((probe | flush) & self.task.ready) | (op.op == Op.TICK)))
        m.d.comb += [
            self.i.ready.eq(go),
            written.eq(go & store & mine),
            write.en.eq(written),
            advance.eq(by_time | (go & store & by_count)),
        ]
        m.d.sync += [
            live.eq(live + written - advance),
            tail.eq(tail + written),
            head.eq(head + advance),
        ]
        with m.If(advance):
            m.d.sync += head_row.eq(head_row + config.cores)
        with m.If(go & store):
            m.d.sync += [count.eq(count + 1), turn.eq(Mux(turn == config.cores - 1, 0, turn + 1))]
        with m.If(self.i.valid & settled & full & ~self.overflow):
            m.d.sync += [self.overflow.eq(1), self.overflow_row.eq(count)]
        m.d.comb += self.overflow_after.eq(probes)  # stands still, as the input does

        # Stars: every `precision` probes, and on flush if the open group is not empty.
        star = Signal()
        task = self.task.payload
        bounds_at = config.keys(other(self._side)).width
        bounds = op.body[bounds_at:bounds_at + config.bounds(other(self._side)).width]
        m.d.comb += [
            star.eq(Mux(flush, since != 0, (since + 1) == self.window.precision) & (self.window.precision != 0)),
            self.task.valid.eq((probe | flush) & settled),
            task.start.eq(head),
            task.count.eq(Mux(flush, 0, live)),
            task.row.eq(head_row),
            task.probe.eq(probes - flush),
            task.star.eq(star),
            task.end.eq(flush),
            Cat(task.bounds).eq(bounds),
        ]
        with m.If(self.task.valid & self.task.ready):
            m.d.sync += [probes.eq(probes + probe), since.eq(Mux(star | flush, 0, since + 1))]
        return m
