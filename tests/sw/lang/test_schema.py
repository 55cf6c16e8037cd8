import pyarrow as pa
import pytest
from splitjoin import SchemaError
from splitjoin.lang.schema import Column, Schema, suggest
from splitjoin.lang.types import BOOL, DATE, FLOAT32, FLOAT64, STRING, Int, Opaque, Timestamp, Type, finer, from_arrow


@pytest.mark.parametrize(("arrow", "type_", "name"), [
    (pa.int8(), Int(8), "int8"), (pa.int64(), Int(64), "int64"), (pa.float32(), FLOAT32, "float32"),
    (pa.float64(), FLOAT64, "float64"), (pa.bool_(), BOOL, "bool"), (pa.date32(), DATE, "date"),
    (pa.timestamp("ms"), Timestamp("ms"), "timestamp[ms]"),
    (pa.timestamp("us", "UTC"), Timestamp("us", "UTC"), "timestamp[us, UTC]"),
    (pa.string(), STRING, "string"), (pa.large_string(), STRING, "string"), (pa.string_view(), STRING, "string"),
    (pa.dictionary(pa.int8(), pa.string()), STRING, "string"),
    (pa.uint8(), Opaque("uint8"), "uint8"), (pa.float16(), Opaque("halffloat"), "halffloat"),
    (pa.date64(), Opaque("date64[ms]"), "date64[ms]"),
    (pa.decimal128(5, 2), Opaque("decimal128(5, 2)"), "decimal128(5, 2)"),
    (pa.duration("s"), Opaque("duration[s]"), "duration[s]"), (pa.binary(), Opaque("binary"), "binary"),
    (pa.list_(pa.int8()), Opaque("list<item: int8>"), "list<item: int8>"),
    (pa.dictionary(pa.int8(), pa.int64()), Opaque("dictionary<values=int64, indices=int8, ordered=0>"),
     "dictionary<values=int64, indices=int8, ordered=0>"),
])
def test_types_from_arrow(arrow: pa.DataType, type_: Type, name: str) -> None:
    assert from_arrow(arrow) == type_
    assert str(type_) == name


def test_the_finer_of_two_units() -> None:
    assert finer("s", "ns") == finer("ns", "us") == "ns"
    assert finer("ms", "ms") == "ms"


def test_columns_of_a_schema() -> None:
    schema = Schema.from_arrow("r", pa.schema([pa.field("x", pa.int8(), nullable=False), ("y", pa.uint8())]))
    assert list(schema) == [Column("x", Int(8), False), Column("y", Opaque("uint8"), True)]
    assert schema.names == ["x", "y"]


def test_a_table_column_without_null_is_not_nullable() -> None:
    table = pa.table({"x": [1, None], "y": [1, 2]})
    assert [c.nullable for c in Schema.from_table("s", table)] == [True, False]


def test_exact_names_come_before_those_that_differ_in_case() -> None:
    schema = Schema.from_arrow("r", pa.schema([("x", pa.int8()), ("X", pa.int16()), ("Long", pa.int32())]))
    assert schema["x"].type == Int(8)
    assert schema["X"].type == Int(16)
    assert schema["LONG"].name == "Long"


@pytest.mark.parametrize(("name", "message"), [
    ("kay", r"stream s has no column 'kay' \(did you mean 'key'\?\); its columns are key, KEY, odd"),
    ("z", "stream s has no column 'z'; its columns are key, KEY, odd"),
    ("Key", "column s.Key is ambiguous: it could be 'key' or 'KEY'; write the exact name"),
    ("odd", r"column s.odd has type uint8, which a join condition cannot use; it may hold int8…int64, .* \(cast it"),
])
def test_wrong_names(name: str, message: str) -> None:
    schema = Schema.from_arrow("s", pa.schema([("key", pa.int8()), ("KEY", pa.int8()), ("odd", pa.uint8())]))
    with pytest.raises(SchemaError, match=message):
        schema[name]


def test_an_unusable_column_can_still_be_found() -> None:
    assert Schema.from_arrow("s", pa.schema([("odd", pa.uint8())])).find("odd").type == Opaque("uint8")


def test_names_must_be_unique() -> None:
    with pytest.raises(SchemaError, match="column names of stream r must be unique, but 'x' occurs more than once"):
        Schema.from_arrow("r", pa.schema([("x", pa.int8()), ("x", pa.int8())]))


def test_an_empty_schema_says_so() -> None:
    with pytest.raises(SchemaError, match=r"stream r has no column 'x'; its columns are \(none\)"):
        Schema.from_arrow("r", pa.schema([])).find("x")


def test_suggestions() -> None:
    assert suggest("colum", ["column", "row"]) == " (did you mean 'column'?)"
    assert suggest("zzz", ["column"]) == ""
