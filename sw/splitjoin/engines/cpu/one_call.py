"""A batch in two compiled calls: one finds its matches, and one writes its items.

`CpuSession` calls the parts of a batch one after the other, which costs the interpreter 200 µs: little beside a large
batch, but four times the work of a thousand arrivals. Where nothing has to be decided anew, one compiled call does all
up to the matches here, by the same entries (`block`): windows, codes, which are written where the tuples are stored,
and the index. The interpreter gives it some numbers, from which it writes the blocks of the entries. It finds out what
is not as expected before anything has changed, and then the parts do the batch.

This is for one thread, and for an index over plain columns, each with one test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.base.memory import MatchMemory
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES

from ..arrival import Arrivals
from ..device import ITEM
from .block import Block
from .finder import Batch
from .gather import ITEM_FIELDS, entry_for_one, gather
from .handover import address_of
from .helpers import Team
from .index import IndexFinder
from .one_call_loops import LINK, REFUSED, STOPPED, Number, find_matches, write_items
from .search import PlanSearch
from .session import Joined
from .store import aligned
from .tickets import make_control
from .timeline import Timeline, Windows, entries

__all__ = ["OneCall"]

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]

_TOLD, _END = int(Number.TOLD), int(Number.END)


@dataclass(frozen=True)
class _Linked:
    """One stream as it is linked: its columns, each by its number in the table and the bytes of a value, of tables of
    ``schema``; the first of the arrays that its keys are stored in, and that of its times.
    """

    columns: list[tuple[int, int]]
    schema: pa.Schema
    keys: Array
    times: Array | None


class _Links:
    """Numbers that compiled code writes to blocks, from those of a batch."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, int, int]] = []

    def number(self, block: Block, name: str, of: int, *, constant: int = 0, factor: int = 1, place: int = 0) -> None:
        """Let number ``place`` of the argument ``name`` be ``constant`` + ``factor`` · the number ``of`` the batch."""
        self._rows.append((block.link(name) + 8 * place, constant, factor, of))

    def array(self, block: Block, name: str, array: Array, length: int) -> None:
        """Let the argument ``name`` be the first of ``array``: so many as the number ``length`` of the batch says."""
        self.number(block, name, Number.ZERO, constant=address_of(array))
        self.number(block, name, length, place=1)

    def fixed(self, block: Block, name: str, array: Array) -> None:
        """Let the argument ``name`` be ``array``."""
        for place, value in enumerate((address_of(array), *array.shape)):
            self.number(block, name, Number.ZERO, constant=value, place=place)

    @property
    def rows(self) -> Rows:
        """All, (n, `LINK`)."""
        return np.array(self._rows, np.int64).reshape(-1, LINK)


