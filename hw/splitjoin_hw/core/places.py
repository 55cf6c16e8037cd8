"""Two batches' items, sorted by probe: a place for each probe, and the number of items in it."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.geometry import sort_quota
from splitjoin.circuit.wire import Configuration

from ..tech.ram import Ram

__all__ = ["Places"]


class Places(wiring.Component):
    """A place of `splitjoin.circuit.geometry.sort_quota` rows for each probe of two batches.

    One batch is sorted into its places while the other is read. A full place takes no more items.

    Ports:
        ``put``, ``put_batch``, ``put_probe``, ``item``: an item for the place of a probe.
        ``held``: for each batch, a flag that it is read, and not written. ``probe``: the one whose place is read.
        ``batch``, ``at``: the batch that is read, and the row; ``read``: what it holds, two cycles later. ``count``:
        rows of the place in use. ``clear``: for each batch that is ``held``, from the next cycle on the place of
        ``probe`` is empty.
    """

    def __init__(self, config: Configuration, item: Any):
        """``item``: the shape of an item."""
        self._item, self.quota = item, sort_quota(config)
        self._bits = bits = (config.probes - 1).bit_length()
        super().__init__({
            "put": In(1), "put_batch": In(1), "put_probe": In(bits), "item": In(item),
            "held": In(2), "batch": In(1), "probe": In(bits), "at": In(range(self.quota)), "read": Out(item),
            "count": Out(range(self.quota + 1)), "clear": In(2),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        counts = []
        for n in range(2):
            m.submodules[f"counts{n}"] = rows = memory.Memory(shape=self.count.shape(), depth=1 << self._bits, init=[])
            read, write = rows.read_port(domain="comb"), rows.write_port()
            held, probe = self.held[n], Signal(self._bits, name=f"probe{n}")
            # No carry chain stands behind the memory that a count is read from. Of a full place the low bits go on.
            *low, full = read.data
            ones = [Cat(low[:bit]).all() if bit else Const(1) for bit in range(len(low))]
            more = Cat(*(bit ^ carry for bit, carry in zip(low, ones, strict=True)), full | Cat(low).all())
            m.d.comb += [
                probe.eq(Mux(held, self.probe, self.put_probe)), read.addr.eq(probe), write.addr.eq(probe),
                write.data.eq(more & (~held).replicate(len(more))),
                write.en.eq(Mux(held, self.clear[n], self.put & (self.put_batch == n))),
            ]
            counts.append(Cat(Cat(low) & (~full).replicate(len(low)), full))
        m.submodules.entries = rows = Ram(self._item, 2 * self.quota << self._bits)
        count = Mux(self.put_batch, counts[1], counts[0])
        # Rows are written a cycle later, from registers. A place is read no sooner than two cycles after its last item.
        m.d.sync += [
            rows.w_en.eq(self.put & ~count[-1]), rows.w_addr.eq(Cat(count[:-1], self.put_probe, self.put_batch)),
            Cat(rows.w_data).eq(Cat(self.item)),
        ]
        m.d.comb += [
            self.count.eq(Mux(self.batch, counts[1], counts[0])),
            rows.r_addr.eq(Cat(self.at, self.probe, self.batch)), Cat(self.read).eq(Cat(rows.r_data)),
        ]
        return m
