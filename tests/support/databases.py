"""A database of DuckDB in memory that the tests of a process share: to open one takes ten milliseconds and more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import duckdb

__all__ = ["database"]


@contextmanager
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with a thread. What is registered belongs to it; tables and files are for databases of one's own."""
    with _shared().cursor() as db:
        yield db


@cache
def _shared() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})
