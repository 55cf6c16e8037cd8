"""Kinds of join: the reference against DuckDB, and the operator against the reference, however its input is cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from splitjoin.base.errors import InputError, OrderError, UnsupportedError
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.device import ITEM, PAIR, STAR, Items
from splitjoin.engines.golden import GoldenDevice
from splitjoin.lang.kind import Kind
from splitjoin.lang.order import Order
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Schema
from splitjoin.lang.windows import Extent
from splitjoin.rows.kinds import KindOperator, OwnSide, reference_rows
from splitjoin.rows.kinds.undecided import Undecided

from ....support.conformance import run, slices
from ....support.deciding import decide
from ....support.kinds import KINDS, kind_oracle, plain_rows
from ....support.sampling import examples
from ....support.scenarios import SCENARIOS
from ....support.strategies import Scenario, scenario


@pytest.fixture(scope="module")
def db() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


def made(case: Any, kind: dict[str, Any], **more: Any) -> Query:
    return Query.make(Schema.from_table("r", case.r), Schema.from_table("s", case.s), time=case.time,
                      **{"order": "total", **kind, **more})


def kinds(time: object) -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from([kind for kind in KINDS if time is not None or kind.get("allow_exact", True)])


def in_parts(query: Query, case: Any, cuts: Sequence[int], lag: int, promise: bool) -> Items:
    """The rows from an operator that gets arrivals in slices, and the items of each slice ``lag`` slices later; with
    ``promise``, also the news that no earlier tuple will come.
    """
    decider, found, late = KindOperator(query), [], []
    counts = [0, 0]
    with GoldenDevice().open(query.pairs) as session:
        parts = slices(arrivals(query, case.r, case.s), cuts)
        for part, later in zip(parts, [*parts[1:], None], strict=True):
            decider.arrive(part)
            session.push(part)
            counts = [counts[0] + len(part.r), counts[1] + len(part.s)]
            late.append((session.poll(), (counts[0], counts[1])))
            if len(late) > lag:
                found.append(decider.take(*late.pop(0)).items)
            if promise and later is not None and later.ts is not None and len(later):
                found.append(decider.advance(int(later.ts[0])).items)
            state = decider.state()
            decider = KindOperator(query)
            decider.restore(state)
        found.append(decider.finish(np.concatenate([*(items for items, _ in late), session.flush()])).items)
    return np.concatenate(found)


@settings(max_examples=examples(40))
@given(case=scenario(), data=st.data())
def test_random_joins_equal_the_oracle(db: duckdb.DuckDBPyConnection, case: Scenario, data: st.DataObject) -> None:
    kind = data.draw(kinds(case.time))
    query = made(case, kind, on=case.on.sql, window=case.windows.spec)
    items = run(GoldenDevice(), query.pairs, case.r, case.s)
    whole = arrivals(query, case.r, case.s)
    expected = reference_rows(query, whole, items)
    out = [np.flatnonzero(OwnSide.of(query, side).ruled_out(whole.table(side))).tolist() for side in SIDES]
    assert plain_rows(expected) == kind_oracle(
        db, case.r, case.s, kind, on=case.on.oracle, window_r=case.windows.r, window_s=case.windows.s, time=case.time,
        integer_times=True, ruled_out=(out[0], out[1]))
    assert decide(query, whole, items).tolist() == expected.tolist()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(map(str, kind.values())))
def test_every_kind_of_every_scenario(kind: dict[str, Any]) -> None:
    """With ROWS, RANGE and both, with ties, NULL, NaN and silent sides; the input in parts or whole."""
    rows = 0
    for n, case in enumerate(SCENARIOS):
        if case.time is None and not kind.get("allow_exact", True):
            continue
        query = made(case, kind, on=case.on, window=case.window)
        items = run(GoldenDevice(), query.pairs, case.r, case.s)
        expected = reference_rows(query, arrivals(query, case.r, case.s), items)
        found = in_parts(query, case, [5 + n, 11 + n, 30, 31, 60 + n, 100], n % 3, n % 2 == 0)
        assert found.tolist() == expected.tolist(), case
        rows += len(plain_rows(expected))
    assert rows > 100


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.filter_too_much])
@given(case=scenario(type_=pa.int32(), max_rows=16), data=st.data())
def test_times_in_parts(case: Scenario, data: st.DataObject) -> None:
    """Partitions by time, each with the tuples of both windows' lengths before it, give the rows of the whole."""
    assume(case.time is not None and case.windows.r[0] is None and case.windows.s[0] is None)
    query = made(case, data.draw(kinds(case.time)), on=case.on.sql, window=case.windows.spec)
    whole = arrivals(query, case.r, case.s)
    assert whole.ts is not None
    warm = sum(length or 0 for length in (query.window_r.length, query.window_s.length))
    per = max(int(np.gcd.reduce(whole.ts)), 1)
    cuts = sorted(set(data.draw(st.lists(st.integers(-3, 15), max_size=4))))
    bounds = [None, *(cut * per for cut in cuts), None]
    found = []
    for start, end in pairwise(bounds):
        lowest = -(2**63) if start is None else start - warm
        at = np.flatnonzero((whole.ts >= lowest) & (whole.ts < (2**63 - 1 if end is None else end)))
        first = int(at[0]) if len(at) else len(whole)
        _, part = whole.split(first)
        part = part.split(len(at))[0] if part is not None else slices(whole, [len(whole)])[1]
        n_warm = 0 if start is None else int(np.searchsorted(part.ts, start))
        with GoldenDevice().open(query.pairs) as session:
            session.push(part)
            rows = KindOperator(query).between(part, session.flush(), n_warm, start, end).items
        before = [int(np.count_nonzero(whole.stream[:first] == side)) for side in (0, 1)]
        rows = rows[rows["kind"] == PAIR]
        found += [(r + before[0] if r >= 0 else r, s + before[1] if s >= 0 else s)
                  for r, s in zip(rows["r"].tolist(), rows["s"].tolist(), strict=True)]
    items = run(GoldenDevice(), query.pairs, case.r, case.s)
    expected = plain_rows(reference_rows(query, whole, items))
    assert found == expected


