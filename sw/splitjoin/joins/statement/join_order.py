"""Chooses the order in which whole tables are joined, by estimates from samples of them (decision 122)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from splitjoin.base.errors import PredicateError, SchemaError
from splitjoin.engines.cpu import CpuDevice
from splitjoin.lang.layouts import take_rows
from splitjoin.lang.schema import Schema

from ..arranged import arranged, whole_window
from ..execution import Output, run
from .multiway import MultiwayStatement, read_parts
from .multiway_trees import all_of, named_column
from .parts import SelectItem, Statement, TableName
from .select import Select

__all__ = ["JoinOrder", "join_order"]

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

    def statement(self, statement: MultiwayStatement, schemas: Sequence[Schema]) -> MultiwayStatement:
        """``statement`` with its tables in this order; its rows have the same columns."""
        items, terms = read_parts(statement, schemas)
        return replace(statement, items=items, tables=tuple(statement.tables[n] for n in self.order),
                       on=(None,) * len(statement.on), where=all_of([term for term, _ in terms]))


def join_order(statement: MultiwayStatement, schemas: Sequence[Schema], tables: Sequence[pa.Table]) -> JoinOrder:
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

    def __init__(self, statement: MultiwayStatement, schemas: Sequence[Schema], tables: Sequence[pa.Table]):
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
        names = (TableName(self._labels[a], self._labels[a], 0),
                 TableName(self._labels[b] if b is not None else "", self._labels[b] if b is not None else "", 0))
        other = self._samples[b] if b is not None else pa.table({"": [0]})
        items = tuple(SelectItem(named_column((self._labels[a], name)), name, name, 0, 0)
                      for name in self._samples[a].column_names)
        statement = Statement("", items, names, all_of([term.copy() for term in terms]), None)
        left = self._samples[a]
        select = Select.make(statement, Schema.from_table("r", left), Schema.from_table("s", other), order="none",
                             window=whole_window(left, other), whole=True)
        output = Output(select.projection.gathered, select.projection.rows, select.schema)
        rows = arranged(select.query, left, other, sort=False)
        return run(select.query, rows, output, CpuDevice(threads=1), None, None).table


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
