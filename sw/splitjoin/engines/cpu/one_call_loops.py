"""The loops of `one_call`: what the interpreter does between the entries of a batch, in compiled code."""

from __future__ import annotations

from enum import IntEnum, auto
from typing import Any

import numpy as np
from numba import carray  # type: ignore[attr-defined]  # numba is not typed

from ..compiled import handover, intrinsics
from ..compiled.handover import share
from ..compiled.intrinsics import call_entry, call_with, load_int64, pointer_to, store_int64
from ..compiled.jit import compiled
from . import grid_index, tickets
from .grid_index import LEAST_SORTED, PARTS, collect, lay_out, lay_out_for_one, ranges_for
from .tickets import STOP, reset

__all__ = ["COLUMN_NUMBERS", "FOUND", "LINK", "REFUSED", "STOPPED", "Number", "find_matches", "write_items"]

#: Digests of these are part of what machine code here depends on.
COMPILED_WITH = (grid_index, handover, intrinsics, tickets)

#: Columns of a row of links: where a number goes, a constant, a factor, and the number of the batch that it multiplies.
LINK = 4
#: Numbers of a batch for each column: the address of its values, and that of the bits of its validity; where these
#: begin, and how many there are, 0 without NULL.
COLUMN_NUMBERS = 4
#: What has become of a batch: nothing has changed; all matches are there; tasks have stopped.
REFUSED, FOUND, STOPPED = 0, 1, 2


class Number(IntEnum):
    """The numbers of a batch: those that the interpreter tells, up to `TOLD`, and those that are computed here. The
    addresses of columns follow.
    """

    ZERO = 0
    N = auto()
    N_R = auto()
    N_S = auto()
    STREAM = auto()
    TS = auto()
    #: The batch's first row ids; their places in the stores of keys and of times; the first rows of the latter.
    ROW_R = auto()
    ROW_S = auto()
    AT_R = auto()
    AT_S = auto()
    TIME_R = auto()
    TIME_S = auto()
    BASE_R = auto()
    BASE_S = auto()
    #: The tuples that the longest window may have, and the numbers by which a batch is divided into steps, and these
    #: into parts.
    MOST = auto()
    STEP = auto()
    LEAST_STEP = auto()
    MOST_STEP = auto()
    LEAST_PART = auto()
    #: The addresses of structures of Arrow's C data interface that tell the columns; 0 where the interpreter does.
    TABLE_R = auto()
    TABLE_S = auto()
    TOLD = auto()
    #: The arrivals of a part whose windows are found together; the parts that are sorted; the ranges of cells that they
    #: are sorted by, 1 if none is; the phases of the tasks.
    PART = auto()
    SORTED = auto()
    RANGES = auto()
    PHASES = auto()
    #: The first rows that this batch's probes may see, and later ones; pieces of matches; the items.
    BEGIN_R = auto()
    BEGIN_S = auto()
    LIVE_R = auto()
    LIVE_S = auto()
    PIECES_R = auto()
    PIECES_S = auto()
    OUT = auto()
    ITEMS = auto()
    END = auto()


_N, _N_R, _N_S, _STREAM, _ROW_R, _ROW_S = (int(n) for n in (
    Number.N, Number.N_R, Number.N_S, Number.STREAM, Number.ROW_R, Number.ROW_S))
_MOST, _STEP, _LEAST_STEP, _MOST_STEP, _LEAST_PART = (int(n) for n in (
    Number.MOST, Number.STEP, Number.LEAST_STEP, Number.MOST_STEP, Number.LEAST_PART))
_TABLE, _END = int(Number.TABLE_R), int(Number.END)
#: Places in a structure of Arrow's C data interface (`ArrowArray`).
_LENGTH, _NULLS, _OFFSET, _BUFFERS, _CHILDREN, _RELEASE = 0, 1, 2, 5, 6, 8
_PART, _SORTED, _RANGES, _PHASES = int(Number.PART), int(Number.SORTED), int(Number.RANGES), int(Number.PHASES)
_BEGIN, _LIVE, _PIECES, _OUT, _ITEMS = (int(n) for n in (
    Number.BEGIN_R, Number.LIVE_R, Number.PIECES_R, Number.OUT, Number.ITEMS))
