"""One rule at the door: every type that a library hands over comes exactly, or its column is refused by name."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

import splitjoin
from splitjoin import InputError
from splitjoin.joins.sql.database import taken
from splitjoin.lang.layouts import decoded, encoded
from splitjoin.tables.inputs import as_table

UTC = dt.UTC
INF, NAN = math.inf, math.nan
TIMES = [dt.datetime(1, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(9999, 12, 31, 23, 59, 59)]

#: Arrow type → values at its edges.
EDGES: dict[pa.DataType, Sequence[Any]] = {
    pa.float64(): [NAN, 0.0, -0.0, INF, -INF, 5e-324, 2.0**53 + 2], pa.float32(): [NAN, -0.0, INF, 16777217.0],
    pa.int64(): [-2**63, 2**63 - 1], pa.uint64(): [0, 2**63, 2**64 - 1], pa.int8(): [-128, 127],
    pa.timestamp("us"): TIMES, pa.timestamp("ms", "UTC"): [0, -62135596800000, 253402300799999],
    pa.timestamp("ns"): [-2**63 + 1, 2**63 - 1], pa.date32(): [dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    pa.duration("us"): [-2**62, 2**62], pa.time64("us"): [0, 86399999999], pa.bool_(): [True, False],
    pa.decimal128(38, 0): [Decimal("9" * 38), Decimal("-" + "9" * 38)], pa.decimal128(38, 37): [Decimal("-1e-37")],
    pa.string(): ["", "\0", "007", "é"], pa.binary(): [b"", b"\xff\0"], pa.null(): [None, None],
}
#: The layouts in which Arrow hands columns over, but for decoding.
LAYOUTS: list[tuple[pa.DataType, pa.DataType]] = [
    (pa.dictionary(pa.int8(), pa.string()), pa.string()), (pa.dictionary(pa.int32(), pa.float64()), pa.float64()),
    (pa.run_end_encoded(pa.int32(), pa.timestamp("us")), pa.timestamp("us")), (pa.string_view(), pa.string()),
    (pa.run_end_encoded(pa.int16(), pa.uint64()), pa.uint64()), (pa.binary_view(), pa.binary()),
    (pa.large_string(), pa.string()),
]


def column(type_: pa.DataType) -> pa.ChunkedArray:
    values = EDGES[type_]
    return pa.chunked_array([pa.array([*values, None], type_), pa.array(values[::-1], type_)])


def shown(found: pa.ChunkedArray, type_: pa.DataType) -> list[str]:
    """The values as texts that tell −0.0 from 0.0; times as numbers, as Python does not have all."""
    found = decoded(found)
    if pa.types.is_temporal(type_):
        found = found.cast(type_).cast(pa.int32() if type_.bit_width == 32 else pa.int64())
    return list(map(repr, found.cast(type_ if not pa.types.is_temporal(type_) else found.type).to_pylist()))


def polars_parquet(table: pa.Table, folder: Path) -> str:
    pl.from_arrow(table).write_parquet(folder / "p.parquet")  # type: ignore[union-attr]  # a DataFrame
    return str(folder / "p.parquet")


def duckdb_parquet(table: pa.Table, folder: Path) -> str:
    duckdb.connect().from_arrow(table).write_parquet(str(folder / "d.parquet"))
    return str(folder / "d.parquet")


def several(table: pa.Table, folder: Path) -> str:
    for n, at in enumerate(range(0, len(table), 3)):
        pyarrow.parquet.write_table(table.slice(at, 3), folder / f"part-{n}.parquet")
    return f"{folder}/part-*.parquet"


PEERS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "Arrow": lambda table, folder: table, "reader": lambda table, folder: table.to_reader(),
    "dataset": lambda table, folder: pyarrow.dataset.dataset(table),
    "pandas": lambda table, folder: table.to_pandas(types_mapper=pd.ArrowDtype),
    "Polars": lambda table, folder: pl.from_arrow(table),
    "lazy Polars": lambda table, folder: pl.from_arrow(table).lazy(),  # type: ignore[union-attr]  # a DataFrame
    "DuckDB": lambda table, folder: duckdb.connect().from_arrow(table),
    "Polars' Parquet": polars_parquet, "DuckDB's Parquet": duckdb_parquet, "a pattern": several,
}

@pytest.mark.parametrize("peer", PEERS)
def test_edge_values_of_every_type(peer: str, tmp_path: Path) -> None:
    """Twice each: equal rows in the same order."""
    for n, type_ in enumerate(EDGES):
        if "DuckDB" in peer and pa.types.is_duration(type_):
            continue  # INTERVAL, which Parquet has without a sign
        folder = tmp_path / str(n)
        folder.mkdir()
        given = pa.table({"n": pa.array(range(2 * len(EDGES[type_]) + 1), pa.int32()), "v": column(type_)})
        found = [as_table(PEERS[peer](given, folder), "r") for _ in range(2)]
        want = type_ if not pa.types.is_null(type_) else found[0].schema.field("v").type
        for table in found:
            assert table.column("n").to_pylist() == list(range(len(given))), (peer, type_)
            assert shown(table.column("v"), want) == shown(given.column("v"), want), (peer, type_)


@pytest.mark.parametrize("peer", ["Arrow", "reader", "dataset", "Polars", "lazy Polars"])
def test_layouts(peer: str, tmp_path: Path) -> None:
    for type_, value in LAYOUTS:
        made = column(value)
        given = pa.table({"v": encoded(made, type_) if hasattr(type_, "value_type") else made.cast(type_)})
        if "Polars" in peer and pa.types.is_run_end_encoded(type_):
            continue  # which Polars does not read
        found = [as_table(PEERS[peer](given, tmp_path), "r").column("v") for _ in range(2)]
        assert shown(found[0], value) == shown(found[1], value) == shown(made, value), (peer, type_)


def test_a_lazy_frame_keeps_its_order() -> None:
    """Its streaming engine, which Polars chooses by itself, does not."""
    rows = 200_000
    left = pl.LazyFrame({"n": np.arange(rows), "k": np.arange(rows) % 1000})
    lazy = left.join(pl.LazyFrame({"k": np.arange(1000), "x": np.arange(1000)}), on="k", how="left")
    for _ in range(3):
        assert np.array_equal(as_table(lazy, "r").column("n").to_numpy(), np.arange(rows))


@pytest.mark.parametrize("kind", ["hugeint", "uhugeint"])
def test_integers_of_128_bits_of_duckdb(kind: str) -> None:
    least, most = (-2**127, 2**127 - 1) if kind == "hugeint" else (0, 2**128 - 1)
    some = [0, 1, 2**64, 10**38 - 1, least + 1]
    few = [one for one in some if abs(one) < 10**38]
    db = duckdb.connect()
    narrow, wide = pa.decimal128(38, 0), pa.decimal256(39, 0)
    for values, type_ in ((few, narrow), ([*some, most], wide), ([], narrow)):
        cells = ", ".join(f"('{value}'::{kind})" for value in values) or f"(NULL::{kind})"
        relation = db.sql(f"SELECT x FROM (VALUES {cells}, (NULL)) t(x) {'' if values else 'WHERE false'}")
        found = as_table(relation, "r").column("x")
        assert found.type == type_
        assert found.to_pylist() == [*map(Decimal, values), *([None] if values else [])]
    found = splitjoin.join(db.sql(f"SELECT '{10**38 - 1}'::{kind} AS x"), {"a": [7]}, on="r.x > s.a")
    assert found.to_pydict() == {"x": [10**38 - 1], "a": [7]}


def test_bit_strings_of_duckdb_compare_as_there() -> None:
    texts = ["".join(bits) for n in range(1, 10) for bits in itertools.product("01", repeat=n)]
    db = duckdb.connect()
    db.execute("CREATE TABLE t AS SELECT s, s::BIT AS b FROM (SELECT unnest($1) AS s)", [texts])
    found = as_table(db.sql("SELECT b, NULL::BIT AS no FROM t ORDER BY b"), "r")
    assert found.column("b").to_pylist() == sorted(texts)
    assert found.column("no").null_count == len(texts)


@pytest.mark.parametrize("text", [
    "[1::uhugeint]", "{'a': '1'::bit}", "map {'a': 1::hugeint}", "[['12:00:00+01'::timetz]]", "'12:00:00+01'::timetz",
    "union_value(a := '1'::bit)", "array_value(1::uhugeint)"])
def test_types_of_duckdb_that_arrow_gets_wrong(text: str) -> None:
    with pytest.raises(InputError, match=r"types that Arrow has, but 'x' .*; cast it in DuckDB"):
        as_table(duckdb.connect().sql(f"SELECT {text} AS x"), "r")


def test_what_duckdb_computes_within_a_statement() -> None:
    db = duckdb.connect()
    one = db.sql("SELECT 1 AS k")
    found = splitjoin.sql(f"SELECT DISTINCT '{2**127}'::uhugeint AS h, '101'::bit AS b FROM r JOIN s ON r.k = s.k",
                          r=one, s=one)
    assert found.to_pydict() == {"h": [2**127], "b": ["101"]}
    assert all(not field.metadata for field in found.schema)
    again = taken(db.sql("SELECT '01'::bit AS b"), {})
    assert again.column("b").to_pylist() == ["01"]


def test_intervals_of_duckdb() -> None:
    """A month equals 30 days there; only parts of a microsecond are lost on the way to it."""
    relation = duckdb.connect().sql("SELECT * FROM (VALUES (1, INTERVAL 1 MONTH), (2, INTERVAL 30 DAY), "
                                    "(3, INTERVAL 5 MICROSECOND), (4, NULL)) t(n, i)")
    found = splitjoin.sql("SELECT a.n, b.n AS m FROM a JOIN b ON a.i = b.i ORDER BY a.i, 1, 2", a=relation, b=relation)
    assert found.to_pydict() == {"n": [3, 1, 1, 2, 2], "m": [3, 1, 2, 1, 2]}
    result = splitjoin.join(relation, relation, on="r.n = s.n", select=["r.i"])
    assert [row[0] for row in result.to_duckdb().fetchall()] == [dt.timedelta(30), dt.timedelta(30),
                                                                 dt.timedelta(microseconds=5), None]
    lost = pa.table({"i": pa.array([(0, 0, 1500)], pa.month_day_nano_interval())})
    with pytest.raises(InputError, match="DuckDB does not hold the values of column 'i' of type month_day_nano"):
        splitjoin.sql("SELECT i FROM a JOIN b ON TRUE ORDER BY a.i", a=lost, b={"x": [1]})


@pytest.mark.parametrize("values", [
    [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=UTC)], [dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 5)],
    [pd.Timestamp("2020-01-01 00:00:00.123456789")], [dt.time(1, tzinfo=UTC)], [pd.Timedelta(1, "ns")],
], ids=str)
def test_python_times_that_arrow_would_change(values: list[Any]) -> None:
    series = pd.Series([*values, None], dtype=object)
    for given in ({"x": values}, {"x": series}, {"x": series.to_numpy()}, pd.DataFrame({"x": series})):
        with pytest.raises(InputError, match=r"the column 'x' must hold times of one kind that Arrow has, but .* would "
                                             r"become .* of type"):
            as_table(given, "r")


@pytest.mark.parametrize(("values", "type_"), [
    ([2**64 - 1, None, 0], pa.uint64()), ([dt.date(9999, 12, 31), None], pa.date32()),
    ([dt.datetime(2020, 1, 1, 5, tzinfo=UTC), dt.datetime(2020, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=-5)))],
     pa.timestamp("us", "UTC")),
    (pl.Series([2**100, None], dtype=pl.Int128), pa.decimal128(38, 0)),
    (pl.Series([2**128 - 1], dtype=pl.UInt128), pa.decimal256(39, 0)),
], ids=str)
def test_values_that_come_exactly(values: Any, type_: pa.DataType) -> None:
    found = as_table({"x": values}, "r").column("x")
    assert found.type == type_
    assert found.to_pylist() == list(values)


@pytest.mark.parametrize(("made", "word"), [
    (lambda: pd.DataFrame({"x": [1j]}), "complex"),
    (lambda: pd.DataFrame({"x": np.array([1], np.longdouble)}), "float128"),
    (lambda: pd.DataFrame({"x": pd.arrays.SparseArray([0, 1])}), "Sparse"),
    (lambda: pd.DataFrame({"x": [Decimal("1.5"), 1.5]}), "Decimal"), (lambda: {"x": [2**53 + 1, 0.5]}, "exactly"),
    (lambda: pl.DataFrame({"x": pl.Series([object()], dtype=pl.Object)}), "Python objects"),
    (lambda: pl.DataFrame({"x": pl.Series([[1]], dtype=pl.List(pl.Int128))}), "_pli128"),
], ids=range(7))
def test_types_that_are_refused(made: Callable[[], Any], word: str) -> None:
    with pytest.raises(InputError, match=word):
        as_table(made(), "r")


def peer_class(module: str, name: str, base: type = object, **methods: Any) -> Any:
    """A class like that of a library that is not installed here."""
    return type(name, (base,), {"__module__": module, **methods})


def test_tables_of_lakes() -> None:
    """With the interface of their classes; `DeltaTable` hides INT96 options in its dataset."""
    table = pa.table({"x": [7]})

    def dataset(self: Any, *, parquet_read_options: Any) -> Any:
        assert parquet_read_options.coerce_int96_timestamp_unit == "us"
        return pyarrow.dataset.dataset(table)

    scan = peer_class("pyiceberg.table", "DataScan", to_arrow=lambda self: table)
    for made in (peer_class("deltalake.table", "DeltaTable", to_pyarrow_dataset=dataset), scan,
                 peer_class("pyiceberg.table", "StaticTable", scan=lambda self: scan()),
                 peer_class("lance.dataset", "LanceDataset", pyarrow.dataset.Dataset, __init__=lambda self: None,
                            to_table=lambda self: table)):
        assert splitjoin.join(made(), {"a": [1, 7]}, on="r.x = s.a").to_pydict() == {"x": [7], "a": [7]}


@pytest.mark.parametrize(("files", "pattern", "said"), [
    (["_delta_log/0.json", "p.parquet"], "*.parquet", "its Delta table, .*; give deltalake.DeltaTable"),
    (["_delta_log/0.json", "day=1/p.parquet"], "**/*.parquet", "its Delta table"),
    (["metadata/v1.metadata.json", "data/p.parquet"], "data/*.parquet", "its Iceberg table, .*pyiceberg"),
    ([".hoodie/x", "p.parquet"], "*.parquet", "its Hudi table"),
    (["_versions/1.manifest"], "", "its Lance table, .*; give lance.dataset"),
])
def test_folders_with_a_log(files: list[str], pattern: str, said: str, tmp_path: Path) -> None:
    for file in files:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("")
    for given in {str(tmp_path), str(tmp_path / pattern)}:
        with pytest.raises(InputError, match=f"must be chosen by the log of {said}"):
            as_table(given, "r")
