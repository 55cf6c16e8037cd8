import re
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from splitjoin import PredicateError, SchemaError
from splitjoin.lang.ir import Arith, Cast, Cmp, Lit, text
from splitjoin.lang.query import predicate
from splitjoin.lang.schema import Schema
from splitjoin.lang.sql.parser import SUPPORTED, parse_sql
from splitjoin.lang.types import DATE, EXACT, FLOAT32, FLOAT64, Duration, Timestamp
from tests.support.predicates import conditions

R = Schema.from_arrow("r", pa.schema([
    ("x", pa.int32()), ("y", pa.float32()), ("d", pa.float64()), ("t", pa.timestamp("ns")), ("day", pa.date32()),
    ("name", pa.string()), ("ok", pa.bool_()), ("id", pa.int64()), ("z", pa.timestamp("us", "UTC")),
    ("list", pa.list_(pa.int8())), ("Mixed", pa.int8()), ("mixed", pa.int8()),
]))
S = Schema.from_arrow("s", pa.schema([
    ("a", pa.int32()), ("b", pa.float32()), ("t", pa.timestamp("s")), ("date", pa.date32()), ("word", pa.string()),
    ("fine", pa.bool_()), ("id", pa.int64()), ("A b", pa.int8()), ("order", pa.int8()),
]))


def parse(sql: str) -> str:
    return text(parse_sql(sql, R, S))


@pytest.mark.parametrize(("sql", "expected"), [
    ("r.x = s.a", "(r.x = s.a)"),
    ("R.X=S.A", "(r.x = s.a)"),
    ("r.x == s.a", "(r.x = s.a)"),
    ("r.x != s.a", "(r.x <> s.a)"),
    ("r.x <> s.a;", "(r.x <> s.a)"),
    ("x < a", "(r.x < s.a)"),
    ('r."Mixed" >= s."A b"', "(r.Mixed >= s.A b)"),
    ("r.mixed >= s.`A b`", "(r.mixed >= s.A b)"),
    ("r.id > s.order", "(r.id > s.order)"),
    ("abs(r.x - s.a) <= 10", "(abs((r.x - s.a)) <= 10)"),
    ("ABS(-r.x) * 2 + 3 < 4 -- band", "(((abs((- r.x)) * 2) + 3) < 4)"),
    ("-r.x = - -1", "((- r.x) = 1)"),
    ("+r.x = +1", "(r.x = 1)"),
    ("r.x - (s.a - 1) = 0", "((r.x - (s.a - 1)) = 0)"),
    ("r.x BETWEEN s.a - 1 AND s.a + 1", "((r.x >= (s.a - 1)) AND (r.x <= (s.a + 1)))"),
    ("r.x NOT BETWEEN 1 AND 2", "(NOT ((r.x >= 1) AND (r.x <= 2)))"),
    ("5 BETWEEN r.x AND s.a", "((r.x <= 5) AND (s.a >= 5))"),
    ("r.ok", "r.ok"),
    ("NOT r.ok AND s.fine OR r.ok = TRUE", "(((NOT r.ok) AND s.fine) OR (r.ok = TRUE))"),
    ("r.ok AND (s.fine AND r.x = 1)", "(r.ok AND s.fine AND (r.x = 1))"),
    ("r.x IS NULL", "(r.x IS NULL)"),
    ("r.x IS NOT NULL", "(NOT (r.x IS NULL))"),
    ("r.x = s.a IS NULL", "((r.x = s.a) IS NULL)"),  # as in all databases
    ("r.ok IS TRUE", "(r.ok AND (NOT (r.ok IS NULL)))"),
    ("r.ok IS NOT FALSE", "(NOT ((NOT r.ok) AND (NOT (r.ok IS NULL))))"),
    ("r.ok = (r.x < 3)", "(r.ok = (r.x < 3))"),
    ("NULL", "NULL"),
    ("FALSE OR NULL", "(FALSE OR NULL)"),
    ("r.x = NULL", "(r.x = NULL)"),
    ("r.name = 'it''s'", "(r.name = 'it''s')"),
    ("r.day + 3 > s.date", "((r.day + 3) > s.date)"),
    ("3 + r.day > s.date", "((r.day + 3) > s.date)"),
    ("r.day - s.date <= 1", "((r.day - s.date) <= 1)"),
    ("r.x\n  = -- why\n 1", "(r.x = 1)"),
])
def test_text_form(sql: str, expected: str) -> None:
    assert parse(sql) == expected


