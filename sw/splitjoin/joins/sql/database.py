"""DuckDB beside a join: a database that touches nothing outside, what it is asked, and columns on their way to it and
back: ordered categories as its ENUMs, integers of 128 bits and bit strings as what they were there.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from splitjoin.base.errors import InputError, PredicateError, SplitJoinError, StatementError, ToolError, first_line
from splitjoin.base.memory import available_memory
from splitjoin.lang.schema import UnknownName, suggest
from splitjoin.lang.types import Opaque, OrderedText, column_type
from splitjoin.rows.exports import in_microseconds, to_duckdb
from splitjoin.tables.peers import of_duckdb

from .trees import names_in, one_line, quoted, said_columns, sql_text

#: The beginning of the error for a statement that DuckDB refuses.
REFUSED = "DuckDB, which computes what is no join in a statement, refuses it"
_GIVEN = "; it was given "
#: The least bytes of memory that DuckDB gets: with less it runs no statement.
_LEAST = 64 << 20
#: Table functions that give rows of their arguments or of constants, and do nothing else. Others read files, change
#: settings for what runs later, print, or run a text as a statement.
_ALLOWED = frozenset(("generate_series", "histogram", "histogram_values", "icu_calendar_names", "json_each",
                      "json_tree", "pg_timezone_names", "range", "repeat", "repeat_row", "summary", "test_all_types",
                      "test_vector_types", "unnest"))


#: The key of the metadata of a field that DuckDB has as another type than what Arrow has; and these types.
_KEY, _THERE = b"splitjoin.duckdb", ("hugeint", "uhugeint", "bit")
Categories = tuple[str, ...]
#: A condition on DuckDB's list of functions → their names.
_FUNCTIONS: dict[str, frozenset[str]] = {}


@dataclass(frozen=True)
class _Database:
    """A database of DuckDB, its folder for what does not fit into memory, and what closes both."""

    db: Any
    folder: str
    made: os.stat_result
    closed: contextlib.ExitStack

    def has_folder(self) -> bool:
        """True if the folder is still there, this user's alone: systems clear those of temporary files."""
        try:
            now = os.lstat(self.folder)
        except FileNotFoundError:
            return False
        return (now.st_mode, now.st_uid) == (self.made.st_mode, self.made.st_uid)


#: At most one database that no statement uses now: to open one takes as long as many a join.
_IDLE: list[_Database] = []


@contextlib.contextmanager
def connection() -> Iterator[Any]:
    """A database of DuckDB in memory, that has UTC for its zone and reads no files. It takes the memory that joins may
    take, and then a folder of its own. Nothing that a statement leaves in it, tables or settings, is there for another
    one.
    """
    try:
        found = _IDLE.pop()
    except IndexError:
        found = _opened()
    if not found.has_folder():
        found.closed.close()
        found = _opened()
    with contextlib.ExitStack() as failed:
        failed.push(found.closed)  # behind an error, nobody knows what it is fit for
        if (free := available_memory()) < sys.maxsize:
            found.db.execute(f"SET memory_limit = '{max(free, _LEAST)} B'")
        with found.db.cursor() as session:  # which has variables and seeds of its own
            yield session
        for (name,) in found.db.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall():
            found.db.execute(f"DROP VIEW {quoted(name)}")
        if not _IDLE:
            failed.pop_all()
            _IDLE.append(found)


class Asked:
    """A `connection` that is opened when it is asked first. ``was``: True from then on."""

    def __init__(self, closed: contextlib.ExitStack):
        self._closed, self._session = closed, None
        self.was = False

    def __getattr__(self, name: str) -> Any:
        if self._session is None:
            self._session = self._closed.enter_context(connection())
            self.was = True
        return getattr(self._session, name)


def _opened() -> _Database:
    duckdb = _duckdb()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory(prefix="splitjoin-"))
        db = stack.enter_context(duckdb.connect(config={"enable_external_access": "false", "temp_directory": folder}))
        db.execute("SET TimeZone = 'UTC'")
        db.execute("SET allowed_configs = ['memory_limit']")  # the one that the lock leaves open
        db.execute("SET lock_configuration = true")
        return _Database(db, folder, os.lstat(folder), stack.pop_all())


