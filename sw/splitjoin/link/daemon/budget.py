"""`Budget`: a bound on the bytes that the messages of all connections take together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from splitjoin.base import threads
from splitjoin.base.errors import DeviceError

#: Seconds between two checks that a client is still connected.
_LOOK_SECONDS = 0.2


class Budget:
    """``total`` bytes for messages that are being read or answered. Thread-safe.

    A message takes its bytes out before it is read, and waits while others have them: the client's ``send`` waits with
    it. ``patience``: the seconds after which `reserved` gives up.
    """

    def __init__(self, total: int, patience: float = 60.0):
        self.total, self._patience = total, patience
        self._free = total
        self._changed = threads.condition()

    @property
    def free(self) -> int:
        """The bytes that no message has."""
        with self._changed:
            return self._free

    @contextmanager
    def reserved(self, nbytes: int, waits: Callable[[], bool] = lambda: True) -> Iterator[None]:
        """Within the block, the caller has ``nbytes``, or all that there are.

        ``waits``: False if the caller need not wait any longer. Raises `DeviceError` if there are none in time.
        """
        nbytes = min(nbytes, self.total)
        end = threads.monotonic() + self._patience
        with self._changed:
            while self._free < nbytes:
                if threads.monotonic() >= end or not waits():
                    raise DeviceError(f"the daemon must hold at most {self.total} bytes of messages, but other clients "
                                      f"have {self.total - self._free} of them, and this one needs {nbytes}; try "
                                      f"again later, or push fewer tuples at once")
                self._changed.wait(_LOOK_SECONDS)
            self._free -= nbytes
        try:
            yield
        finally:
            with self._changed:
                self._free += nbytes
                self._changed.notify_all()
