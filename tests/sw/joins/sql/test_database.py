"""DuckDB beside a join: its memory, its folder, and the table functions that a statement may call."""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import splitjoin
from splitjoin.base.errors import InputError
from splitjoin.joins.sql import database
from splitjoin.joins.sql.database import ask, close_idle, connection

A, B = pa.table({"x": [1, 2, 3]}), pa.table({"y": [2, 3]})


@pytest.fixture
def no_idle() -> Iterator[None]:
    """Closes the database that is kept, before and behind the test."""
    close_idle()
    yield
    close_idle()


def _settings(db: Any) -> dict[str, str]:
    return dict(db.execute("SELECT name, value FROM duckdb_settings() WHERE name IN "
                           "('memory_limit', 'temp_directory', 'lock_configuration')").fetchall())


@pytest.mark.usefixtures("no_idle")
def test_its_memory_is_what_joins_may_take_and_its_folder_goes_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for mib in (300, 200):  # of another database, and of the one that is kept
        monkeypatch.setattr(database, "available_memory", lambda mib=mib: mib * 2**20)
        with connection() as db:
            found = _settings(db)
            assert (found["memory_limit"], found["lock_configuration"]) == (f"{mib}.0 MiB", "true")
            folder = Path(found["temp_directory"])
            assert folder.stat().st_mode & 0o777 == 0o700
            assert folder.is_absolute()
            with pytest.raises(duckdb.InvalidInputException, match="configuration has been locked"):
                db.execute("SET threads = 1")
    close_idle()
    assert not folder.exists()


@pytest.mark.usefixtures("no_idle", "own_garbage")
def test_a_database_is_kept_without_what_a_statement_left_in_it() -> None:
    rows = pa.table({"x": [1]})
    with connection() as db:
        ask(db, 'SELECT * FROM "a ""table"', {'a "table': rows})
        db.execute("SET VARIABLE secret = 1")
        db.execute("CREATE TEMP TABLE own AS SELECT 1")
        folder = _settings(db)["temp_directory"]
    held = weakref.ref(rows)
    del rows
    gc.collect()
    assert held() is None
    with connection() as db, connection() as other:
        assert [_settings(one)["temp_directory"] == folder for one in (db, other)] == [True, False]
        assert db.execute("SELECT getvariable('secret')").fetchall() == [(None,)]
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == []
    assert len(database._IDLE) == 1


@pytest.mark.usefixtures("no_idle")
def test_a_database_is_not_kept_behind_an_error_nor_without_its_folder() -> None:
    with pytest.raises(InputError), connection() as db:
        ask(db, "SELECT CAST(x AS INTEGER) FROM t", {"t": pa.table({"x": ["a"]})})
    assert database._IDLE == []
    with connection() as db:
        folder = Path(_settings(db)["temp_directory"])
    folder.rmdir()
    folder.mkdir(0o755)  # by somebody else
    with connection() as db:
        assert _settings(db)["temp_directory"] != str(folder)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process")
@pytest.mark.usefixtures("no_idle")
def test_a_forked_process_has_no_database_whose_threads_it_lacks() -> None:
    with connection():
        pass
    assert len(database._IDLE) == 1
    if (child := os.fork()) == 0:
        os._exit(len(database._IDLE))
    assert os.waitpid(child, 0)[1] == 0


def test_nothing_is_left_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    splitjoin.sql("SELECT x, row_number() OVER (ORDER BY x) AS n FROM a JOIN b ON a.x = b.y", a=A, b=B)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", [
    "SELECT a.x FROM a JOIN b ON a.x = b.y JOIN enable_profiling() p ON true",
    'SELECT * FROM a JOIN b ON a.x = b.y JOIN "Enable_Profiling" () p ON true',
    "SELECT x FROM (SELECT x FROM main.enable_logging(), a) a JOIN b ON a.x = b.y",
    "WITH p AS (SELECT * FROM disable_profiling()) SELECT x FROM a JOIN b ON a.x = b.y, p",
    "SELECT x, (SELECT count(*) FROM query('SELECT 1')) AS n FROM a JOIN b ON a.x = b.y",
    "SELECT x FROM a JOIN b ON a.x = b.y WHERE x IN (SELECT 1 FROM checkpoint())",
    "SELECT x FROM a JOIN b ON a.x = b.y, LATERAL (SELECT * FROM read_text('none' || x)) t",
    "SELECT x FROM a JOIN b ON a.x = b.y JOIN duckdb_settings() s ON s.name = 'x'",
])
def test_table_functions_that_do_more_than_give_rows_are_refused(text: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="a statement may call table functions that give rows and do nothing else"):
        splitjoin.sql(text, a=A, b=B)
    assert capfd.readouterr().out == ""


def test_table_functions_that_give_rows_and_names_that_are_none_are_taken() -> None:
    found = splitjoin.sql("SELECT x, i, 'enable_profiling()' AS query FROM a JOIN b ON a.x = b.y "
                          "JOIN range(2, 4) t(i) ON x = i ORDER BY x", a=A, b=B)
    assert found.to_pylist() == [{"x": n, "i": n, "query": "enable_profiling()"} for n in (2, 3)]
