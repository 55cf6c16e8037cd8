"""Random conditions beyond plain arithmetic: distances, quotients, bits, CASE, IN, text; in our SQL and DuckDB's.

As in `tests.support.predicates`, the second text follows the documented type rules. Whole numbers are HUGEINTs there,
bits are of the type that the rules give.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
from hypothesis import strategies as st

from .terms import Condition, Kind, Term, arith, compare, literals, number

_OPS = ["=", "<>", "<", "<=", ">", ">="]
#: Integer types up to 32 bits, of which squares of differences fit a HUGEINT.
_SMALL = {"int8", "int16", "int32", "uint8", "uint16", "uint32"}


def shapes(pool: Sequence[Term]) -> st.SearchStrategy[Condition]:
    """Conditions over the columns in ``pool``, of every shape that it has columns for."""
    small = [t for t in pool if t.arrow is not None and str(t.arrow) in _SMALL]
    whole = [t for t in pool if t.arrow is not None and pa.types.is_integer(t.arrow)]
    floats = [t for t in pool if t.kind in ("float32", "float64")]
    texts = [t for t in pool if t.kind in ("string", "binary")]
    found = []
    if small:
        found += [_distances(small), _products(small), _quotients(small)]
    if whole:
        found += [_bits(whole)]
    if floats:
        found += [_float_distances(floats)]
    castable = [t for t in pool if t.arrow is not None and (str(t.arrow) in _SMALL | {"int64", "float", "bool"})]
    if castable:
        found += [_casts(castable, [t for t in pool if t.double is not None or t in floats])]
    if texts:
        found += [_texts(texts)]
    return st.one_of(*found, _lists(pool))


@st.composite
def _casts(draw: st.DrawFn, castable: Sequence[Term], numbers: Sequence[Term]) -> Condition:
    """A column in another type, compared with a number."""
    t = draw(st.sampled_from(castable))
    if t.kind == "bool":
        made = Term("exact", f"CAST({t.sql} AS SMALLINT)", f"CAST({t.sql} AS DECIMAL(5, 0))",
                    double=f"CAST(CAST({t.sql} AS DECIMAL(5, 0)) AS DOUBLE)")
    elif t.kind == "exact" and draw(st.booleans()):
        made = replace(t, sql=f"CAST({t.sql} AS BIGINT)")
    else:
        made = Term("float64", f"CAST({t.sql} AS DOUBLE)", f"CAST({t.sql} AS DOUBLE)")
    other = draw(st.one_of(literals("exact"), *[st.just(n) for n in numbers]))
    return compare(draw(st.sampled_from(_OPS)), made, other)


def _huge(t: Term) -> Term:
    return replace(t, oracle=f"CAST({t.sql} AS HUGEINT)", double=None)


def _difference(draw: st.DrawFn, pool: Sequence[Term]) -> Term:
    a, b = _huge(draw(st.sampled_from(pool))), _huge(draw(st.sampled_from(pool)))
    return Term("exact", f"({a.sql} - {b.sql})", f"({a.oracle} - {b.oracle})")


@st.composite
def _distances(draw: st.DrawFn, pool: Sequence[Term]) -> Condition:
    """Squared, Manhattan and mixed distances of one to three axes, with a bound that may be a column."""
    sql, oracle = [], []
    for _ in range(draw(st.integers(1, 3))):
        d = _difference(draw, pool)
        if draw(st.booleans()):
            sql.append(f"{d.sql} * {d.sql}")
            oracle.append(f"{d.oracle} * {d.oracle}")
        else:
            sql.append(f"abs({d.sql})")
            oracle.append(f"abs({d.oracle})")
    limit = _huge(draw(st.sampled_from(pool))) if draw(st.integers(0, 2)) == 0 else None
    bound = draw(st.sampled_from([0, 1, 4, 5, 9, 16, 100, -1, 2**31, 2**63 - 1]))
    factor = draw(st.sampled_from([1, 1, 1, 2, -1]))
    op = draw(st.sampled_from(["<=", "<=", "<", "=", ">", ">=", "<>"]))
    right = (str(bound), str(bound)) if limit is None else (f"{limit.sql} + {bound}", f"({limit.oracle} + {bound})")
    return Condition(f"{factor} * ({' + '.join(sql)}) {op} {right[0]}",
                     f"({factor} * ({' + '.join(oracle)}) {op} {right[1]})")


@st.composite
def _products(draw: st.DrawFn, pool: Sequence[Term]) -> Condition:
    a, b = _huge(draw(st.sampled_from(pool))), _huge(draw(st.sampled_from(pool)))
    bound, more = draw(st.sampled_from([0, 1, 6, -4, 127, 2**31])), draw(st.integers(-2, 2))
    op = draw(st.sampled_from(_OPS))
    return Condition(f"({a.sql} + {more}) * {b.sql} {op} {bound}",
                     f"(({a.oracle} + {more}) * {b.oracle} {op} {bound})")


@st.composite
def _quotients(draw: st.DrawFn, pool: Sequence[Term]) -> Condition:
    """Quotients and remainders, by constants and by columns; by 0 they are NULL."""
    d = _difference(draw, pool)
    by = draw(st.one_of(st.sampled_from([2, 3, 7, -3, 10]), st.sampled_from(pool)))
    divisor = (str(by), str(by)) if isinstance(by, int) else (by.sql, _huge(by).oracle)
    sql, oracle = draw(st.sampled_from([("//", "//"), ("DIV", "//"), ("%", "%")]))
    op, bound = draw(st.sampled_from(_OPS)), draw(st.integers(-4, 4))
    return Condition(f"{d.sql} {sql} {divisor[0]} {op} {bound}",
                     f"(CASE WHEN {divisor[1]} = 0 THEN NULL ELSE {d.oracle} {oracle} {divisor[1]} END {op} {bound})")


@st.composite
def _bits(draw: st.DrawFn, pool: Sequence[Term]) -> Condition:
    a, b = draw(st.sampled_from(pool)), draw(st.sampled_from(pool))
    assert a.arrow is not None and b.arrow is not None
    type_ = _bit_type(a.arrow, b.arrow)
    if type_ is None:
        b, type_ = a, _duck(a.arrow)
    x, y = f"CAST({a.sql} AS {type_})", f"CAST({b.sql} AS {type_})"
    shape = draw(st.sampled_from(["&", "|", "^", "hamming", "~", ">>"]))
    op, bound = draw(st.sampled_from(_OPS)), draw(st.sampled_from([0, 1, 2, 3, 8, 31, 127]))
    if shape == "hamming":
        return Condition(f"bit_count({a.sql} ^ {b.sql}) {op} {bound}", f"(bit_count(xor({x}, {y})) {op} {bound})")
    if shape == "~":
        own = _duck(a.arrow)
        return Condition(f"~{a.sql} {op} {b.sql}",
                         f"(CAST(~CAST({a.sql} AS {own}) AS HUGEINT) {op} CAST({b.sql} AS HUGEINT))")
    if shape == ">>":
        x, y = _huge(a).oracle, _huge(b).oracle
        places, power = draw(st.sampled_from([("2", "4"), (
            f"({b.sql} & 3)", f"(CAST(1 AS HUGEINT) << CAST(CAST({b.sql} AS {_duck(b.arrow)}) & 3 AS INT))")]))
        return Condition(f"{a.sql} >> {places} {op} {b.sql}",
                         f"((({x} - (({x} % {power} + {power}) % {power})) // {power}) {op} {y})")
    duck = f"xor({x}, {y})" if shape == "^" else f"({x} {shape} {y})"
    return Condition(f"({a.sql} {shape} {b.sql}) {op} {bound}", f"(CAST({duck} AS HUGEINT) {op} {bound})")


def _duck(t: pa.DataType) -> str:
    return {"int8": "TINYINT", "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT", "uint8": "UTINYINT",
            "uint16": "USMALLINT", "uint32": "UINTEGER", "uint64": "UBIGINT"}[str(t)]


def _bit_type(a: pa.DataType, b: pa.DataType) -> str | None:
    """DuckDB's name of the narrowest type that holds both; None if none of 64 bits does."""
    signed = [pa.types.is_signed_integer(t) for t in (a, b)]
    if signed[0] == signed[1]:
        return _duck(a if a.bit_width >= b.bit_width else b)
    width = max(t.bit_width if s else 2 * t.bit_width for t, s in zip((a, b), signed, strict=True))
    return None if width > 64 else {16: "SMALLINT", 32: "INTEGER", 64: "BIGINT"}[width]


