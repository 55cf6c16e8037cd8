"""The part of a window that a core of a baseline holds: a ring of consecutive tuples that go in and out in order."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit import geometry
from splitjoin.circuit.geometry import position_bits, ring_rows
from splitjoin.circuit.wire import ROW_BITS, Configuration
from splitjoin.lang.schema import other_side

from ..core.interfaces import OutcomeSignature, RingSignature, interface
from ..core.kinds import ScanComponents
from ..core.layouts import task_layout
from ..layouts import result_layout, struct, window_layout
from ..network.queue import Queue
from ..tech.ram import Ram


def probe_layout(config: Configuration, side: str) -> data.StructLayout:
    """A probe of the tuples of stream ``side``; ``flush``: none, but the end of the input."""
    return data.StructLayout({"bounds": struct(config.bounds(other_side(side))), "flush": 1})


def segment_ports(config: Configuration, side: str, *, probes: bool = True) -> dict[str, wiring.Member]:
    """The ports of a `Segment` that are those of its region too.

    A tuple has its keys in ``body``, and with ``probes`` its bounds, as it is compared in other cores too.
    """
    count, position = range(config.capacity + 1), position_bits(config)
    body = struct(config.body(side) if probes else config.keys(side))
    return {"append": In(1), "body": In(body), "drop": In(1), "send": In(1), "free": Out(1), "oldest": Out(body),
            "oldest_valid": Out(1), "length": Out(count), "unsent": Out(count), "left": Out(position),
            "end": Out(position)}


class Segment(wiring.Component):
    """A ring of tuples with consecutive row ids of one core: the youngest comes last, and the oldest leaves first.

    Keys are kept twice: in the banks that are scanned, and with the bounds in a memory beside, from which a tuple goes
    on to the next core. With one key of 32 bits that is three times the bits of a sub-window of SplitJoin, or four with
    two bounds. The ring has the slack of `splitjoin_hw.core.storage.Storage`, so that tuples leave while a scan still
    reads them.

    Operations are given at least three cycles apart.

    Ports:
        ``append``, ``body``: store a tuple; needs ``free``. ``drop``: the oldest tuple leaves. ``send``: the oldest
        tuple that was not sent is, and stays until it is dropped.
        ``oldest``, ``oldest_valid``: that tuple. ``length``, ``unsent``: the numbers of all tuples, and of those that
        were not sent. ``left``: the number of tuples dropped so far, modulo.
        ``start``, ``end``, ``row``: the window of a probe, as in `task_layout`.
        ``hold``: nothing may be stored in the next cycle. `RingSignature`: the ring as the scanner reads it.
    """

    def __init__(self, config: Configuration, side: str, *, moves: bool = True, probes: bool = True):
        """``moves``: tuples go on; without it there is no ``oldest``. ``probes``: as of `segment_ports`."""
        self._config, self._side, self._moves = config, side, moves
        super().__init__({**segment_ports(config, side, probes=probes), "hold": In(1),
                          "start": Out(position_bits(config)), "row": Out(ROW_BITS),
                          **RingSignature(config, side).flip().members})

    def elaborate(self, platform) -> Module:
        m = Module()
        config, side = self._config, self._side
        bits, lane_bits = position_bits(config), config.lanes.bit_length() - 1
        sent = Signal(bits)  # position of the oldest tuple that was not sent
        m.d.comb += self.left.eq(self.start)
        m.d.sync += [self.length.eq(self.length + self.append - self.drop),
                     self.unsent.eq(self.unsent + self.append - self.send),
                     self.end.eq(self.end + self.append), self.start.eq(self.start + self.drop),
                     sent.eq(sent + self.send)]
        with m.If(self.drop):
            m.d.sync += self.row.eq(self.row + config.cores)
        keys = config.keys(side)
        for lane in range(config.lanes):
            m.submodules[f"bank{lane}"] = bank = Ram(struct(keys), ring_rows(config))
            m.d.comb += [
                bank.r_addr.eq(self.rows[lane]), Cat(self.keys[lane]).eq(Cat(bank.r_data)),
                bank.w_en.eq(self.append & (self.end[:lane_bits] == lane)), bank.w_addr.eq(self.end[lane_bits:]),
                Cat(bank.w_data).eq(Cat(self.body[name] for name, _ in keys.fields)),
            ]
        self._space(m, bits)
        if not self._moves:
            return m
        m.submodules.bodies = bodies = Ram(len(Value.cast(self.body)), ring_rows(config) * config.lanes)
        pending = Signal(Ram.latency)  # cycles until the memory shows the oldest tuple
        m.d.sync += pending.eq(Mux(self.append | self.send, -1, pending >> 1))
        m.d.comb += [
            bodies.w_en.eq(self.append), bodies.w_addr.eq(self.end), bodies.w_data.eq(Cat(self.body)),
            bodies.r_addr.eq(sent), Cat(self.oldest).eq(bodies.r_data),
            self.oldest_valid.eq(~pending[0] & (self.unsent != 0)),
        ]
        return m

    def _space(self, m: Module, bits: int) -> None:
        """Drives ``free``, a cycle late: no pass has still to read the slot at the end, and the segment has room."""
        reach = self._config.capacity + geometry.stores(self._config)
        border = Signal(bits, init=-reach % 2**bits)  # last position to be read before a store: the end less reach
        m.d.sync += border.eq(border + self.append)
        behind = [(border - at)[bits - 1] for at in (self.position, self.first)]
        m.d.sync += self.free.eq(~(self.scanning & ~behind[0]) & ~(self.waiting & ~behind[1]) & ~self.claiming
                                 & ~self.hold & (self.length != self._config.capacity))


class SegmentRegion(wiring.Component):
    """A `Segment` with the scanner, matcher and emitter of a core of SplitJoin.

    Ports: `segment_ports`. ``probe``: a probe of the segment as it is now; ``until``: it sees tuples before this
    position only. ``o``: results, and for a flush an END. ``compared``, ``matched``: for the counters. ``index``: the
    core's number, where tuples of a core are as many row ids apart as there are cores. ``depth`` probes can wait for
    the scanner.
    """

    def __init__(self, config: Configuration, side: str, *, depth: int = 0, moves: bool = True, probes: bool = True):
        self._config, self._side, self._depth = config, side, depth
        self._segment = {"moves": moves, "probes": probes}
        self._shared = {name: member.flow for name, member in segment_ports(config, side, probes=probes).items()}
        super().__init__({
            **segment_ports(config, side, probes=probes),
            "probe": In(stream.Signature(probe_layout(config, side))), "until": In(position_bits(config)),
            "o": Out(stream.Signature(result_layout())), "index": In(range(max(2, config.cores))),
            "window": In(window_layout(config)), "compared": Out(range(config.capacity + 1)), "matched": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        config, side, kind = self._config, self._side, ScanComponents()
        m.submodules.segment = segment = Segment(config, side, **self._segment)
        m.submodules.scanner = scanner = kind.processing(config, side)
        m.submodules.emitter = emitter = kind.emitter(config, scanner.latency)
        ring, outcomes = RingSignature(config, side), OutcomeSignature(config)
        wiring.connect(m, interface(scanner, ring), interface(segment, ring.flip()))
        wiring.connect(m, interface(scanner, outcomes), interface(emitter, outcomes.flip()))
        wiring.connect(m, scanner.batch, emitter.batch)
        wiring.connect(m, emitter.o, wiring.flipped(self.o))
        for name, flow in self._shared.items():
            inner, own = Value.cast(getattr(segment, name)), Value.cast(getattr(self, name))
            m.d.comb += inner.eq(own) if flow == In else own.eq(inner)
        tasks: Any = scanner.task
        hold: Value = Const(0)
        if self._depth:
            m.submodules.tasks = queue = Queue(task_layout(config, side), self._depth)
            wiring.connect(m, queue.o, scanner.task)
            tasks, hold = queue.i, queue.o.valid & ~scanner.waiting
        task, probe = tasks.payload, self.probe.payload
        flush = probe.flush
        m.d.comb += [
            segment.hold.eq(hold),
            tasks.valid.eq(self.probe.valid), self.probe.ready.eq(tasks.ready),
            task.start.eq(segment.start), task.end.eq(Mux(flush, segment.start, self.until)),
            task.count.eq(Mux(flush, 0, self.until - segment.start)), task.row.eq(segment.row), task.flush.eq(flush),
            Cat(task.bounds).eq(Cat(probe.bounds)),
            emitter.window.eq(self.window), emitter.index.eq(self.index), scanner.single.eq(self.window.slice != 0),
            self.compared.eq(scanner.compared), self.matched.eq(emitter.matched),
        ]
        return m
