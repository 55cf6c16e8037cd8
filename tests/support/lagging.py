"""A device whose results come late, as those of circuits and boards do: the golden model behind a queue."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from splitjoin.base.errors import DeviceError
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import ITEM, Device, Items, Session
from splitjoin.engines.golden import GoldenDevice
from splitjoin.lang.query import Query


@dataclass(frozen=True)
class LaggingDevice(Device):
    """Keeps the last ``lag`` items back until flush; takes ``rows`` tuples of a stream; fails at push ``fails``."""

    lag: int = 0
    rows: int | None = None
    fails: int | tuple[int, ...] | None = None
    failure: type[DeviceError] = DeviceError
    #: Pushes to all sessions of this device.
    pushes: list[int] = field(default_factory=list)
    name: ClassVar[str] = "lagging"

    def open(self, query: Query) -> Session:
        return LaggingSession(self, GoldenDevice().open(query))


class LaggingSession(Session):
    def __init__(self, device: LaggingDevice, session: Session):
        self._device, self._session = device, session
        self.row_limit = device.rows
        self._items = np.empty(0, ITEM)
        self._due = 0  # items that the next poll gives

    def push(self, arrivals: Arrivals) -> None:
        self._device.pushes.append(1)
        fails = self._device.fails
        if len(self._device.pushes) in (fails if isinstance(fails, tuple) else (fails,)):
            raise self._device.failure("the cable is out")
        self._session.push(arrivals)

    def poll(self) -> Items:
        self._items = np.concatenate([self._items, self._session.poll()])
        n, self._due = max(len(self._items) - self._device.lag, self._due), 0
        found, self._items = self._items[:n], self._items[n:]
        return found

    def flush(self) -> Items:
        return np.concatenate([self._items, self._session.flush()])

    def precision(self, n: int) -> None:
        self._items = self.settle()
        self._due = len(self._items)
        self._session.precision(n)

    def settle(self) -> Items:
        found, self._items = np.concatenate([self._items, self._session.poll()]), self._items[:0]
        return found
