"""Tickets: the threads of a session claim the tasks of a batch in compiled code (``threads.hpp``), without the
interpreter's lock.

Tasks are numbered, and form phases of consecutive numbers. A task may begin when all tasks of the phases before have
ended, so a phase may read what the phases before have written. A thread claims one task after the other; none waits for
a thread that has claimed nothing, so a helper that comes late, or not at all, delays nobody.

Threads with even numbers claim a phase's first tasks first, and others its last ones. So where each phase has R's
tasks before S's, two threads each keep to one stream as long as both are busy, and find in their caches what they have
written themselves: memory that another processor has written may be ten times as far.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..compiled.intrinsics import atomic_add, atomic_exchange, atomic_load, atomic_store, relax, yield_processor
from ..compiled.jit import compiled
from ..compiled.store import ReusedArrays, aligned

__all__ = ["CONTROL", "PHASE", "STOP", "claim", "complete", "make_control", "resume", "stop"]

#: Entries of a control, each on a cache line of its own: the tasks that are left of the phase that may run, the
#: end of that phase, the tasks that have ended, the number of that phase, whether threads shall claim no more, and
#: how often a waiting helper gives its processor to others before it leaves.
_NEXT, _LIMIT, _DONE, PHASE, STOP, _PATIENCE = 0, 8, 16, 24, 32, 40
#: The entries of a control.
CONTROL = 48
#: What is left of a phase is one number, to be exchanged at once: the first task above these bits, and in them the one
#: behind the last; both are the end of the phase if none is left. No two phases have a number in common.
_BITS, _LAST, _ONE = 31, (1 << 31) - 1, 1 << 31
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
    control[_NEXT], control[_LIMIT] = limits[0], limits[0]
    control[_PATIENCE] = _LONG if patient else _SHORT
    return control


def resume(control: npt.NDArray[np.int64], limits: npt.NDArray[np.int64]) -> None:
    """Have the phase that was stopped begin again, when no thread runs. Its tasks know what they have done."""
    phase = control[PHASE]
    control[_DONE] = begin = int(limits[phase - 1]) if phase else 0
    control[_NEXT] = begin << _BITS | int(limits[phase])
    control[STOP] = 0


# The loops of ``threads.hpp`` as numba's code of nested loops calls them.


@compiled
def claim(control: Any, limits: Any, thread: Any) -> Any:
    """The number of a task to do, or −1 if there are no more. Thread 0 does not leave before that."""
    looks = turns = 0
    while True:
        left = atomic_load(control, _NEXT)
        first, last = left >> _BITS, left & _LAST
        if first >= limits[-1] or atomic_load(control, STOP):
            return np.int64(-1)
        if first < last:
            # That of the phase of `left`, if `left` is still there when it is exchanged.
            limit = atomic_load(control, _LIMIT)
            task, then = (last - 1, left - 1) if thread & 1 else (first, left + _ONE)
            if last - first == 1:
                then = limit << _BITS | limit
            if atomic_exchange(control, _NEXT, left, then):
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
            atomic_store(control, _NEXT, limits[phase - 1] << _BITS | limits[phase])


@compiled
def stop(control: Any) -> None:
    """Have all threads claim no more, as this one's task has not ended: its phase does not end either."""
    atomic_store(control, STOP, 1)
