"""The answer to a join from DuckDB: plain SQL with window functions, nothing of splitjoin's."""

from __future__ import annotations

import duckdb
import pyarrow as pa

NS_PER_TICK = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}

#: Arrival order, the number of opposite tuples before each, and the join itself.
_SQL = """
WITH ev AS (SELECT 0 AS side, k, t FROM r_in UNION ALL SELECT 1, k, t FROM s_in),
     numbered AS (SELECT *, row_number() OVER (ORDER BY {order}) AS n FROM ev),
     e AS (SELECT *, CASE side WHEN 0 THEN count(*) FILTER (side = 1) OVER w
                               ELSE count(*) FILTER (side = 0) OVER w END AS opp
           FROM numbered WINDOW w AS (ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
     r AS (SELECT r_in.*, e.n, e.opp FROM r_in JOIN e ON e.side = 0 AND e.k = r_in.k),
     s AS (SELECT s_in.*, e.n, e.opp FROM s_in JOIN e ON e.side = 1 AND e.k = s_in.k)
SELECT r.k, s.k, r.n > s.n FROM r JOIN s ON ({on})
  AND CASE WHEN r.n > s.n THEN {window_s} ELSE {window_r} END
ORDER BY greatest(r.n, s.n), CASE WHEN r.n > s.n THEN s.k ELSE r.k END
"""


def oracle(db: duckdb.DuckDBPyConnection, r: pa.Table, s: pa.Table, *, on: str,
           window_r: tuple[int | None, int | None], window_s: tuple[int | None, int | None], time: str | None = None,
           integer_times: bool = False) -> list[tuple[int, int, bool]]:
    """Row ids of the result pairs in total order, and whether the R tuple was the probe.

    ``on``: the condition in DuckDB's SQL. Windows are (rows, length), None where there is no limit; lengths are in
    nanoseconds for timestamps, in days for dates, else in the time column's unit. ``integer_times``: whether ``on``
    reads dates and timestamps as integers.
    """
    for name, table in (("r_in", r), ("s_in", s)):
        db.register(name, _prepared(table, time, integer_times))
    text = _SQL.format(order="k, side" if time is None else "t, side, k", on=on,
                       window_s=_window("r", "s", *window_s), window_r=_window("s", "r", *window_r))
    return db.sql(text).fetchall()


def _window(probe: str, stored: str, rows: int | None, length: int | None) -> str:
    """The window of stream ``stored`` as a tuple of ``probe`` sees it."""
    parts = []
    if rows is not None:
        parts.append(f"{stored}.k BETWEEN {probe}.opp - {rows} AND {probe}.opp - 1")
    if length is not None:
        parts.append(f"{stored}.t >= {probe}.t - {length}")
    return " AND ".join(parts)


def integers(table: pa.Table) -> pa.Table:
    """The table with dates, timestamps and durations as integers of their units."""
    def of(column: pa.ChunkedArray) -> pa.ChunkedArray:
        if pa.types.is_date(column.type):
            return column.cast(pa.int32())
        return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type) \
            else column

    return pa.table({name: of(column) for name, column in zip(table.column_names, table.columns, strict=True)})


def _prepared(table: pa.Table, time: str | None, integer_times: bool) -> pa.Table:
    """The table with row ids ``k`` and event times ``t`` in place of the time column."""
    data = {"k": pa.array(range(len(table)), pa.int64()), "t": pa.nulls(len(table), pa.int64())}
    whole = integers(table)
    for name, type_ in zip(table.column_names, table.schema.types, strict=True):
        if name == time:
            per = NS_PER_TICK[type_.unit] if pa.types.is_timestamp(type_) else 1
            data["t"] = pa.array([v * per for v in whole[name].to_pylist()], pa.int64())
        else:
            data[name] = (whole if integer_times else table)[name]
    return pa.table(data)
