"""Files that a statement names as its tables: the rows of the same tables given by name."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import splitjoin
from splitjoin.base.errors import InputError

TRADES = pa.table({"ts": [1, 4, 9, 20], "price": [10, 20, 30, 40]})
QUOTES = pa.table({"ts": [2, 4, 7, 9, 12], "bid": [8, 19, 29, 33, 99]})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pyarrow.csv.write_csv(TRADES, "trades.csv")
    pyarrow.parquet.write_table(QUOTES, "quotes.parquet")
    for n in range(2):
        pyarrow.parquet.write_table(QUOTES.slice(3 * n, 3), f"day-{n}.parquet")
    return tmp_path


@pytest.mark.parametrize(("named", "given"), [
    ("FROM 'trades.csv' AS t JOIN 'quotes.parquet' q ON abs(t.price - q.bid) <= 3",
     "FROM trades t JOIN quotes q ON abs(t.price - q.bid) <= 3"),
    ("FROM trades.csv JOIN quotes.parquet ON abs(trades.price - quotes.bid) <= 3",
     "FROM trades JOIN quotes ON abs(trades.price - quotes.bid) <= 3"),
    ("FROM 'trades.csv' t JOIN 'day-*.parquet' q ON t.price > q.bid AND t.ts = q.ts",
     "FROM trades t JOIN quotes q ON t.price > q.bid AND t.ts = q.ts"),
    ("FROM trades.csv t JOIN quotes q ON price = bid + 1", "FROM trades t JOIN quotes q ON price = bid + 1"),
    ("FROM trades.csv a JOIN trades.csv b ON a.ts < b.ts", "FROM trades a JOIN trades b ON a.ts < b.ts"),
    ("FROM trades t WHERE EXISTS (SELECT 1 FROM 'quotes.parquet' q WHERE q.bid > t.price)",
     "FROM trades t WHERE EXISTS (SELECT 1 FROM quotes q WHERE q.bid > t.price)"),
])
def test_rows(folder: Path, named: str, given: str) -> None:
    tables = {"trades": TRADES, "quotes": QUOTES}
    tables = {"trades": TRADES, "quotes": QUOTES}
    want = splitjoin.sql(f"SELECT * {given}", tables={n: tables[n] for n in tables if f"{n} " in given})
    found = splitjoin.sql(f"SELECT * {named}", tables={n: tables[n] for n in tables if f"FROM {n} " in named
                                                       or f"JOIN {n} " in named})
    assert want.num_rows and found.table.equals(want.table)


def test_absolute_paths_and_stated_types(folder: Path) -> None:
    path = folder / "trades.csv"
    found = splitjoin.sql(f"SELECT t.price FROM '{path}' t JOIN quotes.parquet q ON t.price = q.bid + 1",
                          types={"price": "decimal(9, 2)"})
    assert found.table.schema.field("price").type == pa.decimal128(9, 2) and found.num_rows == 2


def test_what_is_given_under_the_name_is_not_read(folder: Path) -> None:
    found = splitjoin.sql("SELECT * FROM 'none.csv' t JOIN quotes.parquet q ON t.price = q.bid + 1",
                          tables={"none.csv": TRADES})
    assert found.num_rows == 2


def test_a_missing_file_is_named(folder: Path) -> None:
    with pytest.raises(InputError, match=r"there is no file none\.csv"):
        splitjoin.sql("SELECT * FROM 'none.csv' t JOIN quotes.parquet q ON t.price = q.bid")
