from pathlib import Path

import pyarrow as pa
import pytest

from splitjoin import SchemaError
from splitjoin.lang.field import range_of
from splitjoin.tables import write_table
from splitjoin.tables.schema_text import parse_schema


def test_types_null_and_ranges() -> None:
    schema = parse_schema("x:int32 0..999, d : decimal(9, 2)? -5..100,b:binary[4], u:uint64,t:timestamp[us, UTC] 0..5,"
                          "q:duration[s]?")
    assert schema.types == [pa.int32(), pa.decimal128(9, 2), pa.binary(4), pa.uint64(), pa.timestamp("us", "UTC"),
                            pa.duration("s")]
    assert [f.nullable for f in schema] == [False, True, False, False, False, True]
    assert parse_schema("x:int, y:BIGINT?, z:double").types == [pa.int32(), pa.int64(), pa.float64()]
    assert [range_of(f) for f in schema] == [(0, 999), (-5, 100), None, None, (0, 5), None]


@pytest.mark.parametrize("name", ["r.parquet", "r.csv", "r.arrow", "r.feather"])
def test_files_of_every_format(name: str, tmp_path: Path) -> None:
    write_table(pa.table({"x": [1, 2]}), tmp_path / name)
    assert parse_schema(str(tmp_path / name)).types == [pa.int64()]


@pytest.mark.parametrize(("text", "message"), [
    ("x", "the schema 'x' cannot be read at 'x'; write 'name:type, …'"),
    ("x:int99", r"column 'x' has the unknown type 'int99' \(did you mean 'int8'\?\); known are int8, .* decimal"),
    ("x:decimal(50, 2)", r"unknown type 'decimal\(50, 2\)'"), ("x:int32 ?? 0..1", r"unknown type 'int32 \?'"),
    ("x:int8 0..128", "the range of field 'x' must lie between -128 and 127, its least value first, not from 0 to 128"),
    ("x:int8 5..1", "its least value first, not from 5 to 1"),
    (f"x:int32 0..{'9' * 5000}", "column 'x' has the unknown type 'int32 0\\.\\.9"),
    (f"x:decimal({'9' * 5000}, 2)", r"column 'x' has the unknown type 'decimal\(9"),
    (f"x:binary[{'9' * 5000}]", r"column 'x' has the unknown type 'binary\[9"),
    ("x:string 0..1", "field 'x' of type string must not have min or max"),
])
def test_wrong_schemas(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        parse_schema(text)
