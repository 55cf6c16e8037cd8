"""Conditions of Spark's joins as queries of splitjoin: the types that columns may have, the text, and the windows."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from sqlglot import exp

from splitjoin.base.errors import PredicateError, SplitJoinError
from splitjoin.lang.ir import Expr
from splitjoin.lang.local_times import session_zone
from splitjoin.lang.schema import SIDES, Schema, Side
from splitjoin.lang.sql.parser import parse_sql
from splitjoin.lang.sql.source import sql_of
from splitjoin.lang.sql.spark import SparkReader
from splitjoin.lang.time_columns import TimeColumns, time_columns
from splitjoin.lang.types import TIME_UNITS, UNIT_NS, Date, Int, Timestamp
from splitjoin.lang.windows import length_text
from splitjoin.plan.time_band import time_band

from .printed import are_moments, atoms, marked_number, printed_zone, simple, sql_tree

#: Types that columns are tried with where the log does not tell theirs: of bigint columns Spark says so.
_TYPES = (pa.int32(), pa.timestamp("us", "UTC"), pa.float64(), pa.string(), pa.date32(), pa.decimal128(18, 2),
          pa.bool_(), pa.int64())
#: How many choices of types are tried for a condition.
_TRIES = 1000
#: How many columns of each side may be the event time.
_TIMES = 4
_WORD = re.compile(r'"([A-Za-z_]\w*)"', re.ASCII)
_SPARK_NAMES = {pa.int32(): "int", pa.int64(): "bigint", pa.int16(): "smallint", pa.int8(): "tinyint",
                pa.float64(): "double", pa.float32(): "float", pa.timestamp("us", "UTC"): "timestamp",
                pa.timestamp("us"): "timestamp_ntz", pa.date32(): "date", pa.bool_(): "boolean"}


@dataclass(frozen=True)
class JoinCondition:
    """A condition that splitjoin takes.

    Attributes:
        text: The condition in splitjoin's words.
        columns: The columns in it, with their types in Spark's words.
        window: The arguments ``time`` and ``window`` that follow from the condition's own bounds of times; empty if
            there are none.
    """

    text: str
    columns: str
    window: str


def read_condition(text: str, side: Callable[[int], Side | None], names: Mapping[int, str],
                   types: Mapping[int, pa.DataType], formulas: Mapping[int, str], zone: str = "") -> JoinCondition:
    """The condition that Spark prints as ``text``.

    Args:
        text: The condition.
        side: The stream that an attribute belongs to, by its number; None where the log does not say.
        names: The names of attributes.
        types: Their types, as far as the log tells them.
        formulas: Expressions of attributes that Spark made of parts of the condition.
        zone: The session's time zone, in which Spark prints timestamps, or empty.

    Raises `PredicateError` for what splitjoin does not take, or what cannot be read.
    """
    error: PredicateError | None = None
    zone = printed_zone(text) or zone
    for moments in are_moments(text, zone):
        try:
            with session_zone(zone or None):
                return _read(sql_tree(text, names, formulas, moments), side, names, types)
        except PredicateError as failed:
            error = error or failed
        except RecursionError:
            raise PredicateError("the condition is nested too deeply") from None
    assert error is not None
    raise error


def _read(tree: exp.Expr, side: Callable[[int], Side | None], names: Mapping[int, str],
          types: Mapping[int, pa.DataType]) -> JoinCondition:
    columns = _columns(tree, side, names)
    for column in tree.find_all(exp.Column):
        of, name = columns[marked_number(column)]
        column.replace(exp.column(name, table=of, quoted=True))
    given = {columns[number]: type_ for number, type_ in types.items() if number in columns}
    chosen = _typed(tree, given)
    schemas = _schemas(chosen, list(chosen))
    predicate = _condition(tree, schemas)
    said = _text(tree, predicate, schemas)
    spoken = ", ".join(f"{of}.{name} {_SPARK_NAMES.get(type_, str(type_).replace('128', ''))}"
                       for (of, name), type_ in sorted(chosen.items(), key=lambda one: one[0][0]))
    return JoinCondition(said, spoken, _window(predicate, schemas))


def _columns(tree: exp.Expr, side: Callable[[int], Side | None], names: Mapping[int, str],
             ) -> dict[int, tuple[Side, str]]:
    """The streams and names of the attributes in ``tree``. Names that occur twice in a stream get their numbers."""
    found: dict[int, tuple[Side, str]] = {}
    for column in tree.find_all(exp.Column):
        number = marked_number(column)
        if number in found:
            continue
        if number < 0:
            found[number] = "r", f"subquery_{-1 - number}"
            continue
        name, of = names.get(number, str(number)), side(number)
        if of is None:
            raise PredicateError(f"the log does not say which input the column {name} belongs to; see the query")
        taken = {n.lower() for s, n in found.values() if s == of}
        found[number] = of, f"{name}_{number}" if name.lower() in taken else name
    return found


def _typed(tree: exp.Expr, given: Mapping[tuple[Side, str], pa.DataType]) -> dict[tuple[Side, str], pa.DataType]:
    """Types of all columns in ``tree`` with which splitjoin takes it: those ``given``, and others by trial.

    Raises the first error of a part that no choice of types makes right.
    """
    chosen = dict(given)
    parts = [(part, _keys(part)) for part in atoms(tree)]
    parts.sort(key=lambda one: sum(key not in given for key in one[1]))  # those that leave least to choose
    left = _TRIES
    refused: tuple[exp.Expr, list[Schema]] | None = None

    def tried(at: int) -> bool:
        nonlocal left, refused
        if at == len(parts):
            return True
        part, keys = parts[at]
        free = [key for key in keys if key not in chosen]
        for types in _choices(len(free)):
            if left == 0:
                return False
            left -= 1
            chosen.update(zip(free, types, strict=True))
            schemas = _schemas(chosen, keys)
            try:
                _condition(part, schemas)
            except SplitJoinError as error:
                if refused is None or "time zone" in str(error):  # what types cannot mend
                    refused = part, schemas
            else:
                if tried(at + 1):
                    return True
            for key in free:
                del chosen[key]
        return False

    if not tried(0):
        assert refused is not None
        try:
            _reader(*refused, quoting=True).condition(refused[0])
        except SplitJoinError as error:
            raise PredicateError(str(error).splitlines()[0].split("; it may hold ")[0]) from None
    return {key: chosen[key] for key in _keys(tree)}


def _choices(columns: int) -> Iterator[Sequence[pa.DataType]]:
    """Types of so many columns, first those of one type for all."""
    if columns:
        yield from ([type_] * columns for type_ in _TYPES)
    yield from (types for types in itertools.product(_TYPES, repeat=columns) if columns == 0 or len(set(types)) > 1)


def _keys(tree: exp.Expr) -> list[tuple[Side, str]]:
    """The columns in ``tree`` in the order in which they are written, each once."""
    found = (tree, ) if isinstance(tree, exp.Column) else tree.find_all(exp.Column, bfs=False)
    return list(dict.fromkeys(("r" if column.table == "r" else "s", column.name) for column in found))


def _schemas(types: Mapping[tuple[Side, str], pa.DataType], keys: Sequence[tuple[Side, str]]) -> list[Schema]:
    return [Schema.from_arrow(s, pa.schema([(name, types[of, name]) for of, name in keys if of == s])) for s in SIDES]


def _reader(tree: exp.Expr, schemas: Sequence[Schema], *, quoting: bool = False) -> SparkReader:
    return SparkReader(sql_of(tree) if quoting else "", dict(zip(SIDES, schemas, strict=True)), quoting=quoting)


def _condition(tree: exp.Expr, schemas: Sequence[Schema]) -> Expr:
    made = _reader(tree, schemas).condition(tree)
    for call in tree.find_all(exp.Anonymous):
        if call.name == "timestampdiff" and any(isinstance(c, exp.Column) and isinstance(
                schemas[SIDES.index(c.table)].find(c.name).type, Date) for c in call.expressions):
            raise PredicateError("Spark shows the cast of a date that timestampdiff() takes")
    return made


def _text(tree: exp.Expr, predicate: Expr, schemas: Sequence[Schema]) -> str:
    """The shortest text that means ``predicate``: without brackets and quotes that nothing needs."""
    whole = str(tree.sql(dialect="", comments=False, normalize_functions="lower"))
    made = str(simple(tree).sql(dialect="", comments=False, normalize_functions="lower"))
    for text in (_WORD.sub(r"\1", made), made):
        try:
            if parse_sql(text, *schemas, reader=SparkReader) == predicate:
                return text
        except SplitJoinError:
            continue  # a name that is a keyword needs its quotes
    return whole


def _window(predicate: Expr, schemas: Sequence[Schema]) -> str:
    """The arguments ``time`` and ``window`` that lose no pair of ``predicate``, or an empty text.

    Timestamps and dates are times; of integers, only the user knows that.
    """
    for types in ((Timestamp, Date), (Int,)):
        times = [[c.name for c in schema if isinstance(c.type, types)][:_TIMES] for schema in schemas]
        found = [said for pair in itertools.product(*times) if (said := _range(predicate, schemas, pair))]
        if found:
            return "; or ".join(found[:3]) + (", if these are the event times" if Int in types else "")
    return ""


def _range(predicate: Expr, schemas: Sequence[Schema], pair: Sequence[str]) -> str:
    try:
        time = time_columns(schemas[0], schemas[1], (pair[0], pair[1]))
    except SplitJoinError:
        return ""  # a timestamp and a date
    band = time_band(predicate, time)
    lengths = [band[side] for side in SIDES]
    if lengths[0] is None or lengths[1] is None or (time.tick is None and lengths == [0, 0]):
        return ""  # two keys that are equal are no times
    said = [f'"RANGE {_length(length, time)}"' for length in lengths if length is not None]
    window = said[0] if said[0] == said[1] else f"({said[0]}, {said[1]})"
    columns = f'"{pair[0]}"' if pair[0] == pair[1] else f'("{pair[0]}", "{pair[1]}")'
    return f"time={columns}, window={window}"


def _length(ticks: int, time: TimeColumns) -> str:
    """A window's length of so many ticks, rounded up."""
    if time.tick is None:
        return f"{ticks} DAYS" if isinstance(time.type, Date) else str(ticks)
    length = ticks * TIME_UNITS[time.tick]
    for unit in (UNIT_NS["SECOND"], UNIT_NS["MILLISECOND"]):
        if length >= 10 * unit:
            length += -length % unit
    return length_text(np.timedelta64(length, "ns")) if length else "0 SECONDS"
