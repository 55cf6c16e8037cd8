"""Core kind ``scan``: no index."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module
from splitjoin.circuit.wire import Configuration

from ..emitter import Emitter
from ..scanner import Scanner
from ..storage import Storage
from .kind import CoreComponents

__all__ = ["ScanComponents"]


class ScanComponents(CoreComponents):
    """A `Scanner` and an `Emitter`."""

    name = "scanner"

    def processing(self, config: Configuration, side: str) -> Scanner:
        return Scanner(config, side)

    def emitter(self, config: Configuration, latency: int) -> Emitter:
        return Emitter(config, latency=latency)

    def add_index(self, m: Module, config: Configuration, side: str, body: Any, storage: Storage,
                  processing: Any) -> None:
        pass  # this kind has no index
