"""Items on the link, taken out of records of several, and packed as differences to the items before, as
`splitjoin.link.items` says.
"""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.wire import NO_ITEM, Configuration, ItemKind, Record
from splitjoin.link.items import row_id_bytes


class ItemPacker(wiring.Component):
    """Makes bytes of items: ``i`` are items of ``record``, in whole bytes, ``o`` their bytes.

    An item takes two cycles, and one more for each of its bytes. ``whole_stars``: both row ids of a STAR are sent.
    """

    def __init__(self, record: Record, *, whole_stars: bool = False):
        self._record, self._whole_stars = record, whole_stars
        super().__init__({"i": In(stream.Signature(-(-record.width // 8) * 8)), "o": Out(stream.Signature(8))})

    def elaborate(self, platform) -> Module:
        m = Module()
        offsets, counts = self._record.offsets(), row_id_bytes(self._record)
        width, full = offsets["r"][1], counts[-1]
        kind, side = Signal(2), Signal()
        row_ids, lasts, differences = ([Signal(bits, name=f"{prefix}_{name}") for name in "rs"] for prefix, bits in (
            ("row", width), ("last", width), ("difference", 8 * full)))
        left = Signal(range(full + 1))

        def field(name: str):
            at, bits = offsets[name]
            return self.i.payload[at:at + bits]

        def code(difference: Signal):
            """The code of the fewest bytes that ``difference`` needs."""
            fits = [difference == 0, *((difference[8 * n - 1:].all() | ~difference[8 * n - 1:].any())
                                       for n in (1, 2) if n < full)]
            fits += [Const(1)] * (4 - len(fits))
            return Mux(fits[0], 0, Mux(fits[1], 1, Mux(fits[2], 2, 3)))

        codes = [Signal(2, name=f"code_{name}") for name in "rs"]
        for of, difference in zip(codes, differences, strict=True):
            m.d.comb += of.eq(code(difference))

        def begin(n: int) -> None:
            """Go on with the bytes of stream ``n``'s difference, or past it if it has none."""
            with m.If(codes[n] != 0):
                with m.Switch(codes[n]):
                    for value, count in enumerate(counts):
                        with m.Case(value):
                            m.d.sync += left.eq(count)
                m.next = "RS"[n]
            with m.Else():
                if n == 0:
                    begin(1)
                else:
                    m.next = "TAKE"

        with m.FSM():
            with m.State("TAKE"):
                m.d.comb += self.i.ready.eq(1)
                m.d.sync += [kind.eq(field("kind")), side.eq(field("side")),
                             *(row.eq(field(name)) for row, name in zip(row_ids, "rs", strict=True))]
                with m.If(self.i.valid):
                    m.next = "SUBTRACT"
            with m.State("SUBTRACT"):
                for n, (row, last, difference) in enumerate(zip(row_ids, lasts, differences, strict=True)):
                    star = (kind == ItemKind.STAR) & (1 if self._whole_stars else side == n)
                    m.d.sync += difference.eq(0)
                    with m.If((kind == ItemKind.PAIR) | star):
                        m.d.sync += [difference.eq((row - last)[:width].as_signed()), last.eq(row)]
                m.next = "HEAD"
            with m.State("HEAD"):
                m.d.comb += [self.o.valid.eq(1), self.o.payload.eq(Cat(kind, side, *codes))]
                with m.If(self.o.ready):
                    begin(0)
            for n, difference in enumerate(differences):
                with m.State("RS"[n]):
                    m.d.comb += [self.o.valid.eq(1), self.o.payload.eq(difference)]
                    with m.If(self.o.ready):
                        m.d.sync += [difference.eq(difference >> 8), left.eq(left - 1)]
                        with m.If(left == 1):
                            if n == 0:
                                begin(1)
                            else:
                                m.next = "TAKE"
        return m


class RecordUnpacker(wiring.Component):
    """Gives the items of each output record of ``config``, one in a cycle, the first one first.

    Ports: ``i``: `Configuration.output_record`. ``o``: `Configuration.item_record`. A record is taken with its last
    item; none is without any.
    """

    def __init__(self, config: Configuration):
        self._config = config
        super().__init__({"i": In(stream.Signature(config.output_record.width)),
                          "o": Out(stream.Signature(config.item_record.width))})

    def elaborate(self, platform) -> Module:
        m = Module()
        width, count = self._config.item_record.width, self._config.root_width
        items = [self.i.payload[n * width:(n + 1) * width] for n in range(count)]
        place = Signal(range(count))
        # Items take the lowest places, so the first place without one ends the record.
        last = Array([items[n + 1][:2] == NO_ITEM for n in range(count - 1)] + [1])[place]
        m.d.comb += [self.o.payload.eq(Array(items)[place]), self.o.valid.eq(self.i.valid),
                     self.i.ready.eq(self.o.ready & last)]
        with m.If(self.i.valid & self.o.ready):
            m.d.sync += place.eq(place + 1)
            with m.If(last):
                m.d.sync += place.eq(0)
        return m
