"""DuckDB beside a join: a database that touches nothing outside, and the table functions that a statement may call."""

from __future__ import annotations

import contextlib
import importlib
import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from tempfile import TemporaryDirectory
from typing import Any

from splitjoin.base.errors import InputError, ToolError
from splitjoin.base.memory import available_memory

__all__ = ["check_table_functions", "connection"]

#: The least bytes of memory that DuckDB gets: with less it runs no statement.
_LEAST = 64 << 20
#: Table functions that give rows of their arguments or of constants, and do nothing else. Others read files, change
#: settings for what runs later, print, or run a text as a statement.
_ALLOWED = frozenset(("generate_series", "histogram", "histogram_values", "icu_calendar_names", "json_each",
                      "json_tree", "pg_timezone_names", "range", "repeat", "repeat_row", "summary", "test_all_types",
                      "test_vector_types", "unnest"))


@contextlib.contextmanager
def connection() -> Iterator[Any]:
    """A database of DuckDB in memory, that has UTC for its zone and reads no files. It takes the memory that joins may
    take, and then a folder of its own, which goes with it.
    """
    try:
        duckdb = importlib.import_module("duckdb")
    except ModuleNotFoundError as error:
        raise ToolError("install DuckDB, which computes over tables what is no join in a statement: "
                        "pip install duckdb") from error
    config = {"enable_external_access": "false"}
    if (free := available_memory()) < sys.maxsize:
        config["memory_limit"] = f"{max(free, _LEAST)} B"
    with TemporaryDirectory(prefix="splitjoin-") as folder, duckdb.connect(config={
            **config, "temp_directory": folder}) as db:
        db.execute("SET TimeZone = 'UTC'")
        db.execute("SET lock_configuration = true")
        yield db


def check_table_functions(db: Any, text: str) -> None:
    """Raise `InputError` for a table function in ``text``, DuckDB's SQL, that does more than give rows."""
    if _refused().search(text) is None:  # to read the text takes longer
        return
    ((found,),) = db.execute("SELECT json_serialize_sql(?)", [text]).fetchall()
    for name in _called(json.loads(found)):
        if name.lower() not in _ALLOWED:
            raise InputError(f"a statement may call table functions that give rows and do nothing else, which are "
                                 f"{', '.join(sorted(_ALLOWED))}, but it calls {name}; "
                                 + ("give the file as a table" if re.search("read_|scan|glob|sniff|parquet", name) else
                                    "leave it out"))


@cache
def _refused() -> re.Pattern[str]:
    """The names of the table functions that are not allowed, as words."""
    with importlib.import_module("duckdb").connect() as db:
        found = db.execute("SELECT DISTINCT function_name FROM duckdb_functions() "
                           "WHERE function_type IN ('table', 'table_macro')").fetchall()
    names = sorted({name.lower() for (name,) in found} - _ALLOWED)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b", re.IGNORECASE)


def _called(tree: Any) -> Iterator[str]:
    """The table functions in ``tree``, a statement as DuckDB gives it in JSON."""
    nodes = [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, dict):
            if node.get("type") == "TABLE_FUNCTION":
                yield str(node["function"]["function_name"])
            nodes += node.values()
        elif isinstance(node, list):
            nodes += node
