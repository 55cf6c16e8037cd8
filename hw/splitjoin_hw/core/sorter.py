"""The output side of a region that scans for several probes at a time: it sorts the hits of a pass by probe."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from operator import or_
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit import geometry
from splitjoin.circuit.geometry import group_bits, sort_quota
from splitjoin.circuit.wire import Configuration

from ..network.queue import Queue
from ..tech.ram import Ram
from .emitter import Emitter, at_most_one
from .listing import Listing


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


#: Probes whose hits in a read are looked at together: as many as one LUT4 has inputs.
_GROUP = 4
#: Items that may be under way to the queue when its level says that there is space: from a place, and from the list.
_FROM_PLACE, _FROM_LIST = 7, 11


class SortingEmitter(Emitter):
    """An `Emitter` for batches of several probes, in a cycle for each result and two for each probe.

    Reads that have hits enter a list. Each is taken from it once, a probe's hits in it a cycle, and those go to the
    probe's own place (`Places`), while the batch before leaves. Then the places are read one after the other. A probe
    whose place is full may have more items: when its turn comes, the list is read for it alone, from the read on whose
    item is the place's last. The list has room for all reads of a pass, so a scan never waits for its own results.
    """

    def _walk(self, m: Module, items: Queue, taken: data.View, due: Signal, finish: Signal) -> None:
        config = self.config
        lanes, probes = config.lanes, config.probes
        found = Listing(m, self)
        # The list, in two memories: the probes with hits, and all else, which is read later.
        m.submodules.list = entries = Ram(data.StructLayout({"last": 1, "probes": probes}), found.depth, stallable=True)
        read = {"group": group_bits(config), **({"hits": probes * lanes} if lanes > 1 else {})}
        m.submodules.reads = reads = Ram(data.StructLayout(read), found.depth)
        for ram in (entries, reads):
            m.d.comb += [ram.w_en.eq(found.written), ram.w_addr.eq(found.tail[:-1])]
        m.d.comb += [entries.w_data.last.eq(found.last), entries.w_data.probes.eq(found.hit_probes),
                     reads.w_data.group.eq(found.group)]
        if lanes > 1:
            m.d.comb += reads.w_data.hits.eq(found.hits)
        item = data.StructLayout({"at": found.pointer, "group": group_bits(config),
                                  **({"lanes": lanes} if lanes > 1 else {})})
        m.submodules.places = places = Places(config, item)

        # Of each half of the places: it holds a sorted batch; that, or the last read of its batch was taken from the
        # list. After a reset both are cleared.
        is_sorted, busy = Signal(2, name="is_sorted", init=-1), Signal(2, name="busy", init=-1)
        ends = [Signal(found.pointer, name=f"end{n}") for n in range(2)]  # the end of the batch in the list
        filling, leaving = Signal(name="filling"), Signal(name="leaving")  # the half that is filled, and that is read
        walk, walked = Signal(name="walk"), Signal(name="walked")  # reading the list for one probe begins, and ends
        walk_from = Signal(found.pointer)
        probe = Signal(range(probes))  # whose items enter the queue
        put = self._take_reads(m, found, entries, reads, items, busy, ends, walk, walk_from, probe)
        m.d.comb += [
            places.put.eq(put.valid & ~put.walk), places.put_batch.eq(filling), places.put_probe.eq(put.probe),
            *(places.item[name].eq(put[name]) for name, _ in item),
            places.held.eq(is_sorted), places.batch.eq(leaving), places.probe.eq(probe), walked.eq(put.last & put.walk),
        ]

        # The places of a sorted batch, one after the other.
        clearing = Signal(init=1)
        may_advance = Signal()  # the queue has space, and ``taken`` is sorted
        known, more = Signal(name="known"), Signal(name="more")  # the items in the place are counted; some are left
        count, at = Signal.like(places.count, name="in_place"), Signal.like(places.count, name="row")
        continued = Signal()  # after the place the list must be read
        fetch, end, last = (Signal(name=name) for name in ("fetch", "end", "last"))
        m.d.comb += [
            fetch.eq(may_advance & known & more), end.eq(may_advance & known & ~more & ~continued),
            finish.eq(end & last), places.at.eq(at[:-1]), more.eq(count != at),
            places.clear.eq(clearing.replicate(2) | Cat(end & ~leaving, end & leaving)),
        ]
        m.d.sync += [
            may_advance.eq(due & is_sorted.bit_select(leaving, 1) & ~clearing & ~finish
                           & (items.level <= geometry.EMITTER_ITEMS - _FROM_PLACE)),
            known.eq(~end & (known | may_advance)), last.eq(probe == taken.probes),
        ]
        with m.If(~known):
            m.d.sync += [count.eq(places.count), continued.eq(places.count[-1]), at.eq(0)]
        with m.If(fetch):
            m.d.sync += at.eq(at + 1)
        with m.If(walked):
            m.d.sync += continued.eq(0)
        with m.If(end | clearing):
            m.d.sync += probe.eq(Mux(finish, 0, probe + 1))
        with m.If(put.last & ~put.walk):
            m.d.sync += [is_sorted.bit_select(filling, 1).eq(1), filling.eq(~filling)]
        with m.If(finish):
            m.d.sync += [is_sorted.bit_select(leaving, 1).eq(0), busy.bit_select(leaving, 1).eq(0),
                         found.head.eq(Mux(leaving, ends[1], ends[0])), leaving.eq(~leaving)]
        with m.If(clearing & probe.all()):
            m.d.sync += [clearing.eq(0), is_sorted.eq(0), busy.eq(0)]

        # To the queue: from the places, or from the list, and so the last item of a full place.
        token = Cat(fetch, end, fetch & at[:-1].all(), finish & taken.flush, finish)
        fetching, fetched = Signal.like(token, name="fetching"), Signal.like(token, name="fetched")
        row = places.read
        from_list = put.valid & put.walk
        payload, valid = Signal(items.i.payload.shape(), name="payload"), Signal(name="item_valid")
        lanes_of = row.lanes if lanes > 1 else 1
        m.d.comb += [walk.eq(fetched[2]), walk_from.eq(row.at)]
        m.d.sync += [
            fetching.eq(token), fetched.eq(fetching),
            valid.eq(fetched[1] | (fetched[0] & ~fetched[2]) | from_list),
            payload.end.eq(fetched[1]), payload.flush.eq(fetched[3]),
            *self._read(payload, Mux(from_list, put.group, row.group)),
            payload.lanes.eq(Mux(fetched[1], fetched[4], Mux(from_list, put.lanes, lanes_of))),
        ]
        m.d.comb += [items.i.valid.eq(valid), items.i.payload.eq(payload)]

    def _take_reads(self, m: Module, found: Listing, entries: Ram, reads: Ram, items: Queue, busy: Signal, ends: list,
                    walk: Signal, walk_from: Signal, probe: Signal) -> data.View:
        """Takes the reads of each batch from the list, in order, and, when asked by ``walk``, again from ``walk_from``
        to the last of its batch, for ``probe`` alone. Returns the lanes with hits of one probe after the other.
        """
        config = self.config
        lanes, groups = config.lanes, -(-config.probes // _GROUP)
        pointer = found.pointer
        half = Signal(name="taking")  # of the places, for the batch that is taken
        walking, may_walk = Signal(name="walking"), Signal(name="may_walk")
        cursor, walk_cursor = Signal(pointer, name="cursor"), Signal(pointer, name="walk_cursor")
        place = Signal(pointer, name="place")
        fetch, advance, last = (Signal(name=name) for name in ("fetch_read", "advance", "last_taken"))

        # Reads under way from the list, which stops while one of them has hits of several probes.
        under_way = data.StructLayout({"valid": 1, "walk": 1, "at": pointer, "next": pointer})
        looking, looked = Signal(under_way, name="looking"), Signal(under_way, name="looked")
        entry = entries.r_data
        m.d.comb += [
            place.eq(Mux(walking, walk_cursor, cursor)), entries.r_addr.eq(place[:-1]), entries.r_en.eq(advance),
            fetch.eq(Mux(walking, may_walk, (cursor != found.tail) & ~busy.bit_select(half, 1))),
            last.eq(advance & looked.valid & entry.last),
        ]
        m.d.sync += may_walk.eq(items.level <= geometry.EMITTER_ITEMS - _FROM_LIST)
        with m.If(advance):
            # Reads behind the last of a batch are taken later, or were before.
            m.d.sync += [
                looking.valid.eq(fetch & ~(last & (walking == looked.walk))), looking.walk.eq(walking),
                looking.at.eq(place), looking.next.eq(place + 1), looked.eq(looking),
                looked.valid.eq(looking.valid & ~(last & (looking.walk == looked.walk))),
            ]
        with m.If(advance & fetch):
            with m.If(walking):
                m.d.sync += walk_cursor.eq(place + 1)
            with m.Else():
                m.d.sync += cursor.eq(place + 1)
        with m.If(last):
            with m.If(looked.walk):
                m.d.sync += walking.eq(0)
            with m.Else():
                m.d.sync += [cursor.eq(looked.next), busy.bit_select(half, 1).eq(1), half.eq(~half)]
                for n, end in enumerate(ends):
                    with m.If(half == n):
                        m.d.sync += end.eq(looked.next)
        with m.If(walk):
            m.d.sync += [walking.eq(1), walk_cursor.eq(walk_from)]

        # The groups of probes of a read, and the probes of a group: the lowest first.
        common = {"valid": 1, "walk": 1, "last": 1, "at": pointer, "lone": 1}
        outer = Signal(data.StructLayout({**common, "groups": groups, "probes": groups * _GROUP}), name="outer")
        inner = Signal(data.StructLayout({**common, "group": range(max(2, groups)), "probes": _GROUP}), name="inner")
        refill = Signal(name="refill_group")
        m.d.comb += [refill.eq(~inner.valid | inner.lone), advance.eq(~outer.valid | (outer.lone & refill))]
        wanted_group, wanted = (Signal(size, name=name, reset_less=True)
                                for size, name in ((groups, "wanted_group"), (_GROUP, "wanted")))
        m.d.sync += [wanted_group.eq(1 << probe[2:]), wanted.eq(1 << probe[:2])]
        some = Cat(entry.probes[n * _GROUP:(n + 1) * _GROUP].any() for n in range(groups))
        some_wanted = some & (wanted_group | (~looked.walk).replicate(groups))
        lowest_group = _lowest(outer.groups)
        rest = outer.groups & ~lowest_group
        load = [outer.valid.eq(looked.valid), outer.walk.eq(looked.walk), outer.last.eq(entry.last),
                outer.at.eq(looked.at), outer.groups.eq(some_wanted), outer.lone.eq(at_most_one(some_wanted)),
                outer.probes.eq(entry.probes)]
        if groups == 1:
            m.d.comb += load
        else:
            with m.If(advance):
                m.d.sync += load
            with m.Elif(refill):
                m.d.sync += [outer.groups.eq(rest), outer.lone.eq(at_most_one(rest))]
        chosen = reduce(or_, (outer.probes[n * _GROUP:(n + 1) * _GROUP] & lowest_group[n].replicate(_GROUP)
                              for n in range(groups)))
        chosen &= wanted | (~outer.walk).replicate(_GROUP)
        lowest = _lowest(inner.probes)
        others = inner.probes & ~lowest
        with m.If(refill):
            m.d.sync += [inner.valid.eq(outer.valid), inner.walk.eq(outer.walk), inner.last.eq(outer.last & outer.lone),
                         inner.at.eq(outer.at), inner.group.eq(_number(lowest_group)), inner.probes.eq(chosen),
                         inner.lone.eq(at_most_one(chosen))]
        with m.Else():
            m.d.sync += [inner.probes.eq(others), inner.lone.eq(at_most_one(others))]

        # The hits follow from the list while the probe's number is delayed as long.
        hit = data.StructLayout({"valid": 1, "walk": 1, "last": 1, "probe": range(config.probes), "at": pointer})
        hits = [Signal(hit, name=f"hit{n}") for n in range(Ram.latency + 1)]
        m.d.comb += [
            reads.r_addr.eq(inner.at[:-1]), hits[0].valid.eq(inner.valid & inner.probes.any()),
            hits[0].walk.eq(inner.walk), hits[0].last.eq(inner.valid & inner.last & inner.lone),
            hits[0].probe.eq(Cat(_number(lowest), inner.group)), hits[0].at.eq(inner.at),
        ]
        m.d.sync += [after.eq(before) for before, after in pairwise(hits)]
        put = Signal(data.StructLayout({**dict(hit.members), "group": group_bits(config), "lanes": lanes}),
                     name="placing")
        of_probe: Value | int = 1
        if lanes > 1:
            of_probe = Array(reads.r_data.hits[n * lanes:(n + 1) * lanes]
                             for n in range(config.probes))[hits[-1].probe]
        m.d.sync += [*(put[name].eq(hits[-1][name]) for name, _ in hit), put.group.eq(reads.r_data.group),
                     put.lanes.eq(of_probe)]
        return put


def _lowest(bits: Value) -> Value:
    """The lowest of ``bits`` that is set, alone."""
    return Cat(bits[n] & ~bits[:n].any() for n in range(len(bits)))


def _number(one: Value) -> Value:
    """The number of the bit of ``one`` that is set."""
    return Cat(Cat(one[n] for n in range(len(one)) if n >> bit & 1).any() for bit in range((len(one) - 1).bit_length()))
