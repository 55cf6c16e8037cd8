"""`splitjoin.sql` over tables: what each part of a statement means, on every device, as DuckDB has it."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import splitjoin
from splitjoin import InputError, SplitJoinError, WindowError
from splitjoin.base.parquet import ParquetSource
from splitjoin.engines.device import Device
from splitjoin.engines.registry import device as find_device
from tests.support.sampling import at_length
from tests.support.scenarios import SCENARIOS
from tests.support.statements import exactly, selected

R = pa.table({"ts": [1, 4, 9, 12], "x": pa.array([10, 20, 30, None], pa.int32()), "id": [1, 2, 3, 4],
              "name": ["ann", "bob", None, "cy"], "tags": [["a"], [], None, ["b"]]})
S = pa.table({"ts": [2, 5, 9, 11], "a": pa.array([12, 18, 31, 7], pa.int32()), "id": [7, 8, 9, 10],
              "price": pa.array([Decimal("1.50"), None, Decimal("-2.25"), Decimal("0.10")], pa.decimal128(5, 2)),
              "f": pa.array([0.5, float("nan"), -0.0, 1e30], pa.float32())})
NEAR = "FROM r JOIN s ON abs(r.x - s.a) <= 5"


def rows(text: str, **how: Any) -> list[dict[str, Any]]:
    how = {"r": R, "s": S, "window": "RANGE 4", "time": "ts"} | how
    found: list[dict[str, Any]] = splitjoin.sql(text, **how).table.to_pylist()
    return found


def names(text: str, **how: Any) -> list[str]:
    how = {"r": R, "s": S, "window": "RANGE 4", "time": "ts"} | how
    found: list[str] = splitjoin.sql(text, **how).table.column_names
    return found


def test_a_statement_gives_the_rows_of_the_join() -> None:
    result = splitjoin.sql(f"SELECT r.ts, r.x, s.a {NEAR}", r=R, s=S, window="RANGE 4", time="ts")
    joined = splitjoin.join(R, S, on="abs(r.x - s.a) <= 5", window="RANGE 4", time="ts")
    assert result.table == joined.table.select(["ts_r", "x", "a"]).rename_columns(["ts", "x", "a"])
    assert (result.items == joined.items).all()
    assert result.counters == joined.counters
    assert pa.table(result) == result.table
    assert len(result.table) == 3


def test_columns_have_their_own_names_types_and_fields() -> None:
    r = R.cast(R.schema.set(1, R.schema.field("x").with_metadata({"unit": "eur"})))
    table = splitjoin.sql(f"SELECT r.tags, name AS who, X {NEAR}", r=r, s=S, window="RANGE 4", time="ts").table
    assert table.schema.equals(pa.schema([r.schema.field("tags"), r.schema.field("name").with_name("who"),
                                          r.schema.field("x")]), check_metadata=True)


def test_a_statement_again_has_the_fields_of_its_tables() -> None:
    for unit in (b"eur", b"usd"):
        r = R.cast(R.schema.set(1, R.schema.field("x").with_metadata({"unit": unit})))
        assert splitjoin.sql("SELECT x FROM r, s WHERE x < a", r=r, s=S).table.schema.field("x").metadata == {
            b"unit": unit}


def test_stars() -> None:
    assert names(f"SELECT * {NEAR}") == ["ts_r", "x", "id_r", "name", "tags", "ts_s", "a", "id_s", "price", "f"]
    assert names(f"SELECT s.*, r.x {NEAR}") == ["ts", "a", "id", "price", "f", "x"]
    assert names("SELECT s.*, r.* FROM r, s WHERE x = a")[:6] == ["ts_s", "a", "id_s", "price", "f", "ts_r"]


def test_names_of_both_tables_get_the_tables_names() -> None:
    text = "SELECT t.ts, q.ts, t.id AS ident, q.id FROM trades t JOIN quotes AS q ON abs(t.x - q.a) <= 5"
    table = splitjoin.sql(text, trades=R, quotes=S, window="RANGE 4", time="ts").table
    assert table.column_names == ["ts_t", "ts_q", "ident", "id"]


def test_expressions_are_named_by_their_text() -> None:
    assert names(f"SELECT r.x  -  s.a, (r.x), -x AS neg, abs( x ) y, r.x = s.a, x IS DISTINCT FROM a, "
                 f"x /* of r, s */ +\n-- from\n a {NEAR}") == [
        "r.x - s.a", "(r.x)", "neg", "y", "r.x = s.a", "x IS DISTINCT FROM a", "x + a"]


def test_types_of_expressions() -> None:
    text = ("SELECT x + a AS i, x * price AS d, x / a AS q, x * 0.5 AS h, f + 1 AS f, f + x AS g, x > 15 AS b, "
            "'it''s' AS t, 5 AS five, NULL AS n, CASE WHEN x > 15 THEN name ELSE 'none' END AS c, x & 7 AS m, "
            "coalesce(price, 0) AS p, TRUE AS yes FROM r, s")
    schema = splitjoin.sql(text, r=R.schema, s=S.schema, window="ROWS 5").schema
    assert {f.name: str(f.type) for f in schema} == {
        "i": "int64", "d": "decimal128(15, 2)", "q": "double", "h": "decimal128(11, 1)", "f": "float", "g": "double",
        "b": "bool", "t": "string", "five": "int64", "n": "int64", "c": "string", "m": "int32",
        "p": "decimal128(5, 2)", "yes": "bool"}
    table = splitjoin.sql(text, r=R, s=S, window="ROWS 5").table
    assert table.schema == schema
    assert len(table) == 16


def test_values_with_null_and_nan() -> None:
    found = rows("SELECT x + id_s AS v, f, f = f AS same, price * x AS p, coalesce(x, -1) AS c, x IS NULL AS n, "
                 "x > 15 OR price > 0 AS o FROM r JOIN s ON TRUE WHERE s.ts >= 9",
                 s=S.rename_columns(["ts", "a", "id_s", "price", "f"]))
    assert [exactly(row["v"]) for row in found] == [39, 40, None, None]
    assert [row["same"] for row in found] == [True] * 4
    assert [row["p"] for row in found] == [Decimal("-67.50"), Decimal("3.00"), None, None]
    assert [row["c"] for row in found] == [30, 30, -1, -1]
    assert [row["n"] for row in found] == [False, False, True, True]
    assert [row["o"] for row in found] == [True, True, None, True]


def test_times() -> None:
    r = pa.table({"at": pa.array([dt.datetime(2013, 1, 1, 12)], pa.timestamp("ms")), "day": [dt.date(2013, 1, 31)]})
    s = pa.table({"due": pa.array([dt.datetime(2013, 1, 1, 12, 30)], pa.timestamp("us")),
                  "date": [dt.date(2013, 1, 1)]})
    table = splitjoin.sql("SELECT due - at AS late, at + INTERVAL '15' MINUTE AS then, day - date AS days, "
                          "day + 1 AS next, DATE '2020-02-29' AS leap FROM r, s", r=r, s=s, window="ROWS 1").table
    assert table.to_pylist() == [{"late": dt.timedelta(minutes=30), "then": dt.datetime(2013, 1, 1, 12, 15), "days": 30,
                                  "next": dt.date(2013, 2, 1), "leap": dt.date(2020, 2, 29)}]
    assert [str(f.type) for f in table.schema] == ["duration[us]", "timestamp[ms]", "int64", "date32[day]",
                                                   "date32[day]"]


def test_where_and_on_are_one_condition() -> None:
    texts = ["FROM r JOIN s ON abs(r.x - s.a) <= 5 AND r.x > 10 AND s.a < 31",
             "FROM r JOIN s ON abs(r.x - s.a) <= 5 WHERE r.x > 10 AND s.a < 31",
             "FROM r INNER JOIN s ON r.x > 10 WHERE s.a < 31 AND NOT (abs(r.x - s.a) > 5)",
             "FROM r, s WHERE abs(r.x - s.a) <= 5 AND NOT (r.x <= 10 OR s.a >= 31)",
             "FROM r CROSS JOIN s WHERE NOT (NOT (abs(r.x - s.a) <= 5 AND r.x > 10) OR s.a >= 31)"]
    answers = [rows(f"SELECT r.id, s.id {text}") for text in texts]
    assert answers == [[{"id_r": 2, "id_s": 8}]] * len(texts)


def test_selections_never_change_a_window() -> None:
    r = pa.table({"x": list(range(10))})
    s = pa.table({"a": list(range(10))})
    # Of the last two S before each R, and of the last two R before each S: whatever their own conditions are.
    text = "SELECT x, a FROM r, s WHERE x % 2 = 0 AND a % 3 = 0"
    found = splitjoin.sql(text, r=r, s=s, window="ROWS 2").table.to_pylist()
    assert found == [{"x": x, "a": a} for n in range(10) for x, a in
                     [*((n, a) for a in (n - 2, n - 1)), *((x, n) for x in (n - 1, n))]
                     if x >= 0 and a >= 0 and x % 2 == 0 and a % 3 == 0]


@pytest.mark.parametrize("where", ["1 = 1", "TRUE AND 2 > 1"])
def test_conditions_that_are_always_true(where: str) -> None:
    assert rows(f"SELECT r.id {NEAR} WHERE {where}") == rows(f"SELECT r.id {NEAR}")
    assert len(splitjoin.sql(f"SELECT r.id FROM r, s WHERE {where}", r=R, s=S, window="ROWS 9").table) == 16


@pytest.mark.parametrize("where", ["1 = 0", "NULL", "FALSE AND r.x = s.a", "NULL > 1"])
@pytest.mark.parametrize("device", ["golden", "cpu"])
def test_conditions_that_are_never_true(where: str, device: str) -> None:
    assert rows(f"SELECT r.id {NEAR} WHERE {where}", device=device) == []


def test_a_table_joined_with_itself() -> None:
    found = splitjoin.sql("SELECT a.id, b.id FROM t a JOIN t b ON a.x < b.x", t=R, window="ROWS 2").table.to_pylist()
    assert found == [{"id_a": 1, "id_b": 2}, {"id_a": 2, "id_b": 3}]
    reader = pa.RecordBatchReader.from_batches(R.schema, R.to_batches())
    assert splitjoin.sql("SELECT a.id, b.id FROM t a JOIN t b ON a.x < b.x", t=reader,
                         window="ROWS 2").table.to_pylist() == found


def test_windows_and_times_by_the_names_of_the_tables() -> None:
    s = S.rename_columns(["when", "a", "id", "price", "f"])
    text = "SELECT t.id, q.id FROM trades t JOIN quotes q ON t.x > q.a"
    want = splitjoin.sql("SELECT r.id, s.id FROM r JOIN s ON r.x > s.a", r=R, s=s, window=("RANGE 1", "RANGE 9"),
                         time=("ts", "when")).table
    assert len(want) > 1
    for keys in (("t", "q"), ("trades", "quotes")):
        got = splitjoin.sql(text, trades=R, quotes=s, window=dict(zip(keys, ("RANGE 1", "RANGE 9"), strict=True)),
                            time=dict(zip(keys, ("ts", "when"), strict=True))).table
        assert got.to_pydict() == {f"id_{k}": want.column(f"id_{k2}").to_pylist() for k, k2 in zip("tq", "rs",
                                                                                                strict=True)}


@pytest.mark.parametrize("closed", ["both", "left", "right", "neither"])
def test_ends_of_windows_as_joins_have_them(closed: str) -> None:
    r, s = {"ts": [3, 9, 20]}, {"seen": [1, 3, 5, 8, 11, 18, 19]}
    want = splitjoin.join(r, s, window=("RANGE 2", "RANGE 1"), closed=closed, time=("ts", "seen")).to_pydict()
    windows = {"q": "RANGE 1", "t": "RANGE 2"}
    times = {"t": "ts", "q": "seen"}
    for clause in ("WHERE ts > 0", "ORDER BY ts, seen LIMIT 99", "GROUP BY ALL ORDER BY ts, seen"):
        got = splitjoin.sql(f"SELECT ts, seen FROM trades t JOIN quotes q ON TRUE {clause}", trades=r, quotes=s,
                            window=windows, closed=closed, time=times)
        assert sorted(zip(*got.to_pydict().values(), strict=True)) == sorted(zip(*want.values(), strict=True)), clause
    select = splitjoin.sql("SELECT ts FROM t JOIN q ON TRUE", t=pa.table(r).schema, q=pa.table(s).schema, time=times,
                           window=windows, closed=closed)
    assert [w.length for w in (select.query.window("r"), select.query.window("s"))] == [
        2 - (closed in ("left", "neither")), 1 - (closed in ("right", "neither"))]


def test_ends_of_what_has_none() -> None:
    with pytest.raises(WindowError, match="both windows must be RANGE, without OPEN, not None"):
        splitjoin.sql("SELECT r.x FROM r, s", r=R, s=S, closed="left")
    with pytest.raises(WindowError, match="closed='left' is of the two windows of a join of two tables; write OPEN"):
        splitjoin.sql("SELECT r.x FROM r, s, s q", r=R, s=S, closed="left", window="RANGE 2", time="ts")


def test_quoted_names_and_any_case() -> None:
    r = R.rename_columns(["ts", "x", "odd name", "from", "select"])
    found = splitjoin.sql('select T."odd name" as "the id", `a`, t.from FROM "my trades" t inner join S on t.X = A - 2 '
                          "and t.from is not null",
                          tables={"my trades": r, "S": S}, window="RANGE 4", time="ts").table
    assert found.to_pylist() == [{"the id": 1, "a": 12, "from": "ann"}]


def test_files_and_readers(tmp_path: Path) -> None:
    r, s = R.drop_columns(["tags"]), S.drop_columns(["f", "price"])
    want = splitjoin.sql(f"SELECT name, a {NEAR}", r=r, s=s, window="RANGE 4", time="ts").table
    pyarrow.parquet.write_table(r, tmp_path / "r.parquet")
    pyarrow.csv.write_csv(s, tmp_path / "s.csv")
    reader = pa.RecordBatchReader.from_batches(s.schema, s.to_batches(max_chunksize=1))
    files = tmp_path / "r.parquet", str(tmp_path / "s.csv")
    for left, right in (files, (r.combine_chunks().to_batches()[0], reader)):
        got = splitjoin.sql(f"SELECT name, a {NEAR}", r=left, s=right, window="RANGE 4", time="ts").table
        assert got.to_pylist() == want.to_pylist()


def test_of_a_parquet_file_only_what_is_needed_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow.parquet.write_table(R, tmp_path / "r.parquet")
    read: list[Any] = []
    whole = ParquetSource.read
    monkeypatch.setattr(ParquetSource, "read", lambda self, columns: read.append(columns) or whole(self, columns))
    found = splitjoin.sql(f"SELECT r.id + 1 AS n {NEAR}", r=tmp_path / "r.parquet", s=S, window="RANGE 4", time="ts")
    assert found.table.to_pydict() == {"n": [2, 3, 4]}
    assert read == [["ts", "x", "id"]]


def test_constants_alone() -> None:
    assert rows(f"SELECT 1 AS one, 'x' AS word {NEAR}") == [{"one": 1, "word": "x"}] * 3


def test_orders() -> None:
    for order in ("none", "outer(2)", "inner(1)"):
        found = rows(f"SELECT r.id, s.id {NEAR}", order=order)
        assert sorted(map(str, found)) == sorted(map(str, rows(f"SELECT r.id, s.id {NEAR}")))


def test_big_numbers_are_exact_or_refused() -> None:
    r = pa.table({"x": pa.array([2**62, 3], pa.int64()), "u": pa.array([2**64 - 2, 0], pa.uint64())})
    s = pa.table({"a": pa.array([1, -2**63], pa.int64())})
    how: dict[str, Any] = {"r": r, "s": s, "window": "ROWS 1"}
    table = splitjoin.sql("SELECT 2 * x - x AS x, u + 1 AS u FROM r, s WHERE a = 1", **how).table
    assert table.to_pydict() == {"x": [2**62, 3], "u": [2**64 - 1, 1]}
    assert [str(f.type) for f in table.schema] == ["int64", "uint64"]
    with pytest.raises(InputError, match=r"the values of 'x - a' in the result must fit int64, but one is "
                                         r"9223372036854775811; select what it is computed from, or make one of its "
                                         r"columns a decimal or a float before the join"):
        splitjoin.sql("SELECT x - a FROM r, s WHERE x = 3", **how)
    wide = r.set_column(0, "x", r.column("x").cast(pa.decimal128(38, 0)))
    assert splitjoin.sql("SELECT x - a AS d FROM r, s WHERE x = 3 AND a < 0", **how | {"r": wide}
                         ).table.to_pydict() == {"d": [Decimal(2**63 + 3)]}


@pytest.fixture(scope="module")
def db() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


#: Scenario, ON, WHERE, items, and how DuckDB has the last three where it types them otherwise.
FIXED = [
    ("band-rows-17", "abs(r.x - s.a) <= 2", "abs(r.y - s.b) <= 5 AND r.x > 4", "r.x - s.a, r.y, 2 * s.b + 1"),
    ("null-band", "r.x = s.a OR r.x IS NULL", "coalesce(s.a, 3) > 2", "r.x, s.a, r.x * s.a, r.x IS NULL, "
                                                                     "coalesce(r.x, s.a, -1)"),
    ("not", "NOT (r.x >= s.a OR r.y = s.b)", "r.y + s.b > 9 AND s.b <> 3", "CASE WHEN r.x > 9 THEN s.a ELSE r.y END, "
                                                                          "least(r.x, s.b), r.x > s.b"),
    ("band-range-different", "abs(r.x - s.a) <= 4", "(r.x - s.a) * (r.x - s.a) + (r.y - s.b) * (r.y - s.b) <= 40",
     "(r.x - s.a) * (r.x - s.a) + (r.y - s.b) * (r.y - s.b)"),
    ("string-equal", "r.carrier = s.airline", "s.airline <> 'ua' AND r.x < 15 AND r.carrier >= 'A'",
     "r.carrier, CASE WHEN s.a > 9 THEN s.airline ELSE 'low' END, r.carrier = 'UA'"),
]


@pytest.mark.parametrize("device", ["golden", "cpu"])
@pytest.mark.parametrize(("name", "on", "where", "items"), FIXED, ids=[f[0] for f in FIXED])
def test_fixed_statements_as_duckdb(db: duckdb.DuckDBPyConnection, name: str, on: str, where: str, items: str,
                                    device: str) -> None:
    want = answer(db, name, on, where, items)
    assert len(want) > 5
    assert run(name, on, where, items, device) == want


@pytest.mark.parametrize(("device", "name"), [at_length("pysim", "null-band"), ("sim", "band-range-different")])
def test_fixed_statements_on_circuits(db: duckdb.DuckDBPyConnection, device: str, name: str) -> None:
    """Of the one with the post-selection, by Verilator; of the one with NULL, in Amaranth's simulator."""
    _, on, where, items = next(f for f in FIXED if f[0] == name)
    made = find_device(device, cores=2, capacity=64)
    assert run(name, on, where, items, made) == answer(db, name, on, where, items)


