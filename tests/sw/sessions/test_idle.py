"""Idle sources: a silent one holds nobody back until it speaks, by hand or by a clock."""

from __future__ import annotations

import asyncio
from threading import Thread
from typing import Any

import pytest

import splitjoin
from splitjoin import BackPressure, InputError, WindowError
from splitjoin.sessions import Limit, StreamJoin

from ...support.sessions import query, r, s


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def opened(clock: Clock, **more: Any) -> StreamJoin:
    return splitjoin.open(query(how="left", window="RANGE 2"), "golden", clock=clock,
                          **{"idle": "30 SECONDS", "lateness": 0} | more)


def ids(session: StreamJoin) -> list[tuple[Any, ...]]:
    return [(row["ts_r"], row["ts_s"]) for row in session.poll().to_pylist()]


def test_a_silent_stream_holds_nothing_back_until_it_speaks() -> None:
    clock = Clock()
    with opened(clock) as session:
        session.push_s(s(1))
        clock.now += 20
        session.push_r(r(1, 5, 9))
        clock.now += 9.5
        assert ids(session) == []
        clock.now += 0.5  # S has been silent for 30 seconds, R for 10
        assert ids(session) == [(1, 1), (5, None)]
        session.push_s(s(8, 10, 11))
        assert session.late_s()["ts"].to_pylist() == [8]  # R had got to 9
        session.push_r(r(20))
        assert ids(session) == [(9, 10)]  # it counts again
        clock.now += 29
        session.heartbeat(12, "s")  # speaks
        assert ids(session) == [(9, 11)]
        clock.now += 2
        session.push_r(r(25))
        assert ids(session) == []  # S has been silent for 2 seconds
        clock.now += 28
        assert ids(session) == [(20, None)]
        clock.now += 30  # all are silent: nothing moves
        assert ids(session) == []


def test_a_stream_that_never_spoke() -> None:
    clock = Clock()
    with opened(clock, idle=(None, "30 SECONDS")) as session:
        session.push_r(r(1, 5, 9))
        clock.now += 31
        assert ids(session) == [(1, None), (5, None)]
        session.push_s(s(7, 9))
        assert session.late_s()["ts"].to_pylist() == [7]
        clock.now += 31
        session.push_r(r(30))
        clock.now += 31
        session.push_s(s(31))
        assert ids(session) == [(9, 9)]  # R was never idle


@pytest.mark.parametrize("device", ["golden", "cpu"])
def test_by_hand_and_in_snapshots(device: str) -> None:
    made = query(how="left", window="RANGE 2")
    with splitjoin.open(made, device) as one:
        quick, slow = one.source("s"), one.source("s")
        one.push_r(r(1, 5))
        quick.push(s(1, 6))
        assert ids(one) == []
        slow.idle()
        assert ids(one) == [(1, 1)]
        one.push_r(r(6))
        saved = one.snapshot()
    with splitjoin.open(made, device) as two:
        two.restore(saved)
        two.heartbeat(9, "r")
        assert ids(two) == [(5, 6), (6, 6)]
        two.source_at("s", 0).push(s(9))
        # In order by itself, but behind the others: late, not an error.
        two.source_at("s", 1).push(s(4, 9))
        assert two.late_s()["ts"].to_pylist() == [4]
        two.idle("s")
        two.push_r(r(20))
        assert [row["ts_r"] for row in two.flush().to_pylist()] == [20]


def test_silence_before_a_snapshot_counts_behind_it() -> None:
    clock = Clock()
    with opened(clock) as one:
        one.push_s(s(1))
        clock.now += 20
        one.push_r(r(1, 5))
        saved = one.snapshot()
    clock.now = 7.0  # of another process
    with opened(clock) as two:
        two.restore(saved)
        clock.now += 9.5
        assert ids(two) == []
        clock.now += 0.5  # S has been silent for 20 seconds and 10
        assert ids(two) == [(1, 1)]


