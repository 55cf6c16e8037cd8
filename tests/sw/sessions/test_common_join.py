"""Queries of a common join give the rows of their own single sessions, while one device compares for all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import splitjoin
from splitjoin.base.errors import BackPressure, DeviceError, InputError, SnapshotError, UnsupportedError
from splitjoin.engines.golden import GoldenDevice
from splitjoin.sessions import CommonJoin, SharedQuery, SharedStreams
from tests.support.lagging import LaggingDevice

from .test_shared import R, S, rows, tuples


class CountedDevice(GoldenDevice):
    """Counts the sessions that are opened and the tuples that they get."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = self.tuples = 0

    def open(self, query: splitjoin.Query) -> Any:
        session = super().open(query)
        push, self.opened = session.push, self.opened + 1

        def counted(arrivals: Any) -> None:
            self.tuples += len(arrivals)
            push(arrivals)

        session.push = counted  # type: ignore[method-assign]
        return session


def fill(hub: SharedStreams, n: int, start: int = 0) -> None:
    hub.push_r(rows("r", n, start))
    hub.push_s(rows("s", n, start))


def test_one_device_session_gets_each_tuple_once() -> None:
    device = CountedDevice()
    with splitjoin.share(R, S, time="t") as hub:
        join = hub.common_join(on="abs(r.x - s.y) <= 3", window="RANGE 9", device=device)
        queries = [join.query(on=f"abs(r.x - s.y) <= {n}", order=("total", "none")[n % 2]) for n in range(4)]
        fill(hub, 30)
        hub.close()
        found = [query.flush().num_rows for query in queries]
        assert found == sorted(set(found))
    assert (device.opened, device.tuples) == (1, 60)


def test_the_device_is_open_while_there_are_queries() -> None:
    device = CountedDevice()
    with splitjoin.share(R, S, time="t", unread=50) as hub:
        join = hub.common_join(on="r.x = s.y", window="RANGE 3", device=device)
        fill(hub, 200)  # nobody is to read these
        assert device.opened == 0 and join.counters() == {} and join.effectiveness is None
        with join.query(on="r.x = s.y") as query:
            fill(hub, 20, 200)
            assert join.queries == [query] and len(query.poll()) and join.counters()["tuples_r"] > 0
        assert hub.counters()["unread"] == 0 and join.queries == []
        fill(hub, 200, 300)
        with join.query(on="r.x = s.y AND r.t < s.t") as query:
            fill(hub, 20, 500)
            assert query.poll().num_rows == 0 and device.opened == 2  # equal x lie five ticks apart


def test_items_have_the_row_ids_of_the_query() -> None:
    with splitjoin.share(R, S, time="t", retain="RANGE 9") as hub:
        join = hub.common_join(on="abs(r.x - s.y) <= 1", window="RANGE 9")
        first = join.query(on="abs(r.x - s.y) <= 1", punctuation=True)
        fill(hub, 10)
        for history in (False, True):
            own = hub.query(on="r.x = s.y", window="RANGE 3", punctuation=True, history=history)
            shared = join.query(on="r.x = s.y", window="RANGE 3", punctuation=True, history=history)
            fill(hub, 5, 10 + 5 * history)
            hub.heartbeat(15 + 5 * history)
            (items, batch), (wanted, rows_) = shared.poll_items(), own.poll_items()
            assert items.tolist() == wanted.tolist() and batch.equals(rows_) and len(batch)
        assert len(first.poll_items()[0]) > len(items)


def test_a_slow_query_holds_back_only_itself_and_memory_up_to_the_limit() -> None:
    with splitjoin.share(R, S, time="t", unread=100) as hub:
        join = hub.common_join(on="r.x = s.y", window="RANGE 3")
        slow, fast = (join.query(on="r.x = s.y", name=name) for name in ("slow", "fast"))
        got = 0
        for start in range(0, 50, 10):
            fill(hub, 10, start)
            got += len(fast.poll())
        hub.heartbeat(50)
        with pytest.raises(BackPressure, match="query 'slow' has 100 tuples to read, and the limit is 100; poll it"):
            hub.push_r(rows("r", 10, 50))
        assert got and fast.counters()["waiting"] <= 1 and slow.counters()["waiting"] == 100
        assert len(slow.poll()) >= got
        fill(hub, 10, 50)
        slow.close()
        fill(hub, 10, 2000)
        fast.poll()
        assert hub.counters()["unread"] == 0 and list(hub.queries) == ["fast"]