def answer(db: duckdb.DuckDBPyConnection, name: str, on: str, where: str, items: str) -> list[tuple[Any, ...]]:
    fixed = next(s for s in SCENARIOS if s.name == name)
    query = fixed.query()
    extents = [(e.rows, e.length) for e in (query.window_r, query.window_s)]
    found = selected(db, fixed.r, fixed.s, [items], on=f"({on}) AND ({where})", window_r=extents[0],
                     window_s=extents[1], time=None if fixed.time is None else "ts")
    return [tuple(map(exactly, row)) for row in found]


def run(name: str, on: str, where: str, items: str, device: str | Device) -> list[tuple[Any, ...]]:
    fixed = next(s for s in SCENARIOS if s.name == name)
    table = splitjoin.sql(f"SELECT {items} FROM r JOIN s ON {on} WHERE {where}", r=fixed.r, s=fixed.s,
                          window=fixed.window, time=fixed.time, device=device).table
    return [tuple(map(exactly, row)) for row in zip(*(c.to_pylist() for c in table.columns), strict=True)]


@pytest.mark.parametrize(("given", "said"), [
    ({"r": R}, "the table 's' of the statement is not given; its rows are given under its name, such as s=…, but given "
               "were 'r'"),
    ({"r": R, "s": S, "t": S}, "'t' is given, but the statement has no such table; its tables are r and s, "
                                "and the device 'cpu' has the options engine, threads, prefilter, tuning, "
                                "architecture"),
    ({"r": R, "s": S.schema}, "the tables must be given as rows both, or as schemas both, but 's' is a schema"),
    ({"r": R, "s": [1]}, "stream s must be an Arrow table, a DataFrame, a dict of columns, the path of a file, or "
                         "offer __arrow_c_stream__, not list"),
    ({"r": R, "s": S, "tables": {"s": S}}, "the table 's' is given twice, in tables and by its name; give it once"),
    ({"r": R.schema, "s": S.schema, "device": "cpu"}, "a device runs rows, but schemas were given; give the device to "
                                                      "splitjoin.open"),
    ({"r": R, "s": "s.txt"}, "the format of a file follows from its suffix, which must be .parquet, .csv, .arrow or "
                             ".feather, but s.txt has .txt; write it with commas, as .csv, or "
                             "give pandas.read_csv(FILE, sep='\\t')"),
    ({"r": R, "s": S, "how": "left"}, "how='left' must be left out, as it is a part of the statement: write the kind "
                                      "of join, such as LEFT JOIN"),
    ({"r": R, "s": S, "window": {"r": "ROWS 1", "t": "ROWS 1"}}, "a mapping of window must have the keys 'r' and 's', "
                                                                 "the tables of the statement, not ['r', 't']"),
    ({"r": R, "s": S, "time": {"r": "ts"}}, "a mapping of time must have the keys 'r' and 's', the tables of the "
                                            "statement, not ['r']"),
])
def test_wrong_arguments(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SplitJoinError) as caught:
        splitjoin.sql(f"SELECT r.x {NEAR}", **{"window": "ROWS 3"} | given)
    assert str(caught.value) == said


