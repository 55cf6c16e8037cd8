"""Tasks that the threads of a session share: compiled entries, with blocks of arguments, and who claims which.

A *block* is int64 numbers in memory that tell an entry its arguments, such as where arrays lie (`Team`).

The interpreter fills a block once for all threads, and writes again only what differs from batch to batch. A *job* is
an entry with a block that is divided into parts: it takes the number of a part in place of a thread's.

The tasks of a batch are claimed in compiled code (``threads.hpp``), without the interpreter's lock.

Tasks are numbered, and form phases of consecutive numbers. A task may begin when all tasks of the phases before have
ended, so a phase may read what the phases before have written. A thread claims one task after the other; none waits for
a thread that has claimed nothing, so a helper that comes late, or not at all, delays nobody.

Threads with even numbers claim a phase's first tasks first, and others its last ones. So where each phase has R's
tasks before S's, two threads each keep to one stream as long as both are busy, and find in their caches what they have
written themselves: memory that another processor has written may be ten times as far.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from splitjoin.base.arrays import Array, Ints

from ..compiled.helpers import Team
from ..compiled.store import ReusedArrays, aligned
from ..device import ITEM
from ..loops import address_of, entries

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
#: The letters of types of elements in the library (`splitjoin.engines.loops.Loop`).
_LETTERS = {"u1": "b", "u2": "h", "u4": "l", "u8": "u", "i1": "a", "i2": "j", "i4": "s", "i8": "i", "f4": "f",
            "f8": "d", ITEM.str[1:]: "t"}


@dataclass(frozen=True)
class Field:
    """An argument: an array of ``dimensions`` of NumPy's type ``kind``, or an integer if these are 0.

    ``kind`` is the name of a type, or "ITEM" (`splitjoin.engines.device.ITEM`).
    """

    name: str
    kind: str = "int64"
    dimensions: int = 1

    @property
    def type(self) -> np.dtype[Any]:
        """The type of the array's entries."""
        return ITEM if self.kind == "ITEM" else np.dtype(self.kind)


class Block:
    """The block of ``fields``. It keeps the arrays that it names.

    Attributes:
        address: Where the numbers begin.
    """

    def __init__(self, fields: Iterable[Field]):
        self._fields: dict[str, tuple[int, Any, int]] = {}
        at = 0
        for field in fields:
            self._fields[field.name] = at, field.type, field.dimensions
            at += field.dimensions + 1
        self._numbers = np.zeros(at, np.int64)
        self._kept: dict[str, Array | int] = {}
        self._linked: set[str] = set()
        self.address = address_of(self._numbers)

    def link(self, name: str) -> int:
        """The address of the numbers of the argument ``name``, for compiled code that writes them: from now on the
        block does not know them, and `put` always writes. An array's are its address and its dimensions.
        """
        self._linked.add(name)
        return self.address + 8 * self._fields[name][0]

    def put(self, name: str, value: Array | int) -> bool:
        """Let the argument ``name`` be ``value``: an array as its field tells, in the order of C.

        Returns False if it is already.
        """
        if self._kept.get(name) is value and name not in self._linked:
            return False
        at, kind, dimensions = self._fields[name]
        if dimensions:
            assert isinstance(value, np.ndarray)
            assert value.dtype == kind and value.ndim == dimensions and value.flags.c_contiguous, name
            self._numbers[at] = address_of(value)
            self._numbers[at + 1] = len(value)
            if dimensions == 2:
                self._numbers[at + 2] = value.shape[1]
        else:
            self._numbers[at] = value
        self._kept[name] = value
        return True

    def put_all(self, values: Iterable[tuple[str, Array | int]]) -> None:
        """`put` each."""
        for name, value in values:
            self.put(name, value)


@cache
def library_entry(name: str, fields: tuple[Field, ...]) -> int:
    """The address of the library's entry ``name``, which takes ``fields``."""
    address, kinds = entries()[name]
    assert kinds.lower() == "".join("n" if not field.dimensions else _LETTERS[field.type.str[1:]] for field in fields)
    return address


@dataclass(frozen=True)
class Job:
    """The ``entry`` with its ``block``, in so many ``parts``, that may run at the same time."""

    entry: int
    block: Block
    parts: int


def run_jobs(team: Team, *phases: Sequence[Job]) -> None:
    """Run all parts of the jobs of each of the ``phases``, one phase after the other."""
    tasks: list[int] = []
    limits: list[int] = []
    for jobs in phases:
        for job in jobs:
            for part in range(job.parts):
                tasks += (job.entry, job.block.address, part)
        if len(tasks) // 3 > (limits[-1] if limits else 0):
            limits.append(len(tasks) // 3)
    if limits:
        block, reused = team.kept.get("jobs") or team.kept.setdefault("jobs", (Block(TASK_FIELDS), ReusedArrays()))
        ends = np.array(limits)
        block.put("control", make_control(ends, patient=team.is_patient, reused=reused))
        block.put("limits", ends)
        block.put("tasks", np.array(tasks))
        team.share(library_entry("do_parts", TASK_FIELDS), block.address)


#: What the entry ``do_parts`` takes.
TASK_FIELDS = (Field("control"), Field("limits"), Field("tasks"))


def make_control(limits: Ints, *, patient: bool = False, reused: ReusedArrays | None = None) -> Ints:
    """The control of tasks in phases that end before the tasks ``limits`` (phases,), which rise. ``patient``: True if
    helpers stay however long they wait, as each has a processor. ``reused`` has the last one, whose tasks have ended.
    """
    control = aligned(CONTROL, np.int64) if reused is None else reused.array("control", CONTROL, np.int64)
    control[:] = 0
    control[_NEXT], control[_LIMIT] = limits[0], limits[0]
    control[_PATIENCE] = _LONG if patient else _SHORT
    return control


def resume(control: Ints, limits: Ints) -> None:
    """Have the phase that was stopped begin again, when no thread runs. Its tasks know what they have done."""
    phase = control[PHASE]
    control[_DONE] = begin = int(limits[phase - 1]) if phase else 0
    control[_NEXT] = begin << _BITS | int(limits[phase])
    control[STOP] = 0
