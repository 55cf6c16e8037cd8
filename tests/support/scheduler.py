"""A scheduler of threads beneath `splitjoin.base.threads`: a seed says which one runs; time passes when none can."""

from __future__ import annotations

import inspect
import queue
import random
import sys
import threading
import time
import traceback
import types
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from splitjoin.base.threads import System, using

ROOT = Path(__file__).parents[2]
#: Yield points after which threads count as going round in circles.
_MOST = 100_000


class Failed(AssertionError):
    """The threads of a schedule wait for each other, or one of them ended by an exception."""


class Abandoned(BaseException):
    """Ends the threads that are left when a schedule is over."""


class _Task:
    """A thread of a schedule. It runs while it has the ``baton``.

    Attributes:
        until: The condition for which it waits; None if it can run.
        deadline: The time at which it waits no longer.
    """

    def __init__(self, name: str):
        self.name = name
        self.baton = threading.Lock()
        self.baton.acquire()
        self.until: Callable[[], bool] | None = None
        self.deadline = float("inf")
        self.priority = 0.0
        self.ended = False
        self.thread: threading.Thread | None = None

    def can_run(self, now: float) -> bool:
        return self.until is None or self.deadline <= now or self.until()


class Scheduler(System):
    """Runs functions in threads of which one runs at a time; `chance` chooses it at each use of a lock, and, in most
    schedules, between any two lines of one of the ``traced`` files.

    Args:
        seed: Of all choices.
        traced: Files, relative to the repository.
        jumps: True if the clock may jump, so that waits time out though threads can run.

    Attributes:
        now: The time in seconds.
        chance: For further choices of the schedule, by the threads that run.
    """

    def __init__(self, seed: int, *, traced: Sequence[str] = (), jumps: bool = True):
        self.chance = random.Random(seed)
        self.now = 1000.0
        self._tick = self.chance.choice([1e-5, 1e-4, 1e-3])  # by which the clock advances at each yield point
        self._rate = self.chance.choice([0.05, 0.2, 0.5, 1.0])
        self._traced = str(ROOT / self.chance.choice([*traced])) if traced and self.chance.random() < 0.75 else ""
        self._jump_rate = self.chance.choice([0.0, 0.02, 0.1]) if jumps else 0.0
        self._by_priority, self._fall_rate = self.chance.random() < 0.5, self.chance.choice([0.003, 0.01, 0.05])
        self._tasks: list[_Task] = []
        self._current: _Task | None = None
        self._steps = 0
        self._switches: deque[str] = deque(maxlen=80)
        self._active: dict[str, bool] = {}
        self._done = threading.Event()
        self._failure: BaseException | None = None
        self.over = False

    # --- What product code gets of `splitjoin.base.threads`.

    def monotonic(self) -> float:
        """The time of the schedule; for threads that an earlier test has left, that of the system."""
        if self._is_foreign():
            return time.monotonic()
        self.now += self._tick
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let the others run, and time pass."""
        if self._is_foreign():
            time.sleep(seconds)
        else:
            self.wait(lambda: False, seconds)

    def _is_foreign(self) -> bool:
        """True if the thread that calls is none of the schedule, so that it must not move the schedule's clock."""
        return self._current is None or self._current.thread is not threading.current_thread()

    # --- The schedule.

    def run(self, main: Callable[[], object]) -> None:
        """Call ``main`` in the first thread. Raises what it raises, what a thread raised that it had started, and
        `Failed`. Threads that are left when it returns are ended.
        """
        assert _Running.scheduler is None
        _Running.scheduler = self
        try:
            with using(self):
                first = self.spawn("main", main)
                self._current = first
                first.baton.release()
                self._done.wait()
                self.over = True
                for task in self._tasks:
                    if not task.ended:
                        task.baton.release()
                        assert task.thread is not None
                        task.thread.join(30)
                        assert not task.thread.is_alive(), f"{task.name} does not end"
        finally:
            _Running.scheduler = None
        if self._failure is not None:
            raise self._failure

    def spawn(self, name: str, function: Callable[[], object]) -> _Task:
        """A thread that calls ``function`` when it is chosen; the first one ends the schedule."""
        task = _Task(f"{name} {len(self._tasks)}")
        task.priority = self.chance.random()
        is_main = not self._tasks

        def body() -> None:
            task.baton.acquire()
            try:
                if not self.over:
                    if self._traced:
                        sys.settrace(self._trace)
                    function()
            except Abandoned:
                pass
            except BaseException as error:
                if not self.over:
                    self._fail(error)
            finally:
                sys.settrace(None)
                task.ended = True
                if is_main:
                    self._done.set()
                elif not self.over:
                    self._pass_on()

        task.thread = threading.Thread(target=body, name=task.name, daemon=True)
        self._tasks.append(task)
        task.thread.start()
        return task

    def step(self, rate: float = 0.0) -> None:
        """A yield point: another thread may run, with a chance of ``rate`` or that of the schedule."""
        self._check()
        self._steps += 1
        self.now += self._tick
        if self._steps > _MOST:
            self._fail(Failed(f"the threads do not end within {_MOST} steps{self._stacks()}"))
            raise Abandoned
        falls = self._by_priority and self.chance.random() < self._fall_rate
        if falls:  # the thread sleeps from now on while others can run
            assert self._current is not None
            self._current.priority = self.chance.random() - 1 - self._steps
        if falls or self.chance.random() < max(rate, self._rate):
            self._switch()

    def wait(self, until: Callable[[], bool], seconds: float | None = None) -> bool:
        """Let others run until ``until``, or ``seconds`` have passed. Returns whether it holds."""
        self.step()
        me = self._current
        assert me is not None
        if not until() and (seconds is None or seconds > 0):
            me.until, me.deadline = until, float("inf") if seconds is None else self.now + seconds
            try:
                self._switch()
            finally:
                me.until, me.deadline = None, float("inf")
        return until()

    def buggify(self, name: str, share: float = 0.25) -> bool:
        """Whether the rare event ``name`` happens now: half of all names are active in a schedule, and happen one time
        in four.
        """
        if name not in self._active:
            self._active[name] = self.chance.random() < 0.5
        return self._active[name] and self.chance.random() < share

    @property
    def current(self) -> str:
        """The name of the thread that runs."""
        return "" if self._current is None else self._current.name

    @property
    def history(self) -> list[str]:
        """The last switches between threads, with the lines at which they were."""
        return list(self._switches)

    def _check(self) -> None:
        if self.over:
            raise Abandoned

    def _switch(self) -> None:
        me, chosen = self._current, self._choose()
        assert me is not None
        if chosen is me:
            return
        self._switches.append(f"{me.name} at {_place(sys._getframe())}: {chosen.name} runs")
        self._current = chosen
        chosen.baton.release()
        me.baton.acquire()
        self._check()

    def _pass_on(self) -> None:
        """The thread that runs has ended."""
        try:
            self._current = self._choose()
            self._current.baton.release()
        except Abandoned:
            pass

    def _choose(self) -> _Task:
        tasks = [task for task in self._tasks if not task.ended]
        ready = [task for task in tasks if task.can_run(self.now)]
        waiting = [task for task in tasks if task.deadline < float("inf") and task not in ready]
        if waiting and (not ready or self.chance.random() < self._jump_rate):
            chosen = self.chance.choice(waiting) if ready else min(waiting, key=lambda task: task.deadline)
            self.now = max(self.now, chosen.deadline)
            return chosen
        if not ready:
            self._fail(Failed(f"all threads wait for each other{self._stacks()}"))
            raise Abandoned
        if self._by_priority and self.chance.random() > 0.01:
            return max(ready, key=lambda task: task.priority)
        return self.chance.choice(ready)

    def _fail(self, error: BaseException) -> None:
        self._failure = self._failure or error
        self.over = True
        self._done.set()

    def _stacks(self) -> str:
        frames, lines = sys._current_frames(), [""]
        for task in self._tasks:
            if not task.ended and task.thread is not None:
                stack = traceback.extract_stack(frames[task.thread.ident or 0])
                lines.append(f"{task.name}:")
                lines += [f"  {Path(one.filename).name}:{one.lineno} {one.name}: {one.line}" for one in stack
                          if one.filename.startswith(str(ROOT)) and ".venv" not in one.filename
                          and one.filename != __file__]
        return "\n".join(lines)

    def _trace(self, frame: types.FrameType, event: str, argument: object) -> Any:
        return self._line if frame.f_code.co_filename == self._traced else None

    def _line(self, frame: types.FrameType, event: str, argument: object) -> Any:
        if event == "line" and not self.over and self.chance.random() < 0.5:
            self.step(0.5)
        return self._line


