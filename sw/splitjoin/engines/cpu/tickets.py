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

import numpy as np
import numpy.typing as npt

from ..compiled.store import ReusedArrays, aligned

__all__ = ["CONTROL", "PHASE", "STOP", "make_control", "resume"]

#: Entries of a control, each on a cache line of its own: the tasks that are left of the phase that may run, the
#: end of that phase, the tasks that have ended, the number of that phase, whether threads shall claim no more, and
#: how often a waiting helper gives its processor to others before it leaves.
_NEXT, _LIMIT, _DONE, PHASE, STOP, _PATIENCE = 0, 8, 16, 24, 32, 40
#: The entries of a control.
CONTROL = 48
#: What is left of a phase is one number, to be exchanged at once: the first task above these bits, and in them the one
#: behind the last; both are the end of the phase if none is left. No two phases have a number in common.
_BITS = 31
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