def test_a_statement_must_be_a_text() -> None:
    with pytest.raises(InputError, match="a statement must be a text, not int"):
        splitjoin.sql(5, r=R, s=S, window="ROWS 3")  # type: ignore[arg-type]  # wrong on purpose


def test_tables_have_names() -> None:
    with pytest.raises(InputError, match=r"under their names, r=…, s=…, as their place .* but 1 argument without "
                                         r"a name came after the text: "):
        splitjoin.sql(f"SELECT r.x {NEAR}", R, window="ROWS 3")  # type: ignore[call-overload]  # wrong on purpose
    text = "SELECT r.x, count(*) FROM r JOIN s ON r.x = s.a GROUP BY r.x"  # of which DuckDB does a part
    with pytest.raises(InputError, match=r"under their names, r=…, s=…, .* but 1 argument without a name came"):
        splitjoin.sql(text, R)  # type: ignore[call-overload]  # wrong on purpose
    with pytest.raises(InputError, match=r"^a mapping from names to tables is given as tables=…, but it came without"):
        splitjoin.sql(text, {"r": R, "s": S})  # type: ignore[call-overload]  # wrong on purpose


def test_errors_of_what_duckdb_does_have_no_other_error_above_them() -> None:
    with pytest.raises(SplitJoinError) as caught:
        splitjoin.sql("SELECT count(*) FROM r JOIN s ON r.x = s.a GROUP BY r.x", r=R)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(("kind", "of"), [("LEFT", "s"), ("FULL", "s"), ("RIGHT", "r"), ("FULL", "r")])
