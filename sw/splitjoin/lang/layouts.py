"""Layouts of Arrow columns: rows taken from chunks, and dictionaries and runs, decoded and encoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

#: Rows of a run, on average, from which on a slice of a column takes less than a copy.
_RUN = 4096
#: Rows that are compared with their neighbours at once.
_COMPARED = 1 << 13
#: Neighbours in the sample that tells whether there may be such runs, and how many may not follow each other.
_SAMPLE, _EXCEPTIONS = 64, 4
#: The types of the same values that all of Arrow's kernels take.
_LARGE = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


def take(column: pa.ChunkedArray, rows: pa.Array, copied: int = 8) -> pa.ChunkedArray:
    """``column.take(rows)``, also for the types that Arrow cannot take from; NULL in ``rows`` gives NULL.

    Arrow copies the whole column first, so few rows of a long column are taken from the chunks that they lie in.
    ``copied``: rows that Arrow copies in the time in which one is taken so.
    """
    type_ = column.type
    if pa.types.is_run_end_encoded(type_) or type_ in _LARGE:
        values = pa.chunked_array(_taken(column, rows, copied), _taken_type(type_))
        return encoded(values, type_) if pa.types.is_run_end_encoded(type_) else values.cast(type_)
    try:
        return pa.chunked_array(_taken(column, rows, copied), type_)
    except pa.ArrowInvalid:  # more text than the offsets of one array can count
        if len(rows) < 2:
            raise
        half = len(rows) // 2
        halves = (take(column, part, copied) for part in (rows.slice(0, half), rows.slice(half)))
        return pa.chunked_array([chunk for part in halves for chunk in part.chunks], type_)


def take_rows(table: pa.Table, rows: pa.Array | npt.NDArray[np.int64]) -> pa.Table:
    """``table.take(rows)``, likewise."""
    places = rows if isinstance(rows, pa.Array) else pa.array(rows)
    return pa.table([take(column, places) for column in table.columns], schema=table.schema)


def taker(rows: npt.NDArray[np.int64]) -> Callable[[pa.ChunkedArray], pa.ChunkedArray]:
    """Takes the ``rows`` of a column, −1 for NULL: without a copy where long runs of them follow each other."""
    n = len(rows)
    if n and rows[0] >= 0 and rows[-1] >= 0 and _has_runs(rows):
        parts = ((at, rows[at:at + _COMPARED + 1]) for at in range(0, n, _COMPARED))  # which stay in a cache
        ends = np.concatenate([np.flatnonzero(part[1:] != part[:-1] + 1) + (at + 1) for at, part in parts])
        if not len(ends) or (len(ends) * _RUN <= n and rows.min() >= 0):
            runs = [(int(rows[begin]), end - begin) for begin, end in pairwise([0, *ends.tolist(), n])]
            return lambda column: pa.chunked_array(
                [chunk for run in runs for chunk in column.slice(*run).chunks], column.type)
    places = indices(rows)
    if n and rows[0] < 0 and int(rows.max()) < 0:
        return lambda column: pa.chunked_array([pa.nulls(n, column.type)]) if pa.types.is_primitive(
            column.type) else take(column, places)
    return lambda column: take(column, places)


def _has_runs(rows: npt.NDArray[np.int64]) -> bool:
    """True if a sample of ``rows`` has neighbours that follow each other, with few exceptions."""
    some = np.arange(0, len(rows) - 1, max(1, len(rows) // _SAMPLE))
    return int(np.count_nonzero(rows[some + 1] - rows[some] != 1)) <= _EXCEPTIONS


def indices(rows: npt.NDArray[np.int64]) -> pa.Array:
    """Row ids as what `take` takes: NULL, which gives NULL, where they are −1."""
    return pa.array(rows, mask=rows < 0 if rows.min(initial=0) < 0 else None)


def _taken(column: pa.ChunkedArray, rows: pa.Array, copied: int) -> list[pa.Array]:
    if not len(rows):
        return []
    if column.num_chunks == 1:
        return [_from_array(column.chunk(0), rows)]
    if _taken_type(column.type) == column.type and len(rows) * copied >= len(column):
        return list(_within(column, rows).chunks)
    at: npt.NDArray[np.int64] = rows.fill_null(0).to_numpy()
    ends = np.cumsum([len(chunk) for chunk in column.chunks])
    chunks = np.searchsorted(ends, at, side="right")
    chunks[lacking := rows.is_null().to_numpy(zero_copy_only=False)] = 0
    local = at - np.concatenate([[0], ends[:-1]])[chunks]
    if (chunks[1:] >= chunks[:-1]).all():
        return list(_chunk_by_chunk(column, chunks, local, lacking))
    # Radix sort takes 16 bits.
    order = np.argsort(chunks.astype(np.uint16) if len(ends) <= 2**16 else chunks, kind="stable")
    parts = _chunk_by_chunk(column, chunks[order], local[order], lacking[order])
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return [pa.concat_arrays(parts).take(pa.array(back))]


def _chunk_by_chunk(column: pa.ChunkedArray, chunks: npt.NDArray[np.int64], local: npt.NDArray[np.int64],
                    lacking: npt.NDArray[np.bool_]) -> Iterator[pa.Array]:
    """The rows ``local`` of ``chunks``, whose numbers do not decrease; NULL where ``lacking``. All are (n,)."""
    cuts = [0, *(np.flatnonzero(chunks[1:] != chunks[:-1]) + 1).tolist(), len(chunks)]
    for low, high in pairwise(cuts):
        yield _from_array(column.chunk(int(chunks[low])), pa.array(local[low:high], mask=lacking[low:high]))


def _taken_type(type_: pa.DataType) -> pa.DataType:
    """The type of rows that are taken from a column of ``type_``, before they get its layout again."""
    if pa.types.is_run_end_encoded(type_):
        return _taken_type(type_.value_type)
    return _LARGE.get(type_, type_)


def _from_array(array: pa.Array, rows: pa.Array) -> pa.Array:
    """The ``rows`` of ``array``, of the type `_taken_type`."""
    type_ = array.type
    if pa.types.is_run_end_encoded(type_):
        at = np.searchsorted(array.run_ends.to_numpy(), array.offset + rows.fill_null(0).to_numpy(), side="right")
        return _from_array(array.values, pa.array(at, mask=rows.is_null().to_numpy(zero_copy_only=False)))
    if type_ in _LARGE:  # views have 16 bytes each, and lead to the text in further buffers
        valid, views, *texts = array.buffers()
        taken = _within(pa.Array.from_buffers(pa.binary(16), len(array), [valid, views], offset=array.offset), rows)
        return pa.Array.from_buffers(type_, len(taken), [*taken.buffers(), *texts], offset=taken.offset
                                     ).cast(_LARGE[type_])
    return _within(array, rows)


def _within(values: Any, rows: pa.Array) -> Any:
    """The ``rows`` of ``values``, an array or several, which has them: to look whether it does takes half the time."""
    return pc.take(values, rows, boundscheck=False)


def empty_table(schema: pa.Schema) -> pa.Table:
    """A table without rows, also for types of which Arrow makes no array."""
    return pa.Table.from_arrays([pa.chunked_array([], field.type) for field in schema], schema=schema)


def is_encoded(type_: pa.DataType) -> bool:
    """True if columns of ``type_`` hold their values in a dictionary or in runs."""
    return bool(pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_))


def decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """``column`` without dictionaries and runs: each value as often as it occurs."""
    while is_encoded(column.type):
        column = pa.chunked_array([part for chunk in column.chunks for part in _decoded(chunk).chunks],
                                  column.type.value_type)
    return column


def _decoded(array: pa.Array) -> pa.ChunkedArray:
    if pa.types.is_dictionary(array.type):
        return take(pa.chunked_array([array.dictionary]), array.indices)
    # Arrow decodes neither runs of views nor of lists.
    found = _from_array(array, pa.array(np.arange(len(array))))
    return pa.chunked_array([found.cast(array.type.value_type)])


def encoded(column: pa.ChunkedArray, type_: pa.DataType, dictionary: pa.Array | None = None) -> pa.ChunkedArray:
    """``column``, which holds values, as the run-end encoded or dictionary ``type_``.

    Each value gets a run, as rows of a result seldom repeat. A ``dictionary`` that has all values stays as it is, if
    ``type_`` has enough numbers for it; else each array gets one of its own.
    """
    if not column.num_chunks:
        return pa.chunked_array([], type_)
    if pa.types.is_run_end_encoded(type_):
        return pa.chunked_array([part for chunk in column.chunks for part in _with_runs(chunk, type_)], type_)
    if dictionary is not None and len(dictionary) <= _most(type_.index_type):
        kernel = _LARGE.get(dictionary.type, dictionary.type)
        try:
            at = pc.index_in(column.cast(kernel), value_set=dictionary.cast(kernel), skip_nulls=True)
        except pa.ArrowNotImplementedError:  # as for lists
            at = pa.chunked_array([pa.nulls(len(column))])
        if at.null_count == column.null_count:
            return pa.chunked_array([pa.DictionaryArray.from_arrays(
                chunk.cast(type_.index_type), dictionary, ordered=type_.ordered) for chunk in at.chunks], type_)
    return pa.chunked_array([part for chunk in column.chunks for part in _with_dictionary(chunk, type_)], type_)


def _with_runs(values: pa.Array, type_: pa.DataType) -> Iterator[pa.Array]:
    most = _most(type_.run_end_type) - 1
    for at in range(0, len(values), most):
        part = values.slice(at, most)
        yield pa.RunEndEncodedArray.from_arrays(pa.array(np.arange(1, len(part) + 1), type_.run_end_type), part, type_)


def _with_dictionary(values: pa.Array, type_: pa.DataType) -> Iterator[pa.Array]:
    """``values`` as arrays with the dictionary ``type_``, halved until its numbers suffice for the values of each."""
    kernel = _LARGE.get(type_.value_type, type_.value_type)
    try:
        made = values.cast(kernel).dictionary_encode()
    except pa.ArrowNotImplementedError:  # each value is its own entry
        rows = pa.array(np.arange(len(values)), mask=values.is_null().to_numpy(zero_copy_only=False))
        made = pa.DictionaryArray.from_arrays(rows, values)
    if len(made.dictionary) > _most(type_.index_type):
        half = len(values) // 2
        yield from _with_dictionary(values.slice(0, half), type_)
        yield from _with_dictionary(values.slice(half), type_)
        return
    yield pa.DictionaryArray.from_arrays(made.indices.cast(type_.index_type), made.dictionary.cast(type_.value_type),
                                         ordered=type_.ordered)


def _most(type_: pa.DataType) -> int:
    """The number of values from 0 that the integer ``type_`` holds."""
    return int(2 ** (type_.bit_width - pa.types.is_signed_integer(type_)))
