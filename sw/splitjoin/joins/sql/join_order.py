"""A SELECT over three tables or more, run over whole tables, step by step; estimates from samples of the tables choose
the order (decision 122).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from splitjoin.base.arrays import Ints
from splitjoin.base.errors import InputError, OrderError, PredicateError, SchemaError
from splitjoin.engines.arrival import event_ticks
from splitjoin.engines.device import pairs
from splitjoin.engines.registry import host
from splitjoin.lang.layouts import take_rows
from splitjoin.lang.order import Order, parse_order
from splitjoin.lang.schema import Schema, Side
from splitjoin.lang.time_columns import TimeSpec, time_columns
from splitjoin.lang.windows import WindowSpec
from splitjoin.rows.output import TIME
from splitjoin.rows.result import JoinResult

from ..arranged import arranged, whole_window
from ..execution import Output, run
from .multiway import Windows, latest, read_parts, steps
from .select import Select
from .statement import SelectItem, Statement, TableName
from .terms import with_computed_terms
from .trees import StatementText, conjunction, named_column

#: Rows of all tables together from which on an estimate, some milliseconds for each pair of tables, can pay.
LEAST_ROWS = 20_000
#: Rows of a table's sample.
SAMPLE = 2048
#: Pairs in a sample that suffice to say how many there are in all.
_ENOUGH = 32
#: Tables up to which all orders are compared.
_MOST_TABLES = 8
#: An order other than FROM's must promise so many times fewer rows between the steps.
_GAIN = 2
Tables = frozenset[int]


@dataclass(frozen=True)
class JoinOrder:
    """Tables in the order in which they are joined, ``order`` by their numbers in FROM, and what is said of it."""

    order: tuple[int, ...]
    told: str = ""

    def statement(self, statement: Statement, schemas: Sequence[Schema]) -> Statement:
        """``statement`` with its tables in this order; its rows have the same columns."""
        items, terms = read_parts(statement, schemas)
        return replace(statement, items=items, tables=tuple(statement.tables[n] for n in self.order),
                       on=(None,) * len(statement.on), where=conjunction([term for term, _ in terms]))


def join_order(statement: Statement, schemas: Sequence[Schema], tables: Sequence[pa.Table]) -> JoinOrder:
    """The order that promises the fewest rows between the steps; FROM's, where no other is much better.

    Windows count for nothing, as they take a like share of all pairs. Tables of few rows, more than eight, and those of
    a LEFT JOIN keep FROM's order, and conditions that are not in the language too, of which the joins themselves tell.
    """
    given = JoinOrder(tuple(range(len(tables))))
    if set(statement.hows) != {"inner"} or len(tables) > _MOST_TABLES or not all(map(len, tables)) or (
            sum(map(len, tables)) < LEAST_ROWS):
        return given
    try:
        sizes = _Sizes(statement, schemas, tables)
        between = _between(given.order, sizes)
        if between <= _GAIN * max(map(len, tables)):
            return given  # the tables themselves are about as large
        best = _best(len(tables), sizes)
        if _GAIN * _between(best, sizes) > between:
            return given
    except (PredicateError, SchemaError):
        return given
    labels = ", ".join(statement.tables[n].label for n in best)
    return JoinOrder(best, f"tables in the order {labels}, by estimate: {_about(_between(best, sizes))} rows between "
                           f"the steps, {_about(between)} in the order of FROM")


class _Sizes:
    """Estimates the rows of joins of some of the tables, from a sample of each."""

    def __init__(self, statement: Statement, schemas: Sequence[Schema], tables: Sequence[pa.Table]):
        self._labels = [t.label for t in statement.tables]
        self._tables = tables
        _, self._terms = read_parts(statement, schemas)
        named = {(c.table, c.name) for term, _ in self._terms for c in term.find_all(exp.Column)}
        self._samples = [take_rows(table.select([name for name in table.column_names if (label, name) in named]),
                                   _chosen(len(table))) for label, table in zip(self._labels, tables, strict=True)]
        self._rows = [self._own(n) for n in range(len(tables))]
        self._shares: dict[tuple[int, int], float] = {}

    def rows(self, of: Tables) -> float:
        """The rows of the join of the tables ``of``, by their numbers."""
        found = float(np.prod([self._rows[n] for n in of]))
        for pair in combinations(sorted(of), 2):
            found *= self._share(*pair)
        return found

    def _own(self, n: int) -> float:
        """The rows of table ``n`` that its own terms let through, of which it keeps the sample."""
        terms = [term for term, of in self._terms if of == {n}]
        sample = self._samples[n]
        if not terms:
            return len(self._tables[n])
        kept = self._pairs(terms, n, None)
        self._samples[n] = kept if len(kept) else sample
        return len(self._tables[n]) * max(len(kept), 0.5) / len(sample)

    def _share(self, a: int, b: int) -> float:
        """The share of the pairs of tables ``a`` and ``b`` of which the terms that name both are true."""
        if (a, b) not in self._shares:
            self._shares[a, b] = self._measured(a, b, [term for term, of in self._terms if of == {a, b}])
        return self._shares[a, b]

    def _measured(self, a: int, b: int, terms: list[exp.Expr]) -> float:
        if not terms:
            return 1.0
        compared = len(self._samples[a]) * len(self._samples[b])
        found = len(self._pairs(terms, a, b))
        if found >= _ENOUGH:
            return found / compared
        equal = [term for term in terms if isinstance(term, exp.EQ) and all(
            isinstance(side, exp.Column) for side in (term.this, term.expression))]
        if not equal:
            return max(found, 0.5) / compared
        # Few equal values meet in samples of many, so what counts is how many different ones there are.
        values = [max(self._values(column) for column in term.find_all(exp.Column)) for term in equal]
        return self._measured(a, b, [term for term in terms if term not in equal]) / max(values)

    def _values(self, column: exp.Column) -> float:
        """The number of different values in a column, about."""
        n = self._labels.index(column.table)
        sample = self._samples[n].column(column.name)
        found = int(pc.count_distinct(sample).as_py())
        return found if 2 * found < len(sample) else found / len(sample) * len(self._tables[n])

    def _pairs(self, terms: list[exp.Expr], a: int, b: int | None) -> pa.Table:
        """The rows of the sample of ``a`` in pairs with that of ``b``, or with one row of anything, by ``terms``."""
        names = tuple(TableName(label, label) for label in (self._labels[a], self._labels[b] if b is not None else ""))
        other = self._samples[b] if b is not None else pa.table({"": [0]})
        items = tuple(SelectItem(named_column(self._labels[a], name), name, name)
                      for name in self._samples[a].column_names)
        statement = Statement(StatementText(""), items, names, (conjunction([term.copy() for term in terms]),))
        left = self._samples[a]
        select = Select.make(statement, Schema.from_table("r", left), Schema.from_table("s", other), order="none",
                             window=whole_window(left, other), whole=True)
        output = Output(select.projection.gathered, select.projection.rows, select.schema)
        rows = arranged(select.query, left, other, sort=False)
        return run(select.query, rows, output, host(threads=1), None, None).table


def _best(n: int, sizes: _Sizes) -> tuple[int, ...]:
    """The order of ``n`` tables with the fewest rows between the steps; the first of them, if several have."""
    found: dict[Tables, tuple[float, tuple[int, ...]]] = {frozenset({at}): (0.0, (at,)) for at in range(n)}
    for size in range(2, n + 1):
        for of in map(frozenset, combinations(range(n), size)):
            rows = sizes.rows(of) if size < n else 0.0
            found[of] = min((found[of - {last}][0] + rows, (*found[of - {last}][1], last)) for last in of)
    return found[frozenset(range(n))][1]


def _between(order: Sequence[int], sizes: _Sizes) -> float:
    """The rows between the steps of a join in this ``order``."""
    return sum(sizes.rows(frozenset(order[:n])) for n in range(2, len(order)))


def _chosen(n: int) -> pa.Array:
    """The numbers of the rows that are a sample of ``n`` rows."""
    if n <= SAMPLE:
        return pa.array(np.arange(n))
    return pa.array(np.sort(np.random.default_rng(0).choice(n, SAMPLE, replace=False)))


def _about(rows: float) -> str:
    return f"{float(f'{rows:.2g}'):,.0f}"


def multiway_rows(statement: Statement, tables: Sequence[pa.Table], run: Callable[..., JoinResult], *,
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
        given: dict[Side, pa.Table] = {"r": left, "s": tables[at]}
        try:
            result = run(step.statement, given, order="none", **how)
        except PredicateError as refused:
            result = run(*with_computed_terms(step.statement, given, refused), order="none", **how)
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
    return (take_rows(table, chosen), [row[order] for row in rows])


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