def test_a_join_without_queries_that_was_moved_opens_its_next_device_there() -> None:
    first, second = CountedDevice(), CountedDevice()
    with splitjoin.share(R, S, time="t") as hub:
        join = hub.common_join(on="r.x = s.y", window="RANGE 3", device=first)
        with join.query(on="r.x = s.y"):
            join.move(second)
        with join.query(on="r.x = s.y"):
            assert (first.opened, second.opened) == (1, 2)


def test_queries_are_polled_in_threads_of_their_own() -> None:
    with splitjoin.share(R, S, time="t", unread=64, when_full="block") as hub:
        join = hub.common_join(on="r.x = s.y", window="RANGE 9")
        queries = [join.query(on="r.x = s.y", window=f"RANGE {n}") for n in (3, 5, 9)]
        found: dict[str, list[Any]] = {}

        def read(query: SharedQuery) -> None:
            found[query.name] = [row for batch in query for row in batch.to_pylist()]

        threads = [threading.Thread(target=read, args=(query,)) for query in queries]
        for thread in threads:
            thread.start()
        for start in range(0, 400, 20):
            fill(hub, 20, start)
        hub.close()
        for thread in threads:
            thread.join(60)
        for query, length in zip(queries, (3, 5, 9), strict=True):
            alone = splitjoin.join(rows("r", 400), rows("s", 400), on="r.x = s.y", window=f"RANGE {length}", time="t")
            assert found[query.name] == alone.to_arrow().to_pylist()


def test_a_failure_is_that_of_all_its_queries_until_the_join_restarts() -> None:
    with splitjoin.share(R, S, time="t") as hub:
        join = hub.common_join(on="r.x = s.y", window="RANGE 3", device=LaggingDevice(fails=2))
        early, late = join.query(on="r.x = s.y"), join.query(on="r.x = s.y")
        fill(hub, 10)
        before = early.poll()
        fill(hub, 10, 10)
        with pytest.raises(DeviceError, match="the cable is out"):
            early.poll()
        assert late.poll().equals(before)  # found before it failed
        for query in (early, late):
            with pytest.raises(DeviceError, match="restart"):
                query.poll()
        with pytest.raises(UnsupportedError, match="no device of its own"):
            early.restart("cpu")
        join.restart("cpu")
        assert early.poll().equals(late.poll()) and early.failure is None
        join.close()
        assert hub.queries == {}
        with pytest.raises(DeviceError, match="is closed"):
            join.query(on="r.x = s.y")


def test_queries_keep_their_windows_in_a_join_whose_windows_become_longer() -> None:
    with splitjoin.share(R, S, time="t") as hub:
        join = hub.common_join(on="r.x = s.y", window="RANGE 3", device="golden")
        query = join.query(on="r.x = s.y", select=["r.name"])
        join.window("RANGE 8")
        hub.push_r(tuples("r", [1, 4], [0, 0]))
        hub.push_s(tuples("s", [7], [0]))
        hub.close()
        assert query.poll()["name"].to_pylist() == ["r4.0"]


@pytest.mark.parametrize(("part", "function", "call"), [
    ("scan", "work", lambda query: query.window("RANGE 2")), ("pipeline", "place", lambda query: query.flush())],
    ids=["window", "flush"])