def test_a_column_without_null_may_lack_its_tuple(kind: str, of: str) -> None:
    """Outer joins have rows without a tuple of a stream, whatever its schema says of NULL."""
    r, s = (pa.table({"ts": [1, 2], "v": [1, 9 if side == "s" else 5]},
                     schema=pa.schema([pa.field("ts", pa.int64(), nullable=False), pa.field("v", pa.int64(), False)]))
            for side in "rs")
    text = f"SELECT {of}.v IS NULL AS missing, {of}.v + 1 AS more, {of}.v AS own FROM r {kind} JOIN s ON r.v = s.v"
    table = splitjoin.sql(text, r=r, s=s, window="RANGE 4", time="ts").table
    assert {"missing": True, "more": None, "own": None} in table.to_pylist()
    assert {"missing": False, "more": 2, "own": 1} in table.to_pylist()
    assert all(table.schema.field(name).nullable for name in ("more", "own"))


def test_a_table_whose_name_is_no_name_of_python_is_given_in_tables() -> None:
    with pytest.raises(InputError, match=re.escape("its rows are given under its name, such as tables={'s-1': …}, "
                                                   "but given were 'r'")):
        splitjoin.sql('SELECT x FROM r JOIN "s-1" ON TRUE', r=R)
    assert len(splitjoin.sql('SELECT r.x FROM r JOIN "s-1" ON TRUE', r=R, tables={"s-1": S}, device="golden"))


