import numpy as np
import pyarrow as pa
import pytest
from splitjoin import SchemaError
from splitjoin.output import gather, output_columns, output_schema

R = pa.table({"id": [1, 2, 3], "x": ["a", "b", None]})
S = pa.table({"id": [7, 8], "a": [True, False]})


def names(select: list[str] | None = None) -> list[str]:
    return [c.name for c in output_columns(R.schema, S.schema, select)]


def test_all_of_r_then_all_of_s_with_suffixes_where_names_meet() -> None:
    assert names() == ["id_r", "x", "id_s", "a"]


def test_select_takes_names_in_order() -> None:
    assert names(["a", "id_r", "s.id", "r.x"]) == ["a", "id_r", "id_s", "x"]
    assert names([]) == []


def test_rows_are_gathered_by_row_id() -> None:
    columns = output_columns(R.schema, S.schema)
    found = gather(columns, R, S, np.array([2, 0]), np.array([1, 1]))
    assert found.schema == output_schema(columns)
    assert found.to_pylist() == [{"id_r": 3, "x": None, "id_s": 8, "a": False},
                                 {"id_r": 1, "x": "a", "id_s": 8, "a": False}]


def test_no_rows_keep_the_schema() -> None:
    none = np.array([], np.int64)
    assert gather(output_columns(R.schema, S.schema), R, S, none, none).schema.names == names()


def test_field_metadata_types_and_nullability_stay() -> None:
    r = pa.schema([pa.field("x", pa.dictionary(pa.int8(), pa.string()), nullable=False, metadata={"k": "v"})])
    (column,) = output_columns(r, pa.schema([]))
    assert output_schema([column]).equals(r, check_metadata=True)


@pytest.mark.parametrize(("select", "message"), [
    (["idr"], r"the result has no column 'idr' \(did you mean 'id_r'\?\); its columns are id_r, x, id_s, a"),
    (["id"], "the result has no column 'id'"),
    ("x", r"select must be a list of column names, not the text 'x'; write \['x'\]"),
    (["x", "r.x"], "result columns must have distinct names, but 'x' would occur more than once; rename"),
])
def test_wrong_select(select: list[str], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        output_columns(R.schema, S.schema, select)


def test_a_suffixed_name_may_collide_again() -> None:
    r, s = pa.schema([("id", pa.int8()), ("id_s", pa.int8())]), pa.schema([("id", pa.int8())])
    with pytest.raises(SchemaError, match="distinct names, but 'id_s' would occur more than once"):
        output_columns(r, s)
    assert [c.name for c in output_columns(r, s, ["r.id", "s.id"])] == ["id_r", "id_s"]
