"""One-time statements over the rows of continuous queries, by DuckDB, which may touch nothing else."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset

from splitjoin.base.errors import InputError, StatementError, ToolError, first_line

from .config import Limits

__all__ = ["Statements"]

#: Rows of one batch of an answer.
_BATCH = 1 << 16


class Statements:
    """Runs statements of clients within limits."""

    def __init__(self, limits: Limits):
        self._limits = limits
        self._free = threading.Semaphore(limits.statements)

    @contextmanager
    def answer(self, sql: str, tables: Mapping[str, tuple[list[Path], pa.Table]]) -> Iterator[pa.RecordBatchReader]:
        """The answer to ``sql``, in which each query is a table: its committed files, and rows that are in none yet.

        Raises `InputError` if too many statements run, `StatementError` for one that DuckDB refuses or that takes too
        long.
        """
        try:
            import duckdb
        except ImportError:
            raise ToolError("statements need duckdb, which is not installed; install splitjoin[sql]") from None
        if not self._free.acquire(blocking=False):
            raise InputError(f"{self._limits.statements} statements may run at once, and so many do; try again later")
        try:
            with duckdb.connect(":memory:", config={"threads": "1", "memory_limit": self._limits.statement_memory,
                                                    "temp_directory": ""}) as connection:
                connection.execute("SET python_enable_replacements = false")  # its tables are those named here
                for n, (name, (files, rest)) in enumerate(tables.items()):
                    quoted = name.replace('"', '""')
                    parts = [f'SELECT * FROM splitjoin_memory_{n}']
                    connection.register(f"splitjoin_memory_{n}", rest)
                    if files:
                        connection.register(f"splitjoin_files_{n}", pa.dataset.dataset(files, schema=rest.schema))
                        parts.insert(0, f"SELECT * FROM splitjoin_files_{n}")
                    connection.execute(f'CREATE VIEW "{quoted}" AS {" UNION ALL ".join(parts)}')
                connection.execute("SET enable_external_access = false")
                connection.execute("SET lock_configuration = true")
                timer = threading.Timer(self._limits.statement_seconds, connection.interrupt)
                timer.start()
                try:
                    yield self._read(connection, sql, list(tables))
                finally:
                    timer.cancel()
        finally:
            self._free.release()

    def _read(self, connection: Any, sql: str, names: list[str]) -> pa.RecordBatchReader:
        import duckdb

        try:
            relation = connection.sql(sql)
            if relation is None:
                raise duckdb.Error("it has no rows")
            return relation.to_arrow_reader(_BATCH)
        except duckdb.Error as error:
            raise StatementError(f"a statement must be a SELECT over {', '.join(names)}, but: "
                                 f"{self.reason(error)}") from None

    def reason(self, error: Exception) -> str:
        """Why a statement failed, of what DuckDB or Arrow's reader of its rows raised."""
        if type(error).__name__ == "InterruptException" or "INTERRUPT Error" in str(error):
            return f"it took more than {self._limits.statement_seconds:g} s"
        return first_line(error)
