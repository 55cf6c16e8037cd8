"""Random conditions mean in Spark SQL what they mean here, for each pair of tuples, true, false or NULL.

What is drawn are the conditions and tables of the tests against DuckDB, with the second text, in which every type is
spelled out, turned into Spark's dialect. Where the same text would mean something else in Spark, the types say so: no
integer wraps or fails, floats are computed in the type that docs/language.md gives, and bits are of that width. What
Spark does without them is in the tests below, rule by rule. A division by zero does not occur; NaN, -0.0 and the
infinities do.
"""

from __future__ import annotations

import datetime as dt
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from pyspark.errors import ArithmeticException
from pyspark.sql import SparkSession

from splitjoin.engines.device import PAIR
from splitjoin.engines.golden import GoldenDevice
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from tests.support.conformance import run
from tests.support.oracle import integers
from tests.support.predicates import conditions
from tests.support.strategies import tables
from tests.support.terms import Condition

#: Those that Spark has too: no unsigned integers, no nanoseconds, no bytes of fixed size.
_TYPES = {"i8": pa.int8(), "i16": pa.int16(), "i32": pa.int32(), "i64": pa.int64(), "f": pa.float32(),
          "d": pa.float64(), "ok": pa.bool_(), "day": pa.date32(), "text": pa.string(), "raw": pa.binary(),
          "at": pa.timestamp("us"), "zoned": pa.timestamp("us", "UTC"), "p": pa.decimal128(9, 2),
          "wide": pa.decimal128(38, 2)}
_ROWS = 9
_BITS = {"TINYINT": 0xFF, "SMALLINT": 0xFFFF, "INTEGER": 0xFFFF_FFFF, "BIGINT": -1}


def in_spark(oracle: str) -> str:
    """A condition in DuckDB's SQL, as `tests.support.terms` writes it, in Spark's."""
    def moment(found: re.Match[str]) -> str:
        since = dt.datetime.fromisoformat(found[1]) - dt.datetime(1970, 1, 1)
        return f"CAST('{since // dt.timedelta(microseconds=1) * 1000}' AS DECIMAL(19, 0))"

    def days(found: re.Match[str]) -> str:
        return str((dt.date.fromisoformat(found[1]) - dt.date(1970, 1, 1)).days)

    cast = r"CAST\(([rs]\.\w+) AS (\w+)\)"
    for pattern, new in (
            (r"epoch_ns\(TIMESTAMP '([^']*)'\)", moment), (r"\(DATE '([^']*)' - DATE '1970-01-01'\)", days),
            (r"from_hex\('(\w*)'\)", r"X'\1'"), (r"\bstarts_with\(", "startswith("), (" // ", " DIV "),
            # Spark counts the bits of a number's 64; ours are those of its type.
            (rf"bit_count\(xor\({cast}, {cast}\)\)",
             lambda f: f"bit_count(CAST(CAST({f[1]} AS {f[2]}) ^ CAST({f[3]} AS {f[4]}) AS BIGINT) & {_BITS[f[2]]}L)"),
            (rf"xor\({cast}, {cast}\)", r"(CAST(\1 AS \2) ^ CAST(\3 AS \4))"), ("HUGEINT", "DECIMAL(38, 0)"),
            (r"'((?:[^']|'')*)'", lambda f: "'" + f[1].replace("''", r"\'") + "'")):
        oracle = re.sub(pattern, new, oracle)
    return oracle


def pairs(r: pa.Table, s: pa.Table, on: str) -> set[tuple[int, int]]:
    """Row ids of the pairs for which the golden model has ``on`` true; every window holds everything."""
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=on, window=f"ROWS {_ROWS}")
    return {(int(i["r"]), int(i["s"])) for i in run(GoldenDevice(), query, r, s) if i["kind"] == PAIR}


R, S = ({f"{letter}_{name}": type_ for name, type_ in _TYPES.items()} for letter in "xa")


@settings(max_examples=4, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate),
          suppress_health_check=list(HealthCheck))
@given(r=tables(R, max_rows=_ROWS), s=tables(S, max_rows=_ROWS), drawn=st.lists(conditions(R, S), min_size=40,
                                                                             max_size=40))
