"""A SELECT over three tables or more, run over whole tables, step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.base.errors import InputError, OrderError
from splitjoin.engines.arrival import event_ticks
from splitjoin.engines.device import pairs
from splitjoin.lang.layouts import take_rows
from splitjoin.lang.order import Order, parse_order
from splitjoin.lang.schema import Schema
from splitjoin.lang.time_columns import TimeSpec, time_columns
from splitjoin.lang.windows import WindowSpec
from splitjoin.rows.result import JoinResult

from .join_order import JoinOrder, join_order
from .multiway import TIME, MultiwayStatement, Windows, latest, steps

__all__ = ["multiway_rows"]

Ints = npt.NDArray[np.int64]


def multiway_rows(statement: MultiwayStatement, tables: Sequence[pa.Table], run: Callable[..., JoinResult], *,
                  window: WindowSpec | None, time: TimeSpec | None, order: str | Order, sort: bool,
                  chosen: JoinOrder | None = None) -> JoinResult:
    """The rows of ``statement`` over ``tables``. ``run`` gives those of a statement over two tables, by side;
    ``chosen`` is the order of its joins, if it is known.

    They come by the arrival of their latest tuple, and then by those of the others, table by table (semantics,
    section 11). Raises a `SplitJoinError` for what does not fit.
    """
    order = parse_order(order)
    if order.kind not in ("total", "none"):
        raise OrderError(f"a join of three tables and more takes order 'total' or 'none', not '{order}'")
    schemas = [Schema.from_table("r", table) for table in tables]
    windows = None if window is None else Windows.make(statement.tables, schemas, window, time)
    steps(statement, schemas, windows)  # raises for wrong columns before the tables change places
    times = None if time is None else Windows.make(statement.tables, schemas, "RANGE 0" if window is None else window,
                                                   time) if windows is None else windows
    tables, places = _arrivals(tables, [t.label for t in statement.tables], times, sort)
    chosen = chosen or join_order(statement, schemas, tables)
    if chosen.told:
        statement = chosen.statement(statement, schemas)
        tables, schemas = [tables[n] for n in chosen.order], [schemas[n] for n in chosen.order]
        places = [places[n] for n in chosen.order]
        windows = None if windows is None else windows.reordered(chosen.order)
    left = tables[0].rename_columns([f"{statement.tables[0].label}.{name}" for name in tables[0].column_names])
    rows = [np.arange(len(tables[0]))]  # of each table so far, for each row of `left`
    plans, counters = [chosen.told] if chosen.told else [], dict[str, int]()
    result: JoinResult | None = None
    for step in steps(statement, schemas, windows):
        at = step.number
        how: dict[str, Any] = {"window": None, "time": None}
        if windows is not None and step.window is not None:
            names = [t.label for t in step.statement.tables]
            how = {"window": dict(zip(names, step.window, strict=True)), "time": windows.of_step(step)}
        result = run(step.statement, {"r": left, "s": tables[at]}, order="none", **how)
        plans.append(result.plan)
        for name, n in result.counters.items():
            counters[name] = counters.get(name, 0) + n
        r, s = pairs(result.items)
        rows = [*(row[r] for row in rows), s]
        if step.carried is not None:
            left = result.table
            if windows is not None:
                left, rows = _sorted(left, rows, places)
                of = [f"{t.label}.{name}" for t, name in zip(statement.tables[:at + 1], windows.times, strict=False)]
                times_of = [left.column(name) for name in of]
                kind = next((c.type for c in times_of if not pa.types.is_null(c.type)), pa.int64())  # null: no rows
                left = left.append_column(TIME, latest([c.cast(kind) for c in times_of]))
    assert result is not None
    of_from = sorted(range(len(tables)), key=lambda n: chosen.order[n])
    table = result.table if order.kind == "none" else _sorted(
        result.table, [rows[n] for n in of_from], [places[n] for n in of_from])[0]
    return JoinResult(table, None, counters, plan="; then ".join(plans))


def _sorted(table: pa.Table, rows: Sequence[Ints], places: Sequence[Ints]) -> tuple[pa.Table, list[Ints]]:
    """``table`` and the ``rows`` that it is made of, by the place of the latest in arrival order, then of each."""
    at = [place[row] for place, row in zip(places, rows, strict=False)]
    order = np.lexsort([*reversed(at), np.maximum.reduce(at)])
    chosen = pa.array(order)
    return (take_rows(table, chosen),
            [row[order] for row in rows])


def _arrivals(tables: Sequence[pa.Table], labels: Sequence[str], windows: Windows | None,
              sort: bool) -> tuple[list[pa.Table], list[Ints]]:
    """The tables, and the place of each of their rows in arrival order; sorted by time first, if asked for."""
    if windows is None:
        if sort:
            raise InputError("sort=True needs a time column to sort by; name it with time=…")
        return list(tables), [np.arange(len(table)) * len(tables) + n for n, table in enumerate(tables)]
    ticks, sorted_tables = [], []
    for table, label, name in zip(tables, labels, windows.times, strict=True):
        schema = Schema.from_table("r", table)
        try:
            of = event_ticks(time_columns(schema, Schema("s", schema.columns, schema.arrow), name), "r", table)
        except InputError as error:  # which calls the table r
            raise InputError(str(error).replace(f"r.{name}", f"{label}.{name}", 1)) from None
        if sort:
            rows = pa.array(np.argsort(of, kind="stable"))
            table, of = take_rows(table, rows), of[rows.to_numpy()]
        falls = np.flatnonzero(of[1:] < of[:-1])
        if len(falls):
            raise InputError(f"the time column {label}.{name} must not decrease, but row {int(falls[0]) + 1} is "
                             f"earlier than the row before it; sort the table by it first, or give sort=True")
        ticks.append(of)
        sorted_tables.append(table)
    order = np.argsort(np.concatenate(ticks), kind="stable")  # stable: at equal times the first table's rows are first
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return sorted_tables, np.split(place, np.cumsum([len(of) for of in ticks])[:-1])
