"""`FoldState`: what one worker has folded for each key, and `FoldedBases`: what it gives."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .accumulate import COUNT, DISTINCT, FLOAT_SUM, GREATEST, INT_SUM, LEAST, OUTPUTS, fold
from .form import IntervalForm
from .rows import StoredRows, moved_ring
from .user_state import UserState, user_outputs

__all__ = ["FoldState", "FoldedBases"]

Ints = npt.NDArray[np.int64]

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

    def chosen(self, kept: npt.NDArray[np.bool_]) -> FoldedBases:
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
        self._kinds = np.array(kinds, np.int64)
        self._feeds = np.array([p.feed for p in form.primitives], np.int64)
        groups = [{INT_SUM: "int", FLOAT_SUM: "float", LEAST: "pick", GREATEST: "pick", DISTINCT: "int"}.get(kind, "")
                  for kind in kinds]
        self._at = np.array([groups[:n].count(group) for n, group in enumerate(groups)], np.int64)
        ints, floats, picks = (groups.count(group) for group in ("int", "float", "pick"))
        self._float_feeds = sorted({p.feed for p in form.primitives if p.kind == "float sum"})
        self._stacked = picks > 0 and removes
        self._linked = self._stacked or form.needs_ends or (empties and DISTINCT in kinds)
        n = _MIN_SLOTS
        self.count, self.head, self.tail, self._front = (np.zeros(n, np.int64) for _ in range(4))
        self._back = np.full((picks, n), -1, np.int64)
        self._counts = np.zeros((len(kinds), n), np.int64)
        self._low, self._high = np.zeros((ints, n), np.int64), np.zeros((ints, n), np.int64)
        self._digits, self._base = np.zeros((floats, n, 4), np.int64), 0
        self._special = np.zeros((floats, n, 3), np.int64)
        self._exponents: tuple[int, int] | None = None
        distinct = kinds.count(DISTINCT)
        # A distinct count shares the numbering of whole sums, whose `low` it keeps.
        self._seen = [np.zeros((ints if distinct else 0, 1 << 10), np.int64) for _ in range(3)]
        self._users = [UserState(user, removes=removes) for user in form.users]
        self._linked = self._linked or any(user.linked for user in self._users)
        self.link = np.empty(1, np.int64)
        self._suffix = np.empty((picks, 1), np.int64)
        self._first = self._end = 0

    def prepare(self, rows: StoredRows, slots: int) -> None:
        """Make room for all ``rows``, whose first ones may be new, and for ``slots`` keys."""
        while slots > len(self.count):
            self._grow()
        capacity = rows.mask + 1
        if self._linked and len(self.link) < capacity:
            self.link = moved_ring(self.link, self._first, self._end, capacity)
            self._suffix = moved_ring(self._suffix, self._first, self._end, capacity)
        for feed in self._float_feeds:
            self._widen(rows, feed, max(self._end, rows.first))
        if len(self._seen[0]):
            self._reserve_seen(rows.end - rows.first)
        for user in self._users:
            user.prepare(self._first, self._end, capacity, len(self.count))
        self._first, self._end = rows.first, rows.end

    def run(self, ops: Ints, slots: Ints, n: int, rows: StoredRows, out: FoldedBases) -> None:
        """Carry out ``n`` operations (`fold`), without the interpreter's lock."""
        fold(ops, slots, n, self._kinds, self._feeds, self._at, self._stacked, self._linked, rows.values, rows.valid,
             rows.mask, self.count, self.head, self.tail, self._front, self.link, self._suffix, self._back,
             self._counts, self._low, self._high, self._digits, self._base, self._special, self._seen[0], self._seen[1],
             self._seen[2], out.values, out.counts, out.ends)
        for user, made in zip(self._users, out.users, strict=True):
            user.run(ops, slots, n, rows, self.link, made)

    def _grow(self) -> None:
        """Twice as many slots."""
        for name in ("count", "head", "tail", "_front", "_counts", "_low", "_high"):
            a = getattr(self, name)
            setattr(self, name, np.concatenate([a, np.zeros_like(a)], axis=-1))
        self._back = np.concatenate([self._back, np.full_like(self._back, -1)], axis=-1)
        self._digits = np.concatenate([self._digits, np.zeros_like(self._digits)], axis=1)
        self._special = np.concatenate([self._special, np.zeros_like(self._special)], axis=1)

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
            digits = np.zeros((*self._digits.shape[:2], high - low + 3), np.int64)
            if self._exponents is not None:
                before = self._exponents[0] - low
                digits[:, :, before:before + self._digits.shape[2]] = self._digits
            self._digits, self._base, self._exponents = digits, low, (low, high)

    def _reserve_seen(self, rows: int) -> None:
        """Make the table of different values at least twice as large as the number of rows."""
        size = self._seen[0].shape[1]
        while size < 2 * rows:
            size *= 2
        if size == self._seen[0].shape[1]:
            return
        slots, values, counts = self._seen
        self._seen = [np.zeros((len(slots), size), np.int64) for _ in range(3)]
        for p in range(len(slots)):
            used = np.flatnonzero(counts[p])
            with np.errstate(over="ignore"):
                mixed = values[p, used] ^ (slots[p, used] * np.int64(-3750763034362895579))
                home = (mixed * np.int64(-7046029254386353131) >> np.int64(20)) & (size - 1)
            taken = self._seen[2][p]
            for row, at in zip(used.tolist(), home.tolist(), strict=True):
                place = at
                while taken[place]:
                    place = (place + 1) & (size - 1)
                self._seen[0][p, place], self._seen[1][p, place] = slots[p, row], values[p, row]
                taken[place] = counts[p, row]
