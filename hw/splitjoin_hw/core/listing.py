"""The output side of a region that scans for one probe at a time: its list is a FIFO of the reads with hits."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data

from splitjoin.circuit import geometry
from splitjoin.circuit.geometry import group_bits, list_depth

from ..network.queue import Queue
from ..tech.ram import Ram
from .emitter import Emitter


class Listing:
    """The end of the list at which the outcomes of a scan arrive: the reads with hits, and the last of each pass.

    Attributes:
        tail: The end of the list, in cycles from the one on in which its last entry can be read.
        head: Its begin, to be driven.
        written: An entry is written; ``group``, ``hits``, ``hit_probes``, ``last``: its fields.
    """

    def __init__(self, m: Module, emitter: Emitter):
        config, latency = emitter.config, emitter.latency
        lanes, probes = config.lanes, config.probes
        self.depth = list_depth(config, latency)
        self.pointer = range(2 * self.depth)
        self.tail, self.head = Signal(self.pointer, name="tail"), Signal(self.pointer, name="head")
        self.written, self.last = Signal(name="written"), Signal(name="last_read")
        self.group, self.hits = Signal(group_bits(config), name="group"), Signal(probes * lanes, name="hits")
        self.hit_probes = Signal(probes, name="hit_probes")
        level, valid = Signal(self.pointer, name="level"), Signal(name="valid")
        # Outcomes that may arrive after ``room`` has fallen.
        under_way = geometry.reads_under_way(latency)
        found = emitter.found
        m.d.sync += [
            level.eq(self.tail - self.head), emitter.room.eq(level < self.depth - under_way),
            # An outcome; a cycle later it is known whether it has hits and is written to the list.
            valid.eq(emitter.found_valid), self.last.eq(found.last), self.hits.eq(found.hits),
            self.hit_probes.eq(Cat(found.hits[n * lanes:(n + 1) * lanes].any() for n in range(probes))),
            self.tail.eq(self.tail + self.written),
        ]
        m.d.comb += [emitter.list_high.eq(level), self.written.eq(valid & (self.last | self.hit_probes.any()))]
        with m.If(valid):
            m.d.sync += self.group.eq((self.group + 1) & (~self.last).replicate(len(self.group)))


class ListEmitter(Emitter):
    """An `Emitter` for batches of one probe: its results leave while its pass is under way."""

    def _walk(self, m: Module, items: Queue, taken: data.View, due: Signal, finish: Signal) -> None:
        config = self.config
        found = Listing(m, self)
        entry = data.StructLayout({"last": 1, "group": group_bits(config), "hits": config.lanes})
        m.submodules.list = found_list = Ram(entry, found.depth)
        m.d.comb += [
            found_list.w_en.eq(found.written), found_list.w_addr.eq(found.tail[:-1]),
            found_list.w_data.last.eq(found.last), found_list.w_data.group.eq(found.group),
            found_list.w_data.hits.eq(found.hits),
        ]
        cursor = Signal(found.pointer)  # the next entry that is fetched
        fetch, may_fetch = Signal(name="fetch"), Signal(name="may_fetch")
        ended = Signal()  # the last entry of the pass was read in the previous cycle
        # Entries under way from the list: a flag, and the end of the list once they are read.
        fetching, fetched = (Signal(data.StructLayout({"valid": 1, "next": found.pointer}), name=name)
                             for name in ("fetching", "fetched"))
        last = Signal()
        m.d.comb += [
            last.eq(fetched.valid & found_list.r_data.last),
            # Entries behind a pass's last belong to the next batch. They are fetched again.
            fetch.eq(may_fetch & (cursor != found.tail)),
            found_list.r_addr.eq(cursor[:-1]), finish.eq(last),
        ]
        m.d.sync += [
            may_fetch.eq(due & ~last & (items.level < geometry.EMITTER_ITEMS - 6)),
            fetching.valid.eq(fetch & ~last), fetching.next.eq(cursor + 1),
            fetched.valid.eq(fetching.valid & ~last), fetched.next.eq(fetching.next), ended.eq(last),
        ]
        with m.If(fetch):
            m.d.sync += cursor.eq(cursor + 1)
        with m.If(fetched.valid):
            m.d.sync += found.head.eq(fetched.next)
        with m.If(last):
            m.d.sync += cursor.eq(fetched.next)
        item = items.i.payload
        flush = Signal()
        m.d.sync += flush.eq(taken.flush)
        m.d.comb += [
            item.end.eq(ended), item.flush.eq(flush), *self._read(item, found_list.r_data.group),
            item.lanes.eq(found_list.r_data.hits | ended),
            items.i.valid.eq(ended | (fetched.valid & found_list.r_data.hits.any())),
        ]
