"""A statement over tables of which only the joins run here: its WITH, its SELECTs, and what stands between them. DuckDB
computes the rest of it, before and behind the joins.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from splitjoin.base.errors import StatementError

from .answer_steps import appended, finished_rows
from .database import Asked
from .from_clause import FromClause, in_place_of, renamed
from .outputs import NotDuckDBs, Outputs
from .rewrites import merged_query, with_subqueries
from .statement import all_tables
from .steps import AnswerSteps
from .subqueries import has_query
from .table_join import RunSeveral, StatementRun
from .trees import StatementText, check_meaning, from_trees, may_join, sql_text


@dataclass(frozen=True)
class Answer:
    """The rows of a statement, and a text for each part of it that says where it ran. ``asked``: True if DuckDB was."""

    rows: pa.Table
    told: Sequence[Callable[[], str]]
    asked: bool

    @property
    def lines(self) -> tuple[str, ...]:
        """The texts, which take longer to write than many a join."""
        return tuple(line for told in self.told for line in told().splitlines())


def answer(tree: exp.Expr, source: StatementText, tables: Mapping[str, pa.Table], steps: AnswerSteps,
           several: RunSeveral, *, only_one: bool) -> Answer:
    """The rows of the statement ``tree``, which is changed, over ``tables``, whose names are in lower case.

    ``source``, ``steps``, ``several``, ``only_one``: as of `StatementRun`. Raises `StatementError` for what is neither
    a join nor DuckDB's, `InputError` where DuckDB refuses a value, and `ToolError` without DuckDB.
    """
    check_meaning(tree, source)
    with contextlib.ExitStack() as closed:
        db = Asked(closed)
        run = StatementRun(db, steps.run, several, only_one, source, steps)
        rows = steps.made(finished_rows, _Queries(run, frozenset(tables)).rows(tree, dict(tables), nested=False))
        asked = db.was
    twice = [n for at, n in enumerate(rows.column_names) if n in rows.column_names[:at]]
    if twice:
        raise StatementError(f"result columns must have distinct names, but {twice[0]!r} would occur more than once; "
                             f"give one of them another name with AS")
    return Answer(rows, run.told, asked)


class _Queries:
    """Answers the queries of a statement; ``given``: the names of the tables that are given for it."""

    def __init__(self, run: StatementRun, given: frozenset[str]):
        self._run, self._given = run, given

    def rows(self, tree: Any, scope: dict[str, pa.Table], *, nested: bool) -> pa.Table:
        """The rows of the query ``tree``, which may name the tables of ``scope``; ``nested``: within another one."""
        run = self._run
        if nested and not may_join(tree):
            if (plain := self._plain(tree, scope)) is not None:
                return plain
            run.say(tree, "a selection")
            return run.ask(_text_of(tree), scope, tree)
        tree = with_subqueries(tree.copy() if nested else tree)
        if (named_tables := tree.args.get("with_")) is not None:
            tree.set("with_", None)
            for table in named_tables.expressions:
                scope[table.alias.lower()] = renamed(run, self._nested(table.this, dict(scope)), table.args["alias"])
        if isinstance(tree, (exp.SetOperation, exp.Subquery)):
            return self._operands(tree, scope, nested=nested)
        if not tree.args.get("from_"):
            if not run.joins:
                raise run.source.at("a statement must say FROM which two tables its rows come, such as FROM r JOIN s "
                                    "ON r.x = s.a", ())
            run.say(tree)  # of tables that WITH has joined
            return run.ask(sql_text(tree), scope, tree)
        if tree.args.get("sample"):
            raise run.source.error("USING SAMPLE is not supported: which rows it leaves is left to chance; leave it "
                                   "out")
        trees, where = from_trees(tree, run.source), tree.args.get("where")
        if len(trees) > 1 or trees[0].joins or trees[0].first.tree is not None or any(
                map(has_query, (*tree.expressions, where))):
            return FromClause(run, tree, trees, scope, self._nested, nested=nested).rows()
        item = trees[0].first
        if item.query is not None and may_join(item.query):
            if (merged := merged_query(tree, item)) is not None:
                return self.rows(merged, scope, nested=nested)
            name = f"splitjoin_{len(scope)}"
            scope[name] = self._nested(item.query, dict(scope))
            item.node.replace(in_place_of(item.node, name))
        elif not nested and not run.joins and (run.only_one or not may_join(tree)):
            raise NotDuckDBs("there is no join")
        if (plain := self._plain(tree, scope, nested=nested)) is not None:
            return plain
        run.say(tree)
        rows = run.ask(sql_text(tree), scope, tree)
        return rows if nested else rows.rename_columns(Outputs(tree, {}).names(rows.column_names))

    def _nested(self, tree: exp.Expr, scope: dict[str, pa.Table]) -> pa.Table:
        return self.rows(tree, scope, nested=True)

    def _plain(self, tree: exp.Expr, scope: Mapping[str, pa.Table], *, nested: bool = True) -> pa.Table | None:
        """The rows of a SELECT from one table, without joins, that says no more than `plain_rows`; None for others."""
        if not isinstance(tree, exp.Select) or tree.args.get("with_") or not tree.args.get("from_"):
            return None
        trees = from_trees(tree, self._run.source)
        if (name := trees[0].first.name) is None or name.lower() not in scope:
            return None
        return FromClause(self._run, tree.copy(), trees, scope, self._nested, nested=nested).plain()

    def _operands(self, tree: Any, scope: dict[str, pa.Table], *, nested: bool) -> pa.Table:
        """The rows of SELECTs between UNION, EXCEPT and INTERSECT, or in parentheses with ORDER BY or LIMIT behind."""
        run, given, found, operands = self._run, self._given & all_tables(tree), list(_leaves(tree)), list[pa.Table]()
        appends = _appends(tree)
        for n, operand in reversed(list(enumerate(found))):
            name = f"splitjoin_{len(scope)}"
            scope[name] = self.rows(operand, dict(scope), nested=nested or n > 0 or not may_join(operand))
            made = exp.select("*").from_(exp.Table(this=exp.to_identifier(name)))
            operand.replace(made if isinstance(operand.parent, exp.Subquery) else made.subquery())
            operands.insert(0, scope[name])
        if not nested and not run.joins and (run.only_one or len(given) < 2):
            raise NotDuckDBs("there is no join")
        if appends and all(of.schema.types == operands[0].schema.types for of in operands):
            behind: pa.Table = run.steps.made(appended, *operands)
            return behind
        run.say(tree)
        return run.ask(_text_of(tree), scope, tree)


def _leaves(tree: Any) -> Iterable[Any]:
    """The SELECTs of which ``tree`` is made by UNION and its like, and by parentheses."""
    if isinstance(tree, exp.SetOperation) and not tree.args.get("with_"):
        yield from _leaves(tree.this)
        yield from _leaves(tree.expression)
    elif isinstance(tree, exp.Subquery) and isinstance(tree.this, exp.Query):
        yield from _leaves(tree.this)
    else:
        yield tree


def _appends(tree: Any) -> bool:
    """True if ``tree`` is SELECTs with UNION ALL between them, and nothing else."""
    if not isinstance(tree, exp.SetOperation):
        return isinstance(tree, exp.Select)
    return isinstance(tree, exp.Union) and all(name in ("this", "expression") or not value for name, value in
                                               tree.args.items()) and _appends(tree.this) and _appends(tree.expression)


def _text_of(tree: exp.Expr) -> str:
    return f"SELECT * FROM ({sql_text(tree)})" if isinstance(tree, exp.Values) else sql_text(tree)
