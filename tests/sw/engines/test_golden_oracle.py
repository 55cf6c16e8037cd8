"""The golden model against DuckDB: random joins and the fixed scenarios, their order included."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.engines.device import PAIR, STAR, Items
from splitjoin.engines.golden import GoldenDevice
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from tests.support import scenarios
from tests.support.conformance import assert_conforms, groups, run
from tests.support.oracle import NS_PER_TICK, oracle
from tests.support.sampling import examples
from tests.support.strategies import COLUMN_TYPES, Scenario, scenario

#: Where DuckDB's own typing of the text differs from ours: exact integers, float32 as documented.
IN_DUCKDB = {
    "float-band": "CAST(abs(r.f - s.g) AS DOUBLE) <= CAST(0.3 AS DOUBLE)",
    "float-band-special": "CAST(abs(r.f - s.g) AS DOUBLE) <= CAST(0.3 AS DOUBLE) OR r.f = s.g",
    "float-greater": "r.f > s.g AND r.f + CAST(0.1 AS FLOAT) >= s.g",
    "bool-and-int8": "(r.ok = s.fine OR r.ok IS NULL) AND abs(CAST(r.tiny AS INT) - CAST(s.small AS INT)) > 100",
    "int64-extremes": "CAST(r.big AS HUGEINT) - s.huge > 1 AND r.big <> s.huge",
    "int64-band": "abs(CAST(r.big AS HUGEINT) - s.huge) <= 2",
}


@pytest.fixture(scope="module")
def db() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


@settings(max_examples=examples(150))
@given(case=scenario())
def test_random_joins_equal_the_oracle(db: duckdb.DuckDBPyConnection, case: Scenario) -> None:
    check(db, case)


@pytest.mark.parametrize("type_", COLUMN_TYPES, ids=str)
@settings(max_examples=examples(9))
@given(data=st.data())
def test_joins_on_one_type_equal_the_oracle(db: duckdb.DuckDBPyConnection, data: st.DataObject,
                                            type_: pa.DataType) -> None:
    check(db, data.draw(scenario(type_=type_)))


def check(db: duckdb.DuckDBPyConnection, case: Scenario) -> None:
    items = run(GoldenDevice(), query_of(case, "total"), case.r, case.s)
    assert probed(items) == oracle(db, case.r, case.s, on=case.on.oracle, window_r=case.windows.r,
                                   window_s=case.windows.s, time=case.time, integer_times=True)


@pytest.mark.parametrize("fixed", scenarios.SCENARIOS, ids=str)
def test_fixed_scenarios_equal_the_oracle(db: duckdb.DuckDBPyConnection, fixed: scenarios.Scenario) -> None:
    query = fixed.query()
    tick = 1 if query.time is None or query.time.tick is None else NS_PER_TICK[query.time.tick]
    extents = [(e.rows, None if e.length is None else e.length * tick) for e in (query.window_r, query.window_s)]
    expected = oracle(db, fixed.r, fixed.s, on=IN_DUCKDB.get(fixed.name, fixed.on), window_r=extents[0],
                      window_s=extents[1], time=None if fixed.time is None else "ts")
    assert probed(run(GoldenDevice(), query, fixed.r, fixed.s)) == expected
    assert len(expected) == fixed.pairs


def test_scenarios_are_as_small_as_they_promise() -> None:
    assert len({s.name for s in scenarios.SCENARIOS}) == len(scenarios.SCENARIOS)
    for fixed in scenarios.SCENARIOS:
        assert max(len(fixed.r), len(fixed.s)) <= 150
        with GoldenDevice().open(fixed.query("inner(1)")) as session:
            session.push(scenarios.arrivals_of(fixed))
            items = session.flush()
        # inner(1) has a star per comparison, so a probe's stars count its window.
        stars = items[items["kind"] == STAR]
        _, sizes = np.unique(stars[["r", "s"]], return_counts=True)
        assert max(sizes, default=0) <= 64, fixed.name


@settings(max_examples=examples(60))
@given(case=scenario())
def test_every_order_holds_the_same_pairs_and_its_own_stars(case: Scenario) -> None:
    kept = {}
    for order in ("none", "total", case.order):
        items = run(GoldenDevice(cores=2), query_of(case, order), case.r, case.s)
        # Where the input is cut into stretches makes no difference.
        assert_conforms(items, run(GoldenDevice(cores=2), query_of(case, order), case.r, case.s, cuts=(1, 4, 4)), order)
        kept[order] = probed(items)
        for side, n in ((0, len(case.r)), (1, len(case.s))):
            stars = [row for row, _ in groups(items.tolist(), side)] if order != "none" else []
            if order == "none":
                assert not (items["kind"] == STAR).any()
            elif order.startswith("outer"):
                every = int(order[6:-1] or 1) if "(" in order else 1
                assert stars == [*range(every - 1, n, every), *([n - 1] if n % every else [])]
            elif order == "total":
                assert stars == list(range(n))
            else:
                assert sorted(set(stars)) == list(range(n))
    assert kept["none"] == kept["total"] == kept[case.order]


def query_of(case: Scenario, order: str) -> Query:
    return Query.make(Schema.from_table("r", case.r), Schema.from_table("s", case.s), on=case.on.sql,
                      window=case.windows.spec, time=case.time, order=order)


def probed(items: Items) -> list[tuple[int, int, bool]]:
    """The pairs in order, and whether the R tuple was the probe."""
    return [(int(i["r"]), int(i["s"]), int(i["side"]) == 0) for i in items if i["kind"] == PAIR]
