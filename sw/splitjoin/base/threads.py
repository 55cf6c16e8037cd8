"""Threads, locks, the clock and Unix sockets: all that product code waits by, so that tests can put others beneath it.

Tests schedule them by a seed, in a time of their own (`using`); otherwise they are Python's.
"""

from __future__ import annotations

import queue
import socket as sockets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any


class System:
    """The threads, the clock and the sockets of the operating system."""

    lock: Callable[[], threading.Lock] = staticmethod(threading.Lock)
    rlock: Callable[[], threading.RLock] = staticmethod(threading.RLock)
    condition: Callable[..., threading.Condition] = staticmethod(threading.Condition)
    event: Callable[[], threading.Event] = staticmethod(threading.Event)
    semaphore: Callable[[int], threading.Semaphore] = staticmethod(threading.Semaphore)
    simple_queue: Callable[[], Any] = staticmethod(queue.SimpleQueue)
    bounded_queue: Callable[[int], Any] = staticmethod(queue.Queue)
    thread: Callable[..., threading.Thread] = staticmethod(threading.Thread)
    timer: Callable[..., threading.Timer] = staticmethod(threading.Timer)
    monotonic: Callable[[], float] = staticmethod(time.monotonic)
    sleep: Callable[[float], None] = staticmethod(time.sleep)

    def unix_socket(self) -> sockets.socket:
        """A Unix socket of the kind stream."""
        return sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)


_system = System()


@contextmanager
def using(system: System) -> Iterator[None]:
    """Within the block, what this module makes is of ``system``: for tests, in all threads."""
    global _system
    before, _system = _system, system
    try:
        yield
    finally:
        _system = before


def lock() -> threading.Lock:
    """A lock."""
    return _system.lock()


def rlock() -> threading.RLock:
    """A lock that the thread that holds it may take again."""
    return _system.rlock()


def condition(of: threading.Lock | threading.RLock | None = None) -> threading.Condition:
    """A condition with the lock ``of``; None: with an `rlock` of its own."""
    return _system.condition(of)


def event() -> threading.Event:
    """An event."""
    return _system.event()


def semaphore(n: int) -> threading.Semaphore:
    """A semaphore that ``n`` may have."""
    return _system.semaphore(n)


def simple_queue() -> queue.SimpleQueue[Any]:
    """A queue without a bound."""
    made: queue.SimpleQueue[Any] = _system.simple_queue()
    return made


def bounded_queue(most: int) -> queue.Queue[Any]:
    """A queue of at most so many."""
    made: queue.Queue[Any] = _system.bounded_queue(most)
    return made


def thread(target: Callable[..., object], args: Sequence[Any] = (), *, name: str) -> threading.Thread:
    """A thread that calls ``target``, and does not keep the process from ending."""
    return _system.thread(target=target, args=args, name=name, daemon=True)


def timer(seconds: float, function: Callable[[], object]) -> threading.Timer:
    """A thread that calls ``function`` after ``seconds``, unless it is cancelled."""
    return _system.timer(seconds, function)


def monotonic() -> float:
    """The time in seconds, which never falls."""
    return _system.monotonic()


def sleep(seconds: float) -> None:
    """Wait for ``seconds``."""
    _system.sleep(seconds)


def unix_socket() -> sockets.socket:
    """A Unix socket of the kind stream."""
    return _system.unix_socket()


class GlobalLock:
    """A lock of a module, which is made before a test puts another system beneath. Held by ``with``, also twice."""

    def __init__(self) -> None:
        self._made: tuple[System, threading.RLock] | None = None
        self._making = threading.Lock()

    def __enter__(self) -> None:
        with self._making:
            if self._made is None or self._made[0] is not _system:
                self._made = _system, _system.rlock()
            made = self._made[1]
        made.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        assert self._made is not None
        self._made[1].release()
