"""The processing side of a region with an ordered index: follows the chains of all cells in a probe's range at once."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out

from splitjoin.circuit.geometry import outcome_latency, position_bits
from splitjoin.circuit.wire import Configuration

from ..hls.delays import delay_line
from ..hls.matcher import Matcher
from ..network.queue import Queue
from ..tech.ram import Ram
from .interfaces import LookupSignature, ProcessingSignature

#: Cycles from issuing a read to its keys.
_READ_LATENCY = Ram.latency
#: Heads of chains that wait to be followed, and as many of them as may still come after no more are looked up.
_HEADS, _COMING = 16, Ram.latency + 4


class RangeProber(wiring.Component):
    """Compares a probe with the tuples of consecutive cells that are in the sub-window, in any order.

    ESJ's ordered index: cells never decrease as keys grow, so those of an interval follow each other, modulo their
    number. One cell is looked up in a cycle. Four chains are followed at once, in turn, one tuple a cycle, as the link
    of a tuple is known four cycles after its read. `splitjoin_hw.core.bitmap.BitmapEmitter` sorts what is found.

    One probe is looked up and compared at a time. Its first tuple is read once the emitter has taken its batch.

    Ports: `ProcessingSignature`, where ``single`` and ``room`` have no effect and ``waiting`` is 0; `LookupSignature`.
    ``reads``, ``stall_results``: for `RegionCounters`.
    """

    counters = ("reads", "stall_results")

    def __init__(self, config: Configuration, side: str):
        self._config, self._side = config, side
        super().__init__({
            **ProcessingSignature(config, side).members,
            **LookupSignature(config).members,
            "reads": Out(1),
            "stall_results": Out(1),
        })
        position = position_bits(config)
        #: A tuple in a chain. Offsets are from the oldest tuple of the probe's window.
        self._cursor = data.StructLayout({"valid": 1, "at": position, "offset": position})

    @property
    def latency(self) -> int:
        """Cycles from issuing a read to its outcome."""
        return outcome_latency(self._config)

    def elaborate(self, platform) -> Module:
        m = Module()
        config, task, batch = self._config, self.task.payload, self.batch.payload
        m.submodules.matcher = matcher = Matcher(config, self._side)
        m.submodules.heads = heads = Queue(self._cursor, _HEADS)
        accept, step, reached, loaded, take, started, last = (Signal(name=name) for name in (
            "accept", "step", "reached", "loaded", "take", "started", "last"))
        end = Signal(position_bits(config))
        cell, cells = Signal.like(task.reach.first0, name="cell"), Signal.like(task.reach.cells0, name="cells")
        m.d.comb += [
            self.task.ready.eq(~self.scanning), accept.eq(self.task.valid & self.task.ready),
            # The bounds are held for a cycle, in which those of the previous probe reach their comparators.
            matcher.bounds.eq(task.bounds), matcher.hold.eq(step), matcher.load.eq(reached),
            matcher.swap.eq(delay_line(m, "swap", take, _READ_LATENCY)[-1]),
            take.eq(loaded & ~self.batch.valid), self.stall_results.eq(loaded & self.batch.valid),
        ]
        m.d.sync += [step.eq(accept), reached.eq(step), loaded.eq(reached | (loaded & ~take)),
                     started.eq(take | (started & ~last))]
        with m.If(self.batch.ready):
            m.d.sync += self.batch.valid.eq(0)
        with m.If(last):
            m.d.sync += self.scanning.eq(0)
        with m.If(accept):
            m.d.sync += [self.scanning.eq(1), self.position.eq(task.start), end.eq(task.end),
                         self.batch.valid.eq(1), batch.row.eq(task.row), batch.flush.eq(task.flush),
                         batch.count.eq(task.count), cell.eq(task.reach.first0),
                         cells.eq(Mux(task.masked | (task.count == 0), 0, task.reach.cells0))]

        # Cells are looked up one after the other, once all earlier tuples are in the index.
        indexed, may_look = Signal(name="indexed"), Signal(name="may_look")
        # Modular, as positions wrap: a tuple may enter the index after ``end`` while look-ups are due.
        m.d.sync += [indexed.eq(~(self.known - end)[len(end) - 1]), may_look.eq(heads.level < _HEADS - _COMING)]
        m.d.comb += [self.bucket.eq(cell),
                     self.look.eq((reached | loaded | started) & cells.any() & indexed & may_look)]
        with m.If(self.granted):
            m.d.sync += [cell.eq(cell + 1), cells.eq(cells - 1)]
        tokens = delay_line(m, "looked_up", self.granted, _READ_LATENCY + 1)[1:]
        head = heads.i.payload
        position, offset = (Signal(position_bits(config), name=name) for name in ("head_position", "head_offset"))
        m.d.comb += head.valid.eq(1)
        m.d.sync += [position.eq(self.head), offset.eq(self.head - self.position),
                     head.at.eq(position), head.offset.eq(offset),
                     heads.i.valid.eq(tokens[-1] & self.live & ~offset[-1])]

        # ``ring[0]`` is read now; with the link of ``ring[2]`` the next tuple of its chain is known, in ``ring[3]``. If
        # there is none, the chain that waits longest takes its place.
        ring = [Signal(self._cursor, name=f"ring{n}") for n in range(_READ_LATENCY + 2)]
        next_offset = Signal(position_bits(config))
        m.d.comb += [next_offset.eq(ring[2].offset - self.distance), heads.o.ready.eq(started & ~ring[3].valid)]
        m.d.sync += [
            ring[0].eq(Mux(ring[3].valid, ring[3], heads.o.payload)),
            ring[0].valid.eq(started & (ring[3].valid | heads.o.valid)),
            *(ring[n].eq(ring[n - 1]) for n in range(1, _READ_LATENCY + 1)),
            ring[3].at.eq(ring[2].at - self.distance), ring[3].offset.eq(next_offset),
            ring[3].valid.eq(ring[2].valid & (self.distance != 0) & ~next_offset[-1]),
        ]
        m.d.comb += last.eq(started & ~cells.any() & ~Cat(
            *tokens, heads.i.valid, heads.o.valid, *(cursor.valid for cursor in ring)).any())

        # A chain may begin with tuples that came after the probe.
        compares, compared = Signal(name="compares"), Signal(name="compared_one")
        m.d.sync += compared.eq(compares)
        m.d.comb += [compares.eq(ring[0].valid & (ring[0].offset < batch.count)), self.compared.eq(compared),
                     self.reads.eq(ring[0].valid),
                     self.rows[0].eq(ring[0].at[:len(self.rows[0])]), matcher.keys[0].eq(self.keys[0])]
        token = delay_line(m, "token", Cat(compares, last, ring[0].offset), _READ_LATENCY + config.stages)[-1]
        m.d.sync += [self.found_valid.eq(token[:2].any()), self.found.last.eq(token[1]),
                     self.found.group.eq(token[2:]), self.found.hits.eq(matcher.match & token[0])]
        return m
