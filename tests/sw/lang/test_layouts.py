"""Layouts of Arrow columns: rows taken from chunks as Arrow takes them; what is encoded holds the same values."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.lang.layouts import decoded, encoded, take
from tests.support.sampling import examples

VALUES: dict[str, list[Any]] = {
    "int64": [1, None, 3, 4, 5, 6, 7], "string": ["a", "", None, "dd", "e", "a", "g"],
    "bool": [True, None, False, True, True, False, None],
}


@settings(max_examples=examples(60))
@given(st.sampled_from([*VALUES, "string_view"]), st.lists(st.integers(0, 7), max_size=4),
       st.lists(st.integers(-1, 6), max_size=12), st.booleans())
def test_rows_are_taken_as_arrow_takes_them(name: str, cuts: list[int], rows: list[int], sort: bool) -> None:
    values = VALUES["string" if name == "string_view" else name]
    ends = [0, *sorted(cuts), len(values)]
    chunks = [pa.array(values[low:high], name) for low, high in pairwise(ends)]  # some are empty
    at = pa.array([None if row < 0 else row for row in (sorted(rows) if sort else rows)], pa.int64())
    for copied in (0, 8):  # chunk by chunk, or as Arrow does
        found = take(pa.chunked_array(chunks), at, copied)
        found.validate(full=True)
        assert found.type == name
        assert found.to_pylist() == [None if row is None else values[row] for row in at.to_pylist()]


#: Arrays of it may live as long as the process.
POOL = pa.proxy_memory_pool(pa.default_memory_pool())
DECIMALS = pa.array(np.arange(10_000)).cast(pa.string())


@pytest.mark.parametrize("chunk", [
    DECIMALS, DECIMALS.cast(pa.int64()), DECIMALS.cast(pa.string_view()), DECIMALS.dictionary_encode(),
    pa.RunEndEncodedArray.from_arrays(np.arange(1, 10_001), DECIMALS),
], ids=lambda chunk: str(chunk.type))
@pytest.mark.parametrize("chunks", [1, 100])
def test_a_few_rows_copy_no_column(chunk: pa.Array, chunks: int) -> None:
    """Arrow copied all of the column for each slice of the rows that `to=` writes."""
    column = pa.chunked_array([chunk] * chunks)
    at, want = len(column) // 2, chunk.to_pylist()
    rows = [(at + n) % 10_000 for n in range(-100, 100)]
    before = pa.default_memory_pool()
    used = POOL.max_memory()
    pa.set_memory_pool(POOL)
    try:
        found = take(column, pa.array([at + n for n in range(-100, 100)]))
    finally:
        pa.set_memory_pool(before)
    assert found.to_pylist() == [want[row] for row in rows]
    assert POOL.max_memory() - used < 40_000


@pytest.mark.long
def test_more_text_than_an_array_holds() -> None:
    """Two GiB of text are the most of one array of Arrow's string type."""
    column = pa.chunked_array([["x" * 2**20]] * 2)
    for rows in ([0] * 2100, list(np.arange(2100) % 2)):
        found = take(column, pa.array(rows))
        assert found.num_chunks > 1 and len(found) == 2100


NESTED = pa.array([[1], None, [2, 3]])


@pytest.mark.parametrize("column", [
    pa.array(["a", None, "a"]).dictionary_encode(), pa.DictionaryArray.from_arrays([1, None, 0], pa.array([None, "a"])),
    pa.DictionaryArray.from_arrays([0, 2, None], NESTED), pa.RunEndEncodedArray.from_arrays([1, 2, 3], NESTED),
    pa.RunEndEncodedArray.from_arrays([2, 5], pa.array(["a", "b"], pa.string_view())).slice(1, 3),
    pa.array([5, 6, 5]).dictionary_encode(),
], ids=lambda column: str(column.type))
def test_decoded(column: pa.Array) -> None:
    found = decoded(pa.chunked_array([column, column.slice(1)]))
    found.validate(full=True)
    assert found.type == column.type.value_type
    assert found.to_pylist() == [*column.to_pylist(), *column.to_pylist()[1:]]


@pytest.mark.parametrize("type_", [
    pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.uint8(), pa.string_view(), ordered=True),
    pa.run_end_encoded(pa.int16(), pa.string()),
], ids=str)
def test_encoded_again(type_: pa.DataType) -> None:
    """With more values than the numbers of one dictionary, and with more runs than those of one array."""
    texts = [None, *map(str, range(40_000))] if pa.types.is_run_end_encoded(type_) else [None, *map(str, range(300))]
    column = pa.chunked_array([pa.array(texts, type_.value_type)])
    found = encoded(column, type_)
    found.validate(full=True)
    assert found.type == type_ and decoded(found).to_pylist() == texts
    assert encoded(column.slice(0, 0), type_).type == type_


@pytest.mark.parametrize("ordered", [False, True])
def test_a_dictionary_keeps_its_order_and_the_values_that_no_row_has(ordered: bool) -> None:
    type_ = pa.dictionary(pa.int8(), pa.string(), ordered)
    known = pa.array(["small", "large", "unused"])
    found = encoded(pa.chunked_array([["large", None], ["small"]]), type_, known)
    assert (found.type, found.to_pylist()) == (type_, ["large", None, "small"])
    assert all(chunk.dictionary.equals(known) for chunk in found.chunks)
    other = encoded(pa.chunked_array([["large", "huge"]]), type_, known)  # "huge" is not among them
    assert other.to_pylist() == ["large", "huge"]
