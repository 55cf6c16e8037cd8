"""As-of, semi and anti joins of whole tables without the pairs that decide nothing: golden's rows, and DuckDB's."""

from __future__ import annotations

from itertools import product
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.engines.cpu import CpuDevice, as_of_join, table_choice
from splitjoin.engines.cpu.as_of_join import PartnerJoin
from splitjoin.engines.device import PAIR
from splitjoin.engines.tuning import Tuning
from splitjoin.joins.join import join

from ....support.sampling import examples
from ...sessions.test_feeding import rows_of

TYPES = {"k": pa.int64(), "x": pa.int64(), "u": pa.uint64(), "f": pa.float64(), "t": pa.string()}
VALUES: dict[str, list[Any]] = {
    "k": [None, -1, 0, 1], "x": [None, -3, -1, 0, 1, 2, 5], "u": [None, 0, 2**61, 2**64 - 1],
    "f": [None, -2.5, -0.0, 0.0, 1.5, float("inf"), float("nan")], "t": [None, "", "a", "abcdefghi", "abcdefghj"]}
CONDITIONS = (
    "TRUE", "r.k = s.k", "r.t = s.t", "r.f = s.f", "r.k = s.k AND r.t = s.t AND r.u = s.u AND r.f = s.f",
    "r.x < s.x", "r.f >= s.f", "abs(r.x - s.x) <= 1", "abs(r.f - s.f) <= 1", "r.k = s.k AND r.x <= s.x",
    "r.k = s.k AND abs(r.x - s.x) <= 2 AND r.f < s.f", "r.t < s.t", "r.x = s.x OR r.k = s.k", "r.x > 1 AND s.k > 0",
    "r.x > 1 AND r.u = s.u AND s.f > 0", "r.u < s.u AND r.t <> s.t", "r.x + s.x > r.k * s.k", "r.x IS NULL",
    "r.x - s.x > 1", "r.x >= s.x AND s.x >= r.x AND r.k = s.k", "2 * r.x - s.x <= 3 AND 4 * r.x - 2 * s.x < 7",
    "2 * r.x = 2 * s.x + 1", "r.x <= s.x AND r.x - s.x >= 1", "r.x + r.k - s.x >= s.k AND r.t <= s.t",
    "r.k - s.k = NULL", "r.x + s.x > r.none AND r.k = s.k", "r.k = s.k AND r.x - s.x < NULL",
    "r.k = s.k AND NOT (s.ts > r.ts)", "r.ts - s.ts BETWEEN 0 AND 3", "2 * s.ts >= r.ts + r.x AND s.x >= r.x")
WINDOWS = (None, "ROWS 3", ("ROWS 1", "ROWS 5"), "RANGE 4", ("RANGE 0", "RANGE 9"), "ROWS 4 RANGE 3",
           "RANGE 9223372036854775807", "ROWS 99999999999999999999")


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    n, first = draw(st.integers(0, 14)), draw(st.integers(0, 1))  # with NULL, which is first, or without
    columns = {name: draw(st.lists(st.sampled_from(values[first:]), min_size=n, max_size=n))
               for name, values in VALUES.items()}
    times = draw(st.sampled_from([[-2**63, 0, 1, 2, 3, 5, 8, 2**63 - 1], [-9, -7, -6, -2, 0, 1, 1, 3]]))
    ts = sorted(draw(st.lists(st.sampled_from(times), min_size=n, max_size=n)))
    return pa.table({"ts": pa.array(ts, pa.int64()),
                     **{name: pa.array(values, TYPES[name]) for name, values in columns.items()}, "none": pa.nulls(n)})