def _duckdb() -> Any:
    try:
        return importlib.import_module("duckdb")
    except ModuleNotFoundError as error:
        raise ToolError("install DuckDB, which computes over tables what is no join in a statement: "
                        "pip install duckdb") from error


def close_idle() -> None:
    """Close the database that no statement uses now."""
    while _IDLE:
        _IDLE.pop().closed.close()


# A process that is forked has none of its threads; at the end, the folder goes.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=close_idle)
atexit.register(close_idle)


def check_table_functions(db: Any, text: str) -> None:
    """Raise `InputError` for a table function in ``text``, DuckDB's SQL, that does more than give rows."""
    if _refused(db).search(text) is None:  # to read the text takes longer
        return
    ((found,),) = db.execute("SELECT json_serialize_sql(?)", [text]).fetchall()
    for name in _called(json.loads(found)):
        if name.lower() not in _ALLOWED:
            raise InputError(f"a statement may call table functions that give rows and do nothing else, which are "
                                 f"{', '.join(sorted(_ALLOWED))}, but it calls {name}; "
                                 + ("give the file as a table" if re.search("read_|scan|glob|sniff|parquet", name) else
                                    "leave it out"))


def _functions(db: Any, which: str) -> frozenset[str]:
    """The functions of DuckDB for which the condition ``which`` on their list holds: the same ones in all databases."""
    if which not in _FUNCTIONS:
        _FUNCTIONS[which] = frozenset(name for (name,) in db.execute(
            f"SELECT DISTINCT function_name FROM duckdb_functions() WHERE {which}").fetchall())
    return _FUNCTIONS[which]


def _refused(db: Any) -> re.Pattern[str]:
    """The names of the table functions that are not allowed, as words; `re` keeps what it has compiled."""
    names = {name.lower() for name in _functions(db, "function_type IN ('table', 'table_macro')")} - _ALLOWED
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b", re.IGNORECASE)


def _called(tree: Any) -> Iterator[str]:
    """The table functions in ``tree``, a statement as DuckDB gives it in JSON."""
    nodes = [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, dict):
            if node.get("type") == "TABLE_FUNCTION":
                yield str(node["function"]["function_name"])
            nodes += node.values()
        elif isinstance(node, list):
            nodes += node


def ask(db: Any, text: str, tables: Mapping[str, pa.Table], said: str | None = None) -> pa.Table:
    """The rows of ``text`` by DuckDB, over ``tables``; ``said``: what errors show for ``text``.

    Raises `StatementError`, `PredicateError` or `InputError` for what it refuses.
    """
    duckdb = _duckdb()
    given = f"{_GIVEN}{one_line(text if said is None else said)}"
    try:
        for name, table in tables.items():
            create_view(db, name, table, text)
        check_table_functions(db, text)
        return taken(db.sql(_with_enums(text, tables)), tables)
    except duckdb.ParserException as error:
        raise PredicateError(f"DuckDB does not read it: {first_line(error)}") from None
    except (duckdb.BinderException, duckdb.CatalogException) as error:
        raise StatementError(f"{REFUSED}: {first_line(error)}{_meant(str(error))}{given}") from None
    except duckdb.Error as error:
        condition = "; a condition must be true or false" if re.search(r"(to|->) BOOL", str(error)) else ""
        raise InputError(f"DuckDB, which computes what is no join in a statement, gives no rows: {first_line(error)}"
                         f"{condition}{given}") from None


def _meant(error: str) -> str:
    """The name that DuckDB takes a misspelled one for, in its text ``error``, if they are alike."""
    found = re.search(r'with name "?(\w+)"? does not exist!\s+Did you mean "(\w+)"', error)
    return "" if found is None else suggest(found[1], [found[2]])


def refused_twice(refused: SplitJoinError, error: SplitJoinError) -> SplitJoinError:
    """``refused``, which has the place in the user's text, with what DuckDB says of it in ``error``, if it refuses it
    too.
    """
    if not isinstance(refused, PredicateError) or not str(error).startswith(REFUSED):
        return refused
    said, *mark = str(refused).split("\n")
    said = said.split("; it may hold ")[0].split(" (did you mean ")[0]  # neither is what it was to have
    reason = str(error).removeprefix(f"{REFUSED}: ").split(_GIVEN)[0].removeprefix("Binder Error: ").removeprefix(
        "Catalog Error: ")
    return type(refused)("\n".join([f"{said}; DuckDB, which computes other functions, says: {reason}", *mark]))


