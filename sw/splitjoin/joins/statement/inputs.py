"""The tables of a statement as users give them: rows, files, or schemas alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from splitjoin.base.errors import InputError, plural
from splitjoin.engines.device import Device
from splitjoin.engines.registry import argument_names, option_names
from splitjoin.lang.schema import Schema, Side, suggest
from splitjoin.lang.types import STRING, OrderedText
from splitjoin.tables import TableFiles

from .multiway import MultiwayStatement
from .parts import Statement

__all__ = ["bind_tables", "check_named", "check_options", "is_schema", "read_columns", "schema_of"]

#: Arguments of `splitjoin.join` that are parts of a statement's text instead.
_IN_THE_TEXT = {
    "on": "write the condition behind ON", "how": "write the kind of join, such as LEFT JOIN",
    "direction": "write ASOF JOIN, and compare the times in its ON", "by": "write GROUP BY and the first table",
    "allow_exact": "write ASOF JOIN, and compare the times by < or > in its ON",
    "select": "write the columns behind SELECT",
    "aggregate": "write aggregates behind SELECT, and GROUP BY and the first table",
}


def bind_tables(statement: Statement | MultiwayStatement, tables: Mapping[str, Any] | None,
                keywords: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """What is given for the tables, by their names in the statement: exactly, else without regard to case; and the
    ``keywords`` that are none of them, which are options of the device.

    Raises `InputError` when a table is missing, ambiguous, given twice, or in ``tables`` but not in the statement.
    """
    given = _merged(tables, keywords)
    used: set[str] = set()
    found = []
    for table in statement.tables:
        names = [n for n in given if n == table.name] or [n for n in given if n.lower() == table.name.lower()]
        if len(names) != 1:
            what = "is not given" if not names else f"could be {' or '.join(map(repr, names))}"
            came = ", ".join(map(repr, given)) or "nothing"
            shown = f"{table.name}=…" if table.name.isidentifier() else f"tables={{{table.name!r}: …}}"
            raise InputError(f"the table {table.name!r} of the statement {what}{suggest(table.name, given)}; its rows "
                             f"are given under its name, such as {shown}, but given were {came}")
        used.add(names[0])
        found.append(given[names[0]])
    extra = [n for n in tables or {} if n not in used]
    if extra:
        raise InputError(f"{extra[0]!r} is given, but the statement has no such table; its tables are "
                         f"{_names(statement)}")
    return found, {n: value for n, value in keywords.items() if n not in used}


def check_named(statement: Statement | MultiwayStatement, unnamed: Sequence[Any]) -> None:
    """Raise `InputError` if tables, ``unnamed``, were given by position."""
    if unnamed:
        names = ", ".join(f"{t.name}=…" if t.name.isidentifier() else f"tables={{{t.name!r}: …}}"
                          for t in statement.tables)
        raise InputError(f"the tables of a statement are given under their names, {names}, as their place does not say "
                         f"which is which, but {len(unnamed)} {plural(len(unnamed), 'argument')} without a name came "
                         f"after the text: {', '.join(type(u).__name__ for u in unnamed)}")


def check_options(statement: Statement | MultiwayStatement, options: Mapping[str, Any], device: str | Device,
                  call: Callable[..., Any]) -> None:
    """Raise `InputError` for one of the ``options`` that is none of ``device``: perhaps it was meant as a table, or as
    another argument of ``call``.
    """
    known = option_names(device)
    wrong = [name for name in options if name not in known]
    if wrong and wrong[0] in _IN_THE_TEXT:
        raise InputError(f"{wrong[0]}={options[wrong[0]]!r} must be left out, as it is a part of the statement: "
                         f"{_IN_THE_TEXT[wrong[0]]}")
    if wrong:
        which = repr(device) if isinstance(device, str) else type(device).__name__
        has = f"has the options {', '.join(known)}" if known else "was made with its options"
        meant = suggest(wrong[0], [t.name for t in statement.tables] + argument_names(call) + list(known))
        raise InputError(f"{wrong[0]!r} is given, but the statement has no such table{meant}; its tables are "
                         f"{_names(statement)}, and the device {which} {has}")


def _names(statement: Statement | MultiwayStatement) -> str:
    return " and ".join(dict.fromkeys(t.name for t in statement.tables))


def _merged(tables: Mapping[str, Any] | None, streams: Mapping[str, Any]) -> dict[str, Any]:
    """The tables given as a mapping and those given by their names. Raises `InputError` for one that is given twice."""
    twice = sorted(set(tables or {}) & set(streams))
    if twice:
        raise InputError(f"the table {twice[0]!r} is given twice, in tables and by its name; give it once")
    return {**(tables or {}), **streams}


def is_schema(data: Any) -> bool:
    """True if ``data`` is a schema, without rows."""
    return isinstance(data, pa.Schema) or (
        hasattr(data, "__arrow_c_schema__") and not isinstance(data, (pa.Table, pa.RecordBatch, pa.RecordBatchReader))
        and not hasattr(data, "__arrow_c_stream__") and not hasattr(data, "__arrow_c_array__"))


def schema_of(side: Side, data: Any) -> Schema:
    """The schema of stream ``side`` from a schema, a table or a file; nullability as declared, but by a table without
    rows, which holds no NULL.
    """
    if isinstance(data, TableFiles):
        return _of_rows(Schema.from_arrow(side, data.schema()))
    if isinstance(data, pa.Table):
        return _of_rows(Schema.from_arrow(side, data.schema)) if len(data) else Schema.from_table(side, data)
    return Schema.from_arrow(side, data if isinstance(data, pa.Schema) else pa.schema(data))


def _of_rows(schema: Schema) -> Schema:
    """``schema`` of rows that are not read yet, which will tell the order of categories; until then these are text."""
    columns = [replace(c, type=STRING) if isinstance(c.type, OrderedText) else c for c in schema]
    return Schema(schema.side, columns, schema.arrow)


def read_columns(data: pa.Table | TableFiles, columns: list[str]) -> pa.Table:
    """The ``columns`` of ``data``; from files, only these are read."""
    return data.read(columns) if isinstance(data, TableFiles) else data.select(columns)
