"""Ranks of texts of whole tables: the order of their bytes, NULL below all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings, strategies as st

from splitjoin.engines.cpu import condition
from splitjoin.engines.cpu.condition import with_ranked_texts
from splitjoin.joins.join import join
from splitjoin.lang.eval.pairs import PairTest
from splitjoin.lang.ir import text
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Schema, Side
from tests.support.sampling import examples

PIECES = st.lists(st.sampled_from(["", "a", "\0", "é", "aaaaaaaa", "aaaaaaa\0"]), max_size=5).map("".join)
TEXTS = st.lists(st.none() | PIECES, max_size=9)
KINDS = [{"how": how} for how in ("inner", "left", "semi", "anti", "full")]


@given(TEXTS, TEXTS, TEXTS)
def test_ranks_are_in_the_order_of_bytes(x: list[str | None], low: list[str | None], high: list[str | None]) -> None:
    n = min(len(low), len(high))
    r = pa.table({"x": pa.array(x, pa.string())})
    s = pa.table({"low": pa.array(low[:n], pa.string()), "high": pa.array(high[:n], pa.string())})
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), window="ROWS 9",
                       on="r.x >= s.low AND r.x < s.high")
    predicate, tables = with_ranked_texts(query.predicate, {"r": r, "s": s})
    assert text(predicate) == ("((r.splitjoin rank 0 >= s.splitjoin rank 1) AND (r.splitjoin rank 0 < s.splitjoin "
                               "rank 2))")
    texts = [*x, *low[:n], *high[:n]]
    ranks = [rank for side in "rs" for column in tables[side].columns[len((r if side == "r" else s).columns):]
             for rank in column.to_pylist()]
    assert [a is None for a in texts] == [rank is None for rank in ranks]
    known = sorted({(t or "").encode() for t in texts})  # NULL takes the rank of the empty text
    assert [known.index(a.encode()) for a in texts if a is not None] == [rank for rank in ranks if rank is not None]


def test_other_comparisons_stay_as_they_are() -> None:
    r = pa.table({"x": ["b", "a" * 300], "y": ["b", "c"]})
    for on in ("r.x = 'b'", "r.x < 'b' AND r.y <> 'c'", "greatest(r.y, s.y) < s.x", "r.x < s.x"):  # too long a text
        query = Query.make(Schema.from_table("r", r), Schema.from_table("s", r), window="ROWS 9", on=on)
        tables: dict[Side, pa.Table] = {"r": r, "s": r}
        assert with_ranked_texts(query.predicate, tables) == (query.predicate, tables)


def test_texts_that_are_compared_by_equality_alone_have_numbers() -> None:
    r = pa.table({"x": ["b" * 300, "c", None], "y": ["b", "c", "d"]})
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", r), window="ROWS 9",
                       on="r.x = s.y AND r.x <> s.x AND r.x < s.y AND r.y < s.y")
    predicate, tables = with_ranked_texts(query.predicate, {"r": r, "s": r})  # the first is too long for ranks
    assert text(predicate) == ("((r.x = s.y) AND (r.splitjoin number 0 <> s.splitjoin number 1) AND (r.x < s.y) AND "
                               "(r.y < s.y))")
    assert [tables[side].columns[-1].to_pylist() for side in SIDES] == [[0, 1, None]] * 2


def test_columns_of_a_user_keep_their_names() -> None:
    r, s = pa.table({"x": ["a"], "splitjoin rank 0": ["q"], "splitjoin number 0": [7]}), pa.table({"y": ["b"]})
    for on in ("r.x < s.y", "r.x <> s.y"):
        assert join(r, s, on=on).to_arrow().to_pylist() == [{**r.to_pylist()[0], "y": "b"}]


@example(["\0" * 16, "\U0010ffff" * 4], ["\1" + "\0" * 15])  # 128 bits differ
@given(TEXTS, TEXTS)
def test_equal_texts_alone_have_equal_numbers(x: list[str | None], y: list[str | None]) -> None:
    r, s = pa.table({"x": pa.array(x, pa.string())}), pa.table({"y": pa.array(y, pa.string())})
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), window="ROWS 9", on="r.x = s.y")
    _, tables = with_ranked_texts(query.predicate, {"r": r, "s": s})
    numbers = [n for side in SIDES for n in tables[side].columns[-1].to_pylist()]
    assert [n is None for n in numbers] == [t is None for t in (*x, *y)]
    by_number = dict(zip(numbers, (*x, *y), strict=True))
    assert [by_number[n] for n in numbers] == [*x, *y] and len(by_number) == len({*x, *y})


def test_times_as_texts_are_found_by_one_range_each() -> None:
    n = 700
    stamps = [f"2026-01-01 {i // 3600:02}:{i // 60 % 60:02}:{i % 60:02}" for i in range(n + 3)]
    r, s = pa.table({"x": stamps[:n]}), pa.table({"low": stamps[:n], "high": stamps[3:]})
    found = join(r, s, on="r.x BETWEEN s.low AND s.high")
    assert len(found) == 4 * n - 6
    assert found.counters["candidates"] == len(found)
    assert found == join(r, s, on="r.x BETWEEN s.low AND s.high", device="golden")


@settings(max_examples=examples(40), deadline=None)
@given(TEXTS, TEXTS, st.sampled_from(["r.x < s.y", "r.x <= s.y AND r.x <> s.y", "NOT (r.x >= s.y) OR r.x = s.y",
                                      "coalesce(r.x, 'b') >= s.y AND r.n < s.m", "r.x = s.y",
                                      "r.x <> s.y AND r.n = s.m", "coalesce(r.x, 'b') = s.y OR r.x = s.y"]),
       st.sampled_from(KINDS))
def test_rows_are_golden(x: list[str | None], y: list[str | None], on: str, kind: dict[str, str]) -> None:
    r = pa.table({"x": pa.array(x, pa.string()), "n": pa.array(range(len(x)), pa.int64())})
    s = pa.table({"y": pa.array(y, pa.large_string()), "m": pa.array(range(len(y)), pa.int64())})
    found = join(r, s, on=on, **kind)
    assert found == join(r, s, on=on, device="golden", **kind)


def test_a_condition_is_planned_once_for_the_same_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = list[str]()
    make_plan = condition.make_plan
    monkeypatch.setattr(condition, "make_plan", lambda e: planned.append(text(e)) or make_plan(e))
    on = "abs(r.x - s.a) <= 7 AND r.x <> 1234"  # of no other test

    def pairs(values: list[int | None]) -> int:
        return len(join(pa.table({"x": values}), pa.table({"a": [3, 20]}), on=on).table)

    assert [pairs(values) for values in ([1, 9], [9, 1, 5], [1, 9])] == [2, 3, 2]
    assert len(planned) == 1
    assert [pairs(values) for values in ([1, None], [1, 27], [1, 9])] == [1, 2, 2]
    assert len(planned) == 3
    assert [pairs([1, n]) for n in range(30, 42)] == [1] * 12  # only the last plans are kept
    assert pairs([1, 9]) == 2
    assert len(planned) == 3 + 12 + 1


def test_candidates_of_an_alternative_are_verified_by_what_no_test_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by all alternatives, whose tests hold for codes that are there."""
    verified = list[str]()
    true = PairTest.true

    def noted(self: PairTest, *args: Any) -> Any:
        verified.append(text(self._predicate))
        return true(self, *args)

    monkeypatch.setattr(PairTest, "true", noted)
    n, chance = 400, np.random.default_rng(1)
    r, s = (pa.table({"x": chance.integers(0, 1 << 32, n) & chance.integers(0, 1 << 32, n)}) for _ in "rs")
    on = "(r.x & 65535 = s.x & 65535 OR r.x >> 20 = s.x >> 20 OR r.x % 77 = s.x % 77) AND bit_count(r.x ^ s.x) <= 9"
    found = join(r, s, on=on)
    assert verified
    assert {*verified} == {"(bit_count((r.x ^ s.x)) <= 9)"}
    assert found.table.equals(join(r, s, on=on, device="golden").table)
