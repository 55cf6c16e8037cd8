"""Expressions as Spark prints them in plans → SQL as splitjoin reads it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sqlglot import exp

from splitjoin.base.errors import PredicateError
from splitjoin.lang.local_times import UTC
from splitjoin.lang.sql.parser import parse_tree
from splitjoin.lang.types import UNIT_NS

from .attributes import attributes_in

__all__ = ["MOST_CHARACTERS", "Reading", "atoms", "marked", "marked_number", "null_safe", "readings", "simple",
           "sql_tree"]

#: The longest condition that is read, in characters.
MOST_CHARACTERS = 10_000
#: A scalar subquery in a condition.
_SUBQUERY = re.compile(r"(?:Reused)?Subquery (?:Subquery )?(?:scalar-)?subquery#(\d{1,18}), \[id=#\d{1,18}\]", re.ASCII)
#: A list of more than ten values, which ends with the brackets that it is in.
_INSET = re.compile(r" INSET ([^()]*)")
_INTERVAL = re.compile(r"INTERVAL '([-0-9:. ]{1,60})' (DAY|HOUR|MINUTE|SECOND)(?: TO (HOUR|MINUTE|SECOND))?")
_DATE = re.compile(r"(?<![\w'.-])(\d{4}-\d\d-\d\d)( \d\d:\d\d:\d\d(?:\.\d{1,9})?)?(?![\w'-])", re.ASCII)
_SOME = re.compile(r"\bSome\(([\w/+:-]{1,60})\)")
_FORMAT = re.compile(r", yyyy-MM-dd HH:mm:ss(?=[,)])")
#: The functions that `_rewritten` knows, which sqlglot might read in another way.
_FUNCTIONS = ("isnull", "isnotnull", "timestampdiff", "unix_timestamp", "to_unix_timestamp", "unix_seconds",
              "unix_millis", "unix_micros", "datediff", "date_add", "date_sub")
_CALL = re.compile(rf"(?<![\w.])({'|'.join(_FUNCTIONS)})\(")
_PREFIX = "spark_"
#: Around the number of an attribute, before it becomes a name in quotes; no text of Spark holds it.
_MARK = "\x00"
_MARKED = re.compile(r"#-?\d{1,20}", re.ASCII)
#: A value without brackets behind a comparison: a literal, as Spark computes what depends on no column. Texts have no
#: quotes.
_LITERAL = re.compile(r"( (?:=|<=>|<|>|<=|>=) )([^()\"'=<>]{1,300})(?=\)|$)")
_IN = re.compile(r"( IN \()([^()\"']{1,9000})\)")
_PLAIN = re.compile(r"-?[\d.]+(?:E-?\d+)?|true|false|null|.*\b(?:INTERVAL|DATE|TIMESTAMP) .*", re.ASCII | re.DOTALL)
#: Two keys that Spark makes of `a <=> b`, and the NULL that the first of them takes for a value.
_NULL_SAFE = re.compile(r"coalesce\((.*), [^,()]*\)", re.DOTALL)
#: Units of timestampdiff() that have one length in UTC. It counts times of the session's time zone.
_DIFF_UNITS = ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK")
#: Functions that give the number of a unit since 1970.
_EPOCH = {"unix_timestamp": "second", "to_unix_timestamp": "second", "unix_seconds": "second",
          "unix_millis": "millisecond", "unix_micros": "microsecond"}
_COMPARED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.EQ, exp.NEQ: exp.NEQ, exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE}


@dataclass(frozen=True)
class Reading:
    """A way to read what Spark prints alike for columns of several types.

    ``seconds``: ``cast(X as bigint)`` is the seconds since 1970 of a timestamp, and not an integer; ``zoned``: literals
    of timestamps are moments, printed in UTC, and not local times.
    """

    seconds: bool = False
    zoned: bool = False


def readings(text: str, zone: str) -> list[Reading]:
    """The ways to read ``text``, the likeliest first; ``zone``: the one in which Spark prints timestamps."""
    seconds = (False, True) if " as bigint)" in text else (False,)
    zoned = (True, False) if _DATE.search(text) and zone in UTC else (False,)
    return [Reading(a, b) for a in seconds for b in zoned]


def marked(number: int) -> str:
    """The name that stands for an attribute in a tree."""
    return f"#{number}"


def marked_number(column: exp.Column) -> int:
    """The number of the attribute that ``column`` stands for. Numbers of scalar subqueries are below 0."""
    return int(column.name[1:])


def null_safe(keys: list[tuple[str, str]]) -> list[str]:
    """Pairs of equal keys as conditions, where the two pairs that Spark makes of ``a <=> b`` are one again."""
    said, at = [], 0
    while at < len(keys):
        a, b = keys[at]
        first, second = _NULL_SAFE.fullmatch(a), _NULL_SAFE.fullmatch(b)
        if first and second and keys[at + 1:at + 2] == [(f"isnull({first[1]})", f"isnull({second[1]})")]:
            said.append(f"({first[1]} <=> {second[1]})")
            at += 2
        else:
            said.append(f"({a} = {b})")
            at += 1
    return said


def sql_tree(text: str, names: Mapping[int, str], formulas: Mapping[int, str], reading: Reading) -> exp.Expr:
    """The tree of an expression that Spark printed, where columns have the names that `marked` gives.

    ``formulas``: expressions of attributes that Spark itself made of parts of the condition, which take their place
    again. Raises `PredicateError` for what cannot be read.
    """
    return parse_tree(_prepared(text, names, formulas, reading)).transform(_rewritten, reading.seconds)


def _prepared(text: str, names: Mapping[int, str], formulas: Mapping[int, str], reading: Reading) -> str:
    """``text`` in SQL's words, with attributes as quoted names."""
    text = _replaced(text, names, lambda n: f"({formulas[n]})" if n in formulas else None)
    if len(text) > MOST_CHARACTERS:
        raise PredicateError(f"it has {len(text):,} characters, more than the {MOST_CHARACTERS:,} that are read here")
    text = _SUBQUERY.sub(lambda m: f"{_MARK}{-1 - int(m[1])}{_MARK}", text)
    text = _replaced(text, names, lambda n: f"{_MARK}{n}{_MARK}")
    if "'" in _INTERVAL.sub("", text) or '"' in text:
        raise PredicateError("a text in it holds quotes, and Spark prints texts as they are, so their ends are unknown")
    text = re.sub(f"{_MARK}(-?[0-9]+){_MARK}", r' "#\1" ', text)
    text = _INSET.sub(r" IN (\1)", text)
    text = _INTERVAL.sub(lambda m: _interval(m) or m[0], text)
    text = _FORMAT.sub(", 'yyyy-MM-dd HH:mm:ss'", _SOME.sub(r"'\1'", text))
    zone = "+00:00" if reading.zoned else ""
    text = _DATE.sub(lambda m: f"TIMESTAMP '{m[0]}{zone}'" if m[2] else f"DATE '{m[0]}'", text)
    text = _CALL.sub(rf"{_PREFIX}\1(", text)
    text = _LITERAL.sub(lambda m: m[1] + _quoted(m[2]), text)
    return _IN.sub(lambda m: f"{m[1]}{', '.join(_quoted(x.strip()) for x in m[2].split(','))})", text)


