"""Random conditions, each in our SQL and in DuckDB's with every type spelled out.

The second text is built from the documented type rules, not from our IR, so that it can serve as an oracle: exact
numbers are DECIMALs wide enough for everything generated here, timestamps are nanoseconds, floats are cast explicitly.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import pyarrow as pa
from hypothesis import strategies as st

__all__ = ["Condition", "Term", "conditions", "terms"]

Kind = Literal["exact", "float32", "float64", "date", "timestamp", "timestamptz", "duration", "bool", "string"]
PER_UNIT = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
NUMBERS = ("exact", "float32", "float64")


@dataclass(frozen=True)
class Term:
    """A value: ``sql`` for us, ``oracle`` for DuckDB.

    ``value`` is set for numeric literals. ``double``: the oracle text that gives an exact term as DOUBLE without
    rounding twice, None where there is none.
    """

    kind: Kind
    sql: str
    oracle: str
    value: Fraction | None = None
    double: str | None = None


@dataclass(frozen=True)
class Condition:
    """A truth value: ``sql`` for us, ``oracle`` for DuckDB."""

    sql: str
    oracle: str


def column(side: str, name: str, type_: pa.DataType) -> Term:
    """The column ``side.name`` of Arrow type ``type_``; times are integers in the oracle's tables."""
    sql = f"{side}.{name}"
    if pa.types.is_integer(type_):
        return Term("exact", sql, f"CAST({sql} AS DECIMAL(19, 0))", double=f"CAST({sql} AS DOUBLE)")
    if pa.types.is_floating(type_):
        return Term("float32" if type_.bit_width == 32 else "float64", sql, sql)
    if pa.types.is_date(type_):
        return Term("date", sql, f"CAST({sql} AS DECIMAL(10, 0))")
    if pa.types.is_timestamp(type_):
        ns = f"(CAST({sql} AS DECIMAL(19, 0)) * CAST({PER_UNIT[type_.unit]} AS DECIMAL(10, 0)))"
        return Term("timestamptz" if type_.tz else "timestamp", sql, ns)
    return Term("bool" if pa.types.is_boolean(type_) else "string", sql, sql)


def number(value: Fraction, sql: str | None = None) -> Term:
    """A numeric literal."""
    return Term("exact", _decimal(value) if sql is None else sql, _exact(value), value=value)


def _decimal(value: Fraction) -> str:
    """A fraction that has a finite decimal form, in that form."""
    places = next(n for n in range(30) if (value * 10**n).denominator == 1)
    digits = str(abs(int(value * 10**places))).rjust(places + 1, "0")
    point = len(digits) - places
    return ("-" if value < 0 else "") + digits[:point] + ("." + digits[point:] if places else "")


def _exact(value: Fraction) -> str:
    text = _decimal(value).lstrip("-")
    whole, _, part = text.partition(".")
    return f"CAST('{_decimal(value)}' AS DECIMAL({len(whole) + len(part)}, {len(part)}))"


def _as_float(t: Term, type_: str) -> str:
    """``t`` as FLOAT or DOUBLE, for use in the oracle."""
    if t.value is not None:
        return f"CAST('{_decimal(t.value)}' AS {type_})"
    if t.kind == "exact":
        assert t.double is not None
        return t.double
    return f"CAST({t.oracle} AS {type_})"


def literals(kind: Kind) -> st.SearchStrategy[Term]:
    """Literals that go with terms of ``kind``."""
    if kind in NUMBERS:
        return _number_literals
    if kind == "date":
        return st.dates(dt.date(1969, 12, 25), dt.date(1970, 1, 7)).map(lambda d: Term(
            "date", f"DATE '{d}'", f"CAST((DATE '{d}' - DATE '1970-01-01') AS DECIMAL(10, 0))"))
    if kind == "timestamp":
        return _moments.map(lambda t: Term(kind, f"TIMESTAMP '{t}'", _epoch(t)))
    if kind == "timestamptz":
        return _moments.map(lambda t: Term(kind, f"TIMESTAMPTZ '{t}+00:00'", _epoch(t)))
    if kind == "duration":
        return _intervals
    if kind == "bool":
        return st.sampled_from([Term("bool", v, v) for v in ("TRUE", "FALSE")])
    return st.sampled_from([Term("string", v, v) for v in ("''", "'a'", "'A'", "'b'", "'a''b'", "'ä'", "'a '")])


def _epoch(moment: dt.datetime) -> str:
    return f"CAST(epoch_ns(TIMESTAMP '{moment}') AS DECIMAL(19, 0))"


#: Small enough that products of a few of them with a 64-bit column fit the oracle's 38 digits.
_factors = st.sampled_from(["0", "1", "-1", "2", "-3", "0.5", "0.1", "10.1", "1.25", "127"]).map(
    lambda t: number(Fraction(t)))
