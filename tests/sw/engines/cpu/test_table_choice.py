"""Rows of whole tables by ranges of sorted keys: golden's rows in golden's order, and DuckDB's."""

from __future__ import annotations

import gc
import threading
from dataclasses import replace
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from bench.writings import WRITINGS, forms
from hypothesis import given, settings, strategies as st

from splitjoin.engines.arrival import arrivals
from splitjoin.engines.cpu import CpuDevice, band_join, band_join as divided_join, table_choice
from splitjoin.engines.cpu.as_of_join import PartnerJoin
from splitjoin.engines.cpu.band_join import BandJoin, BucketJoin, DisjunctionJoin, ways
from splitjoin.engines.cpu.condition import Condition
from splitjoin.engines.cpu.table_choice import TABLE_ALGORITHMS
from splitjoin.engines.cpu.table_windows import Spans
from splitjoin.engines.cpu.table_work import plain_work
from splitjoin.engines.tuning import Tuning
from splitjoin.joins.join import join
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema

from ....support.patience import until
from ....support.sampling import at_length, examples
from ...sessions.test_feeding import rows_of
from .test_as_of_join import CONDITIONS, WINDOWS, plain, rising, tables

#: The algorithms but the one that finds the partners that decide alone.
WITHOUT_PARTNERS = tuple(one for one in TABLE_ALGORITHMS if one is not PartnerJoin)
RANGES = (
    "r.x < s.x AND r.u > s.u", "r.x < s.u AND s.x < r.u", "r.k = s.k AND r.x < s.x AND r.k > s.x",
    "r.k = s.k AND r.x >= s.x AND r.x <= s.u", "r.k = s.k AND r.t = s.t AND r.f < s.f AND r.x > s.x",
    "r.f BETWEEN s.f - 1 AND s.f + 1 AND r.x <= s.x", "r.x < s.u + 3 AND r.u - 2 >= s.x",
    "r.x - s.x < 2 AND r.t >= s.t", "r.x <= s.x * 3 AND r.x >= s.x * 2",
    "r.f < s.x AND s.f < r.x", "r.x BETWEEN s.k AND s.x AND r.k <> s.x",
    "least(r.x, s.x) - greatest(r.k, s.k) >= 1", "3 - greatest(r.x - s.k, s.x) < least(r.k, s.u) + r.k")


BUCKETS = ("r.x BETWEEN s.x - 1 AND s.x + 1 AND r.k BETWEEN s.k AND s.k + 2",
           "s.x BETWEEN r.x AND r.x + 1 AND abs(r.f - s.f) <= 2",
           "abs(r.x - s.x) <= 1 AND r.k - s.k <= 1 AND r.u <> s.x")


@settings(max_examples=examples(60), deadline=None)
@given(tables(), tables(), st.sampled_from(WINDOWS), st.sampled_from(["inner", "full", "semi", "anti"]),
       st.sampled_from(BUCKETS), st.sampled_from([1, 3]))
def test_buckets_give_goldens_rows(r: pa.Table, s: pa.Table, window: Any, how: str, on: str,
                                   threads: int) -> None:
    call: dict[str, Any] = {"on": on, "window": window, "how": how, "time": "ts" if "RANGE" in str(window) else None}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_choice, "TABLE_ALGORITHMS", (BucketJoin,))
        patch.setattr(divided_join, "_FEWEST", 1)
        found = join(r, s, device=CpuDevice(threads=threads, tuning=Tuning(table_share=1)), **call)
    expected = join(r, s, device="golden", **call)
    assert rows_of(found.table) == rows_of(expected.table)
    assert found.items.tolist() == expected.items.tolist()


def test_two_bands_are_joined_by_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_choice, "TABLE_ALGORITHMS", (BucketJoin,))
    random = np.random.default_rng(1)
    r, s = (pa.table({name: random.integers(0, 3000, 4000) for name in names}) for names in ("xy", "ab"))
    call: dict[str, Any] = {"on": "abs(r.x - s.a) <= 9 AND abs(r.y - s.b) <= 9", "order": "left"}
    found = join(r, s, device=CpuDevice(threads=1), **call)
    assert found.plan.endswith("in buckets of another key")
    near = (np.abs(np.subtract.outer(r["x"].to_numpy(), s["a"].to_numpy())) <= 9) & (
        np.abs(np.subtract.outer(r["y"].to_numpy(), s["b"].to_numpy())) <= 9)
    assert [list(row.values()) for row in found.to_pylist()] == [
        [*r.slice(int(i), 1).to_pylist()[0].values(), *s.slice(int(j), 1).to_pylist()[0].values()]
        for i, j in np.argwhere(near)]


