"""`Linked`: the blocks of a batch that is done in one call (`fused_batch`), linked to arrays that last."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pyarrow as pa

from splitjoin.base.arrays import Array, Rows
from splitjoin.lang.schema import SIDES

from ..arrival import Arrivals
from ..compiled.store import aligned
from ..loops import address_of
from . import gather, grid_index
from .codes import FusedColumn
from .grid_index import IndexFinder
from .tasks import CONTROL, TASK_FIELDS, Block, library_entry
from .timeline import Timeline, entries

#: Columns of a row of links (``fused_batch.hpp``), and numbers of a batch for each column: the address of its values,
#: and that of the bits of its validity; where these begin, and how many there are, 0 without NULL.
LINK = COLUMN_NUMBERS = 4
#: The last `COLUMN_NUMBERS` of a column without NULL.
_WITHOUT_NULL = (0, 0, 0)
#: Numbers of a structure of Arrow's C data interface (`ArrowArray`).
_STRUCTURE = 10
#: Parts for each of several threads whose windows are found together.
WINDOW_PARTS = 2


#: The numbers of a batch (``Numbers`` in ``fused_batch.hpp``): those that the interpreter tells, up to `TOLD`, and
#: those that the library computes. The addresses of columns follow. ``ROW``: the batch's first row ids, ``AT`` their
#: places in the stores of keys, and ``TIME`` in those of times, which begin at ``BASE``; ``MOST``: the tuples that the
#: longest window may have, and then the numbers by which a batch is divided into steps, and these into parts;
#: ``TABLE``: structures of Arrow's C data interface that tell the columns, 0 where the interpreter does; ``PART``:
#: arrivals whose windows are found together; ``SORTED``: parts that are sorted, by ``RANGES`` of cells; ``BEGIN``: the
#: first rows that this batch's probes may see, ``LIVE`` those of later ones; ``PIECES`` of matches.
Number = IntEnum("Number", (
    "ZERO N N_R N_S STREAM TS ROW_R ROW_S AT_R AT_S TIME_R TIME_S BASE_R BASE_S MOST STEP LEAST_STEP MOST_STEP "
    "LEAST_PART TABLE_R TABLE_S TOLD PART SORTED RANGES PHASES BEGIN_R BEGIN_S LIVE_R LIVE_S PIECES_R PIECES_S OUT "
    "ITEMS END"), start=0)


#: Where the structures of both tables are told.
_TABLES = int(Number.TABLE_R), int(Number.TABLE_S)
#: The phases of jobs: the tuples of S are counted, unless a batch is one part; windows; windows by time.
_COUNT, _PLACE, _NARROW = range(3)


@dataclass(frozen=True)
class _Side:
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

    def numbers(self, block: Block, name: str, *of: int) -> None:
        """Let the numbers of the argument ``name`` be those ``of`` the batch."""
        for place, one in enumerate(of):
            self.number(block, name, one, place=place)

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


class Linked:
    """The blocks of batches of up to ``room`` arrivals, of tables of ``schemas``, which ``size`` threads share: linked
    to the arrays of ``finder`` and ``timeline``, and to others that last.

    ``fused``: per stream the loops of its codes. ``ranged``: the streams whose windows are limited by time. ``every``
    and ``opened`` as of `gather.gather`. Attributes are what `find_matches` and `write_items` take.
    """

    def __init__(self, finder: IndexFinder, timeline: Timeline, ranged: Sequence[str],
                 fused: Mapping[str, Sequence[FusedColumn]], schemas: Mapping[str, pa.Schema], room: int, size: int,
                 every: int, opened: Rows):
        self.room, self.finder, self._timeline, self._ranged = room, finder, timeline, ranged
        parts = 1 if size == 1 else WINDOW_PARTS * size
        self.before, self.extents = np.zeros(parts + 1, np.int64), np.zeros(2 * parts, np.int64)
        self.arrays = {f"{name}_{side}": aligned(room, np.int64)
                       for name in ("first", "last", "count", "now") for side in SIDES}
        self.control_words = aligned(4 * CONTROL, np.int64)
        self.controls = self.control_words.reshape(4, CONTROL)
        self.control_of_items = self.controls[3]
        self._prepare_tasks(size)
        self.items = Block(gather.ITEM_FIELDS)
        self._blocks: list[Block] = []  # which are kept
        self._sides: dict[str, _Side] = {}
        self._joined: list[pa.Array] = []  # columns of several chunks
        self._jobs: list[list[tuple[int, int, int]]] = [[], [], []]  # by phases
        links, sorting, finding, items = (_Links() for _ in range(4))
        self._link_windows(links, parts)
        at = int(Number.END)
        for number, side in enumerate(SIDES):
            at = self._link_codes(links, side, number, fused[side], schemas[side], at, size)
            self._link_probes(links, finding, side, number)
            self._link_items(items, side, number)
        limits = np.cumsum([len(phase) for phase in self._jobs if phase])
        self.phases = np.append(limits, (0, 0)).astype(np.int64)
        self._link_work(links, sorting, finding, size)
        self._link_writing(items, every, opened, size)
        self.numbers = np.zeros(at, np.int64)
        self.columns = np.array([(number, *column) for number, side in enumerate(SIDES)
                                 for column in self._sides[side].columns], np.int64).reshape(-1)
        self._exported = [np.zeros(_STRUCTURE, np.int64) for _ in SIDES]
        self._addresses = [address_of(structure) for structure in self._exported]
        every_link = links.rows, sorting.rows, finding.rows
        self.links, self.links_of_items = np.concatenate(every_link).reshape(-1), items.rows.reshape(-1)
        self.jobs = np.array([job for phase in self._jobs for job in phase], np.int64).reshape(-1)
        self.told, self.size = np.zeros(6, np.int64), size
        #: The calls of `fused_batch`, and the arrays that they are bound to beside these.
        self.bound_to: tuple[Rows, Rows] | None = None
        self.find: Callable[[], int] = int
        self.write: Callable[[], int] = int
        tasks = Block(TASK_FIELDS)
        tasks.put_all((("control", self.controls[0]), ("limits", self.phases[:-2]), ("tasks", self.jobs)))
        self._blocks.append(tasks)
        self.marks = np.array([
            *np.cumsum([len(of) for of in every_link])[:2], library_entry("do_parts", TASK_FIELDS), tasks.address,
            finder.prepare, finder.block.address, finder.work, finder.block.address], np.int64)
        self.writer = gather.entry()

    def suits(self, finder: IndexFinder, part: Arrivals) -> bool:
        """True if ``part`` has the types that are linked, and its tuples are stored in the arrays that are linked."""
        if finder is not self.finder or len(part.stream) > self.room:
            return False
        for side, linked in self._sides.items():
            if not ((part.r if side == "r" else part.s).schema.equals(linked.schema)
                    and finder.stores[side].room[0] is linked.keys
                    and (linked.times is None or self._timeline.times[side].room[0] is linked.times)):
                return False
        return True

    def tell_columns(self, part: Arrivals) -> None:
        """Tell `find_matches`, which must follow, where the columns of ``part`` lie; their values stay until the next
        call.
        """
        at, self._joined, whole = int(Number.END), [], list[tuple[int, pa.RecordBatch]]()
        for number, side in enumerate(SIDES):
            table, linked = part.r if number == 0 else part.s, self._sides[side]
            batches = table.to_batches() if table.num_rows else []
            if len(batches) == 1:
                whole.append((number, batches[0]))
            else:  # a gate leaves some tuples for the next batch
                self.numbers[_TABLES[number]] = 0
                self.numbers[at:at + COLUMN_NUMBERS * len(linked.columns)] = [
                    value for column in linked.columns for value in self._column(batches, *column)]
            at += COLUMN_NUMBERS * len(linked.columns)
        for number, batch in whole:  # in half the time of its columns; last, as `find_matches` gives it back
            batch._export_to_c(self._addresses[number])
            self.numbers[_TABLES[number]] = self._addresses[number]

    def _column(self, batches: list[pa.RecordBatch], at: int, size: int) -> tuple[int, ...]:
        """The `COLUMN_NUMBERS` of a column of several chunks, or of none."""
        if not batches:
            return 0, *_WITHOUT_NULL
        values = pa.concat_arrays([batch.column(at) for batch in batches])
        self._joined.append(values)
        bits, data = values.buffers()
        first: int = data.address + values.offset * size
        return first, *((bits.address, values.offset, len(values)) if values.null_count else _WITHOUT_NULL)

    def _prepare_tasks(self, size: int) -> None:
        """Make room for the tasks of the steps of a batch, and for the pieces that they find."""
        steps = self.room // self.finder.steps(size)[1] + 1
        tasks = 4 if size == 1 else 2 * (grid_index.PARTS + 1) * size
        self.tasks = np.zeros((steps * tasks, 14), np.int64)
        self.pieces = np.empty((2, len(self.tasks), 5), np.int64)
        self.task_words, self.piece_words = self.tasks.reshape(-1), self.pieces.reshape(-1)
        self.ends = np.zeros(2 * steps, np.int64)

    def _link_windows(self, links: _Links, parts: int) -> None:
        """Link the block of the timeline's entries, and add these to the jobs."""
        block, times = self._timeline.new_block(), self._timeline.times
        self._blocks.append(block)
        links.numbers(block, "stream", Number.STREAM, Number.N)
        links.number(block, "size", Number.PART)
        links.numbers(block, "ts", Number.TS, Number.N)
        block.put_all((("before", self.before), ("extents", self.extents)))
        for number, side in enumerate(SIDES):
            mine: int = Number.N_R + number
            links.number(block, f"begin_{side}", Number.BEGIN_R + number)
            links.number(block, f"row_{side}", Number.ROW_R + number)
            links.number(block, f"base_{side}", Number.BASE_R + number)
            for name in ("first", "last"):
                links.array(block, f"{name}_{side}", self.arrays[f"{name}_{side}"], mine)
            if side in self._ranged:
                stored = times[side].room[0]
                links.number(block, f"now_{side}", Number.TIME_R + number, constant=address_of(stored), factor=8)
                links.number(block, f"now_{side}", mine, place=1)
                links.fixed(block, f"times_{side}", stored)
            else:
                links.array(block, f"now_{side}", self.arrays[f"now_{side}"], mine)
                links.fixed(block, f"times_{side}", self._timeline.moving)
        for phase, entry in entries(ranged=bool(self._ranged), counted=parts > 1):
            self._jobs[phase] += [(entry, block.address, part) for part in range(parts)]

    def _link_codes(self, links: _Links, side: str, number: int, fused: Sequence[FusedColumn], schema: pa.Schema,
                    at: int, size: int) -> int:
        """Link the loops that make the codes of stream ``side``, and add them to the jobs; those that void the codes of
        NULL are in the next phase. `COLUMN_NUMBERS` of a batch from ``at`` on are those of its columns; returns the
        number behind them.
        """
        keys, columns, mine = self.finder.stores[side].room, list[tuple[int, int]](), Number.N_R + number
        for slot, one in enumerate(fused):
            kind = np.dtype(schema.field(one.column[0]).type.to_pandas_dtype())
            columns.append((schema.get_field_index(one.column[0]), kind.itemsize))
            made = one.new_job(kind)
            made.block.put("parts", size)
            # In the first phase that there is.
            self._jobs[_PLACE if size == 1 else _COUNT] += [
                (made.entry, made.block.address, part) for part in range(size)]
            links.number(made.block, "n", mine)
            links.numbers(made.block, "values", at + COLUMN_NUMBERS * slot, mine)
            for end in ("low", "high"):
                name = f"{end}{one.test}_{side}"
                bounds = self.arrays[name] = aligned(self.room, one.other_kind)
                links.array(self.finder.block, name, bounds, mine)
            blocks = [made.block]
            for name in one.holes:
                voiding = one.new_voiding()
                voiding.block.put("parts", size)
                self._jobs[_NARROW if size == 1 else _PLACE] += [
                    (voiding.entry, voiding.block.address, part) for part in range(size)]
                of = at + COLUMN_NUMBERS * next(n for n, other in enumerate(fused) if other.column[0] == name)
                for place, field in enumerate(("values", "c0", "n")):
                    links.number(voiding.block, field, of + 1 + place)
                blocks.append(voiding.block)
            self._blocks += blocks
            for block in blocks:
                links.number(block, "keys", Number.AT_R + number, constant=address_of(keys[slot]),
                             factor=keys[slot].itemsize)
                links.number(block, "keys", mine, place=1)
                for end in ("low", "high"):
                    links.array(block, f"{end}s", self.arrays[f"{end}{one.test}_{side}"], mine)
        times = self._timeline.times[side].room[0] if side in self._ranged else None
        self._sides[side] = _Side(columns, schema, keys[0], times)
        return at + COLUMN_NUMBERS * len(fused)

    def _link_probes(self, links: _Links, finding: _Links, side: str, number: int) -> None:
        """Link what the index takes of the keys, windows and counts of stream ``side``."""
        block, mine = self.finder.block, Number.N_R + number
        for j, slot in enumerate(self.finder.slots[side]):
            links.fixed(block, f"key{j}_{side}", self.finder.stores[side].room[slot])
        links.number(block, f"begin_{side}", Number.ROW_R + number)
        links.number(block, f"n_{side}", mine)
        finding.number(block, f"live_{side}", Number.LIVE_R + number)
        for name, array in (("start", "first"), ("end", "last"), ("count", "count")):
            links.array(block, f"{name}_{side}", self.arrays[f"{array}_{side}"], mine)

    def _link_work(self, links: _Links, sorting: _Links, finding: _Links, size: int) -> None:
        """Link the tasks of the index, and those that sort tuples by ranges of cells if several threads share them."""
        block = self.finder.block
        for of in (sorting, finding):
            of.number(block, "ranges", Number.RANGES)
        finding.fixed(block, "control", self.controls[2])
        finding.fixed(block, "tasks", self.task_words)
        finding.array(block, "limits", self.ends, Number.PHASES)
        if size == 1:
            return
        self.sorted = np.zeros((2, 2, size), np.int64)  # where each range begins, and ends
        sorting.fixed(block, "control", self.controls[1])
        sorting.fixed(block, "limits", self.phases[-2:])
        sorting.number(block, "parts", Number.SORTED)
        for number, side in enumerate(SIDES):
            sorting.number(block, f"from_{side}", Number.ZERO)
            for name in ("noted", "entries"):
                array = self.arrays[f"{name}_{side}"] = aligned(self.room, np.int64)
                sorting.array(block, f"{name}_{side}", array, Number.N_R + number)
            spread = self.arrays[f"spread_{side}"] = aligned(size * size, np.int64)
            sorting.fixed(block, f"spread_{side}", spread)
            sorting.fixed(block, f"places_{side}", self.sorted[number, 0])
            sorting.fixed(block, f"ends_{side}", self.sorted[number, 1])

    def _link_items(self, items: _Links, side: str, number: int) -> None:
        """Link what the writing of items takes of stream ``side``."""
        mine = Number.N_R + number
        for name, array in (("start", "first"), ("end", "last"), ("counts", "count")):
            items.array(self.items, f"{name}_{side}", self.arrays[f"{array}_{side}"], mine)
        items.number(self.items, f"first_{side}", Number.ROW_R + number)
        items.number(self.items, f"pieces_{side}", Number.ZERO, constant=address_of(self.pieces[number]))
        width = self.pieces.shape[2]
        items.number(self.items, f"pieces_{side}", Number.PIECES_R + number, factor=width, place=1)
        self.items.put(f"width_{side}", width)

    def _link_writing(self, items: _Links, every: int, opened: Rows, size: int) -> None:
        """Link what else the writing of items takes."""
        parts = 1 if size == 1 else gather.PARTS * size
        self.cuts, self.phases_of_items = np.zeros(parts + 1, np.int64), parts * np.arange(1, 4)
        items.numbers(self.items, "stream", Number.STREAM, Number.N)
        items.numbers(self.items, "out", Number.OUT, Number.ITEMS)
        self.items.put_all((
            ("every", every), ("inner", 0), ("opened", opened), ("control", self.controls[3]), ("cuts", self.cuts),
            ("limits", self.phases_of_items), ("parts", np.zeros(4 * parts, np.int64))))
