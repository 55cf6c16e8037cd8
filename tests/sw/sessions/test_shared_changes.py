"""Changes of queries over shared streams while these run; `tests/machine` has random ones."""

from __future__ import annotations

from typing import Any

import pytest

import splitjoin
from splitjoin import DeviceError, InputError, OrderError, UnsupportedError, WindowError
from splitjoin.engines.arrival import arrivals
from splitjoin.sessions import SharedQuery, SharedStreams

from ...support.changes import CORES, SCHEMA, Change, golden, stream
from ...support.feeding import stream_query
from ...support.lagging import LaggingDevice


def filled(streams: SharedStreams, start: int, end: int) -> None:
    table = stream([(n, n % 4) for n in range(start, end)])
    streams.push_r(table)
    streams.push_s(table)


def shared(**more: Any) -> SharedStreams:
    return splitjoin.share(SCHEMA, SCHEMA, time="ts", **more)


def own(streams: SharedStreams, **more: Any) -> SharedQuery:
    return streams.query(**{"on": "r.x <= s.x", "window": "RANGE 5", "device": "golden", **more})


def times(query: SharedQuery) -> list[tuple[int, int]]:
    return [(row["ts_r"], row["ts_s"]) for row in query.poll().to_pylist()]


def test_a_precision_of_all_holds_for_each() -> None:
    table = stream([(n, n % 4) for n in range(12)])
    with shared() as streams:
        queries = [own(streams, order=f"outer({n})", punctuation=True) for n in (1, 2)]
        filled(streams, 0, 5)
        places = streams.precision(3)
        filled(streams, 5, 12)
        streams.close()
        for n, (query, place) in enumerate(zip(queries, places.values(), strict=True), 1):
            asked = stream_query(table, table, on="r.x <= s.x", window="RANGE 5", time="ts", order=f"outer({n})")
            want = golden(asked, arrivals(asked, table, table), [Change(sum(place), n=3)], CORES)
            assert query.poll_items()[0].tolist() == want.tolist()


def test_what_had_expired_by_a_query_s_own_windows_does_not_come_back() -> None:
    """Though the common join still has it."""
    with shared() as streams:
        join = streams.common_join(on="TRUE", window="RANGE 9", device="golden")
        query = join.query(on="TRUE", window="RANGE 1")
        with pytest.raises(UnsupportedError, match=r"must have the ROWS of the common join 'j1', and a RANGE within "
                                                   r"its, but is not older than 12 .*of the join not older than 9"):
            query.window("RANGE 12")
        filled(streams, 0, 5)
        assert join.window("RANGE 20") == query.window("RANGE 12") == (5, 4)
        filled(streams, 9, 10)
        streams.close()
        assert [pair for pair in times(query) if 9 in pair] == [(9, 3), (9, 4), (3, 9), (4, 9), (9, 9)]


def test_history_of_a_join_whose_windows_got_longer() -> None:
    with shared(retain="RANGE 20") as streams:
        join = streams.common_join(on="TRUE", window="RANGE 2", device="golden")
        first = join.query(on="TRUE", window="RANGE 1")
        filled(streams, 0, 9)
        join.window("RANGE 20")
        with pytest.raises(UnsupportedError, match="had left the common join 'j1' before its windows were made longer"):
            join.query(on="TRUE", window="RANGE 8", history=True)
        query = join.query(on="TRUE", window="RANGE 2", history=True)
        alone = streams.query(on="TRUE", window="RANGE 2", history=True)
        filled(streams, 9, 12)
        streams.close()
        assert len(first.poll()) and (found := times(query)) and found == times(alone)


