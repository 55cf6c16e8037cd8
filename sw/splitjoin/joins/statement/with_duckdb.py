"""A SELECT over tables of which only the join runs here: DuckDB computes the rest of it, before and behind the join."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from splitjoin.base.errors import InputError, PredicateError, SchemaError, StatementError
from splitjoin.lang.schema import SIDES, Side
from splitjoin.lang.sql.parser import parse_tree

from .checks import SeveralTables
from .clauses import (
    Clauses,
    clauses,
    common_tables,
    conjuncts,
    item_names,
    named_columns,
    nested_tables,
    on_condition,
    quoted,
    using,
    words,
)
from .multiway import MultiwayStatement, named_column, parse_multiway
from .one_table_terms import REFUSED, OneTableTerms, ask, connection
from .parts import SelectItem, Statement, parse
from .reader import TreeReader

__all__ = ["REFUSED", "Answer", "Surroundings"]

#: Runs a statement that is a join alone, over three tables and more.
RunSeveral = Callable[[MultiwayStatement, Sequence[pa.Table]], pa.Table]
#: Runs a statement that is a join alone, over R and S.
RunJoin = Callable[[Statement, Mapping[Side, pa.Table]], pa.Table]


@dataclass(frozen=True)
class Answer:
    """The rows of a statement, and a line for each part of it that says where it ran."""

    rows: pa.Table
    lines: tuple[str, ...]


@dataclass
class Surroundings:
    """Answers statements over ``tables``, whose names are in lower case; ``run`` runs their joins, ``several`` those of
    three tables and more.

    ``only_one``: True if what the user gave, such as a window, is meant for one join.
    """

    tables: Mapping[str, pa.Table]
    run: RunJoin
    several: RunSeveral
    only_one: bool
    lines: list[str] = field(default_factory=list)
    joins: int = 0

    def answer(self, text: str) -> Answer:
        """The rows of the statement ``text``.

        Raises `StatementError` for what is neither a join nor DuckDB's, `InputError` where DuckDB refuses a value, and
        `ToolError` without DuckDB.
        """
        with connection() as db:
            rows = self._select(db, text, dict(self.tables), nested=False)
        twice = [n for at, n in enumerate(rows.column_names) if n in rows.column_names[:at]]
        if twice:
            raise StatementError(f"result columns must have distinct names, but {twice[0]!r} would occur more than "
                                 f"once; give one of them another name with AS")
        return Answer(rows, tuple(self.lines))

    def _select(self, db: Any, text: str, scope: dict[str, pa.Table], *, nested: bool) -> pa.Table:
        if nested and not _joins(text):
            self.lines.append(f"DuckDB           a selection: {' '.join(text.split())}")
            said = {name.lower() for name in re.findall(r"\w+", text)}
            return ask(db, text, {name: table for name, table in scope.items() if name in said})
        named, text = common_tables(text)
        for table in named:
            scope[table.name.lower()] = self._select(db, table.text, dict(scope), nested=True)
        select = clauses(text)
        for n, table in reversed(list(enumerate(nested_tables(select)))):
            name = f"splitjoin_{len(scope)}_{n}"
            scope[name] = self._select(db, table.text, dict(scope), nested=True)
            text = text[:table.start] + name + text[table.end:]
        select = clauses(text)
        if select.is_join:
            rows = self._join(db, select, scope)
            return rows if nested else rows.rename_columns(item_names(select, rows.column_names))
        if not nested and not self.joins:
            raise PredicateError("there is no join")
        self.lines.append(f"DuckDB           the rest: {' '.join(text.split())}")
        rows = ask(db, text, {name: table for name, table in scope.items() if name in words(select.tokens)})
        return rows if nested else rows.rename_columns(item_names(select, rows.column_names))

    def _join(self, db: Any, select: Clauses, scope: Mapping[str, pa.Table]) -> pa.Table:
        self.joins += 1
        if self.joins > 1 and self.only_one:
            raise StatementError("window, time and sort are those of one join, but the statement has several; run them "
                                 "one by one, or leave them out")
        same, source = using(select)
        on_text, source = ([], source) if same else on_condition(select)
        try:
            statement = parse(f"SELECT * FROM{source}")
        except SeveralTables:
            return self._several(db, select, scope)
        except StatementError as error:
            raise StatementError(str(error).split("\n")[0]) from None  # the place is that of another text
        if same and statement.how in ("asof", "asof_left"):
            raise StatementError("USING is not supported in an ASOF JOIN; compare the times and keys behind ON")
        tables = {side: _table(scope, t.name) for side, t in zip(SIDES, statement.tables, strict=True)}
        work = _Join(db, statement, select, tables)
        on = [work.read(condition, "ON") for condition in on_text]
        on += [exp.EQ(this=work.column("r", name), expression=work.column("s", name)) for name in same]
        where, after = list[exp.Expr](), list[str]()
        for condition in conjuncts(select, select.where):
            try:
                if statement.how != "inner":
                    raise PredicateError("a condition behind the join")
                where.append(work.read(condition, "WHERE"))
            except (PredicateError, SchemaError):
                after.append(condition)
        statement, after = work.without_partners(statement, on, after)
        piece = " AND ".join(f"({condition})" for condition in after)
        needed = work.needed(piece, same, statement)
        items = tuple(SelectItem(work.column(side, name), f"{side}.{name}", name, 0, 0)
                      for side in SIDES for name in needed[side])
        join = replace(statement, items=items, on=_all(on), where=_all(where))
        rows = self.run(join, work.tables)
        word = {"inner": "", "asof_left": "ASOF LEFT "}.get(join.how, f"{join.how.upper()} ")
        said = " AND ".join(c.sql("duckdb") for c in (*on, *where)) or "TRUE"
        self.lines += [*work.lines, f"join             {join.tables[0]} {word}JOIN {join.tables[1]} ON {said}"]
        both = work.merged(rows, needed, same, join)
        text = (f"{select.text[select.head]} FROM {' POSITIONAL JOIN '.join(work.named(side) for side in both)}"
                f"{f' WHERE {piece}' if piece else ''} {select.text[select.tail]}")
        self.lines.append(f"DuckDB           the rest: {' '.join(text.split())}")
        others = {n: t for n, t in scope.items() if n in words(clauses(text).tokens)}
        return ask(db, text, {**others, **{f"splitjoin_{side}": t for side, t in both.items()}})

    def _several(self, db: Any, select: Clauses, scope: Mapping[str, pa.Table]) -> pa.Table:
        """The rows of a join of three tables and more, and what DuckDB makes of them."""
        where = select.text[select.where]
        statement = parse_multiway(f"SELECT * FROM {select.text[select.source]}{f' WHERE {where}' if where else ''}")
        tables = [_table(scope, t.name) for t in statement.tables]
        rest = f"{select.text[select.head]} FROM x {select.text[select.tail]}"
        items = list[SelectItem]()
        for n, (t, table) in enumerate(zip(statement.tables, tables, strict=True)):
            said = named_columns(rest, table.column_names)
            items += [SelectItem(named_column((t.label, name)), f"{n}.{name}", name, 0, 0)
                      for name in [c for c in table.column_names if c in said] or table.column_names[:1]]
        rows = self.several(replace(statement, items=tuple(items)), tables)
        parts = {f"splitjoin_{n}": rows.select([c for c in rows.column_names if c.startswith(f"{n}.")])
                 for n in range(len(tables))}
        views = {name: part.rename_columns([c.split(".", 1)[1] for c in part.column_names])
                 for name, part in parts.items()}
        source = " POSITIONAL JOIN ".join(f"{name} AS {quoted(t.label)}"
                                          for name, t in zip(views, statement.tables, strict=True))
        text = f"{select.text[select.head]} FROM {source} {select.text[select.tail]}"
        self.lines += [f"join             {' JOIN '.join(map(str, statement.tables))}, step by step",
                       f"DuckDB           the rest: {' '.join(text.split())}"]
        others = {n: t for n, t in scope.items() if n in words(clauses(text).tokens)}
        return ask(db, text, {**others, **views})


class _Join(OneTableTerms):
    """The join of a statement: its tables, with columns that DuckDB computes for its conditions behind theirs."""

    def __init__(self, db: Any, statement: Statement, select: Clauses, tables: Mapping[Side, pa.Table]):
        super().__init__(db, statement, tables)
        self._select = select
        self._said: dict[str, list[tuple[Any, Any]]] = {}

    def without_partners(self, statement: Statement, on: list[exp.Expr],
                         after: list[str]) -> tuple[Statement, list[str]]:
        """``statement`` as an ANTI JOIN, and what is left of ``after``, where it is a LEFT JOIN whose rows must lack a
        value that every partner has, and of whose second table nothing else is said.
        """
        if statement.how != "left":
            return statement, after
        for n, condition in enumerate(after):
            others = [*after[:n], *after[n + 1:]]
            said = words(clauses(f"SELECT {' , '.join(others) or '1'} FROM x").tokens)
            for name, at in words(self._select.within(self._select.head, self._select.tail)).items():
                said.setdefault(name, []).extend(at)
            of_s = {self._label["s"].lower(), *(name.lower() for name in self._own["s"])}
            own = {name.lower() for name in self._own["r"]}
            if any(_is_said(said[name], name in own) for name in said if name in of_s) or "s" in self._stars(said):
                continue
            with contextlib.suppress(PredicateError, SchemaError):
                tree = parse_tree(condition)
                if isinstance(tree, exp.Is) and isinstance(tree.this, exp.Column) and isinstance(
                        tree.expression, exp.Null) and self._is_partners(tree.this, on):
                    return replace(statement, how="anti"), others
        return statement, after

    def _is_partners(self, column: exp.Column, on: list[exp.Expr]) -> bool:
        """True if ``column`` is of S and no partner has NULL in it."""
        schema, field = TreeReader(self._statement, self._schemas(), "WHERE").find(column)
        compared = [side for c in on for t in c.flatten() if type(t) in (exp.EQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
                    for side in (t.this, t.expression) if isinstance(side, exp.Column)]
        reader = TreeReader(self._statement, self._schemas(), "ON")
        return schema.side == "s" and (not self.tables["s"].column(field.name).null_count or any(
            reader.find(c)[1].name == field.name for c in compared if self._side(c) == "s"))

    def _stars(self, said: Mapping[str, list[tuple[Any, Any]]]) -> set[Side]:
        """The sides of which all columns are asked for."""
        stars = {"r": False, "s": False}
        for before, after in said.get("*", ()):
            if before == TokenType.DOT or (before == TokenType.L_PAREN and after == TokenType.R_PAREN):
                continue
            if before in (TokenType.SELECT, TokenType.COMMA, TokenType.DISTINCT, TokenType.ALL, TokenType.R_PAREN):
                stars = {"r": True, "s": True}
        if "columns" in said:
            stars = {"r": True, "s": True}
        tokens = self._select.tokens
        for label, dot, star in zip(tokens, tokens[1:], tokens[2:], strict=False):
            if dot.token_type == TokenType.DOT and star.token_type == TokenType.STAR:
                for side in SIDES:
                    stars[side] |= label.text.lower() == self._label[side].lower()
        return {side for side in SIDES if stars[side]}

    def needed(self, piece: str, same: Iterable[str], statement: Statement) -> dict[Side, list[str]]:
        """The columns of the join that the rest of the statement names, or asks for by a star."""
        said = words(clauses(f"{self._select.text[self._select.head]} FROM x WHERE {piece or 'TRUE'} "
                             f"{self._select.text[self._select.tail]}").tokens)
        self._said, stars = said, self._stars(said)
        for label in self._label.values():
            alone = [before for before, after in said.get(label.lower(), ()) if TokenType.DOT not in (before, after)
                     and before not in (TokenType.FROM, TokenType.JOIN)]
            if TokenType.GROUP_BY in alone:
                raise PredicateError(f"GROUP BY {label} makes rows here, and no others")
            if alone and label.lower() not in (n.lower() for own in self._own.values() for n in own):
                raise StatementError(f"{label} stands for all columns of a table here, as one value; write its columns")
        merged = {name.lower() for name in same}
        needed = dict[Side, list[str]]()
        for side in SIDES:
            needed[side] = [n for n in self._own[side] if n.lower() in said or side in stars]
            if merged:
                qualified = [n for n in merged if any(before == TokenType.DOT for before, _ in said.get(n, ()))]
                if qualified:
                    raise StatementError(f"{qualified[0]} is one column of both tables, by USING: write it without a "
                                         f"table, or write ON a.{qualified[0]} = b.{qualified[0]}")
                needed[side] += [n for n in self._own[side] if n.lower() in merged and n not in needed[side]]
        if statement.how in ("semi", "anti"):
            needed["s"] = []
        if not needed["r"] and not needed["s"]:
            needed["r"] = self._own["r"][:1]
        for side, names in needed.items():
            small = [n.lower() for n in names]
            if len(set(small)) < len(small):
                raise StatementError(f"{self._label[side]} has columns whose names differ in case alone, which DuckDB "
                                     f"does not tell apart; rename one of them")
            for name in names:
                type_ = self.tables[side].schema.field(name).type
                if pa.types.is_dictionary(type_) and type_.ordered:
                    raise StatementError(f"{self._label[side]}.{name} has ordered categories, whose order DuckDB is "
                                         f"not told; give the column as text")
        return needed

    def merged(self, rows: pa.Table, needed: Mapping[Side, list[str]], same: list[str],
               statement: Statement) -> dict[Side, pa.Table]:
        """The columns of each side of the joined ``rows``, under their names; those in ``same`` on R's side."""
        tables = dict[Side, pa.Table]()
        merged = {name.lower() for name in same}
        taken = {n.lower() for n in needed["r"]}
        for side in SIDES:
            columns = dict[str, pa.ChunkedArray]()
            for name in needed[side]:
                column = rows.column(f"{side}.{name}")
                if name.lower() in merged:
                    if side == "s":
                        continue
                    if statement.how in ("right", "full"):
                        other = next(n for n in needed["s"] if n.lower() == name.lower())
                        column = pc.coalesce(column, rows.column(f"s.{other}"))
                columns[name] = column
            if columns:
                tables[side] = pa.table(columns)
        both = taken & {n.lower() for n in needed["s"]} - merged
        for side, table in tables.items():  # of a star, by the names that a SELECT without DuckDB gives them
            tables[side] = table.rename_columns([f"{n}_{self._label[side]}" if n.lower() in both and n.lower() not in
                                                 self._said else n for n in table.column_names])
        return tables


def _is_said(at: list[tuple[Any, Any]], of_both: bool) -> bool:
    """True if a word, at these places, may mean a column of S; ``of_both``: R has one of that name."""
    return not of_both or any(before != TokenType.DOT for before, _ in at)


def _joins(text: str) -> bool:
    """True if ``text`` joins tables, in any of its parts, or cannot be read."""
    try:
        return sqlglot.parse_one(text, dialect="duckdb").find(exp.Join) is not None
    except (SqlglotError, RecursionError):
        return True


def _all(conditions: list[exp.Expr]) -> exp.Expr | None:
    parts: list[exp.Expr] = [exp.Paren(this=c) for c in conditions]
    return reduce(lambda a, b: exp.And(this=a, expression=b), parts) if parts else None


def _table(scope: Mapping[str, pa.Table], name: str) -> pa.Table:
    table = scope.get(name.lower())
    if table is None:
        raise InputError(f"the table {name!r} of the statement is not given; its rows are given under its name")
    return table