@st.composite
def _float_distances(draw: st.DrawFn, pool: Sequence[Term]) -> Condition:
    """Sums of squares and absolute values of float differences, against a constant."""
    kind = draw(st.sampled_from(pool)).kind
    same = [t for t in pool if t.kind == kind]
    parts = []
    for _ in range(draw(st.integers(1, 2))):
        d = arith("-", draw(st.sampled_from(same)), draw(st.sampled_from(same)))
        parts.append(arith("*", d, d) if draw(st.booleans()) else
                     replace(d, sql=f"abs({d.sql})", oracle=f"abs({d.oracle})"))
    total = parts[0] if len(parts) == 1 else arith("+", *parts)
    if draw(st.booleans()):
        total = arith(draw(st.sampled_from(["*", "+"])), total, number(Fraction(draw(st.sampled_from(["2", "0.5"])))))
    return compare(draw(st.sampled_from(_OPS)), total, draw(literals("exact")))


@st.composite
def _texts(draw: st.DrawFn, pool: Sequence[Term]) -> Condition:
    a = draw(st.sampled_from(pool))
    if draw(st.booleans()):
        b = draw(st.sampled_from([t for t in pool if t.kind == a.kind]))
        return compare(draw(st.sampled_from(_OPS)), a, b)
    if a.kind == "binary":
        head = draw(st.sampled_from(["00", "61", "FF", "6162"]))
        return Condition(f"starts_with({a.sql}, X'{head}')", f"starts_with(hex({a.oracle}), '{head}')")
    head = draw(st.sampled_from(["", "a", "ä", "a'", "long text "])).replace("'", "''")
    sql = draw(st.sampled_from([f"starts_with({a.sql}, '{head}')", f"{a.sql} LIKE '{head}%'"]))
    return Condition(sql, f"starts_with({a.oracle}, '{head}')")


