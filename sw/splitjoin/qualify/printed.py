"""Expressions as Spark prints them in plans → SQL as splitjoin reads it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from sqlglot import exp

from splitjoin.base.errors import PredicateError
from splitjoin.lang.local_times import UTC
from splitjoin.lang.sql.parser import parse_tree
from splitjoin.lang.sql.spark import SparkReader

from .attributes import attributes_in

#: The longest condition that is read, in characters.
MOST_CHARACTERS = 10_000
#: A scalar subquery in a condition.
_SUBQUERY = re.compile(r"(?:Reused)?Subquery (?:Subquery )?(?:scalar-)?subquery#(\d{1,18}), \[id=#\d{1,18}\]", re.ASCII)
#: A list of more than ten values, which ends with the brackets that it is in.
_INSET = re.compile(r" INSET ([^()]*)")
_INTERVAL = re.compile(r"INTERVAL '([-0-9:. ]{1,60})' (DAY|HOUR|MINUTE|SECOND)(?: TO (HOUR|MINUTE|SECOND))?")
_DATE = re.compile(r"(?<![\w'.-])(\d{4}-\d\d-\d\d)( \d\d:\d\d:\d\d(?:\.\d{1,9})?)?(?![\w'-])", re.ASCII)
#: The session's time zone and a flag behind the arguments of a function, and the format of times that is the default.
_ZONE = re.compile(r"(?:, yyyy-MM-dd HH:mm:ss)?, Some\(([\w/+:-]{1,60})\)(?:, (?:true|false))?(?=\))")
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
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def are_moments(text: str, zone: str) -> tuple[bool, ...]:
    """The possible kinds of the timestamp literals in ``text``, the likeliest first: True for moments, printed in UTC,
    and False for local times. ``zone``: the one in which Spark prints timestamps.
    """
    return (True, False) if _DATE.search(text) and zone in UTC else (False,)


def printed_zone(text: str) -> str | None:
    """The session's time zone, as functions in ``text`` have it; None where none does."""
    found = _ZONE.search(text)
    return None if found is None else found[1]


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


def sql_tree(text: str, names: Mapping[int, str], formulas: Mapping[int, str], moments: bool) -> exp.Expr:
    """The tree of an expression that Spark printed, for `SparkReader`; columns have the names that `marked` gives.

    ``formulas``: expressions of attributes that Spark itself made of parts of the condition, which take their place
    again; ``moments``: of `are_moments`. Raises `PredicateError` for what cannot be read.
    """
    return parse_tree(_prepared(text, names, formulas, moments), SparkReader.dialect).transform(_unquoted)


def _prepared(text: str, names: Mapping[int, str], formulas: Mapping[int, str], moments: bool) -> str:
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
    text = _ZONE.sub("", text)
    zone = "+00:00" if moments else ""
    text = _DATE.sub(lambda m: f"TIMESTAMP '{m[0]}{zone}'" if m[2] else f"DATE '{m[0]}'", text)
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


def _unquoted(e: exp.Expr) -> exp.Expr:
    """A text where ``e`` names no attribute: Spark prints texts without quotes. `exp.Expr.transform` calls it."""
    if not isinstance(e, exp.Column) or _MARKED.fullmatch(e.name):
        return e
    if not isinstance(e.this, exp.Identifier) or e.table:
        raise PredicateError(f"{e.sql()} is neither a column nor a value that can be read")
    return exp.Literal.string(e.name)


def _bare(e: exp.Expr) -> exp.Expr:
    while isinstance(e, exp.Paren):
        inner: exp.Expr = e.this
        e = inner
    return e


def simple(tree: exp.Expr) -> exp.Expr:
    """``tree`` without most brackets that nothing needs, as Spark prints them around every operation."""
    tree = _bare(tree).copy()
    for paren in reversed(list(tree.find_all(exp.Paren))):  # inner ones first
        if _is_loose(paren.this, paren.parent):
            paren.replace(paren.this)
    return tree


def _is_loose(inner: exp.Expr, parent: exp.Expr | None) -> bool:
    """True if ``inner`` needs no brackets in ``parent``."""
    call = isinstance(inner, exp.Func) and not isinstance(inner, (exp.Binary, exp.Case))
    if isinstance(inner, (exp.Column, exp.Literal, exp.Paren)) or call:
        return True
    if isinstance(parent, (exp.And, exp.Or)):
        return isinstance(inner, (type(parent), *_COMPARISONS))
    if isinstance(parent, _COMPARISONS):
        return isinstance(inner, (exp.Add, exp.Sub, exp.Mul))
    return isinstance(parent, exp.Func) and not isinstance(parent, (exp.Binary, exp.Case, exp.If))


def atoms(tree: exp.Expr) -> list[exp.Expr]:
    """The conditions that AND, OR, NOT and IS connect to ``tree``."""
    leaves, waiting = list[exp.Expr](), [tree]
    while waiting:
        e = _bare(waiting.pop())
        if isinstance(e, (exp.And, exp.Or)):
            waiting += [e.expression, e.this]
        elif isinstance(e, exp.Not) or (isinstance(e, exp.Is) and isinstance(_bare(e.this), _COMPARISONS)):
            waiting.append(e.this)
        else:
            leaves.append(e)
    return leaves
