"""A SELECT over three or more tables as steps of two: a left-deep tree (semantics, section 11).

Step i joins the rows of the step before, R, with the next table, S. Rows between steps have the columns that later
parts of the statement need, called ``"table.column"``, and with windows the time of their latest tuple, `TIME`. In
streams they also have for each table the number of its tuple, `NUMBER`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from splitjoin.base.errors import OrderError, PredicateError, SchemaError, StatementError, WindowError
from splitjoin.lang.local_times import ELAPSED
from splitjoin.lang.order import Order, parse_order
from splitjoin.lang.python.aggregate import AggregateClass
from splitjoin.lang.schema import Schema
from splitjoin.lang.time_columns import TimeColumns, TimeSpec, time_columns
from splitjoin.lang.types import Timestamp
from splitjoin.lang.windows import Window, WindowSpec, parse_window
from splitjoin.rows.output import NUMBER, TIME

from .projection import output_names, starred
from .reader import TreeReader
from .select import Select, by_table
from .statement import CHOOSING, SelectItem, Statement, TableName
from .terms import make_select
from .trees import conjunction, named_column

#: A table's label and one of its columns.
Named = tuple[str, str]


def in_place_of(node: exp.Expr, made: exp.Column) -> exp.Column:
    """``made``, which stands for the column ``node`` of the text, with its place."""
    made.meta["written"] = node.meta.get("written") or node.copy()
    return made


def looks_back(term: exp.Expr, r: Named, s: Named) -> bool:
    """True if ``term`` says that the time ``r`` of R's rows is not below the time ``s``; both by table and name."""
    if not isinstance(term, (exp.GTE, exp.GT, exp.LTE, exp.LT)):
        return False
    pair = [term.this, term.expression][::1 if isinstance(term, (exp.GTE, exp.GT)) else -1]
    return [(one.table, one.name) for one in pair if isinstance(one, exp.Column)] == [r, s]


#: The table of columns that rows between steps have beside those of tables.
_ROW = "#row"
_UNITS = {"s": "SECONDS", "ms": "MILLISECONDS", "us": "MICROSECONDS", "ns": "NANOSECONDS"}


@dataclass(frozen=True)
class Windows:
    """The RANGE windows and the time columns of the tables, in their order.

    ``lengths`` in ticks; ``times``: the column of each table; ``unit``: "us" for times of microseconds, and so on, None
    for integers and dates.
    """

    lengths: tuple[int, ...]
    times: tuple[str, ...]
    unit: str | None
    dates: bool = False

    @classmethod
    def make(cls, tables: Sequence[TableName], schemas: Sequence[Schema], window: WindowSpec,
             time: TimeSpec | None) -> Windows:
        """The windows and times as a user gives them: one for all tables, or a mapping by their names.

        Raises `WindowError` and `SchemaError` for what a join of several streams does not take.
        """
        if time is None:
            raise SchemaError("a join of three streams and more needs a time column: give time=…, a name for all "
                              "tables or a mapping by their names")
        names = by_table(time, tables, "time")
        columns: list[TimeColumns] = []
        for n, schema in enumerate(schemas):
            other, name = (1 if n == 0 else 0), names[n]
            r, s = Schema("r", schema.columns, schema.arrow), Schema("s", schemas[other].columns, schemas[other].arrow)
            try:
                columns.append(time_columns(r, s, (name, names[other])))
            except SchemaError as error:  # which calls the tables r and s
                raise SchemaError(_of_tables(str(error), tables[n].label, tables[other].label)) from None
        types = {str(c.type) for c in columns}
        if len(types) > 1:
            raise SchemaError(f"the time columns of a join of three streams and more must have one type, not "
                              f"{', '.join(sorted(types))}; cast them to one")
        first = columns[0]
        lengths = []
        for spec in by_table(window, tables, "window"):
            parsed = spec if isinstance(spec, Window) else parse_window(spec)
            extent = parsed.resolve(first.type, first.tick)
            if extent.length is None or extent.rows is not None:
                raise WindowError(f"a join of three streams and more takes windows of RANGE, without ROWS, not "
                                  f"{str(parsed)!r}; join two of the streams, and their result with the next one")
            lengths.append(extent.length)
        return cls(tuple(lengths), tuple(c.r for c in columns),
                   first.type.unit if isinstance(first.type, Timestamp) else None, pa.types.is_date(
                       _field(schemas[0], columns[0].r).type))

    def reordered(self, order: Sequence[int]) -> Windows:
        """Those of the tables in this order, by their numbers."""
        return replace(self, lengths=tuple(self.lengths[n] for n in order), times=tuple(self.times[n] for n in order))

    def of_step(self, step: MultiwayStep) -> dict[str, str]:
        """The time columns of the step's R and S, by the names of its tables."""
        left, right = step.statement.tables
        own = f"{step.left[0].label}.{self.times[0]}" if step.number == 1 else TIME
        return {left.label: own, right.label: self.times[step.number]}

    def length(self, ticks: int) -> str:
        """A RANGE of so many ticks, as a text."""
        unit = _UNITS[self.unit] if self.unit else "DAYS" if self.dates else ""
        return f"RANGE {ticks} {unit}".strip()

    def within(self, earlier: exp.Expr, later: exp.Expr, ticks: int) -> exp.Expr:
        """The condition that ``later`` is at most so many ticks behind ``earlier``; the trees of two times."""
        gap = exp.Sub(this=later.copy(), expression=earlier.copy())
        gap.meta[ELAPSED] = True
        span = exp.Literal.number(ticks) if self.unit is None else exp.Interval(
            this=exp.Literal.string(str(ticks)), unit=exp.var(_UNITS[self.unit]))
        return exp.LTE(this=gap, expression=span)


