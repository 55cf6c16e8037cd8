"""`Team`: the threads of a session, which take an entry from a board in memory, without the interpreter's lock.

An *entry* is a function of a thread's number and of the address of a *block*, int64 numbers in memory that say where
its arrays lie. The loops that threads run are those of ``loops/threads.hpp``, which tells the protocol. A hand-over
takes some microseconds, less than an executor's futures.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from itertools import count
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from splitjoin.base.processors import processors
from splitjoin.base.threads import simple_queue, thread as new_thread

from ..loops import loops
from .store import aligned

#: Words of a board, of those that tests look at: the threads inside; helpers that look, or were called to; how often
#: all were dismissed; helpers that shall leave.
INSIDE, CALLED, DISMISSED, LEAVING = 8, 24, 32, 64
_WORDS = 72
#: How often a helper looks for the next compiled entry: for about 2 milliseconds, as long as some batches' work that is
#: not shared, since to wake threads takes longer than that work; and for 5 microseconds.
_LONG, _SHORT = 40_000, 128

A = TypeVar("A")
B = TypeVar("B")


def make_board() -> npt.NDArray[np.int64]:
    """A board without a job."""
    board = aligned(_WORDS, np.int64)
    board[:] = 0
    return board


class Team:
    """The thread that calls, and up to ``threads`` − 1 helpers, which start when they are needed, and end with `close`
    or when the team is garbage.

    Compiled work is divided for `size` threads, but no more helpers are woken for it than there are processors: others
    would only take these from threads that work. ``awake``: how many threads run it at a time; by default as many as
    there are `processors`.

    Attributes:
        size: How many threads share the work at present, from 1 to ``threads``.
        awake: How many of them run at a time, at most.
        is_patient: True if each that is awake has a processor: then helpers look for the next compiled entry for some
            time.
    """

    def __init__(self, threads: int, awake: int | None = None):
        self.size = threads
        most = 1 if threads == 1 else processors()
        self.awake = min(threads, most if awake is None else awake)
        self._tasks: SimpleQueue[Any] = simple_queue()
        self._outcomes: SimpleQueue[BaseException | None] = simple_queue()
        self._helpers: list[Thread] = []
        #: Arrays and blocks of what runs in all threads, one job after the other.
        self.kept: dict[str, Any] = {}
        self._board: Any = None  # of compiled entries, when there is one
        self._boards: dict[int, Any] = {}  # what helpers see of it
        self.is_patient = self.awake <= most
        weakref.finalize(self, _end, self._tasks, self._helpers)

    def run(self, function: Callable[[int], object], size: int | None = None, *, stay: bool = False) -> None:
        """Call ``function(0)`` here, and in each other of ``size`` threads ``function`` of a number from 1 to ``size``
        − 1. A helper that has not begun when ``function(0)`` has ended does not begin any more.

        Waits for all, also when one fails, and raises the exception of one that failed. ``stay``: compiled work follows
        soon, so only the helpers that are needed leave the board, and they look for it again when they have ended.
        """
        others = min(self.size if size is None else size, self.size) - 1
        self._start(others)
        if stay:
            loops()["lend"](self._made_board(), others)
        elif self._board is not None:
            loops()["dismiss"](self._board)
        for number in range(1, others + 1):
            self._tasks.put((function, number, stay))
        failed: list[BaseException] = []
        try:
            function(0)
        finally:
            begun = others
            while begun:
                try:
                    task = self._tasks.get_nowait()
                except Empty:
                    break
                if isinstance(task, int):
                    loops()["withdraw"](self._board, task)
                else:
                    begun -= 1
                    if stay:
                        loops()["withdraw"](self._board, 1)
            if stay:
                loops()["keep"](self._board)
            for _ in range(begun):
                if (error := self._outcomes.get()) is not None:
                    failed.append(error)
        if failed:
            raise failed[0]

    def share(self, entry: int, block: int) -> None:
        """Run the compiled entry at address ``entry`` with the block at address ``block``, here as thread
        0, and in the helpers, as they come.
        """
        if not (loops()["alone"](entry, block) if self.size == 1 else
                loops()["share"](self.summon(), entry, block, self.size)):
            raise RuntimeError("a compiled loop failed; please report it")

    def summon(self) -> Any:
        """The board, to which the helpers have been called."""
        board, helpers = self._made_board(), min(self.size, self.awake) - 1
        if helpers:
            self._start(helpers)
            if missing := loops()["summon"](board, helpers):
                self._tasks.put(missing)
        return board

    def _made_board(self) -> Any:
        if self._board is None:
            self._board = self._boards[0] = make_board()
        return self._board

    def _start(self, others: int) -> None:
        while len(self._helpers) < others:
            what = self._tasks, self._outcomes, self._boards, _LONG if self.is_patient else _SHORT
            thread = new_thread(_serve, what, name="splitjoin helper")
            thread.start()
            self._helpers.append(thread)

    def map(self, function: Callable[[A], B], items: Iterable[A], most: int | None = None, *,
            stay: bool = False) -> list[B]:
        """``function`` of all ``items``, in their order; each thread that is awake takes one after the other.
        ``most``: threads for which this is work enough. ``stay`` as of `run`.
        """
        todo = list(items)
        threads = min(len(todo), self.awake if most is None else min(self.awake, most))
        if threads <= 1 or self.size == 1:
            return [function(item) for item in todo]
        found: list[Any] = [None] * len(todo)
        numbers = count()

        def work(_: int) -> None:
            while (n := next(numbers)) < len(todo):
                try:
                    found[n] = function(todo[n])
                except BaseException:
                    while next(numbers) < len(todo):  # the others begin no more
                        pass
                    raise

        self.run(work, threads, stay=stay)
        return found

    def close(self) -> None:
        """End the helpers, after they have finished."""
        _end(self._tasks, self._helpers)
        for thread in self._helpers:
            thread.join()
        self._helpers.clear()


def _end(tasks: SimpleQueue[Any], helpers: list[Thread]) -> None:
    for _ in helpers:
        tasks.put(None)


def _serve(tasks: SimpleQueue[Any], outcomes: SimpleQueue[BaseException | None], boards: dict[int, Any],
           patience: int) -> None:
    while (task := tasks.get()) is not None:
        if isinstance(task, int):  # so many helpers shall look: this one, and others, which it wakes
            for others in ((task - 1) // 2, task // 2):
                if others:
                    tasks.put(others)
            loops()["attend"](boards[0], patience)
            continue
        function, number, stay = task
        error: BaseException | None = None
        try:
            function(number)
        except BaseException as e:  # raised again where it is waited for
            error = e
        del task, function  # what they hold is not kept until the next task
        outcomes.put(error)
        del error
        if stay:  # it is counted as called
            loops()["attend"](boards[0], patience)

