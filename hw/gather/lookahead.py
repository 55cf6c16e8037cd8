"""The queue before each input of a merger: shows two results at once."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from splitjoin.circuit.wire import ROW_BITS, ItemKind

from ..layouts import result_layout

__all__ = ["OFFER", "Lookahead", "offered"]

#: Results that it holds: at full rate one is on offer, the one behind it is compared, and ``i.ready`` is a register.
_PLACES = 4
#: What is on offer at a result stream: a pair, or a barrier, and then of which kind. Nothing: all are 0.
OFFER = data.StructLayout({"pair": 1, "bar": 1, "part": 1, "star": 1, "end": 1})


def offered(results) -> dict[str, Value]:
    """The fields of `OFFER`, of a stream of results."""
    kind, valid = results.payload.kind, results.valid
    return {"pair": valid & (kind == ItemKind.PAIR), "bar": valid & (kind != ItemKind.PAIR),
            "part": valid & (kind == ItemKind.SLICE), "star": valid & (kind == ItemKind.STAR),
            "end": valid & (kind == ItemKind.END)}


class Lookahead(wiring.Component):
    """Holds up to four results, of which the first two can be compared with those of other queues.

    Ports: ``i``: results. ``comes``: what is `offered` there, which whoever offers it may know sooner than the stream
    says it. ``valid``: whether there is a first one; ``kind`` and ``item`` tell of it, and ``pair``, ``bar``, ``part``,
    ``star``, ``end`` and ``ready`` whether it is there and a pair, anything but a pair, a star between slices, another
    star, END, or anything but END. It leaves with ``goes``, which needs ``valid``. ``clear``: no pair of another queue
    need wait for this one, as its first result is a ``bar``, or as there is none and the queue is not ``awaited``; a
    setting. ``ages``: the lowest ``bits`` bits of the row ids of the stored tuples of the first two, as far as they are
    ``here``. ``bits``: 0 to 32; with 0, ``ages`` say nothing and cost nothing.

    Latency 1 cycle, 1 result a cycle. All but ``item``, which is read from LUT RAM, are registers: what is compared
    stands twice, as a comparison behind a read of LUT RAM would take a fifth of the clock.
    """

    def __init__(self, bits: int = ROW_BITS):
        if not (isinstance(bits, int) and 0 <= bits <= ROW_BITS):
            raise ValueError(f"Bits of a row id must be an integer from 0 to {ROW_BITS}, not {bits!r}")
        self._bits = bits
        super().__init__({
            "i": In(stream.Signature(result_layout())),
            "comes": In(OFFER),
            "goes": In(1),
            "awaited": In(1),
            "valid": Out(1),
            "kind": Out(ItemKind),
            "pair": Out(1),
            "bar": Out(1),
            "clear": Out(1),
            "part": Out(1),
            "star": Out(1),
            "end": Out(1),
            "ready": Out(1),
            "item": Out(data.StructLayout({"probe": ROW_BITS, "stored": ROW_BITS})),
            "here": Out(2),
            "ages": Out(bits).array(2),
        })

    @property
    def bits(self) -> int:
        """Bits of each of ``ages``."""
        return self._bits

    def elaborate(self, platform) -> Module:
        m = Module()
        probes, stored, kinds = (memory.Memory(shape=bits, depth=_PLACES, init=[]) for bits in (ROW_BITS, ROW_BITS, 2))
        m.submodules.probes, m.submodules.stored, m.submodules.kinds = probes, stored, kinds
        heads = [Signal(range(_PLACES), name=f"head{n}", attrs={"keep": 1}) for n in range(2)]  # one a memory
        behind = Signal(range(_PLACES), init=1)  # the head
        third = Signal(range(_PLACES), init=2)
        tail = Signal(range(_PLACES))
        has = Signal(_PLACES)  # bit n: more than n results
        room = Signal(init=1)  # fewer than four: the other way round it would be a register that synthesis merges
        came = Signal()
        arriving = self.i.payload
        m.d.comb += [
            self.i.ready.eq(room), self.valid.eq(has[0]), self.here.eq(has[:2]),
            came.eq((self.comes.pair | self.comes.bar) & room),
        ]
        for rows, value in ((probes, arriving.probe), (stored, arriving.stored), (kinds, arriving.kind)):
            write = rows.write_port()
            # Nobody reads the place at the tail before a result is there, so it may be written in any cycle.
            m.d.comb += [write.en.eq(~has[-1]), write.addr.eq(tail), write.data.eq(value)]

        def read(rows: memory.Memory, place: Signal) -> Value:
            port = rows.read_port(domain="comb")
            m.d.comb += port.addr.eq(place)
            return Value.cast(port.data)

        m.d.comb += [self.item.probe.eq(read(probes, heads[0])), self.item.stored.eq(read(stored, heads[1]))]

        # What arrives, from another merger's choice, and ``goes`` come late, so they pass few gates here.
        if self._bits:
            behinds = (self.ages[1], read(stored, third)[:self._bits])
            for place, (shown, next_) in enumerate(zip(self.ages, behinds, strict=True)):
                age = Signal(self._bits, name=f"age{place}", reset_less=True)
                m.d.comb += shown.eq(age)
                with m.If(self.goes | ~has[place]):
                    m.d.sync += age.eq(Mux(has[place + 1], next_, arriving.stored[:self._bits]))

        def follows(second: Value, comes: Value) -> Value:
            """What is known of the first result when that changes: what is of the second one, or of what arrives."""
            return (has[1].replicate(len(second)) & second) | ((~has[1]).replicate(len(second)) & comes)

        kind, comes = read(kinds, behind), self.comes
        with m.If(self.goes | ~has[0]):
            m.d.sync += self.kind.eq(follows(kind, Value.cast(arriving.kind)))
        for flag, test, now in (
                (self.pair, kind == ItemKind.PAIR, comes.pair), (self.bar, kind != ItemKind.PAIR, comes.bar),
                (self.clear, kind != ItemKind.PAIR, comes.bar | ~(comes.pair | self.awaited)),
                (self.part, kind == ItemKind.SLICE, comes.part), (self.star, kind == ItemKind.STAR, comes.star),
                (self.end, kind == ItemKind.END, comes.end),
                (self.ready, kind != ItemKind.END, comes.pair | (comes.bar & ~comes.end))):
            with m.If(self.goes | ~has[0]):
                m.d.sync += flag.eq(follows(test, now))
        with m.If(self.goes ^ came):
            m.d.sync += [has.eq(Mux(self.goes, has[1:], Cat(1, has[:-1]))), room.eq(self.goes | ~has[-2])]
        m.d.sync += [
            tail.eq(tail + came),
            behind.eq(behind + self.goes), third.eq(third + self.goes),
            *(head.eq(head + self.goes) for head in heads),
        ]
        return m
