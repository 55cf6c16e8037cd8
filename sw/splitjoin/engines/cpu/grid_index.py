"""The index engine: stored tuples in a grid of cells by one or two keys, with exact expiry in arrival order.

The idea of ESJ's main and secondary predicates and of online interval join's range index: a probe looks only into the
cells that its intervals touch. Cells hold tuples in arrival order, contiguous, so that they expire at one end and are
compared 64 at a time (``grid.hpp``, ``index.hpp``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.base.arrays import Array, Rows
from splitjoin.base.errors import DeviceError
from splitjoin.lang.schema import SIDES, other_side
from splitjoin.plan.plan import Plan, is_equality

from ..compiled.store import ReusedArrays, Store, aligned
from ..loops import address_of, entries, loops
from ..tuning import DEFAULTS, Tuning
from .codes import lane
from .finder import Batch, Finder, Found, in_task_order
from .pair_tests import conditions
from .quantizer import constant, cyclic, has_trend, hashed, learn
from .selectivity import Choice, Selectivity, SessionAlgorithm
from .tasks import PHASE, STOP, Block, Field, make_control, resume

Numbers = npt.NDArray[np.int32]

#: Kinds of tasks (``tasks.hpp``).
_STORE_R, _STORE_S, _FILL_R, _FILL_S, _PROBE = range(5)
#: What the index takes of a stream's grid, and of its batch (``index.hpp``).
_GRID = (Field("base", dimensions=0), Field("first", dimensions=0), Field("begin", dimensions=0),
         Field("numbers", "uint64"), Field("reals", "float64"), Field("table", "int32"), Field("levels", dimensions=0),
         Field("other_numbers", "uint64"), Field("other_reals", "float64"), Field("other_table", "int32"),
         Field("other_levels", dimensions=0), Field("stride", dimensions=0), Field("head", "int32", 2),
         Field("rows", "int32"), Field("pool", "uint8"), Field("used"))
_BATCH = (Field("n", dimensions=0), Field("live", dimensions=0), Field("start"), Field("end"), Field("count"),
          Field("from", dimensions=0), Field("scale", dimensions=0), Field("noted"), Field("entries"), Field("places"),
          Field("ends"), Field("spread"))
#: Slots of a block of a cell; pairs that are tested at once.
_BLOCK, _PAIRS = 64, 256
#: Places in a grid, which are numbered in 32 bits; a cell that grows takes some beyond.
_MOST_SLOTS = 1 << 30
#: Arrivals that are stored before any of them probes: this part of the window, within limits, by one thread, or by
#: several, which wait for each other so often; from `MANY` threads on, whose tasks would be short, a whole window.
_STEP, _LEAST, _MOST = 4, 256, 8192
_SHARED_STEP, MANY = 2, 8
#: Parts of a step's probes of each stream for each thread; the least number of tuples in a part that is sorted by
#: ranges of cells.
PARTS, _LEAST_SORTED = 2, 1024
#: Streams of which none is so many times longer than the other are stored by a thread each.
_ALIKE = 2
#: Nanoseconds: a cell looked up, a tuple in it, and one of these that has to be verified.
_CELL, _CANDIDATE, _VERIFIED = 12.0, 0.2, 6.0
#: Target number of stored tuples per cell; half of it in windows that fit the second-level cache with their cells.
_FILL, _SMALL = 32, 1 << 13
#: Tuples whose levels are computed at once.
_AT_ONCE = 4096


def shared_step(window: int, least: int, threads: int) -> int:
    """The number of arrivals that several ``threads`` store before any of them probes, in windows of ``window`` tuples;
    ``least`` or more.
    """
    return max(window // _part_of(threads), least)


def _part_of(threads: int) -> int:
    """The number of steps in a window: 1 for `MANY` ``threads`` or more, as each step is a wait for the others."""
    return _SHARED_STEP if threads < MANY else 1


@dataclass
class _Grid:
    """One stream's cells: ``head`` (cells, 4), and slots: ``rows`` has tuples' numbers, ``pool`` blocks of bytes
    (`cells`).

    ``first``: the position of the tuple that has number 0. ``levels``: the fields of two `Quantizer`, which tell a
    tuple's cell and bytes; ``stride``: cells in the second dimension; ``used`` (1,): slots in use.
    """

    first: int
    levels: list[Any]
    stride: int
    head: Numbers
    rows: Numbers
    pool: npt.NDArray[np.uint8]
    used: Rows

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the index as the library has it (``index.hpp``), by name."""
        names = [f"{other}{name}" for other in ("", "other_") for name in ("numbers", "reals", "table", "levels")]
        return {"first": self.first, **dict(zip(names, self.levels, strict=True)), "stride": self.stride,
                "head": self.head, "rows": self.rows, "pool": self.pool, "used": self.used}


