"""The way of tuples through a session: from the sources through gate and device to the outbox, and what bounds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..device.api import Device
from ..errors import DeviceError
from ..gate import PushOrder, ScaleGate
from ..lang.query import Query
from ..lang.schema import SIDES, Side
from .core import Core
from .layout import Layout
from .limit import Limit
from .outbox import Outbox
from .snapshot import Snapshot

__all__ = ["Flow"]


class Flow:
    """Runs ``query`` on ``device``, for a session whose lock is held whenever a method is called.

    Attributes:
        gate: Brings the tuples of all sources into arrival order.
        core: Takes them through the device.
        outbox: Holds the result rows until they are polled; safe to use without the session's lock.
        failure: What the device failed with, if it did.
    """

    def __init__(self, query: Query, layout: Layout, device: Device, lateness: int | str | None, limit: Limit,
                 punctuation: bool):
        self._query, self._layout, self._lateness = query, layout, lateness
        self._limit, self._punctuation = limit, punctuation
        self._default: dict[Side, int] = {}
        self.failure: Exception | None = None
        self.gate, self.outbox, self.core = self._parts(device)
        _ = self.core.runner  # what the device refuses is refused now

    def default_source(self, side: Side) -> int:
        """The index of the source that a stream's own pushes belong to, which the first use adds."""
        if side not in self._default:
            self._default[side] = self.gate.add(side).index
        return self._default[side]

    def heartbeat(self, time: Any, sides: Sequence[Side]) -> None:
        """Promise for every open source of ``sides`` that it delivers nothing below ``time`` any more."""
        for side in sides:
            if not self.gate.count(side):
                self.default_source(side)
            for index in range(self.gate.count(side)):
                if not self.gate.is_closed(side, index):
                    self.gate.promise(side, index, time)

    def work(self, everything: bool = False) -> None:
        """Do what can be done now; with ``everything``, whatever the limits say. What is raised is the ``failure``."""
        try:
            self._collect()
            self.core.run((lambda: False) if everything else self._results_full)
            self.core.look()
            if not self.core.inbox:
                self.core.idle(self.gate.frontier)
                if self.gate.done:
                    self.core.end()
        except Exception as error:
            self.failure = error
            self.outbox.fail()
            raise

    def full(self, side: Side, index: int | None) -> str | None:
        """Why a batch of the source ``index`` (None: of the stream's own) cannot be taken now; None if it can."""
        limit = self._limit
        if index is None:
            index = self._default.get(side)
        if self._results_full():
            return (f"{self.outbox.rows} result rows ({self.outbox.nbytes} bytes) were not polled, and the limit is "
                    f"{limit.rows} rows or {limit.nbytes} bytes; poll first")
        if limit.waiting is not None and self.gate.waiting >= limit.waiting and self.gate.held_up(side, index):
            return (f"{self.gate.waiting} tuples wait for {', '.join(self.gate.behind())}, and the limit is "
                    f"{limit.waiting}; push or heartbeat there, or close it")
        return None

    def counters(self) -> dict[str, int]:
        """As `StreamJoin.counters`."""
        kept = self.core.retained
        out = {f"tuples_{side}": kept[side].end for side in SIDES}
        out |= {"rows": self.outbox.total, "unread_rows": self.outbox.rows, "unread_bytes": self.outbox.nbytes}
        out |= {f"retained_{side}": len(kept[side]) for side in SIDES}
        out |= {"retained_bytes": sum(k.nbytes for k in kept.values()), "restarts": self.core.restarts}
        out |= self.gate.counters()
        return out | {f"device_{name}": n for name, n in self.core.runner.counters().items()}

    def snapshot(self) -> bytes:
        """As `StreamJoin.snapshot`."""
        self._collect()
        return Snapshot.of(self._query, self._layout.schema, self.gate.lateness, self._punctuation, self.gate.state(),
                           self._default, self.core, self.outbox).to_bytes()

    def restore(self, snapshot: bytes) -> None:
        """As `StreamJoin.restore`. Who waits for the old outbox is told that it is over."""
        found = Snapshot.from_bytes(snapshot)
        found.check(self._query, self._layout.schema, self.gate.lateness, self._punctuation)
        gate, outbox, core = self._parts(self.core.device)
        try:
            gate.restore(found.gate())
            found.fill(self._query, core, outbox)
        except BaseException:
            core.close()
            raise
        self.core.close()
        self.gate, self.outbox, self.core, old = gate, outbox, core, self.outbox
        self._default = found.default
        self.failure = None
        old.end()

    def restart(self, device: Device) -> None:
        """Go on in a fresh session of ``device``, to which the live windows are replayed."""
        self.core.restart(device)
        self.failure = None
        self.outbox.mend()

    def failed(self) -> DeviceError:
        """What to raise after a ``failure``."""
        return DeviceError(f"the device failed: {self.failure!r}; what was pushed is kept: restart() goes on in a "
                           f"fresh device session, restart('cpu') on another device")

    def _results_full(self) -> bool:
        rows, nbytes = self._limit.rows, self._limit.nbytes
        return (rows is not None and self.outbox.rows >= rows) or (
            nbytes is not None and self.outbox.nbytes >= nbytes)

    def _collect(self) -> None:
        arrivals = self.gate.ready()
        if len(arrivals):
            self.core.inbox.append(arrivals)

    def _parts(self, device: Device) -> tuple[ScaleGate | PushOrder, Outbox, Core]:
        layout, limit = self._layout, self._limit
        outbox = Outbox(layout.schema, self._punctuation)
        schemas = {side: layout.kept_schema(side) for side in SIDES}
        return (layout.gate(self._lateness, limit.late), outbox,
                Core(self._query, device, layout.columns, schemas, outbox, limit.rows))