@pytest.mark.parametrize(("sql", "value"), [
    ("10", 10), ("10.0", 10), ("10.1", Fraction(101, 10)), (".5", Fraction(1, 2)), ("12.", 12), ("1.5e3", 1500),
    ("25E-1", Fraction(5, 2)), ("-3", -3), ("9223372036854775808", 2**63), ("0.1 + 0.2", Fraction(3, 10)),
    ("2 * (3 - 10.5)", -15), ("abs(-7)", 7),
])
def test_numeric_literals_are_exact(sql: str, value: object) -> None:
    condition = parse_sql(f"r.x < {sql}", R, S)
    assert isinstance(condition, Cmp)
    assert condition.b == Lit(EXACT, value)
    assert type(condition.b.value) is type(value)


@pytest.mark.parametrize(("sql", "literal"), [
    ("DATE '1970-01-11'", Lit(DATE, 10)), ("DATE '1969-12-31'", Lit(DATE, -1)), ("'1970-01-11'", Lit(DATE, 10)),
])
def test_dates(sql: str, literal: Lit) -> None:
    condition = parse_sql(f"r.day < {sql}", R, S)
    assert isinstance(condition, Cmp)
    assert condition.b == literal


@pytest.mark.parametrize(("sql", "ns"), [
    ("TIMESTAMP '1970-01-01 00:01:00'", 60 * 10**9), ("'1970-01-01T00:01'", 60 * 10**9),
    ("TIMESTAMP '1970-01-01 00:00:00.5'", 5 * 10**8), ("TIMESTAMP '1970-01-01 00:00:00.123456789'", 123456789),
    ("TIMESTAMP '1969-12-31 23:59:59.999999999'", -1), ("TIMESTAMP '1970-01-02'", 86400 * 10**9),
])
def test_timestamps_are_exact_to_the_nanosecond(sql: str, ns: int) -> None:
    condition = parse_sql(f"r.t < {sql}", R, S)
    assert isinstance(condition, Cmp)
    assert condition.b == Lit(Timestamp("ns"), ns)


@pytest.mark.parametrize("sql", ["TIMESTAMPTZ '1970-01-01 01:00:00+01:00'", "'1970-01-01T00:00:00Z'", "'1970-01-01'",
                                 "TIMESTAMP '1970-01-01 00:00:00+00:00'", "TIMESTAMPTZ '1970-01-01'"])
def test_timestamps_with_a_zone_are_instants(sql: str) -> None:
    condition = parse_sql(f"r.z < {sql}", R, S)
    assert isinstance(condition, Cmp)
    assert condition.b == Lit(Timestamp("us", "UTC"), 0)


@pytest.mark.parametrize(("sql", "ns"), [
    ("INTERVAL '15' MINUTE", 15 * 60 * 10**9), ("INTERVAL 15 MINUTES", 15 * 60 * 10**9),
    ("INTERVAL '15 minutes'", 15 * 60 * 10**9), ("INTERVAL '1.5' HOUR", 5400 * 10**9), ("INTERVAL -2 DAYS",
                                                                                     -2 * 86400 * 10**9),
    ("- INTERVAL 1 WEEK", -7 * 86400 * 10**9), ("INTERVAL 7 NANOSECONDS", 7), ("INTERVAL '3' MILLISECOND", 3 * 10**6),
    ("INTERVAL 1 HOUR + INTERVAL 30 MINUTES", 5400 * 10**9),
])
def test_intervals(sql: str, ns: int) -> None:
    condition = parse_sql(f"r.t - s.t <= {sql}", R, S)
    assert isinstance(condition, Cmp)
    assert condition.b == Lit(Duration("ns"), ns)