def test_a_constant_divisor_is_like_one_in_a_column() -> None:
    """Division by zero is IEEE 754's for both, remainders and whole quotients by zero are NULL for both."""
    r = pa.table({"x": [7, 0, -7], "y": [0.5, float("nan"), -0.0], "z": [0, 0, 0]})
    texts = ["x / {}", "y / {}", "(x + 1.5) / {}", "3 / {}", "0 / {}", "-x / {} * x", "x % {}", "x DIV {}", "y % {}"]
    for device in ("golden", "cpu"):
        for divisor in ("0", "(1 - 1)", "0.0"):
            chosen = [t for t in texts if "DIV" not in t or divisor == "0"]
            columns = ", ".join(f"{t.format(divisor)} AS c{n}, {t.format('z')} AS v{n}" for n, t in enumerate(chosen))
            found = splitjoin.sql(f"SELECT {columns} FROM r JOIN s ON TRUE", r=r, s={"a": [1]}, device=device).table
            for n, text in enumerate(chosen):
                assert repr(found[f"c{n}"].to_pylist()) == repr(found[f"v{n}"].to_pylist()), text
        for on in ("r.x / {} > s.a", "s.a / {} >= r.y", "1 / {} > r.x"):
            counts = [splitjoin.join(r, {"a": [1, -1]}, on=on.format(d), device=device).num_rows for d in ("0", "r.z")]
            assert counts[0] == counts[1] > 0, on
    with pytest.raises(SplitJoinError, match="needs whole numbers"):
        splitjoin.sql("SELECT r.x DIV 0.5 FROM r, s", r=r.schema, s=r.schema, window="ROWS 1")
    traced = splitjoin.join(r, {"a": [1]}, on=lambda r, s: r.x / 0 > s.a, device="golden")
    assert traced.column("x").to_pylist() == [7, 0]  # 0 / 0 is NaN, the greatest float
