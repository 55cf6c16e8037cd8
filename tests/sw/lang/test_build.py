import datetime as dt
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from splitjoin import PredicateError
from splitjoin.lang.build import (
    abs_,
    and_,
    arith,
    between,
    column,
    compare,
    condition,
    is_null,
    literal,
    neg,
    not_,
    or_,
)
from splitjoin.lang.ir import (
    MAX_DEPTH,
    Abs,
    And,
    Arith,
    Cast,
    Cmp,
    Expr,
    IsNull,
    Lit,
    Neg,
    Not,
    check_depth,
    columns,
    sides,
    text,
    walk,
)
from splitjoin.lang.schema import Schema
from splitjoin.lang.types import BOOL, DATE, EXACT, FLOAT32, FLOAT64, STRING, Duration, Timestamp, Type

R = Schema.from_arrow("r", pa.schema([
    ("i8", pa.int8()), ("i64", pa.int64()), ("f32", pa.float32()), ("f64", pa.float64()), ("b", pa.bool_()),
    ("d", pa.date32()), ("s", pa.timestamp("s")), ("ns", pa.timestamp("ns")), ("z", pa.timestamp("ms", "UTC")),
    ("t", pa.string()),
]))
S = Schema.from_arrow("s", pa.schema([
    ("a8", pa.int8()), ("a32", pa.float32()), ("az", pa.timestamp("us", "Asia/Tokyo")),
]))
r = {name: column(R, name) for name in R.names}
s = {name: column(S, name) for name in S.names}


def num(value: object) -> Lit:
    return literal(value, "here")


HOUR = num(dt.timedelta(hours=1))
DAY = num(dt.date(1970, 1, 2))


@pytest.mark.parametrize(("a", "b", "type_"), [
    (r["i8"], r["i64"], EXACT), (r["i8"], num(1), EXACT), (num(1.5), r["i8"], EXACT),
    (r["f32"], s["a32"], FLOAT32), (r["f32"], r["f64"], FLOAT64), (r["f32"], num(0.1), FLOAT32),
    (num(2), r["f32"], FLOAT32),
    (r["f64"], num(0.1), FLOAT64), (r["f32"], r["i8"], FLOAT64), (r["i64"], r["f64"], FLOAT64),
    (r["f32"], num(None), FLOAT32),
    (r["s"], HOUR, Timestamp("s")), (HOUR, r["ns"], Timestamp("ns")), (r["z"], HOUR, Timestamp("ms", "UTC")),
    (r["s"], num(dt.timedelta(microseconds=1)), Timestamp("us")),
    (HOUR, num(dt.timedelta(milliseconds=1)), Duration("ms")),
    (r["d"], num(3), DATE), (num(3), r["d"], DATE), (r["d"], r["i8"], DATE),
])
def test_types_of_sums(a: Expr, b: Expr, type_: Type) -> None:
    assert arith("+", a, b, "here").type == type_


@pytest.mark.parametrize(("a", "b", "type_"), [
    (r["s"], r["ns"], Duration("ns")), (r["s"], r["s"], Duration("s")), (r["z"], s["az"], Duration("us")),
    (r["s"], HOUR, Timestamp("s")), (r["d"], r["d"], EXACT), (r["d"], num(1), DATE), (r["i8"], s["a8"], EXACT),
])
def test_types_of_differences(a: Expr, b: Expr, type_: Type) -> None:
    assert arith("-", a, b, "here").type == type_


@pytest.mark.parametrize(("op", "a", "b", "message"), [
    ("+", r["t"], r["t"], "'here': '\\+' needs numbers, or times that can be combined, not string and string"),
    ("+", r["b"], num(1), "not bool and exact number"),
    ("+", r["s"], r["s"], r"not timestamp\[s\] and timestamp\[s\]"),
    ("-", HOUR, r["s"], r"not duration\[us\] and timestamp\[s\]"),
    ("*", HOUR, num(1.5), r"not duration\[us\] and exact number"),
    ("+", r["d"], num(1.5), "not date and exact number"),
    ("-", num(1), r["d"], "not exact number and date"),
    ("+", r["d"], HOUR, "whole days are added to a date as a number"),
    ("+", r["d"], r["f64"], "not date and float64"),
    ("-", r["z"], r["s"], "'here': a timestamp with a time zone cannot be combined with one without"),
])
def test_sums_that_are_refused(op: str, a: Expr, b: Expr, message: str) -> None:
    with pytest.raises(PredicateError, match=message):
        arith(op, a, b, "here")  # type: ignore[arg-type]  # an ArithOp


