"""Threads, asyncio, limits, failures, restarts."""

import asyncio
from threading import Event, Thread
from typing import Any

import pyarrow as pa
import pytest
import splitjoin
from splitjoin import BackPressure, DeviceError, InputError, Limit, Query, StreamJoin
from splitjoin.cpu.engine import CpuDevice
from splitjoin.golden import GoldenDevice
from splitjoin.stream.results import ResultQueue

from ...support.lagging import LaggingDevice

R, S = pa.schema([("ts", pa.int64()), ("x", pa.int32())]), pa.schema([("ts", pa.int64()), ("a", pa.int32())])


#: What a push says after the end of its stream.
FINISHED = "stream r is finished and takes no more tuples or sources; push before it is closed, or open a new session"


def query(**more: Any) -> Query:
    return splitjoin.query(R, S, **{"on": "r.x = s.a", "window": "RANGE 1000", "time": "ts"} | more)


def r(*times: int) -> pa.Table:
    return pa.table({"ts": times, "x": [0] * len(times)}, schema=R)


def s(*times: int) -> pa.Table:
    return pa.table({"ts": times, "a": [0] * len(times)}, schema=S)


def in_thread(call: Any) -> tuple[Thread, Event, list[Any]]:
    """``call`` in a thread; an event that is set when it begins, and what it returned or raised."""
    begun, result = Event(), []

    def run() -> None:
        begun.set()
        try:
            result.append(call())
        except BaseException as error:
            result.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    assert begun.wait(60)
    return thread, begun, result


def blocked(session: StreamJoin) -> None:
    """Wait until a push of another thread waits for room."""
    for _ in range(60_000):
        with session._lock:  # who wants room holds it, but for the time it waits
            if session._blocked:
                return
        Event().wait(0.001)
    raise AssertionError("nobody waits")


def joined(thread: Thread) -> None:
    thread.join(60)
    assert not thread.is_alive()


def test_a_slow_reader_blocks_push_and_poll_wakes_it() -> None:
    with StreamJoin(query(), GoldenDevice(), limit=5, when_full="block") as session:
        session.push_r(r(*range(3)))
        session.push_s(s(*range(9)))
        session.heartbeat(100, "r")
        assert session.counters()["unread_rows"] >= 5
        thread, _, result = in_thread(lambda: session.push_s(s(10)))
        blocked(session)
        assert result == []
        while not result:
            session.poll()
        joined(thread)
        assert result == [None]
        assert session.counters()["tuples_s"] == 10


def test_a_poll_beside_other_work_still_wakes_who_is_blocked() -> None:
    with StreamJoin(query(), GoldenDevice(), limit=1, when_full="block") as session:
        session.push_r(r(1))
        session.push_s(s(1))
        session.heartbeat(2, "r")
        pusher, _, pushed = in_thread(lambda: session.push_s(s(3)))
        blocked(session)
        free = Event()

        def work() -> None:
            with session._lock:
                assert free.wait(60)

        worker, *_ = in_thread(work)
        while session._lock.acquire(blocking=False):
            session._lock.release()
        poller, _, polled = in_thread(session.poll)
        Event().wait(0.05)
        free.set()
        for thread in (worker, poller, pusher):
            joined(thread)
        assert (len(polled[0]), pushed) == (1, [None])


def test_waiting_rows_block_push_until_the_other_stream_comes() -> None:
    with StreamJoin(query(), GoldenDevice(), limit=Limit(waiting=3), when_full="block") as session:
        session.push_r(r(1, 2, 3, 4))
        thread, _, result = in_thread(lambda: session.push_r(r(5)))
        blocked(session)
        session.push_s(s(4))  # S is behind, so it is not held up
        joined(thread)
        assert result == [None]
        assert session.counters()["tuples_r"] == 4


@pytest.mark.parametrize("time", ["ts", None])
def test_advice_after_the_end_can_be_followed(time: str | None) -> None:
    def refused(call: Any) -> str:
        with pytest.raises(InputError) as caught:
            call()
        return str(caught.value)

    with StreamJoin(query(time=time, window="ROWS 9"), GoldenDevice()) as session:
        early = session.source("s")
        early.close()
        assert refused(lambda: early.push(s(1))) == "source s[0] is closed and takes no more; add a new one"
        session.source("s").push(s(1))
        session.push_r(r(1))
        session.close_r()
        session.close_s()
        for push in (lambda: session.push_r(r(2)), lambda: session.source("r"),
                     lambda: session.source_at("r", 0).push(r(2))):
            assert refused(push) == FINISHED
        assert "stream s is finished" in refused(lambda: early.push(s(1)))
        assert "stream s is finished" in refused(lambda: session.push_s(s(1)))


