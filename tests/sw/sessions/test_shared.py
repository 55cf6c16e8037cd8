"""Each query over shared streams gives the rows of its own single session from the tuple at which it was added."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin.base.errors import BackPressure, DeviceError, InputError, SnapshotError, UnsupportedError
from splitjoin.engines.cpu import CpuDevice
from splitjoin.engines.device import Device
from splitjoin.engines.golden import GoldenDevice
from splitjoin.sessions import SharedQuery, SharedStreams
from tests.support.sampling import at_length, examples

R = pa.schema([("t", pa.int64()), ("x", pa.int32()), ("name", pa.string())])
S = pa.schema([("t", pa.int64()), ("y", pa.int32())])

#: What a query may be, beside its window.
QUERIES: list[dict[str, Any]] = [
    {"on": "r.x = s.y"}, {"on": "abs(r.x - s.y) <= 1", "order": "outer(2)"}, {"on": "r.x < s.y", "how": "left"},
    {"on": "r.x = s.y", "how": "full"}, {"on": "r.x <= s.y", "how": "asof"}, {"on": "r.x >= s.y", "how": "anti"},
    {"on": "r.x < s.y", "order": "none", "select": ["r.name", "s.y"]},
    {"on": "r.x <= s.y", "by": "r", "aggregate": {"n": "count(*)", "most": "max(s.y)"}},
]
PAIRS = [query for query in QUERIES if "how" not in query and "aggregate" not in query]


def tuples(side: str, times: list[int], values: list[int]) -> pa.Table:
    columns: list[Any] = [pa.array(times, pa.int64()), pa.array(values, pa.int32())]
    if side == "r":
        return pa.table([*columns, pa.array([f"r{t}.{v}" for t, v in zip(times, values, strict=True)])], schema=R)
    return pa.table(columns, schema=S)


Order = list[tuple[str, pa.Table]]


@dataclass
class Run:
    """A query that was added when ``start`` tuples were ready, and what it gave."""

    query: SharedQuery
    parts: dict[str, Any]
    start: int
    history: bool
    rows: list[Any] = field(default_factory=list)
    #: The number of tuples that were ready when it was closed.
    end: int | None = None


def expected(run: Run, order: Order) -> list[Any]:
    """The rows of a session of its own, of golden's, of the same tuples."""
    parts = {name: value for name, value in run.parts.items() if name != "select"}
    made = splitjoin.query(R, S, time="t", **parts)
    first = 0 if run.history else run.start
    order = order[first:run.end]
    with splitjoin.open(made, "golden", select=run.parts.get("select"), punctuation=True) as session:
        places: dict[str, list[int]] = {"r": [], "s": []}
        for n, (side, row) in enumerate(order, first):
            (session.push_r if side == "r" else session.push_s)(row)
            places[side].append(n)
        session.close_r()
        session.close_s()
        items, rows = session.poll_items()
        found = rows.to_pylist()
        if run.history:  # pairs of two earlier tuples are not this query's
            of = [max(places["r"][item["r"]], places["s"][item["s"]]) for item in items[items["kind"] == 0]]
            found = [row for row, place in zip(found, of, strict=True) if place >= run.start]
        return found


def check(run: Run, order: Order) -> None:
    rows, wanted = run.rows, expected(run, order)
    if run.parts.get("order") == "none":
        rows, wanted = sorted(rows, key=repr), sorted(wanted, key=repr)
    assert rows == wanted, run.parts


