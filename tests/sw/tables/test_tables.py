"""The one rule for what joins take: tables in memory of every kind, and files by path, pattern or list."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest

import splitjoin
from splitjoin import InputError, SchemaError
from splitjoin.cli import main
from splitjoin.tables.inputs import as_table

PAGE = (Path(__file__).parents[3] / "docs" / "tables.md").read_text(encoding="utf-8")

R = pa.table({"ts": [1, 4, 9], "x": [10, 20, 30]})
S = pa.table({"ts": [2, 5, 9], "a": [12, 70, 31]})
QUERY: dict[str, Any] = {"window": "RANGE 4", "time": "ts", "device": "golden"}
ON = "abs(r.x - s.a) <= 5"
WANT = [{"ts_r": 1, "x": 10, "ts_s": 2, "a": 12}, {"ts_r": 9, "x": 30, "ts_s": 9, "a": 31}]


class OnlyStream:
    def __init__(self, table: pa.Table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def relation(table: pa.Table) -> Any:
    return duckdb.connect().from_arrow(table)


IN_MEMORY: dict[str, Callable[[pa.Table], Any]] = {
    "table": lambda t: t, "batch": lambda t: t.to_batches()[0], "reader": lambda t: t.to_reader(),
    "dataset": pyarrow.dataset.dataset, "pandas": lambda t: t.to_pandas(), "polars": pl.from_arrow,
    "lazy": lambda t: pl.from_arrow(t).lazy(),  # type: ignore[union-attr]
    "duckdb": relation, "stream": OnlyStream, "lists": lambda t: t.to_pydict(),
    "arrays": lambda t: {name: t.column(name).to_numpy() for name in t.column_names},
    "series": lambda t: {name: pd.Series(t.column(name).to_numpy()) for name in t.column_names},
    "columns": lambda t: dict(zip(t.column_names, t.columns, strict=True)),
}


@pytest.mark.parametrize("kind", IN_MEMORY)
def test_tables_in_memory(kind: str) -> None:
    convert = IN_MEMORY[kind]
    assert splitjoin.join(convert(R), convert(S), on=ON, **QUERY).to_pylist() == WANT
    found = splitjoin.sql(f"SELECT x, a FROM r JOIN s ON {ON}", r=convert(R), s=convert(S), **QUERY)
    assert found.to_pylist() == [{"x": 10, "a": 12}, {"x": 30, "a": 31}]


def test_numbers_of_128_bits_are_decimals() -> None:
    frame = pl.DataFrame({"x": [12], "big": [-12], "huge": [2**127], "y": [7]},
                         schema_overrides={"big": pl.Int128, "huge": pl.UInt128})
    found = splitjoin.join(frame, S, on="x = a AND big = -a", select=["x", "big", "huge", "y"]).to_arrow()
    assert found.to_pylist() == [{"x": 12, "big": -12, "huge": 2**127, "y": 7}]
    assert found.schema.types[1:3] == [pa.decimal128(38, 0), pa.decimal256(39, 0)]
    text = "SELECT DISTINCT upper('y') AS u, r.x FROM r JOIN s ON ln(r.x) = ln(s.a)"
    assert splitjoin.sql(text, r=frame.lazy(), s=S).to_pylist() == [{"u": "Y", "x": 12}]


def write(table: pa.Table, path: str) -> None:
    if path.endswith(".parquet"):
        pyarrow.parquet.write_table(table, path)
    elif path.endswith(".csv"):
        pyarrow.csv.write_csv(table, path)
    elif path.endswith(".feather"):
        pyarrow.feather.write_feather(table, path)
    else:
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow", ".feather"])
def test_files(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(R, f"r{suffix}")
    for n in range(3):
        write(S.slice(n, 1), f"s-{n}{suffix}")
    several: list[Any] = [f"s-*{suffix}", [f"s-{n}{suffix}" for n in range(3)],
                          [Path(f"s-0{suffix}"), f"s-[12]{suffix}"]]
    for s in several:
        assert splitjoin.join(f"r{suffix}", s, on=ON, **QUERY).to_pylist() == WANT
        found = splitjoin.sql(f"SELECT x, a FROM r JOIN s ON {ON}", r=Path(f"r{suffix}"), s=s, **QUERY)
        assert found.to_pylist() == [{"x": 10, "a": 12}, {"x": 30, "a": 31}]
    out = f"out{suffix}"
    assert main(["join", f"r{suffix}", f"s-*{suffix}", "--on", ON, "--window", "RANGE 4", "--time", "ts", "--device",
                 "golden", "-o", out]) == 0
    assert as_table(out, "out").to_pylist() == WANT


def test_columns_of_several_files_must_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a-1.csv").write_text("x,y\n1,\n")
    Path("a-2.csv").write_text("y,x\n7,2\n")  # another order; y was empty before
    assert as_table("a-*.csv", "r").to_pydict() == {"x": [1, 2], "y": [None, 7]}
    Path("a-3.csv").write_text("x,z\n3,8\n")
    with pytest.raises(InputError, match=r"the files of a-\*\.csv must have the same columns, but a-1\.csv has x, y, "
                                         r"and a-3\.csv x, z"):
        as_table("a-*.csv", "r")
    Path("a-3.csv").write_text("x,y\n3,eight\n")
    with pytest.raises(InputError, match=r"'y' is int64 in a-1\.csv and string in a-3\.csv"):
        as_table("a-*.csv", "r")


@pytest.mark.parametrize(("given", "said"), [
    ("no-*.csv", r"no file fits the pattern no-\*\.csv"), ("none.csv", r"there is no file none\.csv"),
    ("s3://bucket/*.parquet", "is a URL; download it first"), (".", r"give a pattern for the files in it, such as"),
    ("x.xlsx", r"which must be \.parquet, \.csv, \.arrow or \.feather"), (["none.csv"], r"there is no file none\.csv"),
    ({"x": [1, 2], "y": [1]}, "dict does not give one"), ({"x": np.zeros((2, 2))}, "one dimension"),
    ({"x": {0: 5}}, "the column 'x' must be a list or an array of values, not dict"),  # as pandas' to_dict() gives it
    ({"x": "abc"}, "'x' must be a list or an array of values, not str"),
    ({"x": 5}, "the column 'x' is none for Arrow: 'int' object"),
    ([{"x": 1}], "not list; pyarrow.Table.from_pylist makes a table of a list of rows"),
    (np.zeros(2), r"not ndarray; give its columns names, such as {'x': a}"),
    (np.zeros(2, [("x", "i4")]), r"not ndarray; give {name: a\[name\] for name in a.dtype.names}"),
    (pl.DataFrame({"o": [object()]}), "'o' holds Python objects; drop it, or convert its values"),
    (pd.Series([1]), r"; to_frame\(\) makes a table"), (pl.Series([1]), r"; to_frame\(\) makes a table"),
    (iter([R.to_batches()]), "not list_iterator; pyarrow.RecordBatchReader.from_batches"),
    (duckdb.connect(), "; give one of its relations"),
    (pd.DataFrame({"x": [1, "y"]}), "does not give one: Could not convert 'y' with type str: tried to convert to "
                                    "int64; Conversion failed for column x with type object$"),
    (pd.DataFrame([[1, 2]], columns=["x", "x"]), "; rename one of the columns 'x'"),
    (pl.LazyFrame({"x": [1]}).select("y"), "LazyFrame does not give one: unable to find column"),
    (pa.RecordBatchReader.from_batches(R.schema, (1 / 0 for _ in "x")), "does not give one: .*division by zero"),
    ({"x": np.array([1j])}, "'x' has the type complex128, which Arrow lacks; give .real and .imag"),
    ({"x": np.array([2**62], "M8[h]")}, r"'x' has times of the type datetime64\[h\], which datetime64\[s\] of Arrow "
                                        r"cannot hold; make it M8\[ns\]"),
])
def test_what_gives_no_rows(given: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=said):
        splitjoin.join(given, S, on="TRUE", window="ROWS 1")


@pytest.mark.parametrize("type_", [">i4", ">f8", "M8[h]", "M8[M]", "M8[25s]", ">M8[m]", "m8[D]"])
def test_arrays_that_arrow_does_not_read_as_they_are(type_: str) -> None:
    values = np.array([3, 5]).astype(type_)
    made = as_table({"x": values[::-1]}, "r").column("x").to_numpy()
    assert (made == values[::-1]).all()


CATEGORIES: dict[str, Callable[[list[str | None]], Any]] = {
    "pandas": lambda values: pd.DataFrame({"x": pd.Categorical(values)}),
    "polars": lambda values: pl.DataFrame({"x": pl.Series(values, dtype=pl.Categorical)}),
    "enum": lambda values: pl.DataFrame({"x": pl.Series(values, dtype=pl.Enum(["a", "b", "c"]))}).lazy(),
    "two dictionaries": lambda values: pa.table({"x": pa.chunked_array([
        pa.array(values[:2]).dictionary_encode(), pa.array(values[2:]).dictionary_encode()])}),
    "runs": lambda values: pa.table({"x": pa.RunEndEncodedArray.from_arrays(range(1, len(values) + 1), values)}),
}


@pytest.mark.parametrize("kind", CATEGORIES)
def test_categories(kind: str, tmp_path: Path) -> None:
    """Text with a dictionary is compared as text, in memory and in files, whose formats do not take all layouts."""
    r, s = CATEGORIES[kind](["a", "b", None, "c", "b"]), pa.table({"a": ["b", "c", "z"]})
    query: dict[str, Any] = {"on": "r.x = s.a", "window": "ROWS 9"}
    answers = [splitjoin.join(r, s, **query, device=device).to_arrow() for device in ("cpu", "golden")]
    assert answers[0].to_pydict() == answers[1].to_pydict()
    assert sorted(answers[0].to_pydict()["x"]) == sorted(answers[0].to_pydict()["a"]) == ["b", "b", "c"]
    for suffix in ("parquet", "csv", "arrow"):
        splitjoin.join(r, s, **query, device="golden", to=tmp_path / f"out.{suffix}")
        assert as_table(tmp_path / f"out.{suffix}", "r").to_pydict() == answers[1].to_pydict()


def test_a_dictionary_of_lists_is_handed_on(tmp_path: Path) -> None:
    lists = pa.DictionaryArray.from_arrays([0, None], pa.array([[1, 2]]))
    r, want = pa.table({"x": [1, 2], "y": lists}), {"x": [2], "y": [None], "a": [2]}
    found = splitjoin.join(r, {"a": [2]}, on="r.x = s.a", window="ROWS 1", device="golden")
    assert repr(found).startswith("JoinResult: 1 row, 3 columns; 2 pairs within the windows")
    one = splitjoin.join({"x": [1]}, {"a": [1]}, on="r.x = s.a", device="golden")
    assert repr(one).startswith("JoinResult: 1 row, 2 columns; 1 pair within the windows")
    assert found.to_arrow().to_pydict() == want
    for suffix in ("parquet", "arrow"):
        splitjoin.join(r, {"a": [2]}, on="r.x = s.a", device="golden", to=tmp_path / f"out.{suffix}")
        assert as_table(tmp_path / f"out.{suffix}", "r").to_pydict() == want


@pytest.mark.parametrize("module", ["pandas.core.frame", "pandas"])
def test_row_labels_of_pandas_are_no_column(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter leaves labels that are no range; an index with a name is a column. The module of DataFrame is
    "pandas" from pandas 3 on.
    """
    monkeypatch.setattr(pd.DataFrame, "__module__", module)
    frame = pd.DataFrame({"x": [1, 2, 3]})
    found = splitjoin.join(frame[frame.x > 1], frame.set_index("x")[:2], on="r.x = s.x", device="golden")
    assert found.to_arrow().to_pydict() == {"x_r": [2], "x_s": [2]}
    labelled = frame.set_index(pd.MultiIndex.from_tuples([(7, "a"), (8, "b"), (9, "c")], names=["k", None]))
    assert as_table(labelled, "r").column_names == ["x", "k"]
    ranged = frame.set_axis(pd.RangeIndex(5, 8, name="n"))
    assert as_table(ranged, "r").to_pydict() == {"x": [1, 2, 3], "n": [5, 6, 7]}


