"""A source: the handle by which one producer delivers its tuples."""

from __future__ import annotations

from typing import Any, Protocol

from ..errors import InputError
from ..lang.schema import Side

__all__ = ["Source", "Sources", "check_unfinished"]


class Sources(Protocol):
    """What sources deliver to: a gate, or a session that has one."""

    def deliver(self, side: Side, index: int, data: Any) -> None:
        """Take the next tuples of a source."""

    def promise(self, side: Side, index: int, time: Any) -> None:
        """Take a source's promise."""

    def remove(self, side: Side, index: int) -> None:
        """Close a source."""


class Source:
    """One producer of tuples. ``side`` is its stream, ``index`` its place among sources of that stream at equal times.

    Use as a context manager to close it at the end.
    """

    def __init__(self, owner: Sources, side: Side, index: int):
        self._owner = owner
        self.side: Side = side
        self.index = index

    def __repr__(self) -> str:
        return f"<source {self.side}[{self.index}]>"

    def push(self, data: Any) -> None:
        """Deliver the source's next tuples: an Arrow table or batch, or anything with ``__arrow_c_stream__``.

        When it raises, nothing of ``data`` was taken.
        """
        self._owner.deliver(self.side, self.index, data)

    def heartbeat(self, time: Any) -> None:
        """Promise that this source delivers nothing below ``time`` any more (semantics, section 1)."""
        self._owner.promise(self.side, self.index, time)

    def close(self) -> None:
        """Deliver nothing any more, so that no other source waits for this one. Closing again does nothing."""
        self._owner.remove(self.side, self.index)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_unfinished(side: Side, finished: bool) -> None:
    """Raise `InputError` if stream ``side`` is ``finished``."""
    if finished:
        raise InputError(f"stream {side} is finished and takes no more tuples or sources; push before it is closed, or "
                         f"open a new session")
