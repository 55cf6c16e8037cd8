"""Rows sorted by time outside memory, part by part (external merge sort; Knuth, The Art of Computer Programming 3,
section 5.4): sorted runs go to a file without a name, and are merged times after times.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_left
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from splitjoin.base.arrays import Ints
from splitjoin.base.errors import InputError
from splitjoin.engines.sorting import stable_order
from splitjoin.lang.layouts import take, take_rows

#: The times of some rows in ticks: int64 (n,).
Ticks = Callable[[pa.Table], Ints]

#: Bytes of a run, about: memory holds it twice while it is sorted.
RUN = 1 << 26
#: Batches of a run: while runs are merged, memory holds one of each.
BATCHES = 256


def sorted_parts(parts: Iterator[pa.Table], schema: pa.Schema, ticks: Ticks, folder: Path,
                 rows: int) -> Iterator[pa.Table]:
    """The rows of ``parts`` by their ``ticks``, equal ones as they come, in parts of about ``rows``. Columns of
    ``schema`` must have no dictionaries.

    Raises `InputError` where ``folder`` has no room for a file of all rows.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            runs = list(_written(parts, schema, ticks, file))
            file.seek(0)
            with pa.ipc.open_file(pa.PythonFile(file, "r")) as reader:
                yield from _merged(runs, reader, ticks, rows)
    except OSError as error:
        raise InputError(f"large tables are sorted in a file beside the output, but {folder} cannot be written: "
                         f"{error.strerror or error}; give an output in another folder, or sorted files") from None


def _written(parts: Iterator[pa.Table], schema: pa.Schema, ticks: Ticks, file: Any) -> Iterator[list[tuple[int, int]]]:
    """Write all rows to ``file`` in runs, each sorted; of each run the number and the last time of its batches."""
    number = 0
    with pa.ipc.new_file(pa.PythonFile(file, "w"), schema) as writer:
        for run in _gathered(parts):
            times = ticks(run)
            order = stable_order(times.view(np.uint64) ^ np.uint64(1 << 63))  # the order of numbers with a sign
            places, size = pa.array(order), -(-len(run) // BATCHES)
            made = pa.table([take(column, places) for column in run.columns], schema=schema).combine_chunks()
            times, batches = times[order], list[tuple[int, int]]()
            for at in range(0, len(run), size):
                writer.write_table(made.slice(at, size), max_chunksize=size)
                batches.append((number, int(times[min(at + size, len(run)) - 1])))
                number += 1
            yield batches


def _gathered(parts: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Parts together that are about a run."""
    some = list[pa.Table]()
    for part in parts:
        some += [part] if len(part) else []
        if sum(table.nbytes for table in some) >= RUN:
            yield pa.concat_tables(some)
            some = []
    if some:
        yield pa.concat_tables(some)


def _merged(runs: list[list[tuple[int, int]]], reader: Any, ticks: Ticks, rows: int) -> Iterator[pa.Table]:
    """All rows, from some time to another, between which about ``rows`` lie."""
    lasts = sorted(last for batches in runs for _, last in batches)
    every = max(1, rows * len(lasts) // max(1, sum(reader.get_batch(batches[0][0]).num_rows * len(batches)
                                                   for batches in runs)))
    read = [_Run(batches, reader, ticks) for batches in runs]
    for end in dict.fromkeys([*lasts[every - 1::every], *lasts[-1:]]):
        some = [part for run in read for part in run.upto(end)]
        if some:
            table = pa.concat_tables(some)
            places = pa.array(stable_order(ticks(table).view(np.uint64) ^ np.uint64(1 << 63)))
            yield take_rows(table, places)


class _Run:
    """The rows of a sorted run that have not been taken."""

    def __init__(self, batches: list[tuple[int, int]], reader: Any, ticks: Ticks):
        self._batches, self._reader, self._ticks = batches, reader, ticks
        self._next = 0
        self._left: pa.Table | None = None

    def upto(self, end: int) -> Iterator[pa.Table]:
        """Take the rows up to time ``end``."""
        behind = bisect_left(self._batches, end + 1, key=lambda batch: batch[1])  # the first batch that ends later
        if self._left is not None and self._next <= behind:
            yield self._left
            self._left = None
        while self._next < behind:
            yield self._batch()
        if self._left is None and self._next < len(self._batches):
            self._left = self._batch()
        if self._left is not None:
            n = int(np.searchsorted(self._ticks(self._left), end, side="right"))
            if n:
                yield self._left.slice(0, n)
                self._left = self._left.slice(n)

    def _batch(self) -> pa.Table:
        self._next += 1
        return pa.Table.from_batches([self._reader.get_batch(self._batches[self._next - 1][0])])