def test_times_at_the_ends_of_64_bits() -> None:
    low, high = -(2**63), 2**63 - 1
    r = pa.table({"ts": pa.array([low, -1, high], pa.int64())})
    s = pa.table({"ts": pa.array([low, 0, high], pa.int64())})
    for window in ("RANGE 0", f"RANGE {high}", f"RANGE {2**64}"):
        for kind in KINDS:
            query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on="TRUE", window=window,
                               time="ts", **kind)
            items = run(GoldenDevice(), query.pairs, r, s)
            whole = arrivals(query, r, s)
            assert decide(query, whole, items).tolist() == reference_rows(query, whole, items).tolist()


def test_stars_stay_behind_their_probes() -> None:
    case = next(c for c in SCENARIOS if c.name == "band-range")
    query = made(case, {"how": "full"}, on=case.on, window=case.window)
    items = run(GoldenDevice(), query.pairs, case.r, case.s)
    found = decide(query, arrivals(query, case.r, case.s), items)
    waits = (found["kind"] == PAIR) & ((found["r"] < 0) | (found["s"] < 0))
    assert found[~waits].tolist() == items.tolist()
    assert int((found["kind"] == STAR).sum()) == len(case.r) + len(case.s)


def test_the_state_is_what_is_undecided() -> None:
    case = next(c for c in SCENARIOS if c.name == "band-rows-3")
    query = made(case, {"how": "left"}, on=case.on, window=case.window)
    operator = KindOperator(query)
    whole = arrivals(query, case.r, case.s)
    operator.arrive(whole)
    operator.take(run(GoldenDevice(), query.pairs, case.r, case.s), (len(case.r), len(case.s)))
    assert [len(operator.state()[f"{side}_time"]) for side in "rs"] == [3, 3]
    assert operator.needed == (len(case.r) - 3, len(case.s) - 3)