def test_a_slice_that_lacks_the_way_of_the_first_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the second slice no bound of the two ranges excludes a key, so it has no two ranges."""
    monkeypatch.setattr(divided_join, "_UNEVEN", 1)
    r = pa.table({"x": [None, None, -3, 0], "u": [None, None, 0, 0]})
    s = pa.table({"x": [-3] * 5 + [0] + [-3] * 7, "u": [0] * 12 + [1 << 61]})
    found = join(r, s, on="r.x < s.u AND s.x < r.u", device=CpuDevice(threads=1, tuning=Tuning(table_rows=3)))
    assert found.plan == "rows of whole tables, by a band join, two ranges"
    assert rows_of(found.table) == rows_of(join(r, s, on="r.x < s.u AND s.x < r.u", device="golden").table)


@settings(max_examples=examples(150), deadline=None)
@given(tables(), tables(), st.data())
def test_every_way_gives_goldens_rows_in_its_order(r: pa.Table, s: pa.Table, data: st.DataObject) -> None:
    window = data.draw(st.sampled_from(WINDOWS))
    call: dict[str, Any] = {"how": data.draw(st.sampled_from(["inner", "left", "right", "full", "semi", "anti"])),
                            "order": data.draw(st.sampled_from(["total", "none", "left"])),
                            "threads": data.draw(st.sampled_from([1, 3]))}
    if data.draw(st.booleans()) or "RANGE" in str(window):
        call["time"] = "ts"
    on = data.draw(st.sampled_from(CONDITIONS + RANGES))
    number, size = data.draw(st.integers(0, 3)), data.draw(st.sampled_from([2, 1 << 20]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_choice, "TABLE_ALGORITHMS", WITHOUT_PARTNERS)
        for module in (band_join, divided_join):
            patch.setattr(module, "ways", lambda *of: (lambda found: [found[number % len(found)]])(ways(*of)))
            patch.setattr(module, "cost_of", lambda *_: 0.0)
        if data.draw(st.booleans()):  # the longer table is joined slice by slice
            patch.setattr(divided_join, "_UNEVEN", 1)
        threads = call.pop("threads")
        slices = data.draw(st.sampled_from([3, 1 << 16]))
        device = CpuDevice(threads=threads, tuning=Tuning(table_share=1, table_pairs=size, table_rows=slices))
        found = join(r, s, on=on, window=window, device=device, **call)
    expected = join(r, s, on=on, window=window, device="golden", **call)
    assert found.plan.startswith("rows")
    if call["order"] == "none" and call["how"] == "inner":  # in any order
        assert sorted(map(repr, rows_of(found.table))) == sorted(map(repr, rows_of(expected.table)))
        return
    assert rows_of(found.table) == rows_of(expected.table), threads
    assert found.items.tolist() == expected.items.tolist()


@settings(max_examples=examples(40), deadline=None)
@given(tables(), tables(), st.data())
def test_alternatives_give_each_pair_once(r: pa.Table, s: pa.Table, data: st.DataObject) -> None:
    a, b, c = (data.draw(st.sampled_from(CONDITIONS + RANGES)) for _ in range(3))
    on = data.draw(st.sampled_from([f"({a}) OR ({b})", f"({a}) AND (({b}) OR ({c}))", f"({a}) OR ({b}) OR ({c})",
                                    f"CASE WHEN {a} THEN {b} ELSE {c} END", f"CASE WHEN r.x > 0 THEN {a} END OR {b}"]))
    call: dict[str, Any] = {"how": data.draw(st.sampled_from(["inner", "left", "full", "semi"])), "on": on,
                            "window": data.draw(st.sampled_from(WINDOWS[:3])), "order": "total"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_choice, "TABLE_ALGORITHMS", (DisjunctionJoin,))
        patch.setattr(DisjunctionJoin, "suits", property(lambda self: len(self.branches) > 0))
        found = join(r, s, **call)
    expected = join(r, s, **call, device="golden")
    assert rows_of(found.table) == rows_of(expected.table), found.plan
    assert found.items.tolist() == expected.items.tolist()


def test_bounds_of_an_alternative_are_an_equality_that_no_key_may_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of odd numbers there is no half, but the ends of the empty interval between both bounds are keys."""
    monkeypatch.setattr(table_choice, "TABLE_ALGORITHMS", (DisjunctionJoin,))
    monkeypatch.setattr(DisjunctionJoin, "suits", property(lambda self: len(self.branches) > 0))
    r, s = (pa.table({"x": range(9), "k": range(n, n + 9)}) for n in (1, 0))
    found = join(r, s, on="2 * s.x >= r.x AND (2 * s.x <= r.x OR r.k = s.k)", order="left")
    assert "equal keys" in found.plan
    assert list(zip(found["x_r"].to_pylist(), found["x_s"].to_pylist(), strict=True)) == sorted(
        [(2 * n, n) for n in range(5)] + [(n, n + 1) for n in range(8)])


