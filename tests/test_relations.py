"""Relations between answers, and between the work for them, that hold without any oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from bench.writings import STATEMENTS, stated
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin.base import recent
from splitjoin.engines.cpu import condition
from splitjoin.joins.sql import database as beside
from splitjoin.plan.passes import strength
from tests.support.databases import database, wanted
from tests.support.sampling import examples
from tests.support.writings import SHAPES, Writer, tables

#: Conditions over x, y, k of R and a, b, j of S, each with its sides swapped.
CONDITIONS = {
    "r.x = s.a": "s.x = r.a",
    "abs(r.x - s.a) <= 1": "abs(s.x - r.a) <= 1",
    "r.k = s.j AND r.x < s.a": "s.k = r.j AND s.x < r.a",
    "r.x < s.b AND s.a < r.y": "s.x < r.b AND r.a < s.y",
    "r.x <> s.a": "s.x <> r.a",
    "r.k = s.j OR r.x > s.a": "s.k = r.j OR s.x > r.a",
    "(r.x * s.a) % 3 = 1": "(s.x * r.a) % 3 = 1",
    "r.x IS NOT DISTINCT FROM s.a AND r.y > 2": "s.x IS NOT DISTINCT FROM r.a AND s.y > 2",
}
conditions = st.sampled_from(list(CONDITIONS))
#: Those that take long, as they compile kernels for other conditions, have a part of them in CI.
few_conditions = st.sampled_from(list(CONDITIONS)[1:examples(8)])
windows = st.one_of(st.none(), st.integers(0, 9).map(lambda n: f"RANGE {n}"),
                    st.integers(1, 6).map(lambda n: f"ROWS {n}"))
_values = st.one_of(st.none(), st.integers(0, 5))


def _tables(names: tuple[str, str, str], number: str) -> st.SearchStrategy[pa.Table]:
    """Tables with rising times and rows that have a number."""
    rows = st.lists(st.tuples(st.integers(0, 3), _values, _values, _values), max_size=20)

    def table(rows: list[tuple[int, int | None, int | None, int | None]]) -> pa.Table:
        steps = [row[0] for row in rows]
        columns = {"ts": [sum(steps[:i + 1]) for i in range(len(steps))], number: list(range(len(steps)))}
        columns |= {name: [row[i] for row in rows] for i, name in enumerate(names, 1)}  # type: ignore[misc]
        return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})

    return rows.map(table)


left, right = _tables(("x", "y", "k"), "n"), _tables(("a", "b", "j"), "m")


def _pairs(r: pa.Table, s: pa.Table, on: str, /, **options: Any) -> list[tuple[int, int]]:
    """The numbers of the rows of each pair, in the order in which they come."""
    found = splitjoin.join(r, s, on=on, select=["r.n", "s.m"] if "n" in r.column_names else ["s.n", "r.m"],
                           **options).table
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


@settings(max_examples=examples(40), deadline=None)
@given(left, right, few_conditions)
def test_a_condition_its_negation_and_its_being_null_part_the_product(r: pa.Table, s: pa.Table, on: str) -> None:
    found = [pair for text in (on, f"NOT ({on})", f"({on}) IS NULL") for pair in _pairs(r, s, text, order="none")]
    assert sorted(found) == [(n, m) for n in range(len(r)) for m in range(len(s))]


@settings(max_examples=examples(40), deadline=None)
@given(left, right, conditions, st.integers(0, 9), st.integers(0, 9), st.sampled_from(["inner", "left", "full"]))
def test_sides_may_be_swapped(r: pa.Table, s: pa.Table, on: str, of_r: int, of_s: int, how: str) -> None:
    window = {"window": (f"RANGE {of_r}", f"RANGE {of_s}"), "time": "ts"}
    other = {"window": (f"RANGE {of_s}", f"RANGE {of_r}"), "time": "ts"}
    swapped = {"inner": "inner", "left": "right", "full": "full"}[how]
    assert Counter(_pairs(r, s, on, how=how, **window)) == Counter(
        _pairs(s, r, CONDITIONS[on], how=swapped, **other))


@settings(max_examples=examples(30), deadline=None)
@given(left, right, windows, st.sampled_from(["inner", "left", "semi", "anti"]))
def test_an_equality_is_a_range(r: pa.Table, s: pa.Table, window: str | None, how: str) -> None:
    options: dict[str, Any] = {"how": how} | ({} if window is None else {"window": window, "time": "ts"})
    answers = [splitjoin.join(r, s, on=on, **options).table for on in (
        "r.x = s.a", "r.x <= s.a AND r.x >= s.a", "r.x BETWEEN s.a AND s.a", "abs(r.x - s.a) < 1")]
    assert all(answer.equals(answers[0]) for answer in answers)


@settings(max_examples=examples(40), deadline=None)
@given(left, right, few_conditions, st.integers(2, 9))
def test_a_window_is_its_parts(r: pa.Table, s: pa.Table, on: str, length: int) -> None:
    def within(length: int, more: str = "") -> list[tuple[int, int]]:
        return _pairs(r, s, f"({on}){more}", window=f"RANGE {length}", time="ts")

    assert sorted(within(length)) == sorted(within(2) + within(length, " AND abs(r.ts - s.ts) > 2"))


@settings(max_examples=examples(30), deadline=None)
@given(left, right, conditions, windows.filter(bool), st.integers(2, 5))
def test_cores_and_threads_change_nothing(r: pa.Table, s: pa.Table, on: str, window: str, cores: int) -> None:
    options = {"window": window, "time": "ts"}
    one = _pairs(r, s, on, device="golden", **options)
    assert _pairs(r, s, on, device="golden", cores=cores, **options) == one
    assert _pairs(r, s, on, threads=cores, **options) == _pairs(r, s, on, threads=1, **options) == one


@settings(max_examples=examples(30), deadline=None)
@given(left, right, conditions, windows.filter(bool), st.integers(0, 30))
def test_rows_so_far_are_the_answer_on_what_has_come(r: pa.Table, s: pa.Table, on: str, window: str,
                                                     until: int) -> None:
    options = {"window": window, "time": "ts"}
    whole = _pairs(r, s, on, **options)
    so_far = [table.slice(0, sum(ts < until for ts in table["ts"].to_pylist())) for table in (r, s)]
    some = _pairs(so_far[0], so_far[1], on, **options)
    assert whole[:len(some)] == some


@settings(max_examples=examples(30), deadline=None)
@given(left, right, conditions, windows.filter(bool), st.lists(st.integers(0, 20), max_size=4))
def test_batches_may_be_cut_anywhere(r: pa.Table, s: pa.Table, on: str, window: str, cuts: Sequence[int]) -> None:
    query = splitjoin.query(r.schema, s.schema, on=on, window=window, time="ts")
    found: list[tuple[int, int]] = []
    with splitjoin.open(query, device="golden", select=["r.n", "s.m"]) as session:
        for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), None], strict=True):
            session.push_r(r.slice(begin, None if end is None else end - begin))
            session.push_s(s.slice(begin, None if end is None else end - begin))
            found += [tuple(row.values()) for row in session.poll().to_pylist()]
        found += [tuple(row.values()) for row in session.flush().to_pylist()]
    assert found == _pairs(r, s, on, window=window, time="ts")


# Cost: equivalent writings look at about the same number of pairs.

_N = 300
R, S = tables(_N)
WITH_NULLS = tables(_N, nulls=True)
_KEYS = "r.k = s.j"
#: Writings of one condition, beside the parts of `SHAPES`.
WRITINGS = [
    [f"{_KEYS} AND r.x < s.a", f"s.a > r.x AND {_KEYS}", f"CASE WHEN {_KEYS} THEN r.x < s.a ELSE FALSE END",
     f"({_KEYS} AND r.x < s.a) OR ({_KEYS} AND r.x < s.a AND r.y < s.b)"],
    [f"{_KEYS} AND (r.x < s.a - 99 OR r.y < s.b - 99)",
     f"({_KEYS} AND r.x < s.a - 99) OR ({_KEYS} AND r.y < s.b - 99)"],
    [f"{_KEYS} AND s.j > 3", f"{_KEYS} AND r.k > 3", f"{_KEYS} AND r.k > 3 AND s.j >= 4"],
    ["r.x < s.a AND r.y > s.b", "NOT (r.x >= s.a OR r.y <= s.b)", "s.b < r.y AND s.a > r.x"],
    ["r.t LIKE 'T1%' AND r.t = s.u", "r.t = s.u AND s.u LIKE 'T1%'"],
]


def _looked_at(on: str, r: pa.Table = R, s: pa.Table = S, **options: Any) -> tuple[int, int, str]:
    """The pairs that a join looks at, its rows, and its condition."""
    result = splitjoin.join(r, s, on=on, threads=1, **options)
    return result.counters.get("candidates", 0), len(result.table), on


def _check_costs(costs: Sequence[tuple[int, int, str]], slack: int = 0) -> None:
    assert len({rows for _, rows, _ in costs}) == 1, costs
    looked_at = [n for n, *_ in costs]
    most = 1.5 * max(min(looked_at), costs[0][1]) + slack  # no fewer than there are rows
    assert max(looked_at) <= most, f"looked at: {costs}"


@pytest.mark.parametrize("writings", [*SHAPES.values(), *WRITINGS], ids=lambda writings: writings[0])
def test_writings_look_at_the_same_pairs(writings: Sequence[str]) -> None:
    _check_costs([_looked_at(on, order="none") for on in writings])


def _check_random(seed: int, *, nulls: bool = False) -> None:
    writer = Writer(seed, nulls=nulls)
    on, *others = (writer.writing() for _ in range(3))
    r, s = WITH_NULLS if nulls else (R, S)
    costs = [_looked_at(on, order="none", r=r, s=s) for on in (on, *others)]
    _check_costs(costs, _N)


@pytest.mark.parametrize("nulls", [False, True], ids=["values", "nulls"])
def test_random_writings_look_at_the_same_pairs(nulls: bool) -> None:
    for seed in range(examples(50)):
        _check_random(seed, nulls=nulls)


@pytest.mark.parametrize(("module", "name", "planted"), [
    (condition, "with_sums_inside", lambda e: e),
    (strength, "_square", lambda *_: None),
    (strength, "_without_sign", lambda *_: None),
], ids=["sums", "squares", "signs"])
def test_random_writings_find_a_form_that_is_not_recognized(module: Any, name: str, planted: Any,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, name, planted)
    recent.forget()  # and the plans that conditions carry

    def check() -> None:
        for seed in range(examples(50)):
            _check_random(seed)

    try:
        with pytest.raises(AssertionError, match="looked at"):
            check()
    finally:
        recent.forget()


@pytest.mark.parametrize("how", ["left", "full", "semi", "anti"])
def test_writings_of_kinds_look_at_the_same_pairs(how: str) -> None:
    _check_costs([_looked_at(on, how=how) for on in SHAPES["band"][:12]])


@pytest.mark.parametrize("how", ["inner", "semi"])
@pytest.mark.parametrize("shape", ["equal", "equal keys", "equal texts", "equal times"])
def test_equalities_are_joined_by_one_algorithm(shape: str, how: str) -> None:
    on = [text for text in SHAPES[shape] if "starts_with" not in text]  # which is looked at text by text
    on += [f"{text} AND r.y >= 0" for text in on[::4]] + [f"r.t LIKE 't%' AND {text} AND s.b >= 0" for text in on[1::4]]
    assert len({splitjoin.join(R, S, on=text, how=how, threads=1).plan for text in on}) == 1


@pytest.mark.parametrize("writings", [
    ["r.x - s.a BETWEEN 0 AND 1", "r.x = s.a OR r.x = s.a + 1", "r.x - s.a IN (0, 1)", "s.a IN (r.x - 1, r.x)"],
    ["r.y <= s.b + 1", "r.y < s.b OR r.y IN (s.b + 1, s.b)"]])
def test_alternatives_whose_ranges_touch_are_one_range(writings: Sequence[str]) -> None:
    found = [splitjoin.join(R, S, on=f"{_KEYS} AND ({text})", threads=1) for text in writings]
    assert len({one.plan for one in found}) == 1
    assert all(one.table.equals(found[0].table) for one in found)


@pytest.mark.parametrize("how", ["asof", "asof_left"])
def test_what_an_as_of_join_implies_costs_nothing(how: str) -> None:
    _check_costs([_looked_at(on, how=how, time="ts") for on in (_KEYS, f"{_KEYS} AND s.ts <= r.ts")])


@pytest.mark.parametrize("aggregate", ["count(*)", "sum(s.a)", "sum(s.g)", "max(s.g)", "first(s.a)",
                                       "count(DISTINCT s.a)", "median(s.g)", "mode(s.u)", "stddev(s.g)"])
def test_bounds_in_on_are_a_window(aggregate: str) -> None:
    folded = {"aggregate": {"n": aggregate}, "by": "r", "how": "left"}
    _check_costs([(max(n - _N, 0), rows, on) for n, rows, on in [
        _looked_at(_KEYS, window="RANGE 5", time="ts", **folded),
        *(_looked_at(f"{_KEYS} AND {band}", **folded) for band in (
            "abs(r.ts - s.ts) <= 5", "r.ts BETWEEN s.ts - 5 AND s.ts + 5"))]])


def _stated(text: str, tables: dict[str, pa.Table], monkeypatch: pytest.MonkeyPatch) -> tuple[int, list[str], bool]:
    """The pairs that the last join of a statement looks at, its rows, and whether DuckDB was asked."""
    asked, opened = list[bool](), beside.connection

    def connection() -> Any:
        asked.append(True)
        return opened()

    with monkeypatch.context() as patched:
        patched.setattr(beside, "connection", connection)
        found = splitjoin.sql(text, tables=tables, threads=1)
    return found.counters["candidates"], sorted(map(repr, found.to_pylist())), bool(asked)


@pytest.mark.parametrize("name", STATEMENTS)
def test_statements_cost_what_the_join_costs_that_they_say(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (first, *others), tables = STATEMENTS[name], stated(600)
    looked_at, rows, asked = _stated(first, tables, monkeypatch)
    for text in others:
        found = _stated(text, tables, monkeypatch)
        assert found[1] == rows, text
        assert found[0] <= 1.5 * looked_at + len(rows), text
        assert found[2] <= asked, f"DuckDB is asked: {text}"


@pytest.mark.parametrize("text", [text for texts in STATEMENTS.values() for text in texts if "ASOF" not in text])
def test_statements_over_nulls_have_the_rows_of_duckdb(text: str) -> None:
    tables = stated(90, nulls=True)
    with database() as db:
        for name, table in tables.items():
            db.register(name, table)
        want = wanted(db.sql(text.replace("GROUP BY r", "GROUP BY ALL") if "sum(" in text else text)).to_pylist()
    assert Counter(map(repr, splitjoin.sql(text, tables=tables).to_pylist())) == Counter(map(repr, want))


_BAND = "FROM r JOIN s ON abs(r.ts - s.ts) <= 50"


@pytest.mark.parametrize("aggregate", ["count(*)", "sum(s.g)", "avg(s.a)", "min(s.u)"])
def test_groups_of_r_cost_as_much_as_its_rows(aggregate: str) -> None:
    looked_at = [splitjoin.sql(text, r=R, s=S, threads=1).counters["candidates"] for text in (
        f"SELECT r.ts, {aggregate} {_BAND} GROUP BY r", f"SELECT r.ts, {aggregate} {_BAND} GROUP BY r.ts",
        f"SELECT r.k, {aggregate} {_BAND} GROUP BY r.k", f"SELECT {aggregate} {_BAND}",
        f"SELECT upper(t), {aggregate} {_BAND} GROUP BY ALL HAVING count(*) > 3",
        f"SELECT r.*, {aggregate} || 's' {_BAND} GROUP BY r HAVING count(*) > 3")]
    twice = pa.concat_tables([R, R])  # identical rows are one base
    looked_at += [found.counters["candidates"] for found in (
        splitjoin.sql(f"SELECT r.ts, {aggregate} {_BAND} GROUP BY r", r=twice, s=S, threads=1),
        splitjoin.join(R, S, on="abs(r.ts - s.ts) <= 50", by=["k"], aggregate={"v": aggregate}, threads=1))]
    looked_at[-2] //= 2  # of twice as many rows
    assert max(looked_at) <= 1.5 * min(looked_at), looked_at


@pytest.mark.parametrize("aggregate", ["count(*)", "sum(s.g)", "max(s.u)", "stddev(s.a)"])
def test_two_ranges_are_folded_without_pairs(aggregate: str) -> None:
    on = "r.x <= s.b AND s.a <= r.y AND r.x <= r.y AND s.a <= s.b"
    made = [splitjoin.join(R, S, on=text, aggregate={"v": aggregate}, threads=1) for text in (
        on, on.replace("s.a <= r.y", "NOT (r.y < s.a)"), on.replace("r.x <= s.b", "r.x - s.b <= 0"))]
    assert {one.plan for one in made} == {"rows without pairs, by a range tree"}
    assert len({tuple(one.table["v"].to_pylist()) for one in made}) == 1


def test_an_open_end_costs_what_its_bounds_cost() -> None:
    folded = {"aggregate": {"n": "count(*)"}, "by": "r", "how": "left"}
    _check_costs([_looked_at(_KEYS, window=("RANGE 0", "RANGE 4"), closed="left", time="ts", **folded),
                  _looked_at(f"{_KEYS} AND s.ts >= r.ts - 4 AND s.ts < r.ts", **folded)])
