"""Columns as a user states them: the types of CSV columns, and values that stand for NULL, wherever tables come in."""

from __future__ import annotations

import datetime as dt
import math
import sys
from decimal import Decimal
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import splitjoin
from splitjoin import InputError, SchemaError
from splitjoin.cli import main

UNDEF = 2**64 - 1
PRICES = {"price": "decimal(9,2)", "bid": "decimal(9, 2)"}
NEAR = "abs(r.price - s.bid) <= 0.03"
FOUND = {"price": [Decimal("10.13")], "bid": [Decimal("10.10")]}

#: Arrow type → a value that stands for NULL, how the command line writes it, and another one.
SENTINELS: dict[pa.DataType, tuple[Any, str, Any]] = {
    pa.uint64(): (UNDEF, str(UNDEF), 1), pa.int64(): (2**63 - 1, str(2**63 - 1), 0), pa.int8(): (-1, "-1", 1),
    pa.float64(): (math.nan, "nan", 1.0), pa.float32(): (-0.0, "0", 2.0), pa.string(): ("", "", "NULL"),
    pa.decimal128(9, 2): (Decimal("-1.00"), "-1", Decimal("1.5")), pa.bool_(): (False, "false", True),
    pa.timestamp("us"): (dt.datetime(9999, 12, 31), "9999-12-31", dt.datetime(1, 1, 1)),
    pa.timestamp("ns"): (2**63 - 1, "2262-04-11 23:47:16.854775807", 5), pa.date32(): (
        dt.date(1900, 1, 1), "1900-01-01", dt.date(2020, 1, 1)),
    pa.dictionary(pa.int8(), pa.string()): ("?", "?", "a"), pa.string_view(): ("n/a", "n/a", "b"),
    pa.binary(): (b"\0", "\0", b"a"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("r.csv").write_text("zip,price\n01234,10.13\n1234,10.16\n")
    Path("s.csv").write_text("zip,bid\n01234,10.10\n")
    return tmp_path


def test_codes_with_leading_zeros_meet_themselves_alone(folder: Path) -> None:
    assert splitjoin.join("r.csv", "s.csv", on="r.zip = s.zip", select=["price"]).to_pydict() == {"price": [10.13]}
    found = splitjoin.join("r.csv", "s.csv", on="r.zip = s.zip", types={"zip": pa.int64()}, select=["price"])
    assert found.to_pydict() == {"price": [10.13, 10.16]}


def test_types_that_are_stated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within three cents, which floats miss."""
    how: dict[str, Any] = {"on": NEAR, "select": ["price", "bid"]}
    assert splitjoin.join("r.csv", "s.csv", **how).num_rows == 0
    assert splitjoin.join("r.csv", "s.csv", types=PRICES, **how).to_pydict() == FOUND
    assert splitjoin.join("r.csv", ["s.csv"], types={f"{side}.{name}": type_ for side, (name, type_) in zip(
        "rs", PRICES.items(), strict=True)}, **how).to_pydict() == FOUND
    text = "SELECT price, bid FROM t JOIN q ON abs(t.price - q.bid) <= 0.03"
    assert splitjoin.sql(text, t="r.csv", q="s.csv", types=PRICES).to_pydict() == FOUND
    assert splitjoin.sql(text + " GROUP BY price, bid", t="r.csv", q="s.csv", types=PRICES).to_pydict() == FOUND
    assert "way" in splitjoin.explain("r.csv", "s.csv", types=PRICES, **how)
    schema = pa.schema({"zip": pa.string(), "price": pa.decimal128(9, 2)})
    query = splitjoin.query(schema, schema, on="r.price = s.price", window="ROWS 9", how="semi")
    with splitjoin.open(query, "golden") as session:
        session.push_r("r.csv")
        session.push_s("r.csv")
        assert session.flush().column("price").to_pylist() == [Decimal("10.13"), Decimal("10.16")]

    types = ["--types", "price:decimal(9,2), bid:decimal(9, 2)", "-o", "o.parquet"]
    assert main(["join", "r.csv", "s.csv", "--on", NEAR, "--select", "price,bid", *types]) == 0
    assert pyarrow.parquet.read_table("o.parquet").to_pydict() == FOUND
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(Path("s.csv").read_bytes())))
    assert main(["sql", text, "t=r.csv", "q=-", *types]) == 0
    assert pyarrow.parquet.read_table("o.parquet").to_pydict() == FOUND
    assert main(["sql", text, "t=r.csv", "q=s.csv", "--explain", *types[:2]]) == 0


@pytest.mark.parametrize(("given", "error", "message"), [
    ({"types": {"pric": "string"}}, SchemaError, r"types names the column 'pric', but no table has it \(did you mea"),
    ({"types": {"s.price": "string"}}, SchemaError, "types names the column 's.price', but no table has it"),
    ({"types": {"price": "decimal(9, 1)"}}, InputError, r"the cells of r\.csv must fit the types that types says, but"),
    ({"types": {"zip": "date"}}, InputError, r"of its column 1: .*invalid value '01234'"),
    ({"types": {"price": "decim"}}, SchemaError, "column 'price' has the unknown type 'decim'"),
    ({"types": {"price": pa.list_(pa.int8())}}, InputError, "CSV holds numbers, text and times"),
    ({"types": ["price"]}, InputError, "types must be a mapping of names of columns, such as {'zip': 'string'"),
    ({"null_values": 5}, InputError, "null_values must be a mapping of names of columns, such as {'ts': 184467"),
    ({"null_values": {"nothing": 5}}, SchemaError, "null_values names the column 'nothing', but no table has it"),
    ({"null_values": {"price": "x"}}, SchemaError, "stand for NULL in r.price must be of the type double, not 'x'"),
    ({"null_values": {"zip": 7}}, SchemaError, "the column r.zip must hold values of the type string, but"),
    ({"null_values": {"zip": None}}, SchemaError, "r.zip has None among them; leave it out, as it is NULL"),
])
def test_refused(folder: Path, given: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        splitjoin.join("r.csv", "s.csv", on="TRUE", **given)
    more: dict[str, Any] = {
        what: {name.replace("s.", "q."): one for name, one in value.items()} if isinstance(value, dict) else value
        for what, value in given.items()}
    with pytest.raises(error, match=message.replace("r.zip", "t.zip").replace("r.price must", "t.price must")
                       .replace("'s.price'", "'q.price'")):
        splitjoin.sql("SELECT * FROM t JOIN q ON TRUE", t="r.csv", q="s.csv", **more)


def test_types_are_for_csv_alone(folder: Path) -> None:
    pyarrow.parquet.write_table(pa.table({"x": [1]}), "x.parquet")
    for other in ("x.parquet", {"x": [1]}, pl.LazyFrame({"x": [1]})):
        with pytest.raises(InputError, match=r"types says how the cells of CSV files are read, but s\.x comes with "):
            splitjoin.join("r.csv", other, on="TRUE", types={"x": "int8"})
    a, b = pa.schema({"x": pa.int64()}), pa.schema({"y": pa.int64()})
    with pytest.raises(InputError, match=r"but a\.x comes with the type int64"):
        splitjoin.sql("SELECT a.x FROM a JOIN b ON TRUE", tables={"a": a, "b": b}, types={"x": "int8"}, window="ROWS 1")


@pytest.mark.parametrize("type_", SENTINELS, ids=str)
def test_values_that_stand_for_null(type_: pa.DataType, tmp_path: Path) -> None:
    missing, text, other = SENTINELS[type_]
    inner = type_.value_type if pa.types.is_dictionary(type_) else type_
    table = pa.table({"n": [0, 1, 2, 3], "v": pa.array([missing, other, None, missing], inner).cast(type_)})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    want = [None, *pa.array([other], inner).to_pylist(), None, None]
    for value in (missing, [missing], text):
        if value == text and pa.types.is_binary(type_):
            continue
        for given in (table, tmp_path / "t.parquet", [tmp_path / "t.parquet"]):
            found = splitjoin.join(given, {"a": [0, 1, 2, 3]}, on="r.n = s.a", null_values={"r.v": value}, order="left")
            assert found.column("v").to_pylist() == want
    found = splitjoin.sql("SELECT v, t.n FROM t JOIN u ON t.n = u.n WHERE v IS NULL", t=table, u={"n": [0, 1, 2, 3]},
                          null_values={"t.v": missing})
    assert found.column("n").to_pylist() == [0, 2, 3]


@pytest.mark.parametrize("type_", [t for t in SENTINELS if t != pa.binary()], ids=str)
def test_values_that_stand_for_null_in_streams(type_: pa.DataType) -> None:
    """Also where the schema says that there is no NULL, and through a snapshot."""
    missing, _, other = SENTINELS[type_]
    inner = type_.value_type if pa.types.is_dictionary(type_) else type_
    schema = pa.schema([pa.field("n", pa.int64()), pa.field("v", type_, nullable=False)])
    values = [missing, other, missing]
    table = pa.table({"n": [0, 1, 2], "v": pa.array(values, inner).cast(type_)}, schema=schema)
    want = [None, *pa.array([other], inner).to_pylist(), None]
    one = pa.schema({"a": pa.int64()})
    query = splitjoin.query(schema, one, on="r.n = s.a", window="ROWS 9", null_values={"v": missing})
    with splitjoin.open(query, "golden", select=["v"]) as session:
        session.push_r(table)
        saved = session.snapshot()
    select = splitjoin.sql("SELECT v FROM t JOIN u ON t.n = u.a", t=schema, u=one, window="ROWS 9",
                           null_values={"t.v": missing})
    with splitjoin.open(query, "golden", select=["v"]) as session:
        session.restore(saved)
        session.push_s({"a": [0, 1, 2]})
        assert session.flush().column("v").to_pylist() == want
    with splitjoin.open(select, "golden") as session:
        session.push_r(table)
        session.push_s({"a": [0, 1, 2]})
        assert session.flush().column("v").to_pylist() == want
    with splitjoin.share(schema, one, null_values={"r.v": [missing]}) as streams:
        added = streams.query(on="r.n = s.a", window="ROWS 9", device="golden", select=["v"])
        streams.push_r(table)
        streams.push_s({"a": [0, 1, 2]})
        streams.close_r()
        streams.close_s()
        assert added.poll().column("v").to_pylist() == want
    several = splitjoin.sql("SELECT v FROM t JOIN u ON t.n = u.a JOIN w ON u.a = w.a", t=schema, u=one, w=one,
                            window="RANGE 9", time={"t": "n", "u": "a", "w": "a"}, null_values={"v": missing})
    with splitjoin.open_multiway(several, "golden") as session:
        session.push("t", table)
        for name in "uw":
            session.push(name, {"a": [0, 1, 2]})
        assert session.flush().column("v").to_pylist() == want


def test_the_command_line(folder: Path) -> None:
    Path("q.csv").write_text("id,ts,px\n0,18446744073709551615,-1\n1,5,7\n")
    given = ["--null-values", f"ts={UNDEF}", "--null-values", "s.px=-1", "--null-values", "s.px=7", "-o", "o.parquet"]
    assert main(["join", "q.csv", "q.csv", "--on", "r.id = s.id", *given]) == 0
    assert pyarrow.parquet.read_table("o.parquet").drop_columns(["id_r", "id_s"]).to_pydict() == {
        "ts_r": [None, 5], "px_r": [-1, 7], "ts_s": [None, 5], "px_s": [None, None]}
    assert main(["join", "q.csv", "q.csv", "--on", "TRUE", "--null-values", "ts", "-o", "o.parquet"]) == 2


def test_aggregates_leave_them_out() -> None:
    """An average over an undefined price of 2^63 − 1 was 4.6·10^18."""
    r, s = {"k": [1]}, {"k": [1, 1], "price": [2**63 - 1, 10]}
    found = splitjoin.join(r, s, on="r.k = s.k", by="r", aggregate={"m": "avg(s.price)", "n": "count(*)"},
                           null_values={"price": 2**63 - 1})
    assert found.to_pydict() == {"k": [1], "m": [10.0], "n": [2]}
