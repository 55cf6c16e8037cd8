"""The interface of a core kind's speed, and of the shapes that the tuner tries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

from ...wire import Configuration
from ..workload import Workload

__all__ = ["CORE_INPUT", "CoreSpeed", "Shape"]

#: Cycles per input tuple of a core: two, and a share of the cycles in which its regions switch batches.
CORE_INPUT = 2.5


class Shape(NamedTuple):
    """The parameters of a core that the tuner chooses: capacity in tuples, lanes and probes."""

    capacity: int
    lanes: int
    probes: int


class CoreSpeed(ABC):
    """The speed of a kind of core in cycles, and its shapes."""

    @abstractmethod
    def input_cycles(self, expiry: float) -> float:
        """Cycles per input tuple of a core, including ``expiry`` cycles for tuples that expire."""

    @abstractmethod
    def comparing_cycles(self, config: Configuration, load: Workload) -> float:
        """Cycles per tuple that comparing needs, with as many tuples of one stream as of the other."""

    @abstractmethod
    def latency(self, config: Configuration, load: Workload) -> tuple[float, float]:
        """Cycles of a probe's comparisons, and of its wait for a pass that has just begun."""

    @abstractmethod
    def shapes(self, least: int, lanes: int | None, probes: int | None) -> Iterator[Shape]:
        """The shapes to try for cores that hold at least ``least`` tuples; ``lanes``, ``probes``: the requested
        numbers, or None.
        """

    def candidates(self, config: Configuration, load: Workload) -> tuple[float, float]:
        """Tuples of R and of S that a probe is compared with in each core: without an index all stored tuples."""
        return load.r / config.cores, load.s / config.cores
