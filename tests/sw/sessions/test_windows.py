"""Windows that change while a session runs: golden's answer with the same changes, on every device, in every kind of
join whose windows change.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin import CapacityError, DeviceError, Shedding, UnsupportedError, WindowError
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.golden import GoldenDevice

from ...support.changes import ROWS, SCHEMA, Turn, golden, golden_rows, run, stream, turns
from ...support.feeding import stream_query
from ...support.lagging import LaggingDevice
from ...support.sampling import at_length, examples
from ...support.sessions import query, r, s

WINDOWS: list[Any] = ["RANGE 0", "RANGE 3", "RANGE 9", "RANGE 40", "ROWS 1", "ROWS 4", "ROWS 30", "ROWS 3 RANGE 9",
                      ("RANGE 2", "ROWS 5"), ("ROWS 9 RANGE 20", "RANGE 5")]


@settings(max_examples=examples(20), deadline=None)
@given(data=st.data(), a=ROWS, b=ROWS, window=st.sampled_from(WINDOWS))
def test_windows_in_slices_are_golden_s(data: st.DataObject, a: list[tuple[int, int]], b: list[tuple[int, int]],
                                        window: Any) -> None:
    """`tests/machine` has the other orders and kinds of join."""
    tables = {"r": stream(a), "s": stream(b)}
    asked = stream_query(tables["r"], tables["s"], on="r.x <= s.x", window=window, time="ts", order="inner(1)")
    how = [turn for turn in data.draw(turns("inner(1)", WINDOWS)) if turn[0] != "mask"]  # slices are a device's own
    found, changes = run(lambda _: splitjoin.open(asked, GoldenDevice(), punctuation=True), tables, how,
                         [GoldenDevice()])
    assert found.tolist() == golden(asked, arrivals(asked, tables["r"], tables["s"]), changes, 1).tolist()


def test_a_shorter_window_decides_at_once() -> None:
    asked = splitjoin.query(SCHEMA, SCHEMA, on="TRUE", window="RANGE 20", time="ts", how="full")
    with splitjoin.open(asked) as session:
        session.push_r(stream([(0, 7), (10, 8)]))
        session.heartbeat(11)
        assert not len(session.poll())
        session.window("RANGE 5")
        assert session.poll()["x_r"].to_pylist() == [7]


def nearest_partners(device: str) -> list[tuple[int, int]]:
    """The rows of a session whose first partner leaves the window of S while its tuple of R waits for a nearer one."""
    asked = splitjoin.query(SCHEMA, SCHEMA, on="TRUE", window="RANGE 20", time="ts", how="asof", direction="nearest")
    with splitjoin.open(asked, device) as session:
        session.push_s(stream([(8, 9)]))
        session.push_r(stream([(10, 8)]))
        session.heartbeat(11)
        session.window(["RANGE 20", "RANGE 1"])
        session.window("RANGE 20")
        saved = session.snapshot()
    with splitjoin.open(asked, device) as session:
        session.restore(saved)
        session.push_r(stream([(11, 1)]))
        session.push_s(stream([(15, 6)]))
        return [(row["x_r"], row["x_s"]) for row in session.flush().to_pylist()]


@pytest.mark.parametrize("device", ["golden", "cpu"])
def test_a_partner_that_has_expired_stays_one_and_finds_no_others(device: str) -> None:
    assert nearest_partners(device) == [(8, 9), (1, 6)]


@pytest.mark.parametrize("device", ["cpu", LaggingDevice(lag=9)], ids=["cpu", "lagging"])
def test_what_had_expired_does_not_come_back_and_a_shorter_window_holds_at_once(device: Any) -> None:
    table = stream([(n, n) for n in range(8)])
    asked = splitjoin.query(SCHEMA, SCHEMA, on="TRUE", window="RANGE 2", time="ts")
    with splitjoin.open(asked, device) as session:
        session.push_s(table.slice(0, 4))
        session.heartbeat(4)
        session.push_r(table.slice(4, 1))
        assert session.window("RANGE 100") == (1, 4)
        session.push_r(table.slice(5, 1))
        session.heartbeat(5)
        assert session.window(["RANGE 0", "RANGE 3"]) == (2, 4)
        session.push_r(table.slice(6, 1))
        session.heartbeat(6)
        session.window("RANGE 100")
        session.push_r(table.slice(7, 1))
        found = [(row["ts_r"], row["ts_s"]) for row in session.flush().to_pylist()]
    assert found == [(4, 2), (4, 3), (5, 2), (5, 3), (6, 3), (7, 3)], "0 and 1 do not come back, nor does 2 for 7"


def test_a_promise_lets_tuples_expire_as_a_tuple_does() -> None:
    asked = query(window="RANGE 2")
    with splitjoin.open(asked) as session:
        session.push_r(r(0))
        session.heartbeat(3)
        session.window("RANGE 100")
        session.push_s(s(3))
        assert not len(session.flush())


@pytest.mark.parametrize("kind", [at_length(kind) for kind in (
    {"how": "semi"}, {"how": "full"}, {"how": "anti"}, {"how": "asof", "direction": "nearest"},
    {"how": "asof_left", "direction": "forward"})], ids=str)
def test_windows_of_circuits_that_give_the_pairs_that_decide(kind: dict[str, Any]) -> None:
    tables = {"r": stream([(n, n % 3) for n in range(9)]), "s": stream([(n + n % 2, n % 3) for n in range(9)])}
    asked = splitjoin.query(SCHEMA, SCHEMA, on="r.x <= s.x", window="ROWS 3 RANGE 4", time="ts", **kind)
    how: list[Turn] = [("r", 5), ("s", 4), ("window", "ROWS 6 RANGE 4"), ("r", 1), ("s", 2), ("snapshot", 0),
                       ("window", "ROWS 2 RANGE 1"), ("r", 1), ("s", 1), ("window", "ROWS 6 RANGE 4")]
    found, changes = run(lambda n: splitjoin.open(asked, "pysim", cores=2, capacity=4, punctuation=True), tables, how)
    assert found.tolist() == golden_rows(asked, arrivals(asked, tables["r"], tables["s"]), changes, 1).tolist()


def test_windows_of_a_circuit() -> None:
    table = stream([(n, 0) for n in range(8)])
    tables = {"r": table, "s": table}
    asked = splitjoin.query(SCHEMA, SCHEMA, on="TRUE", window="ROWS 3", time="ts")
    how: list[Turn] = [("r", 5), ("s", 4), ("window", "ROWS 6"), ("r", 1), ("s", 2), ("snapshot", 0),
                       ("window", "ROWS 2 RANGE 3"), ("r", 1), ("s", 1)]
    found, changes = run(lambda n: splitjoin.open(asked, "pysim", cores=1, capacity=8, punctuation=True), tables, how)
    assert found.tolist() == golden(asked, arrivals(asked, table, table), changes, 1).tolist()


def test_a_window_that_does_not_fit_changes_nothing() -> None:
    table = stream([(n, 0) for n in range(8)])
    asked = splitjoin.query(SCHEMA, SCHEMA, on="TRUE", window="ROWS 3", time="ts")
    with splitjoin.open(asked, "pysim", cores=1, capacity=8) as session, splitjoin.open(asked, "golden") as want:
        for one in (session, want):
            one.push_r(table.slice(0, 4))
            one.push_s(table.slice(0, 4))
        with pytest.raises(CapacityError, match="ROWS 9 is more than"):
            session.window(["ROWS 9", "ROWS 1"])
        with pytest.raises(WindowError, match="the window is empty"):
            session.window("")
        for one in (session, want):
            one.push_r(table.slice(4))
            one.push_s(table.slice(4))
        assert session.flush().to_pylist() == want.flush().to_pylist()


@pytest.mark.parametrize("fails", [(2,), (2, 3)])
@pytest.mark.parametrize("how", ["inner", "full"])
def test_a_device_that_fails_at_a_change_keeps_the_windows(fails: tuple[int, ...], how: Any) -> None:
    """The second time, it cannot even go on with the windows that it had."""
    table = stream([(n, n % 2) for n in range(6)])
    asked = splitjoin.query(SCHEMA, SCHEMA, on="r.x < s.x", window="RANGE 3", time="ts", how=how)
    with splitjoin.open(asked, LaggingDevice(lag=2, fails=fails)) as session, splitjoin.open(asked) as want:
        for one in (session, want):
            one.push_r(table.slice(0, 3))
            one.push_s(table.slice(0, 3))
        with pytest.raises(DeviceError, match="the cable is out"):
            session.window("RANGE 0")
        if len(fails) > 1:
            with pytest.raises(DeviceError, match="the device failed"):
                session.push_r(table.slice(3))
            session.restart("cpu")
        for one in (session, want):
            one.push_r(table.slice(3))
            one.push_s(table.slice(3))
        assert session.flush().to_pylist() == want.flush().to_pylist()


def test_a_longer_range_sheds_by_its_load() -> None:
    with splitjoin.open(query(window="ROWS 2"), when_full="shed", shedding=Shedding(capacity=8)) as session:
        def push(*times: int) -> int:
            """How many tuples of R are dropped."""
            for ts in times:
                session.push_s(s(ts))
                session.push_r(r(ts))
            return len(session.shed_r())

        assert push(*range(30)) == 0, "ROWS bounds a window by itself"
        session.window("RANGE 100")
        assert push(*range(30, 60)) > 10


@pytest.mark.parametrize(("more", "message"), [
    ({"aggregate": {"n": "count(*)"}, "how": "left"}, "engines that fold aggregates find them by one window"),
    ({"order": "none"}, "joins tuples of RANGE windows as they come"),
    ({"window": None, "how": "asof", "on": "r.x = s.x"}, "of each key the last tuple alone is there")], ids=str)
def test_where_windows_do_not_change(more: dict[str, Any], message: str) -> None:
    with (splitjoin.open(splitjoin.query(SCHEMA, SCHEMA, time="ts", **{"on": "TRUE", "window": "RANGE 5", **more}))
          as session, pytest.raises(UnsupportedError, match=f"^windows cannot change here: .*{message}")):
        session.window("RANGE 3")


@pytest.mark.parametrize(("device", "message"), [
    (GoldenDevice(expire="own"), "expire='own' lets tuples leave"),
    (GoldenDevice(cores=2, masked=[1]), "cores of the device are masked")])
def test_devices_whose_windows_do_not_change(device: GoldenDevice, message: str) -> None:
    with splitjoin.open(query(), device=device) as session, pytest.raises(UnsupportedError, match=message):
        session.window("RANGE 3")


def test_windows_do_not_change_at_the_end() -> None:
    with splitjoin.open(query()) as session:
        session.close_r()
        session.close_s()
        with pytest.raises(UnsupportedError, match="the input has ended"):
            session.window("RANGE 3")