def with_tool(refused: SplitJoinError, error: ToolError) -> SplitJoinError:
    """``refused``, which has the place in the text, with the package that ``error`` misses as another way, unless
    a name is wrong.
    """
    if isinstance(refused, UnknownName):
        return refused
    said, *mark = str(refused).split("\n")
    return type(refused)("\n".join([f"{said}; or {error}", *mark]))


def asked_term(db: Any, text: str, source: str, tables: Mapping[str, pa.Table], *others: str) -> pa.Table:
    """The values of the expression ``text`` over ``source``, FROM's text for ``tables``, and behind them of ``others``.

    Rows have the order of ``source`` only where ``text`` has no SELECT. Raises `PredicateError` for one that has no
    value for any rows, such as a number compared with ``'text'``.
    """
    try:
        return ask(db, f"SELECT {', '.join((text, *others))} FROM {source}", tables, text)
    except InputError as failed:
        empty = {name: row_of_nulls(table) for name, table in tables.items()}
        try:
            ask(db, f"SELECT {text} FROM {source}", empty)
        except InputError:
            said = str(failed).split("gives no rows: ")[1].split(_GIVEN)[0]
            raise PredicateError(f"{text!r} has no value for any row, says DuckDB, which computes it: {said}") from None
        raise


def row_of_nulls(like: pa.Schema | pa.Table) -> pa.Table:
    """A table of one row with the columns of ``like``, all NULL, and the categories of these if it has rows."""
    made = [pa.nulls(1, field.type) for field in (like if isinstance(like, pa.Schema) else like.schema)]
    for at, column in enumerate(like.columns if isinstance(like, pa.Table) else ()):
        if pa.types.is_dictionary(column.type) and column.chunks:
            made[at] = pa.DictionaryArray.from_arrays(pa.nulls(1, column.type.index_type), column.chunk(0).dictionary,
                                                      ordered=column.type.ordered)
    return pa.table(made, schema=like if isinstance(like, pa.Schema) else like.schema)


def check_constant(db: Any, tree: Any) -> None:
    """Raise `PredicateError` for a function in ``tree`` that has other values at other times, such as random().

    Some, such as year(), are constant but for times in the session's time zone, which is always UTC here.
    """
    changing = _functions(db, "stability <> 'CONSISTENT' AND function_name NOT IN (SELECT function_name FROM "
                              "duckdb_functions() WHERE stability = 'CONSISTENT')")
    for call in tree.find_all(exp.Func):
        names = [call.name] if isinstance(call, exp.Anonymous) else list(call.sql_names())
        if any(name.lower() in changing or (name.lower() == "age" and len(call.expressions) == 1) for name in names):
            raise PredicateError(f"{tree.sql('duckdb')}: {names[0]} has other values at other times")


def aggregate_names(db: Any) -> frozenset[str]:
    """The functions of DuckDB that give one value of several rows."""
    return _functions(db, "function_type = 'aggregate'")


def create_view(db: Any, name: str, table: pa.Table, text: str) -> None:
    """Give ``table`` to DuckDB as ``name`` for the statement ``text``.

    Raises `StatementError` for a column that ``text`` names whose order of categories is not known, and `InputError`
    for one whose values DuckDB does not hold.
    """
    casts = list[str]()
    for field, column in zip(table.schema, table.columns, strict=True):
        found = _categories(column)
        if found is None and _has_own_order(field.type) and field.name.lower() in names_in(_tree(text)):
            check_order(name, table.select([field.name]))
        there = (field.metadata or {}).get(_KEY, b"")
        if found or there:
            type_ = _enum(found) if found else str(there, "ascii")
            casts.append(f"CAST({quoted(field.name)} AS {type_}) AS {quoted(field.name)}")
    given = to_duckdb(_holdable(table, text), db)
    (given.project(f"* REPLACE ({', '.join(casts)})") if casts else given).create_view(name, replace=True)