def test_float32_takes_literals_in_its_own_type_in_arithmetic_and_as_float64_in_comparisons() -> None:
    condition = parse_sql("r.y + 0.1 <= 10.1", R, S)
    assert isinstance(condition, Cmp)
    assert condition.b == Lit(FLOAT64, 10.1)
    assert isinstance(condition.a, Cast)
    assert condition.a.type == FLOAT64
    sum_ = condition.a.a
    assert isinstance(sum_, Arith)
    assert sum_.type == FLOAT32
    assert sum_.b == Lit(FLOAT32, 0.10000000149011612)


@pytest.mark.parametrize(("sql", "part", "what"), [
    ("sin(r.x) > 1 AND r.x = 1", "sin(r.x)", "function SIN"),
    ("r.x = 1 OR  Foo( 1,  s.a) = 3", "Foo( 1, s.a)", "function FOO"),
    ("current_date = r.day", "CURRENT_DATE", "function CURRENT_DATE"),
    ("r.name || 'a' = 'b'", "r.name || 'a'", "concatenation"),
    ("r.name LIKE s.word", "r.name LIKE s.word", "LIKE with anything but"),
    ("r.name LIKE 'a!%' ESCAPE '!'", "r.name LIKE 'a!%' ESCAPE '!'", "LIKE with ESCAPE"),
    ("r.name ILIKE 'a%'", "r.name ILIKE 'a%'", "ILIKE"),
    ("bit_count(r.x, 1) = 1", "bit_count(r.x, 1)", "function BIT_COUNT"),
    ("CAST(r.x AS INTERVAL) = 1", "CAST(r.x AS INTERVAL)", "a cast to this type"),
    ("TRY_CAST(r.x AS INT) = 1", "TRY_CAST(r.x AS INT)", "TRY_CAST"),
    ("r.t < TIMESTAMP(3) '2013-01-01'", "CAST('2013-01-01' AS TIMESTAMP(3))", "a cast"),
    ("r.x > (SELECT 1)", "(SELECT 1)", "a subquery"),
    ("r.x > ANY(s.a)", "ANY(s.a)", "ANY"),
    ("abs(r.x) OVER () = 1", "abs(r.x) OVER ()", "a window function"),
    ("abs(DISTINCT r.x) = 1", "DISTINCT r.x", "DISTINCT"),
    ("r.x = ?", "?", "a parameter"),
    ("r.x = :v", ":v", "a parameter"),
    ("(r.x, 2) = (1, 2)", "(r.x, 2)", "a tuple"),
    ("r.x[1] = 2", "r.x[1]", "an element by index"),
    ("r.x.y.z = 1", "r.x.y.z", "a name of more than two parts"),
    ("r.* = 1", "*", "*"),
    ("r.x IS 5", "r.x IS 5", "IS with anything but"),
    ("r.x BETWEEN SYMMETRIC 1 AND 2", "r.x BETWEEN SYMMETRIC 1 AND 2", "BETWEEN SYMMETRIC"),
    ("r.t < TIMESTAMP '2013-01-01' AT TIME ZONE 'UTC'", "CAST('2013-01-01' AS TIMESTAMP) AT TIME ZONE 'UTC'",
     "AT TIME ZONE"),
])
def test_unsupported_parts_are_quoted(sql: str, part: str, what: str) -> None:
    with pytest.raises(PredicateError) as caught:
        parse(sql)
    message = str(caught.value).split("\n")[0]
    assert message.startswith(f"{part!r}: {what}")
    assert message.endswith(f"is not supported in a condition; it may hold {SUPPORTED}")


