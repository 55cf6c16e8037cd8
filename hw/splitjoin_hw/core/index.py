"""The index of a sub-window: for each bucket the chain of its tuples, youngest first."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.geometry import distance_bits, position_bits, ring_rows, stores
from splitjoin.circuit.wire import Configuration

from ..tech.ram import Ram
from .buckets import Buckets, cells_layout
from .interfaces import LookupSignature


class Index(wiring.Component):
    """Keeps for each bucket the position of its youngest tuple, and for each tuple the distance to the next older one.

    The index does nothing when a tuple expires: chains lead from young to old, so a reader stops at the first tuple
    that is out of the window. That leaves buckets whose youngest tuple expired long ago, and whose position will be
    reused for another tuple. So each store also checks one bucket, round-robin, and empties it if its youngest tuple
    has left the ring. Positions have enough bits that every bucket is checked before its position is used again.

    A store takes six cycles. After reset all buckets are emptied, one per cycle.

    Ports:
        ``store``, ``cells``, ``position``: a tuple of stream ``side`` is stored at ``position``. ``hold``: no tuple may
        be stored in the next cycle.
        `LookupSignature`; ``row``: the row of the ring whose ``distance`` is output two cycles later.
    """

    def __init__(self, config: Configuration, side: str, buckets: Buckets):
        self._config, self._side, self._buckets = config, side, buckets
        position = position_bits(config)
        super().__init__({
            "store": In(1),
            "cells": In(cells_layout(config, side)),
            "position": In(position),
            "hold": Out(1),
            **LookupSignature(config).flip().members,
            "row": In(range(ring_rows(config))),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self._config
        head = data.StructLayout({"valid": 1, "position": position_bits(config)})
        m.submodules.heads = heads = Ram(head, config.buckets)
        m.submodules.links = links = Ram(distance_bits(config), ring_rows(config))

        # The steps of a store: cells; bucket; the head of this bucket is read, then that of the bucket to be checked;
        # the data is there; its age is known, and the new head is written; the link is written; the checked bucket is
        # emptied if it is stale.
        step = Signal(7)
        position = Signal(position_bits(config))
        cells = Signal(cells_layout(config, self._side))
        bucket = Signal(range(config.buckets))
        sweep = Signal(range(config.buckets))  # the bucket to be checked next
        clearing = Signal(init=1)
        cleared = Signal()
        hold = Signal(init=1)
        blocked = Signal(init=1)  # a store uses the memory of heads in this cycle
        m.d.sync += [step.eq(Cat(self.store, step)),
                     bucket.eq(self._buckets.address(config, [cells[name] for name, _ in cells.shape()])),
                     blocked.eq(clearing | step[0] | step[1] | step[3] | step[5])]
        m.d.comb += self.hold.eq(hold)
        with m.If(self.store):
            m.d.sync += [position.eq(self.position), cells.eq(self.cells), hold.eq(1)]
        with m.Elif(step[3] | cleared):
            m.d.sync += hold.eq(0)

        # A head that was read is valid if its tuple is one of the ring's last tuples. Storage keeps a tuple in the ring
        # while a pass needs it. The age of a tuple is known a cycle later.
        age = Signal(position_bits(config))
        valid, in_ring, other_bucket, stale = (Signal(name=name) for name in (
            "valid", "in_ring", "other_bucket", "stale"))
        link = Signal(links.w_data.shape())
        m.d.sync += [age.eq(self.known - heads.r_data.position), valid.eq(heads.r_data.valid),
                     other_bucket.eq(sweep != bucket), stale.eq(~in_ring & other_bucket), link.eq(Mux(in_ring, age, 0))]
        m.d.comb += [
            in_ring.eq(valid & (age <= config.capacity + stores(config))),
            self.head.eq(heads.r_data.position), self.live.eq(in_ring),
            self.granted.eq(self.look & ~blocked),
            heads.r_addr.eq(Mux(step[1], bucket, Mux(step[2], sweep, self.bucket))),
            links.w_en.eq(step[5]), links.w_addr.eq(position[:len(links.w_addr)]), links.w_data.eq(link),
            links.r_addr.eq(self.row), self.distance.eq(links.r_data),
            heads.w_en.eq(clearing | step[4] | (step[6] & stale)),
            heads.w_addr.eq(Mux(step[4], bucket, sweep)),
            heads.w_data.valid.eq(step[4]), heads.w_data.position.eq(position),
        ]
        with m.If(clearing | step[6]):
            m.d.sync += sweep.eq(sweep + 1)
        m.d.comb += cleared.eq(clearing & (sweep == config.buckets - 1))
        with m.If(cleared):
            m.d.sync += clearing.eq(0)
        with m.If(step[4]):
            m.d.sync += self.known.eq(position + 1)
        return m