def test_a_missing_column_that_may_be_an_index_without_a_name() -> None:
    frame = pd.DataFrame({"x": [1, 2]}, index=pd.to_datetime([1, 2], unit="s"))
    hint = "the index of the DataFrame has no name, so it is no column: give it one, such as frame.rename_axis"
    with pytest.raises(SchemaError, match=f"stream r has no column 'ts'; its columns are x; {hint}"):
        splitjoin.join(frame, frame, on="r.x = s.x", time="ts", device="golden")
    for column in ("ts", "r.ts"):
        with pytest.raises(SchemaError, match=hint):
            splitjoin.sql(f"SELECT {column} FROM r JOIN s ON r.x = s.x", r=frame, s=frame, device="golden")
    with pytest.raises(SchemaError, match=r"its columns are x, b$"):  # row numbers are meant by nobody
        splitjoin.join(frame.assign(b=1).reset_index(drop=True), frame, on="r.x = s.x", time="ts", device="golden")
    named = frame.rename_axis("ts")
    assert splitjoin.join(named, named, on="r.x = s.x", window=pd.Timedelta(0), time="ts", device="golden"
                          ).column("x_r").to_pylist() == [1, 2]


@pytest.mark.parametrize("index", [pd.Index([7, 8], name="x"), pd.RangeIndex(2, name="x"),
                                   pd.MultiIndex.from_tuples([(7, "a"), (8, "b")], names=["k", "x"])])