@pytest.mark.parametrize(("sql", "message"), [
    ("", "the condition is empty; write for example"),
    (" \n ", "the condition is empty"),
    ("-- nothing", "the condition is empty"),
    ("x = a; d = b", "one condition is needed, not the 2 in 'x = a; d = b'; combine them with AND or OR"),
    ("r.x <", "the condition 'r.x <' cannot be read at line 1, column 5, after 'r.x': something must follow '<'"),
    ("r.x ** 2 > 9", r"at line 1, column 8, after 'r.x \*\*': SQL has no operator \*\*; multiply, as in r.x \* r.x"),
    ("r.x = 5L", "at line 1, column 8, after 'r.x = 5': 'L' is not expected here"),
    ("r.x =\n 1 AND AND r.x", "at line 2, column 8, after ' 1 AND': something must follow 'AND'"),
    ("(r.x = 1", r"at line 1, column 8, after '\(r.x =': '\)' is expected after '1'"),
    ("r.x = 1)", r"at line 1, column 8, after 'r.x = 1': '\)' is not expected here"),
    ("r.x = 0x1F", "'r.x = 0x1F': int32 and binary cannot be compared"),
    ("abs(r.x, 2) = 1", "number of provided arguments"),
    ("SELECT 1", "'SELECT' is not expected here; write the condition alone, without SELECT"),
    ("ON r.x = 1", "write the condition alone, without ON"),
    ("drop table x", "write the condition alone, without DROP"),
    ("r.x = 'open", "cannot be read: the ' opened at line 1, column 7 is not closed"),
    ("r.x =\n'open", "cannot be read: the ' opened at line 2, column 1 is not closed"),
    ('r."x = 1', 'cannot be read: the " opened at line 1, column 3 is not closed'),
    ("r.x = 1 /* open", "cannot be read: a comment or a quoted text in it is not closed"),
    ("r.x = 1e", "'1e' cannot be read as a number"),
    ("r.x = " + " * ".join(["1e999"] * 6), "must not have more than 1000 digits"),
    ("(" * 300 + "r.ok" + ")" * 300, "must not be nested more than 100 levels deep"),
    ("r.x" + " + 1" * 4000 + " = 1", "must not be nested more than 100 levels deep"),
    ("r.x = 1e1001", "'1e1001': a number must not have more than 1000 digits"),
    ("r.x = 1e99999999", "'1e99999999': a number must not have more than 1000 digits"),
    ("r.x = " + "9" * 1001, "a number must not have more than 1000 digits"),
    ("r.y + 1e39 > 1", r"'r.y \+ 1e39': a literal must fit the float32 it is combined with"),
    ("r.d < 1e400", "'r.d < 1e400': a literal must fit the float64 it is combined with"),
    ("r.t - s.t < INTERVAL 1 MONTH", "the unit of an INTERVAL must be one of NANOSECONDS, .* not MONTH"),
    ("r.t - s.t < INTERVAL 1 MINUTS", r"not MINUTS \(did you mean 'MINUTE'\?\)"),
    ("r.t - s.t < INTERVAL '1 day x'", "an INTERVAL must be a constant number and a unit, such as"),
    ("r.t - s.t < INTERVAL '1 day 2'", "an INTERVAL must be a constant number and a unit, such as"),
    ("r.t - s.t < INTERVAL r.x MINUTE", "'INTERVAL r.x MINUTE': an INTERVAL must be a constant number and a unit"),
    ("r.t - s.t < INTERVAL '0.5' NANOSECOND", "an INTERVAL must be a whole number of nanoseconds"),
    ("r.day < DATE '2013-13-01'", "\"DATE '2013-13-01'\": '2013-13-01' cannot be read as a date; write it as ISO 8601"),
    ("r.t < TIMESTAMP 'noon'", "'noon' cannot be read as a timestamp"),
    ("r.t < TIMESTAMP '2013-01-01 00:00:00.1234567890'", "cannot be read as a timestamp"),
    ("r.z < TIMESTAMP '2013-01-01'", "a timestamp with a time zone cannot be combined with one without"),
    ("r.x", "'r.x': a condition .* is needed here, but this is int32"),
    ("r.x AND r.ok", "'r.x': a condition"),
    ("r.x IS TRUE", "'r.x IS TRUE': a condition"),
    ("r.x < s.a < 3", "'r.x < s.a < 3': bool and exact number cannot be compared"),
])
def test_errors(sql: str, message: str) -> None:
    with pytest.raises(PredicateError, match=message) as caught:
        parse(sql)
    _, *place = str(caught.value).split("\n")
    assert not place or set(place[1]) == {" ", "^"}  # what cannot be parsed at all says where by itself
    assert "\x1b" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(("sql", "marked"), [
    ("abs(r.x - s.a) <= 10 AND r.name < 3 OR r.ok", "r.name < 3"),
    ("r.x = 1 AND\n   sin(r.x) < s.a", "sin(r.x)"),
    ("r.x = 1 AND r.nope = 2", "r.nope"),
    ("CASE WHEN r.x THEN 1 ELSE 2 END = 1", "CASE WHEN r.x THEN 1 ELSE 2 END"),
    ("r.name IN ('a', 2)", "r.name IN ('a', 2)"),
    ("r.x = 1 AND -r.name < 3", "-r.name"), ("r.x = 1 OR NOT r.name", "NOT r.name"), ("r.ok AND ~(r.y) = 1", "~(r.y)"),
])
def test_errors_mark_the_part(sql: str, marked: str) -> None:
    with pytest.raises((PredicateError, SchemaError)) as caught:
        parse(sql)
    _, line, mark = str(caught.value).split("\n")
    assert line.strip() in sql
    assert line[mark.index("^"):mark.rindex("^") + 1] == marked


