"""The components of each core kind, a class and a line of the table a kind, as in `splitjoin.circuit.core_kinds`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Value
from amaranth.lib import data, wiring

from splitjoin.circuit.wire import Configuration
from splitjoin.lang.schema import other_side

from ..layouts import STREAM_R, STREAM_S, struct, taken
from ..memory.chaser import Chaser
from ..memory.port import RoundRobin, core_of
from ..memory.store_unit import StoreUnit
from .bitmap import BitmapEmitter
from .buckets import Buckets, CellBuckets, HashBuckets
from .emitter import Emitter
from .index import Index
from .interfaces import LookupSignature, interface
from .listing import ListEmitter
from .prober import Prober
from .range_prober import RangeProber
from .scanner import Scanner
from .sorter import SortingEmitter
from .stack import StackEmitter
from .storage import Storage


class CoreComponents(ABC):
    """The components that a region of a core kind has beside its storage.

    Attributes:
        name: The submodule's name of the processing side.
    """

    name: str

    @abstractmethod
    def processing(self, config: Configuration, side: str) -> Any:
        """The processing side, a component with the members of `splitjoin_hw.core.interfaces.ProcessingSignature`. Its
        attribute ``counters`` names those of its ports that are region counters.
        """

    @abstractmethod
    def emitter(self, config: Configuration, latency: int) -> Emitter:
        """The emitter; ``latency``: cycles from a read to its outcome."""

    @abstractmethod
    def add_index(self, m: Module, config: Configuration, side: str, body: Any, storage: Storage,
                  processing: Any, port: Any) -> None:
        """Add the index to region ``m``, between storage and processing side; ``body``: of the record to be stored,
        ``port``: of the region to external memory (`splitjoin_hw.memory.port.MemorySignature`), or None.
        """


class ScanComponents(CoreComponents):
    """A `Scanner`, and a `SortingEmitter`, or a `ListEmitter` for batches of one probe."""

    name = "scanner"

    def processing(self, config: Configuration, side: str) -> Scanner:
        return Scanner(config, side)

    def emitter(self, config: Configuration, latency: int) -> Emitter:
        return (ListEmitter if config.probes == 1 else SortingEmitter)(config, latency=latency)

    def add_index(self, m: Module, config: Configuration, side: str, body: Any, storage: Storage,
                  processing: Any, port: Any) -> None:
        pass  # this kind has no index


class IndexComponents(CoreComponents):
    """An `Index`, a `Prober` and a `StackEmitter`, for a kind with ``buckets``."""

    name = "prober"

    def __init__(self, buckets: Buckets):
        self.buckets = buckets

    def processing(self, config: Configuration, side: str) -> Any:
        return Prober(config, side, self.buckets)

    def emitter(self, config: Configuration, latency: int) -> Emitter:
        return StackEmitter(config, latency=latency)

    def add_index(self, m: Module, config: Configuration, side: str, body: Any, storage: Storage,
                  processing: Any, port: Any) -> None:
        m.submodules.index = index = Index(config, side, self.buckets)
        record = data.View(struct(config.body(side)), body[:config.body(side).width])
        lookup = LookupSignature(config)
        wiring.connect(m, interface(processing, lookup), interface(index, lookup.flip()))
        m.d.comb += [
            Cat(index.cells).eq(Cat(self.buckets.stored_cells(config, side, record))),
            index.store.eq(storage.stored), index.position.eq(storage.written), storage.hold.eq(index.hold),
            index.row.eq(processing.rows[0]),
        ]


class OrderedComponents(IndexComponents):
    """An `Index`, a `RangeProber` and a `BitmapEmitter`, for a kind whose probes reach any number of cells."""

    def processing(self, config: Configuration, side: str) -> Any:
        return RangeProber(config, side)

    def emitter(self, config: Configuration, latency: int) -> Emitter:
        return BitmapEmitter(config, latency=latency)


class MemoryComponents(IndexComponents):
    """A `Chaser`, a `StoreUnit` and a `StackEmitter`, for a kind with ``buckets`` and windows in external memory."""

    name = "chaser"

    def processing(self, config: Configuration, side: str) -> Chaser:
        return Chaser(config, side, self.buckets)

    def add_index(self, m: Module, config: Configuration, side: str, body: Any, storage: Storage,
                  processing: Any, port: Any) -> None:
        m.submodules.writer = writer = StoreUnit(config, side, self.buckets)
        m.submodules.reads = reads = RoundRobin(port.read.payload.shape())
        record = data.View(struct(config.body(side)), body[:config.body(side).width])
        for part, source in zip((processing, writer), reads.i, strict=True):
            wiring.connect(m, part.read, source)
        wiring.connect(m, reads.o, wiring.flipped(port.read))
        wiring.connect(m, writer.write, wiring.flipped(port.write))
        of_store = port.answer.number[-1]
        if config.routed:
            self.route(m, config, side, storage.i.payload, storage, processing)
        m.d.comb += [
            Cat(writer.cells).eq(Cat(self.buckets.stored_cells(config, side, record))),
            *(writer.keys[name].eq(record[name]) for name, _ in config.keys(side).fields),
            writer.count.eq(storage.stored), writer.store.eq(storage.stored & (storage.kept if config.routed else 1)),
            storage.hold.eq(writer.hold | processing.settles),
            writer.look.eq(processing.look), processing.blocked.eq(writer.blocked), processing.able.eq(writer.able),
            processing.storing.eq(writer.storing), processing.youngest.eq(writer.youngest),
            writer.answer_valid.eq(port.answer_valid & of_store), writer.answer.eq(port.answer),
            processing.answer_valid.eq(port.answer_valid & ~of_store), processing.answer.eq(port.answer),
            writer.written_valid.eq(port.written_valid), writer.written.eq(port.written),
        ]


    def route(self, m: Module, config: Configuration, side: str, operation: Any, storage: Storage,
              processing: Any) -> None:
        """Lets ``storage`` know whether the tuple of ``operation`` is stored in this core, or as a probe looks up
        buckets of it.
        """
        other = other_side(side)
        own = data.View(struct(config.body(side)), operation.body[:config.body(side).width])
        bounds, reach = (data.View(struct(part), taken(config.body(other), part, operation.body))
                         for part in (config.bounds(other), config.reach(other)))
        whole, lookups = self.buckets.looked_up(config, bounds, reach)

        def mine(bucket: Value) -> Value:
            return core_of(config, bucket) == storage.index

        m.d.comb += [processing.index.eq(storage.index), storage.here.eq(Mux(
            operation.stream == (STREAM_R if side == "r" else STREAM_S),
            mine(self.buckets.address(config, self.buckets.stored_cells(config, side, own))),
            whole | Cat(due & mine(bucket) for due, bucket in lookups).any()))]


def components(config: Configuration) -> CoreComponents:
    """The components of the cores of ``config``."""
    of_kind = CORE_COMPONENTS[config.core]
    if config.memory == "bram":
        return of_kind
    assert isinstance(of_kind, IndexComponents)
    return MemoryComponents(of_kind.buckets)


#: Name of the kind → its components.
CORE_COMPONENTS: dict[str, CoreComponents] = {
    "scan": ScanComponents(), "hash": IndexComponents(HashBuckets()), "bucket": IndexComponents(CellBuckets()),
    "ordered": OrderedComponents(CellBuckets()),
}
