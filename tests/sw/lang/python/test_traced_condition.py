import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import splitjoin
from splitjoin import PredicateError, SchemaError
from splitjoin.lang.python.traced_condition import trace
from splitjoin.lang.query import predicate
from splitjoin.lang.sql.parser import parse_sql
from tests.sw.lang.sql.test_parser import R, S

UTC = dt.UTC


@pytest.mark.parametrize(("fn", "sql"), [
    (lambda r, s: abs(r.x - s.a) <= 10, "abs(r.x - s.a) <= 10"),
    (lambda r, s: (abs(r.x - s.a) <= 10) & (abs(r.y - s.b) <= 10.1), "abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10.1"),
    (lambda r, s: r["x"] == s["A b"], 'r.x = s."A b"'),
    (lambda r, s: r.X != s.a, "r.x <> s.a"),  # noqa: SIM300  # X is a column
    (lambda r, s: 5 < r.x, "5 < r.x"),  # noqa: SIM300  # the reflected operator
    (lambda r, s: 5 >= r.x, "r.x <= 5"),  # noqa: SIM300
    (lambda r, s: 2 * r.x + 3 - s.a > -1, "2 * r.x + 3 - s.a > -1"),
    (lambda r, s: 3 - (1 + r.x) < s.a * 2, "3 - (1 + r.x) < s.a * 2"),
    (lambda r, s: -r.x <= +s.a, "-r.x <= +s.a"),
    (lambda r, s: r.ok & s.fine | ~r.ok, "r.ok AND s.fine OR NOT r.ok"),
    (lambda r, s: r.ok & (s.fine & (r.x == 1)), "r.ok AND s.fine AND r.x = 1"),
    (lambda r, s: True & r.ok | np.False_, "TRUE AND r.ok OR FALSE"),
    (lambda r, s: r.x.is_null() | s.a.is_not_null(), "r.x IS NULL OR s.a IS NOT NULL"),
    (lambda r, s: (r.x - s.a).between(-1, 1), "r.x - s.a BETWEEN -1 AND 1"),
    (lambda r, s: ~r.x.between(s.a, 2), "r.x NOT BETWEEN s.a AND 2"),
    (lambda r, s: r.name == "it's", "r.name = 'it''s'"),
    (lambda r, s: "a" != s.word, "'a' <> s.word"),  # noqa: SIM300
    (lambda r, s: Fraction(1, 2) * r.x > Decimal("1.5"), "0.5 * r.x > 1.5"),
    (lambda r, s: Decimal("1e2") - r.x > 0.1, "1e2 - r.x > 0.1"),
    (lambda r, s: np.float64(3.5) <= r.y + np.float32(0.5), "3.5 <= r.y + 0.5"),
    (lambda r, s: np.int8(1) - r.x >= np.int64(2**40), "1 - r.x >= 1099511627776"),
    (lambda r, s: np.abs(np.negative(r.x)) < 3, "abs(-r.x) < 3"),
    (lambda r, s: np.bitwise_and(r.ok, np.equal(2, r.x)), "r.ok AND r.x = 2"),
    (lambda r, s: r.t >= dt.datetime(2013, 1, 31, 12, 30), "r.t >= TIMESTAMP '2013-01-31 12:30:00'"),
    (lambda r, s: dt.datetime(2013, 1, 31, tzinfo=UTC) < r.z, "TIMESTAMPTZ '2013-01-31' < r.z"),
    (lambda r, s: r.t == np.datetime64("2013-01-01T00:00:00.000000001", "ns"),
     "r.t = TIMESTAMP '2013-01-01 00:00:00.000000001'"),
    (lambda r, s: r.t == pd.Timestamp("2013-01-01T00:00:00.000000001"),
     "r.t = TIMESTAMP '2013-01-01 00:00:00.000000001'"),
    (lambda r, s: r.t == np.datetime64("2013-01-01T00:00:01"), "r.t = '2013-01-01 00:00:01'"),
    (lambda r, s: dt.date(2013, 1, 31) <= r.day, "DATE '2013-01-31' <= r.day"),
    (lambda r, s: r.day == np.datetime64("2013-01-31"), "r.day = DATE '2013-01-31'"),
    (lambda r, s: r.day - s.date <= 3, "r.day - s.date <= 3"),
    (lambda r, s: r.t - s.t <= dt.timedelta(minutes=15), "r.t - s.t <= INTERVAL '15' MINUTE"),
    (lambda r, s: dt.timedelta(hours=1) + r.t > s.t, "r.t + INTERVAL 1 HOUR > s.t"),
    (lambda r, s: r.t - s.t <= np.timedelta64(7, "ns"), "r.t - s.t <= INTERVAL 7 NANOSECONDS"),
    (lambda r, s: r.t - s.t <= pd.Timedelta(1501, "ns"), "r.t - s.t <= INTERVAL 1501 NANOSECONDS"),
    (lambda r, s: r.t - s.t <= np.timedelta64(2, "W"), "r.t - s.t <= INTERVAL 2 WEEKS"),
])
def test_python_and_sql_give_equal_ir(fn: Callable[[Any, Any], Any], sql: str) -> None:
    assert trace(fn, R, S) == parse_sql(sql, R, S)
    assert predicate(fn, R, S) == predicate(sql, R, S)