@pytest.mark.parametrize(("sql", "expected"), [
    ("r.x / 2 = s.a", "((cast(r.x as float64) / float64:2.0) = cast(s.a as float64))"),
    ("r.y / 2 > s.b", "((r.y / float32:2.0) > s.b)"), ("1 / 4 < r.d", "(r.d > float64:0.25)"),
    ("r.x // 2 = s.a DIV 3", "((r.x div 2) = (s.a div 3))"), ("r.x % 2 = MOD(s.a, 3)", "((r.x mod 2) = (s.a mod 3))"),
    ("7 // -2 = r.x", "(r.x = -3)"), ("-7 % 2 = r.x", "(r.x = -1)"), ("r.y % 2 = 1", "(cast((r.y mod float32:2.0) "
                                                                       "as float64) = float64:1.0)"),
    ("r.x & 1 = 1", "((r.x & 1) = 1)"), ("r.x ^ s.a = xor(r.x, 3)", "((r.x ^ s.a) = (r.x ^ 3))"),
    ("~r.x = 5 | 2", "((r.x ^ -1) = 7)"), ("r.x << 3 > s.a >> 1", "((r.x << 3) > (s.a >> 1))"),
    ("bit_count(r.x ^ s.a) <= 3", "(bit_count((r.x ^ s.a)) <= 3)"),
    ("least(r.x, s.a, 1.5) < 2", "(least(r.x, s.a, 3/2) < 2)"),
    ("greatest(r.y, s.a) < 2", "(greatest(cast(r.y as float64), cast(s.a as float64)) < float64:2.0)"),
    ("coalesce(r.x, 0) = s.a", "((CASE WHEN (NOT (r.x IS NULL)) THEN r.x ELSE 0 END) = s.a)"),
    ("nullif(r.x, 0) = s.a", "((CASE WHEN (r.x = 0) THEN NULL ELSE r.x END) = s.a)"),
    ("CASE r.x WHEN 1 THEN 2 WHEN 2 THEN s.a END = 1",
     "((CASE WHEN (r.x = 1) THEN 2 WHEN (r.x = 2) THEN s.a ELSE NULL END) = 1)"),
    ("IF(r.ok, s.fine, FALSE)", "(CASE WHEN r.ok THEN s.fine ELSE FALSE END)"),
    ("r.x IN (1, s.a)", "((r.x = 1) OR (r.x = s.a))"), ("r.x NOT IN (1)", "(NOT (r.x = 1))"),
    ("r.x IS NOT DISTINCT FROM s.a", "(NOT (NOT (((r.x IS NULL) AND (s.a IS NULL)) OR ((NOT (r.x IS NULL)) AND "
                                     "(NOT (s.a IS NULL)) AND (r.x = s.a)))))"),
    ("r.name LIKE 'it''s%'", "starts_with(r.name, 'it''s')"), ("r.name NOT LIKE 'a'", "(NOT (r.name = 'a'))"),
    ("starts_with(r.name, 'a')", "starts_with(r.name, 'a')"), ("r.name < s.word", "(r.name < s.word)"),
    ("X'0aFF' = X''", "(X'0AFF' = X'')"), ("r.x * s.a > 100", "((r.x * s.a) > 100)"),
])
def test_functions_and_operators(sql: str, expected: str) -> None:
    assert parse(sql) == expected


