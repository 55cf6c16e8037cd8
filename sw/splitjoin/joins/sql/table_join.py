"""Joins of a statement, table by table, whose conditions DuckDB completes: terms of one table before the join, terms of
both that are not in the language on the pairs that the other terms let through; and tables that have other rows for
each row of those before them.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast, get_args

import numpy as np
import pyarrow as pa
from sqlglot import exp

from splitjoin.base.arrays import Ints, Mask
from splitjoin.base.errors import InputError, PredicateError, SchemaError, StatementError
from splitjoin.lang.kind import How
from splitjoin.lang.layouts import take, taker
from splitjoin.lang.schema import SIDES, Schema, Side
from splitjoin.lang.time_columns import time_columns

from .database import as_hugeint, ask, asked_term, check_constant, row_of_nulls
from .join_order import JoinOrder
from .reader import TreeReader
from .statement import SelectItem, Statement, TableName
from .steps import AnswerSteps, RunJoin
from .terms import OneTableTerms
from .trees import FromItem, FromJoin, StatementText, conjunction, names_in, one_line, quoted, sql_text

#: Runs a statement that is a join alone, over three tables and more.
RunSeveral = Callable[[Statement, Sequence[pa.Table], JoinOrder], pa.Table]
#: The column that numbers the rows of a side.
_ROW = "splitjoin row"
_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_INEQUALITIES = (exp.LT, exp.LTE, exp.GT, exp.GTE)
#: The column of `lateral_rows` that numbers the rows which they belong to.
OF_ROW = "splitjoin of row"
_R, _S = "splitjoin r", "splitjoin s"


@dataclass(frozen=True)
class JoinedTables:
    """Rows of a join: for each of its tables, by the label that the statement has for it, its part of them."""

    parts: Mapping[str, pa.Table]

    def __len__(self) -> int:
        return len(next(iter(self.parts.values())))

    def taken(self, rows: pa.Array) -> dict[str, pa.Table]:
        """The parts of the rows of these numbers; NULL for rows that lack this side."""
        of = taker((rows.fill_null(-1) if rows.null_count else rows).to_numpy())
        return {label: pa.table([of(column) for column in table.columns],
                                schema=pa.schema([f.with_nullable(True) for f in table.schema])
                                if rows.null_count else table.schema)
                for label, table in self.parts.items()}

    @cached_property
    def flat(self) -> pa.Table:
        """All columns in one table, under the names that `column_of` gives them, and the numbers of the rows."""
        columns = {self.column_of(label, name): table.column(name) for label, table in self.parts.items()
                   for name in table.column_names}
        return pa.table({**columns, _ROW: pa.array(np.arange(len(self)))})

    @property
    def label(self) -> str:
        """The label of `flat`."""
        return ", ".join(self.parts)

    def column_of(self, label: str, name: str) -> str:
        """The name in `flat` of a column."""
        return name if len(self.parts) == 1 else f"{label}.{name}"

    def where(self, db: Any, condition: str, scope: Mapping[str, pa.Table]) -> Ints:
        """The numbers, ascending, of the rows of which DuckDB finds ``condition`` true; it may name tables of
        ``scope``.
        """
        source, views = JoinedTables({**self.parts, _ROW: pa.table({_ROW: np.arange(len(self))})}).views()
        number = f"{quoted(_ROW)}.{quoted(_ROW)}"
        found = asked_term(db, f"CAST({condition} AS BOOLEAN)", source, {**scope, **views}, number)
        true = found.column(0).combine_chunks().fill_null(False).to_numpy(zero_copy_only=False)
        of = found.column(1).to_numpy()[np.flatnonzero(true)]
        return np.sort(of)  # a SELECT in the condition may change the order

    def views(self, prefix: str = "splitjoin_") -> tuple[str, dict[str, pa.Table]]:
        """FROM for these rows, for DuckDB, and the tables that it names, by names that begin with ``prefix``; those
        without columns are left out.
        """
        views = {f"{prefix}{n}": table for n, table in enumerate(self.parts.values()) if table.num_columns}
        source = " POSITIONAL JOIN ".join(f"{prefix}{n} AS {quoted(label)}" for n, (label, table) in enumerate(
            self.parts.items()) if table.num_columns)
        return source, views


@dataclass
class StatementRun:
    """The run of a statement: what runs its joins of ``two`` tables, and of ``several`` within windows, the database
    that runs the rest, and what ran so far.

    ``only_one``: True if what the user gave, such as a window, is meant for one join. ``source``: the text, for errors.
    ``steps`` takes the steps of the answer. ``told``: texts that say what ran where, which take longer to write than
    many a join.
    """

    db: Any
    two: RunJoin
    several: RunSeveral
    only_one: bool
    source: StatementText
    steps: AnswerSteps
    told: list[Callable[[], str]] = field(default_factory=list)
    joins: int = 0

    def joined(self, work: TableJoin) -> JoinedTables:
        """The rows of the join ``work``."""
        step = work.step()
        if step is None:
            return both(work.left, work.right, *work.numbers(self.two))
        made: JoinedTables = self.steps.made(step.joined, work.left, work.right)
        return made

    def say(self, tree: exp.Expr | str, part: str = "the rest") -> None:
        """Say that DuckDB computes ``tree``, a ``part`` of the statement."""
        self.told.append(lambda: f"DuckDB           {part}: {one_line(tree)}")

    def say_join(self, work: TableJoin) -> None:
        """Say that ``work`` ran."""
        self.told.append(lambda: "\n".join([*work.lines, f"join             {one_line(work.said)}"]))

    def count(self, work: TableJoin) -> None:
        """Note that ``work`` is one more join."""
        self.joins += 1
        self.say_join(work)

    def ask(self, text: str, scope: Mapping[str, pa.Table], tree: exp.Expr) -> pa.Table:
        """The rows of ``text`` by DuckDB, over those tables of ``scope`` that ``tree`` names."""
        return ask(self.db, text, named_tables(scope, tree))


def named_tables(scope: Mapping[str, pa.Table], tree: exp.Expr) -> dict[str, pa.Table]:
    """The tables of ``scope`` that ``tree`` may name."""
    said = names_in(tree)
    return {name: table for name, table in scope.items() if name in said}


@dataclass(frozen=True)
class JoinStep:
    """A join that is all in the language, without its tables: the ``statement`` that gives the numbers of rows; and the
    kind ``how`` that its pairs are completed to, None if its rows are those.
    """

    statement: Statement
    how: str | None

    def joined(self, run: RunJoin, left: JoinedTables, right: JoinedTables) -> JoinedTables:
        """The rows of the join."""
        r, s = self.numbers(run, left, right)
        return both(left, right, r, s)

    def numbers(self, run: RunJoin, left: JoinedTables, right: JoinedTables) -> tuple[pa.Array, pa.Array | None]:
        """The numbers of the rows of R and S that the rows of the join consist of; of S None for semi and anti."""
        return self.completed(*self.found(run, {"r": left.flat, "s": right.flat}), len(left), len(right))

    def found(self, run: RunJoin, tables: Mapping[Side, pa.Table]) -> tuple[pa.Array, pa.Array | None]:
        """The numbers before `completed`."""
        rows = run(self.statement, tables)
        s = rows.column("s").combine_chunks() if "s" in _sides(self.statement.how) else None
        return rows.column("r").combine_chunks(), s

    def completed(self, r: pa.Array, s: pa.Array | None, rows_r: int, rows_s: int
                  ) -> tuple[pa.Array, pa.Array | None]:
        """The rows of a join of this kind by the numbers of its pairs, out of so many of R and S."""
        if self.how is None:
            return r, s
        met = _marked(r, rows_r)
        if self.how in ("semi", "anti"):
            return pa.array(np.flatnonzero(met if self.how == "semi" else ~met)), None
        assert s is not None, "pairs have rows of both"
        alone_r, alone_s = np.flatnonzero(~met), np.flatnonzero(~_marked(s, rows_s))
        left, right = self.how in ("left", "full"), self.how in ("right", "full")
        of_r = [r.cast(pa.int64()), *([pa.array(alone_r)] if left else []), *([pa.nulls(
            len(alone_s), pa.int64())] if right else [])]
        of_s = [s.cast(pa.int64()), *([pa.nulls(len(alone_r), pa.int64())] if left else []), *([pa.array(
            alone_s)] if right else [])]
        return pa.concat_arrays(of_r), pa.concat_arrays(of_s)


@dataclass(frozen=True)
class FoldStep:
    """An aggregate of this ``kind`` over the partners of each row of R, by a ``statement``, without its tables."""

    statement: Statement
    kind: type[exp.Expr]

    def column(self, run: RunJoin, left: JoinedTables, right: JoinedTables) -> pa.Table:
        """The values, as the column ``v``. Raises `InputError` for integers that do not fit."""
        return self.of(run, {"r": left.flat, "s": right.flat})

    def of(self, run: RunJoin, tables: Mapping[Side, pa.Table]) -> pa.Table:
        """The same over R and S as flat tables."""
        found = run(self.statement, tables).rename_columns(["n", "v"])
        type_ = found.column("v").type
        of_field = as_hugeint("v") if self.kind is exp.Sum and pa.types.is_integer(type_) else found.schema.field(
            "v").with_nullable(True)
        none = pa.chunked_array([pa.array([0 if self.kind is exp.Count else None], type_)])
        return pa.table([values_at(found, none, len(tables["r"]))], schema=pa.schema([of_field]))


def values_at(found: pa.Table, none: pa.ChunkedArray, rows: int) -> pa.ChunkedArray:
    """The values ``v`` of ``found`` for the rows of the numbers ``n``, and that of ``none`` for the others."""
    at = np.zeros(rows, np.int64)
    at[found.column("n").to_numpy()] = 1 + np.arange(len(found))
    return take(pa.chunked_array([*none.chunks, *found.column("v").chunks], none.type), pa.array(at))


def _marked(of: pa.Array, rows: int) -> Mask:
    """For each of so many ``rows`` whether its number is in ``of``."""
    made = np.zeros(rows, np.bool_)
    made[of.to_numpy(zero_copy_only=False)] = True
    return made


def both(left: JoinedTables, right: JoinedTables, r: pa.Array, s: pa.Array | None) -> JoinedTables:
    """The rows of these numbers, side by side; without ``s`` those of ``left``."""
    return JoinedTables({**left.taken(r), **(right.taken(s) if s is not None else {})})


def _sides(how: str) -> tuple[Side, ...]:
    return ("r",) if how in ("semi", "anti") else SIDES


class TableJoin(OneTableTerms):
    """One join: of the rows so far, R, with more, S, by the conditions of ``join``.

    ``scope``: the tables that a subquery in a condition may name. After `run`, ``said`` is the condition.
    """

    def __init__(self, db: Any, left: JoinedTables, right: JoinedTables, join: FromJoin, scope: Mapping[str, pa.Table]):
        names = (TableName(left.label, left.label), TableName(right.label, right.label))
        super().__init__(db, Statement(StatementText(""), (), names), {"r": left.flat, "s": right.flat})
        self._both: dict[Side, JoinedTables] = {"r": left, "s": right}
        self._join, self._scope = join, scope
        self._on, self._rest = list[exp.Expr](), list[exp.Expr]()
        self._parts = [(TableName(label, label), Schema.from_table(side, table)) for side in SIDES
                       for label, table in self._both[side].parts.items()]

    @property
    def left(self) -> JoinedTables:
        """The rows before the join."""
        return self._both["r"]

    @property
    def right(self) -> JoinedTables:
        """The rows that are joined with these."""
        return self._both["s"]

    @property
    def is_ours(self) -> bool:
        """True if all conditions are in the language, so that DuckDB tests no pairs."""
        return not self._rest

    @property
    def said(self) -> str:
        """The join and its condition, as text."""
        word = {"inner": "", **{how: how.upper().replace("_", " ") + " " for how in ("left", "right", "full", "semi",
                "anti", "asof_left", "asof_right", "asof_full", "asof_semi", "asof_anti", "asof")}}[self._join.how]
        on = " AND ".join(map(sql_text, self._on)) or "TRUE"
        behind = f"; and {' AND '.join(map(sql_text, self._rest))}, by DuckDB on the pairs" if self._rest else ""
        return f"{self._label['r']} {word}JOIN {self._label['s']} ON {on}{behind}"

    def add(self, condition: exp.Expr, clause: str) -> None:
        """Read one condition; DuckDB tests the pairs by what is not in the language."""
        try:
            self._on.append(self.read(condition, clause))
        except (PredicateError, SchemaError):
            if self._join.how.startswith("asof"):
                raise
            check_constant(self._db, condition)
            self._rest.append(condition)

    def add_where(self, condition: exp.Expr) -> None:
        """Read a condition of WHERE. Raises `PredicateError` or `SchemaError` if it is not in the language."""
        self._on.append(self.read(condition, "WHERE"))

    def add_rows(self, label: str, name: str) -> None:
        """The condition that the column ``name`` of S's table ``label`` has the number of a row of R."""
        self._on.append(exp.EQ(this=self.column("r", _ROW),
                               expression=self.column("s", self._both["s"].column_of(label, name))))

    def resolved(self, tree: Any) -> Any:
        """``tree`` with the columns of the flat tables."""
        reader = TreeReader(self._statement, self._parts, "the statement")

        def flat(node: Any) -> Any:
            if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
                return node
            if node.args.get("table") is not None and node.table in (self._label["r"], self._label["s"]) and (
                    node.name in self.tables["r" if node.table == self._label["r"] else "s"].column_names):
                return node
            schema, found = reader.find(node)
            label = next(t.label for t, known in self._parts if known is schema)
            made = self.column(schema.side, self._both[schema.side].column_of(label, found.name))
            made.meta["written"] = node.copy()
            return made

        return super().resolved(tree).transform(flat)

    def ranked(self, tree: Any) -> exp.Expr | None:
        """``tree``, a comparison of values of one type of R and S, as one of their ranks in DuckDB's order."""
        if not isinstance(tree, _COMPARED):
            return None
        sides = [{self.side_of(c) for c in part.find_all(exp.Column)} for part in (tree.this, tree.expression)]
        if [len(found) for found in sides] != [1, 1] or sides[0] == sides[1]:
            return None
        check_constant(self._db, tree)
        a, b = (next(iter(found)) for found in sides)
        texts = {a: sql_text(tree.this), b: sql_text(tree.expression)}
        views = {f"splitjoin_{side}": self.tables[side] for side in SIDES}
        types = ask(self._db, "SELECT " + ", ".join(
            f"(SELECT typeof({texts[side]}) FROM {self.named(side)})" for side in SIDES), {
            name: row_of_nulls(table) for name, table in views.items()})
        of_r, of_s = (column[0].as_py() for column in types.columns)
        if not (of_r == of_s or all(map(_is_number, (of_r, of_s))) or (
                {of_r.split("_")[0], of_s.split("_")[0]} == {"DATE", "TIMESTAMP"})):
            return None  # DuckDB converts them for a comparison, but not so for a column
        union = " UNION ALL ".join(f"SELECT {n} AS side, {quoted(_ROW)} AS row, ({texts[side]}) AS v FROM "
                                   f"{self.named(side)}" for n, side in enumerate(SIDES))
        ranks = ask(self._db, f"SELECT CASE WHEN v IS NOT NULL THEN dense_rank() OVER (ORDER BY v NULLS LAST) END "
                              f"FROM ({union}) ORDER BY side, row", views).column(0)
        made, cut = dict[Side, exp.Column](), len(self.tables["r"])
        for side, values in zip(SIDES, (ranks.slice(0, cut), ranks.slice(cut)), strict=True):
            name = f"splitjoin_{self.tables[side].num_columns}"
            self.tables[side] = self.tables[side].append_column(name, values)
            self.computed[side, f"the rank of {texts[side]} in both tables"] = name
            made[side] = self.column(side, name)
        compared: exp.Expr = type(tree)(this=made[a], expression=made[b])
        return compared

    def step(self) -> JoinStep | None:
        """The join as a step that other tables can take; None where DuckDB computes a part of it."""
        made = self._step()
        return None if self._rest or self.computed else made

    def _step(self) -> JoinStep:
        how, match = self._join.how, None
        if self._join.match is not None:
            match = self.read(self._join.match, "MATCH_CONDITION")
        if how.startswith("asof") and match is None:
            self._on = [self._times(condition) for condition in self._on]
        elif match is not None:
            match = self._times(match)
        direct = how in get_args(How) and not self._rest
        base: Any = how if direct else "asof" if how.startswith("asof") else "inner"
        items = tuple(SelectItem(self.column(side, _ROW), side, side) for side in _sides(base))
        return JoinStep(replace(self._statement, items=items, on=(conjunction(self._on),), hows=(base,), match=match),
                        None if direct else how.removeprefix("asof_"))

    def numbers(self, run: RunJoin) -> tuple[pa.Array, pa.Array | None]:
        """The numbers of the rows of R and S that the rows of the join consist of; of S None for semi and anti."""
        step = self._step()
        try:
            r, s = step.found(run, self.tables)
        except StatementError as error:
            raise StatementError(self._as_written(str(error))) from None
        if self._rest:
            assert s is not None
            r, s = map(pa.array, self._verified(r, s))
        return step.completed(r, s, len(self._both["r"]), len(self._both["s"]))

    def nearest(self, run: RunJoin, by: exp.Nearest) -> tuple[Ints, Ints] | None:
        """The numbers of the rows of R and S that ``by`` pairs, found by a search; None for other distances than that
        of whole numbers or dates of both.
        """
        with contextlib.suppress(PredicateError, SchemaError):
            tree = self.resolved(by.this).unnest()
            gap = tree.this.unnest() if isinstance(tree, exp.Abs) and not by.args.get("similarity") else None
            parts = [part.unnest() for part in (gap.this, gap.expression)] if isinstance(gap, exp.Sub) else []
            if not parts or not all(isinstance(part, exp.Column) for part in parts):
                return None
            reader = TreeReader(self._statement, self._schemas(), "NEAREST BY")
            found = {schema.side: column.name for schema, column in map(reader.find, parts)}
            types = [self.tables[side].schema.field(found[side]).type for side in SIDES if side in found]
            if len(types) < len(SIDES) or not (all(map(pa.types.is_date32, types)) or all(
                    pa.types.is_integer(t) and t != pa.uint64() for t in types)):
                return None
            items = tuple(SelectItem(self.column(side, _ROW), side, side) for side in SIDES)
            nearest = (int(by.args["count"].name), found["r"], found["s"])
            rows = run(replace(self._statement, items=items, hows=("asof",), nearest=nearest), self.tables)
            return rows.column("r").to_numpy(), rows.column("s").to_numpy()
        return None

    def fold(self, tree: exp.Expr) -> FoldStep | None:
        """The values ``tree`` of the partners of each row of an inner join's R, found without pairs; None where it is
        more than a count, a sum, a mean, a least or a greatest value of a column.
        """
        counts = isinstance(tree, exp.Count) and isinstance(tree.this, (exp.Star, exp.Column))
        if not self.is_ours or any(of for name, of in tree.args.items() if name not in ("this", "big_int")):
            return None
        if not counts:
            if not isinstance(tree.this, exp.Column):
                return None
            type_ = self.tables["s"].schema.field(tree.this.name).type
            if not (isinstance(tree, (exp.Min, exp.Max)) and _is_plain(type_)) and not (
                    isinstance(tree, (exp.Sum, exp.Avg)) and (pa.types.is_integer(type_) or type_ == pa.float64())):
                return None
        return FoldStep(self._folding([tree]), type(tree))

    def partial(self, run: RunJoin, trees: Sequence[exp.Expr]) -> pa.Table:
        """The numbers ``n`` of the rows of R that bring rows of the join, and of each the values of the aggregates
        ``trees`` over these, in columns v0, v1, … An argument that is no column is one that DuckDB computes.
        """
        return run(self._folding(trees), self.tables)

    def _folding(self, trees: Sequence[exp.Expr]) -> Statement:
        items = [SelectItem(self.column("r", _ROW), "n", "n")]
        for n, tree in enumerate(trees):
            made = self.resolved(tree)
            if isinstance(made, exp.AggFunc) and isinstance(made.this, exp.Expr) and not isinstance(
                    made.this, (exp.Star, exp.Column, exp.Distinct)):
                made.set("this", self.computed_column(made.this, "s"))
            items.append(SelectItem(made, f"v{n}", f"v{n}"))
        return replace(self._statement, items=tuple(items), on=(conjunction(self._on),), grouped=True,
                       hows=(cast(How, self._join.how),))

    def _as_written(self, message: str) -> str:
        """``message`` with what the user wrote in place of the columns that were computed for it."""
        for (side, text), name in self.computed.items():
            message = text.join(re.split(rf"\b{side}\.{re.escape(name)}\b", message))
        return message

    def _times(self, condition: exp.Expr) -> exp.Expr:
        """``condition`` of an as-of join, with a column on each side where it compares other values of both."""
        if not isinstance(condition, _INEQUALITIES):
            return condition
        made = condition.copy()
        for part in (made.this, made.expression):
            sides = {self.side_of(c) for c in part.find_all(exp.Column)}
            if len(sides) == 1 and not isinstance(part.unnest(), exp.Column):
                part.replace(self.computed_column(part, *sides))
        schemas = {schema.side: schema for _, schema in self._schemas()}
        columns = {self.side_of(c): c.name for c in (made.this, made.expression) if isinstance(c, exp.Column)}
        if len(columns) < len(SIDES):
            return made
        try:
            time_columns(schemas["r"], schemas["s"], (columns["r"], columns["s"]), whole=True)
        except SchemaError:
            return self.ranked(made) or made
        return made

    def _verified(self, r: pa.Array, s: pa.Array) -> tuple[Ints, Ints]:
        """Those of the pairs for which DuckDB finds the rest of the conditions true."""
        pairs = r.to_numpy(zero_copy_only=False), s.to_numpy(zero_copy_only=False)
        rest = " AND ".join(f"({sql_text(tree)})" for tree in self._rest)
        both = JoinedTables({**self._both["r"].taken(r), **self._both["s"].taken(s)})
        at = both.where(self._db, rest, self._scope)
        return pairs[0][at], pairs[1][at]