@settings(max_examples=examples(80), deadline=None)
@given(tables(), tables(), st.data())
def test_rows_and_their_order_are_goldens(r: pa.Table, s: pa.Table, data: st.DataObject) -> None:
    window = data.draw(st.sampled_from(WINDOWS))
    kind: dict[str, Any] = {"how": data.draw(st.sampled_from(["semi", "anti", "asof", "asof_left"]))}
    if data.draw(st.booleans()) or "RANGE" in str(window):
        kind["time"] = "ts"
    if kind["how"].startswith("asof"):
        kind["direction"] = data.draw(st.sampled_from(["backward", "forward", "nearest"]))
        kind["allow_exact"] = "time" not in kind or data.draw(st.booleans())
    on = data.draw(st.sampled_from(CONDITIONS))
    threads = data.draw(st.sampled_from([1, 3]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(as_of_join, "suits_search", lambda *_: True)
        device = CpuDevice(threads=threads, tuning=Tuning(table_share=1, table_rows=5, table_part=1))
        found = join(r, s, on=on, window=window, **kind, device=device)
    expected = join(r, s, on=on, window=window, device="golden", **kind)
    assert found.plan.startswith("rows without pairs")
    assert found.items.tolist() == expected.items.tolist()
    assert rows_of(found.table) == rows_of(expected.table)


def large(seed: int, n: int = 20_000) -> pa.Table:
    chance = np.random.default_rng(seed)
    return pa.table({"ts": np.sort(chance.permutation(8 * n)[:n]), "k": chance.integers(0, 300, n),
                     "x": chance.integers(0, n, n)})


def plain(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_as_of_joins_are_duckdbs() -> None:
    r, s = large(1), large(2)
    for how, op, on in (("asof", ">=", "r.k = s.k"), ("asof_left", "<", "r.k = s.k"), ("asof", ">=", "TRUE")):
        direction = "backward" if op == ">=" else "forward"
        found = join(r, s, on=on, time="ts", how=how, direction=direction, allow_exact=op == ">=")
        expected = duckdb.sql(f"SELECT r.*, s.* FROM r ASOF {'LEFT' if how == 'asof_left' else ''} JOIN s "
                              f"ON {on} AND r.ts {op} s.ts ORDER BY r.ts").fetchall()
        assert sorted(plain(found.table)) == expected  # rows come as they are decided


@pytest.mark.parametrize("on", ["r.x < s.x - 2800", "abs(r.x - s.x) <= 0", "r.k = s.k AND r.x > s.x + 2600",
                                "r.k = s.k AND r.x BETWEEN s.x AND s.x + 9"])
def test_semi_and_anti_joins_are_duckdbs(on: str) -> None:
    r, s = large(3, 3000), large(4, 3000)
    for how, word in (("semi", ""), ("anti", "NOT")):
        found = join(r, s, on=on, how=how)
        expected = duckdb.sql(f"SELECT r.* FROM r WHERE {word} EXISTS (SELECT 1 FROM s WHERE {on})").fetchall()
        assert found.plan.startswith("rows without pairs")
        assert sorted(plain(found.table)) == sorted(expected)


@pytest.mark.parametrize(("on", "late"), [("r.x = s.x", (1100, 3000)), ("r.k = s.k", (100, 1000)),
                                          ("r.x <= s.x", (0, 100))])
def test_few_or_many_partners_behind_their_tuples_leave_total_order(on: str, late: tuple[int, int]) -> None:
    n = 5000
    r, s = large(11, n), large(12, n)
    found = join(r, s, on=on, how="semi").items
    rows, name = [], on[2]
    mine, others = r.column(name).to_numpy(), s.column(name).to_numpy()
    for i, value in enumerate(mine):
        partners_ = np.flatnonzero(others == value if " = " in on else others >= value)
        if len(partners_):  # r0, s0, r1, s1, …
            rows.append((max(2 * i, 2 * int(partners_[0]) + 1), i))
    assert late[0] <= sum(at % 2 for at, _ in rows) <= late[1]
    assert [int(item["r"]) for item in found if item["kind"] == PAIR] == [i for _, i in sorted(rows)]


def test_a_semi_join_by_one_bound_compares_the_keys_beyond_all_before_them_alone() -> None:
    r, s = large(13), large(14)
    for on in ("r.x < s.x", "r.x >= s.x", "2 * r.x <= s.x + 7", "r.x - s.x > 9 AND r.x > s.x"):
        assert join(r, s, on=on, how="semi").counters["candidates"] < 50
    of_keys = join(r, s, on="r.k = s.k AND r.x < s.x", how="semi")  # by pairs, each tuple would have some 30
    assert of_keys.counters["candidates"] <= len(r) and "beyond each bound" in of_keys.plan
    assert join(r, s, on="r.k = s.k", how="anti").counters["candidates"] <= len(r)


def rising(seed: int, n: int = 3000) -> pa.Table:
    """Keys and values of which some are NULL; values that rise, so that most first partners come late."""
    chance = np.random.default_rng(seed)
    key = chance.integers(-20, 20, n)
    return pa.table({"ts": np.sort(chance.integers(0, n, n)), "n": key, "wide": key * 10**13,
                     "k": pa.array(key, mask=chance.random(n) < 0.1), "x": np.arange(n) + chance.integers(0, 900, n),
                     "f": pa.array(np.where(key == 3, np.nan, np.arange(n) % 700 * (key % 2) * -1.0),
                                   mask=chance.random(n) < 0.1)})


@pytest.mark.parametrize("on", ["r.n = s.n", "r.wide = s.wide AND r.k = s.k", "r.f = s.f", "r.x < s.x - 400",
                                "r.f <= s.f", "r.n = s.n AND s.x < r.x - 1500", "r.k = s.k AND r.f > s.f",
                                "r.wide = s.wide AND r.f < s.f AND r.n = s.k"])
def test_tuples_with_a_partner_are_found_by_loops_as_by_searches(on: str) -> None:
    r, s, device = rising(15), rising(16, 2000), CpuDevice(threads=2, tuning=Tuning(table_rows=700))  # slices
    for call in ({}, {"time": "ts"}, {"order": "left"}):
        for how in ("semi", "anti"):
            found = []
            for by_loops in (True, False):
                with pytest.MonkeyPatch.context() as patch:
                    if not by_loops:
                        patch.setattr(table_choice, "TABLE_ALGORITHMS", (PartnerJoin,))
                    found.append(join(r, s, on=on, how=how, **call, device=device))
            assert found[0].plan.startswith("rows without pairs, by ")
            assert found[0].table.drop(["f"]).equals(found[1].table.drop(["f"]))  # as NaN equals nothing
            assert found[0].items.tolist() == found[1].items.tolist()


def test_a_condition_that_few_pairs_meet_is_left_to_the_loops_that_make_all_pairs() -> None:
    r, s = large(5, 3000), large(6, 3000)
    assert not join(r, s, on="r.x = s.x OR r.k + s.k = 10", time="ts", how="asof").plan.startswith("rows without")
    assert join(r, s, on="r.x < s.x OR r.k = s.k", time="ts", how="asof").plan.startswith("rows without pairs")


def test_an_engine_that_is_asked_for_makes_pairs() -> None:
    r, s = large(7, 500), large(8, 500)
    found = join(r, s, on="r.x < s.x", how="semi", device=CpuDevice(engine="nested"))
    assert "pairs" not in found.plan
    assert rows_of(found.table) == rows_of(join(r, s, on="r.x < s.x", how="semi").table)


def test_rows_go_to_a_file_as_to_memory(tmp_path: Any) -> None:
    r, s = large(9), large(10)
    there = join(r, s, on="r.k = s.k", time="ts", how="asof_left", to=tmp_path / "rows.parquet")
    assert rows_of(there.table) == rows_of(join(r, s, on="r.k = s.k", time="ts", how="asof_left").table)
    assert there.plan.startswith("rows without pairs")


@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
@pytest.mark.parametrize("how", ["asof", "asof_left"])
def test_items_in_the_order_of_r_are_goldens(how: Any, direction: Any) -> None:
    r = pa.table({"ts": [1, 4, 4, 6], "k": [0, 1, 0, 0]})
    s = pa.table({"ts": [2, 3, 5, 7], "k": [0, 0, 1, 0]})
    found, wanted = (join(r, s, on="r.k = s.k", time="ts", how=how, direction=direction, order="left", device=device)
                     for device in ("cpu", "golden"))
    assert found.items.tolist() == wanted.items.tolist()
    assert found.table.equals(wanted.table)


def crowded(seed: int, n: int = 70) -> pa.Table:
    """Times that many rows of both tables share, keys of which some are NULL, and others that are not."""
    chance = np.random.default_rng(seed)
    key = chance.integers(0, 5, n)
    return pa.table({"ts": np.sort(chance.integers(-12, 12, n)), "k": pa.array(key, mask=chance.random(n) < 0.1),
                     "n": key})


@pytest.mark.parametrize("how", ["asof", "asof_left"])
@pytest.mark.parametrize("window", [None, "RANGE 1", ("RANGE 0", "RANGE 3"), ("RANGE 2", "RANGE 1")], ids=str)
def test_nearest_partners_at_times_of_many_rows_are_goldens(how: str, window: Any) -> None:
    """Rows that one time decides are ordered by what decides them: times that pass, tuples of R, and partners."""
    r, s = crowded(1), crowded(2)
    for on, allow_exact in (("r.k = s.k", True), ("r.n = s.n", False), ("r.k = s.n", True), ("TRUE", False),
                            ("r.n = s.n AND r.k <= 3", True)):
        call: dict[str, Any] = {"on": on, "window": window, "time": "ts", "how": how, "direction": "nearest",
                                "allow_exact": allow_exact}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(as_of_join, "suits_search", lambda *_: True)
            found = join(r, s, **call, device=CpuDevice(tuning=Tuning(table_rows=5)))
        expected = join(r, s, device="golden", **call)
        assert found.items.tolist() == expected.items.tolist()
        assert rows_of(found.table) == rows_of(expected.table)


@pytest.mark.parametrize("on", ["r.t < s.t", "r.k = s.k AND r.t < s.t", "r.k = s.k AND r.u >= s.u",
                                "r.f >= s.f AND s.k > 0"])
def test_an_inequality_of_any_type_asks_for_the_extreme_of_each_key(on: str) -> None:
    r = pa.table({name: pa.array([*values, *values[1:]], TYPES[name])[:6] for name, values in VALUES.items()})
    for how in ("semi", "anti"):
        assert "hash semi join on the first key beyond each bound" in join(r, r, on=on, how=how).plan


@pytest.mark.parametrize(("on", "sign"), [("r.x < s.a", 1), ("r.x <= s.a", 1), ("r.x > s.a", -1)])
def test_a_few_values_behind_many_rows_exceed_theirs(on: str, sign: int) -> None:
    values: list[int | None] = [sign * (n % 50) for n in range(1030)]
    values[1026:1030] = [sign * 60, None, sign * 70, sign * 65]
    r = pa.table({"x": pa.array([*(sign * x for x in (10, 49, 50, 59, 60, 65, 69, 70)), None], pa.int64())})
    s = pa.table({"a": pa.array(values, pa.int64())})
    for how, order in product(("semi", "anti"), ("total", "left")):
        call: dict[str, Any] = {"on": on, "how": how, "order": order}
        assert rows_of(join(r, s, **call).table) == rows_of(join(r, s, device="golden", **call).table), call


@pytest.mark.parametrize(("direction", "on"), [
    ("backward", "r.k = s.k AND s.ts <= r.ts"), ("backward", "r.k = s.k AND r.ts - s.ts BETWEEN 0 AND 9"),
    ("backward", "NOT (s.ts < r.ts - r.x) AND s.k = r.k AND NOT (s.ts - r.ts > 5)"),
    ("forward", "s.ts >= r.ts AND s.ts <= r.ts + 9 AND r.k = s.k"), ("forward", "r.k = s.k AND s.ts < r.ts + r.x")])
def test_bounds_of_time_in_the_condition_look_at_one_partner(direction: str, on: str) -> None:
    """As the direction and a tolerance: what is not within them of the nearest one is not within them of others."""
    r, s = large(5, 400), large(6, 400)
    found, wanted = (join(r, s, on=on, time="ts", how="asof_left", direction=direction, device=device)
                     for device in ("cpu", "golden"))
    assert found.plan.startswith("rows without pairs, by equal keys and time")
    assert found.items.tolist() == wanted.items.tolist()