@pytest.mark.parametrize(("wake", "error", "message"), [
    (lambda j: j.close(), DeviceError, "the session is closed"),
    (lambda j: j.close_r(), InputError, FINISHED),
    (lambda j: j.flush(), InputError, FINISHED),
])
def test_blocked_pushes_are_woken(wake: Any, error: type[Exception], message: str) -> None:
    with StreamJoin(query(), GoldenDevice(), limit=Limit(waiting=2), when_full="block") as session:
        session.push_r(r(1, 2, 3))
        thread, _, result = in_thread(lambda: session.push_r(r(5)))
        blocked(session)
        wake(session)
        joined(thread)
        assert (type(result[0]), str(result[0])) == (error, message)


def test_a_failed_device_wakes_blocked_pushes_and_readers() -> None:
    device = LaggingDevice(fails=1)
    with StreamJoin(query(), device, limit=Limit(waiting=2), when_full="block") as session:
        session.push_r(r(1, 2, 3))
        pusher, _, pushed = in_thread(lambda: session.push_r(r(5)))
        reader, _, read = in_thread(lambda: list(session))
        blocked(session)
        with pytest.raises(DeviceError, match="the cable is out"):
            session.push_s(s(4))
        joined(pusher)
        joined(reader)
        assert [str(e[0]) for e in (pushed, read)] == [
            "the device failed: DeviceError('the cable is out'); what was pushed is kept: restart() goes on in a fresh "
            "device session, restart('cpu') on another device"] * 2
        session.restart("golden")
        assert len(session.flush()) == 3


def test_iteration_waits_for_a_producer() -> None:
    def produce() -> None:
        for at in range(0, 600, 10):
            session.push_r(r(*range(at, at + 10)))
            session.push_s(s(*range(at, at + 10)))
        session.close_r()
        session.close_s()

    with StreamJoin(query(window="RANGE 3"), CpuDevice(), limit=7, when_full="block") as session:
        thread, _, result = in_thread(produce)
        batches = list(session)
        joined(thread)
        assert result == [None]
        assert all(len(b) for b in batches)
        expected = splitjoin.join(r(*range(600)), s(*range(600)), on="r.x = s.a", window="RANGE 3", time="ts",
                                  device="golden")
        assert pa.Table.from_batches(batches).to_pylist() == expected.to_pylist()
        assert session.finished
        assert list(session) == []


def test_a_failure_before_a_reader_waits_is_not_missed() -> None:
    queue = ResultQueue(R, punctuated=False)
    queue.fail()
    queue.wait(None)
    queue.recover()
    thread, *_ = in_thread(lambda: queue.wait(None))
    thread.join(0.05)
    assert thread.is_alive()
    queue.fail()
    joined(thread)


def test_many_producers_of_many_sources() -> None:
    def produce(source: Any, make: Any) -> None:
        with source:
            for at in range(0, 300, 5):
                source.push(make(*range(at, at + 5)))

    with StreamJoin(query(window="RANGE 2"), CpuDevice(), limit=Limit(rows=50, waiting=20), when_full="block") as j:
        sources = [(j.source("r"), r), (j.source("s"), s), (j.source("r"), r), (j.source("s"), s)]
        threads = [in_thread(lambda source=source, make=make: produce(source, make)) for source, make in sources]
        threads.append(in_thread(lambda: [joined(t) for t, *_ in threads[:4]] and (j.close_r(), j.close_s())))
        rows = pa.Table.from_batches(list(j))
        for thread, _, result in threads:
            joined(thread)
            assert not isinstance(result[0], BaseException), result
        twice = [t for t in range(300) for _ in (0, 1)]
        expected = splitjoin.join(r(*twice), s(*twice), on="r.x = s.a", window="RANGE 2", time="ts", device="golden")
        assert rows.to_pylist() == expected.to_pylist()


def test_back_pressure_by_its_text() -> None:
    with StreamJoin(query(), GoldenDevice(), limit=Limit(rows=2, waiting=2)) as session:
        session.push_r(r(1, 2, 3))
        with pytest.raises(BackPressure) as caught:
            session.push_r(r(4))
        assert str(caught.value) == ("the session is full: 3 tuples wait for s, and the limit is 2; push or heartbeat "
                                     "there, or close it; the batch was not taken")
        session.push_s(s(3))
        session.heartbeat(4, "r")
        with pytest.raises(BackPressure) as caught:
            session.push_s(s(4))
        assert str(caught.value) == ("the session is full: 3 result rows (72 bytes) were not polled, and the limit is "
                                     "2 rows or 1073741824 bytes; poll first; the batch was not taken")
        assert len(session.poll()) == 3
        session.push_s(s(4))
    with StreamJoin(query(), GoldenDevice(), limit=Limit(nbytes=1)) as session:
        session.push_r(r(1))
        session.push_s(s(2, 3))
        session.heartbeat(9)
        with pytest.raises(BackPressure, match="poll first"):
            session.push_r(r(9))


