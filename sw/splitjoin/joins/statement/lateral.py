"""Tables of FROM that have other rows for each row of the tables before them: LATERAL, table functions of their
columns, and NEAREST BY.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.base.errors import InputError, PredicateError, SchemaError

from .clauses import quoted
from .from_clause import FromItem, Nearest
from .joined_tables import JoinedTables
from .one_table_terms import ask

__all__ = ["OF_ROW", "lateral_columns", "lateral_rows", "nearest_pairs"]

Ints = npt.NDArray[np.int64]
#: The column of `lateral_rows` that numbers the rows which they belong to.
OF_ROW = "splitjoin of row"
_R, _S = "splitjoin r", "splitjoin s"


def lateral_columns(db: Any, before: Mapping[str, pa.Table], item: FromItem, label: str,
                    scope: Mapping[str, pa.Table]) -> pa.Table | None:
    """The columns of ``item``, without rows, where it names columns of the tables ``before`` it; None for others."""
    views = {f"splitjoin_{n}": table.schema.empty_table() for n, table in enumerate(before.values())}
    source = ", ".join(f"{view} AS {quoted(name)}" for view, name in zip(views, before, strict=True))
    with contextlib.suppress(PredicateError, SchemaError, InputError):
        return ask(db, f"SELECT {quoted(label)}.* FROM {source}, {_named(item, label)} LIMIT 0", {**scope, **views})
    return None


def lateral_rows(db: Any, left: JoinedTables, item: FromItem, label: str,
                 scope: Mapping[str, pa.Table]) -> JoinedTables:
    """The rows of ``item`` for all rows of ``left``, with the number of theirs in `OF_ROW`."""
    source, views = _numbered(left, _R, "splitjoin_")
    rows = ask(db, f"SELECT {quoted(label)}.*, {_number(_R)} FROM {source} CROSS JOIN {_named(item, label)}",
               {**scope, **views}, f"FROM {item.text}")
    return JoinedTables({label: rows.rename_columns([*rows.column_names[:-1], OF_ROW])})


def nearest_pairs(db: Any, left: JoinedTables, right: JoinedTables, nearest: Nearest,
                  scope: Mapping[str, pa.Table]) -> tuple[Ints, Ints]:
    """The numbers of the rows of ``left`` and ``right`` that NEAREST BY pairs, the nearest first; of equally near ones
    the first, and none whose rank is NULL.
    """
    (of_r, views), (of_s, others) = _numbered(left, _R, "splitjoin_r"), _numbered(right, _S, "splitjoin_s")
    best = "arg_max(s, {'v': v, 's': -s}" if nearest.by_similarity else "arg_min(s, {'v': v, 's': s}"
    found = ask(db, f"SELECT r, unnest({best}, {nearest.k})) AS s FROM (SELECT {_number(_R)} AS r, {_number(_S)} AS s, "
                    f"({nearest.rank}) AS v FROM {of_r}, {of_s}) WHERE v IS NOT NULL GROUP BY r",
                {**scope, **views, **others}, nearest.rank)
    r, s = (column.to_numpy() for column in found.columns)
    order = np.argsort(r, kind="stable")
    return r[order], s[order]


def _numbered(rows: JoinedTables, label: str, prefix: str) -> tuple[str, dict[str, pa.Table]]:
    """FROM for ``rows`` and a table ``label`` that numbers them, and the tables that it names."""
    return JoinedTables({**rows.parts, label: pa.table({label: np.arange(len(rows))})}).views(prefix)


def _number(label: str) -> str:
    """The column of the table ``label`` of `_numbered`, which has a name that no column of a user has."""
    return f"{quoted(label)}.{quoted(label)}"


def _named(item: FromItem, label: str) -> str:
    return f"{item.body} AS {quoted(label)}{item.columns}"