@st.composite
def _lists(draw: st.DrawFn, pool: Sequence[Term]) -> Condition:
    """IN, IS DISTINCT FROM, and comparisons of CASE, least, greatest and coalesce."""
    a = draw(st.sampled_from(pool))
    same = [t for t in pool if t.kind == a.kind]
    some = st.one_of(st.sampled_from(same), literals(a.kind)) if a.kind not in ("float32", "float64", "wide") else (
        st.sampled_from(same))
    shape = draw(st.sampled_from(["in", "not in", "distinct", "wrapped", "wrapped"]))
    if shape == "wrapped":
        return compare(draw(st.sampled_from(_OPS)), draw(wrapped(a, some)), draw(some))
    b, c = draw(some), draw(some)
    if shape == "distinct":
        word = draw(st.sampled_from(["IS DISTINCT FROM", "IS NOT DISTINCT FROM"]))
        return Condition(f"{a.sql} {word} {b.sql}", f"({a.oracle} {word} {b.oracle})")
    word = "IN" if shape == "in" else "NOT IN"
    return Condition(f"{a.sql} {word} ({b.sql}, {c.sql})", f"({a.oracle} {word} ({b.oracle}, {c.oracle}))")


@st.composite
def wrapped(draw: st.DrawFn, a: Term, some: st.SearchStrategy[Term]) -> Term:
    """A value of the kind of ``a``, chosen among three by CASE, least, greatest, coalesce or nullif."""
    b, c = draw(some), draw(some)
    kind: Kind = a.kind
    shape = draw(st.sampled_from(["case", "least", "greatest", "coalesce", "nullif", "if"]))
    if shape == "case":
        when = compare(draw(st.sampled_from(_OPS)), b, a)
        return Term(kind, f"(CASE WHEN {when.sql} THEN {a.sql} WHEN {b.sql} IS NULL THEN {c.sql} END)",
                    f"(CASE WHEN {when.oracle} THEN {a.oracle} WHEN {b.oracle} IS NULL THEN {c.oracle} END)")
    if shape == "if":
        when = compare("<", a, c)
        return Term(kind, f"IF({when.sql}, {b.sql}, {c.sql})",
                    f"(CASE WHEN {when.oracle} THEN {b.oracle} ELSE {c.oracle} END)")
    args = [a, b] if shape == "nullif" else [a, b, c]
    made = Term(kind, f"{shape}({', '.join(t.sql for t in args)})", f"{shape}({', '.join(t.oracle for t in args)})")
    if kind == "exact" and draw(st.booleans()):
        return Term(kind, f"({made.sql} - {b.sql})", f"({made.oracle} - {b.oracle})")
    return made