@dataclass(frozen=True)
class MultiwayStep:
    """One step: a statement over two tables, R the rows of the step before.

    ``number``: that of the table that is S. ``left``: the tables whose tuples R's rows are made of, ``made``: those of
    the step's rows, which lack S after a semi or anti join. ``carried``: the columns, by table, that the step's rows
    have; None for the last step, whose rows are the result. Behind these, in streams, stand the numbers of the tuples
    that R's rows are made of, from the second step on. ``window``: of R and of S, as texts; None without windows.
    ``delay``: by how many ticks the time of a row, which is that of its latest tuple, may lie below the step's frontier
    when it comes; None if rows come in the order of their latest tuples.
    """

    statement: Statement
    number: int
    left: tuple[TableName, ...]
    made: tuple[TableName, ...]
    carried: tuple[Named, ...] | None
    window: tuple[str, str] | None
    delay: int | None = None

    @property
    def right(self) -> TableName:
        """The table that is S."""
        return self.statement.tables[1]


def steps(statement: Statement, schemas: Sequence[Schema], windows: Windows | None, *,
          numbers: bool = False) -> list[MultiwayStep]:
    """The steps of ``statement`` over tables of these ``schemas``; ``numbers``: of streams, whose rows between steps
    have a `NUMBER` for each table. Raises `SchemaError` and `PredicateError` for columns that are not there.
    """
    return list(_Steps(statement, schemas, windows, numbers).made())


def read_parts(statement: Statement, schemas: Sequence[Schema]) -> tuple[
        tuple[SelectItem, ...], list[tuple[exp.Expr, frozenset[int]]]]:
    """The items of ``statement``, with stars written out and all columns by table; and the terms of its conditions,
    each with the numbers of its tables. Raises as `steps`.
    """
    made = _Steps(statement, schemas, None, False)
    items = tuple(replace(item, tree=made.by_table(item.tree)) for item in made.outputs())
    return items, [(made.by_table(term), made.tables_of(term)) for _, term in made.terms()]


