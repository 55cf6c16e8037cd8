"""Texts that are almost statements: each is accepted, or refused by an error of ours."""

from __future__ import annotations

import re

import pyarrow as pa
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin import SplitJoinError
from tests.support.sampling import examples

R = pa.schema([("ts", pa.int64()), ("x", pa.int32()), ("name", pa.string()), ("f", pa.float32()),
               ("d", pa.decimal128(9, 2)), ("at", pa.timestamp("us")), ("st", pa.struct([("q", pa.int64())]))])
S = pa.schema([("ts", pa.int64()), ("a", pa.int32()), ("word", pa.string()), ("due", pa.timestamp("us"))])
BASES = [text.split() for text in (
    "SELECT t . x , q . a AS gap FROM trades t JOIN quotes q ON abs ( t . x - q . a ) <= 5 WHERE word = name",
    "SELECT CASE WHEN x > a THEN name ELSE word END w , d * 2 FROM trades AS t , quotes AS q WHERE x BETWEEN a AND 9",
    "SELECT q . * , due - at AS late , x IN ( 1 ) FROM trades t CROSS JOIN quotes q WHERE NOT ( x > 2 )",
    "SELECT coalesce ( x , a ) , x IS NOT DISTINCT FROM a , DATE '2020-01-01' d FROM trades t JOIN quotes q ON TRUE",
)]
WORDS = re.split(r"\s+", "GROUP BY ORDER DISTINCT LIMIT ( ) , . * AS FROM WHERE JOIN ON LEFT USING 'a' 1 x t q "
                         "NULL NOT IN BETWEEN AND OR ; - + = \" ' -- /* CASE END WHEN THEN OVER WITH VALUES [ ] "
                         "{ } ? : :: @ $ || & ~ % // << IS EXISTS ALL ANY WINDOW FILTER PIVOT st 1e999 X'0' count sum")


@st.composite
def texts(draw: st.DrawFn) -> str:
    words = list(draw(st.sampled_from(BASES)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(words) - 1))
        match draw(st.sampled_from(["leave out", "put in", "replace", "swap"])):
            case "leave out" if len(words) > 1:
                del words[at]
            case "put in":
                words.insert(at, draw(st.sampled_from(WORDS)))
            case "swap":
                other = draw(st.integers(0, len(words) - 1))
                words[at], words[other] = words[other], words[at]
            case _:
                words[at] = draw(st.sampled_from(WORDS))
    return " ".join(words)


@settings(max_examples=examples(300))
@given(text=texts())
def test_taken_or_refused(text: str) -> None:
    try:
        made = splitjoin.sql(text, trades=R, quotes=S, window="ROWS 3")
    except SplitJoinError as error:
        assert str(error)
        assert "Token" not in str(error)
        return
    assert len(made.schema) == len(made.projection.outputs)
    assert set(made.needed("r")) <= set(made.query.r.names)


def test_the_bases_are_statements() -> None:
    for words in BASES:
        splitjoin.sql(" ".join(words), trades=R, quotes=S, window="ROWS 3")