@pytest.mark.parametrize("on", ["r.x = s.x", "r.x = s.x AND r.k = s.k", "r.wide = s.wide AND r.x = s.x"])
def test_lists_of_equal_keys_give_the_rows_of_sorted_ones(on: str) -> None:
    r, s = rising(21), rising(22, 2000)
    calls: tuple[dict[str, Any], ...] = ({}, {"time": "ts"}, {"time": "ts", "window": ("RANGE 90", "RANGE 2000")})
    for call, how in ((call, how) for call in calls for how in ("inner", "left", "right", "full")):
        found = []
        for by_lists in (True, False):
            with pytest.MonkeyPatch.context() as patch:
                if not by_lists:
                    patch.setattr(table_choice, "TABLE_ALGORITHMS", (BandJoin,))
                found.append(join(r, s, on=on, how=how, **call, threads=2))
        assert "symmetric hash join" in found[0].plan
        assert "band join" in found[1].plan
        assert found[0].items.tolist() == found[1].items.tolist()
        assert found[0].table.drop(["f_r", "f_s"]).equals(found[1].table.drop(["f_r", "f_s"]))


@pytest.mark.parametrize("on", ["abs(r.x - s.a) * 3 <= r.x", "s.a * 4 <= r.x * 5 AND s.a * 4 >= r.x * 3",
                                "s.b BETWEEN r.y AND r.y * 2 AND s.b >= r.y"])
def test_two_bounds_with_other_factors_are_no_equality(on: str) -> None:
    chance = np.random.default_rng(7)
    r, s = (pa.table({a: chance.integers(0, 40, 30), b: chance.integers(0, 80, 30) / 2}) for a, b in ("xy", "ab"))
    for how in ("inner", "semi", "anti"):
        expected = rows_of(join(r, s, on=on, how=how, device="golden").table)
        assert rows_of(join(r, s, on=on, how=how).table) == expected
        assert expected


def test_an_alternative_that_is_always_true_has_all_pairs() -> None:
    r, s = pa.table({"x": pa.array([None, 1])}), pa.table({"a": [1, 5]})
    assert len(join(r, s, on="TRUE OR r.x = s.a OR r.x < s.a")) == 4


def test_an_or_of_an_equality_and_a_range_compares_few_pairs() -> None:
    r, s = intervals(3, 4000), intervals(4, 3000)
    on = "r.st = s.en OR r.st < s.en AND s.st < r.en AND r.c = s.c OR CASE WHEN r.e = 1 THEN r.en = s.en END"
    found = join(r, s, on=on)
    assert found.plan.startswith("rows of whole tables, by a band join, equal keys or two ranges or")
    assert found.counters["candidates"] < 4 * len(found)
    assert sorted(plain(found.table)) == sorted(duckdb.sql(f"SELECT * FROM r JOIN s ON {on}").fetchall())