_number_literals = st.one_of(
    st.integers(-3, 3).map(lambda n: number(Fraction(n))),
    st.sampled_from(["0.5", "0.1", "10.1", "1.25", "16777217", "127", "128", "-32768", "2147483648"]).map(
        lambda t: number(Fraction(t))),
    st.sampled_from(["1e2", "2.5E-1", "1e+1"]).map(lambda t: number(Fraction(t), t)),
    st.sampled_from([-(2**63), 2**63 - 1, 2**53 + 1]).map(lambda n: number(Fraction(n))),
)
_moments = st.one_of(
    st.integers(-3, 3).map(lambda n: dt.datetime(1970, 1, 1) + dt.timedelta(seconds=n)),
    st.integers(-3, 3).map(lambda n: dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=n)),
    st.integers(-3, 3).map(lambda n: dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=n)),
)
_intervals = st.builds(
    lambda n, unit: Term("duration", f"INTERVAL '{n}' {unit[0]}", f"CAST({n * unit[1]} AS DECIMAL(19, 0))"),
    st.integers(-3, 3),
    st.sampled_from([("NANOSECONDS", 1), ("MICROSECOND", 10**3), ("MILLISECONDS", 10**6), ("SECOND", 10**9),
                     ("MINUTES", 60 * 10**9), ("DAY", 86400 * 10**9)]),
)


def arith(op: str, a: Term, b: Term) -> Term:
    """``a op b`` on numbers, by the documented rules."""
    sql = f"({a.sql} {op} {b.sql})"
    if a.kind == b.kind == "exact":
        if a.value is not None and b.value is not None:
            value = {"+": a.value + b.value, "-": a.value - b.value, "*": a.value * b.value}[op]
            return number(value, sql)
        return Term("exact", sql, f"({a.oracle} {op} {b.oracle})")
    kinds = {t.kind for t in (a, b) if t.value is None}
    kind: Kind = "float32" if kinds == {"float32"} else "float64"
    type_ = "FLOAT" if kind == "float32" else "DOUBLE"
    return Term(kind, sql, f"({_as_float(a, type_)} {op} {_as_float(b, type_)})")


def compare(op: str, a: Term, b: Term) -> Condition:
    """``a op b``, by the documented rules."""
    sql = f"{a.sql} {op} {b.sql}"
    if {a.kind, b.kind} <= set(NUMBERS) and not a.kind == b.kind == "exact" and not a.kind == b.kind == "float32":
        return Condition(sql, f"({_as_float(a, 'DOUBLE')} {op} {_as_float(b, 'DOUBLE')})")
    return Condition(sql, f"({a.oracle} {op} {b.oracle})")


@st.composite
def terms(draw: st.DrawFn, pool: Sequence[Term], depth: int = 2) -> Term:
    """A number made of the numeric columns in ``pool`` and literals."""
    numbers = [t for t in pool if t.kind in NUMBERS]
    if not numbers or depth == 0 or draw(st.integers(0, 2)) == 0:
        leaves = [st.sampled_from(numbers), st.sampled_from(numbers)] if numbers else []
        return draw(st.one_of(*leaves, literals("exact")))
    shape = draw(st.sampled_from(["+", "-", "*", "neg", "abs", "-"]))
    a = draw(terms(pool, depth - 1))
    if shape == "neg":
        value = None if a.value is None else -a.value
        return replace(a, sql=f"(- {a.sql})", oracle=f"(- {a.oracle})", value=value, double=None)
    if shape == "abs":
        value = None if a.value is None else abs(a.value)
        return replace(a, sql=f"abs({a.sql})", oracle=f"abs({a.oracle})", value=value, double=None)
    b = draw(_factors if shape == "*" else terms(pool, depth - 1))
    if shape == "*" and draw(st.booleans()):
        a, b = b, a
    if a.kind != b.kind:  # an exact sum would be rounded twice on its way to DOUBLE in the oracle
        a, b = _convertible(draw, a, pool), _convertible(draw, b, pool)
    return arith(shape, a, b)


def _convertible(draw: st.DrawFn, t: Term, pool: Sequence[Term]) -> Term:
    if t.kind != "exact" or t.double is not None or t.value is not None:
        return t
    return draw(st.one_of(literals("exact"), *[st.just(c) for c in pool if c.double is not None]))


@st.composite
def times(draw: st.DrawFn, pool: Sequence[Term], kind: Kind) -> Term:
    """A date or timestamp: a column or a literal, perhaps shifted."""
    columns = [t for t in pool if t.kind == kind]
    t = draw(st.one_of(*([st.sampled_from(columns)] * 3 if columns else []), literals(kind)))
    op = draw(st.sampled_from(["", "", "+", "-"]))
    if not op:
        return t
    by = number(Fraction(draw(st.integers(-3, 3)))) if kind == "date" else draw(_intervals)
    return Term(kind, f"({t.sql} {op} {by.sql})", f"({t.oracle} {op} {by.oracle})")


@st.composite
def durations(draw: st.DrawFn, pool: Sequence[Term], kind: Kind) -> Term:
    """The difference of two timestamps, an interval, or the absolute value of one."""
    if draw(st.integers(0, 3)) == 0:
        return draw(_intervals)
    a, b = draw(times(pool, kind)), draw(times(pool, kind))
    t = Term("duration", f"({a.sql} - {b.sql})", f"({a.oracle} - {b.oracle})")
    return replace(t, sql=f"abs({t.sql})", oracle=f"abs({t.oracle})") if draw(st.booleans()) else t