def _replaced(text: str, names: Mapping[int, str], other: Callable[[int], str | None]) -> str:
    parts, end = list[str](), 0
    for attribute in attributes_in(text, names):
        new = other(attribute.number)
        if new is not None:
            parts += [text[end:attribute.start], new]
            end = attribute.end
    return "".join([*parts, text[end:]])


def _quoted(literal: str) -> str:
    return literal if _PLAIN.fullmatch(literal) else f"'{literal}'"


def _interval(match: re.Match[str]) -> str | None:
    """The SQL of an interval such as ``'-0 00:01:30' DAY TO SECOND``; None where its text is not as Spark writes it."""
    units = ["DAY", "HOUR", "MINUTE", "SECOND"]
    text, first, last = match[1], match[2], match[3] or match[2]
    values = re.split(r"[ :]", text.removeprefix("-"))
    names = units[units.index(first):units.index(last) + 1]
    if len(values) != len(names) or not all(re.fullmatch(r"\d{1,18}(\.\d{1,9})?", v, re.ASCII) for v in values):
        return None
    length = sum((Fraction(v) * UNIT_NS[n] for v, n in zip(values, names, strict=True)), Fraction(0))
    sign = "-" if text.startswith("-") else ""
    return f"INTERVAL '{sign}{_amount(length)}"


def _amount(ns: Fraction | int) -> str:
    """The end of an INTERVAL, in the largest of the units up to days of which ``ns`` is a whole number."""
    units = ("DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND", "NANOSECOND")
    unit = next(u for u in units if ns % UNIT_NS[u] == 0) if ns else "SECOND"
    return f"{int(ns // UNIT_NS[unit])}' {unit}"


