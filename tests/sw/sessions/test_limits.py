"""Limits of a session: what is full refuses or blocks, and what wakes who is blocked."""

from __future__ import annotations

from threading import Event
from typing import Any

import pytest

import splitjoin
from splitjoin import BackPressure, DeviceError, InputError, Limit, StreamJoin
from splitjoin.engines.golden import GoldenDevice

from ...support.lagging import LaggingDevice
from ...support.patience import SOON
from ...support.sessions import FINISHED, blocked, in_thread, joined, query, r, s


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
        free, works = Event(), Event()

        def work() -> None:
            with session._lock:
                works.set()
                assert free.wait(SOON)

        worker, *_ = in_thread(work)
        assert works.wait(SOON)
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


def test_no_late_row_need_be_kept() -> None:
    with splitjoin.open(query(), "golden", lateness=0, limit=Limit(late=0)) as session:
        session.push_s(s(5))
        session.push_r(r(5, 3))
        counters = session.counters()
        assert (len(session.late_r()), counters["late_r"], counters["forgotten_r"]) == (0, 1, 1)


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
