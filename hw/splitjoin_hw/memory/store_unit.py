"""The stores of a region whose window lies in external memory: records, and the heads of the index's chains."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Mux, Shape, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit import geometry
from splitjoin.circuit.geometry import distance_bits, ring_rows
from splitjoin.circuit.memory import (
    address_bits,
    first_head,
    first_record,
    head_lines,
    heads_a_line,
    heads_have_records,
    line_bits,
    place_bits,
)
from splitjoin.circuit.wire import ROW_BITS, Configuration

from ..core.buckets import Buckets, cells_layout
from ..layouts import struct
from ..network.queue import Queue
from .port import MemorySignature, head_in, head_line


class StoreUnit(wiring.Component):
    """Stores the tuples of stream ``side`` in memory, K at once: it reads the head of a tuple's bucket, writes the
    record with the distance to that tuple, and when this is done the head, with the record if there is room.

    A line of heads is not read while a store of an earlier tuple in it is under way (``blocked``): memory may overtake
    a write with a read. Stores of one line follow each other. After a reset all heads are cleared.

    Ports: ``store``, ``cells``, ``keys``: a tuple is stored. ``count``: a tuple of the stream comes, in this cycle too,
    which is stored or not. ``youngest``: the distance from the next tuple to the youngest that was stored; 0 for none
    in the ring. ``hold``: none may be stored in the next cycle.
    ``look``, ``blocked``: a line of heads, and that it must not be read now. ``able``: the heads are cleared.
    ``storing``: a store is under way. The rest is as of `splitjoin_hw.memory.port.MemorySignature`.
    """

    def __init__(self, config: Configuration, side: str, buckets: Buckets):
        self._config, self._side, self._buckets = config, side, buckets
        super().__init__({
            "store": In(1),
            "count": In(1),
            "youngest": Out(distance_bits(config)),
            "cells": In(cells_layout(config, side)),
            "keys": In(struct(config.keys(side))),
            "hold": Out(1),
            "look": In(max(1, (head_lines(config) - 1).bit_length())),
            "blocked": Out(1),
            "able": Out(1),
            "storing": Out(1),
            **MemorySignature(config).members,
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        config, side, k = self._config, self._side, self._config.contexts
        bits, bucket_bits, link_bits = (k - 1).bit_length(), config.buckets.bit_length() - 1, distance_bits(config)
        rows = ring_rows(config).bit_length() - 1
        heads_each = heads_a_line(config)
        slot_bits = place_bits(config)
        more = {"before": link_bits} if config.routed else {}  # the distance to the next older tuple of this core
        stored = data.StructLayout({"keys": struct(config.keys(side)), "row": ROW_BITS, "bucket": bucket_bits, **more})
        m.submodules.entries = entries = memory.Memory(shape=Shape.cast(stored).width, depth=k, init=[])
        m.submodules.links = links = memory.Memory(shape=link_bits, depth=k, init=[])
        m.submodules.records = records = Queue(bits, max(2, k))
        m.submodules.heads = heads = Queue(bits, max(2, k))
        entry_write, answer_read, write_read = (
            entries.write_port(), entries.read_port(domain="comb"), entries.read_port(domain="comb"))
        link_write, link_read = links.write_port(), links.read_port(domain="comb")

        # A tuple becomes an entry: its cells, its bucket, the entry.
        row = Signal(ROW_BITS)  # the number of the next tuple
        step, tail, asks = Signal(2), Signal(bits), Signal(bits)
        cells, given = Signal(cells_layout(config, side)), Signal(stored)
        under_way, asked, first_done = Signal(k), Signal(k), Signal(k)
        lines = Array(Signal(len(self.look), name=f"line{n}") for n in range(k))
        m.d.sync += [step.eq(Cat(self.store, step)), given.bucket.eq(
            self._buckets.address(config, [cells[name] for name, _ in cells.shape()]))]
        with m.If(self.store):
            m.d.sync += [cells.eq(self.cells), given.keys.eq(self.keys), given.row.eq(row)]
        with m.If(self.count):
            m.d.sync += row.eq(row + 1)
        reach = config.capacity + geometry.stores(config)
        if config.routed:
            with m.If(self.store):
                m.d.sync += [given.before.eq(self.youngest), self.youngest.eq(1)]
            with m.Elif(self.count & (self.youngest != 0)):
                m.d.sync += self.youngest.eq(Mux(self.youngest == reach, 0, self.youngest + 1))
        else:
            m.d.comb += self.youngest.eq(1)
        m.d.comb += [entry_write.addr.eq(tail), entry_write.data.eq(given), entry_write.en.eq(step[1])]
        with m.If(step[1]):
            m.d.sync += [lines[tail].eq(head_line(config, given.bucket)), under_way.bit_select(tail, 1).eq(1),
                         tail.eq(tail + 1)]
        clearing, cleared = Signal(init=1), Signal()
        m.d.sync += self.able.eq(~clearing)
        m.d.comb += [self.hold.eq(~self.able | step.any() | under_way.bit_select(tail, 1)),
                     self.storing.eq(step.any() | under_way.any())]
        m.d.comb += self.blocked.eq(step.any() | Cat(
            under_way[n] & (lines[n] == self.look) for n in range(k)).any())

        # The head of its bucket is read, in the order of the tuples.
        ask = Signal()
        clash = Cat(asked[n] & (lines[n] == lines[asks]) for n in range(k)).any()
        room = Signal(name="read_room")
        m.d.comb += [room.eq(~self.read.valid | self.read.ready),
                     ask.eq(room & (under_way & ~asked).bit_select(asks, 1) & ~clash)]
        with m.If(room):
            m.d.sync += [self.read.valid.eq(ask), self.read.p.number.eq(Cat(asks, Const(1, 1))),
                         self.read.p.line.eq(first_head(config, side) | lines[asks])]
        with m.If(ask):
            m.d.sync += [asked.bit_select(asks, 1).eq(1), asks.eq(asks + 1)]

        # Its answer is the tuple's link, if that tuple may still be in the ring.
        answered, entry, head, own = Signal(), Signal(bits), Signal(ROW_BITS), Signal(ROW_BITS)
        of = data.View(stored, answer_read.data)
        distance = Signal(ROW_BITS)
        m.d.comb += [answer_read.addr.eq(self.answer.number[:bits]), distance.eq(own + 1 - head)]
        m.d.sync += [answered.eq(self.answer_valid), entry.eq(self.answer.number[:bits]), own.eq(of.row),
                     head.eq(head_in(config, self.answer.data, of.bucket))]
        m.d.comb += [records.i.valid.eq(answered), records.i.payload.eq(entry), link_write.en.eq(answered),
                     link_write.addr.eq(entry), link_write.data.eq(Mux((head != 0) & (distance <= reach), distance, 0))]

        # The record is written, then the head. Heads go first, as other stores and probes wait for them.
        is_head, write = Signal(), self.write.payload
        shown, can, record = data.View(stored, write_read.data), Signal(), Signal(line_bits(config))
        m.d.comb += [can.eq(~self.write.valid | self.write.ready), is_head.eq(heads.o.valid),
                     write_read.addr.eq(Mux(is_head, heads.o.payload, records.o.payload)),
                     link_read.addr.eq(write_read.addr), record.eq(Cat(Cat(shown["keys"]), link_read.data, *(
                         shown[name] for name in more))),
                     heads.o.ready.eq(can & ~clearing), records.o.ready.eq(can & ~clearing & ~is_head)]
        sweep = Signal(range(head_lines(config)))
        waits = Signal(range(head_lines(config) + 1))  # writes that clear heads and are not done
        swept = Signal()
        with m.If(can):
            m.d.sync += [self.write.valid.eq(heads.o.valid | records.o.valid | (clearing & ~swept)),
                         write.number.eq(write_read.addr)]
            with m.If(clearing):
                m.d.sync += [write.line.eq(first_head(config, side) | sweep), write.data.eq(0), write.mask.eq(-1),
                             write.number.eq(0)]
                with m.If(~swept):
                    m.d.sync += [sweep.eq(sweep + 1), swept.eq(sweep == head_lines(config) - 1)]
            with m.Elif(is_head):
                number = (shown.row + 1)[:ROW_BITS]
                m.d.sync += write.line.eq(first_head(config, side) | head_line(config, shown.bucket))
                if heads_have_records(config):
                    m.d.sync += [write.data.eq(Cat(record[:-ROW_BITS], number)), write.mask.eq(-1)]
                else:
                    m.d.sync += [write.data.eq(number.replicate(heads_each)), write.mask.eq(
                        Const(2**(ROW_BITS // 8) - 1) << Cat(Const(0, 2), shown.bucket[:slot_bits]))]
            with m.Else():
                m.d.sync += [write.line.eq((first_record(config, side) | shown.row[:rows])[:address_bits(config)]),
                             write.data.eq(record), write.mask.eq(-1)]
        m.d.comb += cleared.eq(self.written_valid & clearing)
        m.d.sync += waits.eq(waits + (can & clearing & ~swept) - cleared)
        with m.If(swept & (waits == 1) & cleared):
            m.d.sync += clearing.eq(0)

        done = self.written[:bits]
        second = first_done.bit_select(done, 1)
        m.d.comb += [heads.i.valid.eq(self.written_valid & ~clearing & ~second), heads.i.payload.eq(done)]
        with m.If(self.written_valid & ~clearing):
            m.d.sync += first_done.bit_select(done, 1).eq(~second)
            with m.If(second):
                m.d.sync += [under_way.bit_select(done, 1).eq(0), asked.bit_select(done, 1).eq(0)]
        return m
