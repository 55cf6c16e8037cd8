"""Queries over shared streams: what they take, hold back and refuse; `tests/machine` has random ones."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest

import splitjoin
from splitjoin.base.errors import BackPressure, DeviceError, InputError, SnapshotError, UnsupportedError
from splitjoin.engines.golden import GoldenDevice
from splitjoin.sessions import SharedQuery, SharedStreams

R = pa.schema([("t", pa.int64()), ("x", pa.int32()), ("name", pa.string())])
S = pa.schema([("t", pa.int64()), ("y", pa.int32())])


def tuples(side: str, times: list[int], values: list[int]) -> pa.Table:
    columns: list[Any] = [pa.array(times, pa.int64()), pa.array(values, pa.int32())]
    if side == "r":
        return pa.table([*columns, pa.array([f"r{t}.{v}" for t, v in zip(times, values, strict=True)])], schema=R)
    return pa.table(columns, schema=S)


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


def test_the_limit_holds_behind_a_restore_too() -> None:
    """A restore goes back to fewer tuples than a query has read."""
    with splitjoin.share(R, S, time="t", unread=100) as hub:
        query = hub.query(on="r.x = s.y", window="RANGE 3")
        saved = hub.snapshot()
        for start in range(0, 400, 20):
            hub.push_r(rows("r", 20, start))
            hub.push_s(rows("s", 20, start))
            query.poll()
        hub.restore(saved)
        for start in range(0, 60, 20):
            hub.push_r(rows("r", 20, start))
            hub.push_s(rows("s", 20, start))
        with pytest.raises(BackPressure, match="and the limit is 100; poll it"):
            hub.push_r(rows("r", 20, 60))


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
        for name in 5, b"mine", "":
            with pytest.raises(InputError, match=f"name of a query must be a text that is not empty, not {name!r}"):
                hub.query(on="r.x = s.y", window="RANGE 3", name=name)  # type: ignore[arg-type]
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
    {"on": "r.x < s.y", "window": "RANGE 4", "order": "none"},
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
        assert sorted(found, key=str) == sorted(wanted, key=str) if "order" in parts else found == wanted
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


def test_the_limit_counts_what_was_unread_when_room_was_looked_for() -> None:
    with splitjoin.share(R, S, time="t", unread=4) as hub:
        query = hub.query(on="r.x = s.y", window="RANGE 3")
        hub.close_s()
        hub.push_r(rows("r", 2))
        query.poll()
        for start in 2, 4, 5:
            hub.push_r(rows("r", 2 if start == 2 else 1, start))
        assert query.unread == 4
        with pytest.raises(BackPressure, match="has 4 tuples to read, and the limit is 4"):
            hub.push_r(rows("r", 1, 6))
