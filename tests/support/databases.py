"""A database of DuckDB in memory that the tests of a process share: to open one takes ten milliseconds and more."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import duckdb
import pyarrow as pa


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


def wanted(relation: duckdb.DuckDBPyRelation) -> pa.Table:
    """The rows of ``relation`` as `splitjoin.sql` gives them: HUGEINTs, such as sums of integers, are int64."""
    table = relation.to_arrow_table()
    for at, type_ in enumerate(relation.types):
        if type_.id == "hugeint":
            table = table.set_column(at, table.field(at).with_type(pa.int64()), table.column(at).cast(pa.int64()))
    return table


@cache
def _shared() -> duckdb.DuckDBPyConnection:
    # Threads that live when the process ends keep what their modules see; DuckDB's binding takes that for a leak, and
    # prints a page about it.
    atexit.register(_shared.cache_clear)
    return duckdb.connect(config={"threads": 1})
