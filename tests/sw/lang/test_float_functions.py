"""sqrt, floor, ceil, round and LIKE: as DuckDB computes them, on the golden model and the CPU engine."""

from __future__ import annotations

import itertools
import math
import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin import PredicateError, Schema
from splitjoin.lang.operations import like_pattern
from splitjoin.lang.sql.parser import parse_sql
from tests.support.databases import database
from tests.support.sampling import examples

SPECIAL = [0.0, -0.0, 0.49999999999999994, 0.5, -0.5, 1.5, 2.5, -2.5, 4503599627370495.5, 1e300, 5e-324, math.inf,
           -math.inf, math.nan, 3.0, -7.25]
DECIMALS = [Decimal("0.49"), Decimal("0.50"), Decimal("-0.50"), Decimal("-1.51"), Decimal("2.00"), None]
TEXTS = ["", "a", "ab", "aüb", "a\nb", "A", "a%b", "a_b", "xaby", "a\U0001f600b", None]


def values(expression: str, column: pa.Array) -> list[object]:
    """The values of an expression over a column x, by the result columns of a SELECT."""
    table = pa.table({"x": column, "n": np.arange(len(column))})
    made = splitjoin.sql(f"SELECT {expression} AS v, r.n FROM r JOIN s ON r.n >= 0", r=table, s={"one": [1]},
                         window="ROWS 99", device="golden")
    order = np.argsort(made.column("n").to_numpy())
    return [made.column("v").to_pylist()[n] for n in order]


def oracle(expression: str, column: pa.Array) -> list[object]:
    table = pa.table({"x": column, "n": np.arange(len(column))})
    with database() as db:
        db.register("t", table)
        return [row[0] for row in db.execute(f"SELECT {expression} FROM t ORDER BY n").fetchall()]


@pytest.mark.parametrize("type_", [pa.float64(), pa.float32(), pa.decimal128(9, 2), pa.int32()])
@pytest.mark.parametrize("function", ["floor", "ceil", "round", "sqrt"])
def test_functions_of_numbers(function: str, type_: pa.DataType) -> None:
    given_ = pa.array(SPECIAL if pa.types.is_floating(type_) else DECIMALS if pa.types.is_decimal(type_)
                      else [-3, 0, 2, 7, None], type_)
    guarded = "CASE WHEN x < 0 THEN CAST('nan' AS DOUBLE) ELSE sqrt(x) END" if function == "sqrt" else f"{function}(x)"
    found, want = values(f"{function}(x)", given_), oracle(guarded, given_)
    assert [repr(float(v)) if v is not None else None for v in found] == [  # type: ignore[arg-type]
        repr(float(v)) if v is not None else None for v in want]  # type: ignore[arg-type]


def rounded(x: float | None, places: int) -> float | None:
    """``x`` by the rule of docs/language.md, step by step; what is too large for the steps stays, or is 0."""
    if x is None or not math.isfinite(x):
        return x
    power = 10.0 ** abs(places)
    scaled = x * power if places > 0 else x / power
    if math.isinf(scaled):
        return x
    whole = math.copysign(float(int(abs(scaled)) + (abs(scaled) % 1 >= 0.5)), scaled)
    return whole / power if places > 0 else whole * power


@pytest.mark.parametrize("type_", [pa.float64(), pa.float32()])
@pytest.mark.parametrize("places", [-22, -2, -1, 1, 2, 5, 22])
def test_decimal_places_of_floats(places: int, type_: pa.DataType) -> None:
    """Not as DuckDB, which rounds the float itself from 2.0.1 on."""
    floats = [*SPECIAL, 2.675, 1.005, 1e308, 1.7e308, 12.345, -935.05, 2.5e22, 123456.789, None]
    given_ = pa.array(floats).cast(type_, safe=False)
    wanted = pa.array([rounded(x, places) for x in given_.to_pylist()], pa.float64()).cast(type_, safe=False)
    assert repr(values(f"round(x, {places})", given_)) == repr(wanted.to_pylist())


@pytest.mark.parametrize("type_", [pa.decimal128(9, 2), pa.int32()])
@pytest.mark.parametrize("places", [-22, -2, -1, 1, 2, 5, 22])
def test_decimal_places(places: int, type_: pa.DataType) -> None:
    # DuckDB makes 0 of all of them, also of NULL, where no digit is kept.
    given_ = (pa.array([*DECIMALS[:-1], Decimal("-0.05"), Decimal("9999999.95")], type_) if pa.types.is_decimal(type_)
              else pa.array([-3, 0, 25, -25, 149, 150, None, 2**31 - 200], type_))
    found, want = values(f"round(x, {places})", given_), oracle(f"round(x, {places})", given_)
    assert [repr(float(v)) if v is not None else None for v in found] == [  # type: ignore[arg-type]
        repr(float(v)) if v is not None else None for v in want]  # type: ignore[arg-type]