def intervals(seed: int, n: int) -> pa.Table:
    chance = np.random.default_rng(seed)
    start = chance.integers(0, 10 * n, n)
    return pa.table({"c": chance.integers(0, 5, n), "e": chance.integers(0, 3, n), "st": start,
                     "en": start + chance.integers(1, 60, n)})


@pytest.mark.parametrize(("on", "way"), [
    ("r.c = s.c AND r.st < s.en AND s.st < r.en", "two ranges"),
    at_length("r.c = s.c AND r.e = s.e AND r.st < s.en AND s.st < r.en", "two ranges"),
    ("r.c = s.c AND s.st <= r.st AND r.en <= s.en", "two ranges"),
    ("r.c = s.c AND least(r.en, s.en) - greatest(r.st, s.st) >= 5", "two ranges"),
    ("r.c = s.c AND r.st BETWEEN s.st AND s.en", "a range of r"),
    ("r.c = s.c AND s.st BETWEEN r.st AND r.en", "a range of s"),
    ("r.c = s.c AND abs(r.st - s.st) <= 9", "a range of"),
    ("r.c = s.c AND r.st = s.st", "equal keys")])
def test_intervals_with_equal_keys_are_one_search_each(on: str, way: str) -> None:
    r, s = intervals(1, 4000), intervals(2, 3000)
    for how in ("inner", "left", "full", "semi", "anti"):
        found = join(r, s, on=on, how=how)
        word = {"inner": "", "left": "LEFT", "full": "FULL", "semi": "SEMI", "anti": "ANTI"}[how]
        expected = duckdb.sql(f"SELECT * FROM r {word} JOIN s ON {on}").fetchall()
        assert sorted(plain(found.table), key=repr) == sorted(expected, key=repr)
        if how == "inner":
            assert way in found.plan
            assert found.counters["candidates"] <= 4 * len(found)
        assert rows_of(found.table) == rows_of(join(r, s, on=on, how=how, engine="nested").table)


@pytest.mark.parametrize("size", [24, 1 << 20])  # of a part, which is not to cut a run of 16
def test_two_inequalities_on_unrelated_keys_look_at_pairs_alone(size: int) -> None:
    def earners(seed: int) -> pa.Table:
        chance = np.random.default_rng(seed)
        salary = chance.integers(0, 10**7, 3000)
        return pa.table({"k": salary % 3, "salary": salary, "tax": 0.3 * salary + chance.normal(0, 9000, 3000)})

    r, s = earners(9), earners(10)
    device = CpuDevice(threads=3, tuning=Tuning(table_share=1, table_pairs=size))
    for on in ("r.salary > s.salary AND r.tax < s.tax", "r.k = s.k AND r.salary <= s.salary AND r.tax >= s.tax",
               "r.k = s.k AND r.tax < s.tax AND r.salary > s.salary + 5"):
        found = join(r, s, on=on, order="left", device=device)
        assert "a second key" in found.plan
        assert found.counters["candidates"] == len(found) > 1000
        assert sorted(plain(found.table)) == sorted(duckdb.sql(f"SELECT * FROM r JOIN s ON {on}").fetchall())


@pytest.mark.parametrize("condition", WRITINGS)
def test_equivalent_writings_have_as_many_candidates(condition: str) -> None:
    for how in ("inner", "semi"):
        tried, found = [], set()
        for of_r, of_s, on in forms(condition, how, 5000).values():
            made = join(of_r, of_s, on=on, how=how)
            tried.append(made.counters["candidates"])
            found.add(len(made))
        assert max(tried) <= 2 * min(tried), how
        assert any(tried) == (condition != "one inequality" or how == "inner")  # semi by one extreme
        assert len(found) == 1


def test_a_way_counts_its_candidates_about() -> None:
    r, s = intervals(5, 30_000), intervals(6, 30_000)
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), window="ROWS 30000",
                       on="r.c = s.c AND r.st < s.en AND s.st < r.en")
    incoming = arrivals(query, r, s)
    condition = Condition(query, incoming)
    best, *others = ways(condition, condition.groups(), Spans(query, incoming), plain_work())
    made = join(r, s, on="r.c = s.c AND r.st < s.en AND s.st < r.en").counters["candidates"]
    assert 0.8 * made < best.candidates < 1.25 * made
    assert all(way.candidates > 100 * made for way in others)