def test_products_are_exact() -> None:
    assert arith("*", r["i8"], r["i64"], "").type == EXACT
    assert arith("*", arith("+", r["i8"], s["a8"], ""), s["a8"], "").type == EXACT


@pytest.mark.parametrize(("a", "b", "type_"), [
    (r["i8"], num(1.5), None), (r["f32"], s["a32"], FLOAT32), (r["f32"], num(10.1), FLOAT64),
    (r["f64"], s["a32"], FLOAT64),
    (r["f32"], r["i8"], FLOAT64), (r["i64"], r["f64"], FLOAT64), (r["s"], r["ns"], Timestamp("ns")),
    (r["d"], DAY, DATE),
    (r["b"], num(True), BOOL), (r["t"], num("a"), STRING),
])
def test_both_sides_of_a_comparison_have_one_type(a: Expr, b: Expr, type_: Type | None) -> None:
    made = compare("=", a, b, "here")
    assert isinstance(made, Cmp)
    if type_ is None:
        assert (made.a, made.b) == (a, b)
    else:
        assert made.a.type == made.b.type == type_


@pytest.mark.parametrize(("op", "flipped"), [("<", ">"), ("<=", ">="), (">", "<"), (">=", "<="), ("=", "="),
("<>", "<>")])
def test_a_literal_stands_on_the_right(op: str, flipped: str) -> None:
    assert compare(op, num(5), r["i8"], "") == compare(flipped, r["i8"], num(5), "")  # type: ignore[arg-type]  # CmpOps
    assert text(compare(op, num(5), num(6), "")) == f"(5 {op} 6)"  # type: ignore[arg-type]  # a CmpOp


@pytest.mark.parametrize(("op", "a", "b", "message"), [
    ("=", r["t"], r["i8"], "'here': string and int8 cannot be compared"),
    ("=", r["b"], num(1), "bool and exact number cannot be compared; a truth value is a condition itself, or a"),
    ("<", r["d"], r["z"], r"a date begins at another moment in each time zone, so it cannot be compared"),
    ("<", r["t"], num(b"a"), "string and binary cannot be compared"),
    ("=", r["z"], r["s"], "a timestamp with a time zone cannot be combined with one without"),
    ("<", r["d"], num("tomorrow"), "'tomorrow' cannot be read as a date; write it as ISO 8601, such as '2013-01-31'$"),
    ("<", r["ns"], num("noon"), r"'noon' cannot be read as a timestamp\[ns\]; write .* '2013-01-31 12:30:00'"),
    ("<", r["i8"], HOUR, r"int8 and duration\[us\] cannot be compared"),
    ("<", r["f64"], num(Fraction(10) ** 400), "a literal must fit the float64 it is combined with"),
])
def test_comparisons_that_are_refused(op: str, a: Expr, b: Expr, message: str) -> None:
    with pytest.raises(PredicateError, match=message):
        compare(op, a, b, "here")  # type: ignore[arg-type]  # a CmpOp


def test_null_takes_the_type_of_the_other_side() -> None:
    assert compare("<", num(None), r["f32"], "") == Cmp(BOOL, ">", r["f32"], Lit(FLOAT32, None))
    assert compare("=", r["i8"], num(None), "") == Cmp(BOOL, "=", r["i8"], Lit(EXACT, None))
    assert compare("=", num(None), num(None), "") == Cmp(BOOL, "=", Lit(EXACT, None), Lit(EXACT, None))


def test_conditions() -> None:
    a, b, c = r["b"], compare("=", r["i8"], num(1), ""), is_null(r["t"], "")
    assert and_([and_([a, b], ""), c], "") == And(BOOL, (a, b, c))
    assert or_([a, or_([b, c], "")], "").children == (a, b, c)
    assert not_(a, "") == Not(BOOL, a)
    assert isinstance(c, IsNull)
    assert condition(num(None), "") == Lit(BOOL, None)
    assert between(r["i8"], num(1), num(2), "") == and_([compare(">=", r["i8"], num(1), ""),
                                                         compare("<=", r["i8"], num(2), "")], "")