def test_a_push_that_waits_goes_on_when_the_other_source_is_idle() -> None:
    with splitjoin.open(query(), "golden", idle="50 MILLISECONDS", limit=Limit(waiting=2),
                        when_full="block") as session:
        session.push_r(r(1, 2))
        session.push_r(r(3))
        assert session.counters()["waiting"] == 0
    clock = Clock()
    with opened(clock, limit=Limit(waiting=2)) as session:
        session.push_r(r(1, 2))
        with pytest.raises(BackPressure):
            session.push_r(r(3))
        clock.now += 30
        session.poll()
        session.push_r(r(3))


def test_iteration_wakes_up() -> None:
    rows: list[int] = []
    with splitjoin.open(query(how="left", window="RANGE 2"), "golden", idle=(None, "50 MILLISECONDS")) as session:
        session.push_r(r(1, 9))
        reader = Thread(target=lambda: rows.append(len(next(iter(session)))), daemon=True)
        reader.start()
        reader.join(60)
        assert rows == [1]


def test_asyncio() -> None:
    async def run() -> None:
        made = query(how="left", window="RANGE 2")
        async with splitjoin.open_async(made, "golden", idle=(None, "50 MILLISECONDS")) as session:
            await session.push_r(r(1, 9))
            assert len(await anext(aiter(session))) == 1
        async with splitjoin.open_async(made, "golden") as session:
            await session.push_r(r(1, 9))
            await session.idle("s")
            assert len(await session.poll()) == 1
            async with await session.source("r") as source:
                await source.idle()
                await session.push_r(r(20))
                assert len(await session.poll()) == 1

    asyncio.run(run())


@pytest.mark.parametrize(("arguments", "error", "text"), [
    ({"idle": 30}, WindowError, "idle must be a number and a unit, such as '30 SECONDS', but 30 is not"),
    ({"idle": "ROWS 3"}, WindowError, "idle must be a number and a unit"),
    ({"idle": ("1 SECOND",) * 3}, WindowError, "idle must be one time, or a pair (R's, S's), not"),
    ({"lateness": {"r": 1}}, WindowError, "a mapping of lateness must have the keys 'r' and 's', not ['r']"),
    ({"lateness": (None, None)}, WindowError, "leaves no stream to move the watermark"),
    ({"lateness": (1, None), "watermark": "source"}, WindowError, "by 'source' each stream has a lateness of its own"),
    ({"watermark": "min"}, InputError, "so it needs a lateness; without one, each source must be in order"),
    ({"lateness": 1, "watermark": "least"}, InputError, "watermark must be 'source', 'min', 'max' or 'spark'"),
])
def test_refusals(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        splitjoin.open(query(), "golden", **arguments)
    assert text in str(caught.value)


def test_a_query_without_times_has_no_idle_sources() -> None:
    with pytest.raises(InputError, match="idle needs a query with a time column"):
        splitjoin.open(query(window="ROWS 5", time=None), idle="1 SECOND")
    with splitjoin.open(query(window="ROWS 5", time=None), "golden") as session:
        session.push_r(r(1))
        session.idle("r")
        assert session.counters()["tuples_r"] == 1


def test_a_new_source_moves_no_watermark_before_it_speaks() -> None:
    # S has no say in the watermark, and the new source of R has not spoken; so no tuple of S is late by what S itself
    # has got to. Found by tests/machine.
    with opened(Clock(), lateness=(2, None), idle=None) as session:
        gone, first, second = session.source("r"), session.source("s"), session.source("s")
        gone.close()
        first.idle()
        second.heartbeat(1)
        session.source("r")
        second.push(s(1))
        assert session.late_s().num_rows == 0 and session.counters()["tuples_s"] == 1


def test_the_place_of_its_own_stream_says_what_of_an_idle_source_is_late_where_tuples_are_joined_as_they_come() -> None:
    """Places in arrival order: of tuples at one time, those of the source that was added first come first."""
    with splitjoin.open(query(order="none"), "golden", lateness=(0, 0), watermark="max") as session:
        first, second = session.source("r"), session.source("r")
        first.idle()
        second.push(r(5))
        first.push(r(5))
        assert len(session.late_r()) == 1
