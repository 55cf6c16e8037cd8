"""Restarts of the device, after failures and by themselves: no result is lost or repeated."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

import splitjoin
from splitjoin import DeviceError, Query, StreamJoin
from splitjoin.base.errors import DeviceLost
from splitjoin.engines.device import Items, Session
from splitjoin.engines.golden import GoldenDevice

from ...support.lagging import LaggingDevice
from ...support.sessions import query, r, s


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


@pytest.mark.parametrize("fails", [*range(1, 12), (3, 4), (3, 5), (2, 4, 5), (7, 8, 9)])
def test_a_device_that_lost_its_session_is_opened_again(fails: int | tuple[int, ...]) -> None:
    """Also while the windows are being replayed."""
    device = LaggingDevice(2, fails=fails, failure=DeviceLost)
    times = (fails,) if isinstance(fails, int) else fails
    with StreamJoin(query(), device) as session:
        batches = []
        for at in range(5):
            session._pipeline._slice_rows = 1  # a replay is several pushes
            session.push_r(r(at))
            session.push_s(s(at))
            batches.append(session.poll())
        batches.append(session.flush())
        assert session.counters()["restarts"] >= any(n <= len(device.pushes) for n in times)
    expected = splitjoin.join(r(*range(5)), s(*range(5)), on="r.x = s.a", window="RANGE 1000", time="ts",
                              device="golden")
    assert pa.Table.from_batches(batches).to_pylist() == expected.to_pylist()


def test_a_device_that_gets_further_each_time_is_not_given_up() -> None:
    """Each session of the device takes ten slices of four tuples, and loses what it holds at the next one."""
    class Losing(LaggingDevice):
        most_arrivals = 4

        def open(self, query: Query) -> Session:
            session = super().open(query)
            push, taken = session.push, []

            def limited(arrivals: Any) -> None:
                taken.append(arrivals)
                if len(taken) > 10:
                    raise DeviceLost("it has lost its session")
                push(arrivals)

            session.push = limited  # type: ignore[method-assign]
            return session

    made = query(window="ROWS 2", time=None)
    with StreamJoin(made, Losing(1)) as session, StreamJoin(made, GoldenDevice()) as golden:
        for to in (session, golden):
            to.push_r(r(*range(150)))
            to.push_s(s(*range(150)))
        assert session.flush().to_pylist() == golden.flush().to_pylist()
        assert session.counters()["restarts"] > 3  # more often than a device without progress is tried


def test_what_a_device_gave_before_it_lost_its_session_counts() -> None:
    """Each session takes all that it is given, and gives 20 items of it before its state is lost in the flush."""
    class Forgetful(LaggingDevice):
        def open(self, query: Query) -> Session:
            session = super().open(query)
            flush, poll, rest = session.flush, session.poll, []

            def flushed() -> Items:
                found = flush()
                rest.append(found[:20])
                if len(found) > 20:
                    raise DeviceLost("it has lost its session")
                return found

            session.flush = flushed  # type: ignore[method-assign]  # of this session alone
            session.poll = lambda: rest.pop() if rest else poll()  # type: ignore[method-assign]  # of this session alone
            return session

    made = query(window="ROWS 2", time=None)
    with StreamJoin(made, Forgetful(1000)) as session, StreamJoin(made, GoldenDevice()) as golden:
        for n in range(20):
            for to in (session, golden):
                to.push_r(r(n))
                to.push_s(s(n))
        assert session.flush().to_pylist() == golden.flush().to_pylist()
        assert session.counters()["restarts"] > 3


def test_counters_open_a_lost_session_again() -> None:
    """Their own loss of the session is no failure, and no row is lost or repeated by it."""
    class Losing(LaggingDevice):
        def open(self, query: Query) -> Session:
            session = super().open(query)
            fails.append(len(fails) < 2)

            def counters() -> dict[str, int]:
                if fails[-1]:
                    raise DeviceLost("it has lost its session")
                return {"answers": 1}

            session.counters = counters  # type: ignore[method-assign]  # of this session alone
            return session

    fails: list[bool] = []
    made = query(window="ROWS 8", time=None)
    with StreamJoin(made, Losing(3)) as session, StreamJoin(made, GoldenDevice()) as golden:
        for to in (session, golden):
            to.push_r(r(*range(6)))
            to.push_s(s(*range(6)))
        counters = session.counters()
        assert (counters["restarts"], counters["device_answers"], counters["tuples_r"]) == (2, 1, 6)
        found = pa.Table.from_batches([session.poll(), session.flush()])
        assert found.to_pylist() == golden.flush().to_pylist()
        fails[-1] = True
        assert session.counters()["restarts"] == 3  # after the end, too


def test_a_session_that_is_lost_while_it_is_opened() -> None:
    class Opening(LaggingDevice):
        def open(self, query: Query) -> Session:
            opened.append(1)
            if len(opened) in (1, 3):
                raise DeviceLost("it has lost its session")
            return super().open(query)

    opened: list[int] = []
    with StreamJoin(query(), Opening(1)) as session:
        session.push_r(r(1))
        session.push_s(s(1))
        saved = session.snapshot()
        session.restore(saved)
        assert len(session.flush()) == 1 and len(opened) == 4


def test_a_device_that_loses_every_session_is_given_up() -> None:
    class Losing(LaggingDevice):
        def open(self, query: Query) -> Session:
            session = super().open(query)
            session.push = lambda arrivals: self._lose()
            return session

        def _lose(self) -> None:
            self.pushes.append(1)
            raise DeviceLost("it has lost its session")

    device = Losing()
    with StreamJoin(query(), device) as session:
        session.push_r(r(1))
        with pytest.raises(DeviceLost, match=r"lost 4 in a row, .* and got no further .*; check its power and its "
                                             r"cable; what was pushed is kept: restart") as lost:
            session.push_s(s(1))
        assert len(device.pushes) == 4 and "it has lost its session" in str(lost.value.__cause__)
        with pytest.raises(DeviceError, match=r"^the device failed: (?!.*kept.*kept).*restart\('cpu'\)"):
            session.push_s(s(2))
        session.restart("golden")
        assert not session._pipeline.results.has_news, "who iterates does not spin, but waits as before"
        assert len(session.flush()) == 1


def test_a_snapshot_behind_failed_replays_has_what_they_gave() -> None:
    """The first session gives nothing; each later one gives what it takes, and is lost at the second slice of four."""
    class Losing(LaggingDevice):
        most_arrivals = 4

        def open(self, query: Query) -> Session:
            opened.append(1)
            session = (LaggingDevice(1000) if len(opened) == 1 else LaggingDevice()).open(query)
            push, left = session.push, [6 if len(opened) == 1 else 1]

            def limited(arrivals: Any) -> None:
                left[0] -= 1
                if left[0] < 0:
                    raise DeviceLost("it has lost its session")
                push(arrivals)

            session.push = limited  # type: ignore[method-assign]  # of this session alone
            return session

    opened: list[int] = []
    made = query(window="ROWS 99", time=None)
    with StreamJoin(made, Losing()) as session, StreamJoin(made, GoldenDevice()) as golden:
        with suppress(DeviceLost):
            for n in range(9):
                for to in (golden, session):
                    to.push_r(r(n))
                    to.push_s(s(n))
        assert isinstance(session.failure, DeviceLost)
        with StreamJoin(made, GoldenDevice()) as other:
            other.restore(session.snapshot())
            found = other.flush().to_pylist()
        assert len(found) >= 6 and found == golden.poll().to_pylist()[:len(found)]


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
    from splitjoin.base.errors import WindowOverflow

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


@pytest.mark.parametrize("masked", [(0,), (1, 2)])
@pytest.mark.parametrize("window", ["ROWS 3", "RANGE 2", ("ROWS 1", "ROWS 7")])
def test_a_restart_leaves_each_tuple_in_the_core_where_it_was_stored(window: Any, masked: tuple[int, ...]) -> None:
    """So a masked core costs the same pairs with and without restarts (semantics, section 6)."""
    made = query(window=window, order="inner(1)")
    device = GoldenDevice(cores=3, masked=masked)
    with StreamJoin(made, device, punctuation=True) as whole, StreamJoin(made, device, punctuation=True) as often:
        found: list[Any] = []
        for at in range(40):
            for to in (whole, often):
                (to.push_s if at % 4 in (1, 2) else to.push_r)((s if at % 4 in (1, 2) else r)(at // 3))
            if at % 3 == 2:
                often.restart()
                found += often.poll_items()[0].tolist()
            if at % 7 == 6:
                often.restore(often.snapshot())
        for to in (whole, often):
            to.close_r()
            to.close_s()
        found += often.poll_items()[0].tolist()
        assert found == whole.poll_items()[0].tolist()
        assert often.counters()["restarts"] >= 13


def test_masks_after_a_restart_of_a_circuit() -> None:
    """The cores of a simulated circuit keep their tuples, too."""
    made = query(window="ROWS 3", time=None)
    tables = [r(0), s(0), r(0), r(0), r(0), r(0), s(0), r(0), s(0)]
    found = []
    for restarts in (False, True):
        with splitjoin.open(made, device="pysim", cores=2, capacity=4, masked=(0,), punctuation=True) as session:
            for n, table in enumerate(tables):
                (session.push_s if table.schema.names[1] == "a" else session.push_r)(table)
                if restarts and n == 6:
                    session.restart()
            session.close_r()
            session.close_s()
            found.append(session.poll_items()[0].tolist())
    assert found[0] == found[1]


def test_a_device_that_fails_wakes_a_reader_that_waits() -> None:
    class Failing(LaggingDevice):
        def open(self, query: splitjoin.Query) -> Any:
            session = super().open(query)

            def push(arrivals: Any) -> None:
                raise DeviceError("the board is gone")

            session.push = push  # type: ignore[method-assign]  # a fault of the device
            return session

    with StreamJoin(query(window="RANGE 3"), Failing()) as session:
        session.push_r(r(1))
        with pytest.raises(DeviceError, match="the board is gone"):
            session.push_s(s(1))
        assert session._results.has_news  # so that `wait` would return, which a poll follows
        with pytest.raises(DeviceError, match="the board is gone"):
            list(session)
