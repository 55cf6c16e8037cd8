"""The placement of a statement's terms and columns, and its description by `explain`."""

from __future__ import annotations

import pyarrow as pa
import pytest

import splitjoin
from splitjoin import Select
from splitjoin.lang.ir import text

R = pa.schema([("ts", pa.int64()), ("x", pa.int32()), ("y", pa.int32()), ("name", pa.string()), ("n", pa.int64())])
S = pa.schema([("ts", pa.int64()), ("a", pa.int32()), ("b", pa.int32()), ("word", pa.string())])


def made(where: str, *, items: str = "x", on: str = "TRUE", window: str = "ROWS 9", time: str | None = None) -> Select:
    found: Select = splitjoin.sql(f"SELECT {items} FROM r JOIN s ON {on} WHERE {where}", r=R, s=S, window=window,
                                  time=time)
    return found


@pytest.mark.parametrize(("where", "stages"), [
    ("x > 5", ["pre r"]),
    ("x > 5 AND b < 3 AND x = a", ["pre r", "pre s", "join hash"]),
    ("NOT (x > 5 OR b < 3 OR x <> a)", ["pre r", "pre s", "join hash"]),
    ("NOT (NOT (x > 5 AND x < a))", ["pre r", "join range"]),
    ("x > 5 OR b < 3", ["join"]),
    ("x BETWEEN a AND b", ["join range", "join range"]),
    ("name = word", ["join hash"]),
    ("x * a * a = 3", ["post"]),
    ("x = a AND x * a * a = 3", ["join hash", "post"]),
    ("x * a = 3", ["join range"]),
    ("1 = 1", ["always"]),
    ("1 = 0 AND x > 3", ["never", "pre r"]),
    ("NULL", ["never"]),
    ("x IS NULL", ["pre r"]),
])
def test_stages(where: str, stages: list[str]) -> None:
    terms = made(where).placement.terms
    assert terms[0].stage == "always"
    assert terms[0].clause == "ON"
    assert [" ".join(filter(None, (t.stage, t.side, t.index))) for t in terms[1:]] == stages
    assert all(t.clause == "WHERE" for t in terms[1:])


def test_the_main_predicate_is_that_of_the_plan() -> None:
    main = made("x < b AND abs(y - b) <= 2 AND x = a").placement.main
    assert main is not None
    assert text(main.condition) == "(r.x = s.a)"
    band = made("x < b AND abs(y - b) <= 2").placement.main
    assert band is not None
    assert text(band.condition) == "(abs((r.y - s.b)) <= 2)"
    assert made("x * a * a = 3 OR x = a").placement.main is None


def test_only_what_is_needed_travels() -> None:
    select = made("y < b", items="x, 2 * x AS twice, word", time="ts", window="RANGE 3")
    assert (select.needed("r"), select.needed("s")) == (["ts", "x", "y"], ["ts", "b", "word"])
    alone = made("TRUE", items="1 AS one")
    assert (alone.needed("r"), alone.needed("s")) == (["ts"], ["ts"])


def test_explain() -> None:
    lines = made("y <= b AND x > 3 AND x * a * a < 9 AND 1 = 1", items="r.name, x - a AS gap", on="x = a",
                 window="RANGE 4", time="ts").explain(cores=2).splitlines()
    assert lines[:13] == [
        "statement        SELECT r.name, x - a AS gap FROM r JOIN s ON x = a WHERE y <= b AND x > 3 AND x * a * a < 9 "
        "AND 1 = 1",
        "R                r",
        "S                s",
        "pre-selection    R: (r.x > 3), once per tuple; one that fails keeps its place in the window",
        "pre-selection    S: none",
        "pre-projection   R: ts (time), x (condition, result), y (condition), name (result); 4 of 5 columns",
        "pre-projection   S: ts (time), a (condition, result), b (condition); 3 of 4 columns",
        "main predicate   (r.x = s.a) (ON); by hash",
        "secondary        (r.y <= s.b) (WHERE); an index could use it, by range",
        "post-selection   (((r.x * s.a) * s.a) < 9) (WHERE); '(((r.x * s.a) * s.a) < 9)': '((r.x * s.a) * s.a)' over "
        "both streams gives no interval",
        "constant         (1 = 1) (WHERE): left out",
        "post-projection  name: string = r.name, as it is",
        "post-projection  gap: int64 = (r.x - s.a), computed for every pair",
    ]
    assert any(line.startswith("circuits    yes: 2 cores") for line in lines)
    assert "constant         NULL (WHERE): no pair is a result" in made("NULL").explain()