class Feed:
    """Pushes of two sources of R and one of S, each in order of time, into shared streams and a gate like theirs."""

    def __init__(self, data: st.DataObject, hub: SharedStreams):
        self.data, self.hub = data, hub
        self.gate = splitjoin.ScaleGate(R, S, time="t")
        self.sources = [("r", 0), ("r", 1), ("s", 0)]
        for side, _ in self.sources:
            hub.source(side)  # type: ignore[arg-type]
            self.gate.add(side)  # type: ignore[arg-type]
        self.now = dict.fromkeys(self.sources, 0)
        self.order: Order = []

    def push(self, source: tuple[str, int] | None = None) -> None:
        side, n = source = source or self.data.draw(st.sampled_from(self.sources))
        steps = self.data.draw(st.lists(st.integers(0, 3), min_size=2, max_size=7))
        times = [self.now[source] + sum(steps[:k + 1]) for k in range(len(steps))]
        self.now[source] = times[-1]
        values = self.data.draw(st.lists(st.integers(0, 2), min_size=len(times), max_size=len(times)))
        table = tuples(side, times, values)
        self.hub.source_at(side, n).push(table)  # type: ignore[arg-type]
        self.gate.deliver(side, n, table)  # type: ignore[arg-type]
        self.note()

    def end(self) -> None:
        for side in ("r", "s"):
            self.gate.finish(side)  # type: ignore[arg-type]
        self.note()

    def note(self) -> None:
        arrivals = self.gate.ready()
        at = {"r": 0, "s": 0}
        for number in arrivals.stream.tolist():
            side = "rs"[number]
            self.order.append((side, arrivals.table(side).slice(at[side], 1)))
            at[side] += 1


def devices() -> list[Callable[[], Device]]:
    return [GoldenDevice, CpuDevice]


@pytest.mark.parametrize(("on", "times"), [("golden and cpu", 20), at_length("sim", 2)])
def test_of_random_queries_at_random_places(on: str, times: int) -> None:
    all_queries, pairs, chosen_devices, longest = QUERIES, PAIRS, devices(), 14
    if on == "sim":  # on one circuit, which is compiled once
        from splitjoin_sim import SimDevice

        all_queries = pairs = [query for query in QUERIES if query["on"] == "r.x = s.y"]
        pairs, chosen_devices, longest = pairs[:1], [lambda: SimDevice(cores=2, capacity=64)], 8

    @settings(max_examples=examples(times), deadline=None)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        def fresh() -> SharedStreams:
            return splitjoin.share(R, S, time="t", retain="RANGE 6")

        def add(hub: SharedStreams, run: Run) -> SharedQuery:
            return hub.query(**run.parts, history=run.history and not restored, punctuation=False,
                             device=data.draw(st.sampled_from(chosen_devices))(), name=run.query and run.query.name)

        restored = False
        hub = fresh()
        feed, runs = Feed(data, hub), list[Run]()
        for source in feed.sources:  # else nothing is ready
            feed.push(source)
        for _ in range(data.draw(st.integers(4, longest))):
            live = [r for r in runs if r.end is None]
            act = data.draw(st.sampled_from(["push", "push", "add", "poll", "remove", "restore"]))
            if act == "push" or (act in ("poll", "remove", "restore") and not live):
                feed.push()
            elif act == "add":
                history = data.draw(st.booleans())
                window = data.draw(st.sampled_from(["RANGE 4", "ROWS 3", "RANGE 5 ROWS 4"]))
                parts = {**data.draw(st.sampled_from(pairs if history else all_queries)), "window": window}
                new = Run(None, parts, len(feed.order), history)  # type: ignore[arg-type]
                if history and "RANGE" not in window:  # the retained window has no bound on rows
                    new.history = False
                new.query = add(hub, new)
                runs.append(new)
            elif act == "poll":
                chosen = data.draw(st.sampled_from(live))
                chosen.rows += chosen.query.poll().to_pylist()
            elif act == "remove":
                chosen = data.draw(st.sampled_from(live))
                chosen.rows += chosen.query.flush().to_pylist()
                chosen.end = len(feed.order)
                chosen.query.close()
            else:
                state, restored = hub.snapshot(), True
                with hub:
                    hub = fresh()
                    for chosen in live:
                        chosen.query = add(hub, chosen)
                    hub.restore(state)
                feed.hub, restored = hub, False
        hub.close()
        feed.end()
        for one in runs:
            if one.end is None:
                while not one.query.finished:
                    one.rows += one.query.poll().to_pylist()
                one.query.close()
            check(one, feed.order)

    run()