def lateral_columns(db: Any, before: Mapping[str, pa.Table], item: FromItem, label: str,
                    scope: Mapping[str, pa.Table]) -> pa.Table | None:
    """The columns of ``item``, without rows, where it names columns of the tables ``before`` it; None for others."""
    views = {f"splitjoin_{n}": table.schema.empty_table() for n, table in enumerate(before.values())}
    source = ", ".join(f"{view} AS {quoted(name)}" for view, name in zip(views, before, strict=True))
    with contextlib.suppress(PredicateError, SchemaError, InputError):
        return ask(db, f"SELECT {quoted(label)}.* FROM {source}, {item.called(label)} LIMIT 0", {**scope, **views})
    return None


def lateral_rows(db: Any, left: JoinedTables, item: FromItem, label: str,
                 scope: Mapping[str, pa.Table]) -> JoinedTables:
    """The rows of ``item`` for all rows of ``left``, with the number of theirs in `OF_ROW`."""
    source, views = _numbered(left, _R, "splitjoin_")
    rows = ask(db, f"SELECT {quoted(label)}.*, {_number(_R)} FROM {source} CROSS JOIN {item.called(label)}",
               {**scope, **views}, f"FROM {sql_text(item.node)}")
    return JoinedTables({label: rows.rename_columns([*rows.column_names[:-1], OF_ROW])})