#: A thread's matches and what it has looked at, among the addresses of its arrays (`region_source`).
_FILL, _LOOKED = 5, 6


@compiled
def _link(links: Any, numbers: Any) -> None:
    """Write all that ``links`` (n, `LINK`) name, from the ``numbers`` of a batch."""
    for k in range(len(links)):
        store_int64(links[k, 0], 0, links[k, 1] + links[k, 2] * numbers[links[k, 3]])


@compiled
def _read_columns(columns: Any, numbers: Any) -> None:
    """Write the `COLUMN_NUMBERS` of ``columns`` (n, 3), each with its stream, its number in the table and the bytes of
    a value, as far as the tables are told by their structures, and give these back: the tables stay.
    """
    for k in range(len(columns)):
        table = numbers[_TABLE + columns[k, 0]]
        if table == 0:
            continue
        column = load_int64(load_int64(table, _CHILDREN), columns[k, 1])
        offset, buffers, first = load_int64(column, _OFFSET), load_int64(column, _BUFFERS), _END + COLUMN_NUMBERS * k
        bits = load_int64(buffers, 0) if load_int64(column, _NULLS) else np.int64(0)
        numbers[first] = load_int64(buffers, 1) + offset * columns[k, 2]
        numbers[first + 1] = bits
        numbers[first + 2] = offset if bits else np.int64(0)
        numbers[first + 3] = load_int64(column, _LENGTH) if bits else np.int64(0)
    for side in range(2):
        table = numbers[_TABLE + side]
        if table:
            call_with(load_int64(table, _RELEASE), table)


@compiled
def _share(board: Any, size: Any, patient: Any, control: Any, limits: Any, entry: Any, block: Any) -> None:
    """Have ``size`` threads run ``entry``, whose tasks form phases that end before ``limits``."""
    reset(control, limits, patient)
    if call_entry(entry, 0, block) if size == 1 else share(board, entry, block, size):
        raise RuntimeError


