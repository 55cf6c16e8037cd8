"""`UserState`: what one worker has folded of a user-defined aggregate for each key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .form import IntervalForm, UserPrimitive
from .rows import StoredRows, moved_ring
from .user_source import user_kernel

if TYPE_CHECKING:
    from types import ModuleType

Ints = npt.NDArray[np.int64]


def user_outputs(form: IntervalForm, n: int) -> tuple[Ints, ...]:
    """Room for what the user-defined aggregates of ``form`` give for ``n`` base tuples (`FoldedBases.users`)."""
    made = []
    for user in form.users:
        slots = user.term.fold.slots
        out = np.zeros((2 + len(slots), n), np.int64)
        for number, slot in enumerate(slots):
            out[2 + number] = slot.init
        made.append(out)
    return tuple(made)


class UserState:
    """The states of each slot, which is a key's code. ``removes``: False if the engine empties slots alone."""

    def __init__(self, user: UserPrimitive, *, removes: bool):
        self._user, self._fold = user, user.term.fold
        self._kind = user.way.kind if removes else "add"
        self._module: ModuleType | None = None
        self._each = np.zeros((7, 0), np.int64)  # of each slot: head, count, front, behind, adds, bad, dirty
        self._states = np.empty((len(self._fold.slots), 0), np.int64)
        self._suffix = np.empty((len(self._fold.slots) + 2, 1), np.int64)

    @property
    def linked(self) -> bool:
        """True if the rows of a slot must be linked."""
        return self._kind in ("merge", "recompute")

    def prepare(self, first: int, end: int, capacity: int, slots: int) -> None:
        """Make room for ``slots`` keys and a ring of ``capacity`` rows, which has those from ``first`` to ``end``."""
        more = slots - self._each.shape[1]
        if more > 0:
            self._each = np.concatenate([self._each, np.zeros((7, more), np.int64)], axis=1)
            init = np.array([slot.init for slot in self._fold.slots], np.int64)
            self._states = np.concatenate([self._states, np.repeat(init[:, None], more, axis=1)], axis=1)
        if self._kind == "merge" and self._suffix.shape[1] < capacity:
            self._suffix = moved_ring(self._suffix, first, end, capacity)

    def run(self, ops: Ints, slots: Ints, n: int, rows: StoredRows, link: Ints, out: Ints) -> None:
        """Carry out ``n`` operations, whose rows ``link`` links, without the interpreter's lock."""
        if self._module is None:
            self._module = user_kernel(self._fold, self._kind)
        feeds = self._user.feeds
        valid = rows.valid[feeds[0]] if feeds else np.ones(rows.mask + 1, np.uint8)
        self._module.run(ops, slots, n, valid, rows.mask, *(rows.values[feed] for feed in feeds), link, *self._each,
                         self._states, self._suffix[:-2], self._suffix[-2], self._suffix[-1], self._user.way.limit, out)


def partners_of(rows: StoredRows, key: int, low: int, high: int) -> Ints:
    """The row ids from ``low`` to before ``high`` of the stored tuples with this ``key``."""
    ids = np.arange(max(low, rows.first), high)
    found: Ints = ids[rows.keys[ids & rows.mask] == key]
    return found


def partners_between(rows: StoredRows, key: int, first: int, last: int) -> Ints:
    """The row ids of the stored tuples with this ``key`` and a time from ``first`` to ``last``, by time."""
    ids = partners_of(rows, key, rows.first, rows.end)
    times = rows.times[ids & rows.mask]
    inside = (times >= first) & (times <= last)
    found: Ints = ids[inside][np.argsort(times[inside], kind="stable")]
    return found