def nearest_pairs(db: Any, left: JoinedTables, right: JoinedTables, nearest: exp.Nearest,
                  scope: Mapping[str, pa.Table]) -> tuple[Ints, Ints]:
    """The numbers of the rows of ``left`` and ``right`` that NEAREST BY pairs, the nearest first; of equally near ones
    the first, and none whose rank is NULL.
    """
    (of_r, views), (of_s, others) = _numbered(left, _R, "splitjoin_r"), _numbered(right, _S, "splitjoin_s")
    best = "arg_max(s, {'v': v, 's': -s}" if nearest.args.get("similarity") else "arg_min(s, {'v': v, 's': s}"
    found = ask(db, f"SELECT r, unnest({best}, {nearest.args['count'].name})) AS s "
                    f"FROM (SELECT {_number(_R)} AS r, {_number(_S)} AS s, ({sql_text(nearest.this)}) AS v "
                    f"FROM {of_r}, {of_s}) WHERE v IS NOT NULL GROUP BY r",
                {**scope, **views, **others}, sql_text(nearest.this))
    r, s = (column.to_numpy() for column in found.columns)
    order = np.argsort(r, kind="stable")
    return r[order], s[order]


def _numbered(rows: JoinedTables, label: str, prefix: str) -> tuple[str, dict[str, pa.Table]]:
    """FROM for ``rows`` and a table ``label`` that numbers them, and the tables that it names."""
    return JoinedTables({**rows.parts, label: pa.table({label: np.arange(len(rows))})}).views(prefix)


def _number(label: str) -> str:
    """The column of the table ``label`` of `_numbered`, which has a name that no column of a user has."""
    return f"{quoted(label)}.{quoted(label)}"


def _is_plain(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_date(type_) or (
        pa.types.is_timestamp(type_) and type_.tz is None))


def _is_number(type_: str) -> bool:
    return type_.startswith("DECIMAL") or type_ in ("FLOAT", "DOUBLE") or type_.endswith("INT") or type_ == "INTEGER"
