"""Joins of several streams in sessions: the rows of the whole streams, however they are fed and moved."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

import splitjoin
from splitjoin.base.errors import BackPressure, InputError, SnapshotError
from splitjoin.engines.cpu import CpuDevice
from splitjoin.joins.sql import MultiwaySelect
from tests.support.multiway import combinations

TEXTS = {3: "SELECT a.t AS at, b.t AS bt, c.t AS ct, a.v AS av, b.v AS bv, c.v AS cv "
            "FROM a JOIN b ON a.v = b.v JOIN c ON c.v <= a.v",
         4: "SELECT a.t AS at, b.t AS bt, c.t AS ct, d.t AS dt, a.v AS av, b.v AS bv, c.v AS cv, d.v AS dv "
            "FROM a JOIN b ON a.v = b.v JOIN c ON c.v <= a.v JOIN d ON d.v = c.v OR d.v > b.v"}
SCHEMA = pa.schema([("t", pa.int64()), ("v", pa.int32())])


def holds(a: Any, b: Any, c: Any, d: Any = None) -> bool:
    return a["v"] == b["v"] and c["v"] <= a["v"] and (d is None or d["v"] == c["v"] or d["v"] > b["v"])


def made(n: int, lengths: list[int], schema: pa.Schema = SCHEMA, unit: str = "") -> MultiwaySelect:
    names = "abcd"[:n]
    found = splitjoin.sql(TEXTS[n], window={name: f"RANGE {length} {unit}".strip() for name, length in zip(
        names, lengths, strict=True)}, time="t", tables=dict.fromkeys(names, schema))
    assert isinstance(found, MultiwaySelect)
    return found


def test_times_of_the_clock_and_a_silent_first_join() -> None:
    """Nothing of the first join is a row; its frontier lets the second one go on, and forget."""
    schema = pa.schema([("t", pa.timestamp("ms")), ("v", pa.int32())])

    def rows(seconds: range, value: int) -> pa.Table:
        return pa.table([[dt.datetime(2026, 1, 1) + dt.timedelta(seconds=s) for s in seconds],
                         [value] * len(seconds)], schema=schema)

    with splitjoin.open_multiway(made(3, [5, 5, 5], schema, "SECONDS")) as session:
        for minute in range(5):
            span = range(60 * minute, 60 * minute + 60)
            session.push("a", rows(span, 1))
            session.push("b", rows(span, 2))
            session.push("c", rows(span, 0))
        counters = session.counters()
        assert counters["2_retained_s"] < 10 and counters["2_waiting"] < 3 and counters["1_rows"] == 0
        session.push("a", rows(range(300, 302), 4))
        session.push("b", rows(range(300, 303), 4))
        session.push("c", rows(range(300, 304), 4))
        assert len(session.flush()) > 5


def test_late_tuples_and_idle_streams() -> None:
    with splitjoin.open_multiway(made(3, [9, 9, 9]), "golden", lateness={"a": 2, "b": 0, "c": 3},
                                 watermark="source") as session:
        for name, late in (("a", 1), ("b", 2), ("c", 1)):
            session.push(name, pa.table([[5, 4, 1], [0, 0, 0]], schema=SCHEMA))
            assert len(session.late(name)) == late
        session.idle("b")
        session.idle("c")
        session.heartbeat(20, "a")
        assert len(session.poll()) == 4
    with pytest.raises(InputError, match="must have the keys 'a', 'b', 'c'"):
        splitjoin.open_multiway(made(3, [1, 1, 1]), lateness={"a": 1})


def test_no_stream_waits_for_idle_ones_of_earlier_steps() -> None:
    """What these bring when they speak again is late if the others have passed it, in the step that takes it."""
    def rows(*times: int) -> pa.Table:
        return pa.table([list(times), [1] * len(times)], schema=SCHEMA)

    select = splitjoin.sql("SELECT a.t AS at, b.t AS bt, c.t AS ct, d.t AS dt FROM a JOIN b ON a.v = b.v "
                           "LEFT JOIN c ON c.v = a.v JOIN d ON d.v = a.v", time="t",
                           window=dict.fromkeys("abcd", "RANGE 5"), tables=dict.fromkeys("abcd", SCHEMA))
    with splitjoin.open_multiway(select) as session:
        for name, time in (("a", 1), ("b", 2), ("d", 4)):
            session.push(name, rows(time))
        session.idle("a")
        session.heartbeat(10, "c")
        session.heartbeat(10, "d")
        assert len(session.poll()) == 0, "b may still be there"
        session.idle("b")
        assert session.poll().to_pylist() == [{"at": 1, "bt": 2, "ct": None, "dt": 4}]
        session.idle("c")
        session.heartbeat(20, "d")
        assert session.counters()["3_retained_s"] == 0
        session.push("b", rows(20, 21))
        session.push("a", rows(15, 22))
        assert (session.late("a").to_pylist(), session.late("b").to_pylist()) == (
            [{"t": 15, "v": 1}], [{"t": 20, "v": 1}])
        session.push("d", rows(23))
        assert session.flush().to_pylist() == [{"at": 22, "bt": 21, "ct": None, "dt": 23}]


def test_a_join_that_is_full_holds_up_the_streams_that_are_ahead() -> None:
    def rows(*times: int, v: int = 1) -> pa.Table:
        return pa.table([list(times), [v] * len(times)], schema=SCHEMA)

    select = made(3, [9, 9, 9])
    with splitjoin.open_multiway(select, limit=splitjoin.Limit(rows=8, waiting=4)) as session:
        session.push("a", rows(1, 2, 6))
        session.push("b", rows(2, 3, 4))
        for name in "ab":
            with pytest.raises(BackPressure, match="full: 7 tuples wait for c, and the limit is 4; push or heart"):
                session.push(name, rows(6))
        session.push("c", rows(5, 5, 5, 5, v=2))
        with pytest.raises(BackPressure, match="tuples wait for b, and"):
            session.push("c", rows(5))
        assert len(session.poll()) == 0
        session.push("b", rows(6))
        session.push("c", rows(6, 6))
        session.heartbeat(7)
        with pytest.raises(BackPressure, match=r"full: 24 result rows .* were not polled, and the limit is 8 rows"):
            session.push("a", rows(9))
        assert len(session.poll()) == 24
        session.push("a", rows(9))
        assert session.counters()["1_waiting"] == 1, "of a, once"
    with splitjoin.open_multiway(select, lateness={"a": 1, "b": 1, "c": None},
                                 limit=splitjoin.Limit(waiting=2)) as session:
        session.heartbeat(0, "c")
        for at in range(9):  # nobody waits for c, which has no say
            session.push("a", rows(at))
            session.push("b", rows(at))


def test_mistakes_are_named() -> None:
    select = made(3, [1, 1, 1])
    with pytest.raises(InputError, match=r"run by splitjoin.open_multiway"):
        splitjoin.open(select)  # type: ignore[arg-type]
    with splitjoin.open_multiway(select, "golden") as session:
        with pytest.raises(InputError, match="there is no stream 'q'; the streams are a, b, c"):
            session.push("q", pa.table([[1], [1]], schema=SCHEMA))
        state = session.snapshot()
        with pytest.raises(SnapshotError, match="do not begin"):
            session.restore(b"")
        with splitjoin.open_multiway(made(4, [1] * 4), "golden") as other, pytest.raises(
                SnapshotError, match="a join of 4 streams"):
            other.restore(state)
        with splitjoin.open_multiway(made(3, [2, 1, 1]), "golden") as other, pytest.raises(
                SnapshotError, match="another query"):
            other.restore(state)
    assert "step 2: a, b with c" in select.explain()


def test_a_device_for_each_step() -> None:
    select = made(3, [3, 4, 5])
    streams = {name: pa.table([[0, 1, 2, 4, 5], [n, 0, 1, 1, 0]], schema=SCHEMA) for n, name in enumerate("abc")}
    with splitjoin.open_multiway(select, ["golden", CpuDevice(threads=1)]) as session:
        for name, table in streams.items():
            session.push(name, table)
        saved = session.snapshot()  # with rows that nobody has read
        rows = [tuple(row.values()) for row in session.flush().to_pylist()]
    with splitjoin.open_multiway(select, "golden") as other:
        other.restore(saved)
        assert len(other.poll()) > 1
    assert rows == [tuple(t["t"] for t in row) + tuple(t["v"] for t in row)
                    for row in combinations(streams, holds, [3, 4, 5], "t")]
    with pytest.raises(InputError, match="has 2 steps, but 3 devices are given; give one for all"):
        splitjoin.open_multiway(select, ["cpu", "cpu", "cpu"])
