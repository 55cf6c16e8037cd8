"""A device whose results come late, as those of circuits and boards do: the golden model behind a queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from splitjoin.arrival import Arrivals
from splitjoin.device.api import ITEM, Device, Items, Session
from splitjoin.errors import DeviceError
from splitjoin.golden import GoldenDevice
from splitjoin.lang.query import Query

__all__ = ["LaggingDevice", "LaggingSession"]


@dataclass(frozen=True)
class LaggingDevice(Device):
    """Keeps the last ``lag`` items back until flush; takes ``rows`` tuples of a stream; fails at push ``fails``."""

    lag: int = 0
    rows: int | None = None
    fails: int | None = None
    name: ClassVar[str] = "lagging"

    def open(self, query: Query) -> Session:
        return LaggingSession(self, GoldenDevice().open(query))


class LaggingSession(Session):
    def __init__(self, device: LaggingDevice, session: Session):
        self._device, self._session = device, session
        self.row_limit = device.rows
        self._items = np.empty(0, ITEM)
        self._pushes = 0

    def push(self, arrivals: Arrivals) -> None:
        self._pushes += 1
        if self._pushes == self._device.fails:
            raise DeviceError("the cable is out")
        self._session.push(arrivals)

    def poll(self) -> Items:
        self._items = np.concatenate([self._items, self._session.poll()])
        n = max(len(self._items) - self._device.lag, 0)
        found, self._items = self._items[:n], self._items[n:]
        return found

    def flush(self) -> Items:
        return np.concatenate([self._items, self._session.flush()])