@pytest.mark.parametrize("make", [lambda e: not_(e, "here"), lambda e: and_([r["b"], e], "here"),
                                  lambda e: or_([e, r["b"]], "here"), lambda e: condition(e, "here")])
def test_what_is_not_a_condition(make: Callable[[Expr], Expr]) -> None:
    with pytest.raises(PredicateError, match=r"'here': a condition \(true or false\) is needed here, but this is int8"):
        make(r["i8"])


def test_negation_and_absolute_value() -> None:
    assert neg(num(3), "") == num(-3)
    assert neg(HOUR, "") == Lit(Duration("us"), -3600 * 10**6)
    assert abs_(num(-3), "") == num(3)
    assert neg(r["i8"], "") == Neg(EXACT, r["i8"])
    assert abs_(r["f32"], "") == Abs(FLOAT32, r["f32"])
    with pytest.raises(PredicateError, match="'here': '-' needs a number, not string"):
        neg(r["t"], "here")
    with pytest.raises(PredicateError, match=r"'here': abs\(\) needs a number, not timestamp\[s\]"):
        abs_(r["s"], "here")


@pytest.mark.parametrize(("op", "a", "b", "folded"), [
    ("+", num(1), num(2), num(3)), ("-", num(0.3), num(0.1), num(0.2)), ("*", num(0.5), num(4), num(2)),
    ("+", num(1), num(None), Lit(EXACT, None)), ("+", HOUR, HOUR, Lit(Duration("s"), 7200)),
    ("-", DAY, DAY, num(0)), ("+", DAY, num(2), Lit(DATE, 3)),
    ("+", num(dt.datetime(1970, 1, 1)), HOUR, Lit(Timestamp("s"), 3600)),
])
def test_arithmetic_on_literals_gives_a_literal(op: str, a: Lit, b: Lit, folded: Lit) -> None:
    assert arith(op, a, b, "") == folded  # type: ignore[arg-type]  # an ArithOp


def test_a_literal_does_not_make_a_unit_finer_for_nothing() -> None:
    assert arith("+", r["s"], HOUR, "") == Arith(Timestamp("s"), "+", r["s"], Lit(Duration("s"), 3600))
    whole = compare("<", r["s"], num(dt.datetime(1970, 1, 1, 0, 0, 1)), "")
    assert whole == Cmp(BOOL, "<", r["s"], Lit(Timestamp("s"), 1))
    half = compare("<", r["s"], num(dt.datetime(1970, 1, 1, 0, 0, 0, 500000)), "")
    assert half == Cmp(BOOL, "<", Cast(Timestamp("ms"), r["s"]), Lit(Timestamp("ms"), 500))


@given(st.fractions(max_denominator=10**12) | st.integers(-(2**80), 2**80).map(Fraction))
def test_literals_are_rounded_once_to_float32(value: Fraction) -> None:
    sum_ = arith("+", r["f32"], num(value), "")
    assert isinstance(sum_, Arith)
    assert isinstance(sum_.b, Lit)
    got = np.float32(sum_.b.value)
    error = abs(Fraction(float(got)) - value)
    for other in (np.nextafter(got, np.float32(-np.inf)), np.nextafter(got, np.float32(np.inf))):
        distance = abs(Fraction(float(other)) - value)
        assert error < distance or (error == distance and got.view(np.uint32) % 2 == 0)


@pytest.mark.parametrize("text", ["3.4028234663852886e38", "-3.4028234663852886e38", "3.4028235e38"])
def test_the_largest_float32_can_be_written(text: str) -> None:
    sum_ = arith("+", r["f32"], num(Fraction(text)), "")
    assert isinstance(sum_, Arith)
    assert sum_.b == Lit(FLOAT32, math.copysign(float(np.finfo(np.float32).max), float(text)))