def test_a_query_changes_and_ends_while_nobody_else_reads_the_scan(
        monkeypatch: pytest.MonkeyPatch, part: str, function: str, call: Callable[[SharedQuery], object]) -> None:
    """Else another query's poll could take the scan on between the place of the change or the end and what is done
    there.
    """
    with splitjoin.share(R, S, time="t") as hub:
        join = hub.common_join(on="r.x = s.y", window="RANGE 3", device="golden")
        query = join.query(on="r.x = s.y")
        scan, held = join._scan, list[bool]()
        assert scan is not None
        watched = scan if part == "scan" else scan.pipeline
        original = getattr(watched, function)

        def watch(**options: bool) -> object:
            held.append(scan.lock._is_owned())  # type: ignore[attr-defined]
            return original(**options)

        monkeypatch.setattr(watched, function, watch)
        call(query)
        assert held and all(held)


def test_sql_and_chosen_columns() -> None:
    with splitjoin.share(R, S, time="t", names=("trades", "quotes")) as hub:
        join = hub.common_join(on="abs(r.x - s.y) <= 1", window="RANGE 2", select=["r.name"])
        query = join.sql("SELECT q.y + 1 AS z, t.name FROM trades t JOIN quotes q ON t.x = q.y")
        fill(hub, 4)
        hub.close()
        assert query.poll().to_pydict() == {"z": [1, 2, 3, 4], "name": ["r0.0", "r1.1", "r2.2", "r3.3"]}


def test_what_a_common_join_does_not_find_is_refused() -> None:
    with splitjoin.share(R, S, time="t") as hub:
        join = hub.common_join(on=["abs(r.x - s.y) <= 2", "r.x = s.y"], window="RANGE 4", select=["s.y"], name="band")
        assert str(join.joined.predicate) == "(abs((r.x - s.y)) <= 2)"  # the other one implies it
        for parts, said in (({"on": "abs(r.x - s.y) <= 3"}, "is not known to imply"),
                            ({"on": "r.x = s.y", "window": "RANGE 5"},
                             "a RANGE within its, but is not older than 5.*, and that of the join not older than 4"),
                            ({"on": "r.x = s.y", "window": "RANGE 4 ROWS 2"}, "must have the ROWS"),
                            ({"on": "r.x = s.y", "order": "outer(2)"}, "order 'total' or 'none'"),
                            ({"on": "r.x = s.y", "select": ["r.name"]}, "gives no column r.name"),
                            ({"on": "r.x = s.y AND r.name = 'a'", "select": ["s.y"]}, "gives no column r.name")):
            with pytest.raises(UnsupportedError, match=said):
                join.query(**parts)
        with pytest.raises(InputError, match="retain"):
            join.query(on="r.x = s.y", select=["s.y"], history=True)
        assert join.queries == [] and join.counters() == {}
        with pytest.raises(InputError, match="name of a common join must be new, but 'band'"):
            hub.common_join(on="r.x = s.y", window="RANGE 4", name="band")
        with pytest.raises(InputError, match="one condition at least"):
            hub.common_join(on=[], window="RANGE 4")


def test_snapshots_name_what_differs() -> None:
    def streams(on: str, named: bool = True) -> tuple[SharedStreams, CommonJoin]:
        hub = splitjoin.share(R, S, time="t")
        return hub, hub.common_join(on=on, window="RANGE 4", name="band" if named else None)

    hub, join = streams("abs(r.x - s.y) <= 2")
    with hub:
        join.query(on="r.x = s.y", name="q")
        fill(hub, 5)
        state = hub.snapshot()
    for on, named, own, said in (("abs(r.x - s.y) <= 2", False, False, "same common joins"),
                                 ("abs(r.x - s.y) <= 3", True, False, "its condition is"),
                                 ("abs(r.x - s.y) <= 2", True, True, "with the same queries")):
        hub, join = streams(on, named)
        with hub:
            (hub if own else join).query(on="r.x = s.y", name="q", **({"window": "RANGE 4"} if own else {}))
            with pytest.raises(SnapshotError, match=said):
                hub.restore(state)
            fill(hub, 3)
            hub.close()
            assert len(hub.queries["q"].poll()) == 3  # nothing has changed
