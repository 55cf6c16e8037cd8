"""ORDER BY, LIMIT, FETCH and OFFSET over tables give DuckDB's rows in DuckDB's order; streams refuse them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin import StatementError
from tests.support.databases import database
from tests.support.sampling import examples

R = pa.table({"x": [1, 2, 2, None, 5], "y": [0.5, float("nan"), -0.0, 0.0, None], "n": ["b", "a", None, "c", "A"],
              "d": pa.array([1, None, 3, 2, 2]).cast(pa.decimal128(30, 1)), "b": [True, None, False, True, False],
              "t": pa.array([5, 4, None, 2, 1], pa.timestamp("s"))})
S = pa.table({"a": [1, 2, 3]})
TEXT = "SELECT x, y, n, d, b, t, a, x + a AS z FROM r JOIN s ON r.x >= s.a OR r.y < 1 WHERE a < 9"
#: All columns, so that no two rows are equal in all terms: DuckDB leaves those in any order.
REST = ", x, y, n, d, b, t, a"


def shown(rows: list[dict[str, Any]]) -> list[list[str]]:
    """``rows`` as text, with 0.0 for -0.0."""
    return [[repr(v + 0.0 if isinstance(v, float) else v) for v in row.values()] for row in rows]


def check(text: str, **how: Any) -> None:
    with database() as connection:
        connection.register("r", R)
        connection.register("s", S)
        want = connection.sql(text).to_arrow_table()
    assert shown(splitjoin.sql(text, r=R, s=S, device="golden", **how).to_pylist()) == shown(want.to_pylist())


@settings(max_examples=examples(25))
@given(st.lists(st.tuples(st.sampled_from(["x", "r.y", "N", "4", "b", "t", "x+a", "z", "s.a", "x % 2", "-a"]),
                          st.sampled_from(["", " ASC", " DESC"]), st.sampled_from(["", " NULLS FIRST", " NULLS LAST"])),
                min_size=1, max_size=3), st.sampled_from(["", " LIMIT 4", " LIMIT 3 OFFSET 2", " OFFSET 5", " LIMIT 0",
                                                          " FETCH FIRST 2 ROWS ONLY", " LIMIT 99"]))
def test_rows_and_their_order_are_those_of_duckdb(terms: list[tuple[str, str, str]], cut: str) -> None:
    check(f"{TEXT} ORDER BY {', '.join(map(''.join, terms))}{REST}{cut}")


def test_rows_are_sorted_by_what_is_not_selected() -> None:
    check(f"SELECT n {TEXT[TEXT.index('FROM'):]} ORDER BY x % 2, s.a DESC{REST} LIMIT 7")
    text = "SELECT n FROM r LEFT JOIN s ON x >= a GROUP BY r ORDER BY {} DESC, r.y"
    found = splitjoin.sql(text.format("count(*)").replace("n FROM", "n, count(*) AS c FROM"), r=R, s=S)
    assert splitjoin.sql(text.format("count(*)"), r=R, s=S).to_pydict() == {"n": ["A", None, "a", "c", "b"]}
    assert found.to_pydict()["c"] == [3, 2, 2, 1, 1]
    assert "DuckDB" not in str(found.plan)


def test_without_order_by_rows_come_by_arrival(tmp_path: Path) -> None:
    rows = splitjoin.sql(TEXT, r=R, s=S, device="golden")
    cut = splitjoin.sql(f"{TEXT} LIMIT 3 OFFSET 1", r=R, s=S, device="golden")
    assert shown(cut.to_pylist()) == shown(rows.to_pylist())[1:4]
    pairs = rows.items[rows.items["kind"] == 0]
    assert (cut.items == pairs[1:4]).all()
    same = splitjoin.sql(f"{TEXT} ORDER BY a LIMIT 5", r=R, s=S, device="golden", to=tmp_path / "rows.arrow")
    firsts = [row for row in rows.to_pylist() if row["a"] == 1][:5]  # equal ones keep their order
    firsts += [row for row in rows.to_pylist() if row["a"] == 2]
    assert shown(same.to_pylist()) == shown(firsts[:5])
    assert same.path == tmp_path / "rows.arrow"


def test_aggregates_and_ordered_categories() -> None:
    at = pa.array([1, 0, 2, None, 1], pa.int8())
    levels = pa.DictionaryArray.from_arrays(at, ["low", "mid", "high"], ordered=True)
    r = pa.table({"x": [1, 2, 3, 4, 5], "level": levels})
    found = splitjoin.sql("SELECT x, level, count(a) AS n FROM r LEFT JOIN s ON r.x = s.a GROUP BY r "
                          "ORDER BY level DESC, count(a), x DESC", r=r, s=S, device="golden")
    assert found["x"].to_pylist() == [3, 5, 1, 2, 4]


def test_streams_have_no_end() -> None:
    select = splitjoin.sql("SELECT x FROM r, s ORDER BY x LIMIT 2", r=R.schema, s=S.schema, window="ROWS 3")
    said = select.explain()
    assert "order by         x, ascending, NULL last; on the result\nlimit            2 rows\n" in said
    with pytest.raises(StatementError, match=r"ORDER BY needs all rows of the result, .*; leave it out, and sort or "
                                             r"cut what a session gives\n    SELECT x FROM r, s ORDER BY x LIMIT 2\n"):
        splitjoin.open(select, "golden")
