"""A flow that several threads share: one at a time works on it, and pushes wait until there is room."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, RLock

import pyarrow as pa

from ..device.api import Items
from ..errors import BackPressure, DeviceError, SplitJoinError
from ..lang.schema import Side
from .flow import Flow

__all__ = ["SharedFlow"]


class SharedFlow:
    """Lets one thread at a time use ``flow``.

    Attributes:
        lock: Held while the flow changes; pushes wait on it for room.
        closed: Whether the device has been released.
    """

    def __init__(self, flow: Flow):
        self._flow = flow
        self.lock = Condition(RLock())
        self.closed = False
        self._blocked = 0

    @contextmanager
    def opened(self) -> Iterator[None]:
        """With the lock held; raises `DeviceError` after `close`."""
        with self.lock:
            self._check_open()
            yield

    @contextmanager
    def usable(self) -> Iterator[None]:
        """As `opened`; raises `DeviceError` too when the device has failed."""
        with self.lock:
            self._check_usable()
            yield

    @contextmanager
    def room(self, side: Side, index: int | None, *, block: bool) -> Iterator[None]:
        """As `usable`, once there is room for a batch of the source ``index`` (None: of the stream's own).

        Raises `BackPressure` where there is none and ``block`` is false.
        """
        with self.lock:
            self._make_room(side, index, block)
            yield

    def work(self, everything: bool = False) -> None:
        """Do what can be done now, and let those who wait see. The lock is held."""
        try:
            self._flow.work(everything)
        finally:
            self.lock.notify_all()

    def take(self) -> tuple[pa.RecordBatch, Items]:
        """What the outbox holds; what a limit held up goes on, unless another thread is at work."""
        self._check_open()
        taken = self._flow.outbox.take()
        # Whoever holds the lock now works already, and wakes the others when done; but who waits in a push needs us.
        if self.lock.acquire(blocking=self._blocked > 0):
            try:
                if self._flow.failure is not None:
                    if not len(taken[0]):
                        raise self._flow.failed()
                elif not self.closed and not self._flow.core.ended:
                    self.work()
            except SplitJoinError:
                if not len(taken[0]):
                    raise
            finally:
                self.lock.notify_all()
                self.lock.release()
        return taken if len(taken[0]) or len(taken[1]) else self._flow.outbox.take()

    def close(self) -> None:
        """Release the device, and wake those who wait."""
        with self.lock:
            if not self.closed:
                self.closed = True
                self._flow.core.close()
                self._flow.outbox.end()
                self.lock.notify_all()

    def _make_room(self, side: Side, index: int | None, block: bool) -> None:
        self._blocked += 1  # before looking, so that whoever makes room afterwards sees that someone may wait
        try:
            while True:
                self._check_usable()
                reason = self._flow.full(side, index)
                if reason is None:
                    return
                if not block:
                    raise BackPressure(f"the session is full: {reason}; the batch was not taken")
                self.lock.wait()
        finally:
            self._blocked -= 1

    def _check_open(self) -> None:
        if self.closed:
            raise DeviceError("the session is closed")

    def _check_usable(self) -> None:
        self._check_open()
        if self._flow.failure is not None:
            raise self._flow.failed()