def test_a_literal_that_rounding_twice_would_get_wrong() -> None:
    # 2⁻⁶⁰ above the middle of two float32s: float64 rounds it to the middle, which then goes to the even one below.
    value = 1 + Fraction(1, 2**24) + Fraction(1, 2**60)
    sum_ = arith("+", r["f32"], num(value), "")
    assert isinstance(sum_, Arith)
    assert sum_.b == Lit(FLOAT32, 1 + 2**-23)


@pytest.mark.parametrize(("value", "lit"), [
    (None, Lit(EXACT, None)), (True, Lit(BOOL, True)), (np.bool_(False), Lit(BOOL, False)), (3, Lit(EXACT, 3)),
    (np.int16(-3), Lit(EXACT, -3)), (10.1, Lit(EXACT, Fraction(101, 10))),
    (np.float64(0.5), Lit(EXACT, Fraction(1, 2))),
    (1e300, Lit(EXACT, 10**300)), (Fraction(4, 2), Lit(EXACT, 2)), ("a", Lit(STRING, "a")),
    (np.str_("a"), Lit(STRING, "a")),
    (dt.date(1969, 12, 31), Lit(DATE, -1)), (dt.datetime(1970, 1, 1, 0, 0, 1), Lit(Timestamp("us"), 10**6)),
    (dt.datetime(1970, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))), Lit(Timestamp("us", "UTC"), 0)),
    (dt.timedelta(microseconds=-1), Lit(Duration("us"), -1)), (np.datetime64("1970-01-02"), Lit(DATE, 1)),
    (np.datetime64(1001, "ns"), Lit(Timestamp("ns"), 1001)), (np.datetime64(-1, "ns"), Lit(Timestamp("ns"), -1)),
    (np.datetime64(2000, "ns"), Lit(Timestamp("us"), 2)), (np.timedelta64(1500, "ns"), Lit(Duration("ns"), 1500)),
])
def test_literals(value: object, lit: Lit) -> None:
    assert literal(value, "") == lit
    assert type(literal(value, "").value) is type(lit.value)


@pytest.mark.parametrize(("value", "message"), [
    (float("nan"), "'here': a numeric literal must be finite, not nan"),
    (float("-inf"), "a numeric literal must be finite, not -inf"),
    ([1], "'here': a literal must be a number, bool, string, bytes, date, datetime, time without a zone, "
          "timedelta or None, not list"),
    (np.datetime64(1, "ps"), "a time literal must be in weeks, days, hours"),
    (np.timedelta64(1, "M"), "a time literal must be in weeks, days, hours"),
    (np.timedelta64(1), "a time literal must be in weeks, days, hours"),
])
def test_wrong_literals(value: object, message: str) -> None:
    with pytest.raises(PredicateError, match=message):
        literal(value, "here")


def test_walking_and_text() -> None:
    band = compare("<=", abs_(arith("-", r["f32"], s["a32"], ""), ""), num(1), "")
    e = or_([band, not_(is_null(r["t"], ""), "")], "")
    assert text(e) == str(e) == "((cast(abs((r.f32 - s.a32)) as float64) <= float64:1.0) OR (NOT (r.t IS NULL)))"
    assert [c.name for c in columns(e)] == ["f32", "a32", "t"]
    assert sides(e) == {"r", "s"}
    assert sides(is_null(r["t"], "")) == {"r"}
    assert next(walk(e)) is e
    assert sum(1 for _ in walk(e)) == 11
    with pytest.raises(TypeError, match="not an IR node"):
        text(Expr(BOOL))


@pytest.mark.parametrize(("literal_", "form"), [
    (num(None), "NULL"), (num("it's"), "'it''s'"), (num(True), "TRUE"), (DAY, "date:1"),
    (HOUR, "duration[us]:3600000000"),
    (num(0.5), "1/2"), (num(7), "7"),
])
def test_text_of_literals(literal_: Lit, form: str) -> None:
    assert text(literal_) == form


def test_depth() -> None:
    e: Expr = r["i8"]
    for _ in range(MAX_DEPTH - 1):
        e = arith("+", e, num(1), "")
    check_depth(e)
    with pytest.raises(PredicateError, match="must not be nested more than 100 levels deep; a sum of n terms has"):
        check_depth(neg(e, ""))
