"""`sql`: a SELECT over two streams, run over whole tables or made ready for streams; its tables as users give them:
rows, files, or schemas alone.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, overload

import pyarrow as pa

from splitjoin.base.errors import (
    InputError,
    PredicateError,
    SchemaError,
    SplitJoinError,
    StatementError,
    ToolError,
    WindowError,
    plural,
)
from splitjoin.base.recent import keep
from splitjoin.engines.device import PAIR, Device
from splitjoin.engines.registry import (
    DeviceOption,
    argument_names,
    check_not_of_join,
    device as find_device,
    merged_options,
    option_names,
)
from splitjoin.lang.layouts import take
from splitjoin.lang.order import Order
from splitjoin.lang.python.aggregate import AggregateClass
from splitjoin.lang.schema import SIDES, Schema, Side, suggest
from splitjoin.lang.time_columns import TimeSpec
from splitjoin.lang.types import STRING, OrderedText
from splitjoin.lang.windows import WindowSpec, closed_windows
from splitjoin.rows.aggregates import identical_rows
from splitjoin.rows.result import JoinResult
from splitjoin.tables import TableFiles, TableWriter, check_columns, check_output
from splitjoin.tables.inputs import ArrowSchema, Rows, as_stated, table_or_files
from splitjoin.tables.stated import NOTHING, NullValues, Stated, Types

from ..arranged import arranged, sorts, whole_window
from ..execution import Output, run
from .database import REFUSED, refused_twice, with_tool
from .join_order import JoinOrder, multiway_rows
from .multiway import MultiwaySelect
from .outputs import NotDuckDBs
from .prepared import Prepared, prepared, tables_key
from .projection import sorted_rows
from .query import answer
from .select import Select, by_stream, whole_select
from .statement import Statement, check_steps, table_names
from .steps import AnswerSteps, RunJoin
from .terms import make_select
from .trees import check_meaning, said_columns

#: Arguments of `splitjoin.join` that are parts of a statement's text instead.
_IN_THE_TEXT = {
    "on": "write the condition behind ON", "how": "write the kind of join, such as LEFT JOIN",
    "direction": "write ASOF JOIN, and compare the times in its ON", "by": "write GROUP BY and the first table",
    "allow_exact": "write ASOF JOIN, and compare the times by < or > in its ON",
    "select": "write the columns behind SELECT",
    "aggregate": "write aggregates behind SELECT, and GROUP BY and the first table",
}


def bind_tables(statement: Statement, tables: Mapping[str, Any] | None,
                keywords: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """What is given for the tables, by their names in the statement: exactly, else without regard to case; and the
    ``keywords`` that are none of them, which are options of the device.

    Raises `InputError` when a table is missing, ambiguous, given twice, or in ``tables`` but not in the statement.
    """
    given = _merged(tables, keywords)
    used: set[str] = set()
    found = []
    for table in statement.tables:
        names = [n for n in given if n == table.name] or [n for n in given if n.lower() == table.name.lower()]
        if len(names) != 1:
            what = "is not given" if not names else f"could be {' or '.join(map(repr, names))}"
            came = ", ".join(map(repr, given)) or "nothing"
            shown = f"{table.name}=…" if table.name.isidentifier() else f"tables={{{table.name!r}: …}}"
            raise InputError(f"the table {table.name!r} of the statement {what}{suggest(table.name, given)}; its rows "
                             f"are given under its name, such as {shown}, but given were {came}")
        used.add(names[0])
        found.append(given[names[0]])
    extra = [n for n in tables or {} if n not in used]
    if extra:
        raise InputError(f"{extra[0]!r} is given, but the statement has no such table; its tables are "
                         f"{_names(statement)}")
    return found, {n: value for n, value in keywords.items() if n not in used}


def check_named(names: Sequence[str], unnamed: Sequence[Any]) -> None:
    """Raise `InputError` if tables, ``unnamed``, of a statement with tables of the ``names`` were given by position."""
    if not unnamed:
        return
    if isinstance(unnamed[0], Mapping) and {str(n).lower() for n in unnamed[0]} & {n.lower() for n in names}:
        raise InputError("a mapping from names to tables is given as tables=…, but it came without that name")
    shown = ", ".join(f"{n}=…" if n.isidentifier() else f"tables={{{n!r}: …}}" for n in names)
    raise InputError(f"the tables of a statement are given under their names, {shown}, as their place does not say "
                     f"which is which, but {len(unnamed)} {plural(len(unnamed), 'argument')} without a name came after "
                     f"the text: {', '.join(type(u).__name__ for u in unnamed)}")


def check_options(statement: Statement, options: Mapping[str, Any], device: str | Device,
                  call: Callable[..., Any]) -> None:
    """Raise `InputError` for one of the ``options`` that is none of ``device``: perhaps it was meant as a table, or as
    another argument of ``call``.
    """
    check_not_of_join(options)
    known = option_names(device)
    wrong = [name for name in options if name not in known]
    if wrong and wrong[0] in _IN_THE_TEXT:
        raise InputError(f"{wrong[0]}={options[wrong[0]]!r} must be left out, as it is a part of the statement: "
                         f"{_IN_THE_TEXT[wrong[0]]}")
    if wrong:
        which = repr(device) if isinstance(device, str) else type(device).__name__
        has = f"has the options {', '.join(known)}" if known else "was made with its options"
        meant = suggest(wrong[0], [t.name for t in statement.tables] + argument_names(call) + list(known))
        raise InputError(f"{wrong[0]!r} is given, but the statement has no such table{meant}; its tables are "
                         f"{_names(statement)}, and the device {which} {has}")


def _names(statement: Statement) -> str:
    return " and ".join(dict.fromkeys(t.name for t in statement.tables))


def _merged(tables: Mapping[str, Any] | None, streams: Mapping[str, Any]) -> dict[str, Any]:
    """The tables given as a mapping and those given by their names. Raises `InputError` for one that is given twice."""
    twice = sorted(set(tables or {}) & set(streams))
    if twice:
        raise InputError(f"the table {twice[0]!r} is given twice, in tables and by its name; give it once")
    return {**(tables or {}), **streams}


def is_schema(data: Any) -> bool:
    """True if ``data`` is a schema, without rows."""
    return isinstance(data, pa.Schema) or (
        hasattr(data, "__arrow_c_schema__") and not isinstance(data, (pa.Table, pa.RecordBatch, pa.RecordBatchReader))
        and not hasattr(data, "__arrow_c_stream__") and not hasattr(data, "__arrow_c_array__"))


def schema_of(side: Side, data: Any) -> Schema:
    """The schema of stream ``side`` from a schema, a table or a file; nullability as declared, but by a table without
    rows, which holds no NULL.
    """
    if isinstance(data, TableFiles):
        return _of_rows(Schema.from_arrow(side, data.schema()))
    if isinstance(data, pa.Table):
        return _of_rows(Schema.from_arrow(side, data.schema)) if len(data) else Schema.from_table(side, data)
    return Schema.from_arrow(side, data if isinstance(data, pa.Schema) else pa.schema(data))


def _of_rows(schema: Schema) -> Schema:
    """``schema`` of rows that are not read yet, which will tell the order of categories; until then these are text."""
    columns = [replace(c, type=STRING) if isinstance(c.type, OrderedText) else c for c in schema]
    return Schema(schema.side, columns, schema.arrow)


def read_columns(data: pa.Table | TableFiles, columns: list[str]) -> pa.Table:
    """The ``columns`` of ``data``; from files, only these are read."""
    return data.read(columns) if isinstance(data, TableFiles) else data.select(columns)


@overload
def sql(text: str, *, window: WindowSpec | None = None, closed: str | None = None, time: TimeSpec | None = None,
        order: str | Order = "total", device: str | Device | None = None,
        device_options: Mapping[str, Any] | None = None, tables: Mapping[str, Rows] | None = None,
        aggregates: Mapping[str, AggregateClass] | None = None, sort: bool = False,
        to: str | os.PathLike[str] | None = None, types: Types | None = None, null_values: NullValues | None = None,
        **streams: Rows | DeviceOption) -> JoinResult: ...


@overload
def sql(text: str, *, window: WindowSpec | None = None, closed: str | None = None, time: TimeSpec | None = None,
        order: str | Order = "total", device: None = None, device_options: None = None,
        tables: Mapping[str, ArrowSchema] | None = None,
        aggregates: Mapping[str, AggregateClass] | None = None, sort: Literal[False] = False, to: None = None,
        types: None = None, null_values: NullValues | None = None, **streams: ArrowSchema) -> Select: ...


def sql(text: str, *unnamed: Any, window: WindowSpec | None = None, closed: str | None = None,
        time: TimeSpec | None = None, order: str | Order = "total", device: str | Device | None = None,
        device_options: Mapping[str, Any] | None = None, tables: Mapping[str, Any] | None = None,
        aggregates: Mapping[str, AggregateClass] | None = None, sort: bool = False,
        to: str | os.PathLike[str] | None = None, types: Types | None = None, null_values: NullValues | None = None,
        **streams: Any) -> Any:
    """Run a SELECT over two streams, or prepare it for a streaming session.

    ``SELECT … FROM trades t JOIN quotes q ON … WHERE …``, over windows. The first table is R, the second S; docs/sql.md
    says what a statement may hold.

    Args:
        text: The statement.
        unnamed: No table: each is given by its name.
        window: As for `splitjoin.join`; a mapping may use the names of the tables. Streams that do not end need one,
            but for an as-of join that looks backward.
        closed: As for `splitjoin.join`, of two tables.
        time: As for `splitjoin.join`, likewise.
        order: As for `splitjoin.join`, of a statement that is joins alone; with other parts, that of ORDER BY only.
        device: As for `splitjoin.join`; "cpu" by default.
        device_options: As for `splitjoin.join`.
        tables: The tables by the names that the text has for them, where those are no Python names, or names of
            arguments such as ``order``.
        aggregates: Classes under `splitjoin.aggregate` by the names that the text calls them by.
        sort: As for `splitjoin.join`.
        to: As for `splitjoin.join`.
        types: As for `splitjoin.join`; ``"t.x"`` names the column of one table.
        null_values: Likewise, of rows and of streams.
        streams: The tables by name: ``trades=…, quotes=…``. Each is what `splitjoin.join` takes (of Parquet and Arrow
            files, only the columns needed are read); or a schema. Other names are options of the device, as in
            ``device="sim", cores=8``.

    Returns:
        A `JoinResult` for tables; for schemas a `Select`, which `splitjoin.open` runs and whose `explain` tells how, or
        of three tables and more a `MultiwaySelect`, which `splitjoin.open_multiway` runs.

    Raises:
        SplitJoinError: With what must hold, what came and what to do; errors in the text show the place.
    """
    if not isinstance(text, str):
        raise InputError(f"a statement must be a text, not {type(text).__name__}")
    sort = sorts(sort)
    known = prepared(text)
    tables = {**known.files, **(tables or {})}
    stated = Stated(types, null_values, [*tables, *streams])
    if unnamed:  # names of tables take two walks over the tree, which short statements feel
        check_named(table_names(known.tree), unnamed)
    if window is None:
        closed_windows(None, closed)  # which needs windows
    call = _SqlCall(known, tables, streams, device, device_options, sort, to, {
        "window": window, "time": time, "order": order, "closed": closed}, stated)
    statement = known.parts
    if isinstance(statement, StatementError):
        return call.answered(type(statement)(*statement.args))  # without the frames of another call
    several, beyond = len(statement.tables) > 2, None
    try:
        if several:
            check_steps(statement, "any" if any(map(is_schema, (*call.tables.values(), *streams.values()))) else (
                "inner"))
        call.check_nested(statement)
    except StatementError as error:
        beyond = error
    if beyond is not None:  # not within the except, whose error would be shown above each error of the rest
        return call.answered(beyond)
    given, options = bind_tables(statement, tables, streams)
    schemas = [is_schema(data) for data in given]
    all_of = "all" if several else "both"
    if any(schemas) and not all(schemas):
        name = statement.tables[schemas.index(True)].name
        raise InputError(f"the tables must be given as rows {all_of}, or as schemas {all_of}, but {name!r} is a schema")
    if not all(schemas) or device is None:
        check_options(statement, options, call.engine, sql)
    if all(schemas):
        if device is not None or device_options or options:
            raise InputError("a device runs rows, but schemas were given; give the device to splitjoin.open")
        if sort or to is not None:
            raise InputError(f"{'sort' if sort else 'to'} is for rows, but schemas were given; leave it out")
        declared = call.declared(given, statement.tables)
        if several:
            return MultiwaySelect.make(statement, declared, aggregates=aggregates, **call.of_several())
        r, s = (schema_of(side, data) for side, data in zip(SIDES, declared, strict=True))
        return make_select(statement, r, s, aggregates=aggregates, **call.of_two(statement))
    if several and aggregates:
        raise InputError("aggregates of one's own are for joins of two tables, and for streams; leave them out, or "
                         "join two of the tables first")
    chosen, path = call.chosen(options)
    rows = [call.opened(data, t.name) for data, t in zip(given, statement.tables, strict=True)]
    stated.check()
    try:
        if not several:
            return _run(statement, dict(zip(SIDES, rows, strict=True)), chosen, sort, path, aggregates=aggregates,
                        **call.of_two(statement))
        result = multiway_rows(statement, [_read(data, known.tree, time) for data in rows], partial(
            _run, device=chosen, sort=False, to=None), sort=sort, **call.of_several())
        return _stored(result.table, path, counters=result.counters, plan=result.plan)
    except (PredicateError, SchemaError) as refused:
        try:
            return call.answered(refused)
        except StatementError as error:
            if str(error).startswith(REFUSED):
                raise refused_twice(refused, error) from None
            raise


def _stored(table: pa.Table, path: Path | None, items: Callable[[], Any] | None = None, **facts: Any) -> JoinResult:
    """The result ``table``; with ``path``, in this file. ``items``, ``facts``: as of `JoinResult`."""
    if path is None:
        return JoinResult(table, items, **facts)
    check_columns(table.schema, path)
    with TableWriter(path, table.schema) as writer:
        writer.write(table)
    return JoinResult(writer.stored(), None, **facts)


def explain_sql(text: str, tables: Mapping[str, pa.Schema], *, window: WindowSpec, time: TimeSpec | None = None,
                order: str | Order = "total", windowed: bool = True, **circuit: Any) -> str:
    """Explain, as text, where each part of the statement ``text`` runs, over tables of these schemas.

    ``windowed``, ``circuit``: as of `Select.explain`, for a statement that runs here as a whole.
    """
    try:
        select: Select = sql(text, tables=tables, window=window, time=time, order=order)
        return select.explain(windowed=windowed, **circuit)
    except (PredicateError, SchemaError) as refused:
        empty = {name: schema.empty_table() for name, schema in tables.items()}
        call = _SqlCall(prepared(text), empty, {}, None, None, False, None, {
            "window": window if windowed else None, "time": time, "order": order, "closed": None})
        call.answered(refused, anew=True)
        return "\n".join([f"statement        {' '.join(text.split())}", *call.answer.lines])


@dataclass
class _SqlCall:
    """A call of `sql`, whose arguments it has; ``how``: window, time, order and closed.

    Attributes:
        answer: After `answered`, with what ran where.
    """

    known: Prepared
    tables: Mapping[str, Any]
    streams: Mapping[str, Any]
    device: str | Device | None
    device_options: Mapping[str, Any] | None
    sort: bool
    to: str | os.PathLike[str] | None
    how: Mapping[str, Any]
    stated: Stated = NOTHING
    answer: Any = None
    _opened: dict[tuple[int, str], pa.Table | TableFiles] = field(default_factory=dict)

    @property
    def engine(self) -> str | Device:
        """The device as it was named."""
        return "cpu" if self.device is None else self.device

    def chosen(self, options: Mapping[str, Any]) -> tuple[Device, Path | None]:
        """The device with its ``options``, and the file for the rows."""
        found = find_device(self.engine, **merged_options(self.device_options, options, self.engine, sql))
        return found, None if self.to is None else check_output(self.to)

    def of_two(self, statement: Statement) -> dict[str, Any]:
        """Window, time and order of a ``statement`` over two tables."""
        window, closed = self.how["window"], self.how["closed"]
        if closed is not None:
            window = closed_windows(by_stream(window, statement.tables, "window"), closed)
        return {"window": window, "time": self.how["time"], "order": self.how["order"]}

    def of_several(self) -> dict[str, Any]:
        """Windows, time and order of a join of three tables and more."""
        if self.how["closed"] is not None:
            raise WindowError(f"closed={self.how['closed']!r} is of the two windows of a join of two tables; write "
                              f"OPEN behind those of several, as in 'RANGE 5 SECONDS OPEN'")
        return {name: value for name, value in self.how.items() if name != "closed"}

    def opened(self, data: Any, name: str) -> pa.Table | TableFiles:
        """``data`` as a table; files whose columns can be read separately as they are. Once, as some are."""
        key = (id(data), "" if self.stated.alike else name.lower())
        if key not in self._opened:
            found = table_or_files(data, name)
            if self.stated:
                found = as_stated(found, self.stated.of(name))
            if isinstance(found, TableFiles) and found.columnar:
                found.schema()  # whose names are known from here on
            self._opened[key] = found if not isinstance(found, TableFiles) or found.columnar else found.read()
        return self._opened[key]

    def declared(self, given: Sequence[Any], tables: Sequence[Any]) -> list[pa.Schema]:
        """The schemas ``given`` for ``tables``, which are streams, with their values for NULL."""
        schemas = [data if isinstance(data, pa.Schema) else pa.schema(data) for data in given]
        if self.stated:
            for schema, table in zip(schemas, tables, strict=True):
                self.stated.of(table.name).check_types(schema, csv=False)
            schemas = [self.stated.of(table.name).declared(one) for one, table in zip(schemas, tables, strict=True)]
            self.stated.check()
        return schemas

    def check_nested(self, statement: Statement) -> None:
        """Raise `StatementError` for a ``statement`` with a SELECT over a table that is given, but not joined."""
        names = self.known.names - {t.name.lower() for t in statement.tables}
        if any(name.lower() in names for name in (*self.tables, *self.streams)):
            raise StatementError("a SELECT within a SELECT is for whole tables, as DuckDB reads them again; streams "
                                 "take one SELECT without another in it")

    def answered(self, refused: PredicateError | SchemaError, *, anew: bool = False) -> JoinResult:
        """The rows of the statement; with ``anew`` not by the steps of one before, which do not tell what runs where.
        Raises ``refused``, the error of the whole, for streams, where the error is not about its clauses, and without
        DuckDB.
        """
        tree, names = self.known.tree, self.known.names
        given = {**self.tables, **{n: v for n, v in self.streams.items() if n.lower() in names}}
        if (self.streams and not given) or any(is_schema(data) for data in given.values()):
            raise refused
        options = {n: v for n, v in self.streams.items() if n not in given}
        check_not_of_join(options)
        wrong = [n for n in options if n not in option_names(self.engine)]
        wrong += [n for n in given if n.lower() not in names]
        if wrong:
            check_meaning(tree, self.known.source)
            raise InputError(f"{wrong[0]!r} is given, but the statement has no such table, nor the device such an "
                             f"option; leave it out")
        device, path = self.chosen(options)
        joined = list[JoinResult]()
        only_one = self.sort or self.how["window"] is not None or self.how["time"] is not None

        def run_join(statement: Statement, tables: Mapping[Side, pa.Table]) -> pa.Table:
            how = self.of_two(statement)
            if statement.how in ("semi", "anti") and not only_one:  # a part of a table is taken in less time as it is
                how["order"] = "left"
            joined.append(_run(statement, tables, device, self.sort, None, **how))
            return joined[-1].table

        def run_several(statement: Statement, tables: Sequence[pa.Table], chosen: JoinOrder) -> pa.Table:
            joined.append(multiway_rows(statement, tables, partial(_run, device=device, sort=False, to=None),
                                        sort=self.sort, chosen=chosen, **self.of_several()))
            return joined[-1].table

        rows = {name.lower(): _read(self.opened(data, name), tree, self.how["time"]) for name, data in given.items()}
        self.stated.check()
        again = None if anew or only_one else self._answered_again(rows, run_join)
        if again is not None and joined:  # else the join was of rows that nothing asks for
            return _stored(again, path, counters=joined[-1].counters, plan=joined[-1].plan)
        joined.clear()
        steps = AnswerSteps(rows, run_join)
        try:
            found = answer(tree.copy(), self.known.source, rows, steps, run_several, only_one=only_one)
        except ToolError as error:
            raise with_tool(refused, error) from None
        except (PredicateError, SchemaError) as error:
            here = isinstance(error, StatementError) or type(refused) is StatementError
            if isinstance(refused, SchemaError) or isinstance(error, NotDuckDBs) or not here:
                raise refused from None  # it has the place in the text
            raise
        self.answer = found
        if joined and not found.asked and not only_one and (made := steps.answering(found.rows)) is not None:
            keep(self.known.answers, tables_key(rows), made)
        told: dict[str, Any] = {"counters": joined[-1].counters, "plan": joined[-1].plan + "; the rest by DuckDB" * (
            found.asked)} if joined else {"counters": {}, "plan": "rows by their places; the rest by DuckDB" if any(
                "POSITIONAL JOIN" in line for line in found.lines) else "DuckDB, without a join of splitjoin"}
        return _stored(found.rows, path, **told)

    def _answered_again(self, rows: Mapping[str, pa.Table], run: RunJoin) -> pa.Table | None:
        """The rows by the cached steps of the statement over tables like ``rows``; None where none are cached, or a
        step fails: the statement is then answered anew, and its error has the place in the text.
        """
        steps = self.known.answers.get(tables_key(rows)) if self.known.answers else None
        with contextlib.suppress(SplitJoinError):
            return None if steps is None else steps.rows(rows, run)
        return None


def _read(data: pa.Table | TableFiles, tree: Any, time: TimeSpec | None) -> pa.Table:
    """``data`` as a table; of files, the columns that ``tree`` names, or all if it may have a star for them."""
    if not isinstance(data, TableFiles):
        return data
    names = said_columns(tree, data.schema().names)
    times = [time] if isinstance(time, str) else [*(time.values() if isinstance(time, Mapping) else time or ())]
    return data.read([n for n in data.schema().names if n in names or n in times] or data.schema().names[:1])


def _run(statement: Statement, tables: Mapping[Side, Any], device: Device, sort: bool,
         to: Path | None, *, window: WindowSpec | None, **how: Any) -> JoinResult:
    def made(schemas: Mapping[Side, Schema], window: WindowSpec) -> Select:
        select = whole_select(statement, schemas["r"], schemas["s"], window=window, **how) if whole else Select.make(
            statement, schemas["r"], schemas["s"], window=window, whole=True, **how)
        if to is not None:  # before any work
            check_columns(select.schema, to)
        return select

    whole = window is None
    rows, declared = dict(tables), {side: schema_of(side, data) for side, data in tables.items()}
    files = any(isinstance(data, TableFiles) for data in tables.values())
    if files:  # of which the columns that are needed are read, and no others
        first = made(declared, "ROWS 1" if window is None else window)
        rows = {side: read_columns(data, first.needed(side)) for side, data in tables.items()}
    # The rows show which columns contain NULL.
    measured = {side: _measured(declared[side], rows[side]) for side in rows}
    select = made(measured, whole_window(rows["r"], rows["s"]) if window is None else window)
    if not files:
        rows = {side: read_columns(data, select.needed(side)) for side, data in tables.items()}
    same = statement.grouped and identical_rows(rows["r"]) is not None
    if same:  # in the columns that are needed; perhaps not in others
        rows["r"] = read_columns(tables["r"], declared["r"].names)
    for side, schema in measured.items():
        schema.check(rows[side])
    if window is None and how.get("time") is None:  # times that the statement alone names need no order
        sort = sort or statement.how.startswith("asof")
    tables_in_order = arranged(select.query, rows["r"], rows["s"], sort=sort)
    groups = identical_rows(tables_in_order.incoming.r) if same else None
    output = Output(select.projection.gathered, select.projection.rows, select.schema)
    if (ending := statement.ordering).word is None:
        return run(select.query, tables_in_order, output, device, to, groups)
    result = run(select.query, tables_in_order, output, device, None, groups)
    chosen = sorted_rows(result.table, select.projection.keys, ending)
    rows_of = pa.array(chosen)
    shown = zip(result.table.columns, select.schema, strict=False)
    table = pa.table([take(column, rows_of) for column, _ in shown], schema=select.schema)
    return _stored(table, to, lambda: result.items[result.items["kind"] == PAIR][chosen], counters=result.counters,
                   plan=result.plan, latencies=result.latencies, region_counters=result.region_counters)


def _measured(schema: Schema, rows: pa.Table) -> Schema:
    """``schema`` with the nullability and the categories of ``rows``, which has some of its columns."""
    found = {c.name: c for c in Schema.from_table(schema.side, rows)}
    return Schema(schema.side, [replace(c, nullable=found[c.name].nullable, type=found[c.name].type)
                                if c.name in found else c for c in schema], schema.arrow)