def check_order(label: str, table: pa.Table) -> None:
    """Raise `StatementError` for a column of ``table`` in an order that DuckDB cannot be told."""
    for field, column in zip(table.schema, table.columns, strict=True):
        if _has_own_order(field.type) and _categories(column) is None:
            type_ = column_type(field.type, column)
            if isinstance(type_, Opaque) or (isinstance(type_, OrderedText) and type_.categories is None):
                raise StatementError(f"{label}.{field.name} has ordered categories, whose order DuckDB takes only of "
                                     f"text, and if it is the same in all rows; give the column as its values")


def taken(relation: Any, tables: Mapping[str, pa.Table]) -> pa.Table:
    """The rows of DuckDB's ``relation`` over ``tables``, in which ENUMs have the type of their columns in these."""
    made = of_duckdb(relation)
    known = dict[Categories, pa.Field]()
    for at, type_ in enumerate(relation.types):
        field = made.schema.field(at)
        if type_.id in _THERE:
            made = made.set_column(at, field.with_metadata({_KEY: type_.id.upper()}), made.column(at))
        elif type_.id == "enum":
            known = known or {found: of for table in tables.values()
                              for of, column in zip(table.schema, table.columns, strict=True)
                              if (found := _categories(column))}
            categories = tuple(dict(type_.children)["values"])
            like = known.get(categories, pa.field("", pa.dictionary(field.type.index_type, pa.string(), ordered=True)))
            named = pa.array(categories, like.type.value_type)
            chunks = [pa.DictionaryArray.from_arrays(chunk.indices.cast(like.type.index_type), named, ordered=True)
                      for chunk in made.column(at).chunks or [pa.array([], field.type)]]
            made = made.set_column(at, like.with_name(field.name).with_nullable(True), pa.chunked_array(chunks))
    return made


def finished(table: pa.Table) -> pa.Table:
    """``table``, the rows of a statement, with HUGEINTs of DuckDB, such as sums of integers, as int64.

    Raises `InputError` for a number that does not fit.
    """
    for at, field in enumerate(table.schema):
        there = (field.metadata or {}).get(_KEY)
        if there not in (None, b"HUGEINT"):
            table = table.set_column(at, field.remove_metadata(), table.column(at))
        elif there:
            try:
                made = table.column(at).cast(pa.int64())
            except pa.ArrowInvalid:
                raise InputError(f"the integers of {field.name!r}, which DuckDB computes, must fit int64, but one does "
                                 f"not; write CAST(… AS DECIMAL(38, 0)) or CAST(… AS DOUBLE) around them") from None
            table = table.set_column(at, pa.field(field.name, pa.int64(), field.nullable), made)
    return table


def _with_enums(text: str, tables: Mapping[str, pa.Table]) -> str:
    """``text`` with ENUMs in place of the constants that are compared by < with ordered categories of ``tables``, as
    DuckDB compares those as text.

    Raises `StatementError` for a constant that is none of the categories, where it is not known which column is meant,
    and where a statement that names such a column compares a constant with more than a column.
    """
    orders = {name: {n.lower(): _own_order(column) for n, column in zip(table.column_names, table.columns, strict=True)}
              for name, table in tables.items()}
    ordered = {name for columns in orders.values() for name, found in columns.items() if found}
    if not ordered:
        return text
    tree = _tree(text).copy()
    said = next((of.name for of in tree.find_all(exp.Identifier) if of.name.lower() in ordered), None)
    if said is None:
        return text
    labels = dict[str, list[Any]]()
    for table in tree.find_all(exp.Table):
        if table.name in orders:
            labels.setdefault(table.alias_or_name.lower(), []).append(orders[table.name])
    for constant in [of for of in tree.find_all(exp.Literal) if of.is_string]:
        other: Any = _compared(constant)
        name = other.name.lower() if isinstance(other, exp.Column) and other.parent is constant.parent else None
        if name is None or not any(name in columns for columns in orders.values()):
            if not isinstance(constant.parent, (exp.Cast, exp.Collate)) and (other is not None or _is_mixed(
                    constant, ordered)):
                raise StatementError(f"{constant.name!r} must stand beside a column alone, as the statement names "
                                     f"{said!r}, whose categories have an order, and DuckDB would compare their texts; "
                                     f"write {_literal(constant.name)}::VARCHAR for a text, or compare the column "
                                     f"itself")
            continue
        found = {columns[name] for columns in labels.get(other.table.lower(), orders.values()) if name in columns}
        categories = next((one for one in found if one), None)
        if categories is None:
            continue
        if len(found) > 1:
            raise StatementError(f"{name} is compared with a constant by the order of its categories, but the tables "
                                 f"have several columns of this name; give one of them another name")
        if constant.name not in categories:
            shown = ", ".join(map(repr, categories[:5])) + (", …" if len(categories) > 5 else "")
            raise StatementError(f"ordered categories are compared by their order, so a constant beside {name} must be "
                                 f"one of {shown}, not {constant.name!r}; write one of them, or compare as text with "
                                 f"CAST(… AS VARCHAR)")
        constant.replace(_tree(f"CAST({_literal(constant.name)} AS {_enum(categories)})").copy())
    return "EXPLAIN " * text.startswith("EXPLAIN ") + sql_text(tree)


