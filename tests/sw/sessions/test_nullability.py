"""Batches of one stream may differ in what they declare nullable, and leave types to the schema."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import splitjoin
from splitjoin import InputError, SchemaError

STRICT = pa.schema([pa.field("t", pa.int64(), False), pa.field("x", pa.int32(), False)])
LOOSE = pa.schema([field.with_nullable(True) for field in STRICT])
WANT = [{"t_r": t, "x_r": t, "t_s": t, "x_s": t} for t in range(1, 7)]


def batches(first: pa.Schema, second: pa.Schema) -> list[pa.Table]:
    """Three batches; the one in the middle declares what ``second`` declares."""
    return [pa.table({"t": [t, t + 1], "x": [t, t + 1]}, schema=schema)
            for t, schema in ((1, first), (3, second), (5, first))]


@pytest.mark.parametrize("query_schema", [STRICT, LOOSE])
@pytest.mark.parametrize(("first", "second"), [(STRICT, LOOSE), (LOOSE, STRICT)])
def test_batches_that_declare_other_nullability(query_schema: pa.Schema, first: pa.Schema, second: pa.Schema) -> None:
    query = splitjoin.query(query_schema, query_schema, on="r.x = s.x", window="RANGE 5", time="t")
    with splitjoin.share(query_schema, query_schema, time="t") as streams, splitjoin.open(
            query, device="golden") as session:
        reader = streams.query(on="r.x = s.x", window="RANGE 5", device="golden")
        for hub in streams, session:
            for batch in batches(first, second):
                hub.push_r(batch)
            for batch in batches(second, first):
                hub.push_s(batch)
            hub.close_r()
            hub.close_s()
        assert reader.poll().to_pylist() == WANT
        assert session.flush().to_pylist() == WANT


def test_null_where_the_schema_has_none_is_refused_outside_the_condition_too() -> None:
    schema = pa.schema([pa.field("t", pa.int64(), False), pa.field("note", pa.string(), False)])
    batch = pa.table({"t": [1, 2, 3], "note": pa.chunked_array([["a"], ["b", None]])})
    query = splitjoin.query(schema, schema, on="r.t = s.t", window="ROWS 5")
    with splitjoin.open(query, device="golden") as session, splitjoin.share(schema, schema, time="t") as streams:
        for hub in session, streams:
            with pytest.raises(InputError, match=r"^column s\.note must not hold NULL, as the schema says, but row 2 "
                                                 r"of a batch does; declare the column nullable in the schema, or "
                                                 r"leave such rows out$"):
                hub.push_s(batch)
            hub.push_s(batch.slice(0, 2))


def test_lists_of_a_dict_get_the_types_of_the_schema() -> None:
    schema = pa.schema([("t", pa.timestamp("s")), ("x", pa.int32())])
    query = splitjoin.query(schema, schema, on="r.x = s.x", window="ROWS 5")
    with splitjoin.open(query, device="golden") as session:
        session.push_r({"x": [1, None, 2.0], "t": [datetime(2020, 1, day) for day in (1, 2, 3)]})
        for column, values in ("x", [1.5]), ("x", [1 << 40]), ("x", ["1"]), ("t", [datetime(2020, 1, 1, 1, 1, 1, 5)]):
            with pytest.raises(SchemaError, match=f"the column s.{column} must hold values of the type"):
                session.push_s({"t": [None], "x": [None]} | {column: values})
        session.push_s({"t": [None], "x": range(2, 3)})
        assert [row["x_r"] for row in session.flush().to_pylist()] == [2]


@pytest.mark.parametrize(("value", "type_"), [
    (Decimal("1.5"), pa.int32()), (1.5, pa.timestamp("s")), (5, pa.duration("s")), ([1.5], pa.list_(pa.int32())),
    ({"a": 1.5}, pa.struct({"a": pa.int64()})), ({"b": 1}, pa.struct({"a": pa.int64()})), (70000.0, pa.float16()),
    (datetime(2020, 1, 1, 5), pa.date32()), (datetime(2020, 1, 1, tzinfo=UTC), pa.timestamp("us")),
    (datetime(2020, 1, 1), pa.timestamp("us", "UTC")),
])
def test_values_of_lists_that_a_type_would_change_are_refused(value: Any, type_: pa.DataType) -> None:
    schema = pa.schema({"x": pa.int32(), "v": type_})
    with (splitjoin.open(splitjoin.query(schema, schema, on="r.x = s.x", window="ROWS 5"), device="golden") as session,
          pytest.raises(SchemaError, match=r"the column r\.v must hold values of the type .*, but: .* is none")):
        session.push_r({"x": [1], "v": [value]})


@pytest.mark.parametrize(("value", "type_"), [
    (0.1, pa.float32()), (float("nan"), pa.float64()), (1, pa.decimal128(5, 2)), ([1, None], pa.list_(pa.int8())),
    ({"a": 1}, pa.struct({"a": pa.int64(), "b": pa.string()})), ({"k": 1}, pa.map_(pa.string(), pa.int32())),
    (datetime(2020, 1, 1, tzinfo=UTC), pa.timestamp("us", "Europe/Vienna")),
    ("a", pa.dictionary(pa.int8(), pa.string())),
])
def test_values_of_lists_that_a_type_holds_are_taken(value: Any, type_: pa.DataType) -> None:
    schema = pa.schema({"x": pa.int32(), "v": type_})
    with splitjoin.open(splitjoin.query(schema, schema, on="r.x = s.x", window="ROWS 5"), device="golden") as session:
        session.push_r({"x": [1], "v": [value]})
        session.push_s({"x": [1], "v": [value]})
        assert str(session.flush()["v_r"].to_pylist()) == str(pa.array([value], type_).to_pylist())  # NaN too
