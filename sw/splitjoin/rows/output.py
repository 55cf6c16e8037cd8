"""Result columns: their choice, and gathering them by row id (late materialization)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Union

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.base.errors import SchemaError
from splitjoin.lang.ir import columns as columns_of
from splitjoin.lang.kind import INNER, Kind
from splitjoin.lang.layouts import taker
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Side, suggest

#: Names of result columns to keep, in order; or these with the names that they get, None for their own.
Selected = Union[Iterable[str], Mapping[str, str | None]]

#: The column of rows that come early: "+" for a row, "-" for one that is taken back.
OPERATION = pa.field("operation", pa.string(), nullable=False)
#: The column of a row between the joins of several streams that holds the number of a table's tuple, behind the table's
#: name and a dot; and the one that holds the time of its latest tuple.
NUMBER, TIME = "#", "#time"


@dataclass(frozen=True)
class OutputColumn:
    """A result column: its name, and the stream and column it is gathered from."""

    name: str
    side: Side
    source: str
    field: pa.Field


def needed_columns(query: Query, side: Side, columns: Iterable[OutputColumn], names: list[str]) -> list[str]:
    """Those of ``names`` that condition, aggregates and time of ``query``, or result ``columns``, need of stream
    ``side``: one at least, as a table without columns has no rows.
    """
    read = [query.predicate, *(e for a in query.aggregates for e in a.args)]
    used = {c.name for e in read for c in columns_of(e) if c.side == side} | {
        c.source for c in columns if c.side == side} | ({query.time.name(side)} if query.time is not None else set())
    return [name for name in names if name in used] or names[:1]


@dataclass(frozen=True)
class ResultNames:
    """The choice of result columns and their names.

    Attributes:
        select: The columns to keep, in order, each with the name that it gets, None for its own; None for all.
        suffixes: What columns of r and of s whose names are alike get appended.
    """

    select: tuple[tuple[str, str | None], ...] | None = None
    suffixes: tuple[str, str] = ("_r", "_s")

    @classmethod
    def of(cls, select: Selected | None = None, suffixes: Sequence[str | None] | None = None) -> ResultNames:
        """Names from a user. Raises `SchemaError` for anything but names, and two texts or None as suffixes."""
        return cls(None if select is None else _names(select),
                   cls.suffixes if suffixes is None else _checked_suffixes(suffixes))


def output_columns(r: pa.Schema, s: pa.Schema, chosen: ResultNames = ResultNames(),
                   kind: Kind = INNER) -> tuple[OutputColumn, ...]:
    """All columns of r, then all of s, colliding names with a suffix; or those that are ``chosen``.

    Rows of a ``kind`` such as semi have columns of r only; where a kind has rows without a tuple of one stream, that
    stream's columns may hold NULL. Names match exactly first, then without regard to case. Raises `SchemaError` for a
    chosen name that does not exist or is ambiguous, and for names of the result that are alike.
    """
    if "s" not in kind.sides:
        s = pa.schema([])
    both = set(r.names) & set(s.names)
    made = [OutputColumn(f"{f.name}{suffix}" if f.name in both else f.name, side, f.name,
                         f.with_nullable(True) if kind.may_lack(side) else f)
            for (side, schema), suffix in zip(_sides(r, s), chosen.suffixes, strict=True) for f in schema]
    if chosen.select is not None:
        found = [(_find(made, name), new) for name, new in chosen.select]
        made = [c if new is None else replace(c, name=new) for c, new in found]
    names = [c.name for c in made]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise SchemaError(f"result columns must have distinct names, but {', '.join(map(repr, twice))} would occur "
                          f"more than once; rename them with select={{'r.x': 'x', …}}, or give suffixes")
    return tuple(made)


def _names(select: Any) -> tuple[tuple[str, str | None], ...]:
    if isinstance(select, str):
        raise SchemaError(f"select must be a list of column names, not the text {select!r}; write [{select!r}]")
    if not isinstance(select, Iterable):
        raise SchemaError(f"select must be a list of column names, or a mapping of them to new ones, not {select!r}")
    names = [*select.items()] if isinstance(select, Mapping) else [(name, None) for name in select]
    for name, new in names:
        if not isinstance(name, str):
            raise SchemaError(f"select must be a list of column names, but it holds {name!r}; columns are chosen by "
                              f"name, such as 'x' or 'r.x'")
        if new is not None and (not isinstance(new, str) or not new):
            raise SchemaError(f"select must map names of columns to new names, or None, but maps {name!r} to {new!r}")
    return tuple(names)


def _checked_suffixes(suffixes: Any) -> tuple[str, str]:
    given = None if isinstance(suffixes, (str, Mapping)) or not isinstance(suffixes, Iterable) else list(suffixes)
    if given is None or len(given) != 2 or not all(x is None or isinstance(x, str) for x in given):
        raise SchemaError(f"suffixes must be two texts, of columns of r and of s whose names are alike, such as "
                          f"('_x', '_y'), not {suffixes!r}")
    return given[0] or "", given[1] or ""


def _find(made: Sequence[OutputColumn], name: str) -> OutputColumn:
    """The one among ``made`` that is called ``name``, by its own name or by its side and source."""
    found = [c for c in made if name in (c.name, _qualified(c))]
    found = found or [c for c in made if name.lower() in (c.name.lower(), _qualified(c).lower())]
    if len(found) == 1:
        return found[0]
    if found:
        raise SchemaError(f"the result column {name!r} is ambiguous: it could be "
                          f"{' or '.join(map(_qualified, found))}; write which, or rename the input columns")
    known = [n for c in made for n in (c.name, _qualified(c))]
    raise SchemaError(f"the result has no column {name!r}{suggest(name, known)}; its columns are "
                      f"{', '.join(c.name for c in made)}")


def _qualified(column: OutputColumn) -> str:
    return f"{column.side}.{column.source}"


def output_schema(columns: Sequence[OutputColumn]) -> pa.Schema:
    """The Arrow schema of the result."""
    return pa.schema([c.field.with_name(c.name) for c in columns])


def gather(columns: Sequence[OutputColumn], r: pa.Table, s: pa.Table, r_rows: npt.NDArray[np.int64],
           s_rows: npt.NDArray[np.int64]) -> pa.Table:
    """The result rows for pairs of row ids: ``r_rows`` and ``s_rows`` are int64 (n,), −1 for NULL."""
    tables, rows = {"r": r, "s": s}, {"r": r_rows, "s": s_rows}
    takers = {side: taker(rows[side]) for side in {c.side for c in columns}}
    data = [takers[c.side](tables[c.side].column(c.source)) for c in columns]
    return pa.table(data, schema=output_schema(columns))


def _sides(r: pa.Schema, s: pa.Schema) -> tuple[tuple[Side, pa.Schema], tuple[Side, pa.Schema]]:
    return ("r", r), ("s", s)
