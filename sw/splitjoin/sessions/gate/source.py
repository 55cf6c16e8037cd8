"""Sources: the handle through which one producer delivers its tuples, and the state of sources and gates as plain
values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.base.errors import InputError
from splitjoin.lang.schema import SIDES, Side

__all__ = ["GateState", "Shed", "Source", "SourceOwner", "SourceState", "check_side", "check_unfinished"]


class SourceOwner(Protocol):
    """The receiver of sources' tuples: a gate, or a session that has one."""

    def deliver(self, side: Side, index: int, data: Any) -> None:
        """Take the next tuples of a source."""

    def promise(self, side: Side, index: int, time: Any) -> None:
        """Record a source's promise."""

    def silence(self, side: Side, index: int) -> None:
        """Let no other source wait for a source until it speaks."""

    def remove(self, side: Side, index: int) -> None:
        """Close a source."""


#: Chooses the tuples that are dropped under load, bool (n,), of so many, while so many of the stream wait.
Shed = Callable[[int, int], npt.NDArray[np.bool_]]


class Source:
    """One producer of tuples. ``side`` is its stream, ``index`` its place among sources of that stream at equal times.

    Use as a context manager to close it at the end.
    """

    def __init__(self, owner: SourceOwner, side: Side, index: int):
        self._owner = owner
        self.side: Side = side
        self.index = index

    def __repr__(self) -> str:
        return f"<source {self.side}[{self.index}]>"

    def push(self, data: Any) -> None:
        """Deliver the source's next tuples: an Arrow table or batch, or anything with ``__arrow_c_stream__``.

        If it raises, no tuple of ``data`` was taken.
        """
        self._owner.deliver(self.side, self.index, data)

    def heartbeat(self, time: Any) -> None:
        """Promise that this source delivers no more tuples below ``time`` (semantics, section 1)."""
        self._owner.promise(self.side, self.index, time)

    def idle(self) -> None:
        """Let no other source wait for this one until its next push or heartbeat.

        What it then delivers is late if it precedes what the others have got to.
        """
        self._owner.silence(self.side, self.index)

    def close(self) -> None:
        """End the source, so that no other source waits for it. Closing it again has no effect."""
        self._owner.remove(self.side, self.index)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class SourceState:
    """The state of one source: its highest event time and its promise in ticks, whether it is or was idle, for how many
    seconds it has been silent, and its tuples that are not ready, by position.
    """

    highest: int | None
    promise: int | None
    closed: bool
    idle: bool
    was_idle: bool
    silent: float
    waiting: pa.Table


@dataclass(frozen=True)
class GateState:
    """The state of a gate in a snapshot.

    Attributes:
        frontier: The place up to which arrival order is known: event time in ticks, then the source's rank.
        finished: True for a stream that takes no more tuples.
        sources: The sources of each stream.
        late: For each stream the number of late tuples, the number of forgotten ones, and the kept ones.
        passed: For each stream how far an `UnorderedGate` has got: event time in ticks, then the source; None at first.
        silent: For how many seconds a stream that has had no source has been silent.
        shed: As ``late``, of the tuples that were dropped under load; empty in a gate that drops none.
        default: The index of each stream's default source, if there is one.
    """

    frontier: tuple[int, tuple[int, int]] | None
    finished: dict[Side, bool]
    sources: dict[Side, list[SourceState]]
    late: dict[Side, tuple[int, int, pa.Table]] = field(default_factory=dict)
    passed: dict[Side, tuple[int, int] | None] = field(default_factory=lambda: dict.fromkeys(SIDES))
    silent: float = 0.0
    shed: dict[Side, tuple[int, int, pa.Table]] = field(default_factory=dict)
    default: dict[Side, int] = field(default_factory=dict)

    @classmethod
    def of(cls, schemas: Mapping[Side, pa.Schema], frontier: int | None = None, *, done: bool = False) -> GateState:
        """The state of a reader of tuples of ``schemas``, which has no sources, at ``frontier``."""
        return cls(None if frontier is None else (frontier, (0, 0)), dict.fromkeys(SIDES, done),
                   {side: [] for side in SIDES}, {side: (0, 0, schemas[side].empty_table()) for side in SIDES})


def check_side(side: str) -> None:
    """Raise `InputError` unless ``side`` is "r" or "s"."""
    if side not in SIDES:
        raise InputError(f"a stream must be 'r' or 's', not {side!r}")


def check_unfinished(side: Side, finished: bool) -> None:
    """Raise `InputError` if stream ``side`` is ``finished``."""
    if finished:
        raise InputError(f"stream {side} is finished and takes no more tuples or sources; push before it is closed, or "
                         f"open a new session")