def _rewritten(e: exp.Expr, seconds: bool) -> exp.Expr:
    """A node in splitjoin's words. `exp.Expr.transform` calls it from the top, and goes on in what it gives."""
    if isinstance(e, exp.Column) and not _MARKED.fullmatch(e.name):
        if not isinstance(e.this, exp.Identifier) or e.table:
            raise PredicateError(f"{e.sql()} is neither a column nor a value that can be read")
        return exp.Literal.string(e.name)  # Spark prints texts without quotes
    if type(e) in _COMPARED:
        return _difference(e) or _since_1970(e, seconds) or e
    if not isinstance(e, exp.Anonymous) or not e.name.startswith(_PREFIX):
        return _negative(e)
    name, args = e.name.removeprefix(_PREFIX), e.expressions
    match name, len(args):
        case "isnull", 1:
            return exp.Paren(this=exp.Is(this=exp.Paren(this=args[0]), expression=exp.Null()))
        case "isnotnull", 1:
            return exp.Paren(this=exp.Not(this=exp.Is(this=exp.Paren(this=args[0]), expression=exp.Null())))
        case "datediff", 2:
            return exp.Paren(this=exp.Sub(this=args[0], expression=args[1]))
        case "date_add", 2:
            return exp.Paren(this=exp.Add(this=args[0], expression=args[1]))
        case "date_sub", 2:
            return exp.Paren(this=exp.Sub(this=args[0], expression=args[1]))
    raise PredicateError(_refusal(name))


def _refusal(name: str) -> str:
    if name == "timestampdiff":
        return ("timestampdiff() is read where it is compared with a whole number, in units up to weeks, and the "
                "session's time zone is UTC; compare the difference of the times with an INTERVAL")
    if name in _EPOCH:
        return f"{name}() is read where such numbers are compared with each other; compare the times themselves"
    return f"{name}() is not read with these arguments"


def _negative(e: exp.Expr) -> exp.Expr:
    """``a + INTERVAL '-10' SECOND`` as ``a - INTERVAL '10' SECOND``; all else as it is."""
    amount = e.expression if isinstance(e, (exp.Add, exp.Sub)) else None
    if isinstance(amount, exp.Interval) and amount.this.name.startswith("-"):
        other = exp.Sub if isinstance(e, exp.Add) else exp.Add
        length = exp.Interval(this=exp.Literal.string(amount.this.name[1:]), unit=amount.args["unit"])
        return other(this=e.this, expression=length)
    return e


def _difference(e: exp.Expr) -> exp.Expr | None:
    """A comparison of timestampdiff() or its absolute value with a whole number, as one of the times' difference.

    timestampdiff() is the difference in whole units, cut towards zero.
    """
    kind, a, b = type(e), _bare(e.this), _bare(e.expression)
    if _integer(a) is not None:
        kind, a, b = _COMPARED[kind], b, a
    n = _integer(b)
    absolute = isinstance(a, exp.Abs)
    call = _call(_bare(a.this) if absolute else a, "timestampdiff")
    if call is None or n is None or len(call) != 4:
        return None
    unit = UNIT_NS.get(call[0].name.upper()) if call[0].name.upper() in _DIFF_UNITS else None
    if unit is None or call[3].name not in UTC:
        return None
    difference: exp.Expr = exp.Sub(this=call[2], expression=call[1])
    if absolute:
        difference = exp.Abs(this=difference)
    if kind is exp.LT:
        kind, n = exp.LTE, n - 1
    elif kind is exp.GT:
        kind, n = exp.GTE, n + 1
    if absolute and n < (kind is exp.GTE):
        return None  # always or never true

    def at_most() -> exp.Expr:
        return _compared(exp.LT, difference, (n + 1) * unit) if n >= 0 else _compared(exp.LTE, difference, n * unit)

    def at_least() -> exp.Expr:
        return _compared(exp.GTE, difference, n * unit) if n > 0 else _compared(exp.GT, difference, (n - 1) * unit)

    if kind is exp.LTE:
        return at_most()
    if kind is exp.GTE:
        return at_least()
    both = exp.Paren(this=exp.And(this=at_least(), expression=at_most()))
    if absolute and n == 0:
        both = exp.Paren(this=at_most())
    return both if kind is exp.EQ else exp.Not(this=both)