@pytest.mark.parametrize(("given_", "error", "message"), [
    *(({"how": how}, InputError,
       f"how must be 'inner', 'left', 'right', 'full', 'semi', 'anti', 'asof' or 'asof_left', not {how!r}{hint}")
      for how, hint in (("outer", "; write 'full'"), ("outr", "; write 'full'"), ("FULL OUTER", "; write 'full'"),
                        ("left_semi", "; write 'semi'"),
                        ("cross", "; for all pairs write how='inner' with on='TRUE'"),
                        ("LEFT", "; write 'left'"), ("asof_nearest", "; write how='asof', direction='nearest'"),
                        ("ful", " (did you mean 'full'?)"), ("all", ""))),
    ({"how": 3}, InputError,
     "how must be 'inner', 'left', 'right', 'full', 'semi', 'anti', 'asof' or 'asof_left', not 3"),
    ({"how": "left", "direction": "forward"}, InputError,
     "direction belongs to how='asof' and 'asof_left', but how is 'left'; leave direction out"),
    ({"how": "asof", "direction": "up"}, InputError,
     "direction must be 'backward', 'forward' or 'nearest', not 'up'"),
    ({"how": "asof", "direction": "backwards"}, InputError,
     "direction must be 'backward', 'forward' or 'nearest', not 'backwards' (did you mean 'backward'?)"),
    ({"how": "asof", "allow_exact": 1}, InputError, "allow_exact must be True or False, not 1"),
    ({"how": "asof", "allow_exact": False}, InputError,
     "allow_exact=False excludes equal times, so it needs a time column; name it with time=…"),
])
def test_wrong_options(given_: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        Kind.make(**given_, order=Order("total"), timed=False)
    assert str(raised.value) == message


def test_wrong_order() -> None:
    with pytest.raises(OrderError) as raised:
        Kind.make("left", order=Order("outer", 3), timed=True)
    assert str(raised.value) == ("a join of kind 'left' needs order 'total' or 'none', not 'outer(3)': its rows that "
                                 "wait for a decision belong to no probe")


def test_devices_refuse_other_kinds() -> None:
    from splitjoin.engines.cpu import CpuDevice

    case = SCENARIOS[0]
    query = made(case, {"how": "left"}, on=case.on, window=case.window)
    assert query.pairs == replace(query, kind=Kind())
    for device in (GoldenDevice(), CpuDevice()):
        with pytest.raises(UnsupportedError, match=r"open query\.pairs"):
            device.open(query)


def test_a_state_has_as_many_numbers_of_each_kind() -> None:
    saved = Undecided(Extent(rows=3, length=None), {})
    saved.append(np.arange(2), np.arange(2))
    state = saved.state()
    with pytest.raises(ValueError, match="more numbers of some kinds than of others"):
        Undecided(saved.extent, {}).restore(state | {"open": state["open"][:1]})
    (again := Undecided(saved.extent, {})).restore(state)
    assert len(again) == 2


def states() -> tuple[Query, dict[str, Any]]:
    """A query, and the state of its operator with arrivals whose pairs are not known, and with undecided tuples."""
    r = pa.table({"x": [1, 1], "ts": [3, 3]})
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", r), on="r.x = s.x", window="RANGE 9",
                       time="ts", how="asof", order="total")
    decider = KindOperator(query)
    decider.arrive(arrivals(query, r, r))
    decider.take(np.empty(0, ITEM), (2, 1))
    return query, decider.state()


@pytest.mark.parametrize(("changed", "message"), [
    (dict.fromkeys(("stream", "ruled_out"), np.zeros(10**7, np.int64)), "noted arrivals must have a stream"),
    ({"ruled_out": np.zeros(9, np.int64)}, "noted arrivals must have a stream"),
    ({"stream": np.array([256])}, "a stream, 0 or 1"),
    ({"done": np.array([3])}, r"two numbers from 0 to 2,305,843,009,213,693,952"),
    ({"done": np.array([2, -1])}, "two numbers from 0"), ({"done": np.array([2**62, 1])}, "two numbers from 0"),
    ({"r_first": np.array([-(2**63)])}, r"row ids must be from 0 to .*, not -9,223,372,036,854,775,808"),
    ({"s_first": np.array([2**63 - 1])}, "row ids must be from 0"),
    ({"r_back": np.array([10**12, -1])}, "must be among the 1 of S that have arrived"),
    ({"r_back": np.array([-2, -1])}, "must be among the 1 of S"),
])
def test_states_that_no_operator_has_are_refused(changed: dict[str, Any], message: str) -> None:
    """As compiled loops would read beyond arrays, or numbers overflow."""
    query, state = states()
    assert {len(state[name]) for name in ("stream", "ruled_out", "times")} == {1} and len(state["r_back"]) == 2
    KindOperator(query).restore(state)
    with pytest.raises(ValueError, match=message):
        KindOperator(query).restore(state | changed)


@pytest.mark.parametrize(("field", "value"), [("side", 2), ("side", 255), ("r", 2), ("s", -1), ("s", 2**62)])
def test_items_of_tuples_that_have_not_arrived_are_refused(field: str, value: int) -> None:
    query, state = states()
    decider = KindOperator(query)
    decider.restore(state)
    items = np.array([(PAIR, 1, 0, 1)], ITEM)
    items[field] = value
    with pytest.raises(ValueError, match="items must be of tuples that have arrived"):
        decider.take(items, (2, 2))
