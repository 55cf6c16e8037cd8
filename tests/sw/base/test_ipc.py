"""Arrow IPC from outside: what is read holds what was written, in all types."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest

from splitjoin.base.ipc import read_ipc_stream, validated
from splitjoin.tables.inputs import table_or_files as as_rows

UNION = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])])


@pytest.mark.parametrize("values", [
    UNION, UNION.slice(1), pa.ListArray.from_arrays([0, 2], UNION), pa.StructArray.from_arrays([UNION], ["u"]),
    pa.UnionArray.from_dense(pa.array([1, 0], pa.int8()), pa.array([0, 0], pa.int32()),
                             [pa.array([1]), pa.array(["a"])]),
], ids=lambda values: str(values.type)[:20])
def test_unions_are_copied_with_their_values(values: pa.Array) -> None:
    batch = pa.record_batch({"x": values, "y": range(len(values))})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
        writer.write_batch(batch)
    found = read_ipc_stream(sink.getvalue())
    assert found.to_pylist() == 2 * batch.to_pylist()
    assert found.nbytes > 0
    again = as_rows(found, "r")
    assert isinstance(again, pa.Table)
    assert again.to_pylist() == found.to_pylist()
    one = validated(pa.ipc.open_stream(sink.getvalue()).read_next_batch())
    assert one.to_pylist() == batch.to_pylist()
