"""Built-in aggregates beyond counts, sums and extremes: DuckDB's values, the same from every engine."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import splitjoin
from splitjoin import InputError, PredicateError
from splitjoin.joins.explain import explain

from ....support.statements import exactly

HOW: dict[str, Any] = {"on": "r.x = s.k", "window": "ROWS 1000", "how": "left", "by": "r", "select": []}
#: Our text and DuckDB's; floats differ in how they round.
SPREADS = {f"{name}(s.{column})": f"{name}({column})" for column in ("i", "f", "d", "u")
           for name in ("stddev_samp", "stddev_pop", "var_samp", "var_pop")}
MEDIANS = {f"median(s.{column})": f"median({column}::DOUBLE)" for column in ("i", "f", "d")}
EXACT = {
    **{f"bit_{name}(s.{column})": f"bit_{name}({column})" for column in ("i", "u") for name in ("and", "or", "xor")},
    **{f"quantile(s.{column}, {q})": f"quantile_disc({column}, {q})" for column in ("i", "f", "d", "t", "u")
       for q in (0, 0.25, 0.9, 1)},
    "bool_and(s.b)": "bool_and(b)", "bool_or(s.i > 3)": "bool_or(i > 3)", "bool_and(s.f > 0)": "bool_and(f > 0)",
    **{f"list(s.{column})": f"list({column} ORDER BY n) FILTER (WHERE k IS NOT NULL)" for column in "ifdtbu"},
    "string_agg(s.t, '; ')": "string_agg(t, '; ' ORDER BY n)", "string_agg(s.t)": "string_agg(t ORDER BY n)",
    **{f"{name}(DISTINCT s.{column})": f"{name}(DISTINCT {column})" for column in ("i", "d")
       for name in ("sum", "min", "max")},
    "sum(DISTINCT s.f)": "sum(DISTINCT f)", "avg(DISTINCT s.i)": "avg(DISTINCT i)", "product(s.i)": "product(i)",
    "count(DISTINCT s.f)": "count(DISTINCT f)", "bit_or(DISTINCT s.i)": "bit_or(DISTINCT i)",
    "median(DISTINCT s.i)": "median(DISTINCT i::DOUBLE)",
    **{f"{call.format('s.')} FILTER (WHERE s.i > 0 OR s.b)": f"{call.format('')} FILTER (WHERE k >= 0 AND (i > 0 OR b))"
       for call in ("count(*)", "count(DISTINCT {}t)", "sum({}i)", "max({}f)", "bool_or({}b)")},
}


def tables() -> tuple[pa.Table, pa.Table]:
    """Groups of 0 to 9 tuples of S, with NULL, NaN and infinity, and repeated values."""
    chance, rows = random.Random(3), []
    floats = [0.5, -2.25, 3.0, 1e300, math.nan, math.inf]
    for key in range(60):
        for _ in range(key % 10):
            rows.append((key, chance.randint(-5, 5), chance.choice(floats[:3 + key % 4]), chance.randint(-999, 999),
                         chance.choice("abc") * chance.randint(0, 2), chance.random() < 0.8,
                         chance.choice([2**64 - 1, 7, 2**63])))
    names = ("k", "i", "f", "d", "t", "b", "u")
    types = (pa.int64(), pa.int32(), pa.float64(), pa.decimal128(9, 2), pa.string(), pa.bool_(), pa.uint64())
    columns = []
    for name, type_, values in zip(names, types, zip(*rows, strict=True), strict=True):
        some = [None if name != "k" and chance.random() < 0.2 else v for v in values]
        columns.append(pa.array([None if v is None else Decimal(v) / 4 for v in some] if name == "d" else some, type_))
    s = pa.table(dict(zip(names, columns, strict=True)))
    return pa.table({"x": pa.array(range(60), pa.int64())}), s.append_column("n", pa.array(range(len(s))))


def columns(texts: Any, **options: Any) -> list[list[Any]]:
    r, s = tables()
    found = splitjoin.join(r, s, aggregate={f"v{n}": text for n, text in enumerate(texts)}, **HOW, **options)
    return [[exactly(v) for v in column.to_pylist()] for column in found.to_arrow().columns]


def test_values_are_those_of_duckdb() -> None:
    r, s = tables()
    texts = {**EXACT, **MEDIANS, **SPREADS}
    with duckdb.connect(config={"threads": 1}) as db:
        db.register("r", r).register("s", s)
        wanted = db.sql(f"SELECT {', '.join(texts.values())} FROM r LEFT JOIN s ON x = k GROUP BY x ORDER BY x")
        expected = [list(column) for column in zip(*wanted.fetchall(), strict=True)]
    for (text, _), ours, theirs in zip(texts.items(), columns(texts), expected, strict=True):
        if text in EXACT:
            assert ours == [exactly(v) for v in theirs], text
            continue
        for mine, other in zip(ours, theirs, strict=True):
            assert (mine is None) == (other is None), text
            assert mine is None or exactly(float(other)) == mine or math.isclose(
                float(mine), float(other), rel_tol=1e-12, abs_tol=1e-12), text


def test_engines_agree_with_the_reference() -> None:
    texts = [*EXACT, *MEDIANS, *SPREADS, "string_agg(DISTINCT s.t, '-')", "product(s.f)", "mode(s.i)", "mode(s.t)",
             "mode(s.f)", "mode(s.b)"]
    golden = columns(texts, device="golden")
    assert golden == columns(texts, engine="index")
    folded = [text for text in texts if text.startswith(("var", "stddev", "bool")) and "s.f)" not in text
              and "s.u" not in text]
    for engine in ("sliding", "golden"):
        how: dict[str, Any] = {"device": "golden"} if engine == "golden" else {"engine": engine}
        assert columns(folded, **how) == [golden[texts.index(text)] for text in folded]


@pytest.mark.parametrize("values", [[2**62, 2**62 - 1, -(2**63)], [10**9 + 1, 10**9 + 2, 10**9 + 4], [7]])
def test_variances_of_whole_numbers_are_exact(values: list[int]) -> None:
    r, s = pa.table({"x": [1]}), pa.table({"k": [1] * len(values), "a": pa.array(values, pa.int64())})
    made = splitjoin.join(r, s, aggregate={"v": "var_pop(s.a)", "d": "stddev_pop(s.a)"}, **HOW).to_pylist()
    mean = Fraction(sum(values), len(values))
    exact = sum((v - mean) ** 2 for v in values) / len(values)
    wanted = exact.numerator / exact.denominator
    assert made == [{"v": wanted, "d": math.sqrt(wanted)}]


def test_of_equal_zeros_the_first_is_chosen() -> None:
    """−0.0 equals 0.0; groups as long as vector registers and longer, with other values between and NULL."""
    chance = random.Random(5)
    rows = [(key, chance.choice([0.0, -0.0, -0.0, None, *[-1.0, 1.0, math.nan][:key % 4]]), chance.choice([0.0, -0.0]))
            for key in range(40) for _ in range(2 * key)]
    k, v, w = zip(*rows, strict=True)
    r, s = pa.table({"x": range(40)}), pa.table({"k": k, "v": pa.array(v), "w": pa.array(w)})
    texts = ["max(s.v)", "min(s.v)", "max(s.w)", "min(s.w)", "argmax(s.w, s.w)", "argmin(s.w, s.v)",
             "quantile(s.w, 0.5)", "median(s.w)", "mode(s.v)", "max(s.v) FILTER (WHERE s.w = 0)", "max(-s.v)",
             "count(DISTINCT s.w)"]

    def found(**options: Any) -> list[list[str]]:
        joined = splitjoin.join(r, s, aggregate={f"v{n}": text for n, text in enumerate(texts)}, **HOW, **options)
        return [[repr(x) for x in column.to_pylist()] for column in joined.to_arrow().columns]

    golden = found(device="golden")
    firsts = [repr(next((x for key, x in zip(k, w, strict=True) if key == of), None)) for of in range(40)]
    assert golden[2] == golden[3] == golden[4] == firsts
    for engine in ("auto", "nested", "index", "sorted"):
        assert found(engine=engine) == golden


def test_the_mode_is_the_first_of_the_most_frequent() -> None:
    r, s = pa.table({"x": [1]}), pa.table({"k": [1] * 6, "a": [5, 3, 3, 5, 9, None], "f": [1.0, math.nan, math.nan,
                                                                                         None, None, 2.0]})
    made = splitjoin.join(r, s, aggregate={"m": "mode(s.a)", "f": "mode(s.f)"}, **HOW).to_pylist()
    assert [(row["m"], math.isnan(row["f"])) for row in made] == [(5, True)]


def test_texts_with_distinct_come_in_the_order_of_their_first_occurrence() -> None:
    s = pa.table({"k": [1] * 6, "t": ["b", "a", None, "b", "c", "a"],
                  "u": pa.array([2**63, 2**63, None, 1, 2, 3], pa.uint64())})
    r = pa.table({"x": [1]})
    assert splitjoin.join(r, s, aggregate={"t": "string_agg(DISTINCT s.t)", "n": "sum(DISTINCT s.u)"},
                          **HOW).to_pylist() == [{"t": "b,a,c", "n": 2**63 + 6}]
    s = s.set_column(2, "u", pa.array([2**63, 2**63 + 1, None, 1, 2, 3], pa.uint64()))
    with pytest.raises(InputError, match="of row 0 of r must fit uint64, but is 18446744073709551623"):
        splitjoin.join(r, s, aggregate={"n": "sum(DISTINCT s.u)"}, **HOW)


def test_left_join_in_sql_folds_a_row_of_null() -> None:
    r, s = pa.table({"x": [1, 2]}), pa.table({"k": [1, 1], "a": [4, 6], "t": ["u", "v"]})
    text = ("SELECT r.x, median(s.a) AS m, string_agg(s.t, '-') AS t, bool_or(s.a IS NULL) AS lone, stddev(s.a) AS d, "
            "array_agg(s.t) AS l FROM r LEFT JOIN s ON r.x = s.k GROUP BY r")
    assert splitjoin.sql(text, r=r, s=s).to_pylist() == [
        {"x": 1, "m": 5.0, "t": "u-v", "lone": False, "d": math.sqrt(2), "l": ["u", "v"]},
        {"x": 2, "m": None, "t": None, "lone": True, "d": None, "l": [None]}]


@pytest.mark.parametrize(("text", "message"), [
    ("quantile(s.i, 1.5)", "the second value of quantile must be a number from 0 to 1, such as 0.9, not 3/2"),
    ("quantile(s.i, s.f)", "the second value of quantile must be a number from 0 to 1, such as 0.9, not s.f"),
    ("quantile(s.b, 0.5)", "quantile needs values with an order, but this is bool; write it with CASE"),
    ("median(s.t)", "median needs numbers, but this is string"),
    ("var_pop(s.b)", "var_pop needs numbers, but this is bool"),
    ("bool_and(s.i)", "bool_and needs truth values, such as x > 0, but this is int32"),
    ("bit_or(s.f)", "bit_or needs whole numbers, but this is float64"),
    ("bit_or(s.d)", "bit_or needs whole numbers, but this is decimal(9, 2)"),
    ("string_agg(s.i)", "string_agg needs text, but this is int32"),
    ("string_agg(s.t, s.t)", "the second value of string_agg must be a text, such as ', ', not s.t"),
    ("list(DISTINCT s.i)", "DISTINCT belongs to count, sum, avg, median and string_agg, of one value; leave it out"),
    ("mode(DISTINCT s.i)", "DISTINCT belongs to count, sum, avg, median and string_agg, of one value; leave it out"),
    ("sum(DISTINCT s.i, s.f)", "DISTINCT belongs to count, sum, avg, median and string_agg, of one value; leave it"),
    ("first(s.i) FILTER (WHERE s.b)", "FILTER belongs to aggregates that leave NULL out, and first does not"),
    ("bit_and(s.i, s.i)", "an aggregate must be one of count(*), "),
])
def test_refused(text: str, message: str) -> None:
    r, s = tables()
    with pytest.raises(PredicateError) as raised:
        splitjoin.join(r, s, aggregate={"v": text}, **HOW)
    assert str(raised.value).startswith(f"{text!r}: {message}")


def test_ordered_categories_have_no_quantile() -> None:
    s = pa.table({"k": [1], "c": pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), ["low", "high"],
                                                                       ordered=True)})
    with pytest.raises(PredicateError, match="quantile takes no ordered categories; give a column of "):
        splitjoin.join(pa.table({"x": [1]}), s, aggregate={"v": "quantile(s.c, 0.5)"}, **HOW)


@pytest.mark.parametrize("name", ["mode", "quantile", "bit_xor", "median"])
def test_circuits_refuse_what_they_do_not_fold_by_name(name: str) -> None:
    r, s = pa.schema({"x": pa.int32()}), pa.schema({"k": pa.int32(), "i": pa.int16()})
    text = f"{name}(s.i{', 0.5' * (name == 'quantile')})"
    query = splitjoin.query(r, s, on="abs(r.x - s.k) <= 1", window="ROWS 64", aggregate={"v": text})
    assert f"not in circuits: {text}: {name} of int16 is not folded in circuits; so pairs leave them" in explain(query)
