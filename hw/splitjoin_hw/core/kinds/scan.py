"""Core kind ``scan``: no index."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module

from splitjoin.circuit.wire import Configuration

from ..emitter import Emitter
from ..listing import ListEmitter
from ..scanner import Scanner
from ..sorter import SortingEmitter
from ..storage import Storage
from .kind import CoreComponents

__all__ = ["ScanComponents"]


class ScanComponents(CoreComponents):
    """A `Scanner`, and a `SortingEmitter`, or a `ListEmitter` for batches of one probe."""

    name = "scanner"

    def processing(self, config: Configuration, side: str) -> Scanner:
        return Scanner(config, side)

    def emitter(self, config: Configuration, latency: int) -> Emitter:
        return (ListEmitter if config.probes == 1 else SortingEmitter)(config, latency=latency)

    def add_index(self, m: Module, config: Configuration, side: str, body: Any, storage: Storage,
                  processing: Any) -> None:
        pass  # this kind has no index
