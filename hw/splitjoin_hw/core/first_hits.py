"""A filter of outcomes: of all hits of a stored tuple, the first one alone."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.geometry import position_bits, ring_rows, stores
from splitjoin.circuit.wire import Configuration

from ..hls.delays import delay_line
from ..tech.ram import Ram
from . import states
from .interfaces import OutcomeSignature
from .layouts import found_layout
from .states import lane_rows


class FirstHits(wiring.Component):
    """Removes from the outcomes of reads all hits of a stored tuple but its first one: of the earliest probe.

    Beside each lane's bank of the ring lies a memory of one bit a tuple: it had a hit. Every read of the ring reads the
    bits of its tuples and writes them back, so the bits need no clearing: a tuple that no earlier read has fetched
    counts as one without a hit, whatever its bit says. Reads also fetch some tuples behind the newest one; what they
    write there is right for the tuples that will be stored there.

    Ports: ``i``: `OutcomeSignature` of the processing side; ``o``: the same, a cycle later. ``read``, ``position``: a
    read is issued, and its first position. ``written``, ``stored``: of `splitjoin_hw.core.storage.Storage`, the
    position of the next tuple, which is stored now.
    """

    def __init__(self, config: Configuration, *, latency: int):
        """``latency``: cycles from a read to its outcome."""
        self._config, self._latency = config, latency
        super().__init__({
            "i": In(OutcomeSignature(config)),
            "o": Out(OutcomeSignature(config)),
            "read": In(1),
            "position": In(position_bits(config)),
            "written": In(position_bits(config)),
            "stored": In(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self._config
        lanes, probes = config.lanes, config.probes
        fresh = self._fresh(m)

        # The rows of the outcome's tuples, when they are read from the memories, when they are there, and between.
        position = delay_line(m, "position", self.position, self._latency - Ram.latency, reset_less=True)[-1]
        rows = [lane_rows(m, config, lane, position) for lane in range(lanes)]

        valid, *was_valid = delay_line(m, "was_valid", self.i.found_valid, Ram.latency)
        kept: list[Value] = [Const(0, 1)] * (lanes * probes)
        for lane in range(lanes):
            m.submodules[f"bits{lane}"] = memory = Ram(1, ring_rows(config))
            hit, after = Signal(name=f"hit{lane}"), Signal(name=f"after{lane}")
            bit = states.newest(m, lane, memory.r_data, rows[lane], was_valid, after)
            before = Signal(name=f"before{lane}")
            hits = Cat(self.i.found.hits[probe * lanes + lane] for probe in range(probes))
            m.d.comb += [
                before.eq(bit & ~fresh[lane]), hit.eq(hits.any()), after.eq(before | hit),
                memory.r_addr.eq(rows[lane][0]), memory.w_addr.eq(rows[lane][Ram.latency]), memory.w_en.eq(valid),
                memory.w_data.eq(after),
            ]
            for probe in range(probes):
                kept[probe * lanes + lane] = hits[probe] & ~before & ~hits[:probe].any()
        payload = Signal(found_layout(config), name="payload", reset_less=True)
        m.d.sync += [self.o.found_valid.eq(valid), payload.eq(self.i.found), payload.hits.eq(Cat(kept))]
        m.d.comb += [self.o.found.eq(payload), self.i.room.eq(self.o.room)]
        return m

    def _fresh(self, m: Module) -> Value:
        """For each lane, together with the outcome: no earlier read has fetched the tuple."""
        config = self._config
        lanes, bits = config.lanes, position_bits(config)
        lane_bits = lanes.bit_length() - 1
        # All tuples before this position were fetched, or can be fetched no more: as positions wrap around, it must
        # not stay behind where tuples are stored without reads. No read lies so far behind (`Storage`).
        seen = Signal(bits)
        reach = config.capacity + stores(config)
        ahead, distance = Signal(signed(bits)), Signal(signed(bits), reset_less=True)
        m.d.comb += ahead.eq(self.position - seen)
        with m.If(self.read), m.If(ahead + lanes > 0):
            m.d.sync += seen.eq(self.position + lanes)
        with m.Elif(self.stored & ((self.written - seen)[:bits] == reach)):
            m.d.sync += seen.eq(seen + 1)
        lane0 = Signal(max(1, lane_bits), reset_less=True)
        m.d.sync += [distance.eq(ahead), lane0.eq(self.position[:lane_bits] if lane_bits else 0)]
        fresh = Cat((distance + (Const(lane, lane_bits) - lane0)[:lane_bits] if lane_bits else distance) >= 0
                    for lane in range(lanes))
        return delay_line(m, "fresh", fresh, self._latency - 1, reset_less=True)[-1]