def test_random_conditions_mean_the_same(spark: SparkSession, r: pa.Table, s: pa.Table, drawn: list[Condition]) -> None:
    """One query of Spark for all of them: a column for each condition, over the cross product of the tables."""
    if not (len(r) and len(s)):
        return
    left, right = (spark.createDataFrame(integers(table).append_column("k", pa.array(range(len(table)), pa.int64())))
                   for table in (r, s))
    crossed = left.alias("r").crossJoin(right.alias("s"))
    answers = crossed.selectExpr("r.k AS r_k", "s.k AS s_k", *(f"{in_spark(c.oracle)} AS c{n}"
                                                               for n, c in enumerate(drawn))).collect()
    assert len(answers) == len(r) * len(s)
    for n, condition in enumerate(drawn):
        found: dict[bool | None, set[tuple[int, int]]] = {True: set(), False: set(), None: set()}
        for row in answers:
            found[row[f"c{n}"]].add((row["r_k"], row["s_k"]))
        assert pairs(r, s, condition.sql) == found[True], condition
        assert pairs(r, s, f"({condition.sql}) IS NULL") == found[None], condition


#: One tuple of R and one of S, for the rules.
R1 = pa.table({"i": pa.array([2**31 - 1], pa.int32()), "n": pa.array([-1], pa.int8()), "z": [1.0],
               "f": pa.array([0.1], pa.float32()), "nan": [np.nan], "zero": [0.0],
               "none": pa.array([None], pa.int32())})
S1 = pa.table({"a": pa.array([0], pa.int32()), "g": pa.array([0.2], pa.float32()), "nan": [np.nan], "zero": [-0.0]})
#: What docs/language.md says of Spark: condition; what it is here, in Spark without ANSI mode, and in ANSI mode, where
#: it may be an error.
RULES: list[tuple[str, bool | None, bool | None, bool | str | None]] = [
    ("r.nan = s.nan AND r.nan > 1e30 AND NOT r.nan < 1e30", True, True, True),
    ("r.zero = s.zero AND NOT s.zero < r.zero", True, True, True),
    ("r.none = s.a", None, None, None),
    ("r.none = s.a AND r.i = s.a", False, False, False),
    ("r.none IS NOT DISTINCT FROM r.none", True, True, True),
    ("least(r.i, r.none) = r.i AND greatest(r.nan, r.z) = r.nan", True, True, True),
    ("r.f <= 0.1", False, False, False),
    ("r.n DIV 2 = 0 AND r.n % 2 = -1", True, True, True),
    ("r.i + 1 > r.i", True, False, "ARITHMETIC_OVERFLOW"),
    ("r.z / s.a > 1e300", True, None, "DIVIDE_BY_ZERO"),
    ("r.i % s.a = 0", None, None, "REMAINDER_BY_ZERO"),
    ("r.i DIV s.a = 0", None, None, "DIVIDE_BY_ZERO"),
    ("r.f + 0.1 = s.g", True, False, False),
    ("bit_count(r.n) = 8", True, False, False),
    ("r.i << 1 > 0", True, False, False),
]


@pytest.mark.parametrize("ansi", [False, True])
def test_rules_that_the_language_page_tells_of_spark(spark: SparkSession, ansi: bool) -> None:
    pair = spark.createDataFrame(R1).alias("r").crossJoin(spark.createDataFrame(S1).alias("s"))
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    try:
        expected = {condition: rule[ansi] for condition, _, *rule in RULES}
        errors = {condition: said for condition, said in expected.items() if isinstance(said, str)}
        answers = {condition: said for condition, said in expected.items() if condition not in errors}
        (row,) = pair.selectExpr(*(f"{condition} AS c{n}" for n, condition in enumerate(answers))).collect()
        assert dict(zip(answers, row, strict=True)) == answers
        for condition, said in errors.items():
            with pytest.raises(ArithmeticException, match=said):
                pair.selectExpr(condition).collect()
    finally:
        assert before is not None
        spark.conf.set("spark.sql.ansi.enabled", before)


@pytest.mark.parametrize(("condition", "value"), [(condition, here) for condition, here, *_ in RULES])
def test_the_same_rules_here(condition: str, value: bool | None) -> None:
    assert bool(pairs(R1, S1, condition)) is (value is True)
    assert bool(pairs(R1, S1, f"({condition}) IS NULL")) is (value is None)