def test_any_callable_of_two_parameters_will_do() -> None:
    class Band:
        def __init__(self, width: int):
            self.width = width

        def __call__(self, left: Any, right: Any, extra: int = 0) -> Any:
            return abs(left.x - right.a) <= self.width + extra

    assert trace(Band(3), R, S) == parse_sql("abs(r.x - s.a) <= 3", R, S)


@pytest.mark.parametrize(("fn", "part"), [
    (lambda r, s: r.x ** 2 > 1, "r.x ** 2"),
    (lambda r, s: 2 ** r.x > 1, "2 ** r.x"),
    (lambda r, s: pow(r.x, 2, 3) > 1, "r.x ** 2"),
    (lambda r, s: r.x @ s.a, "r.x @ s.a"),
    (lambda r, s: divmod(r.x, 2), "divmod(r.x)"),
    (lambda r, s: math.trunc(r.y) == 1, "trunc(r.y)"),
    (lambda r, s: math.sqrt(r.x - s.a) == 1, "float(r.x - s.a)"),
    (lambda r, s: int(r.y) == 1, "int(r.y)"),
    (lambda r, s: complex(r.y) == 1, "complex(r.y)"),
    (lambda r, s: [1, 2][r.x] == 1, "index(r.x)"),
    (lambda r, s: len(r.name) == 1, "len(r.name)"),
    (lambda r, s: list(r.name) == ["a"], "iter(r.name)"),
    (lambda r, s: {1: 2}[r.x] == 2, "hash(r.x)"),
    (lambda r, s: "a" in r.name, "in(r.name)"),
    (lambda r, s: r.name[0] == "a", "index(r.name)"),
    (lambda r, s: f"{r.name}" == s.word, "format(r.name)"),  # else it would be the text "r.name"
    (lambda r, s: str(r.name) == s.word, "str(r.name)"),
    (lambda r, s: bytes(r.name) == s.word, "bytes(r.name)"),
    (lambda r, s: r.x() == 1, "call(r.x)"),
    (lambda r, s: r.name.lower() == "a", "r.name.lower"),
    (lambda r, s: (r.x + 1).bit_length() == 1, "(r.x + 1).bit_length"),
    (lambda r, s: np.sqrt(r.y) > 1, "sqrt(r.y)"),
    (lambda r, s: np.add(r.y, 1, out=None, dtype=float) > 1, "add(r.y, 1)"),
])
def test_unsupported_parts_are_quoted(fn: Callable[[Any, Any], Any], part: str) -> None:
    with pytest.raises(PredicateError) as caught:
        trace(fn, R, S)
    assert str(caught.value).startswith(f"{part!r} is not supported in a condition; it may hold columns,")