@pytest.mark.parametrize(("sql", "message"), [
    ("t = 1", "column 't' is ambiguous: it could be r.t or s.t; write which, such as r.t = s.t for equal "
     "ones"),
    ("ID = 1", "column 'ID' is ambiguous: it could be r.id or s.id"),
    ("nane = 'a'", r"neither stream has a column 'nane' \(did you mean 'name'\?\); the columns are r.x, .* s.order"),
    ("r.nope = 1", "stream r has no column 'nope'; its columns are x, y,"),
    ("q.x = 1", "'q.x': there is no stream 'q'; the streams are r and s"),
    ("list = 1", "column r.list has type list<item: int8>, which a join condition cannot use"),
    ("r.MIXED = 1", "column r.MIXED is ambiguous: it could be 'Mixed' or 'mixed'; write the exact name"),
])
def test_column_errors(sql: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        parse(sql)


def test_a_long_chain_has_one_level() -> None:
    chain = predicate(" OR ".join(f"r.x = {i}" for i in range(2000)), R, S)
    assert len(chain.children) == 2000


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(sql: str) -> None:
    try:
        condition = parse_sql(sql, R, S)
    except (PredicateError, SchemaError) as error:
        assert not re.search(r"\x1b|sqlglot|<class", str(error))
    else:
        assert text(condition)


@given(conditions({"x": pa.int32(), "y": pa.float32(), "ok": pa.bool_()}, {"a": pa.int64(), "word": pa.string()}))
def test_every_generated_condition_is_read(condition: object) -> None:
    r = Schema.from_arrow("r", pa.schema([("x", pa.int32()), ("y", pa.float32()), ("ok", pa.bool_())]))
    s = Schema.from_arrow("s", pa.schema([("a", pa.int64()), ("word", pa.string())]))
    sql = getattr(condition, "sql")  # noqa: B009
    assert parse_sql(sql, r, s) == parse_sql(f" ( {sql} ) ", r, s)


@pytest.mark.parametrize(("sql", "message"), [
    ("r.t = X'0'", "\"X'0'\": a binary literal must have two hexadecimal digits a byte"),
    ("r.name / 2 = 1", "'r.name / 2': '/' needs numbers, not string and exact number"),
    ("r.name DIV 2 = 1", "needs exact numbers, not string and exact number"),
    ("r.x DIV 0.5 = 1", "needs whole numbers, not decimals; write '/' for a float"),
    ("r.x << s.a = 1", "the number of places to shift by must be a whole number from 0 to 63, but s.a can be "),
    ("r.x >> 64 = 1", "the number of places to shift by must be a whole number from 0 to 63, not 64"),
    ("r.x << 0.5 = 1", "the number of places to shift by must be a whole number from 0 to 63, not 1/2"),
    ("r.x IN ()", "the condition 'r.x IN ()' cannot be read|IN needs at least one value|IN with anything but a list"),
    ("least(r.x) = 1", r"least\(\) needs two values or more"),
    ("starts_with(r.name, r.name)", "not string with string; in SQL over tables or streams"),
    ("CASE WHEN r.x THEN 1 ELSE 2 END = 1", r"a condition \(true or false\) is needed here, but this is"),
    ("coalesce(r.x, 'a') = 1", "cannot be compared"),
])
def test_refused_operands(sql: str, message: str) -> None:
    with pytest.raises(PredicateError, match=message):
        parse(sql)
