"""What a gate is in the middle of, as plain values and tables: what snapshots keep."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from ..lang.schema import Side

__all__ = ["GateState", "SourceState"]


@dataclass(frozen=True)
class SourceState:
    """One source: its highest event time and its promise in ticks, and its tuples that are not ready, by position."""

    top: int | None
    promise: int | None
    closed: bool
    waiting: pa.Table


@dataclass(frozen=True)
class GateState:
    """A gate: where arrival order is known up to, its sources, and per stream the late tuples (how many there were,
    how many are forgotten, those still kept).
    """

    frontier: tuple[int, tuple[int, int]] | None
    finished: dict[Side, bool]
    sources: dict[Side, list[SourceState]]
    late: dict[Side, tuple[int, int, pa.Table]] = field(default_factory=dict)