@pytest.mark.parametrize(("fn", "part"), [
    (lambda r, s: r.x > 1 and s.a > 1, "r.x > 1"),
    (lambda r, s: r.x > 1 or s.a > 1, "r.x > 1"),
    (lambda r, s: not r.ok, "r.ok"),
    (lambda r, s: 1 < r.x < 5, "r.x > 1"),
    (lambda r, s: 1 if r.x == s.a else 2, "r.x == s.a"),
    (lambda r, s: max(r.x, s.a) > 1, "s.a > r.x"),
    (lambda r, s: r.x in (1, 2), "r.x == 1"),
])
def test_truth_values_are_refused_with_what_to_write_instead(fn: Callable[[Any, Any], Any], part: str) -> None:
    with pytest.raises(PredicateError, match=r"write & \| ~ instead of and, or, not, each comparison in parentheses; "
                                             r"two comparisons instead of a chain") as caught:
        trace(fn, R, S)
    assert str(caught.value).startswith(f"{part!r} has no truth value")


@pytest.mark.parametrize(("fn", "message"), [
    (lambda r, s: r.x < 5 & s.t, r"'5 & s.t': & \| ~ need conditions, but 5 has type exact number; put each "),
    (lambda r, s: round(r.y) == 1, r"'round\(r.y\)': Python's round\(\) takes halves .*; write r.y.round\(\), "),
    (lambda r, s: round(r.y + 1, 2) == 1, r"'round\(r.y \+ 1, 2\)': .*; write \(r.y \+ 1\).round\(2\), which"),
    (lambda r, s: ~r.y, r"'~r.y': & \| ~ need conditions, but r.y has type float32"),
    (lambda r, s: (r.x == 1) ^ (s.a == 1), r"'\(r.x == 1\) \^ \(s.a == 1\)': '\^' needs integer columns"),
    (lambda r, s: r.y & 1 == 1, r"'r.y & 1': & \| ~ need conditions, but r.y has type float32"),
    (lambda r, s: r.x << s.a > 1, r"'r.x << s.a': the number of places to shift by must be a whole number from 0 to"),
    (lambda r, s: r.x << 64 > 1, "must be a whole number from 0 to 63, not 64"),
    (lambda r, s: r.y // 2 > 1, "'r.y // 2': '//' needs exact numbers, not float32 and exact number"),
    (lambda r, s: r.x // 1.5 > 1, r"'r.x // 1.5': '//' needs whole numbers, not decimals; write '/' for a float"),
    (lambda r, s: r.x.isin([]), r"'r.x.isin\(\[\]\)': IN needs at least one value"),
    (lambda r, s: r.x.isin(5), r"'r.x.isin\(5\)': values must be a list of values, not int"),
    (lambda r, s: r.x.starts_with("a"), "can be compared with the beginning of a constant of its kind only, not int32"),
    (lambda r, s: r.name.bit_count() > 1, r"'bit_count' needs integer columns, bit operations on them, .* not string"),
    (lambda r, s: splitjoin.least(r.x) > 1, r"'splitjoin.least\(r.x\)': least\(\) needs two values or more"),
    (lambda r, s: splitjoin.greatest(r.x, "a") > 1, "splitjoin.greatest.*: string and int32 cannot be compared"),
    (lambda r, s: splitjoin.least(1, 2) > r.x, "one value at least must be a column, or be computed from columns"),
    (lambda r, s: splitjoin.where(r.x, 1, 2) > s.a, "a condition .* is needed here, but this is int32"),
    (lambda r, s: r.x == None, "'r.x == None': None compares with nothing, as NULL in SQL; write .is_null()"),  # noqa: E711
    (lambda r, s: r.t < np.datetime64("NaT", "ns"), "None compares with nothing"),
    (lambda r, s: r.x + {} > 2, r"'r.x \+ {}': a literal must be a number, .* not dict"),
    (lambda r, s: np.array([1, 2]) < r.x, "a literal must be .* not ndarray"),
    (lambda r, s: r.y < math.nan, "'r.y < nan': a numeric literal must be finite, not nan"),
    (lambda r, s: r.y < math.inf, "a numeric literal must be finite, not inf"),
    (lambda r, s: r.y < Decimal("NaN"), "a numeric literal must be finite, not NaN"),
    (lambda r, s: r.t - s.t < np.timedelta64(1, "Y"), "a time literal must be in weeks, .* not np.timedelta64"),
    (lambda r, s: r.name < 1, "'r.name < 1': string and exact number cannot be compared"),
    (lambda r, s: r.x, "'r.x': a condition .* is needed here, but this is int32"),
    (lambda r, s: None, "the condition lambda must return a comparison of columns, not None; is its return missing?"),
    (lambda r, s: r.x is None, "not False; Python computed that without looking at a tuple, .*write .is_null()"),
    (lambda r, s: True, "not True; .* a constant condition can be given as SQL, 'TRUE'"),
    (lambda r, s: [r.x > 1], r"must return a comparison of columns, not \[r.x > 1\]"),
    (lambda r, s: r == s, "'r' is a whole tuple; a condition uses its columns, such as r.x"),
    (lambda r, s: r.x == s, "'s' is a whole tuple; a condition uses its columns, such as s.a"),
    (lambda r, s: r and s, "'r' is a whole tuple"),
    (lambda r, s: 1 + r > 2, "'r' is a whole tuple"),
    (lambda r, s: list(r), "'r' is a whole tuple"),
    (lambda r, s: r[0] == 1, r"'r\[0\]': a column is chosen by its name, not by 0"),
    (lambda r: r.x > 1, r"must be a function of two parameters \(r, s\), not lambda\(r\)"),
    (lambda r, s, q: r.x > 1, r"must be a function of two parameters \(r, s\), not lambda\(r, s, q\)"),
    (lambda r, s: r.x < Decimal("1E+999999999"), "must not have more than 1000 digits"),
    (lambda r, s: r.x < Decimal("1E-999999999"), "must not have more than 1000 digits"),
    (lambda r, s: r.x < 10**5000, "must not have more than 1000 digits"),
    (lambda r, s: r.x + 10**5000 < s.a, "must not have more than 1000 digits"),
    (lambda r, s: r.x < Fraction(1, 10**5000), "must not have more than 1000 digits"),
    (lambda r, s: sum([r.x] * 500) > 1, "must not be nested more than 100 levels deep"),
])
def test_errors(fn: Callable[..., Any], message: str) -> None:
    with pytest.raises(PredicateError, match=message) as caught:
        predicate(fn, R, S)
    message, *place = str(caught.value).split("\n")
    # What is wrong with the function as a whole has no place within it.
    assert not place or (place[0].endswith(", in <lambda>") and f"{Path(__file__).name}, line" in place[0]
                         and "^" in place[2])


def test_an_exception_of_the_function_is_the_cause() -> None:
    def band(r: Any, s: Any) -> Any:
        return abs(r.x - s.a) <= {}["width"]

    with pytest.raises(PredicateError, match=r"the condition band must not raise when it is called with r and s, but "
                                             r"it raised KeyError: 'width'") as caught:
        trace(band, R, S)
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize(("fn", "message"), [
    (lambda r, s: r.nope == 1, "stream r has no column 'nope'; its columns are x"),
    (lambda r, s: s["nope"] == 1, "stream s has no column 'nope'"),
    (lambda r, s: r.list == 1, "column r.list has type list<item: int8>, which a join condition cannot use"),
])
def test_column_errors(fn: Callable[[Any, Any], Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        trace(fn, R, S)


def test_what_is_not_a_condition_at_all() -> None:
    with pytest.raises(PredicateError, match=r"on must be an SQL text, a function .* or a Spark Column, not int"):
        predicate(5, R, S)  # type: ignore[arg-type]  # wrong on purpose


def test_columns_may_have_the_names_of_methods() -> None:
    r = pa.schema([("between", pa.int8()), ("is_null", pa.int8())])
    schema = type(R).from_arrow("r", r)
    assert trace(lambda r, s: r.between == r.is_null, schema, S) == parse_sql('r."between" = r.is_null', schema, S)


def test_errors_point_at_the_expression() -> None:
    def near(r: Any, s: Any) -> Any:
        return ((abs(r.x - s.a) <= 10)
                & (r.name < s.a))

    with pytest.raises(PredicateError) as caught:
        trace(near, R, S)
    said, place, line, mark = str(caught.value).split("\n")
    assert said.startswith("'r.name < s.a': string and int32 cannot be compared; convert the text")
    assert place.endswith(f"{Path(__file__).name}, line {near.__code__.co_firstlineno + 2}, in near")
    assert line[mark.index("^"):mark.rindex("^") + 1] == "r.name < s.a"


def test_a_helper_of_the_users_is_the_place() -> None:
    def width(row: Any) -> Any:
        return row.nope

    with pytest.raises(SchemaError, match=r"in width\n +return row.nope\n +\^{8}$"):
        trace(lambda r, s: width(r) < s.a, R, S)


LIMIT = 5


@pytest.mark.parametrize(("fn", "sql"), [
    (lambda r, s: abs(r.x - s.a) <= LIMIT, "abs(r.x - s.a) <= 5"),
    (lambda r, s: splitjoin.least(r.x, s.a) < 3, "least(r.x, s.a) < 3"),
    (lambda r, s: splitjoin.greatest(r.x, s.a, 7) < 3, "greatest(r.x, s.a, 7) < 3"),
    (lambda r, s: splitjoin.where(r.x > s.a, r.x, 0) < 3, "CASE WHEN r.x > s.a THEN r.x ELSE 0 END < 3"),
    (lambda r, s: splitjoin.coalesce(r.x, s.a) == 3, "coalesce(r.x, s.a) = 3"),
    (lambda r, s: r.x.isin([1, s.a]), "r.x IN (1, s.a)"),
    (lambda r, s: r.name.starts_with("a"), "starts_with(r.name, 'a')"),
    (lambda r, s: (r.x ^ s.a).bit_count() <= 3, "bit_count(r.x ^ s.a) <= 3"),
    (lambda r, s: (r.x & 7) == (s.a | 1), "(r.x & 7) = (s.a | 1)"),
    (lambda r, s: ~r.x == s.a >> 2, "~r.x = s.a >> 2"),
    (lambda r, s: r.x << 3 > s.a, "r.x << 3 > s.a"),
    (lambda r, s: r.x / s.a > 0.5, "r.x / s.a > 0.5"),
    (lambda r, s: r.x * s.a > 5, "r.x * s.a > 5"),
    (lambda r, s: r.name <= "b", "r.name <= 'b'"),
])
def test_the_same_in_python_and_in_sql(fn: Callable[[Any, Any], Any], sql: str) -> None:
    assert trace(fn, R, S) == parse_sql(sql, R, S)


def test_whole_quotients_round_as_the_language_does() -> None:
    assert str(trace(lambda r, s: r.x // 2 == r.x % 3, R, S)) == "((r.x // 2) = (r.x % 3))"
    assert str(parse_sql("r.x DIV 2 = MOD(r.x, 3)", R, S)) == "((r.x div 2) = (r.x mod 3))"


@pytest.mark.parametrize("step", [lambda x: x + x, lambda x: splitjoin.where(x > 3, x - 1, x), lambda x: x / 2 + x])
def test_steps_that_double_are_refused_within_bounds(step: Callable[[Any], Any]) -> None:
    """Neither their texts nor what they compute is written out."""
    def condition(r: Any, s: Any) -> Any:
        x = r.x
        for _ in range(40):
            x = step(x)
        return x == s.x

    schema = pa.schema([("x", pa.int32())])
    with pytest.raises(PredicateError, match=r"must not have more than 100,000 operations"):
        splitjoin.query(schema, schema, on=condition, window="ROWS 9")
