"""The nearest partners of as-of joins where nothing but equal keys is asked: both streams are passed once, in the order
of time, and for each key its last row is kept (a merge join; Graefe, Query evaluation techniques for large databases,
1993, section 4.2). Threads have a part of the time each, and begin with the last rows of the parts before.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from .runs_of_keys import Groups
from .table_work import Work

__all__ = ["first_partners", "last_partners"]

Rows = npt.NDArray[np.int64]
_EVERY = np.empty(0, np.int64)


def last_partners(upto: Rows, floor: Rows | None, groups: Groups, work: Work) -> Rows:
    """For each tuple of R the last row of S of its group before row ``upto``, which does not fall, and from ``floor``
    on: int64 (r,), −1 for none. ``floor``: None for 0.
    """
    if groups.is_one:
        return upto - 1 if floor is None else np.where(upto > floor, upto - 1, -1)
    parts = _parts(len(upto), groups.count, work)
    seen = [0, *(int(upto[part.start]) for part in parts[1:])]
    noted = _noted(list(pairwise(seen)), 1, groups, work)
    return _found("last_of_group", upto, _EVERY if floor is None else floor, parts, seen, noted, groups, work)


def first_partners(start: Rows, ceiling: Rows | None, groups: Groups, work: Work) -> Rows:
    """For each tuple of R the first row of S of its group from row ``start`` on, which does not fall, and before
    ``ceiling``: int64 (r,), −1 for none. ``ceiling``: None for all rows.
    """
    rows = groups.sizes[1]
    if groups.is_one:
        return np.where(start < (rows if ceiling is None else ceiling), start, -1)
    parts = _parts(len(start), groups.count, work)
    seen = [*(int(start[part.start]) for part in parts[1:]), rows]
    noted = _noted(list(pairwise(seen))[::-1], -1, groups, work)[::-1]
    return _found("first_of_group", start, _EVERY if ceiling is None else ceiling, parts, seen, noted, groups, work)


def _parts(rows: int, groups: int, work: Work) -> list[slice]:
    """Parts of so many rows of R, no more than that noting a row for each of ``groups`` in each costs little."""
    n = max(1, min(work.team.size, rows // max(work.tuning.table_part, 4 * groups)))
    return [slice(*of) for of in pairwise([rows * i // n for i in range(n + 1)])]


def _noted(spans: list[tuple[int, int]], step: int, groups: Groups, work: Work) -> list[Rows]:
    """For each group the row that is nearest behind none, one, two, … of the ``spans`` of S's rows; −1 for none.

    ``step``: 1 for the last row of each, −1 for the first.
    """
    loops, of_s, found = work.loops, groups.of("s"), [np.full(groups.count, -1) for _ in range(len(spans) + 1)]
    work.map(lambda n: loops["note_rows"](of_s[slice(*spans[n])], spans[n][0], step, found[n + 1]), range(len(spans)))
    for before, after in pairwise(found):
        np.copyto(after, before, where=after < 0)
    return found


def _found(name: str, ends: Rows, limits: Rows, parts: list[slice], seen: list[int], noted: list[Rows],
           groups: Groups, work: Work) -> Rows:
    """The partners by the loop ``name``, for each part from row ``seen`` of S on, with what is ``noted`` before."""
    loop, partner = work.loops[name], np.empty(len(ends), np.int64)
    groups_r, groups_s = groups.of("r"), groups.of("s")
    work.map(lambda n: loop(ends[parts[n]], limits[parts[n]], groups_r[parts[n]], groups_s, seen[n], noted[n],
                            partner[parts[n]]), range(len(parts)))
    return partner
