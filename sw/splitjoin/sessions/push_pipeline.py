"""`PushPipeline`: the pipeline of a session whose sources push."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from splitjoin.lang.schema import Side

from .gate_choice import PushGate
from .pipeline import Pipeline

__all__ = ["PushPipeline"]


class PushPipeline(Pipeline[PushGate]):
    """A `Pipeline` whose gate gets its tuples from the sources of one session."""

    def default_source(self, side: Side) -> int:
        """The index of the default source, which a stream's own pushes belong to; the first use adds it."""
        if side not in self._default:
            self._default[side] = self.gate.add(side).index
        return self._default[side]

    def deliver(self, side: Side, index: int, table: pa.Table, *, sheds: bool = True) -> None:
        """Give tuples of source ``index`` to the gate; if it ``sheds``, without those to drop under load."""
        shedder, held = self.shedder if sheds else None, sum(len(arrivals.table(side)) for arrivals in self._ready)
        number = self.windows.streams[side].end + held + self.gate.shed_count(side)
        self.gate.deliver(side, index, table, None if shedder is None else lambda n, waiting: shedder.dropped(
            side, number + waiting, n, held + waiting + self.windows.live(side)))

    def heartbeat(self, time: Any, sides: Sequence[Side]) -> None:
        """Promise for every open source of ``sides`` that it delivers no more tuples below ``time``."""
        for side in sides:
            for index in self._open_sources(side):
                self.gate.promise(side, index, time)

    def silence(self, side: Side) -> None:
        """Let no other source wait for the open sources of ``side``, each until it speaks."""
        for index in self._open_sources(side):
            self.gate.silence(side, index)

    def _open_sources(self, side: Side) -> list[int]:
        """The indices of the open sources of ``side``; where it has no source, the default one is added."""
        if not self.gate.count(side):
            self.default_source(side)
        return [index for index in range(self.gate.count(side)) if not self.gate.is_closed(side, index)]

    def full(self, side: Side, index: int | None) -> str | None:
        """The reason why a batch of source ``index`` (None: the stream's default source) must wait now, or None."""
        if self.shedder is not None:
            return None  # it drops what there is no room for
        if index is None:
            index = self._default.get(side)
        if self._limit.full(self.results):
            return self._limit.unread(self.results)
        if self._limit.held(self.gate.waiting) and self.gate.held_up(side, index):
            return self._limit.waits(self.gate.waiting, self.gate.behind())
        return None
