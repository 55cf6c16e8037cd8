"""Core kinds with an index."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module
from amaranth.lib import data, wiring

from splitjoin.circuit.wire import Configuration

from ...layouts import struct
from ..buckets import Buckets
from ..index import Index
from ..interfaces import LookupSignature, interface
from ..prober import Prober
from ..stack import StackEmitter
from ..storage import Storage
from .kind import CoreComponents

__all__ = ["IndexComponents"]


class IndexComponents(CoreComponents):
    """An `Index`, a `Prober` and a `StackEmitter`, for a kind with ``buckets``."""

    name = "prober"

    def __init__(self, buckets: Buckets):
        self.buckets = buckets

    def processing(self, config: Configuration, side: str) -> Prober:
        return Prober(config, side, self.buckets)

    def emitter(self, config: Configuration, latency: int) -> StackEmitter:
        return StackEmitter(config, latency=latency)

    def add_index(self, m: Module, config: Configuration, side: str, body: Any, storage: Storage,
                  processing: Any) -> None:
        m.submodules.index = index = Index(config, side, self.buckets)
        record = data.View(struct(config.body(side)), body[:config.body(side).width])
        lookup = LookupSignature(config)
        wiring.connect(m, interface(processing, lookup), interface(index, lookup.flip()))
        m.d.comb += [
            Cat(index.cells).eq(Cat(self.buckets.stored_cells(config, side, record))),
            index.store.eq(storage.stored), index.position.eq(storage.written), storage.hold.eq(index.hold),
            index.row.eq(processing.rows[0]),
        ]
