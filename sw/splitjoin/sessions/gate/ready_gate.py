"""`ReadyGate`: what a pipeline needs of the gate that gives it the tuples of arrival order."""

from __future__ import annotations

from abc import ABC, abstractmethod

from splitjoin.engines.arrival import Arrivals
from splitjoin.lang.schema import Side

from .source import GateState

__all__ = ["ReadyGate"]


class ReadyGate(ABC):
    """What gives a pipeline the tuples of arrival order.

    Attributes:
        rule: The rule by which tuples are late; its text is part of a session's identity.
        in_order: True if tuples become ready in arrival order.
        longest_delay: The most ticks by which a tuple may come late.
    """

    rule: object
    in_order = True
    longest_delay = 0

    @property
    @abstractmethod
    def passed(self) -> dict[Side, int | None]:
        """For each stream the event time in ticks below which none of its tuples will become ready any more; None if
        unknown.
        """

    @property
    @abstractmethod
    def done(self) -> bool:
        """True if both streams are finished."""

    @abstractmethod
    def ready(self) -> Arrivals:
        """The tuples that became ready since the last call: the next slice of arrival order, which may be empty."""

    @abstractmethod
    def next_idle(self) -> float | None:
        """Seconds until a silent source no longer holds tuples back; None if none will."""

    @abstractmethod
    def counters(self) -> dict[str, int]:
        """Counters by name."""

    @abstractmethod
    def state(self) -> GateState:
        """The state from which `restore` continues."""

    @abstractmethod
    def restore(self, state: GateState) -> None:
        """Continue from ``state``."""