def _compared(kind: type[exp.Expr], a: exp.Expr, ns: int) -> exp.Expr:
    sign = "-" if ns < 0 else ""
    number, _, unit = _amount(abs(ns)).partition("' ")
    return kind(this=a.copy(), expression=exp.Interval(this=exp.Literal.string(sign + number), unit=exp.var(unit)))


def _since_1970(e: exp.Expr, seconds: bool) -> exp.Expr | None:
    """A comparison of numbers since 1970 in one unit, as one of the times at which these units begin."""
    units = {_EPOCH[name] for name in _EPOCH if any(_call(x, name) for x in e.walk())}
    units |= {"second" for x in e.walk() if _is_cast_to_bigint(x)} if units or seconds else set()
    if len(units) != 1:
        return None
    [unit] = units
    sides = [_times(x, unit) for x in (e.this, e.expression)]
    if sides[0] is None or sides[1] is None:
        return None
    return type(e)(this=sides[0], expression=sides[1])


def _is_cast_to_bigint(e: exp.Expr) -> bool:
    return isinstance(e, exp.Cast) and e.args["to"].this == exp.DataType.Type.BIGINT


def _times(e: exp.Expr, unit: str) -> exp.Expr | None:
    """Sums of numbers since 1970 as sums of times and intervals; None for what is no such sum."""
    for name in _EPOCH:
        args = _call(e, name)
        if args:
            return exp.Anonymous(this="date_trunc", expressions=[exp.Literal.string(unit), args[0]])
    if _is_cast_to_bigint(e) and unit == "second":
        return exp.Anonymous(this="date_trunc", expressions=[exp.Literal.string(unit), e.this])
    n = _integer(e)
    if n is not None:
        return exp.Interval(this=exp.Literal.string(str(n)), unit=exp.var(unit.upper()))
    if isinstance(e, (exp.Paren, exp.Abs)):
        inner = _times(e.this, unit)
        return None if inner is None else type(e)(this=inner)
    if isinstance(e, (exp.Add, exp.Sub)):
        a, b = _times(e.this, unit), _times(e.expression, unit)
        return None if a is None or b is None else type(e)(this=a, expression=b)
    return None


def _call(e: exp.Expr, name: str) -> list[Any] | None:
    return e.expressions if isinstance(e, exp.Anonymous) and e.name == _PREFIX + name else None


def _bare(e: exp.Expr) -> exp.Expr:
    while isinstance(e, exp.Paren):
        inner: exp.Expr = e.this
        e = inner
    return e


def _integer(e: exp.Expr) -> int | None:
    e, sign = _bare(e), 1
    if isinstance(e, exp.Neg):
        e, sign = _bare(e.this), -1
    if isinstance(e, exp.Literal) and not e.is_string and re.fullmatch(r"\d{1,18}", e.name, re.ASCII):
        return sign * int(e.name)
    return None


def simple(tree: exp.Expr) -> exp.Expr:
    """``tree`` without most brackets that nothing needs, as Spark prints them around every operation."""
    tree = _bare(tree).copy()
    for paren in reversed(list(tree.find_all(exp.Paren))):  # inner ones first
        if _is_loose(paren.this, paren.parent):
            paren.replace(paren.this)
    return tree


def _is_loose(inner: exp.Expr, parent: exp.Expr | None) -> bool:
    """True if ``inner`` needs no brackets in ``parent``."""
    compared, call = tuple(_COMPARED), isinstance(inner, exp.Func) and not isinstance(inner, (exp.Binary, exp.Case))
    if isinstance(inner, (exp.Column, exp.Literal, exp.Paren)) or call:
        return True
    if isinstance(parent, (exp.And, exp.Or)):
        return isinstance(inner, (type(parent), *compared))
    if isinstance(parent, compared):
        return isinstance(inner, (exp.Add, exp.Sub, exp.Mul))
    return isinstance(parent, exp.Func) and not isinstance(parent, (exp.Binary, exp.Case, exp.If))


def atoms(tree: exp.Expr) -> list[exp.Expr]:
    """The conditions that AND, OR, NOT and IS connect to ``tree``."""
    leaves, waiting = list[exp.Expr](), [tree]
    while waiting:
        e = _bare(waiting.pop())
        if isinstance(e, (exp.And, exp.Or)):
            waiting += [e.expression, e.this]
        elif isinstance(e, exp.Not) or (isinstance(e, exp.Is) and isinstance(_bare(e.this), tuple(_COMPARED))):
            waiting.append(e.this)
        else:
            leaves.append(e)
    return leaves
