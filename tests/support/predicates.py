"""Random conditions, each in our SQL and in DuckDB's: terms of `tests.support.terms` compared and combined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
from hypothesis import strategies as st

from .shapes import shapes
from .terms import NUMBERS, Condition, Kind, Term, arith, column, compare, factors, intervals, literals, number


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
    b = draw(factors if shape == "*" else terms(pool, depth - 1))
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
    by = number(Fraction(draw(st.integers(-3, 3)))) if kind == "date" else draw(intervals)
    return Term(kind, f"({t.sql} {op} {by.sql})", f"({t.oracle} {op} {by.oracle})")


@st.composite
def durations(draw: st.DrawFn, pool: Sequence[Term], kind: Kind) -> Term:
    """The difference of two timestamps, an interval, or the absolute value of one."""
    if draw(st.integers(0, 3)) == 0:
        return draw(intervals)
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
    if kind == "duration":
        some_time = st.one_of(st.sampled_from([t for t in pool if t.kind == kind]), intervals)
        return draw(some_time), draw(some_time), draw(some_time)
    if kind in ("timestamp", "timestamptz"):
        make = draw(st.sampled_from([times, durations]))
        return draw(make(pool, kind)), draw(make(pool, kind)), draw(make(pool, kind))
    some = st.one_of(st.sampled_from([t for t in pool if t.kind == kind]), literals(kind))
    return draw(some), draw(some), draw(some)


@st.composite
def _across(draw: st.DrawFn, pool: Sequence[Term]) -> Condition | None:
    """The usual condition of a join: a comparison of an R column with an S column, or a band; None if no types meet."""
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
    op = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
    return compare(op, a, b)


@st.composite
def _comparisons(draw: st.DrawFn, pool: Sequence[Term]) -> Condition:
    if draw(st.booleans()) and (condition := draw(_across(pool))) is not None:
        return condition
    if draw(st.booleans()):
        return draw(shapes(pool))
    a, b, c = draw(_operands(pool))
    if a.kind == "bool" and draw(st.booleans()):
        return Condition(a.sql, a.oracle)
    shape = draw(st.sampled_from(["compare", "compare", "compare", "between", "not between", "null", "is null"]))
    if shape == "is null":
        word = draw(st.sampled_from(["IS NULL", "IS NOT NULL"]))
        return Condition(f"{a.sql} {word}", f"({a.oracle} {word})")
    op = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
    if shape == "null":
        return Condition(f"{a.sql} {op} NULL", "CAST(NULL AS BOOLEAN)")
    if shape != "compare":
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