def _place(frame: types.FrameType | None) -> str:
    """The innermost line outside this file."""
    while frame is not None and (frame.f_code.co_filename == __file__ or frame.f_code.co_filename.startswith("<")):
        frame = frame.f_back
    return "" if frame is None else f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


class _Running:
    """The scheduler that runs; the locks of an earlier one are dead."""

    scheduler: Scheduler | None = None


class _Lock:
    """A lock whose holder is known; a thread that waits for it does not run."""

    def __init__(self) -> None:
        assert _Running.scheduler is not None
        self._scheduler = _Running.scheduler
        self._held = False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if _Running.scheduler is not self._scheduler:  # garbage is finalized when the schedule is over
            is_free, self._held = blocking or not self._held, True
            return is_free
        seconds = 0.0 if not blocking else None if timeout < 0 else timeout
        if not self._scheduler.wait(lambda: not self._held, seconds):
            return False
        self._held = True
        return True

    def release(self) -> None:
        if self._scheduler.over:
            self._held = False
            return
        if not self._held:
            raise RuntimeError("release unlocked lock")
        self._held = False
        self._scheduler.step()

    def locked(self) -> bool:
        return self._held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class _Thread:
    """A thread of the schedule, with what product code uses of `threading.Thread`."""

    def __init__(self, target: Callable[..., object] | None = None, args: Iterable[Any] = (), *, name: str = "thread",
                 daemon: bool = True):
        assert _Running.scheduler is not None
        self._scheduler, self._target, self._args, self.name = _Running.scheduler, target, tuple(args), name
        self._task: _Task | None = None

    @property
    def ident(self) -> int | None:
        return None if self._task is None else id(self._task)

    def start(self) -> None:
        self._task = self._scheduler.spawn(self.name, self.run)
        self._scheduler.step()

    def run(self) -> None:
        assert self._target is not None
        self._target(*self._args)

    def is_alive(self) -> bool:
        return self._task is not None and not self._task.ended

    def join(self, timeout: float | None = None) -> None:
        assert self._task is not None
        task = self._task
        self._scheduler.wait(lambda: task.ended, timeout)