class _Steps:
    def __init__(self, statement: Statement, schemas: Sequence[Schema], windows: Windows | None, numbers: bool):
        self._statement, self._windows, self._numbers = statement, windows, numbers
        self._tables = list(zip(statement.tables, schemas, strict=True))
        self._reader = TreeReader(statement, self._tables, "the statement", quoting=True)

    def made(self) -> Iterator[MultiwayStep]:
        statement, tables = self._statement, self._statement.tables
        terms = self._placed()
        outputs = list(self.outputs())
        for at in range(1, len(tables)):
            how, present = statement.hows[at - 1], statement.present(at)
            left = TableName(*2 * [", ".join(t.label for t in present)])
            later = [*(term for some in terms[at + 1:] for term in some), *(item.tree for item in outputs)]
            carried = None if at == len(tables) - 1 else self._carried(later, at)
            own = terms[at] if not how.startswith("asof") else [self._of_latest(term, at) for term in terms[at]]
            on = [self._rewritten(term, at, left) for term in own]
            window, delay = None, None
            if self._windows is not None:
                window, bounds, delay = self._bounds(self._windows, at, left, on)
                on += bounds
            items = [replace(item, tree=self._rewritten(item.tree, at, left)) for item in outputs] if (
                carried is None) else [SelectItem(self._column(named, at, left), ".".join(named), ".".join(named))
                                       for named in carried]
            numbered = [(t.label, NUMBER) for t in present] if self._numbers and at > 1 else []
            items += [SelectItem(self._column(named, at, left), ".".join(named)) for named in numbered]
            of_two = replace(statement, items=tuple(items), tables=(left, tables[at]), on=(conjunction(on),),
                             where=None, hows=(how,), grouped=statement.grouped and carried is None)
            yield MultiwayStep(of_two, at, present, statement.present(at + 1), carried, window, delay)

    def _placed(self) -> list[list[exp.Expr]]:
        """The terms of ON and WHERE, by the number of the table whose step tests them.

        A term of an inner join, or of WHERE, may be tested by any inner join behind its tables, as the other kinds keep
        or drop rows of R one by one. What stands behind another kind of join says only which partners there are.
        """
        statement, tables = self._statement, self._statement.tables
        terms = [list[exp.Expr]() for _ in tables]
        for n, term in self.terms():
            behind = max(self.tables_of(term), default=0)
            for column in term.find_all(exp.Column):
                self._check_there(column, n)
            if n < len(tables) and statement.hows[n - 1] != "inner":
                terms[n].append(term)
                continue
            at = next((at for at in range(max(behind, 1), len(tables)) if statement.hows[at - 1] == "inner"), None)
            if at is None:
                raise PredicateError(f"WHERE names {tables[behind].label} in {term.sql()!r}, and no inner join stands "
                                     f"behind it that could test this; put it into ON, or test the rows")
            terms[at].append(term)
        return terms

    def _check_there(self, column: exp.Column, n: int) -> None:
        """Raise `PredicateError` if the column is of a table that a semi or anti join before table ``n`` left out."""
        at = self._number(column)
        if at != n:
            self._check_present(column, at)

    def _check_present(self, tree: exp.Expr, at: int) -> None:
        """Raise `PredicateError` if ``tree`` is of table ``at``, and its semi or anti join leaves that out."""
        if at and self._statement.hows[at - 1] in CHOOSING:
            raise PredicateError(f"{tree.sql()!r} is of a table behind {self._statement.hows[at - 1].upper()} JOIN, "
                                 f"which only chooses rows of the tables before it; name it in that join's ON alone")

    def _of_latest(self, term: exp.Expr, at: int) -> exp.Expr:
        """``term``; where an ASOF JOIN compares the time of R's rows by it, with their column of it."""
        if at == 1 or self._windows is None or not isinstance(term, (exp.GTE, exp.GT, exp.LTE, exp.LT)):
            return term
        parts = [term.this, term.expression]
        times = {(t.label, time) for t, time in self._times(at)}
        own = (self._statement.tables[at].label, self._windows.times[at])
        for n, part in enumerate(parts):
            if not isinstance(parts[1 - n], exp.Column) or self._named(parts[1 - n]) != own:
                continue
            listed = [part.this, *part.expressions] if isinstance(part, exp.Greatest) else [part]
            if {self._named(one) for one in listed if isinstance(one, exp.Column)} != times or not all(
                    isinstance(one, exp.Column) for one in listed):
                names = ", ".join(".".join(one) for one in sorted(times))
                latest = f"greatest({names})" if len(times) > 1 else names
                raise PredicateError(f"behind other joins, an ASOF JOIN compares the time of a row's latest tuple; "
                                     f"write {latest} in place of {part.sql()} in {term.sql()!r}")
            parts[n] = exp.column(exp.to_identifier(TIME, quoted=True), exp.to_identifier(_ROW, quoted=True))
            return type(term)(this=parts[0], expression=parts[1])
        return term

    def _times(self, at: int) -> list[tuple[TableName, str]]:
        """The tables of rows before step ``at``, and their time columns."""
        assert self._windows is not None
        present = self._statement.present(at)
        return [(t, time) for t, time in zip(self._statement.tables, self._windows.times, strict=True) if t in present]

    def terms(self) -> Iterator[tuple[int, exp.Expr]]:
        """The terms of all conditions, with the number of the join behind whose ON each stands; WHERE is the last."""
        for n, tree in enumerate([*self._statement.on, self._statement.where], 1):
            for term in [] if tree is None else tree.flatten() if isinstance(tree, exp.And) else [tree]:
                later = [c for c in term.find_all(exp.Column) if n < len(self._tables) and self._number(c) > n]
                if later:
                    raise StatementError(f"ON behind {self._statement.tables[n].label} names {later[0].sql()!r}, of a "
                                         f"table that is joined later; write this condition behind that table")
                yield n, term.unnest()

    def tables_of(self, tree: exp.Expr) -> frozenset[int]:
        """The numbers of the tables that ``tree`` names."""
        return frozenset(self._number(column) for column in tree.find_all(exp.Column))

    def by_table(self, tree: exp.Expr) -> exp.Expr:
        """``tree`` with each column under its table's label."""
        return tree.transform(lambda node: in_place_of(node, named_column(*self._named(node))) if isinstance(
            node, exp.Column) else node)

    def _bounds(self, windows: Windows, at: int, left: TableName,
                on: Sequence[exp.Expr]) -> tuple[tuple[str, str], list[exp.Expr], int | None]:
        """The windows of R and S, for each tuple in R the condition that it lies in its own stream's window, and by how
        much rows may come late.
        """
        statement, lengths = self._statement, windows.lengths
        how, later = statement.hows[at - 1], self._column((statement.tables[at].label, windows.times[at]), at, left)
        # A row that lacks tuples is bounded by the others.
        optional = {t for t, how in zip(statement.tables[1:at], statement.hows, strict=False) if how in (
            "left", "asof_left")}
        bounds, always = list[exp.Expr](), list[int]()
        for t, time in self._times(at):
            length = lengths[statement.tables.index(t)]
            column = self._column((t.label, time), at, left)
            within = windows.within(column, later, length)
            if t in optional:
                within = exp.Paren(this=exp.Or(this=exp.Is(this=column, expression=exp.Null()), expression=within))
            else:
                always.append(length)
            bounds += [within] if at > 1 else []
        own = TIME if at > 1 else f"{self._statement.tables[0].label}.{windows.times[0]}"
        of_s = self._statement.tables[at].label, windows.times[at]
        back = [looks_back(term, (left.label, own), of_s) for term in on]
        backward = how.startswith("asof") and any(back)
        delay = None if how == "inner" else 0 if backward else min(always)
        return (windows.length(min(always)), windows.length(lengths[at])), bounds, delay

    def _carried(self, later: Sequence[exp.Expr], at: int) -> tuple[Named, ...]:
        """The columns of the first tables, up to number ``at``, that ``later`` trees need."""
        used = {self._named(column) for tree in later for column in tree.find_all(exp.Column)}
        if self._windows is not None:
            used |= {(t.label, time) for t, time in self._times(at + 1)}
        there = self._statement.present(at + 1)
        found = tuple((t.label, name) for t, schema in self._tables[:at + 1] for name in schema.names
                      if t in there and (t.label, name) in used)
        first, schema = self._tables[0]
        return found or ((first.label, schema.names[0]),)  # a table without columns has no rows

    def outputs(self) -> Iterator[SelectItem]:
        """The items of the result, each with its name: stars are written out."""
        made = list[tuple[str, str | None, SelectItem]]()
        for item in self._statement.items:
            star = starred(self._statement, self._tables, item)
            for column in item.tree.find_all(exp.Column) if star is None else ():
                self._check_there(column, len(self._tables))
            for t, schema in star or ():
                self._check_present(item.tree, self._statement.tables.index(t))
                made += [(name, t.label, replace(item, tree=named_column(t.label, name))) for name in schema.names]
            if star is None:
                label, name = self._named(item.tree) if isinstance(item.tree, exp.Column) else (None, item.text)
                made.append((item.alias or name, None if item.alias else label, item))
        for called, (*_, item) in zip(output_names(self._statement, made), made, strict=True):
            yield replace(item, alias=called)

    def _named(self, column: exp.Column) -> Named:
        """The table and the column that a tree names."""
        schema, found = self._reader.find(column)
        return next(t.label for t, s in self._tables if s is schema), found.name

    def _number(self, column: exp.Column) -> int:
        """The number of the table that a column is of."""
        label, _ = self._named(column)
        return [t.label for t, _ in self._tables].index(label)

    def _rewritten(self, tree: exp.Expr, at: int, left: TableName) -> exp.Expr:
        """``tree`` with the columns of step ``at``."""
        def own(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column):
                return node
            if node.table == _ROW:
                return named_column(left.label, node.name)
            return self._column(self._named(node), at, left, node)

        return tree.transform(own)

    def _column(self, named: Named, at: int, left: TableName, node: exp.Expr | None = None) -> exp.Expr:
        """The tree of a column in step ``at``, which stands for ``node`` of the text."""
        right = self._statement.tables[at].label
        made = named_column(*(named if named[0] == right else (left.label, ".".join(named))))
        return made if node is None else in_place_of(node, made)