@pytest.mark.parametrize("pattern", ["%", "_", "a_b", "%a%b%", "__", "a%b", "%b", "a\n_", "_%_"])
def test_like(pattern: str) -> None:
    assert values(f"x LIKE '{pattern}'", pa.array(TEXTS)) == oracle(f"x LIKE '{pattern}'", pa.array(TEXTS))
    assert values(f"x NOT LIKE '{pattern}'", pa.array(TEXTS)) == oracle(f"x NOT LIKE '{pattern}'", pa.array(TEXTS))


def test_like_with_many_percent_signs_takes_no_exponential_time() -> None:
    plain = {"%": ".*", "_": "."}
    texts = ["".join(text) for n in range(5) for text in itertools.product("ab", repeat=n)]
    for pattern in ("".join(found) for n in range(5) for found in itertools.product("ab%_", repeat=n)):
        wanted = re.compile("".join(plain.get(c, c) for c in pattern), re.DOTALL)
        assert [bool(like_pattern(pattern).fullmatch(text)) for text in texts] == [
            bool(wanted.fullmatch(text)) for text in texts], pattern
    assert like_pattern("%a" * 40 + "%b").fullmatch("a" * 2000 + "!") is None  # 10 ms; tried in all ways, centuries


CONDITIONS = [
    "sqrt(r.f * r.f + s.g * s.g) <= 3", "floor(r.f) = ceil(s.g)", "round(r.f) < round(s.g)", "floor(r.f - s.g) = 1",
    "r.t LIKE '%a_%' AND abs(r.f - s.g) <= 1", "s.u NOT LIKE '_b%' AND r.f < s.g", "sqrt(r.x) < s.a",
    "round(r.d) = floor(s.e)", "CASE WHEN r.x > 3 THEN r.t ELSE s.u END LIKE 'a_%'", "round(r.f - s.g) = 0",
    "round(r.f, 1) = round(s.g, 1)", "round(r.f - s.g, -1) = 0", "round(r.d - s.e, 1) <= 0.5", "round(r.x, -1) = s.a",
]


@settings(max_examples=examples(3))
@given(seed=st.integers(0, 2**31))
@pytest.mark.parametrize("on", CONDITIONS)
def test_every_engine_agrees(on: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    tables = []
    for f, x, d, t in (("f", "x", "d", "t"), ("g", "a", "e", "u")):
        floats = np.where(random.random(60) < 0.2, random.choice(SPECIAL, 60), random.normal(0, 3, 60).round(1))
        tables.append(pa.table({
            f: floats, x: random.integers(-9, 9, 60), t: random.choice(["ab", "abc", "xab", "b", ""], 60),
            d: pa.array([None if n % 7 == 0 else Decimal(int(n)) / 4 for n in random.integers(-20, 20, 60)],
                        pa.decimal128(9, 2))}))
    answers = [splitjoin.join(*tables, on=on, window="ROWS 40", device=device) for device in ("golden", "cpu")]
    assert answers[0].items.tolist() == answers[1].items.tolist()


@pytest.mark.parametrize(("on", "said"), [
    ("ln(r.f) < 1", "that libraries round differently in the last digit"), ("exp(r.f) < 1", "round differently"),
    ("power(r.f, 2) < 1", r"round differently in the last digit \(multiply, as in r.x \* r.x\)"),
    ("r.t LIKE 'a\\b'", "must not hold a backslash"), ("r.f LIKE 'a_b'", "LIKE needs a text, not float64"),
    ("r.t LIKE r.t", "LIKE with anything but a constant is not supported"),
    ("sqrt(r.t) = 1", "needs a number, not string"),
    ("floor(r.t) = 1", r"floor\(\) needs a number, not string"),
    ("round(r.f, r.f) = 1", "must be a constant from -22 to 22 for float64, not r.f"),
    ("round(r.f, 23) = 1", "must be a constant from -22 to 22 for float64, not 23"),
    ("round(1, 1.5) = r.f", "must be a constant from -38 to 38 for exact number, not 3/2"),
    ("round(r.t, 2) = 1", r"round\(\) needs a number, not string"), ("round(r.f, 1, 2) = 1", "ROUND is not supported"),
])
def test_refused_with_the_reason(on: str, said: str) -> None:
    r = pa.table({"f": [1.0], "t": ["a"], "day": pa.array([1], pa.date32())})
    with pytest.raises(PredicateError, match=said):  # of the language: DuckDB may compute it before a join
        parse_sql(on, Schema.from_table("r", r), Schema.from_table("s", pa.table({"a": [1]})))
