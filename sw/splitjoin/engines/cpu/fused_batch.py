"""A batch in two compiled calls: one finds its matches, and one writes its items.

`CpuSession` calls the parts of a batch one after the other, which costs the interpreter 200 µs: little beside a large
batch, but four times the work of a thousand arrivals. Where nothing has to be decided anew, one compiled call does all
up to the matches here, by the same entries (`tasks`): windows, codes, which are written where the tuples are stored,
and the index. The interpreter gives it some numbers, from which it writes the blocks of the entries. It finds out what
is not as expected before anything has changed, and then the parts do the batch.

Several threads share the work of each call, in phases that follow each other in compiled code. This is for an index
over plain columns, each with one test. NULL is voided behind the loops that make codes, which take what lies there for
values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from splitjoin.base.arrays import Rows
from splitjoin.base.memory import MATCH_BYTES, MatchMemory, check_memory
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES

from ..arrival import Arrivals
from ..compiled.helpers import Team, make_board
from ..device import ITEM
from ..loops import address_of, loops
from .finder import Batch, Joined
from .fused_links import WINDOW_PARTS, Linked, Number
from .gather import gather
from .grid_index import IndexFinder
from .search import PlanSearch
from .timeline import Timeline, Windows

_TABLE = int(Number.TABLE_R)
#: What has become of a batch (``fused_batch.hpp``): nothing has changed; tasks have stopped; an entry has failed.
_REFUSED, _STOPPED, _FAILED = 0, 2, 3
#: Numbers of threads whose links are kept.
_KEPT = 4


class FusedBatch:
    """The compiled calls of the session of ``query``, with its ``search``, its ``timeline`` and its ``team``;
    ``opened`` as of `gather.gather`.
    """

    def __init__(self, query: Query, search: PlanSearch, timeline: Timeline, opened: Rows, team: Team):
        order = query.order
        self._every = {"none": 0, "outer": order.n, "total": 1}[order.kind]
        self._search, self._timeline, self._opened, self._team = search, timeline, opened, team
        self._ranged = tuple(side for side in SIDES if query.window(side).length is not None)
        self._kept: dict[int, Linked] = {}  # by the number of threads
        self._board = make_board()  # of one thread, which calls nobody

    @classmethod
    def of(cls, query: Query, search: object, timeline: Timeline, opened: Rows, team: Team) -> FusedBatch | None:
        """The compiled calls of a session, if they suit it."""
        if query.order.kind == "inner" or not isinstance(search, PlanSearch) or search.fused is None:
            return None
        return cls(query, search, timeline, opened, team)

    def join(self, part: Arrivals, before: int) -> Joined | None:
        """The results of the batch ``part``, behind so many pairs; None, with nothing changed, if its parts have to be
        called one after the other. As many threads as the team has share it.
        """
        settled, n, n_r, n_s = self._search.settled_index(), len(part.stream), part.r.num_rows, part.s.num_rows
        size = self._team.size
        if settled is None or (size > 1 and (n < (WINDOW_PARTS * size) ** 2 or not (n_r and n_s))):
            return None  # threads would have empty parts
        finder, most = settled
        stores, times = finder.stores, self._timeline.times
        r, s = stores["r"], stores["s"]
        if r.base == r.end or s.base == s.end or not finder.has_grids(n):
            return None
        r.reserve(n_r)
        s.reserve(n_s)
        for side in self._ranged:
            times[side].reserve(n_r if side == "r" else n_s)
        linked = self._linked_to(finder, part, size)
        if linked is None:
            return None
        inputs = _inputs(part, self._ranged)
        if inputs is None:
            return None
        ends, time_r, time_s = self._timeline.ends, times["r"], times["s"]
        numbers = linked.numbers
        numbers[:_TABLE] = (
            0, n, n_r, n_s, *inputs, ends["r"], ends["s"], r.end - r.base, s.end - s.base, time_r.end - time_r.base,
            time_s.end - time_s.base, time_r.base, time_s.base, most, *finder.steps(size), finder.tuning.part_arrivals)
        finder.reserve(size)
        for side in SIDES:
            finder.describe_grid(side, size)
        board = self._team.summon() if size > 1 else self._board
        linked.tell_columns(part)
        state = find_matches(linked, self._timeline, finder.addresses, self._every, self._opened, board,
                             self._team.is_patient)
        if state == _REFUSED:
            return None
        pairs, matches, room, candidates, live_r, live_s = linked.told.tolist()
        self._search.settle(n)
        row_r, row_s = ends["r"], ends["s"]
        ends["r"], ends["s"] = row_r + n_r, row_s + n_s
        r.end, s.end = r.end + n_r, s.end + n_s
        for side in self._ranged:
            times[side].end += n_r if side == "r" else n_s
        starts = {"r": live_r, "s": live_s}
        if state == _STOPPED:
            items, matches = self._resume(part, finder, linked, {"r": row_r, "s": row_s}, (n_r, n_s), starts, before)
        else:
            check_memory(before + matches, matches * MATCH_BYTES)
            items = np.empty(room, ITEM)
            write_items(linked, address_of(items) if room else 0, room)
            finder.finished(candidates)
        finder.forget(starts)
        if self._ranged:
            self._timeline.trim()
        return Joined(items, matches, pairs)

    def _resume(self, part: Arrivals, finder: IndexFinder, linked: Linked, first: dict[str, int],
                sizes: tuple[int, int], starts: dict[str, int], before: int) -> tuple[Any, int]:
        """The items of a batch whose tasks have stopped, as a grid or the room for matches is full."""
        arrays = linked.arrays
        windows: Windows = {side: (arrays[f"first_{side}"][:n], arrays[f"last_{side}"][:n])
                            for side, n in zip(SIDES, sizes, strict=True)}
        counts: dict[str, Rows] = {side: arrays[f"count_{side}"][:n] for side, n in zip(SIDES, sizes, strict=True)}
        stream = part.stream if part.stream.flags.writeable else part.stream.copy()
        batch = Batch(stream, first, {}, {}, windows, starts, self._team, MatchMemory(before))
        limits = linked.ends[:int(linked.numbers[Number.PHASES])]
        found = finder.run(batch, linked.tasks[:int(limits[-1])], linked.controls[2], limits, counts, begun=True)
        return gather(batch, found, self._every, 0, self._opened)

    def _linked_to(self, finder: IndexFinder, part: Arrivals, size: int) -> Linked | None:
        """The links that ``size`` threads use for batches with the columns of ``part``, and as large or larger; None if
        the compiled codes are not known to take these columns' types.
        """
        linked = self._kept.get(size)
        if linked is not None and linked.suits(finder, part):
            return linked
        known, fused = self._search.known, self._search.fused
        schemas = {side: schema for side, schema in known.items() if schema is not None}
        if len(schemas) < len(SIDES) or any(not part.table(side).schema.equals(schemas[side]) for side in SIDES):
            return None
        assert fused is not None
        room = max(1 << (len(part.stream) - 1).bit_length(), 0 if linked is None else linked.room)
        if len(self._kept) >= _KEPT or any(one.finder is not finder for one in self._kept.values()):
            self._kept.clear()
        linked = self._kept[size] = Linked(finder, self._timeline, self._ranged, fused, schemas, room, size,
                                            self._every, self._opened)
        return linked


def find_matches(linked: Linked, timeline: Timeline, addresses: Rows, every: int, opened: Rows, board: Rows,
                 patient: bool) -> int:
    """Find the matches of the batch in ``linked``, and return its state (``fused_batch.hpp``). Its threads have arrays
    at these ``addresses``, and are called by ``board``.
    """
    if linked.bound_to is None or linked.bound_to[0] is not addresses or linked.bound_to[1] is not board:
        linked.bound_to, shared = (addresses, board), (board, linked.size, patient)
        linked.find = loops()["find_matches"].bound(
            linked.numbers, linked.columns, linked.links, linked.jobs, linked.marks, timeline.limits, timeline.moving,
            linked.before, linked.extents, linked.task_words, linked.control_words, linked.phases, linked.ends,
            addresses.reshape(-1), linked.piece_words, every, opened, *shared, linked.told)
        linked.write = loops()["write_items"].bound(
            linked.numbers, linked.links_of_items, linked.writer, linked.items.address, every, opened, linked.cuts,
            linked.control_of_items, linked.phases_of_items, *shared)
    state = linked.find()
    if state == _FAILED:
        raise RuntimeError("a compiled loop failed; please report it")
    return state


def write_items(linked: Linked, out: int, items: int) -> None:
    """Write the ``items`` of the batch in which `find_matches` has found all, to the address ``out``."""
    linked.numbers[Number.OUT], linked.numbers[Number.ITEMS] = out, items
    if not linked.write():
        raise RuntimeError("a compiled loop failed; please report it")


def _inputs(part: Arrivals, ranged: Sequence[str]) -> tuple[int, int] | None:
    """The addresses of the streams and of the event times, 0 if these are not needed; None if an array is not as
    compiled code takes it.
    """
    stream, ts = part.stream, part.ts
    if stream.dtype != np.uint8 or not stream.flags.c_contiguous:
        return None
    if not ranged:
        return address_of(stream), 0
    if ts is None or ts.dtype != np.int64 or not ts.flags.c_contiguous:
        return None
    return address_of(stream), address_of(ts)