def latest(times: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """The greatest of the ``times`` of each row, which are of one type, without those that are NULL."""
    kind = times[0].type
    if pa.types.is_timestamp(kind):  # Arrow compares none with a time zone
        times = [column.cast(pa.int64()) for column in times]
    return pc.max_element_wise(*times).cast(kind)


def _of_tables(said: str, r: str, s: str) -> str:
    """``said`` with the labels of two tables in place of r and s."""
    labels = {"r": r, "s": s}
    said = re.sub(r"\bstream ([rs])\b", lambda found: f"table {labels[found[1]]}", said)
    return re.sub(r"\b([rs])(?=\.)", lambda found: labels[found[1]], said)


def _field(schema: Schema, name: str) -> pa.Field:
    assert schema.arrow is not None
    return schema.arrow.field(name)


@dataclass(frozen=True)
class MultiwaySelect:
    """A join of three streams or more, within RANGE windows, as steps of two, of which the last may be a LEFT JOIN;
    `splitjoin.open_multiway` runs it.

    Attributes:
        statement: The text and its parts.
        schemas: The Arrow schema of each stream.
        windows: Their windows and time columns.
        steps: The steps, and the checked SELECT of each.
    """

    statement: Statement
    schemas: tuple[pa.Schema, ...]
    windows: Windows
    steps: tuple[tuple[MultiwayStep, Select], ...]

    @classmethod
    def make(cls, statement: Statement, schemas: Sequence[pa.Schema], *, window: WindowSpec | None,
             time: TimeSpec | None, order: str | Order,
             aggregates: Mapping[str, AggregateClass] | None = None) -> MultiwaySelect:
        """Check the whole statement; ``aggregates``: classes by name. Raises a `SplitJoinError` that names the wrong
        part.
        """
        if window is None:
            raise WindowError("streams that do not end need a window, such as window='RANGE 15 MINUTES'")
        if parse_order(order).kind != "total":
            raise OrderError(f"a join of three streams and more takes order 'total', not '{order}'")
        known = [Schema.from_arrow("r", schema) for schema in schemas]
        windows = Windows.make(statement.tables, known, window, time)
        first = statement.tables[0].label
        left = pa.schema([field.with_name(f"{first}.{field.name}") for field in schemas[0]])
        made = []
        for step in steps(statement, known, windows, numbers=True):
            at = step.number
            assert step.window is not None
            select = make_select(
                step.statement, Schema.from_arrow("r", left), Schema.from_arrow("s", schemas[at]),
                window=dict(zip([t.label for t in step.statement.tables], step.window, strict=True)),
                time=windows.of_step(step), aggregates=aggregates if step.statement.grouped else None)
            made.append((step, select))
            left = between(step, select, schemas[at].field(windows.times[at]).type)
        return cls(statement, tuple(schemas), windows, tuple(made))

    def explain(self, **options: Any) -> str:
        """Explain, as text, each step as `Select.explain` does; ``options`` are those of circuits."""
        return "\n\n".join(f"step {n}: {', '.join(t.label for t in step.left)} with {step.right.label}\n"
                           f"{select.explain(**options)}" for n, (step, select) in enumerate(self.steps, 1))

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        step, last = self.steps[-1]
        return pa.schema(list(last.schema)[:len(last.schema) - len(step.left)])


def between(step: MultiwayStep, select: Select, time: pa.DataType) -> pa.Schema:
    """The schema of the rows between ``step`` and the next one."""
    numbers = [f"{t.label}.{NUMBER}" for t in step.made]
    fields = [field for field in select.schema if field.name not in numbers]
    return pa.schema([*fields, *(pa.field(name, pa.int64(), nullable=False) for name in numbers),
                      pa.field(TIME, time, nullable=False)])
