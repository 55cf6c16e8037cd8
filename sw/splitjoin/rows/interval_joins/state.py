"""`FoldState` and `UserState`: what one worker has folded for each key, and `FoldedBases`: what it gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import ModuleType

import numpy as np

from splitjoin.base.arrays import Ints, Mask

from .accumulate import (
    COUNT,
    DISTINCT,
    FLOAT_SUM,
    GREATEST,
    INT_SUM,
    LEAST,
    OUTPUTS,
    Different,
    Primitives,
    SlotStates,
    fold,
)
from .form import IntervalForm, UserPrimitive
from .rows import StoredRows, moved_ring
from .user_source import user_kernel

_KINDS = {"count": COUNT, "int sum": INT_SUM, "float sum": FLOAT_SUM, "least": LEAST, "greatest": GREATEST,
          "distinct": DISTINCT}
_MIN_SLOTS = 64


@dataclass(frozen=True)
class FoldedBases:
    """Folded values of n base tuples.

    ``counts`` (n,): the numbers of partners. ``ends`` (2, n): the first and the last partner's row id, where there are
    any and the form asks for them. ``values`` (primitives, 3, n): the number of valid values; and low and high part of
    a sum (low + high · 2^32), the bits of a float sum, the row id of the least or greatest (−1: none), or the number of
    different values. ``users``: for each user-defined aggregate (2 + slots, n): the number of partners that were added,
    1 where it must be folded anew, and the states. ``partners``: by base tuple where that is so, the partners' row ids,
    by arrival.
    """

    counts: Ints
    ends: Ints
    values: Ints
    users: tuple[Ints, ...] = ()
    partners: dict[int, Ints] = field(default_factory=dict)

    @classmethod
    def empty(cls, n: int, form: IntervalForm) -> FoldedBases:
        """Room for ``n`` base tuples of ``form``."""
        return cls(np.zeros(n, np.int64), np.full((2, n), -1, np.int64),
                   np.zeros((len(form.primitives), OUTPUTS, n), np.int64), user_outputs(form, n))

    @property
    def uncertain(self) -> Ints:
        """The base tuples with a user-defined aggregate that must be folded anew, from `partners`."""
        flags = np.zeros(len(self.counts), np.bool_)
        for user in self.users:
            flags |= user[1] > 0
        return np.flatnonzero(flags)

    def chosen(self, kept: Mask) -> FoldedBases:
        """Those of the base tuples for which ``kept`` is true."""
        at = np.cumsum(kept) - 1
        return FoldedBases(self.counts[kept], self.ends[:, kept], self.values[:, :, kept],
                           tuple(user[:, kept] for user in self.users),
                           {int(at[n]): rows for n, rows in self.partners.items() if kept[n]})


class FoldState:
    """The state of one worker: for each slot, which is a key's code, what its rows add up to.

    ``empties``: True if the engine also empties slots. ``removes``: False if it removes rows by emptying slots alone.
    The rows of a slot are linked, in an array as long as all rows, only where an operation goes through them.
    """

    def __init__(self, form: IntervalForm, *, empties: bool, removes: bool = True):
        kinds = [_KINDS[p.kind] for p in form.primitives]
        groups = [{INT_SUM: "int", FLOAT_SUM: "float", LEAST: "pick", GREATEST: "pick", DISTINCT: "int"}.get(kind, "")
                  for kind in kinds]
        ints, floats, picks = (groups.count(group) for group in ("int", "float", "pick"))
        self._float_feeds = sorted({p.feed for p in form.primitives if p.kind == "float sum"})
        self._users = [UserState(user, removes=removes) for user in form.users]
        stacked = picks > 0 and removes
        self._primitives = Primitives(
            np.array(kinds, np.int64), np.array([p.feed for p in form.primitives], np.int64),
            np.array([groups[:n].count(group) for n, group in enumerate(groups)], np.int64), stacked,
            stacked or form.needs_ends or (empties and DISTINCT in kinds) or any(user.linked for user in self._users))
        shapes: dict[str, tuple[int, ...]] = {
            **dict.fromkeys(("count", "head", "tail", "front"), ()), "counts": (len(kinds),), "low": (ints,),
            "high": (ints,), "back": (picks,)}
        self._states = SlotStates(
            **{name: np.zeros((*shape, _MIN_SLOTS), np.int64) for name, shape in shapes.items()}, base=0,
            digits=np.zeros((floats, _MIN_SLOTS, 4), np.int64), special=np.zeros((floats, _MIN_SLOTS, 3), np.int64),
            link=np.empty(1, np.int64), suffix=np.empty((picks, 1), np.int64))
        self._states.back[:] = -1
        self._exponents: tuple[int, int] | None = None
        # A distinct count shares the numbering of whole sums, whose `low` it keeps.
        self._different = Different(*(np.zeros((ints if DISTINCT in kinds else 0, 1 << 10), np.int64)
                                      for _ in range(3)))
        self._first = self._end = 0

    def prepare(self, rows: StoredRows, slots: int) -> None:
        """Make room for all ``rows``, whose first ones may be new, and for ``slots`` keys."""
        while slots > len(self._states.count):
            self._grow()
        capacity = rows.mask + 1
        if self._primitives.linked and len(self._states.link) < capacity:
            self._states = self._states._replace(**{
                name: moved_ring(getattr(self._states, name), self._first, self._end, capacity)
                for name in ("link", "suffix")})
        for feed in self._float_feeds:
            self._widen(rows, feed, max(self._end, rows.first))
        if len(self._different.slots):
            self._reserve_seen(rows.end - rows.first)
        for user in self._users:
            user.prepare(self._first, self._end, capacity, len(self._states.count))
        self._first, self._end = rows.first, rows.end

    def run(self, ops: Ints, slots: Ints, n: int, rows: StoredRows, out: FoldedBases) -> None:
        """Carry out ``n`` operations (`fold`), without the interpreter's lock."""
        fold(ops, slots, n, self._primitives, rows.values, rows.valid, rows.mask, self._states, self._different,
             (out.values, out.counts, out.ends))
        for user, made in zip(self._users, out.users, strict=True):
            user.run(ops, slots, n, rows, self._states.link, made)

    def _grow(self) -> None:
        """Twice as many slots."""
        axes = dict.fromkeys(("count", "head", "tail", "front", "counts", "low", "high", "back"), -1) | {
            "digits": 1, "special": 1}
        self._states = self._states._replace(**{
            name: np.concatenate([a, np.full_like(a, -1 if name == "back" else 0)], axis=axis)
            for name, axis in axes.items() for a in (getattr(self._states, name),)})

    def _widen(self, rows: StoredRows, feed: int, first: int) -> None:
        """Make room in ``digits`` for the exponents of the rows from ``first`` on."""
        at, end = first & rows.mask, rows.end & rows.mask
        parts = [rows.values[feed, at:end]] if at < end or first == rows.end else [
            rows.values[feed, at:], rows.values[feed, :end]]
        for part in parts:
            if not len(part):
                continue
            places = (part.view(np.uint64) >> np.uint64(52)) & np.uint64(0x7FF)
            finite = np.where(places == 0x7FF, 1023, np.maximum(places, 1)) - 1
            low, high = int(finite.min()) >> 5, int(finite.max()) >> 5
            if self._exponents is not None:
                if self._exponents[0] <= low and high <= self._exponents[1]:
                    continue
                low, high = min(low, self._exponents[0]), max(high, self._exponents[1])
            # A number has three digits.
            old = self._states.digits
            digits = np.zeros((*old.shape[:2], high - low + 3), np.int64)
            if self._exponents is not None:
                before = self._exponents[0] - low
                digits[:, :, before:before + old.shape[2]] = old
            self._states, self._exponents = self._states._replace(digits=digits, base=low), (low, high)

    def _reserve_seen(self, rows: int) -> None:
        """Make the table of different values at least twice as large as the number of rows."""
        size = self._different.slots.shape[1]
        while size < 2 * rows:
            size *= 2
        slots, values, counts = self._different
        if size == slots.shape[1]:
            return
        self._different = larger = Different(*(np.zeros((len(slots), size), np.int64) for _ in range(3)))
        for p in range(len(slots)):
            used = np.flatnonzero(counts[p])
            with np.errstate(over="ignore"):
                mixed = values[p, used] ^ (slots[p, used] * np.int64(-3750763034362895579))
                home = (mixed * np.int64(-7046029254386353131) >> np.int64(20)) & (size - 1)
            taken = larger.counts[p]
            for row, at in zip(used.tolist(), home.tolist(), strict=True):
                place = at
                while taken[place]:
                    place = (place + 1) & (size - 1)
                larger.slots[p, place], larger.values[p, place] = slots[p, row], values[p, row]
                taken[place] = counts[p, row]


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
