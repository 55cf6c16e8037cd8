"""The interface of a core kind's components."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from amaranth.hdl import Module

from splitjoin.circuit.wire import Configuration

from ..emitter import Emitter
from ..storage import Storage

__all__ = ["CoreComponents"]


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
                  processing: Any) -> None:
        """Add the index to region ``m``, between storage and processing side; ``body``: of the record to be stored."""
