"""Conditions in further notations: front ends that other packages register."""

import subprocess
import sys
from types import ModuleType

import pyarrow as pa
import pytest

import splitjoin
from splitjoin import InputError, PredicateError, Schema
from splitjoin.lang import front_ends, query
from splitjoin.lang.local_times import session_zone
from splitjoin.lang.sql.parser import parse_sql

R, S = Schema.from_arrow("r", pa.schema([("x", pa.int32())])), Schema.from_arrow("s", pa.schema([("a", pa.int32())]))


def test_a_registered_front_end_reads_conditions_of_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    front_end = ModuleType("notation.reader")
    front_end.read = lambda on, r, s: parse_sql(on.text, r, s)  # type: ignore[attr-defined]  # a made-up module
    monkeypatch.setitem(sys.modules, "notation.reader", front_end)
    monkeypatch.setitem(front_ends.FRONT_ENDS, "notation", None)  # which is taken out again afterwards
    front_ends.register_condition_front_end("notation", kind="a Formula", module="notation.reader", function="read")
    formula = type("Formula", (), {"__module__": "notation.terms", "text": "r.x = s.a"})()
    assert query.predicate(formula, R, S) == parse_sql("r.x = s.a", R, S)
    other = type("Formula", (), {"__module__": "notations.terms"})()
    with pytest.raises(PredicateError, match=r"on must be an SQL text, a function of \(r, s\), a Spark Column or a "
                                             r"Formula, not Formula"):
        query.predicate(other, R, S)
    with pytest.raises(PredicateError, match=r"not list; for equal columns write on='r\.k = s\.k'"):
        query.predicate(["k"], R, S)


def test_splitjoin_reads_columns_of_spark_without_importing_spark() -> None:
    code = ("import sys, splitjoin, splitjoin.lang.query as q; assert 'pyspark' in q.FRONT_ENDS; "
            "assert not {'pyspark', 'splitjoin.spark'} & set(sys.modules)")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_arguments_that_a_query_does_not_have() -> None:
    schema = pa.schema([("x", pa.int64())])
    with pytest.raises(InputError, match=r"no argument 'windw' \(did you mean 'window'\?\); its arguments are r_"):
        splitjoin.query(schema, schema, on="r.x = s.x", windw="ROWS 2")  # type: ignore[arg-type]  # no such argument
    with pytest.raises(InputError, match=r"no argument 'lateness'; give it to splitjoin\.open"):
        splitjoin.query(schema, schema, on="r.x = s.x", window="ROWS 2", lateness=3)  # type: ignore[arg-type]  # one of open


def test_a_text_over_the_same_columns_is_read_once() -> None:
    def read(text: str, nullable: bool = False) -> object:
        r, s = (Schema.from_arrow(side, pa.schema([pa.field("t", pa.timestamp("us", "UTC"), nullable)]))
                for side in ("r", "s"))
        return query.predicate(text, r, s)

    on = "r.t - s.t <= INTERVAL '1 HOUR'"
    assert read(on) is read(on)
    assert read(on) is not read(on, nullable=True)
    with session_zone("America/New_York"), pytest.raises(PredicateError, match="the difference of two timestamps"):
        read(on)
    long = on + " OR r.t IS NULL" * 300
    assert read(long) is not read(long)  # it is not kept
    assert read(long) == read(long)
