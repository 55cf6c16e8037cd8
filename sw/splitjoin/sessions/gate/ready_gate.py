"""`ReadyGate`: what a pipeline needs of the gate that gives it the tuples of arrival order."""

from __future__ import annotations

from typing import Protocol

from splitjoin.engines.arrival import Arrivals
from splitjoin.lang.schema import Side

from .source import GateState

__all__ = ["ReadyGate"]


class ReadyGate(Protocol):
    """What gives a pipeline the tuples of arrival order."""

    @property
    def rule(self) -> object:
        """The rule by which tuples are late; its text is part of a session's identity."""

    @property
    def in_order(self) -> bool:
        """True if tuples become ready in arrival order."""

    @property
    def longest_delay(self) -> int:
        """The most ticks by which a tuple may come late."""

    @property
    def passed(self) -> dict[Side, int | None]:
        """For each stream the event time in ticks below which none of its tuples will become ready any more; None if
        unknown.
        """

    @property
    def done(self) -> bool:
        """True if both streams are finished."""

    def ready(self) -> Arrivals:
        """The tuples that became ready since the last call."""

    def next_idle(self) -> float | None:
        """Seconds until a silent source no longer holds tuples back; None if none will."""

    def counters(self) -> dict[str, int]:
        """Counters by name."""

    def state(self) -> GateState:
        """The state from which `restore` continues."""

    def restore(self, state: GateState) -> None:
        """Continue from ``state``."""
