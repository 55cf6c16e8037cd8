"""SELECTs within a SELECT, run as joins of the rows around them: which of these rows a condition leaves, and the value
that a SELECT has for each.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from sqlglot import exp

from splitjoin.base.arrays import Ints
from splitjoin.base.errors import InputError, SplitJoinError, StatementError

from .answer_steps import (
    chosen,
    nearest_value,
    numbers_left,
    one_table,
    rows_of,
    truth_values,
    values_in_order,
    without_null,
)
from .database import aggregate_names, ask
from .subqueries import (
    Database,
    InnerRows,
    Parts,
    SubqueryValue,
    is_exists,
    subquery_join,
    subquery_nearest,
    subquery_value,
    with_marks,
)
from .table_join import JoinedTables, StatementRun, TableJoin, values_at
from .trees import FromItem, FromJoin, named_column, quoted, sql_text

#: The error for a statement with several joins where one is meant.
ONE_JOIN = ("window, time and sort are those of one join, but the statement has several; run them one by one, or leave "
            "them out")
#: The label of the columns that say which rows a join leaves.
_MARKS = "splitjoin marks"
_ROW = "splitjoin row"


class Unnesting:
    """Runs the SELECTs within the one that is ``written`` as joins, part of the ``run`` of a statement.

    ``scope``: the tables that they may name. ``rows`` runs one that says nothing of the rows around it.
    """

    def __init__(self, run: StatementRun, scope: Parts, written: Callable[[], exp.Select],
                 rows: Callable[[exp.Expr], pa.Table]):
        self._run, self._scope, self._written, self._bound = run, scope, written, False
        self.database = Database(scope, rows, lambda: aggregate_names(run.db), single=run.only_one)

    def left_by(self, term: exp.Expr, rows: JoinedTables, *, ours: bool = False) -> Ints | None:
        """The numbers of those ``rows`` of which ``term`` is true, as one join, or several, with the rows of a SELECT;
        None for others, and with ``ours`` where DuckDB would test pairs.
        """
        join = subquery_join(term, rows.parts, self.database)
        if join is None:
            return None
        if self._run.only_one and self._run.joins:
            raise StatementError(ONE_JOIN)
        left: Ints | None = None
        made = self._run.steps.made
        for conditions in join.steps(one=self._run.only_one):
            work = self.join(join.inner, join.how, rows if left is None else made(rows_of, rows, left), conditions,
                             join.without_null)
            if ours and not work.is_ours:
                return None
            self._run.count(work)
            step = work.step()
            kept = work.numbers(self._run.two)[0].to_numpy() if step is None else made(
                partial(numbers_left, step), work.left, work.right)
            left = kept if left is None else made(chosen, left, kept)
        return left

    def left_by_terms(self, condition: exp.Expr, rows: JoinedTables) -> Ints | None:
        """The numbers of those ``rows`` of which ``condition`` is true, of which terms are such joins, beside OR: each
        is a column, true for the rows that the join leaves. None where no term is one.
        """
        marks = dict[str, pa.Array]()

        def mark(term: exp.Expr) -> exp.Expr | None:
            left = self.left_by(term, rows)
            if left is None:
                return None
            name = f"{_MARKS} {len(marks)}"
            marks[name] = pa.array(np.isin(np.arange(len(rows)), left))
            return named_column(_MARKS, name)

        tree = with_marks(condition, mark)
        if not marks:
            return None
        self._run.say(condition, "of these joins")
        return JoinedTables({**rows.parts, _MARKS: pa.table(marks)}).where(self._run.db, sql_text(tree), self._scope)

    def truth_of(self, term: exp.Expr, rows: JoinedTables) -> pa.Table | None:
        """The values of ``term``, a test on the rows of a SELECT, for each row; None where it is no join."""
        tests = [term] if is_exists(term) else [term, exp.Not(this=exp.Paren(this=term.copy()))]
        found = [self.left_by(of, rows) for of in tests]
        if any(left is None for left in found):
            return None
        made: pa.Table = self._run.steps.made(truth_values, rows, *found)
        return made

    def value_of(self, query: exp.Expr, rows: JoinedTables) -> pa.Table | None:
        """The values of ``query``, a SELECT that is a value, for each row; None where it is no join.

        Raises `InputError` where a value would be of several rows.
        """
        nearest = subquery_nearest(query, rows.parts, self.database)
        if nearest is not None and len(nearest.names) == 1:
            work = self.join(nearest.inner, "asof_left", rows)
            self._run.count(work)
            made: pa.Table
            if (step := work.step()) is not None:
                made = self._run.steps.made(partial(nearest_value, step, nearest.names[0]), work.left, work.right)
                return made
            return values_in_order(*work.numbers(self._run.two), nearest.inner.table.column(nearest.names[0]))
        value = subquery_value(query, rows.parts, self.database)
        if value is None:
            return None
        work = self.join(value.inner, "inner", rows)
        self._run.count(work)
        fold = work.fold(value.value) if value.folds else None
        with contextlib.suppress(InputError):  # integers that do not fit
            if fold is not None:
                made = fold.of(self._run.two, work.tables) if work.computed else self._run.steps.made(
                    fold.column, work.left, work.right)
                return made
        return self._values(value, work, len(rows))

    def _values(self, value: SubqueryValue, work: TableJoin, rows: int) -> pa.Table:
        label, met, said = value.inner.label, value.inner.table, sql_text(value.value)
        source, listed = f"splitjoin_met AS {quoted(label)}", said if value.folds else f"first({said})"
        r, s = work.numbers(self._run.two)
        met = JoinedTables({label: met}).taken(s)[label].append_column(_ROW, r)
        found = ask(self._run.db, f"SELECT {quoted(_ROW)} AS n, {listed} AS v, count(*) AS c FROM {source} GROUP BY 1",
                    {"splitjoin_met": met}, said)
        if not value.folds and len(found) and max(found.column("c").to_pylist()) > 1:
            raise InputError(f"a SELECT that is a value must have one row at most, but {said} has several for one "
                             f"row around it; write for example max(…), or LIMIT 1")
        none = ask(self._run.db, f"SELECT {listed} AS v FROM {source} WHERE false", {"splitjoin_met": met},
                   said).column(0)
        return pa.table([values_at(found, none, rows)], schema=pa.schema([found.schema.field("v").with_nullable(True)]))

    def join(self, inner: InnerRows, how: str, rows: JoinedTables,
             conditions: Sequence[exp.Expr] | None = None, columns: Sequence[exp.Column] = ()) -> TableJoin:
        """The join of ``rows`` with ``inner``, by its conditions or these ``conditions``, which are right if there is
        no NULL in ``columns``.
        """
        right = self._run.steps.made(partial(one_table, inner.label), inner.table)
        for column in columns:
            self._run.steps.made(partial(without_null, column), right if column.table == inner.label else rows)
        work = TableJoin(self._run.db, rows, right, FromJoin(how, FromItem(None, inner.label)), self._scope)
        refused: SplitJoinError | None = None
        try:
            for condition in inner.conditions if conditions is None else conditions:
                work.add(condition, "WHERE")
        except SplitJoinError as error:
            refused = error
        if refused is not None or not work.is_ours or work.computed:
            self._bind()
        if refused is not None:
            raise refused
        return work

    def _bind(self) -> None:
        """Raise what DuckDB raises for the statement, of which it will not see all."""
        if not self._bound:
            written = self._written()
            self._run.ask(f"EXPLAIN {sql_text(written)}", self._scope, written)
            self._bound = True
