"""A database of DuckDB in memory that the tests of a process share: to open one takes ten milliseconds and more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import duckdb

__all__ = ["database"]


@contextmanager
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with a thread. What is registered belongs to it, and tables are dropped; files are for databases of
    one's own.
    """
    with _shared().cursor() as db:
        try:
            yield db
        finally:
            for (name,) in db.execute("SELECT table_name FROM duckdb_tables()").fetchall():
                db.execute(f'DROP TABLE "{name}"')


@cache
def _shared() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})