@st.composite
def _operands(draw: st.DrawFn, pool: Sequence[Term]) -> tuple[Term, Term, Term]:
    """Three terms that can be compared with each other."""
    kind = draw(st.sampled_from(pool)).kind
    if kind in NUMBERS:
        found = [draw(terms(pool)) for _ in range(3)]
        if len({t.kind for t in found}) > 1:
            found = [_convertible(draw, t, pool) for t in found]
        a, b, c = found
        return a, b, c
    if kind == "date":
        if draw(st.booleans()):
            x, y = draw(times(pool, "date")), draw(times(pool, "date"))
            days = Term("exact", f"({x.sql} - {y.sql})", f"({x.oracle} - {y.oracle})")
            return days, draw(literals("exact")), draw(literals("exact"))
        return draw(times(pool, kind)), draw(times(pool, kind)), draw(times(pool, kind))
    if kind in ("timestamp", "timestamptz"):
        make = draw(st.sampled_from([times, durations]))
        return draw(make(pool, kind)), draw(make(pool, kind)), draw(make(pool, kind))
    some = st.one_of(st.sampled_from([t for t in pool if t.kind == kind]), literals(kind))
    return draw(some), draw(some), draw(some)


@st.composite
def _across(draw: st.DrawFn, pool: Sequence[Term]) -> Condition | None:
    """What joins are mostly made of: a comparison of an R column with an S column, or a band; None if none meet."""
    pairs = [(a, b) for a in pool for b in pool if a.sql[0] == "r" and b.sql[0] == "s"
             and (a.kind == b.kind or {a.kind, b.kind} <= set(NUMBERS))]
    if not pairs:
        return None
    a, b = draw(st.sampled_from(pairs))
    if a.kind in NUMBERS and draw(st.booleans()):
        difference = arith("-", a, b)
        size = replace(difference, sql=f"abs({difference.sql})", oracle=f"abs({difference.oracle})")
        if size.kind == "exact":
            return compare(draw(st.sampled_from(["<=", "<", ">", "="])), size, draw(literals("exact")))
        return compare("<=", size, draw(literals("exact")))
    op = draw(st.sampled_from(["=", "<>"] if a.kind == "string" else ["=", "<>", "<", "<=", ">", ">="]))
    return compare(op, a, b)


@st.composite
def _comparisons(draw: st.DrawFn, pool: Sequence[Term]) -> Condition:
    if draw(st.booleans()) and (condition := draw(_across(pool))) is not None:
        return condition
    a, b, c = draw(_operands(pool))
    if a.kind == "bool" and draw(st.booleans()):
        return Condition(a.sql, a.oracle)
    shape = draw(st.sampled_from(["compare", "compare", "compare", "between", "not between", "null", "is null"]))
    if shape == "is null":
        word = draw(st.sampled_from(["IS NULL", "IS NOT NULL"]))
        return Condition(f"{a.sql} {word}", f"({a.oracle} {word})")
    op = draw(st.sampled_from(["=", "<>"] if a.kind == "string" else ["=", "<>", "<", "<=", ">", ">="]))
    if shape == "null":
        return Condition(f"{a.sql} {op} NULL", "CAST(NULL AS BOOLEAN)")
    if shape != "compare" and a.kind != "string":
        low, high = compare(">=", a, b), compare("<=", a, c)
        negation = "NOT " if shape.startswith("not") else ""
        return Condition(f"{a.sql} {negation}BETWEEN {b.sql} AND {c.sql}",
                         f"({negation}({low.oracle} AND {high.oracle}))")
    return compare(op, a, b)


@st.composite
def _combined(draw: st.DrawFn, inner: st.SearchStrategy[Condition]) -> Condition:
    a, b = draw(inner), draw(inner)
    shape = draw(st.sampled_from(["AND", "OR", "NOT", "IS TRUE", "IS NOT FALSE", "IS NULL"]))
    if shape in ("AND", "OR"):
        return Condition(f"({a.sql}) {shape} ({b.sql})", f"({a.oracle} {shape} {b.oracle})")
    if shape == "NOT":
        return Condition(f"NOT ({a.sql})", f"(NOT {a.oracle})")
    return Condition(f"({a.sql}) {shape}", f"({a.oracle} {shape})")


def conditions(r: Mapping[str, pa.DataType] | pa.Schema, s: Mapping[str, pa.DataType] | pa.Schema,
               ) -> st.SearchStrategy[Condition]:
    """Conditions over columns of R and S, given as name → Arrow type or as schemas."""
    pool = [column(side, name, type_) for side, columns in (("r", r), ("s", s))
            for name, type_ in (zip(columns.names, columns.types, strict=True) if isinstance(columns, pa.Schema)
                                else columns.items())]
    return st.recursive(_comparisons(pool), _combined, max_leaves=5)