def rows(side: str, n: int, start: int = 0) -> pa.Table:
    return tuples(side, list(range(start, start + n)), [k % 5 for k in range(start, start + n)])


def test_queries_are_polled_in_threads_of_their_own() -> None:
    with splitjoin.share(R, S, time="t", unread=64, when_full="block") as hub:
        queries = [hub.query(on="r.x = s.y", window=f"RANGE {n}", device=device)
                   for n, device in ((3, "golden"), (5, "cpu"), (9, "cpu"))]
        found: dict[str, list[Any]] = {}

        def read(query: SharedQuery) -> None:
            found[query.name] = [row for batch in query for row in batch.to_pylist()]

        threads = [threading.Thread(target=read, args=(query,)) for query in queries]
        for thread in threads:
            thread.start()
        for start in range(0, 400, 20):  # blocks until the slowest has read on
            hub.push_r(rows("r", 20, start))
            hub.push_s(rows("s", 20, start))
        hub.close()
        for thread in threads:
            thread.join(60)
        for query, length in zip(queries, (3, 5, 9), strict=True):
            alone = splitjoin.join(rows("r", 400), rows("s", 400), on="r.x = s.y", window=f"RANGE {length}", time="t")
            assert found[query.name] == alone.to_arrow().to_pylist()


def test_a_slow_query_holds_back_only_itself_and_memory_up_to_the_limit() -> None:
    with splitjoin.share(R, S, time="t", unread=100) as hub:
        slow, fast = (hub.query(on="r.x = s.y", window="RANGE 3", name=name) for name in ("slow", "fast"))
        got = 0
        for start in range(0, 50, 10):
            hub.push_r(rows("r", 10, start))
            hub.push_s(rows("s", 10, start))
            got += len(fast.poll())
        hub.heartbeat(50)
        with pytest.raises(BackPressure, match="query 'slow' has 100 tuples to read, and the limit is 100; poll it"):
            hub.push_r(rows("r", 10, 50))
        assert got and hub.counters()["unread"] < 120
        slow.close()
        hub.push_r(rows("r", 10, 2000))
        hub.push_s(rows("s", 10, 2000))
        fast.poll()
        assert hub.counters()["unread"] == 0
        assert list(hub.queries) == ["fast"]


def test_what_a_bound_on_results_holds_up_counts_as_not_read() -> None:
    with splitjoin.share(R, S, time="t") as hub:
        query = hub.query(on="r.x = s.y", window="RANGE 30", limit=4)
        for start, n in ((0, 2000), (2000, 300)):
            hub.push_r(rows("r", n, start))
            hub.push_s(rows("s", n, start))
            found = len(query.poll())
        assert hub.counters()["unread"] == 600
        hub.close()
        found += sum(len(batch) for batch in query)
        assert query.counters()["rows"] == len(splitjoin.join(
            rows("r", 2300), rows("s", 2300), on="r.x = s.y", window="RANGE 30", time="t")) > found


class FailingDevice(GoldenDevice):
    """Fails with the first tuples."""

    def open(self, query: splitjoin.Query) -> Any:
        session = super().open(query)

        def push(arrivals: Any) -> None:
            raise OSError("unplugged")

        session.push = push  # type: ignore[method-assign]
        return session


def test_the_failure_of_a_query_is_its_own() -> None:
    with splitjoin.share(R, S, time="t") as hub:
        bad, good = (hub.query(on="r.x = s.y", window="RANGE 3", device=device)
                     for device in (FailingDevice(), GoldenDevice()))
        hub.push_r(rows("r", 20))
        hub.push_s(rows("s", 20))
        with pytest.raises(OSError, match="unplugged"):
            bad.poll()
        with pytest.raises(DeviceError, match="restart"):
            bad.poll()
        wanted = good.poll()
        assert len(wanted)
        bad.restart("cpu")
        assert bad.poll().equals(wanted)