class OneCall:
    """The compiled calls of the session of ``query``, with its ``search`` and its ``timeline``; ``opened`` as of
    `gather.gather`.
    """

    def __init__(self, query: Query, search: PlanSearch, timeline: Timeline, opened: Rows):
        order = query.order
        self._every = {"none": 0, "outer": order.n, "total": 1}[order.kind]
        self._search, self._timeline, self._opened = search, timeline, opened
        self._ranged = tuple(side for side in SIDES if query.window(side).length is not None)
        self._fused = search.fused
        self._finder: IndexFinder | None = None
        self._linked: dict[str, _Linked] = {}
        self._room = 0  # the most arrivals of a batch

    @classmethod
    def of(cls, query: Query, search: object, timeline: Timeline, opened: Rows) -> OneCall | None:
        """The compiled calls of a session, if they suit it."""
        suited = query.order.kind != "inner" and isinstance(search, PlanSearch) and search.fused is not None
        return cls(query, search, timeline, opened) if suited else None  # type: ignore[arg-type]  # a PlanSearch

    def join(self, part: Arrivals, before: int) -> Joined | None:
        """The results of the batch ``part``, behind so many pairs; None, with nothing changed, if its parts have to be
        called one after the other.
        """
        settled, n, n_r, n_s = self._search.settled_index(), len(part.stream), part.r.num_rows, part.s.num_rows
        if settled is None:
            return None
        finder, most = settled
        stores, times = finder.stores, self._timeline.times
        r, s = stores["r"], stores["s"]
        if r.base == r.end or s.base == s.end or not finder.has_grids(n):
            return None
        r.reserve(n_r)
        s.reserve(n_s)
        for side in self._ranged:
            times[side].reserve(n_r if side == "r" else n_s)
        if not self._is_linked(finder, part) and not self._link(finder, part):
            return None
        columns, inputs = self._columns(part), _inputs(part, self._ranged)
        if columns is None or inputs is None:
            return None
        ends, time_r, time_s = self._timeline.ends, times["r"], times["s"]
        numbers = self._numbers
        numbers[:_TOLD] = (
            0, n, n_r, n_s, *inputs, ends["r"], ends["s"], r.end - r.base, s.end - s.base, time_r.end - time_r.base,
            time_s.end - time_s.base, time_r.base, time_s.base, most, *finder.steps)
        numbers[_END:] = columns
        finder.reserve(1)
        for side in SIDES:
            finder.describe_grid(side, 1)
        state, pairs, matches, room, candidates, live_r, live_s = find_matches(
            numbers, self._links, self._jobs, self._entry, finder.block.address, self._timeline.limits,
            self._timeline.moving, self._before, self._extents, self._tasks, self._control, self._ends,
            finder.addresses, self._pieces, self._every, self._opened)
        if state == REFUSED:
            return None
        self._search.settle(n)
        row_r, row_s = ends["r"], ends["s"]
        ends["r"], ends["s"] = row_r + n_r, row_s + n_s
        r.end, s.end = r.end + n_r, s.end + n_s
        for side in self._ranged:
            times[side].end += n_r if side == "r" else n_s
        starts = {"r": live_r, "s": live_s}
        if state == STOPPED:
            items, matches = self._resume(part, finder, {"r": row_r, "s": row_s}, (n_r, n_s), starts, before)
        else:
            MatchMemory(before).add(matches)
            items = np.empty(room, ITEM)
            write_items(numbers, self._links_of_items, entry_for_one(), self._items.address, self._every, self._opened,
                   address_of(items) if room else 0, room)
            finder.finished(candidates)
        finder.forget(starts)
        self._timeline.trim()
        return Joined(items, matches, pairs)

    def _resume(self, part: Arrivals, finder: IndexFinder, first: dict[str, int], sizes: tuple[int, int],
                starts: dict[str, int], before: int) -> tuple[Any, int]:
        """The items of a batch whose tasks have stopped, as a grid or the room for matches is full."""
        windows: Windows = {side: (self._arrays[f"first_{side}"][:n], self._arrays[f"last_{side}"][:n])
                            for side, n in zip(SIDES, sizes, strict=True)}
        counts: dict[str, Rows] = {
            side: self._arrays[f"count_{side}"][:n] for side, n in zip(SIDES, sizes, strict=True)}
        stream = part.stream if part.stream.flags.writeable else part.stream.copy()
        batch = Batch(stream, first, {}, {}, windows, starts, Team(1), MatchMemory(before))
        found = finder.run(batch, self._tasks[:int(self._ends[0])], self._control, self._ends, counts, begun=True)
        return gather(batch, found, self._every, 0, self._opened)

    def _is_linked(self, finder: IndexFinder, part: Arrivals) -> bool:
        """True if ``part`` has the types that are linked, and its tuples are stored in the arrays that are linked."""
        return finder is self._finder and len(part.stream) <= self._room and all(
            (part.r if side == "r" else part.s).schema.equals(linked.schema)
            and finder.stores[side].room[0] is linked.keys
            and (linked.times is None or self._timeline.times[side].room[0] is linked.times)
            for side, linked in self._linked.items())

    def _columns(self, part: Arrivals) -> list[int] | None:
        """The addresses of the columns' values; None if they are not as the codes take them."""
        found: list[int] = []
        for side, linked in self._linked.items():
            table = part.r if side == "r" else part.s
            if not table.num_rows:
                found += [0] * len(linked.columns)
                continue
            batches = table.to_batches()  # whose columns are looked up in half the time
            if len(batches) != 1:
                return None
            for at, size in linked.columns:
                values = batches[0].column(at)
                if values.null_count:
                    return None
                found.append(values.buffers()[1].address + values.offset * size)
        return found

    def _link(self, finder: IndexFinder, part: Arrivals) -> bool:
        """Link the blocks to the arrays of ``finder``, for batches of the types of ``part`` and of its size or more.
        False if its types are not known to be those that the codes take.
        """
        known = self._search.known
        if any((schema := known[side]) is None or not part.table(side).schema.equals(schema) for side in SIDES):
            return False
        self._room = room = max(self._room, 1 << (len(part.stream) - 1).bit_length())
        self._finder = finder
        parts, least = len(SIDES) * 2, finder.steps[1]
        self._tasks = np.zeros(((room // least + 1) * parts, 14), np.int64)
        self._pieces = np.empty((2, len(self._tasks), 5), np.int64)
        self._ends = np.zeros(1, np.int64)
        self._control = make_control(self._ends)
        self._before, self._extents = np.zeros(2, np.int64), np.zeros(2, np.int64)
        self._arrays = {f"{name}_{side}": aligned(room, np.int64)
                        for name in ("first", "last", "count", "now") for side in SIDES}
        self._linked, links, jobs, at = {}, _Links(), list[tuple[int, int]](), int(Number.END)
        windows = self._link_windows(links, jobs)
        block, self._items, of_items = finder.block, Block(ITEM_FIELDS), _Links()
        self._blocks = [windows]
        for number, side in enumerate(SIDES):
            schema, keys = known[side], finder.stores[side].room
            assert schema is not None
            assert self._fused is not None
            mine: int = Number.N_R + number
            columns = []
            for slot, one in enumerate(self._fused[side]):
                kind = schema.field(one.column[0]).type.to_pandas_dtype()
                columns.append((schema.get_field_index(one.column[0]), np.dtype(kind).itemsize))
                made = one.new_job(np.dtype(kind))
                self._blocks.append(made.block)
                made.block.put("parts", 1)
                jobs.append((made.entry, made.block.address))
                links.number(made.block, "n", mine)
                links.number(made.block, "values", at)
                links.number(made.block, "values", mine, place=1)
                links.number(made.block, "keys", Number.AT_R + number, constant=address_of(keys[slot]),
                             factor=keys[slot].itemsize)
                links.number(made.block, "keys", mine, place=1)
                for end in ("low", "high"):
                    name = f"{end}{one.test}_{side}"
                    bounds = self._arrays[name] = aligned(room, one.other_kind)
                    links.array(made.block, f"{end}s", bounds, mine)
                    links.array(block, name, bounds, mine)
                at += 1
            for slot in finder.used[side]:
                links.fixed(block, f"key{slot}_{side}", keys[slot])
            links.number(block, f"begin_{side}", Number.ROW_R + number)
            links.number(block, f"n_{side}", mine)
            links.number(block, f"live_{side}", Number.LIVE_R + number)
            for name, array in (("start", "first"), ("end", "last"), ("count", "count")):
                links.array(block, f"{name}_{side}", self._arrays[f"{array}_{side}"], mine)
            for name, array in (("start", "first"), ("end", "last"), ("counts", "count")):
                of_items.array(self._items, f"{name}_{side}", self._arrays[f"{array}_{side}"], mine)
            of_items.number(self._items, f"first_{side}", Number.ROW_R + number)
            of_items.number(self._items, f"pieces_{side}", Number.ZERO, constant=address_of(self._pieces[number]))
            of_items.number(self._items, f"pieces_{side}", Number.PIECES_R + number, place=1)
            of_items.number(self._items, f"pieces_{side}", Number.ZERO, constant=self._pieces.shape[2], place=2)
            self._linked[side] = _Linked(columns, schema, keys[0], (
                self._timeline.times[side].room[0] if side in self._ranged else None))
        links.number(block, "ranges", Number.ZERO, constant=1)
        for name, shared in (("tasks", self._tasks), ("control", self._control), ("limits", self._ends)):
            links.fixed(block, name, shared)
        of_items.number(self._items, "stream", Number.STREAM)
        of_items.number(self._items, "stream", Number.N, place=1)
        of_items.number(self._items, "out", Number.OUT)
        of_items.number(self._items, "out", Number.ITEMS, place=1)
        self._items.put_all((("every", self._every), ("inner", 0), ("opened", self._opened)))
        self._jobs, self._links, self._links_of_items = np.array(jobs, np.int64), links.rows, of_items.rows
        self._entry, self._numbers = finder.work, np.zeros(at, np.int64)
        return True

    def _link_windows(self, links: _Links, jobs: list[tuple[int, int]]) -> Block:
        """Link the block of the timeline's entries, and add these to ``jobs``."""
        block, times = self._timeline.new_block(), self._timeline.times
        links.number(block, "stream", Number.STREAM)
        links.number(block, "stream", Number.N, place=1)
        links.number(block, "size", Number.N)
        links.number(block, "ts", Number.TS)
        links.number(block, "ts", Number.N, place=1)
        block.put_all((("before", self._before), ("extents", self._extents)))
        for number, side in enumerate(SIDES):
            mine: int = Number.N_R + number
            links.number(block, f"begin_{side}", Number.BEGIN_R + number)
            links.number(block, f"row_{side}", Number.ROW_R + number)
            links.number(block, f"base_{side}", Number.BASE_R + number)
            for name in ("first", "last"):
                links.array(block, f"{name}_{side}", self._arrays[f"{name}_{side}"], mine)
            if side in self._ranged:
                stored = times[side].room[0]
                links.number(block, f"now_{side}", Number.TIME_R + number, constant=address_of(stored), factor=8)
                links.number(block, f"now_{side}", mine, place=1)
                links.fixed(block, f"times_{side}", stored)
            else:
                links.array(block, f"now_{side}", self._arrays[f"now_{side}"], mine)
                links.fixed(block, f"times_{side}", self._timeline.moving)
        jobs += [(entry, block.address) for entry in entries(ranged=bool(self._ranged))]
        return block


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
