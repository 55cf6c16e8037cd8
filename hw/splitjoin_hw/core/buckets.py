"""The interface of an index's buckets: which bucket a key belongs to, and which buckets a probe's bounds reach."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data

from splitjoin.circuit.wire import Configuration

__all__ = ["Buckets", "Reach", "cells_layout"]


@dataclass(frozen=True)
class Reach:
    """The buckets that the bounds of a probe reach, in the cycles after it was accepted.

    Attributes:
        parts: Per part of a bucket's number, the first one and the one above.
        none: In the cycle of the step, true if the bounds reach no bucket.
        too_many: In that cycle, true if they reach more buckets than are looked up.
        lookups_due: From the next cycle on, one bit per bucket still to be looked up; the prober clears them.
    """

    parts: list[tuple[Value, Value]]
    none: Value
    too_many: Value
    lookups_due: Signal


class Buckets(ABC):
    """The buckets of a core kind with an index."""

    @abstractmethod
    def stored_cells(self, config: Configuration, side: str, body: data.View) -> list[Value]:
        """The cells that a tuple of stream ``side`` with ``body`` is indexed by, in the order of `cells_layout`."""

    @abstractmethod
    def address(self, config: Configuration, cells: Sequence[Value]) -> Value:
        """The number of the bucket of ``cells``, which has one cell per test of the index."""

    @abstractmethod
    def reach(self, m: Module, config: Configuration, task: Any, accept: Signal, step: Signal) -> Reach:
        """The buckets that the probe of ``task`` reaches. The probe is accepted in the cycle before ``step``."""


def cells_layout(config: Configuration, side: str) -> data.StructLayout:
    """The cells that tuples of stream ``side`` are indexed by, one per test of the index: keys, or cells of keys."""
    return data.StructLayout({f"cell{n}": width for n, width in enumerate(config.kind.index_widths(config, side))})