def test_a_poll_gives_all_complete_rows_behind_a_snapshot_too() -> None:
    def filled() -> tuple[SharedStreams, SharedQuery]:
        hub = splitjoin.share(R, S, time="t")
        return hub, hub.query(on="r.x = s.y", window="RANGE 9")

    hub, _ = filled()
    for side, push in (("r", hub.push_r), ("s", hub.push_s)):
        push(tuples(side, list(range(9)), list(range(9))))
    again, query = filled()
    again.restore(hub.snapshot())
    again.push_r(tuples("r", [9], [9]))
    again.push_s(tuples("s", [9], [9]))
    again.close()
    assert query.poll()["x"].to_pylist() == list(range(10))
    assert again.counters()["queries"] == 1  # also behind the end


def test_without_times_tuples_arrive_as_they_are_pushed() -> None:
    with splitjoin.share(R, S, retain="ROWS 4") as hub:
        first = hub.query(on="r.x = s.y", window="ROWS 4")
        hub.push_r(rows("r", 6))
        late = hub.query(on="r.x = s.y", window="ROWS 4", history=True)
        hub.push_s(rows("s", 6))
        assert first.flush().equals(late.poll())
        assert len(late.flush()) == 0


def test_sql_names_the_streams() -> None:
    with splitjoin.share(R, S, time="t", names=("trades", "quotes")) as hub:
        query = hub.sql("SELECT q.y + 1 AS z FROM trades t JOIN quotes q ON t.x = q.y", window="RANGE 2")
        hub.push_r(rows("r", 4))
        hub.push_s(rows("s", 4))
        hub.close()
        assert query.poll().to_pydict() == {"z": [1, 2, 3, 4]}
        assert query.finished
    with splitjoin.share(R, S, time="t") as hub, pytest.raises(InputError, match="joins these two, but FROM"):
        hub.sql("SELECT r.x FROM r, s, s u", window="RANGE 2")
    with splitjoin.share(R, S, names=("a", "b")) as hub, pytest.raises(InputError, match="FROM must name 'a' first"):
        hub.sql("SELECT * FROM b JOIN a ON a.x = b.y", window="ROWS 2")


def test_of_sources_late_and_idle() -> None:
    now = [0.0]
    with splitjoin.share(R, S, time="t", lateness=2, watermark="source", idle="5 SECONDS", clock=lambda: now[0]) as hub:
        query = hub.query(on="r.x = s.y", window="RANGE 3")
        hub.push_r(rows("r", 10))
        hub.push_r(rows("r", 1))
        assert len(hub.late_r()) == 1
        hub.push_s(rows("s", 3))
        before = len(query.poll())
        now[0] = 6.0
        hub.push_r(rows("r", 1, 11))
        assert (before, len(query.poll())) == (1, 2)
        hub.heartbeat(30)
        hub.idle("s")
        with pytest.raises(InputError, match="'r' or 's'"):
            hub.idle("q")  # type: ignore[arg-type]


