"""Order "none" and RANGE windows: a pair comes with its second tuple, a row of NULL when its tuple is decided, one of
an as-of join when S has passed what it may choose. `tests/machine` has random sessions, beside their definition.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import splitjoin
from splitjoin.engines.device import pairs

R = pa.schema([("ts", pa.int64()), ("x", pa.int32()), ("id", pa.int64())])
S = pa.schema([("ts", pa.int64()), ("a", pa.int32()), ("jd", pa.int64())])
LENGTHS = (4, 7)


def query(how: str = "inner", **more: Any) -> splitjoin.Query:
    return splitjoin.query(R, S, on="abs(r.x - s.a) <= 1", window=tuple(f"RANGE {n}" for n in LENGTHS), time="ts",
                           how=how, order="none", **more)


@pytest.mark.parametrize(("direction", "partner"), [("backward", 1), ("forward", 0), ("nearest", 1)])
@pytest.mark.parametrize("device", ["golden", "cpu"])
def test_of_equal_times_of_s_the_order_of_its_sources_decides(direction: str, partner: int, device: str) -> None:
    """Not the order in which they deliver."""
    with splitjoin.open(query("asof", direction=direction), device) as session:
        first, second = (session.source("s") for _ in range(2))

        def push(source: splitjoin.sessions.Source, ts: int, jd: int) -> None:
            source.push(pa.table({"ts": [ts], "a": [0], "jd": [jd]}, schema=S))

        session.push_r(pa.table({"ts": [5], "x": [0], "id": [0]}, schema=R))
        push(first, 5, 0)
        push(second, 5, 1)
        push(first, 5, 2)  # precedes the tuple of the second source, which is the last one
        push(first, 9, 3)
        if direction == "forward":  # the first partner is known as such
            assert session.poll()["jd"].to_pylist() == [partner]
        push(second, 6, 4)
        session.heartbeat(5, "s")
        assert direction == "forward" or session.poll()["jd"].to_pylist() == [partner]


@pytest.mark.parametrize(("exact", "at"), [(True, 6), (False, 5)])
def test_what_looks_backward_is_decided_once_s_has_passed_what_it_may_choose(exact: bool, at: int) -> None:
    with splitjoin.open(query("asof", direction="backward", allow_exact=exact), "golden") as session:
        session.push_s(pa.table({"ts": [3], "a": [0], "jd": [0]}, schema=S))
        session.push_r(pa.table({"ts": [5], "x": [0], "id": [0]}, schema=R))
        session.heartbeat(at - 1, "s")
        assert not len(session.poll())
        session.heartbeat(at, "s")
        assert session.poll()["jd"].to_pylist() == [0]


def test_of_equally_near_partners_the_one_before_is_chosen() -> None:
    with splitjoin.open(query("asof", direction="nearest"), "golden") as session:
        session.push_r(pa.table({"ts": [5], "x": [0], "id": [0]}, schema=R))
        session.push_s(pa.table({"ts": [3, 7], "a": [0, 0], "jd": [0, 1]}, schema=S))
        assert session.poll()["jd"].to_pylist() == [0]


def test_a_stream_that_is_ahead_waits_until_it_can_meet_something() -> None:
    """So that the tuples on the device are never much further apart than the windows."""
    with splitjoin.open(query(), "golden") as session:
        session.push_r(pa.table({"ts": range(0, 1000, 10), "x": [0] * 100, "id": range(100)}, schema=R))
        assert session.counters()["tuples_r"] == 0
        session.push_s(pa.table({"ts": [3], "a": [0], "jd": [0]}, schema=S))
        counters = session.counters()
        assert (counters["tuples_r"], counters["waiting"], len(session.poll())) == (2, 98, 2)
        session.push_s(pa.table({"ts": [500], "a": [0], "jd": [1]}, schema=S))
        assert [row["ts_r"] for row in session.poll().to_pylist()] == [500]
        assert session.counters()["restarts"] == 0  # nothing came out of order
        assert session.counters()["retained_r"] == 1
        session.close_s()
        assert session.counters()["waiting"] == 0


@pytest.mark.parametrize(("how", "first"), [("left", "r"), ("anti", "r"), ("right", "s"), ("full", "s")])
def test_a_tuple_waits_for_the_last_one_at_the_end_of_its_window(how: str, first: str) -> None:
    """Also in an unordered session, where rows by themselves are decided by the progress of the other stream."""
    other, length = ("s", LENGTHS[0]) if first == "r" else ("r", LENGTHS[1])
    with splitjoin.open(query(how), "golden") as session:
        def push(side: str, ts: int, value: int) -> None:
            made = {"ts": [ts], "x" if side == "r" else "a": [value], "id" if side == "r" else "jd": [0]}
            session.source_at(side, 0).push(pa.table(made, schema=R if side == "r" else S))

        session.source("r"), session.source("s")
        push(first, 10, 0)
        push(other, 10 + length, 5)
        assert not len(session.poll()), "another one may come at this time"
        push(other, 10 + length, 0)
        push(other, 11 + length, 5)
        assert len(session.poll()) == (how != "anti")


def test_row_ids_count_the_tuples_as_they_became_ready() -> None:
    with splitjoin.open(query(), "golden", lateness=5, punctuation=True) as session:
        session.push_s(pa.table({"ts": [3, 1], "a": [0, 0], "jd": [0, 1]}, schema=S))
        session.push_r(pa.table({"ts": [4], "x": [0], "id": [0]}, schema=R))
        session.push_s(pa.table({"ts": [2], "a": [0], "jd": [2]}, schema=S))
        items, rows = session.poll_items()
        assert [list(map(int, ids)) for ids in pairs(items)] == [[0, 0, 0], [0, 1, 2]]
        assert [row["ts_s"] for row in rows.to_pylist()] == [1, 3, 2]


@pytest.mark.parametrize("how", ["inner", "full"])
def test_memory_is_that_of_the_windows(how: str) -> None:
    """Rows leave when the other stream has passed them, whatever their own stream does."""
    with splitjoin.open(query(how), "golden", lateness=2) as session:
        for now in range(0, 400, 4):
            session.push_r(pa.table({"ts": [now, now - 2], "x": [0, 9], "id": [now, now + 1]}, schema=R))
            session.push_s(pa.table({"ts": [now - 1, now], "a": [0, 5], "jd": [now, now + 1]}, schema=S))
            session.poll()
            counters = session.counters()
            assert counters["retained_r"] + counters["retained_s"] <= 14
        session.heartbeat(10**6, "s")
        assert session.counters()["retained_r"] <= 6


@pytest.mark.parametrize("limit", [None, 50])
@pytest.mark.parametrize("how", ["inner", "full"])
def test_a_stream_far_ahead_in_many_slices(how: str, limit: int | None) -> None:
    """What the gate still holds keeps the rows of the other stream that it may meet."""
    n = 2000
    r = pa.table({"ts": range(n), "x": [i % 7 for i in range(n)], "id": range(n)}, schema=R)
    s = pa.table({"ts": range(n), "a": [i % 5 for i in range(n)], "jd": range(n)}, schema=S)
    found = []
    with splitjoin.open(query(how), "golden", limit=limit, when_full="raise") as session:
        session.push_r(r)
        for start in range(0, n, 500):
            while True:
                try:
                    session.push_s(s.slice(start, 500))
                    break
                except splitjoin.BackPressure:
                    found += session.poll().to_pylist()
        while len(batch := session.poll()):
            found += batch.to_pylist()
        found += session.flush().to_pylist()
    expected = splitjoin.join(r, s, on="abs(r.x - s.a) <= 1", window=("RANGE 4", "RANGE 7"), time="ts", how=how)
    assert sorted(map(repr, found)) == sorted(map(repr, expected.to_pylist()))
