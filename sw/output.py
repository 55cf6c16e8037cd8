"""Result columns: which there are, and gathering them by row id (late materialization)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .errors import SchemaError
from .lang.schema import Side, suggest

__all__ = ["OutputColumn", "gather", "output_columns", "output_schema"]


@dataclass(frozen=True)
class OutputColumn:
    """A result column: its name, and the stream and column it is gathered from."""

    name: str
    side: Side
    source: str
    field: pa.Field


def output_columns(r: pa.Schema, s: pa.Schema, select: Sequence[str] | None = None) -> tuple[OutputColumn, ...]:
    """All columns of r, then all of s, colliding names with ``_r`` / ``_s``; or those that ``select`` names.

    Raises `SchemaError` for a name in ``select`` that does not exist, and when a suffixed name collides again.
    """
    both = set(r.names) & set(s.names)
    made = [OutputColumn(f"{f.name}_{side}" if f.name in both else f.name, side, f.name, f)
            for side, schema in _sides(r, s) for f in schema]
    if select is None:
        chosen = made
    else:
        if isinstance(select, str):
            raise SchemaError(f"select must be a list of column names, not the text {select!r}; write [{select!r}]")
        by_name = {c.name: c for c in made} | {f"{c.side}.{c.source}": c for c in made}
        for name in select:
            if name not in by_name:
                raise SchemaError(f"the result has no column {name!r}{suggest(name, by_name)}; its columns are "
                                  f"{', '.join(c.name for c in made)}")
        chosen = [by_name[name] for name in select]
    names = [c.name for c in chosen]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise SchemaError(f"result columns must have distinct names, but {', '.join(map(repr, twice))} would occur "
                          f"more than once; rename the input columns or choose with select")
    return tuple(chosen)


def output_schema(columns: Sequence[OutputColumn]) -> pa.Schema:
    """The Arrow schema of the result."""
    return pa.schema([c.field.with_name(c.name) for c in columns])


def gather(columns: Sequence[OutputColumn], r: pa.Table, s: pa.Table, r_rows: npt.NDArray[np.int64],
           s_rows: npt.NDArray[np.int64]) -> pa.Table:
    """The result rows for pairs of row ids: ``r_rows`` and ``s_rows`` are int64 (n,)."""
    rows = {"r": pa.array(r_rows), "s": pa.array(s_rows)}
    tables = {"r": r, "s": s}
    data = [tables[c.side].column(c.source).take(rows[c.side]) for c in columns]
    return pa.table(data, schema=output_schema(columns))


def _sides(r: pa.Schema, s: pa.Schema) -> tuple[tuple[Side, pa.Schema], tuple[Side, pa.Schema]]:
    return ("r", r), ("s", s)