@pytest.mark.parametrize(("limit", "message"), [
    ({"rows": 0}, "the limit of rows must be a whole number from 1, or None, not 0"),
    ({"nbytes": 1.5}, "the limit of nbytes must be a whole number from 1, or None, not 1.5"),
    ({"waiting": True}, "the limit of waiting must be a whole number from 1, or None, not True"),
    ({"late": -1}, "the limit of late must be a whole number from 0, not -1"),
])
def test_wrong_limits(limit: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        Limit(**limit)
    assert str(caught.value) == message


@pytest.mark.parametrize("lag", [0, 3])
def test_a_session_outlives_the_row_numbers_of_its_device(lag: int) -> None:
    """The device can number 7 tuples of a stream; the session goes on in fresh ones."""
    made = query(window="ROWS 3", time=None)
    device = LaggingDevice(lag, rows=7)
    with (StreamJoin(made, device, punctuation=True) as session,
          StreamJoin(made, GoldenDevice(), punctuation=True) as g):
        found: list[Any] = []
        expected: list[Any] = []
        for n in range(40):
            for to, out in ((session, found), (g, expected)):
                (to.push_r if n % 3 else to.push_s)((r if n % 3 else s)(n))
                out += to.poll_items()[0].tolist()
        for to, out in ((session, found), (g, expected)):
            to.close_r()
            to.close_s()
            out += to.poll_items()[0].tolist()
        assert found == expected
        assert session.counters()["restarts"] >= 5


@pytest.mark.parametrize("lag", range(6))
@pytest.mark.parametrize("order", ["inner(1)", "inner(2)", "outer(2)", "total", "none"])
def test_restarts_in_the_middle_of_a_probe(order: str, lag: int) -> None:
    """A star within a probe does not mean that the device is done with the probe."""
    made = query(order=order, window="ROWS 4", time=None)
    with StreamJoin(made, LaggingDevice(lag), punctuation=True) as session:
        found: list[Any] = []
        for n in range(12):
            (session.push_r if n % 2 else session.push_s)((r if n % 2 else s)(n))
            session.restart()
            found += session.poll_items()[0].tolist()
        session.close_r()
        session.close_s()
        found += session.poll_items()[0].tolist()
    with StreamJoin(made, GoldenDevice(), punctuation=True) as session:
        for n in range(12):
            (session.push_r if n % 2 else session.push_s)((r if n % 2 else s)(n))
        session.close_r()
        session.close_s()
        assert found == session.poll_items()[0].tolist()


def test_heartbeats_do_not_pile_up_behind_a_lagging_device() -> None:
    with StreamJoin(query(), LaggingDevice(50), punctuation=True) as session:
        session.push_r(r(1))
        session.push_s(s(1))
        for at in range(2, 200):
            session.heartbeat(at)
        assert len(session._pipeline.windows._checkpoints) < 4


@pytest.mark.parametrize("fails", [1, 2, 3])
def test_nothing_is_lost_when_a_device_fails(fails: int) -> None:
    with StreamJoin(query(), LaggingDevice(2, fails=fails)) as session:
        batches, failed = [], False
        for at in range(5):
            for push, data in ((session.push_r, r(at)), (session.push_s, s(at))):
                try:
                    push(data)
                except DeviceError as error:
                    assert str(error) == "the cable is out"
                    with pytest.raises(DeviceError, match="the device failed"):
                        session.push_r(r(99))
                    saved = session.snapshot()
                    failed = True
                    session.restart(GoldenDevice())
                    with StreamJoin(query(), GoldenDevice()) as other:
                        other.restore(saved)  # a snapshot of a failed session is good too
                        assert other.counters()["tuples_r"] <= at + 1
                batches.append(session.poll())
        batches.append(session.flush())
        assert failed
        rows = pa.Table.from_batches(batches)
        expected = splitjoin.join(r(*range(5)), s(*range(5)), on="r.x = s.a", window="RANGE 1000", time="ts",
                                  device="golden")
        assert rows.to_pylist() == expected.to_pylist()


def test_overflow_names_the_row_of_the_stream() -> None:
    """After a restart, a device counts rows from its first one; the message must not."""
    from splitjoin.errors import WindowOverflow

    class Overflowing(LaggingDevice):
        def open(self, query: Query) -> Any:
            session = super().open(query)
            push = session.push

            def limited(arrivals: Any) -> None:
                if len(arrivals) and arrivals.ts[-1] == 50:
                    raise WindowOverflow("r", 2, 2)
                push(arrivals)

            session.push = limited  # type: ignore[method-assign]  # of this session only
            return session

    with StreamJoin(query(window="RANGE 5"), Overflowing(), limit=None) as session:
        session.push_r(r(1, 2, 3, 4, 20, 21))
        session.heartbeat(22)
        assert session.counters()["retained_r"] == 2
        session.restart()
        session.push_r(r(50))
        with pytest.raises(WindowOverflow) as caught:
            session.heartbeat(51)
        assert (caught.value.stream, caught.value.row, caught.value.capacity) == ("r", 6, 2)


def test_a_closed_session_refuses_everything() -> None:
    session = StreamJoin(query(), GoldenDevice())
    source = session.source("r")
    session.close()
    session.close()
    for call in (lambda: session.push_r(r(1)), lambda: source.push(r(1)), session.poll, session.flush, session.snapshot,
                 lambda: session.restore(b""), session.restart, lambda: session.heartbeat(1), session.close_r,
                 lambda: session.source("r"), lambda: list(session)):
        with pytest.raises(DeviceError) as caught:
            call()
        assert str(caught.value) == "the session is closed"
    source.close()


def test_asyncio_waits_for_room_and_for_rows() -> None:
    most = 0

    async def produce(session: splitjoin.AsyncStreamJoin) -> None:
        nonlocal most
        for at in range(0, 300, 10):
            await session.push_r(r(*range(at, at + 10)))
            await session.push_s(s(*range(at, at + 10)))
            most = max(most, (await session.counters())["unread_rows"])
        await session.close_r()
        await session.close_s()

    async def run() -> list[Any]:
        async with splitjoin.open_async(query(window="RANGE 3"), "golden", limit=7) as session:
            task = asyncio.create_task(produce(session))
            rows = [row async for batch in session for row in batch.to_pylist()]
            await task
            assert session.finished
            assert [b async for b in session] == []
            return rows

    rows = asyncio.run(run())
    expected = splitjoin.join(r(*range(300)), s(*range(300)), on="r.x = s.a", window="RANGE 3", time="ts",
                              device="golden")
    assert rows == expected.to_pylist()
    assert most <= 7 + 10 * 14


def test_asyncio_has_all_that_sessions_have() -> None:
    async def run() -> None:
        made = query()
        async with splitjoin.open_async(made, "golden", lateness=3, punctuation=True) as session:
            async with await session.source("r") as source:
                await source.push(r(5, 1, 6))
                await source.heartbeat(7)
            await session.push_s(s(4))
            await session.heartbeat(9)
            items, rows = await session.poll_items()
            assert (len(items), len(rows)) == (5, 2)
            assert (await session.late_r())["ts"].to_pylist() == [1]
            assert (await session.late_s()).num_rows == 0
            saved = await session.snapshot()
            await session.restart("golden")
            assert (await session.source_at("r", 0)).index == 0
            async with splitjoin.open_async(made, LaggingDevice(3), lateness=3, punctuation=True) as other:
                await other.restore(saved)
                await other.push_s(s(20))
                reader = asyncio.create_task(anext(aiter(other)))
                await asyncio.sleep(0.05)
                await other.push_r(r(30))
                await other.close_r()
                await other.close_s()
                assert len(await reader) + sum([len(batch) async for batch in other]) == 4
                assert len(await other.flush()) == 0
                assert other.schema == rows.schema
            await other.close()
            with pytest.raises(DeviceError, match="the session is closed"):
                await other.poll()

    asyncio.run(run())


def test_a_cancelled_push_that_waits_takes_nothing() -> None:
    async def run() -> None:
        async with splitjoin.open_async(query(), "golden", limit=Limit(waiting=2)) as session:
            await session.push_r(r(1, 2))
            push = asyncio.create_task(session.push_r(r(3)))
            await asyncio.sleep(0.05)
            push.cancel()
            with pytest.raises(asyncio.CancelledError):
                await push
            await session.push_s(s(9))
            assert (await session.counters())["waiting"] == 1  # S itself
            closing = asyncio.create_task(session.push_s(s(10)))
            await asyncio.sleep(0)
            await session.close()
            assert isinstance((await asyncio.gather(closing, return_exceptions=True))[0], (DeviceError, type(None)))

    asyncio.run(run())