def _clock() -> float:
    assert _Running.scheduler is not None
    return _Running.scheduler.monotonic()


def _python(*sources: type, **names: Any) -> dict[str, Any]:
    """Classes of Python's own `threading` and `queue`, over our locks and clock."""
    space = {"__name__": __name__, **names}
    for one in sources:
        exec(compile(inspect.getsource(one), f"<{one.__name__}>", "exec"), space)
    return space


_threading = _python(threading._RLock, threading.Condition, threading.Semaphore, threading.Event,
                     threading.Timer, _allocate_lock=_Lock, Lock=_Lock, get_ident=threading.get_ident, _deque=deque,
                     _islice=islice, _time=_clock, Thread=_Thread, _active={}, _sys=sys)
_threading["RLock"] = _threading["_RLock"]
_queue = _python(queue._PySimpleQueue, queue.Queue, threading=types.SimpleNamespace(**_threading),  # type: ignore[attr-defined]
                 time=_clock, deque=deque, types=types, Empty=queue.Empty, Full=queue.Full)
for _name, _made in (("lock", _Lock), ("rlock", _threading["_RLock"]), ("condition", _threading["Condition"]),
                     ("event", _threading["Event"]), ("semaphore", _threading["Semaphore"]),
                     ("simple_queue", _queue["_PySimpleQueue"]), ("bounded_queue", _queue["Queue"]),
                     ("thread", _Thread), ("timer", _threading["Timer"])):
    setattr(Scheduler, _name, staticmethod(_made))
