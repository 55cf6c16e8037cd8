"""One region of a join core: the storage of one stream's sub-window, and the processing of the other's probes."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from splitjoin.circuit.registers import COUNTER_BITS, REGION_COUNTERS
from splitjoin.circuit.wire import ROW_BITS, Configuration

from ..layouts import input_layout, result_layout, struct, window_layout
from .buckets import stored_cells
from .counters import RegionCounters
from .emitter import Emitter
from .index import Index
from .prober import Prober
from .scanner import Scanner
from .stack import StackEmitter
from .storage import Storage

__all__ = ["Region"]


class Region(wiring.Component):
    """Stores its share of stream ``side`` and scans it for every tuple of the other stream (SplitJoin, section 4).

    Operations take effect in arrival order; storing, scanning and emitting overlap. See `Storage`, `Scanner` and
    `Emitter` for the ports, `Prober`, `Index` and `StackEmitter` for what a region with an index has instead and beside
    them, and `RegionCounters` for ``select`` and ``selected``.
    """

    def __init__(self, config: Configuration, side: str):
        if side not in ("r", "s"):
            raise ValueError(f"Side must be 'r' or 's', not {side!r}")
        self._config, self._side = config, side
        super().__init__({
            "i": In(stream.Signature(input_layout(config))),
            "o": Out(stream.Signature(result_layout())),
            "index": In(range(max(2, config.cores))),
            "window": In(window_layout(config)),
            "overflow": Out(1),
            "overflow_row": Out(ROW_BITS),
            "overflow_after": Out(ROW_BITS),
            "compared": Out(range(config.capacity + 1)),
            "matched": Out(1),
            "select": In(range(len(REGION_COUNTERS))),
            "selected": Out(COUNTER_BITS),
        })

    @property
    def config(self) -> Configuration:
        """The configuration that the circuit is built for."""
        return self._config

    @property
    def side(self) -> str:
        """The stream whose tuples are stored here."""
        return self._side

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.storage = storage = Storage(self._config, self._side)
        if self._config.core == "scan":
            m.submodules.scanner = scanner = Scanner(self._config, self._side)
            m.submodules.emitter = emitter = Emitter(self._config, latency=scanner.latency)
            m.d.comb += [scanner.single.eq(self.window.slice != 0), storage.claiming.eq(scanner.claiming)]
        else:
            m.submodules.prober = scanner = Prober(self._config, self._side)
            m.submodules.emitter = emitter = StackEmitter(self._config, latency=scanner.latency)
            self._index(m, storage, scanner)
        wiring.connect(m, wiring.flipped(self.i), storage.i)
        wiring.connect(m, storage.task, scanner.task)
        wiring.connect(m, scanner.batch, emitter.batch)
        wiring.connect(m, emitter.o, wiring.flipped(self.o))
        for lane in range(self._config.lanes):
            m.d.comb += [storage.rows[lane].eq(scanner.rows[lane]), scanner.keys[lane].eq(storage.keys[lane])]
        m.d.comb += [
            storage.index.eq(self.index),
            emitter.index.eq(self.index),
            storage.window.eq(self.window),
            emitter.window.eq(self.window),
            storage.scanning.eq(scanner.scanning),
            storage.position.eq(scanner.position),
            storage.waiting.eq(scanner.waiting),
            storage.first.eq(scanner.first),
            emitter.found.eq(scanner.found),
            emitter.found_valid.eq(scanner.found_valid),
            scanner.room.eq(emitter.room),
            self.overflow.eq(storage.overflow),
            self.overflow_row.eq(storage.overflow_row),
            self.overflow_after.eq(storage.overflow_after),
            self.compared.eq(scanner.compared),
            self.matched.eq(emitter.matched),
        ]
        if self._config.region_counters:
            m.submodules.counters = counters = RegionCounters(self._config)
            sources = {"comparisons": scanner.compared, "matches": emitter.matched, "spills": Const(0)}
            for part in (storage, scanner, emitter):
                sources |= {c.name: getattr(part, c.name) for c in REGION_COUNTERS if hasattr(part, c.name)}
            m.d.comb += [getattr(counters, c.name).eq(sources[c.name]) for c in REGION_COUNTERS]
            m.d.comb += [counters.select.eq(self.select), self.selected.eq(counters.value)]
        return m

    def _index(self, m: Module, storage: Storage, prober: Prober) -> None:
        """The index beside ``storage``."""
        config = self._config
        m.submodules.index = index = Index(config, self._side)
        body = data.View(struct(config.body(self._side)), self.i.payload.body[:config.body(self._side).width])
        cells = stored_cells(config, self._side, body)
        m.d.comb += [
            Cat(index.cells).eq(Cat(cells)),
            index.store.eq(storage.stored), index.position.eq(storage.written), storage.hold.eq(index.hold),
            prober.known.eq(index.known),
            index.look.eq(prober.look), index.bucket.eq(prober.bucket), prober.granted.eq(index.granted),
            prober.head.eq(index.head), prober.live.eq(index.live),
            index.row.eq(prober.rows[0]), prober.distance.eq(index.distance),
        ]
