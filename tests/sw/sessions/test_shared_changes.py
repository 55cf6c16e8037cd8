"""Changes of queries over shared streams while these run: golden's answer with the same changes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin import DeviceError, InputError, OrderError, UnsupportedError, WindowError
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.golden import GoldenDevice
from splitjoin.sessions import CommonJoin, SharedQuery, SharedStreams
from splitjoin.sessions.shared.chosen_pairs import PairTest, WindowSince

from ...support.changes import CORES, ROWS, SCHEMA, Change, golden, stream
from ...support.feeding import stream_query
from ...support.lagging import LaggingDevice
from ...support.sampling import examples

RANGES = ["RANGE 0", "RANGE 3", "RANGE 9", "RANGE 14", "RANGE 25", ("RANGE 2", "RANGE 12")]
WINDOWS: list[Any] = [*RANGES, "ROWS 4", "ROWS 3 RANGE 9"]
#: The queries: two with devices of their own, two of a common join.
QUERIES: dict[str, dict[str, Any]] = {
    "own": {"on": "r.x <= s.x", "order": "outer(2)", "window": "RANGE 5"},
    "rows": {"on": "r.x <= s.x", "order": "total", "window": "ROWS 5"},
    "all": {"on": "r.x <= s.x", "order": "total", "window": "RANGE 7"},
    "some": {"on": "r.x <= s.x AND r.x > 0", "order": "total", "window": "RANGE 4"},
}
OF_JOIN = ("all", "some")
WHO = st.sampled_from([*QUERIES, *OF_JOIN, "hub"])
TURNS = st.lists(st.one_of(
    st.tuples(st.sampled_from("rs"), st.integers(1, 6)), st.tuples(st.sampled_from("rs"), st.integers(1, 6)),
    st.tuples(st.just("mask"), WHO, st.sets(st.integers(0, CORES - 1))),
    st.tuples(st.just("precision"), st.sampled_from(["own", "hub"]), st.integers(1, 4)),
    st.tuples(st.just("window"), WHO, st.sampled_from(WINDOWS)),
    st.tuples(st.just("window"), st.sampled_from(["join", "hub", *OF_JOIN]), st.sampled_from(RANGES)),
    st.tuples(st.just("move"), st.sampled_from(["own", "rows", "join", "hub"]), st.integers(0, 2)),
    st.tuples(st.sampled_from(["poll", "add"]), st.sampled_from(list(QUERIES))),
    st.tuples(st.sampled_from(["heartbeat", "snapshot", "restart"]))), max_size=24)


class Hub:
    """Shared streams, the queries that were added, what they gave, and the changes with the places that they told."""

    def __init__(self, tables: dict[str, pa.Table], devices: list[Any]):
        self.tables, self.devices, self.opened = tables, devices, 0
        self.before = 0  # tuples that were ready before the last snapshot
        self.at, self.now = dict.fromkeys("rs", 0), dict.fromkeys("rs", 0)
        self.begun: dict[str, int] = {}
        self.found: dict[str, list[Any]] = {name: [] for name in QUERIES}
        self.changes: dict[str, list[Change]] = {name: [] for name in QUERIES}
        self.streams, self.join = self.fresh()

    def fresh(self, window: str = "RANGE 14") -> tuple[SharedStreams, CommonJoin]:
        streams = splitjoin.share(SCHEMA, SCHEMA, time="ts")
        return streams, streams.common_join(on=QUERIES["all"]["on"], window=window, device=self.device(0))

    @property
    def ready(self) -> int:
        return self.before + self.streams.counters()["ready"]

    def device(self, n: int) -> Any:
        return self.devices[(self.opened + n) % len(self.devices)]

    def add(self, name: str, streams: SharedStreams, join: CommonJoin) -> None:
        parts = QUERIES[name]
        if name in OF_JOIN:
            join.query(**parts, name=name, punctuation=True)
        else:
            streams.query(**parts, name=name, punctuation=True, device=self.device(1))

    def do(self, turn: tuple[Any, ...]) -> None:
        queries = self.streams.queries
        match turn:
            case ("r" | "s" as side, n):
                push = self.streams.push_r if side == "r" else self.streams.push_s
                push(self.tables[side].slice(self.at[side], n))
                self.at[side] += n
            case ("heartbeat",):
                for side in "rs":
                    rest = self.tables[side]["ts"].to_pylist()[self.at[side]:]
                    self.streams.heartbeat(min(rest, default=50), side)  # type: ignore[arg-type]
            case ("add", name) if name not in queries:
                with suppress(UnsupportedError):  # its windows are not within the join's
                    self.add(name, self.streams, self.join)
                    self.begun[name] = self.ready
            case ("poll", name) if name in queries:
                self.found[name].append(queries[name].poll_items()[0])
            case ("mask", who, cores) if who == "hub" or who in queries:
                made = self.streams if who == "hub" else queries[who]
                self.note(who, made.mask(cores, of=CORES), masked=tuple(cores))
            case ("precision", "own", n) if "own" in queries:
                self.note("own", queries["own"].precision(n), n=n)
            case ("precision", "hub", n):
                with suppress(OrderError):  # a query of another order is there, and nothing changes
                    self.note("hub", self.streams.precision(n), n=n)
            case ("window", "join", window):
                with suppress(UnsupportedError):  # shorter than a query's
                    self.join.window(window)
            case ("window", who, window) if who == "hub" or who in queries:
                with suppress(UnsupportedError):  # not within the join's
                    self.note(who, (self.streams if who == "hub" else queries[who]).window(window), window=window)
            case ("move", who, n) if who in ("join", "hub") or who in queries:
                with suppress(UnsupportedError):  # a move is under way
                    {"join": self.join, "hub": self.streams, **queries}[who].move(self.device(n))
            case ("restart",):
                for name, query in queries.items():
                    if name not in OF_JOIN:
                        query.restart()
                self.join.restart()
            case ("snapshot",):
                state, self.opened, self.before = self.streams.snapshot(), self.opened + 1, self.ready
                self.streams.__exit__(None, None, None)
                self.streams, self.join = self.fresh("RANGE 90")  # wide enough for each query as it was added
                for name in queries:
                    self.add(name, self.streams, self.join)
                self.streams.restore(state)

    def note(self, who: str, places: Any, **change: Any) -> None:
        """Note a change of one query, or of all, with the place that is told: before the next tuple."""
        for name, place in places.items() if who == "hub" else [(who, places)]:
            assert sum(place) + self.begun[name] == self.ready
            self.changes[name].append(Change(sum(place), **change, now=self.streams._input.sequence.frontier))

    def end(self) -> None:
        for side in "rs":
            self.do((side, 99))
        self.streams.close()
        for name, query in self.streams.queries.items():
            while not query.finished:
                self.found[name].append(query.poll_items()[0])
            query.close()

    def check(self) -> None:
        for name, begun in self.begun.items():
            asked = stream_query(self.tables["r"], self.tables["s"], time="ts", **QUERIES[name])
            _, rest = arrivals(asked, self.tables["r"], self.tables["s"]).split(begun)
            arrived = rest or arrivals(asked, *(table.slice(0, 0) for table in self.tables.values()))
            want = golden(asked, arrived, self.changes[name], CORES)
            assert np.concatenate(self.found[name]).tolist() == want.tolist(), (name, self.changes[name])


@settings(max_examples=examples(30), deadline=None)
@given(a=ROWS, b=ROWS, how=TURNS)
def test_changes_are_golden_s(a: list[tuple[int, int]], b: list[tuple[int, int]], how: list[tuple[Any, ...]]) -> None:
    hub = Hub({"r": stream(a), "s": stream(b)}, [GoldenDevice(cores=CORES), LaggingDevice(lag=3), "cpu"])
    for turn in [("add", "all"), ("add", "own"), *how]:
        hub.do(turn)
    hub.end()
    hub.check()


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


def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    change = PairTest.change

    def bring_back(self: PairTest, since: WindowSince) -> None:
        change(self, replace(since, first=(0, 0)))

    monkeypatch.setattr(PairTest, "change", bring_back)
    with pytest.raises(AssertionError):
        test_what_had_expired_by_a_query_s_own_windows_does_not_come_back()


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
