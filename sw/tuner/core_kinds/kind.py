"""The interface of a core kind's speed, and of the shapes of it that the tuner tries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

from ...circuit.wire import Configuration
from ..workload import Workload

__all__ = ["CORE_INPUT", "CoreSpeed", "Shape"]

#: Cycles in which a core takes a tuple: two, and a share of those in which its regions change from batch to batch.
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
        """Cycles in which a core takes a tuple, ``expiry`` of them for tuples that have become too old."""

    @abstractmethod
    def comparing_cycles(self, config: Configuration, load: Workload) -> float:
        """Cycles from tuple to tuple that comparing needs, input of both streams in turn."""

    @abstractmethod
    def latency(self, config: Configuration, load: Workload) -> tuple[float, float]:
        """Cycles of a probe's comparisons, and of its wait for those of a pass that has just begun."""

    @abstractmethod
    def shapes(self, least: int, lanes: int | None, probes: int | None) -> Iterator[Shape]:
        """The shapes that are tried of cores that hold ``least`` tuples; ``lanes``, ``probes``: asked for, or None."""

    def candidates(self, config: Configuration, load: Workload) -> tuple[float, float]:
        """Tuples that a probe is compared with in each core, of R and of S: without an index all that it stores."""
        return load.r / config.cores, load.s / config.cores