@pytest.mark.parametrize("how", ["inner", "left", "semi"])
def test_a_way_with_far_more_candidates_than_expected_is_left(how: str) -> None:
    r, s = intervals(7, 3000), intervals(8, 2500)
    call: dict[str, Any] = {"on": "r.c = s.c AND r.st < s.en AND s.st < r.en", "how": how}
    expected = join(r, s, **call, device=CpuDevice(engine="nested"))
    device = CpuDevice(threads=3, tuning=Tuning(table_share=1, table_pairs=1 << 12))

    def misled(alone: bool, *of: Any) -> list[Any]:
        best, *_, worst = ways(*of)
        return [replace(worst, candidates=1.0), *([] if alone else [best])]

    for alone in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(table_choice, "TABLE_ALGORITHMS", WITHOUT_PARTNERS)
            patch.setattr(band_join, "ways", partial(misled, alone))
            found = join(r, s, **call, device=device)
        assert ("two ranges" in found.plan) != alone
        assert found.plan.startswith("rows of whole tables") != alone  # where there is no other way, a session
        assert rows_of(found.table) == rows_of(expected.table)


def test_keys_that_s_has_not_meet_nothing_behind_a_range() -> None:
    """The ends of an interval that holds no key of S may each be another key."""
    r = pa.table({"k": [2, 2, 2, 0], "v": [7, 2, 4, 4]})
    s = pa.table({"k": [1, 0, 0], "a": [6, 0, 5]})
    found = join(r, s, on="s.k = r.k AND r.v < s.a").to_arrow()
    assert found.to_pylist() == [{"k_r": 0, "v": 4, "k_s": 0, "a": 5}]


def test_two_ranges_where_keys_of_r_lie_below_all_keys_of_s() -> None:
    """The pairs are divided by which key is greater: here one of R's is less than S's least."""
    r = pa.table({"x": pa.array([1, 0, -2, 0, -2, None], pa.int8()), "y": pa.array([2, 1, 1, 2, 0, None], pa.uint32())})
    s = pa.table({"a": [-1, -3, 3, 0, 1, None], "b": pa.array([1, 1, 0, 2, 3, 2], pa.uint32())})
    on = "r.x < s.a AND r.y BETWEEN s.b AND s.b + 2"
    def two_ranges(*of: Any) -> list[Any]:
        return [way for way in ways(*of) if way.name == "two ranges"]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(band_join, "ways", two_ranges)
        found = join(r, s, on=on)
    assert "two ranges" in found.plan
    assert found.to_arrow().equals(join(r, s, on=on, device="golden").to_arrow())


@pytest.mark.parametrize("nulls", [[], [None]])
@pytest.mark.parametrize("on", ["r.y BETWEEN s.b AND s.b + 2", "r.y >= s.b", "r.y <= s.b", "r.y < s.b + 1"])
def test_the_least_key_of_s_is_a_key_unless_it_is_null(on: str, nulls: list[None]) -> None:
    r = pa.table({"y": [1, 1, -1, -1, 0, 3, 2, 3, 0, *nulls]})
    s = pa.table({"b": pa.array([1, 1, 0, *nulls], pa.uint32())})
    for how in ("semi", "anti", "left", "inner"):
        found, wanted = (join(r, s, on=on, how=how, device=device).to_arrow() for device in ("cpu", "golden"))
        assert found.equals(wanted), how


@pytest.mark.usefixtures("own_garbage")
@pytest.mark.parametrize("call", [{"on": "abs(r.st - s.st) <= 9"}, {"on": "abs(r.st - s.st) <= 9", "order": "left"},
                                  {"on": "r.c = s.c", "how": "semi"},
                                  {"on": "r.c = s.c", "how": "semi", "order": "left"}])
def test_threads_end_with_the_join(call: dict[str, Any]) -> None:
    before = set(threading.enumerate())
    device = CpuDevice(threads=3, tuning=Tuning(table_share=1))
    found = join(intervals(7, 70_000), intervals(8, 70_000), **call, device=device)

    def ended() -> bool:
        gc.collect()
        return not {t for t in threading.enumerate() if "splitjoin" in t.name} - before

    until(ended)
    assert "3 of 3 threads" in found.plan
