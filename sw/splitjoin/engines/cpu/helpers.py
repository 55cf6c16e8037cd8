"""Threads that help the one that calls. A hand-over takes some microseconds, less than an executor's futures."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

__all__ = ["Helper", "concurrently"]

A = TypeVar("A")
B = TypeVar("B")


class Helper:
    """A thread that runs one function at a time. It starts at the first use, and ends with `close`, or when the helper
    is garbage.
    """

    def __init__(self, name: str):
        self._name = name
        self._tasks: SimpleQueue[Any] = SimpleQueue()
        self._outcomes: SimpleQueue[Any] = SimpleQueue()
        self._thread: Thread | None = None
        weakref.finalize(self, self._tasks.put, None)

    def start(self, function: Callable[[A], B], item: A) -> None:
        """Have the thread run ``function`` of ``item``; call `wait` before the next."""
        if self._thread is None:
            self._thread = Thread(target=_serve, args=(self._tasks, self._outcomes), name=self._name, daemon=True)
            self._thread.start()
        self._tasks.put((function, item))

    def wait(self) -> tuple[Any, BaseException | None]:
        """Wait until the function has ended. Returns its value and None, or None and the exception that it raised."""
        found: tuple[Any, BaseException | None] = self._outcomes.get()
        return found

    def close(self) -> None:
        """End the thread, after it has finished."""
        self._tasks.put(None)
        if self._thread is not None:
            self._thread.join()


def _serve(tasks: SimpleQueue[Any], outcomes: SimpleQueue[Any]) -> None:
    while (task := tasks.get()) is not None:
        function, item = task
        try:
            outcomes.put((function(item), None))
        except BaseException as error:  # raised again where it is waited for
            outcomes.put((None, error))
        del task, function, item  # what they hold is not kept until the next task


def concurrently(helpers: Sequence[Helper], function: Callable[[A], B], items: Sequence[A]) -> list[B]:
    """``function`` of all ``items``: of the first one in this thread, of each other one by one of the ``helpers``.

    Waits for all, also when one fails.
    """
    others = list(zip(helpers, items[1:], strict=False))
    assert len(others) == len(items) - 1
    for helper, item in others:
        helper.start(function, item)
    try:
        found = [function(items[0])]
    finally:
        outcomes = [helper.wait() for helper, _ in others]
    for value, error in outcomes:
        if error is not None:
            raise error
        found.append(value)
    return found