def test_an_index_with_the_name_of_a_column_is_refused(index: Any) -> None:
    """Arrow takes its name from it; it was dropped."""
    with pytest.raises(InputError, match=r"the DataFrame of stream r has both an index and a column with the name 'x'; "
                                         r"rename one of them, or drop the index with reset_index\(drop=True\)"):
        as_table(pd.DataFrame({"x": [1, 2]}, index=index), "r")


def test_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write(R, str(tmp_path / "r.csv"))
    found = splitjoin.join("~/r.csv", S, on=ON, **QUERY, to=Path("~/out.parquet"))
    assert found.path == tmp_path / "out.parquet" and as_table("~/o*.parquet", "out").to_pylist() == WANT


def test_a_file_whose_name_looks_like_a_pattern(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(S, "s[1].csv")
    assert as_table("s[1].csv", "s").equals(S)


def test_the_examples_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                  capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for kind, code in re.findall(r"```(python|text)\n(.*?)```", PAGE, re.S):
        if kind == "python":
            exec(compile(code, "tables.md", "exec"), names)
        else:
            assert capsys.readouterr().out == code


@pytest.mark.parametrize("made", [lambda table: table, lambda table: table.schema, pa.Table.to_pandas, pl.from_arrow,
                                  pa.Table.to_reader])
def test_a_query_takes_the_schema_of_whatever_is_a_table(made: Any) -> None:
    r, s = pa.table({"x": [1, 2], "name": ["a", "b"]}), pa.table({"a": pa.array([1], pa.int16())})
    query = splitjoin.query(made(r), made(s), on="r.x = s.a AND r.name LIKE 'a%'", window="ROWS 5")
    with splitjoin.open(query, "golden") as session:
        for push, rows in ((session.push_r, r), (session.push_s, s)):
            push(rows if isinstance(made(rows), pa.Schema) else made(rows))
        assert session.flush().num_rows == 1
