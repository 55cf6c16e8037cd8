"""DuckDB beside a join: its memory, its folder, and the table functions that a statement may call."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import splitjoin
from splitjoin.base.errors import InputError
from splitjoin.joins.sql import database
from splitjoin.joins.sql.database import connection

A, B = pa.table({"x": [1, 2, 3]}), pa.table({"y": [2, 3]})


def test_its_memory_is_what_joins_may_take_and_its_folder_goes_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "available_memory", lambda: 300 * 2**20)
    with connection() as db:
        found = dict(db.execute("SELECT name, value FROM duckdb_settings() WHERE name IN "
                                "('memory_limit', 'temp_directory', 'lock_configuration')").fetchall())
        assert (found["memory_limit"], found["lock_configuration"]) == ("300.0 MiB", "true")
        folder = Path(found["temp_directory"])
        assert folder.stat().st_mode & 0o777 == 0o700
        assert folder.is_absolute()
    assert not folder.exists()


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
