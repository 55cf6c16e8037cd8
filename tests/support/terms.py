"""Values of random conditions, each in our SQL and in DuckDB's with every type spelled out.

The second text is built from the documented type rules, not from our IR, so that it can serve as an oracle: exact
numbers are DECIMALs wide enough for everything generated here, timestamps are nanoseconds, floats are cast explicitly.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import pyarrow as pa
from hypothesis import strategies as st

Kind = Literal["exact", "wide", "float32", "float64", "date", "timestamp", "timestamptz", "duration", "bool", "string",
               "binary"]
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
    #: The Arrow type, of a column.
    arrow: pa.DataType | None = None


@dataclass(frozen=True)
class Condition:
    """A truth value: ``sql`` for us, ``oracle`` for DuckDB."""

    sql: str
    oracle: str


def column(side: str, name: str, type_: pa.DataType) -> Term:
    """The column ``side.name`` of Arrow type ``type_``; times are integers in the oracle's tables."""
    return replace(_column(f"{side}.{name}", type_), arrow=type_)


def _column(sql: str, type_: pa.DataType) -> Term:
    if pa.types.is_integer(type_):
        digits = 20 if type_ == pa.uint64() else 19
        return Term("exact", sql, f"CAST({sql} AS DECIMAL({digits}, 0))", double=f"CAST({sql} AS DOUBLE)")
    if pa.types.is_decimal(type_):
        # What fills the oracle's 38 digits is compared as it is, without arithmetic.
        return Term("wide" if type_.precision > 19 else "exact", sql, sql, double=f"CAST({sql} AS DOUBLE)")
    if pa.types.is_floating(type_):
        return Term("float32" if type_.bit_width == 32 else "float64", sql, sql)
    if pa.types.is_date(type_):
        return Term("date", sql, f"CAST({sql} AS DECIMAL(10, 0))")
    if pa.types.is_timestamp(type_) or pa.types.is_duration(type_):
        ns = f"(CAST({sql} AS DECIMAL(19, 0)) * CAST({PER_UNIT[type_.unit]} AS DECIMAL(10, 0)))"
        kind: Kind = "timestamp"
        if pa.types.is_duration(type_):
            kind = "duration"
        elif type_.tz:
            kind = "timestamptz"
        return Term(kind, sql, ns)
    if pa.types.is_boolean(type_):
        return Term("bool", sql, sql)
    return Term("string" if pa.types.is_string(type_) or pa.types.is_large_string(type_) else "binary", sql, sql)


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


def as_float(t: Term, type_: str) -> str:
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
        return intervals
    if kind == "wide":
        return st.sampled_from(["0", "1.5", "-1", "0.01", "9" * 34, "-" + "9" * 34 + ".5"]).map(
            lambda v: Term("wide", v, f"CAST('{v}' AS DECIMAL(38, 2))"))
    if kind == "binary":
        return st.sampled_from([Term("binary", f"X'{v}'", f"from_hex('{v}')") for v in ("", "61", "6162", "00", "FF")])
    if kind == "bool":
        return st.sampled_from([Term("bool", v, v) for v in ("TRUE", "FALSE")])
    return st.sampled_from([Term("string", v, v) for v in ("''", "'a'", "'A'", "'b'", "'a''b'", "'ä'", "'a '")])


def _epoch(moment: dt.datetime) -> str:
    return f"CAST(epoch_ns(TIMESTAMP '{moment}') AS DECIMAL(19, 0))"


#: Small enough that products of a few of them with a 64-bit column fit the oracle's 38 digits.
factors = st.sampled_from(["0", "1", "-1", "2", "-3", "0.5", "0.1", "10.1", "1.25", "127"]).map(
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
intervals = st.builds(
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
    return Term(kind, sql, f"({as_float(a, type_)} {op} {as_float(b, type_)})")


def compare(op: str, a: Term, b: Term) -> Condition:
    """``a op b``, by the documented rules."""
    sql = f"{a.sql} {op} {b.sql}"
    if {a.kind, b.kind} <= set(NUMBERS) and not a.kind == b.kind == "exact" and not a.kind == b.kind == "float32":
        return Condition(sql, f"({as_float(a, 'DOUBLE')} {op} {as_float(b, 'DOUBLE')})")
    return Condition(sql, f"({a.oracle} {op} {b.oracle})")