def _compared(constant: exp.Expr) -> Any:
    """The value that < and its like, or BETWEEN, compare with ``constant``; None for other constants."""
    part, of = constant, constant.parent
    while isinstance(of, exp.Paren):
        part, of = of, of.parent
    if isinstance(of, exp.Between):
        return of.args["low"] if part is of.this else of.this
    if isinstance(of, (exp.LT, exp.LTE, exp.GT, exp.GTE)):
        return of.expression if part is of.this else of.this
    return None


def _is_mixed(constant: exp.Expr, ordered: set[str]) -> bool:
    """True if ``constant`` is one of several values of which a function gives or compares one, and another of these
    names a column of ``ordered`` categories.
    """
    call = constant.find_ancestor(exp.Coalesce, exp.Greatest, exp.Least)
    return call is not None and any(c.name.lower() in ordered for c in call.find_all(exp.Column))


@lru_cache(maxsize=16)
def _tree(text: str) -> Any:
    """DuckDB's own ``text`` as a tree, without the word EXPLAIN."""
    return sqlglot.parse_one(text.removeprefix("EXPLAIN "), dialect="duckdb")


def _holdable(table: pa.Table, text: str) -> pa.Table:
    """``table`` without columns that DuckDB cannot hold and ``text`` does not name."""
    lost = [f.name for f, column in zip(table.schema, table.columns, strict=True)
            if (pa.types.is_interval(f.type) and not in_microseconds(column)) or (
                pa.types.is_decimal(f.type) and f.type.precision - min(f.type.scale, 0) > 38)]
    said = said_columns(_tree(text), lost) if lost else []
    return table.drop_columns([name for name in lost if name not in said])


def as_hugeint(name: str) -> pa.Field:
    """The field of a column ``name`` of integers that fit int64, and that DuckDB is to have as HUGEINT, as its sums."""
    return pa.field(name, pa.int64(), metadata={_KEY: b"HUGEINT"})


def is_kept(field: pa.Field) -> bool:
    """True if the values of ``field`` have the type in DuckDB that they have here."""
    return _KEY not in (field.metadata or {})


def _has_own_order(type_: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(type_) and type_.ordered)


def _own_order(column: pa.ChunkedArray) -> Categories | None:
    """The categories of ``column``, if their order is another one than that of text."""
    return _categories(column) if isinstance(column_type(column.type, column), OrderedText) else None


def _categories(column: pa.ChunkedArray) -> Categories | None:
    """The categories of ``column``, least first; None if it has none in an order, or not the same in all rows."""
    type_ = column.type
    if not _has_own_order(type_) or not column.chunks or not (
            pa.types.is_string(type_.value_type) or pa.types.is_large_string(type_.value_type)
            or pa.types.is_string_view(type_.value_type)):
        return None
    first = column.chunk(0).dictionary
    found = tuple(one for one in first.to_pylist() if one is not None)
    same = len(set(found)) == len(found) and all(chunk.dictionary.equals(first) for chunk in column.chunks[1:])
    return found if found and same else None


def _enum(categories: Categories) -> str:
    return f"ENUM({', '.join(map(_literal, categories))})"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
