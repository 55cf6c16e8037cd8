"""`ReadyGate`: what a pipeline needs of the gate that gives it the tuples of arrival order; and its state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from splitjoin.engines.arrival import Arrivals
from splitjoin.lang.schema import SIDES, Side

__all__ = ["GateState", "ReadyGate"]


@dataclass(frozen=True)
class GateState:
    """The state of a gate in a snapshot.

    Attributes:
        values: Plain values by name. ``default``: the index of each stream's default source, if there is one;
            ``frontier``: the place up to which arrival order is known, event time in ticks and the source's rank;
            ``finished``: whether a stream takes no more tuples; ``passed``: for each stream how far an `UnorderedGate`
            has got, event time in ticks and source, None at first; ``silent``: for how many seconds a stream that has
            had no source has been silent; ``sources``: `SourceQueue.state` of each stream's; ``late`` and ``shed``: how
            many tuples of each stream were late, or dropped under load, and how many of these are forgotten.
        tables: By name, the tuples of a source that are not ready, ``waiting_r_0``, and those of a stream that were
            late or dropped and are kept, ``late_r`` and ``shed_r``.
    """

    values: dict[str, Any]
    tables: dict[str, pa.Table]

    @classmethod
    def of(cls, schemas: Mapping[Side, pa.Schema], frontier: int | None = None, *, done: bool = False) -> GateState:
        """The state of a reader of tuples of ``schemas``, which has no sources, at ``frontier``."""
        return cls({
            "default": {}, "frontier": None if frontier is None else (frontier, (0, 0)),
            "finished": dict.fromkeys(SIDES, done), "passed": dict.fromkeys(SIDES), "silent": 0.0,
            "sources": {side: [] for side in SIDES}, "late": dict.fromkeys(SIDES, (0, 0)),
            "shed": dict.fromkeys(SIDES, (0, 0)),
        }, {f"{kind}_{side}": schemas[side].empty_table() for side in SIDES for kind in ("late", "shed")})


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
