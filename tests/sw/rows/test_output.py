from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from splitjoin import SchemaError
from splitjoin.rows.output import ResultNames, gather, output_columns, output_schema

R = pa.table({"id": [1, 2, 3], "x": ["a", "b", None]})
S = pa.table({"id": [7, 8], "a": [True, False]})


def names(select: Iterable[str] | None = None) -> list[str]:
    return [c.name for c in output_columns(R.schema, S.schema, ResultNames.of(select))]


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


@pytest.mark.parametrize("values", [
    pa.array(["a", "bb", None], pa.string_view()), pa.array([b"a", b"bb", None], pa.binary_view()),
    pc.run_end_encode(pa.array([1, 1, None])), pc.run_end_encode(pa.array(["a", "bb", None]), run_end_type=pa.int16()),
    pc.run_end_encode(pa.array(["z", "a", "a", "bb", None])).slice(2),
    pa.RunEndEncodedArray.from_arrays([2, 3], pa.array(["a", None], pa.string_view())),
], ids=str)
@pytest.mark.parametrize("n", [0, 1, 40_000])
def test_types_that_arrow_cannot_take_from(values: pa.Array, n: int) -> None:
    r = pa.table({"v": pa.chunked_array([values, values])})
    rows = np.arange(n) * 7 % 6
    found = gather(output_columns(r.schema, S.schema), r, S, rows, rows % 2)
    found.validate(full=True)
    assert found.schema.field("v").type == values.type
    plain = values.to_pylist() * 2
    assert found.column("v").to_pylist() == [plain[i] for i in rows]


def test_select_without_regard_to_case_and_from_a_generator() -> None:
    assert names(["A", "ID_R", "S.Id", "R.x"]) == ["a", "id_r", "id_s", "x"]
    assert names(name for name in ("a", "x")) == ["a", "x"]
    r = pa.schema([("x", pa.int8()), ("X", pa.int8())])
    assert [c.name for c in output_columns(r, S.schema, ResultNames.of(["X"]))] == ["X"]


@pytest.mark.parametrize(("r", "name", "message"), [
    (["x", "x_r"], "x_r", "'x_r' is ambiguous: it could be r.x or r.x_r; write which"),
    (["y", "r.y"], "r.y", "'r.y' is ambiguous: it could be r.y or r.r.y"),
    (["y", "Y", "q"], "R.Y", "'R.Y' is ambiguous: it could be r.y or r.Y"),
])
def test_ambiguous_select(r: list[str], name: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        output_columns(pa.schema([(n, pa.int8()) for n in r]), pa.schema([("x", pa.int8())]), ResultNames.of([name]))


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
    (5, "select must be a list of column names, or a mapping of them to new ones, not 5"),
    ([1], "select must be a list of column names, but it holds 1"),
    ([None], "select must be a list of column names, but it holds None"),
    ({"x": ""}, "select must map names of columns to new names, or None, but maps 'x' to ''"),
    ({"x": 3}, "select must map names of columns to new names, or None, but maps 'x' to 3"),
    ({"x": "a", "r.id": "a"}, "result columns must have distinct names, but 'a' would occur more than once; rename"),
    (["x", "r.x"], "result columns must have distinct names, but 'x' would occur more than once; rename"),
])
def test_wrong_select(select: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        output_columns(R.schema, S.schema, ResultNames.of(select))


def test_select_renames() -> None:
    renamed = output_columns(R.schema, S.schema, ResultNames.of({"s.id": "other", "X": "y", "a": None}))
    assert [(c.name, c.side, c.source) for c in renamed] == [("other", "s", "id"), ("y", "r", "x"), ("a", "s", "a")]
    assert output_schema(renamed).names == ["other", "y", "a"]


@pytest.mark.parametrize(("suffixes", "expected"), [
    (("_x", "_y"), ["id_x", "x", "id_y", "a"]), (("", "_y"), ["id", "x", "id_y", "a"]),
    ([None, "2"], ["id", "x", "id2", "a"]), (None, ["id_r", "x", "id_s", "a"])])
def test_suffixes(suffixes: Any, expected: list[str]) -> None:
    """As in pandas: only of names that both tables have."""
    chosen = ResultNames.of(None, suffixes)
    assert [c.name for c in output_columns(R.schema, S.schema, chosen)] == expected
    chosen = ResultNames.of([expected[2]], suffixes)
    assert [c.name for c in output_columns(R.schema, S.schema, chosen)] == expected[2:3]


@pytest.mark.parametrize("suffixes", ["_x", ("_x",), ("_x", "_y", "_z"), 3, {"r": "_x"}, (1, 2)])
def test_wrong_suffixes(suffixes: Any) -> None:
    with pytest.raises(SchemaError, match=r"suffixes must be two texts, .* such as \('_x', '_y'\), not "):
        ResultNames.of(None, suffixes)


def test_suffixes_that_leave_names_alike() -> None:
    with pytest.raises(SchemaError, match=r"'id' would occur more than once; rename them with select=.*, or give suff"):
        output_columns(R.schema, S.schema, ResultNames.of(None, (None, "")))


def test_a_suffixed_name_may_collide_again() -> None:
    r, s = pa.schema([("id", pa.int8()), ("id_s", pa.int8())]), pa.schema([("id", pa.int8())])
    with pytest.raises(SchemaError, match="distinct names, but 'id_s' would occur more than once"):
        output_columns(r, s)
    assert [c.name for c in output_columns(r, s, ResultNames.of(["r.id", "s.id"]))] == ["id_r", "id_s"]
