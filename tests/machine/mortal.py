"""`MortalDevice`: the golden model with three cores, which stand still when they are told to."""

from __future__ import annotations

from typing import Any

from splitjoin.engines.device import PAIR, Fault
from splitjoin.engines.golden import GoldenDevice, GoldenSession
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES


class _MortalSession(GoldenSession):
    """A session that leaves out cores which stand still, as circuits with ``fault_timeout`` do."""

    def __init__(self, query: Query, cores: int):
        super().__init__(query, cores)
        self._left_out: list[tuple[Fault, int]] = []

    @property
    def faults(self) -> tuple[Fault, ...]:
        return tuple(fault for fault, _ in self._left_out)

    def leave_out(self, core: int, kept: int) -> None:
        """Of the next probe of each stream, ``core`` gives its ``kept`` oldest pairs, and then none."""
        r, s = (self._streams[side].tuples for side in SIDES)
        self._left_out.append((Fault(core, self._cores, r, s, core, core), kept))

    def _probe(self, *args: Any) -> None:
        start = len(self._items)
        super()._probe(*args)
        for fault, kept in self._left_out:
            given = 0
            for item in self._items[start:]:
                kind, side, probe, stored = (*item[:2], *item[2:][::1 - 2 * item[1]])
                if kind == PAIR and stored % fault.cores == fault.core:
                    given += 1
                    if given > kept or probe > (fault.s if side else fault.r):
                        self._items.remove(item)


class MortalDevice(GoldenDevice):
    """Opens sessions of which cores can be told to stand still."""

    def __init__(self) -> None:
        super().__init__(cores=3)
        self.latest: _MortalSession | None = None

    def open(self, query: Query) -> GoldenSession:
        self.latest = _MortalSession(query, self.cores)
        return self.latest
