"""Tickets: the threads of a session claim the tasks of a batch in compiled code, without the interpreter's lock.

Tasks are numbered, and form phases of consecutive numbers. A task may begin when all tasks of the phases before have
ended, so a phase may read what the phases before have written. A thread claims one task after the other; none waits for
a thread that has claimed nothing, so a helper that comes late, or not at all, delays nobody.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .intrinsics import atomic_add, atomic_exchange, atomic_load, atomic_store, relax, yield_processor
from .jit import compiled
from .store import ReusedArrays, aligned

__all__ = ["CONTROL", "PHASE", "STOP", "claim", "complete", "make_control", "reset", "resume", "stop"]

#: Entries of a control, each on a cache line of its own: the next task, the end of the phase that may run, the tasks
#: that have ended, the number of that phase, whether threads shall claim no more, and how often a waiting helper gives
#: its processor to others before it leaves.
_NEXT, _LIMIT, _DONE, PHASE, STOP, _PATIENCE = 0, 8, 16, 24, 32, 40
#: The entries of a control.
CONTROL = 48
#: Looks at the control before a waiting thread gives its processor to others.
_LOOKS = 64
#: The patience of helpers that may share a processor with a thread that works, and of those that do not.
_SHORT, _LONG = 100, 1 << 40


def make_control(limits: npt.NDArray[np.int64], *, patient: bool = False,
                 reused: ReusedArrays | None = None) -> npt.NDArray[np.int64]:
    """The control of tasks in phases that end before the tasks ``limits`` (phases,), which rise. ``patient``: True if
    helpers stay however long they wait, as each has a processor. ``reused`` has the last one, whose tasks have ended.
    """
    control = aligned(CONTROL, np.int64) if reused is None else reused.array("control", CONTROL, np.int64)
    control[:] = 0
    control[_LIMIT], control[_PATIENCE] = limits[0], _LONG if patient else _SHORT
    return control


def resume(control: npt.NDArray[np.int64], limits: npt.NDArray[np.int64]) -> None:
    """Have the phase that was stopped begin again, when no thread runs. Its tasks know what they have done."""
    phase = control[PHASE]
    control[_NEXT] = control[_DONE] = limits[phase - 1] if phase else 0
    control[STOP] = 0


@compiled
def reset(control: Any, limits: Any, patient: Any) -> None:
    """Make ``control`` that of tasks in phases that end before ``limits``, as `make_control` does."""
    control[:] = 0
    control[_LIMIT], control[_PATIENCE] = limits[0], _LONG if patient else _SHORT


@compiled
def claim(control: Any, limits: Any, thread: Any) -> Any:
    """The number of a task to do, or −1 if there are no more. Thread 0 does not leave before that."""
    looks = turns = 0
    while True:
        task = atomic_load(control, _NEXT)
        if task >= limits[-1] or atomic_load(control, STOP):
            return np.int64(-1)
        if task < atomic_load(control, _LIMIT):
            if atomic_exchange(control, _NEXT, task, task + 1):
                return task
            continue
        looks += 1
        if looks < _LOOKS:
            relax()
            continue
        turns += 1
        if thread and turns > control[_PATIENCE]:
            return np.int64(-1)
        yield_processor()


@compiled
def complete(control: Any, limits: Any) -> None:
    """Say that a claimed task has ended; the last one of a phase opens the next."""
    if atomic_add(control, _DONE, 1) + 1 == atomic_load(control, _LIMIT):
        phase = atomic_add(control, PHASE, 1) + 1
        if phase < len(limits):
            atomic_store(control, _LIMIT, limits[phase])


@compiled
def stop(control: Any) -> None:
    """Have all threads claim no more, as this one's task has not ended: its phase does not end either."""
    atomic_store(control, STOP, 1)
