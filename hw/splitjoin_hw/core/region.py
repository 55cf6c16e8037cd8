"""One region of a join core: the storage of one stream's sub-window, and the processing of the other's probes."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from splitjoin.circuit.geometry import amount_bits, probes_inside, queued_body, waiting_tasks
from splitjoin.circuit.registers import COUNTER_BITS, REGION_COUNTERS
from splitjoin.circuit.wire import ROW_BITS, Configuration, Op

from ..layouts import STREAM_R, STREAM_S, folded_layout, input_layout, result_layout, window_layout
from ..memory.port import MemorySignature
from ..network.block_fifo import HalfRateFifo
from ..network.queue import Queue
from .first_hits import FirstHits
from .folder import FoldingEmitter
from .interfaces import OutcomeSignature, RingSignature, interface
from .kinds import components
from .storage import Storage
from .stored_states import StoredStates


class RegionCounters(wiring.Component):
    """Implements `splitjoin.circuit.registers.REGION_COUNTERS`.

    Ports: one per counter: the increment of this cycle, or the level of a high-water mark. ``select``: the number of a
    counter. ``value``: its value two cycles ago.
    """

    def __init__(self, config: Configuration):
        super().__init__({
            **{c.name: In(amount_bits(config)) for c in REGION_COUNTERS},
            "select": In(range(len(REGION_COUNTERS))),
            "value": Out(COUNTER_BITS),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        counts = []
        for counter in REGION_COUNTERS:
            amount = getattr(self, counter.name)
            if counter.high:
                value = Signal(amount.shape(), name=f"{counter.name}_mark")
                m.d.sync += value.eq(Mux(amount > value, amount, value))
            else:
                value = Signal(COUNTER_BITS, name=f"{counter.name}_count")
                m.d.sync += value.eq(value + amount)
            counts.append(value)
        m.d.sync += self.value.eq(Array(counts)[self.select])
        return m


class RecordQueue(wiring.Component):
    """A FIFO of ``config.queue`` records ahead of the region that stores stream ``side``, in block RAM.

    A region that scans for a burst of probes would otherwise hold back the other region of its core, which takes the
    same records. The queue holds stores and probes in their order, so nothing changes but the time of each operation.

    Only those fields of a record are queued that this region uses (`splitjoin.circuit.geometry.queued_body`): of a
    tuple that it stores the keys, of a probe the bounds. The other fields of ``o`` are undefined.
    """

    def __init__(self, config: Configuration, side: str):
        self.config, self._side = config, side
        super().__init__({"i": In(stream.Signature(input_layout(config))),
                          "o": Out(stream.Signature(input_layout(config)))})

    def elaborate(self, platform) -> Module:
        m = Module()
        config, side = self.config, self._side
        shared, stored, probing = queued_body(config, side)
        head = [name for name, _ in config.input_record.fields if name != "body"]
        layout = data.StructLayout({**{name: input_layout(config)[name].shape for name in head},
                                    "body": len(shared) + max(len(stored), len(probing))})
        m.submodules.fifo = fifo = HalfRateFifo(layout, config.queue)
        record, into, kept, out = self.i.payload, fifo.i.payload, fifo.o.payload, self.o.payload
        body, probe = record.body, Signal()
        m.d.comb += probe.eq((record.op == Op.TUPLE) & (record.stream != (STREAM_R if side == "r" else STREAM_S)))
        # A bit that only stores use shares its place with one that only probes use.
        choice = [Mux(probe, body[b], body[a]) if a is not None and b is not None else body[a if b is None else b]
                  for a, b in zip_longest(stored, probing)]
        places = {n: at for bits in (stored, probing) for at, n in enumerate([*shared, *bits])}
        m.d.comb += [
            *(into[name].eq(record[name]) for name in head),
            into.body.eq(Cat(*(body[n] for n in shared), *choice)),
            fifo.i.valid.eq(self.i.valid), self.i.ready.eq(fifo.i.ready),
            *(out[name].eq(kept[name]) for name in head),
            *(out.body[n].eq(kept.body[at]) for n, at in sorted(places.items())),
            self.o.valid.eq(fifo.o.valid), fifo.o.ready.eq(self.o.ready),
        ]
        return m


def folds(config: Configuration, side: str) -> bool:
    """True if the regions that store stream ``side`` fold what they find: those of S, which R probes, and where states
    leave whole those of R too; none where one unit folds in order.
    """
    return bool(config.folds) and not config.in_order and (side == "s" or config.whole_states)


def region_layout(config: Configuration, side: str) -> data.StructLayout:
    """The layout of what leaves a region that stores stream ``side``: results, or states."""
    return folded_layout(config) if folds(config, side) else result_layout()


def match_count(config: Configuration, side: str) -> range:
    """The numbers of matches that a region that stores stream ``side`` counts in a cycle."""
    return range(config.lanes * config.probes + 1 if folds(config, side) else 2)


def memory_port(config: Configuration) -> dict[str, wiring.Member]:
    """The port ``memory`` of a region whose window lies in external memory."""
    return {} if config.memory == "bram" else {"memory": Out(MemorySignature(config))}


class Region(wiring.Component):
    """Stores its share of stream ``side`` and scans it for every tuple of the other stream (SplitJoin, section 4).

    Operations take effect in arrival order; storing, scanning and emitting overlap. In a circuit that folds, the region
    of S gives states (`FoldingEmitter`) in place of results; with ``first_hits``, that of R gives the first result of
    each stored tuple alone (`FirstHits`), and where states leave whole the states of its tuples (`StoredStates`). See
    `Storage` and `Emitter` for the ports, `splitjoin_hw.core.kinds` for the parts that depend on the core kind,
    `RegionCounters` for ``select`` and ``selected``, and `splitjoin_hw.core.core.Core` for ``scanning``, ``takes``,
    ``busy`` and ``works``. Where the configuration has a queue, records wait in it ahead of the storage side, and
    probes behind it where passes are short (`splitjoin.circuit.geometry.waiting_tasks`).
    """

    def __init__(self, config: Configuration, side: str):
        if side not in ("r", "s"):
            raise ValueError(f"Side must be 'r' or 's', not {side!r}")
        self.config, self.side = config, side
        super().__init__({
            "i": In(stream.Signature(input_layout(config))),
            "o": Out(stream.Signature(region_layout(config, side))),
            "index": In(range(max(2, config.cores))),
            "window": In(window_layout(config)),
            "overflow": Out(1),
            "overflow_row": Out(ROW_BITS),
            "overflow_after": Out(ROW_BITS),
            "compared": Out(range(config.capacity + 1)),
            "matched": Out(match_count(config, side)),
            "select": In(range(len(REGION_COUNTERS))),
            "selected": Out(COUNTER_BITS),
            **({"scanning": Out(1), "takes": Out(1)} if config.stage_counters else {}),
            **({"busy": Out(1), "works": Out(1)} if config.fault_timeout else {}),
            **memory_port(config),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        config, side = self.config, self.side
        kind = components(config)
        m.submodules.storage = storage = self._storage()
        m.submodules[kind.name] = processing = kind.processing(config, side)
        emitter: Any
        stored_states = folds(config, side) and side == "r"
        if stored_states:
            m.submodules.emitter = emitter = StoredStates(config, latency=processing.latency)
        elif folds(config, side):
            m.submodules.emitter = emitter = FoldingEmitter(config, latency=processing.latency)
            for n in range(config.lanes if config.payload(side).fields else 0):
                m.d.comb += Cat(emitter.values[n]).eq(Cat(storage.values[n]))
        else:
            m.submodules.emitter = emitter = kind.emitter(config, processing.latency + config.first_hits)
        if config.queue:
            m.submodules.queue = queue = RecordQueue(config, side)
            wiring.connect(m, wiring.flipped(self.i), queue.i)
            records = queue.o
        else:
            records = wiring.flipped(self.i)
        if stored_states:
            self._gate(m, records, storage, emitter)
        else:
            wiring.connect(m, records, storage.i)
        hold: Value = Const(0)
        if depth := waiting_tasks(config):
            m.submodules.tasks = tasks = Queue(storage.task.payload.shape(), depth)
            wiring.connect(m, storage.task, tasks.i)
            wiring.connect(m, tasks.o, processing.task)
            # Until the processing side claims the tuples that a waiting probe reads, none of them may be replaced.
            hold = tasks.o.valid & ~processing.waiting
        else:
            wiring.connect(m, storage.task, processing.task)
        if stored_states:
            names = ("load", "take", "position", "scanning", "waiting", "first", "claiming")
            m.d.comb += [getattr(emitter, name).eq(getattr(processing, name)) for name in names]
            m.d.comb += [getattr(emitter, name).eq(getattr(storage, name))
                         for name in ("head", "written", "flushed", "drains")]
            m.d.comb += emitter.queued.eq(hold)
            if config.brought("s").fields:
                m.d.comb += Cat(emitter.values).eq(Cat(processing.values))
            hold |= emitter.hold
        m.d.comb += storage.hold.eq(hold)
        wiring.connect(m, processing.batch, emitter.batch)
        wiring.connect(m, emitter.o, wiring.flipped(self.o))
        ring, outcomes = RingSignature(config, side), OutcomeSignature(config)
        wiring.connect(m, interface(processing, ring), interface(storage, ring.flip()))
        if config.first_hits and side == "r":
            m.submodules.first = first = FirstHits(config, latency=processing.latency)
            wiring.connect(m, interface(processing, outcomes), first.i)
            wiring.connect(m, first.o, interface(emitter, outcomes.flip()))
            m.d.comb += [first.read.eq(processing.reads), first.position.eq(processing.position),
                         first.written.eq(storage.written), first.stored.eq(storage.stored)]
        else:
            wiring.connect(m, interface(processing, outcomes), interface(emitter, outcomes.flip()))
        kind.add_index(m, config, side, storage.i.payload.body, storage, processing, getattr(self, "memory", None))
        m.d.comb += [
            storage.index.eq(self.index),
            emitter.index.eq(self.index),
            storage.window.eq(self.window),
            emitter.window.eq(self.window),
            processing.single.eq(self.window.slice != 0),
            self.overflow.eq(storage.overflow),
            self.overflow_row.eq(storage.overflow_row),
            self.overflow_after.eq(storage.overflow_after),
            self.compared.eq(processing.compared),
            self.matched.eq(emitter.matched),
        ]
        if config.stage_counters:
            m.d.comb += [self.scanning.eq(processing.scanning), self.takes.eq(processing.take)]
        if config.fault_timeout:
            record, inside = self.i.payload, Signal(bits_for(probes_inside(config)), name="inside")
            own = STREAM_R if side == "r" else STREAM_S
            enters = (record.op == Op.FLUSH) | ((record.op == Op.TUPLE) & (record.stream != own))
            m.d.sync += inside.eq(inside + (self.i.valid & self.i.ready & enters) - emitter.ended)
            m.d.comb += [
                self.busy.eq(inside.any() | emitter.o.valid),
                self.works.eq((storage.i.valid & storage.i.ready) | processing.compared.any() | emitter.ended)]
        if config.region_counters:
            m.submodules.counters = counters = RegionCounters(config)
            # A counter that no part of this kind has stays 0.
            sources = {"comparisons": processing.compared, "matches": emitter.matched}
            for part in (storage, processing, emitter):
                sources |= {name: getattr(part, name) for name in part.counters}
            m.d.comb += [getattr(counters, name).eq(source) for name, source in sources.items()]
            m.d.comb += [counters.select.eq(self.select), self.selected.eq(counters.value)]
        return m

    def _storage(self) -> Storage:
        return Storage(self.config, self.side)

    def _gate(self, m: Module, records: Any, storage: Storage, emitter: StoredStates) -> None:
        """Hands ``records`` to the storage side, after a FLUSH not before its END has come."""
        ending = Signal()
        with m.If(storage.flushed):
            m.d.sync += ending.eq(1)
        with m.Elif(emitter.ended):
            m.d.sync += ending.eq(0)
        m.d.comb += [storage.i.payload.eq(records.payload), storage.i.valid.eq(records.valid & ~ending),
                     records.ready.eq(storage.i.ready)]