def test_what_is_refused_changes_nothing() -> None:
    with shared() as streams, shared() as others:
        queries = [[own(hub), own(hub, order="outer(2)"), own(hub, how="left", aggregate={"n": "count(*)"})]
                   for hub in (streams, others)]
        for hub in (streams, others):
            filled(hub, 0, 5)
        join = streams.common_join(on="TRUE", window="RANGE 9", device="golden")
        with pytest.raises(UnsupportedError, match="change while it has queries, and 'j1' has none"):
            join.window("RANGE 2")
        last = join.query(on="TRUE")
        with pytest.raises(UnsupportedError, match=r"no device of its own, .*; call move\(\) of that join"):
            last.move("cpu")
        with pytest.raises(InputError, match="counts its own tuples, and the device those of its common join"):
            last.mask([0])
        with pytest.raises(UnsupportedError, match="must have the ROWS of the common join"):
            join.window("RANGE 4")
        with pytest.raises(UnsupportedError, match="windows cannot change here: engines that fold") as refused:
            streams.window("RANGE 1")
        assert refused.value.__notes__ == ["that is so of 'q3'; nothing was changed"]
        for error, act in ((OrderError, lambda: streams.precision(2)), (WindowError, lambda: streams.window("")),
                           (DeviceError, lambda: streams.mask([2], of=2)), (InputError, lambda: streams.mask([], of=0)),
                           (OrderError, lambda: last.precision(2))):
            with pytest.raises(error):
                act()
        last.flush()
        with pytest.raises(UnsupportedError, match="that of the query 'q4' has ended"):
            last.window("RANGE 1")
        for hub in (streams, others):
            filled(hub, 5, 9)
            hub.close()
        for query, other in zip(*queries, strict=True):
            assert query.poll().equals(other.poll())


def test_a_query_that_has_the_name_of_a_join_is_moved_too() -> None:
    with shared() as streams:
        query = own(streams, name="join j")
        with streams.common_join(on="r.x = s.x", window="RANGE 9", name="j", device="golden") as join:
            join.query(on="r.x = s.x", window="RANGE 9")
            streams.move(LaggingDevice(0))
            assert isinstance(query._pipeline.device, LaggingDevice)


def test_a_device_that_fails_at_a_change_of_all_is_named() -> None:
    with shared() as streams:
        own(streams, window="ROWS 2")
        own(streams, window="ROWS 2", device=LaggingDevice(lag=2, fails=(2,)))
        own(streams, window="ROWS 2", name="last")
        filled(streams, 0, 4)
        with pytest.raises(DeviceError, match="the cable is out") as refused:
            streams.window("ROWS 9")
        assert refused.value.__notes__ == ["changed were q1; not changed were q2, last"]


class Clock:
    """Goes on by a second at each look, once it runs."""

    def __init__(self) -> None:
        self.now, self.step = 0.0, 0.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.mark.parametrize("what", ["snapshot", "restore", "mask"])
def test_a_source_that_falls_silent_meanwhile_moves_no_query_alone(what: str) -> None:
    """Tuples that become ready while queries are saved, opened or changed come after that place for all of them."""
    for seconds in range(9, 24):
        clock = Clock()
        with shared(idle=f"{seconds} SECONDS", clock=clock) as streams, shared(idle=f"{seconds} SECONDS",
                                                                               clock=clock) as others:
            for hub in (streams, others):
                for n in range(3):
                    own(hub, name=f"n{n}", on="TRUE", window="RANGE 50")
            streams.push_s(stream([(1, 0)]))
            clock.now += 8  # S is idle first
            streams.push_r(stream([(0, 0), (9, 0)]))
            clock.step = 1.0 if what != "restore" else 0.0
            changed = streams.mask([], of=2) if what == "mask" else {}
            state = streams.snapshot()
            clock.step = 1.0
            if what != "mask":
                others.restore(state)
                streams = others
            clock.now += 100
            streams.close()
            found = [[row for batch in query for row in batch.to_pylist()] for query in streams.queries.values()]
            assert found == [found[0]] * 3, seconds
            assert {(row["ts_r"], row["ts_s"]) for row in found[0]} == {(0, 1), (9, 1)}, seconds
            assert len(set(changed.values())) < 2


def test_pairs_that_a_common_join_s_device_still_owed_are_found_after_a_restore() -> None:
    with shared() as streams, shared() as others:
        queries = [hub.common_join(on="TRUE", window="RANGE 9", device=LaggingDevice(lag=9)).query(on="TRUE")
                   for hub in (streams, others)]
        filled(streams, 0, 4)
        found = times(queries[0])
        others.restore(streams.snapshot())
        others.close()
        while not queries[1].finished:
            found += times(queries[1])
        assert len(found) == 16
