"""Masks and precisions that change while a session runs: golden's answer with the same changes, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin import DeviceError, InputError, OrderError, Query, UnsupportedError
from splitjoin.engines.arrival import Arrivals, arrivals
from splitjoin.engines.device import Items
from splitjoin.engines.golden import GoldenDevice
from splitjoin.rows.numbered import NumberedSession

from ...machine.mortal import MortalDevice
from ...support.changes import CORES, ROWS, SCHEMA, Change, golden, run, stream, turns
from ...support.feeding import stream_query
from ...support.lagging import LaggingDevice
from ...support.sampling import at_length, examples
from ...support.sessions import query, r, s


@settings(max_examples=examples(40), deadline=None)
@given(data=st.data(), a=ROWS, b=ROWS, window=st.sampled_from(["RANGE 7", "ROWS 5"]))
def test_changes_in_slices_are_golden_s(data: st.DataObject, a: list[tuple[int, int]], b: list[tuple[int, int]],
                                        window: str) -> None:
    """`tests/machine` has the other orders."""
    tables = {"r": stream(a), "s": stream(b)}
    asked = stream_query(tables["r"], tables["s"], on="r.x <= s.x", window=window, time="ts", order="inner(1)")
    how = data.draw(turns("inner(1)"))
    devices: list[Any] = [GoldenDevice(), LaggingDevice(lag=3)]
    for device in devices:  # slices are a device's own
        found, changes = run(lambda _, device=device: splitjoin.open(asked, device, punctuation=True), tables, how,
                             devices)
        # Each stream's items have their order.
        found, want = (items[np.argsort(items["side"], kind="stable")]
                       for items in (found, in_slices(asked, tables, changes)))
        assert found.tolist() == want.tolist(), device


def in_slices(asked: Query, tables: dict[str, pa.Table], changes: list[Change]) -> Items:
    """Golden's items on one core, on which the precisions of ``changes`` are made, without the pairs that their masks
    hide, one by one.
    """
    whole = arrivals(asked, tables["r"], tables["s"])
    position = {side: np.flatnonzero(whole.stream == side) for side in (0, 1)}
    items = golden(asked, whole, [change for change in changes if change.n is not None], 1)
    keep = []
    for kind, side, r_id, s_id in items.tolist():
        probe, stored = (r_id, s_id) if side == 0 else (s_id, r_id)
        known = [c.masked for c in changes if c.masked is not None and c.at <= position[side][probe]]
        keep.append(kind != 0 or not known or stored % CORES not in known[-1])
    return items[np.array(keep, bool)]


def test_changes_stay_from_a_circuit_to_the_cpu() -> None:
    asked = splitjoin.query(SCHEMA, SCHEMA, on="TRUE", window="ROWS 4", order="outer(2)")
    table = stream([(0, n) for n in range(8)])
    found, changes = run(lambda n: splitjoin.open(asked, "pysim" if n % 2 == 0 else "cpu", punctuation=True,
                                                  **({"cores": 2, "capacity": 2} if n % 2 == 0 else {})),
                         {"r": table, "s": table}, [("r", 3), ("s", 3), ("mask", {1}), ("r", 2), ("s", 2),
                                                    ("precision", 3), ("snapshot", 0), ("r", 2), ("mask", set()),
                                                    ("s", 2)])
    order = [side for n, side in ((3, 0), (3, 1), (2, 0), (2, 1), (2, 0), (2, 1), (1, 0), (1, 1)) for _ in range(n)]
    whole = Arrivals(np.array(order, np.uint8), None, table, table)
    assert [change.at for change in changes] == [6, 10, 12]
    assert found.tolist() != golden(asked, whole, [], 3).tolist()
    want = golden(asked, whole, changes, CORES)
    for n in range(8):  # the stars of each stream, and the pairs of each probe, are those of the golden model
        for side, name in enumerate("rs"):
            of = [sorted(i for i in items.tolist() if i[1] == side and i[2 + side] == n) for items in (found, want)]
            assert of[0] == of[1], (name, n)


def test_what_changes_refuse() -> None:
    with splitjoin.open(query(order="outer(2)")) as session:
        with pytest.raises(InputError, match="the number of sub-windows must be a whole number from 1, not None; the "
                                             "device 'cpu' has no cores"):
            session.mask([0])
        with pytest.raises(DeviceError, match="masked cores must be numbers from 0 to 1, not 2"):
            session.mask([2], of=2)
        with pytest.raises(InputError, match=r"masked cores must be a list of numbers, such as \[0\], not 1"):
            session.mask(1, of=2)  # type: ignore[arg-type]  # wrong on purpose
        with pytest.raises(OrderError, match="the precision of order 'outer' must be 1 to"):
            session.precision(0)
    with splitjoin.open(query()) as session, pytest.raises(OrderError, match="a precision is of orders"):
        session.precision(2)
    folded = query(aggregate={"n": "count(*)"}, how="left", on="r.x = s.a")
    with splitjoin.open(folded, "cpu") as session, pytest.raises(UnsupportedError, match="a mask needs all pairs"):
        session.mask([0], of=2)


@pytest.mark.parametrize(("hidden", "way", "n"), [
    ("mask", "restart", 2), ("mask", "move", 2), ("mask", "restore", 2), ("device", "restart", 1),
    ("device", "restore", 1), ("fault", "restart", 1), ("fault", "restore", 1),
    ("fault", "move", 0)])  # as the device that has lost the core goes on to serve what it has stored
def test_hidden_pairs_do_not_count_where_devices_fold_by_themselves(hidden: str, way: str, n: int) -> None:
    """A row that waits has the partners that were found, and all that come once no core is masked or left out."""
    folded = query(aggregate={"n": "count(*)"}, how="left", window="RANGE 9")
    device = GoldenDevice(cores=3, masked=[0] if hidden == "device" else ()) if hidden != "fault" else MortalDevice()
    session = splitjoin.open(folded, device)
    if hidden == "mask":
        session.mask([0], of=3)
    if isinstance(device, MortalDevice):
        assert device.latest is not None
        device.latest.leave_out(0, 0)
    session.push_r(r(1, 2))
    session.push_s(s(3))  # the core that has r0 does not give it
    session.heartbeat(4)
    if hidden == "mask":
        session.mask([], of=3)
    session.push_s(s(4))  # nor for this one, unless there is no mask any more
    session.heartbeat(5)
    if way == "restore":
        saved = session.snapshot()
        session.close()
        session = splitjoin.open(folded, "cpu")
        session.restore(saved)
    else:
        getattr(session, way)("cpu")
    session.push_s(s(5))
    session.heartbeat(20)
    session.push_r(r(20))
    assert not session._pipeline.changes.hides_pairs, "all rows are decided that lack pairs"
    session.restart("cpu")
    assert "sliding" in session.plan()
    assert session.flush()["n"].to_pylist() == [n, 3, 0]
    session.close()


def test_masks_that_no_probe_needs_are_forgotten() -> None:
    with splitjoin.open(query(window="RANGE 2"), "golden") as session:
        for at in range(50):
            session.mask([at % 2], of=2)
            session.push_r(r(at))
            session.push_s(s(at))
        session.mask([], of=2)
        session.heartbeat(60)
        session.push_s(s(60))
        session.push_r(r(60))
        assert len(session._pipeline.changes.state()["masks"]) < 3


def test_of_two_precisions_at_one_place_the_later_one_goes_on_elsewhere() -> None:
    asked = query(order="outer(4)")
    with splitjoin.open(asked, "golden", punctuation=True) as session:
        session.precision(3)
        session.precision(2)
        saved = session.snapshot()
    with splitjoin.open(asked, "golden", punctuation=True) as session:
        session.restore(saved)
        session.push_r(r(1, 2, 3, 4))
        session.push_s(s(9))
        assert [row for _, _, row, _ in session.poll_items()[0].tolist()] == [1, 3]


@pytest.mark.parametrize("how", ["inner", "full", *map(at_length, ("left", "semi", "anti", "asof"))])
def test_rows_of_all_kinds_are_the_same_through_a_move(how: str) -> None:
    asked = splitjoin.query(SCHEMA, SCHEMA, on="r.x = s.x", window="RANGE 5", time="ts", how=how)
    table = stream([(n // 2, n % 3) for n in range(40)])
    device = LaggingDevice(lag=2)
    with splitjoin.open(asked, "cpu") as session, splitjoin.open(asked, "golden") as want:
        for at in range(0, 40, 4):
            if at == 12:
                place = session.counters()["tuples_r"]
                session.move(device)
                with pytest.raises(UnsupportedError, match="as a move before is under way"):
                    session.move("golden")
            if at == 32:
                assert type(session._pipeline.device_session) is NumberedSession, "the old device session is gone"
                mine = session._pipeline.device_session._session._session  # type: ignore[attr-defined]  # golden's
                assert mine.counters()["tuples_r"] == session.counters()["tuples_r"] - place, "nothing was replayed"
                session.move("golden")
            for one in (session, want):
                one.push_r(table.slice(at, 4))
                one.push_s(table.slice(at, 4))
        assert session.flush().to_pylist() == want.flush().to_pylist()


def test_a_circuit_gets_more_cores_while_it_runs() -> None:
    asked = splitjoin.query(SCHEMA, SCHEMA, on="r.x <= s.x", window="ROWS 4")
    table = stream([(0, n % 5) for n in range(14)])
    with splitjoin.open(asked, "pysim", cores=1, capacity=4) as session, splitjoin.open(asked, "golden") as want:
        for at in range(14):
            if at == 6:
                session.move("pysim", cores=2, capacity=2)
            for one in (session, want):
                one.push_r(table.slice(at, 1))
                one.push_s(table.slice(at, 1))
        assert session.flush().to_pylist() == want.flush().to_pylist()
        assert type(session._pipeline.device_session) is NumberedSession


def test_where_a_move_is_refused() -> None:
    folded = query(aggregate={"n": "count(*)"}, how="left", on="r.x = s.a")
    with splitjoin.open(folded, "cpu") as session, pytest.raises(UnsupportedError, match="as it needs all pairs, but"):
        session.move("golden")
    for asked in (query(order="none"), query(order="inner(1)")):
        with splitjoin.open(asked, "golden") as session, pytest.raises(UnsupportedError, match="use restart"):
            session.move("golden")
    masked = query(order="inner(1)", how="inner")
    with splitjoin.open(masked, "golden", cores=2, masked=[1]) as session:
        session.close_r()
        session.close_s()
        with pytest.raises(UnsupportedError, match=r"^the session cannot move without a replay, as both streams have "
                           r"ended; and slices of order 'inner\(1\)' are made on the device; and a core is masked in "
                           r"the device; use restart\(\), which replays the windows$"):
            session.move("golden")


@pytest.mark.parametrize("lag", [0, 3])
def test_a_precision_and_a_move_at_every_place(lag: int) -> None:
    """Within groups too; and a group that a silent stream has open stays open when the old device ends."""
    table = stream([(n, 0) for n in range(7)])
    asked = splitjoin.query(SCHEMA, SCHEMA, on="TRUE", window="ROWS 2", order="outer(3)")
    timed = splitjoin.query(SCHEMA, SCHEMA, on="TRUE", window="RANGE 2", time="ts", order="outer(3)")
    for place in range(14):
        for n in (1, 2, 4):
            with splitjoin.open(asked, LaggingDevice(lag=lag), punctuation=True) as session:
                for at in range(14):
                    if at == place:
                        assert sum(session.precision(n)) == at
                        session.move("golden")
                    (session.push_s if at % 2 else session.push_r)(table.slice(at // 2, 1))
                session.close_r()
                session.close_s()
                found = session.poll_items()[0]
            want = golden(asked, Arrivals(np.tile(np.array([0, 1], np.uint8), 7), None, table, table),
                          [Change(place, n=n)], 1)
            assert found.tolist() == want.tolist(), (place, n)
    for of_s in range(1, 5):
        with splitjoin.open(timed, LaggingDevice(lag=lag), punctuation=True) as session:
            session.push_s(table.slice(0, of_s))
            session.push_r(table.slice(0, of_s))
            session.close_s()
            session.move("golden")
            session.push_r(table.slice(of_s))
            assert lag or type(session._pipeline.device_session) is NumberedSession
            session.close_r()
            found = session.poll_items()[0]
        want = golden(timed, arrivals(timed, table, table.slice(0, of_s)), [], 1)
        assert [item for item in found.tolist() if item[1] == 1] == [item for item in want.tolist() if item[1] == 1]
        assert sorted(found.tolist()) == sorted(want.tolist())
