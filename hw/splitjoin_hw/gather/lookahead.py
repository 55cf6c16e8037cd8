"""The FIFO at each input of a merger, with its first two results visible."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.wire import ROW_BITS, ItemKind

from ..layouts import result_layout

#: Depth of the FIFO: at full rate one result is offered and the next one compared; ``i.ready`` is a register.
_DEPTH = 4
#: The kind of result that a stream offers: a pair, or a barrier, which is a star between slices, another star or an
#: END. All fields are 0 while the stream offers nothing.
OFFER = data.StructLayout({"pair": 1, "barrier": 1, "slice": 1, "star": 1, "end": 1})


def offer_of(results) -> dict[str, Value]:
    """The fields of `OFFER` for a stream of results."""
    kind, valid = results.payload.kind, results.valid
    return {"pair": valid & (kind == ItemKind.PAIR), "barrier": valid & (kind != ItemKind.PAIR),
            "slice": valid & (kind == ItemKind.SLICE), "star": valid & (kind == ItemKind.STAR),
            "end": valid & (kind == ItemKind.END)}


class LookaheadFifo(wiring.Component):
    """A FIFO of four results. The first two can be compared with those of other FIFOs.

    Ports:
        ``i``: results. ``i_offer``: their kind, as of `offer_of`; it may settle earlier in the cycle than ``i``.
        ``valid``: the FIFO is not empty. ``kind``, ``item``: the first result. ``pair``, ``barrier``, ``slice``,
        ``star``, ``end``, ``not_end``: there is a first result, and it is a pair, no pair, a star between slices,
        another star, an END, or no END. ``pop`` removes it, and needs ``valid``.
        ``wait_if_empty``: a setting; pairs of other FIFOs wait while this one is empty. ``lets_pass``: no pair of
        another FIFO has to wait for this one: its first result is a barrier, or it is empty without ``wait_if_empty``.
        ``present``: bit n is 1 if there is an n-th result. ``row_ids``: the lowest ``bits`` bits, 0 to 32, of the row
        ids of the stored tuples of the first two results. With 0 bits they cost nothing.

    Latency 1 cycle, 1 result per cycle. All outputs are registers but ``item``, which is read from LUT RAM. Registers
    duplicate the row ids to be compared: a read of LUT RAM before the comparison would take a fifth of the clock
    period.
    """

    def __init__(self, bits: int = ROW_BITS):
        if not (isinstance(bits, int) and 0 <= bits <= ROW_BITS):
            raise ValueError(f"Bits of a row id must be an integer from 0 to {ROW_BITS}, not {bits!r}")
        self.bits = bits
        super().__init__({
            "i": In(stream.Signature(result_layout())),
            "i_offer": In(OFFER),
            "pop": In(1),
            "wait_if_empty": In(1),
            "valid": Out(1),
            "kind": Out(ItemKind),
            "pair": Out(1),
            "barrier": Out(1),
            "lets_pass": Out(1),
            "slice": Out(1),
            "star": Out(1),
            "end": Out(1),
            "not_end": Out(1),
            "item": Out(data.StructLayout({"probe": ROW_BITS, "stored": ROW_BITS})),
            "present": Out(2),
            "row_ids": Out(bits).array(2),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        probes, stored, kinds = (memory.Memory(shape=bits, depth=_DEPTH, init=[]) for bits in (ROW_BITS, ROW_BITS, 2))
        m.submodules.probes, m.submodules.stored, m.submodules.kinds = probes, stored, kinds
        heads = [Signal(range(_DEPTH), name=f"head{n}", attrs={"keep": 1}) for n in range(2)]  # one per memory
        second = Signal(range(_DEPTH), init=1)  # addresses of the second and third result
        third = Signal(range(_DEPTH), init=2)
        tail = Signal(range(_DEPTH))
        occupied = Signal(_DEPTH)  # bit n: more than n results
        not_full = Signal(init=1)  # inverted, as synthesis would merge a register ``full`` with another
        push = Signal()
        arriving = self.i.payload
        m.d.comb += [
            self.i.ready.eq(not_full), self.valid.eq(occupied[0]), self.present.eq(occupied[:2]),
            push.eq((self.i_offer.pair | self.i_offer.barrier) & not_full),
        ]
        for rows, value in ((probes, arriving.probe), (stored, arriving.stored), (kinds, arriving.kind)):
            write = rows.write_port()
            # The slot at the tail is not read before it holds a result, so it may be written in any cycle.
            m.d.comb += [write.en.eq(~occupied[-1]), write.addr.eq(tail), write.data.eq(value)]

        def read(rows: memory.Memory, place: Signal) -> Value:
            port = rows.read_port(domain="comb")
            m.d.comb += port.addr.eq(place)
            return Value.cast(port.data)

        m.d.comb += [self.item.probe.eq(read(probes, heads[0])), self.item.stored.eq(read(stored, heads[1]))]

        # ``i_offer``, from another merger's arbiter, and ``pop`` settle late in a cycle, so they pass few gates here.
        if self.bits:
            following = (self.row_ids[1], read(stored, third)[:self.bits])
            for place, (shown, next_) in enumerate(zip(self.row_ids, following, strict=True)):
                row_id = Signal(self.bits, name=f"row_id{place}", reset_less=True)
                m.d.comb += shown.eq(row_id)
                with m.If(self.pop | ~occupied[place]):
                    m.d.sync += row_id.eq(Mux(occupied[place + 1], next_, arriving.stored[:self.bits]))

        def first_next(of_second: Value, of_arriving: Value) -> Value:
            """A property of the next first result, which is the second one, or the arriving one if there is none."""
            return ((occupied[1].replicate(len(of_second)) & of_second)
                    | ((~occupied[1]).replicate(len(of_second)) & of_arriving))

        kind, offer = read(kinds, second), self.i_offer
        with m.If(self.pop | ~occupied[0]):
            m.d.sync += self.kind.eq(first_next(kind, Value.cast(arriving.kind)))
        for flag, of_second, of_arriving in (
                (self.pair, kind == ItemKind.PAIR, offer.pair), (self.barrier, kind != ItemKind.PAIR, offer.barrier),
                (self.lets_pass, kind != ItemKind.PAIR, offer.barrier | ~(offer.pair | self.wait_if_empty)),
                (self.slice, kind == ItemKind.SLICE, offer.slice), (self.star, kind == ItemKind.STAR, offer.star),
                (self.end, kind == ItemKind.END, offer.end),
                (self.not_end, kind != ItemKind.END, offer.pair | (offer.barrier & ~offer.end))):
            with m.If(self.pop | ~occupied[0]):
                m.d.sync += flag.eq(first_next(of_second, of_arriving))
        with m.If(self.pop ^ push):
            m.d.sync += [occupied.eq(Mux(self.pop, occupied[1:], Cat(1, occupied[:-1]))),
                         not_full.eq(self.pop | ~occupied[-2])]
        m.d.sync += [
            tail.eq(tail + push),
            second.eq(second + self.pop), third.eq(third + self.pop),
            *(head.eq(head + self.pop) for head in heads),
        ]
        return m


def fed_queues(m: Module, merger, inputs: int, bits: int, *, has_offer_input: bool) -> list[LookaheadFifo]:
    """A FIFO for each input of ``merger``, whose results it takes; ``bits`` as of `LookaheadFifo`.

    The kinds of the results come from the port ``i_offer``, or from the results themselves.
    """
    queues = [LookaheadFifo(bits) for _ in range(inputs)]
    for j, queue in enumerate(queues):
        m.submodules[f"queue{j}"] = queue
        wiring.connect(m, wiring.flipped(merger.i[j]), queue.i)
        offer = merger.i_offer[j] if has_offer_input else None
        m.d.comb += queue.i_offer.eq(offer) if offer is not None else [
            queue.i_offer[name].eq(value) for name, value in offer_of(queue.i).items()]
    return queues
