import pyarrow as pa
import pytest

from splitjoin import SchemaError
from splitjoin.lang.schema import Column, Schema, suggest
from splitjoin.lang.types import (
    BINARY,
    BOOL,
    DATE,
    FLOAT32,
    FLOAT64,
    STRING,
    Binary,
    Decimal,
    Duration,
    Int,
    Opaque,
    TimeOfDay,
    Timestamp,
    Type,
    finer,
    from_arrow,
)

ODD = pa.map_(pa.int8(), pa.int8())


@pytest.mark.parametrize(("arrow", "type_", "name"), [
    (pa.int8(), Int(8), "int8"), (pa.int64(), Int(64), "int64"), (pa.float32(), FLOAT32, "float32"),
    (pa.float64(), FLOAT64, "float64"), (pa.bool_(), BOOL, "bool"), (pa.date32(), DATE, "date"),
    (pa.timestamp("ms"), Timestamp("ms"), "timestamp[ms]"),
    (pa.timestamp("us", "UTC"), Timestamp("us", "UTC"), "timestamp[us, UTC]"),
    (pa.string(), STRING, "string"), (pa.large_string(), STRING, "string"), (pa.string_view(), STRING, "string"),
    (pa.dictionary(pa.int8(), pa.string()), STRING, "string"),
    (pa.uint8(), Int(8, False), "uint8"), (pa.float16(), FLOAT32, "float32"),
    (pa.date64(), DATE, "date"), (pa.decimal128(5, 2), Decimal(5, 2), "decimal(5, 2)"),
    (pa.decimal32(5, 2), Decimal(5, 2), "decimal(5, 2)"), (pa.decimal256(38, 0), Decimal(38, 0), "decimal(38, 0)"),
    (pa.decimal256(39, 0), Opaque("decimal256(39, 0)"), "decimal256(39, 0)"),
    (pa.time32("ms"), TimeOfDay("ms"), "time[ms]"), (pa.time64("ns"), TimeOfDay("ns"), "time[ns]"),
    (pa.uuid(), Binary(16), "binary[16]"),
    (pa.duration("s"), Duration("s"), "duration[s]"), (pa.binary(), BINARY, "binary"),
    (pa.large_binary(), BINARY, "binary"), (pa.binary_view(), BINARY, "binary"), (pa.binary(4), Binary(4), "binary[4]"),
    (pa.list_(pa.int8()), Opaque("list<item: int8>"), "list<item: int8>"),
    (pa.dictionary(pa.int8(), pa.int64()), Int(64), "int64"),
    (pa.run_end_encoded(pa.int32(), pa.string()), STRING, "string"),
    (pa.dictionary(pa.int8(), pa.list_(pa.int8())),
     Opaque("dictionary<values=list<item: int8>, indices=int8, ordered=0>"),
     "dictionary<values=list<item: int8>, indices=int8, ordered=0>"),
])
def test_types_from_arrow(arrow: pa.DataType, type_: Type, name: str) -> None:
    assert from_arrow(arrow) == type_
    assert str(type_) == name


def test_the_finer_of_two_units() -> None:
    assert finer("s", "ns") == finer("ns", "us") == "ns"
    assert finer("ms", "ms") == "ms"


def test_columns_of_a_schema() -> None:
    schema = Schema.from_arrow("r", pa.schema([pa.field("x", pa.int8(), nullable=False), ("y", pa.null())]))
    assert list(schema) == [Column("x", Int(8), False), Column("y", Opaque("null"), True)]
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
    ("odd", r"column s.odd has type map<.*>, which a join condition cannot use; it may hold integer, .* \(cast it"),
])
def test_wrong_names(name: str, message: str) -> None:
    schema = Schema.from_arrow("s", pa.schema([("key", pa.int8()), ("KEY", pa.int8()), ("odd", ODD)]))
    with pytest.raises(SchemaError, match=message):
        schema[name]


def test_an_unusable_column_can_still_be_found() -> None:
    assert Schema.from_arrow("s", pa.schema([("odd", ODD)])).find("odd").type == Opaque(str(ODD))


def test_names_must_be_unique() -> None:
    with pytest.raises(SchemaError, match="column names of stream r must be unique, but 'x' occurs more than once"):
        Schema.from_arrow("r", pa.schema([("x", pa.int8()), ("x", pa.int8())]))


def test_an_empty_schema_says_so() -> None:
    with pytest.raises(SchemaError, match=r"stream r has no column 'x'; its columns are \(none\)"):
        Schema.from_arrow("r", pa.schema([])).find("x")


def test_suggestions() -> None:
    assert suggest("colum", ["column", "row"]) == " (did you mean 'column'?)"
    assert suggest("zzz", ["column"]) == ""
    assert suggest("a", ["ts; a"]) == " (the values of a CSV file must be separated by commas, not by ';')"
    assert suggest("a", ["ts\ta"]) == " (the values of a CSV file must be separated by commas, not by '\\t')"
    assert suggest("b", ["ts;a"]) == ""