@compiled
def find_matches(numbers: Any, columns: Any, links: Any, jobs: Any, marks: Any, limits: Any, starts: Any, before: Any,
                 extents: Any, tasks: Any, controls: Any, phases: Any, ends: Any, rooms: Any, pieces: Any, every: Any,
                 opened: Any, board: Any, size: Any, patient: Any) -> Any:
    """Store the tuples of a batch and find its matches, by ``size`` threads. Returns what has become of it, the pairs
    in its windows, the matches, the items, the candidates, and the first rows of R and of S that later probes may see.

    ``numbers``: of `Number`. ``columns``: as of `_read_columns`. ``links``: those of the batch, of sorting, and of the
    tasks. ``jobs`` (n, 3): the entries of windows and codes, with their blocks and parts. ``marks`` (8,): where the
    links of sorting and of the tasks begin; then of jobs, of sorting and of the tasks their entry and its block.
    ``limits`` (2,): rows of windows of R and S. ``starts`` (2,): where they begin; moves on. ``before`` (parts + 1,),
    ``extents`` (2 · parts,): as of `timeline`, by parts of the batch.
    ``controls`` (4, …): the first are of jobs, of sorting and of the tasks.
    ``phases``: where those of jobs end, and then the two of sorting; ``ends``: those of the tasks. ``rooms``
    (threads, 8): addresses of the threads' arrays (`region_source.ROOM`). ``board``: of helpers that are called
    (`handover`).
    """
    n, parts = numbers[_N], len(before) - 1
    numbers[_PART] = (n + parts - 1) // parts
    before[parts] = numbers[_N_S]
    _read_columns(columns, numbers)
    for side in range(2):
        numbers[_BEGIN + side] = starts[side]
        starts[side] = max(starts[side], numbers[_ROW_R + side] + numbers[_N_R + side] - limits[side])
    _link(links[:marks[0]], numbers)
    if size == 1:
        for k in range(len(jobs)):
            if call_entry(jobs[k, 0], jobs[k, 2], jobs[k, 1]):
                raise RuntimeError
    else:
        _share(board, size, patient, controls[0], phases[:-2], marks[2], marks[3])
    pairs = longest = np.int64(0)
    for part in range(parts):
        pairs += extents[2 * part]
        longest = max(longest, extents[2 * part + 1])
    if longest > numbers[_MOST]:
        starts[0], starts[1] = numbers[_BEGIN], numbers[_BEGIN + 1]
        return REFUSED, pairs, np.int64(0), np.int64(0), np.int64(0), starts[0], starts[1]
    numbers[_LIVE], numbers[_LIVE + 1] = starts[0], starts[1]
    stream = carray(pointer_to(numbers[_STREAM]), (n,), np.uint8)
    ranges = numbers[_RANGES] = ranges_for(size, numbers[_N_R], numbers[_N_S])
    step = min(max(longest // numbers[_STEP], numbers[_LEAST_STEP]), numbers[_MOST_STEP])
    if size == 1:
        ends[0] = -(-n // step) * 4
        numbers[_PHASES] = 1
        mine = tasks[:ends[0]]
        mine[:] = 0
        lay_out_for_one(stream, step, mine)
    else:
        step = min(step, n)
        probing, steps = max(1, min(PARTS * size, step // numbers[_LEAST_PART])), -(-n // step)
        numbers[_PHASES] = 2 * steps
        mine = tasks[:steps * 2 * (probing + ranges)]
        mine[:] = 0
        lay_out(stream, step, probing, ranges, mine, ends[:2 * steps])
    if ranges > 1:
        numbers[_SORTED] = max(1, min(size, max(numbers[_N_R], numbers[_N_S]) // LEAST_SORTED))
        phases[-2], phases[-1] = 2 * numbers[_SORTED], 4 * numbers[_SORTED]
        _link(links[marks[0]:marks[1]], numbers)
        _share(board, size, patient, controls[1], phases[-2:], marks[4], marks[5])
    _link(links[marks[1]:], numbers)
    _share(board, size, patient, controls[2], ends[:numbers[_PHASES]], marks[6], marks[7])
    if controls[2][STOP]:
        return STOPPED, pairs, np.int64(0), np.int64(0), np.int64(0), starts[0], starts[1]
    k_r, m_r, k_s, m_s = collect(mine, rooms, True, pieces)
    numbers[_PIECES], numbers[_PIECES + 1] = k_r, k_s
    candidates = np.int64(0)
    for thread in range(size):
        fill, looked = rooms[thread, _FILL], rooms[thread, _LOOKED]
        candidates += load_int64(looked, 0)
        for at in range(2):
            store_int64(fill, at, 0)
        for at in range(4):
            store_int64(looked, at, 0)
    items = m_r + m_s
    if every:
        items += (opened[0] + numbers[_N_R]) // every + (opened[1] + numbers[_N_S]) // every
    return FOUND, pairs, m_r + m_s, items, candidates, starts[0], starts[1]


@compiled
def write_items(numbers: Any, links: Any, entry: Any, block: Any, every: Any, opened: Any, out: Any, items: Any,
                cuts: Any, control: Any, phases: Any, board: Any, size: Any, patient: Any) -> None:
    """Write the ``items`` of the batch whose matches have been found to the address ``out``, by the ``entry`` of
    `gather`: ``size`` threads do, in parts of the arrivals that begin at ``cuts`` (parts + 1,).
    """
    numbers[_OUT], numbers[_ITEMS] = out, items
    for part in range(len(cuts)):
        cuts[part] = numbers[_N] * part // (len(cuts) - 1)
    _link(links, numbers)
    _share(board, size, patient, control, phases, entry, block)
    if every:
        for side in range(2):
            opened[side] = (opened[side] + numbers[_N_R + side]) % every
