"""Ports to external memory: of a region, and an AXI4 master for all regions."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.memory import address_bits, core_bits, heads_have_records, id_bits, line_bits, place_bits
from splitjoin.circuit.wire import ROW_BITS, Configuration


def core_of(config: Configuration, bucket: Value) -> Value:
    """The core that has ``bucket``."""
    return bucket[place_bits(config):][:core_bits(config)]


def head_line(config: Configuration, bucket: Value) -> Value:
    """The line of ``bucket``'s head, among those of its core and stream."""
    return bucket[place_bits(config) + core_bits(config):config.buckets.bit_length() - 1]


def head_in(config: Configuration, line: Value, place: Value) -> Value:
    """The head at ``place`` in a ``line`` of heads; beside a record it is the last word."""
    return line[-ROW_BITS:] if heads_have_records(config) else line.word_select(place[:place_bits(config)], ROW_BITS)


class MemorySignature(wiring.Signature):
    """The port of a region to memory, in lines; the numbers of requests come back with their answers, in any order.

    ``read``: the ``line`` and the ``number`` of a read. ``write``: those of a write, its ``data``, and a bit of
    ``mask`` for each byte that is written. ``answer``, ``written``: what was read, and that a write is done; both are
    taken at once. ``fault``: an answer was an error.
    """

    def __init__(self, config: Configuration):
        line, number, bits = address_bits(config), id_bits(config) - 1, line_bits(config)
        super().__init__({
            "read": Out(stream.Signature(data.StructLayout({"line": line, "number": number}))),
            "write": Out(stream.Signature(data.StructLayout(
                {"line": line, "number": number, "data": bits, "mask": bits // 8}))),
            "answer_valid": In(1),
            "answer": In(data.StructLayout({"number": number, "data": bits})),
            "written_valid": In(1),
            "written": In(number),
        })


class MasterSignature(wiring.Signature):
    """The signals of an AXI4 master that change: reads and writes of a beat of a line, at aligned addresses.

    All others are constant: ``len`` 0, ``size`` that of a line, ``burst`` INCR, ``wlast`` 1.
    """

    def __init__(self, config: Configuration):
        line, number, bits = address_bits(config), id_bits(config), line_bits(config)
        address = data.StructLayout({"line": line, "id": number})
        super().__init__({
            "ar": Out(stream.Signature(address)),
            "aw": Out(stream.Signature(address)),
            "w": Out(stream.Signature(data.StructLayout({"data": bits, "strb": bits // 8}))),
            "r": In(stream.Signature(data.StructLayout({"data": bits, "resp": 2, "id": number}))),
            "b": In(stream.Signature(data.StructLayout({"resp": 2, "id": number}))),
        })


class RoundRobin(wiring.Component):
    """Two streams of ``shape`` in one of ``out``, the one that did not come last first; ``source``: which one it is.

    ``o`` is a register, which keeps its offer until it is taken.
    """

    def __init__(self, shape):
        self._shape = shape
        super().__init__({"i": In(stream.Signature(shape)).array(2), "o": Out(stream.Signature(shape)),
                          "source": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        chosen, room = Signal(), Signal()
        m.d.comb += [room.eq(~self.o.valid | self.o.ready),
                     chosen.eq(Mux(self.source, ~self.i[0].valid, self.i[1].valid)),
                     self.i[0].ready.eq(room & ~chosen), self.i[1].ready.eq(room & chosen)]
        with m.If(room):
            m.d.sync += [self.o.valid.eq(Array(port.valid for port in self.i)[chosen]),
                         Cat(self.o.payload).eq(Mux(chosen, Cat(self.i[1].payload), Cat(self.i[0].payload)))]
            with m.If(self.i[0].valid | self.i[1].valid):
                m.d.sync += self.source.eq(chosen)
        return m


class AxiMaster(wiring.Component):
    """Joins the ports of both regions of a core to one AXI4 master, whose ids begin with the region.

    After an answer that is an error (``fault``, sticky) no answer is handed on any more: the regions stand still, as
    they do not know what to read next.
    """

    def __init__(self, config: Configuration):
        self._config = config
        super().__init__({"regions": In(MemorySignature(config)).array(2), "bus": Out(MasterSignature(config)),
                          "fault": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        regions, bus = self.regions, self.bus
        m.submodules.reads = reads = RoundRobin(regions[0].read.payload.shape())
        m.submodules.writes = writes = RoundRobin(regions[0].write.payload.shape())
        for n, region in enumerate(regions):
            wiring.connect(m, wiring.flipped(region.read), reads.i[n])
            wiring.connect(m, wiring.flipped(region.write), writes.i[n])
        write, addressed, sent = writes.o.payload, Signal(), Signal()
        done = [addressed | bus.aw.ready, sent | bus.w.ready]
        m.d.comb += [
            bus.ar.valid.eq(reads.o.valid), reads.o.ready.eq(bus.ar.ready), bus.ar.p.line.eq(reads.o.p.line),
            bus.ar.p.id.eq(Cat(reads.o.p.number, reads.source)),
            bus.aw.valid.eq(writes.o.valid & ~addressed), bus.w.valid.eq(writes.o.valid & ~sent),
            bus.aw.p.line.eq(write.line), bus.aw.p.id.eq(Cat(write.number, writes.source)),
            bus.w.p.data.eq(write.data), bus.w.p.strb.eq(write.mask), writes.o.ready.eq(done[0] & done[1]),
            bus.r.ready.eq(1), bus.b.ready.eq(1),
        ]
        # A write's address and data are taken independently of each other.
        m.d.sync += [addressed.eq(writes.o.valid & done[0] & ~done[1]), sent.eq(writes.o.valid & done[1] & ~done[0])]
        r, b = (Signal(getattr(bus, name).payload.shape(), name=name, reset_less=True) for name in "rb")
        r_valid, b_valid = Signal(), Signal()
        m.d.sync += [r.eq(bus.r.payload), b.eq(bus.b.payload), r_valid.eq(bus.r.valid), b_valid.eq(bus.b.valid)]
        wrong = Signal()
        m.d.comb += wrong.eq((r_valid & r.resp[1]) | (b_valid & b.resp[1]))
        with m.If(wrong):
            m.d.sync += self.fault.eq(1)
        for n, region in enumerate(regions):
            m.d.comb += [
                region.answer_valid.eq(r_valid & (r.id[-1] == n) & ~wrong & ~self.fault),
                region.answer.number.eq(r.id[:-1]), region.answer.data.eq(r.data),
                region.written_valid.eq(b_valid & (b.id[-1] == n) & ~wrong & ~self.fault), region.written.eq(b.id[:-1]),
            ]
        return m