def test_mistakes_are_named() -> None:
    for wrong, what in (({"when_full": "wait"}, "when_full must be"), ({"names": ("a", "a")}, "two different names"),
                        ({"unread": 0}, "unread must be a whole number"), ({"waiting": -1}, "waiting must be"),
                        ({"lateness": 3}, "lateness needs a query with a time column")):
        with pytest.raises(InputError, match=what):
            splitjoin.share(R, S, **wrong)  # type: ignore[arg-type]
    with splitjoin.share(R, S, time="t") as hub:
        query = hub.query(on="r.x = s.y", window="RANGE 3", name="mine")
        with pytest.raises(InputError, match="name of a query must be new, but 'mine'"):
            hub.query(on="r.x = s.y", window="RANGE 3", name="mine")
        with pytest.raises(InputError, match="retain"):
            hub.query(on="r.x = s.y", window="RANGE 3", history=True)
        state = hub.snapshot()
        for bad, said in ((b"x", "do not begin"), (state[:-1], "damaged"), (state[:20] + b"\0" + state[21:], "damaged"),
                          ("text", "must be bytes")):
            with pytest.raises(SnapshotError, match=said):
                hub.restore(bad)  # type: ignore[arg-type]
        query.close()
        with pytest.raises(SnapshotError, match="same queries, but has mine, and here are none"):
            hub.restore(state)
        hub.query(on="r.x < s.y", window="RANGE 3", name="mine")
        with pytest.raises(SnapshotError, match="condition"):
            hub.restore(state)
        with pytest.raises(DeviceError, match="closed"):
            query.poll()
    with pytest.raises(DeviceError, match="the shared streams are closed"):
        hub.push_r(rows("r", 1))
    with splitjoin.share(R, S, time="t", retain="RANGE 3") as hub, pytest.raises(
            UnsupportedError, match="history=True needs how='inner'"):
        hub.query(on="r.x = s.y", window="RANGE 3", how="left", history=True)
    strict = pa.schema([S.field("t"), S.field("y").with_nullable(False)])
    with splitjoin.share(R, strict) as hub, pytest.raises(InputError, match=r"s.y must not hold NULL"):
        hub.push_s(pa.table({"t": [1], "y": pa.array([None], pa.int32())}))


def test_nothing_is_kept_for_a_query_that_ended_before_a_snapshot() -> None:
    def opened() -> tuple[SharedStreams, SharedQuery]:
        hub = splitjoin.share(R, S, time="t")
        return hub, hub.query(on="TRUE", window="ROWS 1")

    hub, ended = opened()
    with hub:
        ended.flush()
        saved = hub.snapshot()
    hub, ended = opened()
    with hub:
        hub.restore(saved)
        hub.query(on="TRUE", window="ROWS 1")
        hub.push_r(rows("r", 3))
        hub.close_s()
        assert (ended.unread, hub.counters()["unread"]) == (0, 3)


@pytest.mark.parametrize("parts", [
    {"on": "r.x = s.y AND upper(r.name) <> 'R2.2'", "window": "RANGE 4"},  # DuckDB computes a column of r
    {"on": "r.x = s.y", "window": "RANGE 5", "closed": "neither"},
    {"on": "r.x = s.y", "window": "RANGE 9", "how": "asof", "k": 2},
    {"on": "r.x = s.y", "how": "asof", "direction": "nearest", "ties": "last", "tolerance": 5},
    {"on": "r.x = s.y", "how": "asof_left"},
])
def test_a_query_is_any_that_a_session_takes(parts: dict[str, Any]) -> None:
    def opened() -> tuple[SharedStreams, SharedQuery]:
        hub = splitjoin.share(R, S, time="t")
        return hub, hub.query(**parts)

    hub, query = opened()
    with splitjoin.open(splitjoin.query(R, S, time="t", **parts), "golden") as alone:
        for start in 0, 12:
            for one in hub, alone:
                one.push_r(rows("r", 12, start))
                one.push_s(rows("s", 12, start))
            saved = hub.snapshot()
            hub.close()
            hub, query = opened()
            hub.restore(saved)
        hub.close()
        found, wanted = query.poll().to_pylist(), alone.flush().to_pylist()
        assert found == wanted
        assert found


def test_readers_of_a_gate() -> None:
    gate = splitjoin.ScaleGate(R, S, time="t")
    one = gate.reader()
    for side in ("r", "s"):
        gate.add(side).push(rows(side, 5))  # type: ignore[arg-type]
    two = gate.reader()
    assert (len(one.ready()), len(two.ready())) == (9, 0)
    with pytest.raises(InputError, match="a gate with readers"):
        gate.ready()
    gate.finish("s")
    gate.finish("r")
    two.finish()
    assert (one.done, two.done) == (False, False)
    assert [len(reader.ready()) for reader in (one, two)] == [1, 1]
    assert one.done and two.done
