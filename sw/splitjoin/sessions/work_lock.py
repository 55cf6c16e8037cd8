"""`WorkLock`: the lock of a session, which is held while its pipeline works."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from splitjoin.base import threads


class WorkLock:
    """A condition whose holder also does the work of those that do not wait for it.

    A poll makes room for rows, and does not wait for a push that works. Whoever holds the lock may have seen no room,
    or work nothing at all; so `try_acquire` leaves a note, and the holder calls ``work`` once it has let the lock go.

    Attributes:
        is_owed: True if there is such a note; ``work`` makes it False before it looks at anything.
    """

    def __init__(self, work: Callable[[], None]):
        self._condition, self._work = threads.condition(), work
        self._depth = 0  # how often its thread holds it
        self.is_owed = False

    def try_acquire(self, *, wait: bool) -> bool:
        """Take the lock for `release`; without ``wait``, False where another thread has it, which will work."""
        self.is_owed = True
        if not self._condition.acquire(blocking=wait):
            return False
        self._depth += 1
        return True

    def release(self) -> None:
        """Let the lock go, and do what is owed."""
        self._depth -= 1
        is_free = not self._depth
        self._condition.release()
        while is_free and self.is_owed and self._condition.acquire(blocking=False):
            try:
                self._work()
            finally:
                self._condition.release()

    def wait(self, seconds: float | None) -> bool:
        """Wait for `notify_all`, at most so long; do what is owed instead. The caller holds the lock once."""
        if self.is_owed:
            self._work()
            return True
        depth, self._depth = self._depth, 0
        try:
            return self._condition.wait(seconds)
        finally:
            self._depth = depth

    def notify_all(self) -> None:
        """Wake those that `wait`. The caller holds the lock."""
        self._condition.notify_all()

    def __enter__(self) -> None:
        self._condition.acquire()
        self._depth += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.release()