class _Room:
    """The arrays of one thread (``index.hpp``), for conditions of so many ``parts``: tests and junctions."""

    def __init__(self, size: int, parts: int):
        self.scratch = np.empty((4, _AT_ONCE), np.int32)
        self.found, self.probe_of = np.empty(size, np.int32), np.empty(size, np.int32)
        self.fill, self.looked = aligned(8, np.int64), aligned(8, np.int64)  # each on a cache line of its own
        self.cells = aligned(max(_AT_ONCE, parts * _PAIRS // 8), np.int64)  # or the outcomes of the parts
        self.looked[:] = 0
        self.clear()

    def clear(self) -> None:
        """Take new room for matches; others may still read what is in the old one."""
        self.out = [np.empty(2 * len(self.found), np.int64) for _ in SIDES]
        self.fill[:] = 0

    @property
    def addresses(self) -> list[int]:
        """The addresses of the arrays."""
        arrays: list[Array] = [self.scratch, self.found, self.probe_of, *self.out, self.fill, self.looked, self.cells]
        return [address_of(array) for array in arrays]


class IndexFinder(Finder):
    """Looks tuples up by the tests that ``choice`` names."""

    def __init__(self, plan: Plan, choice: Choice, selectivity: Selectivity, tuning: Tuning = DEFAULTS):
        super().__init__(tuning)
        self._plan, self._tests, self._selectivity = plan, choice.tests, selectivity
        self.prepare, self.work = (entries()[name][0] for name in ("prepare", "work"))
        tests, self._junctions = conditions(plan)
        #: Per stream the slot of its keys that each test reads.
        self.slots: dict[str, list[int]] = {side: [plan.tests[j].slot(side) for j in tests] for side in SIDES}
        kinds: dict[str, list[Any]] = {side: [lane(plan.slots(side)[slot].key) for slot in self.slots[side]]
                                       for side in SIDES}
        self.block = Block(_fields(kinds))
        self.block.put_all((("tests", len(tests)), ("dimension", choice.tests[0]), ("other", choice.tests[-1]),
                            ("junctions", self._junctions)))
        for side, other in (SIDES, SIDES[::-1]):
            self.block.put_all((f"width{j}_{side}", kinds[side][j]().itemsize) for j in tests)
            self.block.put_all((f"bound{j}_{side}", kinds[other][j]().itemsize) for j in tests)
        # The fields that differ from batch to batch, and what the block says of grids.
        self._names = {side: [f"{name}_{side}" for name in (
            "begin", "n", "live", "start", "end", "count", *(f"{of}{j}" for of in ("key", "low", "high")
                                                             for j in tests))] for side in SIDES}
        self._described: dict[str, tuple[int, int]] = {}
        self._reused, self._sorting = ReusedArrays(), ReusedArrays()
        self._grids: dict[str, _Grid] = {}
        self._most_slots = 0  # of a grid so far
        self._rooms: list[_Room] = []
        self._reserved = 0  # matches for which each has room, in memory that the block knows
        self.addresses = np.empty((0, 8), np.int64)
        self._ends: dict[str, int] = dict.fromkeys(SIDES, 0)  # stored tuples that are in the grids

    def find(self, batch: Batch) -> dict[str, Found]:
        tasks, limits = self._tasks_of(batch)
        counts: dict[str, Rows] = {
            side: self._reused.array(f"counts_{side}", len(batch.windows[side][0]), np.int64) for side in SIDES}
        for n, side in enumerate(SIDES):
            store = self.stores[side]
            if store.end == store.base:  # nobody looks: the grid's remaining tuples are expired
                tasks[tasks[:, 0] == _PROBE, 6 - n] = len(counts[other_side(side)])
                counts[other_side(side)][:] = 0
            elif side not in self._grids or store.end - self._grids[side].first > self.tuning.grid_tuples:
                self._build(side, self._live(batch, side, 0), self._ends[side])
        self._describe(batch, counts)
        if ranges_for(batch.team.size, *(len(batch.windows[side][0]) for side in SIDES)) > 1:
            self._sort(batch, dict.fromkeys(SIDES, 0))
        control = make_control(limits, patient=batch.team.is_patient, reused=self._reused)
        return self.run(batch, tasks, control, limits, counts)

    def run(self, batch: Batch, tasks: Rows, control: Rows, limits: Rows, counts: dict[str, Rows], *,
            begun: bool = False) -> dict[str, Found]:
        """Per stream its probes' matches, by the ``tasks``; ``begun``: they have run until they stopped."""
        found: dict[str, list[Rows]] = {side: [] for side in SIDES}
        memory: list[Rows] = []
        matches: dict[str, int] = dict.fromkeys(SIDES, 0)
        while True:
            rooms = self.reserve(batch.team.size)
            self.block.put_all((("control", control), ("limits", limits), ("tasks", tasks.reshape(-1))))
            if not begun:
                batch.team.share(self.work, self.block.address)
            begun = False
            memory += [out for room in rooms for out in room.out]
            stopped = bool(control[STOP])
            pieces, numbers = np.empty((2, len(tasks), 5), np.int64), np.empty(4, np.int64)
            loops()["collect"](tasks.reshape(-1), self.addresses.reshape(-1), not stopped and not found["r"],
                               pieces.reshape(-1), numbers)
            for n, side in enumerate(SIDES):
                found[side].append(pieces[n, :numbers[2 * n]])
                matches[side] += int(numbers[2 * n + 1])
                batch.memory.add(int(numbers[2 * n + 1]))
            if not stopped:
                break
            self._make_room(batch, tasks, control, limits)
        self._count()
        self.finished(0)
        return {side: Found(counts[side], in_task_order(found[side]), memory, matches[side]) for side in SIDES}

    def has_grids(self, tuples: int) -> bool:
        """True if both streams have grids that can number ``tuples`` more."""
        r, s, last = self._grids.get("r"), self._grids.get("s"), self.tuning.grid_tuples - tuples
        return r is not None and s is not None and (
            self.stores["r"].end - r.first <= last and self.stores["s"].end - s.first <= last)

    def finished(self, candidates: int) -> None:
        """Note that all stored tuples are in the grids, and that ``candidates`` were compared which no thread has."""
        self.candidates += candidates
        self._ends = {side: store.end for side, store in self.stores.items()}

    def steps(self, threads: int) -> tuple[int, int, int]:
        """The bounds of the steps into which ``threads`` divide a batch (``tasks.hpp``): a part of the
        longest window, and the least and the most arrivals of a step.
        """
        return (_STEP, _LEAST, _MOST) if threads == 1 else (_part_of(threads), self.tuning.shared_arrivals, 2**62)

    def _tasks_of(self, batch: Batch) -> tuple[Rows, Rows]:
        """The tasks of a batch (``tasks.hpp``), and where their phases end."""
        longest, n = batch.extent[1], len(batch.stream)
        if batch.team.size == 1:
            size = min(max(longest // _STEP, _LEAST), _MOST)
            tasks = np.zeros((-(-n // size) * 4, 14), np.int64)
            loops()["lay_out_for_one"](batch.stream, size, tasks.reshape(-1))
            return tasks, np.array([len(tasks)])
        size = min(shared_step(longest, self.tuning.shared_arrivals, batch.team.size), n)
        parts = max(1, min(PARTS * batch.team.size, size // self.tuning.part_arrivals))
        steps, ranges = -(-n // size), ranges_for(batch.team.size, *(len(batch.windows[side][0]) for side in SIDES))
        tasks, limits = np.zeros((steps * 2 * (parts + ranges), 14), np.int64), np.empty(2 * steps, np.int64)
        loops()["lay_out"](batch.stream, size, parts, ranges, tasks.reshape(-1), limits)
        return tasks, limits

    def _sort(self, batch: Batch, begins: dict[str, int]) -> None:
        """Sort the tuples of the batch by ranges of cells: per stream those from row ``begins`` on."""
        ranges = batch.team.size
        left = {side: len(batch.windows[side][0]) - begin for side, begin in begins.items()}
        parts = max(1, min(ranges, max(left.values()) // _LEAST_SORTED))
        limits = np.array([2 * parts, 4 * parts])
        self.reserve(ranges)
        control = make_control(limits, patient=batch.team.is_patient, reused=self._sorting)
        self.block.put_all((("control", control), ("limits", limits), ("parts", parts)))
        for side in SIDES:
            n = len(batch.windows[side][0])
            self.block.put(f"from_{side}", begins.get(side, n))
            if side in begins:
                self.block.put_all((
                    (f"noted_{side}", self._sorting.array(f"noted_{side}", n, np.int64)),
                    (f"entries_{side}", self._sorting.array(f"entries_{side}", n, np.int64)),
                    (f"spread_{side}", self._sorting.array(f"spread_{side}", parts * ranges, np.int64)),
                    (f"places_{side}", self._sorting.array(f"places_{side}", ranges, np.int64)),
                    (f"ends_{side}", self._sorting.array(f"ends_{side}", ranges, np.int64))))
                if begins[side] == n:  # nothing is left to store, and no thread says so
                    self._sorting.array(f"places_{side}", ranges, np.int64)[:] = 0
                    self._sorting.array(f"ends_{side}", ranges, np.int64)[:] = 0
        batch.team.share(self.prepare, self.block.address)

    def _live(self, batch: Batch, side: str, probe: int) -> int:
        """The first row of stream ``side`` that probe number ``probe`` of the other one or a later one may see."""
        start = batch.windows[other_side(side)][0]
        return int(start[probe]) if probe < len(start) else batch.starts[side]

    def _describe(self, batch: Batch, counts: dict[str, Rows]) -> None:
        """Write the batch and the grids to the block of the compiled loops."""
        tests, put = len(self._plan.tests), self.block.put
        put("ranges", ranges_for(batch.team.size, *(len(batch.windows[side][0]) for side in SIDES)))
        for side in SIDES:
            arrays, (start, end), probes = self.stores[side].room, batch.windows[side], batch.probes[side]
            values: tuple[Any, ...] = (
                    self._ends[side], len(start), batch.starts[side], start, end, counts[side],
                    *(arrays[slot] for slot in self.slots[side]), *probes[:2 * tests])
            for name, value in zip(self._names[side], values, strict=True):
                put(name, value)
            self.describe_grid(side, batch.team.size)

    def describe_grid(self, side: str, size: int) -> None:
        """Write the grid of stream ``side`` to the block, for ``size`` threads."""
        grid = self._grids.get(side) or self._empty_grid()
        self.block.put(f"base_{side}", self.stores[side].base)
        if self._described.get(side) == (id(grid.head), size):  # the block keeps it
            return
        self.block.put(f"scale_{side}", (size << 32) // len(grid.head))
        for name, value in grid.fields.items():
            self.block.put(f"{name}_{side}", value)
        self._described[side] = id(grid.head), size

    def reserve(self, threads: int) -> list[_Room]:
        """The room of the threads, for grids of any size."""
        size = self._most_slots + self.tuning.room
        if len(self._rooms) == threads and self._reserved == size:
            return self._rooms
        if self._rooms and len(self._rooms[0].found) < size:
            self._count()
            self._rooms = []
        if len(self._rooms) < threads:
            parts = len(self._plan.tests) + len(self._junctions) // 3
            self._rooms += [_Room(size, parts) for _ in range(threads - len(self._rooms))]
            self.addresses = np.array([room.addresses for room in self._rooms])
        self.block.put("rooms", self.addresses.reshape(-1))
        self.block.put("room", len(self._rooms[0].found))
        self._reserved = size
        return self._rooms[:threads]

    def _count(self) -> None:
        """Count the candidates that threads have noted, whose matches are taken."""
        for room in self._rooms:
            self.candidates += int(room.looked[0])
            room.fill[:2] = 0
            room.looked[:4] = 0

    def _make_room(self, batch: Batch, tasks: Rows, control: Rows, limits: Rows) -> None:
        """Make what was full larger, and have the threads continue with the phase in which they stopped."""
        phase = int(control[PHASE])
        mine = tasks[int(limits[phase - 1]) if phase else 0:int(limits[phase])]
        for n, (kinds, side) in enumerate((((_STORE_R, _FILL_R), "r"), ((_STORE_S, _FILL_S), "s"))):
            of_side = np.isin(mine[:, 0], kinds)
            full = np.flatnonzero(of_side & (mine[:, 7] != 0))
            if not len(full):
                continue
            task = mine[full[0]]
            until = int(task[2 + 2 * n])
            self._build(side, self._live(batch, side, int(task[3 - 2 * n])), self._ends[side] + until)
            self.describe_grid(side, batch.team.size)
            if task[0] in (_FILL_R, _FILL_S):
                self._sort(batch, {side: until})
            else:
                task[5 + n] = until
            mine[full, 7] = 0
        for room in self._rooms:
            if room.fill.any():
                room.clear()
        self.addresses = np.array([room.addresses for room in self._rooms])
        self._reserved = 0  # the block does not know these
        resume(control, limits)

    def adopt(self, stores: dict[str, Store], plan: Plan) -> None:
        super().adopt(stores, plan)
        self._grids = {}
        self._ends = {side: store.end for side, store in stores.items()}

    def take_back(self, ends: dict[str, int]) -> None:
        """Forget the tuples from the row ids ``ends`` on, of a batch that could not be processed to its end."""
        self._count()
        for side, store in self.stores.items():
            store.end = ends[side]
        self._ends, self._grids, self._described = dict(ends), {}, {}
        self._rooms, self._reserved = [], 0

    def _empty_grid(self) -> _Grid:
        """A grid that is not looked into."""
        one = constant()
        return _Grid(0, [one.numbers, one.reals, one.table, one.count] * 2, 1, np.zeros((1, 4), np.int32),
                     np.empty(0, np.int32), aligned(0, np.uint8), np.zeros(1, np.int64))

    def _build(self, side: str, dead: int, end: int) -> None:
        """Learn how the keys are spread, and lay out a grid of the stored tuples from position ``dead`` to ``end``."""
        store = self.stores[side]
        first = max(min(dead, end), store.base)
        keys = [store.arrays[self._plan.tests[j].slot(side)] for j in self._tests]
        # The batch's later arrivals are as good a sample as the stored tuples.
        sample = [k[first - store.base:] if end - first >= 1024 else k for k in keys]
        counts = levels_for(self._plan, self._selectivity, self._tests, max(end - first, len(sample[0]) // 2))
        levels = [hashed((256 * n - 1).bit_length()) if is_equality(self._plan, j)
                  else cyclic(s, 256 * n) if has_trend(s, self.tuning.trend_sample) else learn(s, 256 * n)
                  for j, n, s in zip(self._tests, counts, sample, strict=True)]
        levels = levels if len(levels) == 2 else [*levels, constant()]
        lines, stride = (-(-x.count // 256) for x in levels)  # 256 levels to a cell
        span = slice(first - store.base, end - store.base)
        found, noted = [y.of(k[span]) for y, k in zip(levels, (keys[0], keys[-1]), strict=True)], np.empty(
            _AT_ONCE, np.int64)
        head, used = np.empty((lines * stride, 4), np.int32), np.zeros(1, np.int64)
        size = self.tuning.grid_spare // _BLOCK * _BLOCK + _BLOCK
        while True:
            rows, pool = np.empty(size, np.int32), aligned(2 * size, np.uint8)
            if loops()["build_grid"](*found, stride, head.reshape(-1), rows, pool, used, noted):
                break
            size = int(used[0]) // 64 * 96 + size
            if size > _MOST_SLOTS:
                raise DeviceError(f"an index holds up to {_MOST_SLOTS:,} places for tuples of a stream, but this "
                                  f"window needs {size:,}; use engine='nested', or a shorter window")
        self._most_slots = max(self._most_slots, len(rows))
        self._grids[side] = _Grid(
            first, [x for y in levels for x in (y.numbers, y.reals, y.table, y.count)], stride, head, rows, pool, used)


class GridIndex(SessionAlgorithm):
    """Looks tuples up by the keys of one or two tests."""

    name, engine = "grid index join", "index"

    @cached_property
    def choice(self) -> Choice:
        plan, live, known = self.job.plan, self.job.live, self.job.known
        cells, choices = _cells(live), []
        for dims in ([known[0]], known[:2]):
            counts = _levels(plan, dims, cells)
            visited = candidates = passing = 1.0
            for (f, j), n in zip(dims, counts, strict=True):
                visited *= 1.0 if is_equality(plan, j) else 1 + f * n
                candidates *= max(f, 1 / n) if is_equality(plan, j) else min(1.0, f + 1 / n)
                passing *= f
            cost = visited * _CELL + candidates * live * _CANDIDATE + passing * live * _VERIFIED
            kinds = " and ".join("hash" if is_equality(plan, j) else "range" for _, j in dims)
            choices.append(Choice(tuple(j for _, j in dims), counts,
                                  f"an index of {' × '.join(map(str, counts))} cells by {kinds}", cost,
                                  64 * visited + 3 * candidates * live))
        return min(choices, key=lambda choice: choice.cost)

    def run(self) -> IndexFinder:
        return IndexFinder(self.job.plan, self.choice, self.job.selectivity, self.job.tuning)


def _fields(kinds: dict[str, list[Any]]) -> tuple[Field, ...]:
    """The block of the index's entries; ``kinds``: per stream the type of the key of each test."""
    numbers = "room", "parts", "ranges", "tests", "dimension", "other"
    fields = [Field("control"), Field("limits"), Field("tasks"), Field("rooms"),
              *(Field(name, dimensions=0) for name in numbers), Field("junctions")]
    for side in SIDES:
        fields += [Field(f"{field.name}_{side}", field.kind, field.dimensions) for field in (*_GRID, *_BATCH)]
    for side in SIDES:
        for j, (mine, its) in enumerate(zip(kinds[side], kinds[other_side(side)], strict=True)):
            fields += [Field(f"key{j}_{side}", mine.__name__), Field(f"low{j}_{side}", its.__name__),
                       Field(f"high{j}_{side}", its.__name__), Field(f"width{j}_{side}", dimensions=0),
                       Field(f"bound{j}_{side}", dimensions=0)]
    return tuple(fields)


def levels_for(plan: Plan, selectivity: Selectivity, tests: tuple[int, ...], live: int) -> tuple[int, ...]:
    """The number of levels that an index of ``live`` tuples has in each of ``tests``."""
    return _levels(plan, [(selectivity.fractions[j], j) for j in tests], _cells(live))


def _cells(live: int) -> int:
    return max(1, live // (_FILL if live > _SMALL else _FILL // 2))


def _levels(plan: Plan, dims: list[tuple[float, int]], cells: int) -> tuple[int, ...]:
    """The number of levels of each dimension: as even as the width of the intervals allows."""
    def limit(f: float, j: int) -> int:
        return 1 << 20 if is_equality(plan, j) else max(1, int(1 / max(f, 1e-6)))

    first = min(cells if len(dims) == 1 else max(1, round(cells ** (1 / len(dims)))), limit(*dims[0]))
    counts = [first]
    if len(dims) == 2:
        second = min(max(1, cells // first), limit(*dims[1]))
        counts = [min(max(first, cells // second), limit(*dims[0])), second]
    return tuple(1 << (n - 1).bit_length() if is_equality(plan, j) else n
                 for (_, j), n in zip(dims, counts, strict=True))


def ranges_for(threads: int, n_r: int, n_s: int) -> int:
    """The ranges of cells into which so many tuples of a batch are sorted for ``threads`` that store them. 1 for those
    that are stored as they come: by one thread, or by two, of which each stores one stream, if neither is much longer.
    """
    return 1 if threads == 1 or (threads == 2 and max(n_r, n_s) <= _ALIKE * min(n_r, n_s)) else threads
