"""Unsorted streams straight into an engine's index give the rows of a session whose gate sorts them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin import DeviceError, InputError, UnsupportedError
from splitjoin.engines.tuning import Tuning
from splitjoin.rows.interval_joins.encoding import IntervalEncoder
from splitjoin.sessions import unsorted

from ...support.sampling import examples
from ...support.statements import exactly

R, S = pa.schema([("ts", pa.int64()), ("x", pa.int8()), ("id", pa.int32())]), pa.schema(
    [("ts", pa.int64()), ("a", pa.int8()), ("v", pa.float64()), ("id", pa.int32())])
AGGREGATES = {"n": "count(*)", "t": "sum(s.v)", "d": "count(DISTINCT s.v)", "low": "argmin(s.id, s.v)",
              "high": "max(s.v)", "f": "first(s.id)", "l": "last(s.id)"}


@st.composite
def delivered(draw: st.DrawFn, lateness: int, n: int) -> list[int]:
    """Times in an order of delivery: none more than ``lateness`` below an earlier one."""
    highest, made = 0, list[int]()
    for _ in range(n):
        made.append(max(0, draw(st.integers(highest - lateness, highest + 4))))
        highest = max(highest, made[-1])
    return made


def rows_of(batches: list[pa.RecordBatch]) -> list[Any]:
    return [tuple(map(exactly, row.values())) for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize(("engine", "threads"), [("scale-oij", 1), ("scale-oij", 3), ("key-oij", 2)])
@settings(max_examples=examples(15))
@given(data=st.data())
def test_any_order_within_the_lateness_gives_the_answer_of_the_gate(engine: Any, threads: int,
                                                                    data: st.DataObject) -> None:
    lateness = data.draw(st.integers(0, 12))
    watermark = data.draw(st.sampled_from(["source", "min"]))
    numbers = st.sampled_from([0.1, -0.0, 0.0, 1e300, -1e300, 5e-324, 3.0, float("nan"), None])
    times = {side: data.draw(delivered(lateness, data.draw(st.integers(0, 30)))) for side in "rs"}
    keys = {side: data.draw(st.lists(st.integers(0, 2), min_size=len(ts), max_size=len(ts)))
            for side, ts in times.items()}
    r = pa.table([times["r"], keys["r"], range(len(times["r"]))], schema=R)
    s = pa.table([times["s"], keys["s"], data.draw(st.lists(numbers, min_size=len(times["s"]),
                                                            max_size=len(times["s"]))),
                  range(len(times["s"]))], schema=S)
    query = splitjoin.query(R, S, on="r.x = s.a", time="ts", how=data.draw(st.sampled_from(["left", "inner"])),
                            window=(f"RANGE {data.draw(st.integers(0, 9))}", f"RANGE {data.draw(st.integers(0, 20))}"),
                            aggregate=AGGREGATES)
    with splitjoin.open(query, "golden", lateness=lateness, watermark=watermark) as session:
        session.push_r(r)
        session.push_s(s)
        expected = rows_of([session.flush()])
    batches, at = [], {"r": 0, "s": 0}
    with splitjoin.open_unsorted(query, lateness=lateness, watermark=watermark, engine=engine,
                                 threads=threads) as direct:
        while at["r"] < len(r) or at["s"] < len(s):
            side = data.draw(st.sampled_from("rs"))
            size = data.draw(st.integers(1, 12))
            (direct.push_r if side == "r" else direct.push_s)((r if side == "r" else s).slice(at[side], size))
            at[side] += size
            batches.append(direct.poll())
        batches.append(direct.flush())
        assert direct.late == {"r": 0, "s": 0}
    assert rows_of(batches) == expected


def test_late_tuples_are_left_out_and_counted() -> None:
    query = splitjoin.query(R, S, on="r.x = s.a", window=("RANGE 2", "RANGE 5"), time="ts", how="left",
                            aggregate={"n": "count(*)"})
    with splitjoin.open_unsorted(query, lateness=3, watermark="source", threads=1) as direct:
        direct.push_s(pa.table([[10, 7, 6], [1, 1, 1], [0.0, 0.0, 0.0], [0, 1, 2]], schema=S))
        direct.push_r(pa.table([[12, 9, 8], [1, 1, 1], [0, 1, 2]], schema=R))
        assert direct.late == {"r": 1, "s": 1}
        assert direct.poll().num_rows == 0
        direct.heartbeat(12)
        assert [row["ts"] for row in direct.poll().to_pylist()] == [9]
        assert direct.flush().to_pylist() == [{"ts": 12, "x": 1, "id": 0, "n": 2}]


def test_what_is_refused_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    query = splitjoin.query(R, S, on="r.x = s.a", window=("RANGE 2", "RANGE 5"), time="ts", how="left",
                            aggregate={"t": "sum(s.v)", "l": "last(s.id)"})

    def fails(*_: Any) -> Any:
        raise InputError("as planted")

    with splitjoin.open_unsorted(query, lateness=3, watermark="source", threads=1) as direct:
        with pytest.raises(InputError, match="a time of stream r must be an integer"):
            direct.heartbeat("12")
        tuples = pa.table([[10, 7, 3], [1, 1, 1], [0.5, 0.25, 0.0], [0, 1, 2]], schema=S)
        with monkeypatch.context() as patch:
            patch.setattr(IntervalEncoder, "encode", fails)
            with pytest.raises(InputError, match="as planted"):
                direct.push_s(tuples)
        direct.push_s(tuples)
        direct.push_r(pa.table([[12, 9], [1, 1], [0, 1]], schema=R))
        direct.heartbeat(12)
        with monkeypatch.context() as patch:
            patch.setattr(unsorted, "aggregate_values", fails)
            with pytest.raises(InputError, match="as planted"):
                direct.poll()
        assert direct.poll().to_pylist() == [{"ts": 9, "x": 1, "id": 1, "t": 0.75, "l": 0}]
        assert direct.flush().to_pylist() == [{"ts": 12, "x": 1, "id": 0, "t": 0.75, "l": 0}]
        assert direct.late == {"r": 0, "s": 1}
        with pytest.raises(InputError, match="stream s is finished and takes no more tuples"):
            direct.push_s(tuples)
    for call in (lambda: direct.push_r(tuples), lambda: direct.heartbeat(1), direct.poll, direct.flush):
        with pytest.raises(DeviceError, match="the session is closed"):
            call()


@pytest.mark.parametrize(("how", "error", "message"), [
    ({"engine": "sliding"}, InputError, "engine must be 'key-oij' or 'scale-oij', which need no order, not 'sliding'"),
    ({"window": "ROWS 3"}, UnsupportedError, "engine='scale-oij' keeps tuples by time, but R's window is not RANGE"),
    ({"aggregate": None}, InputError, "gives aggregates, but the query gives pairs"),
])
def test_refused(how: dict[str, Any], error: type[Exception], message: str) -> None:
    chosen = {key: how[key] for key in how if key == "engine"}
    asked: dict[str, Any] = {"on": "r.x = s.a", "window": "RANGE 5", "time": "ts", "aggregate": {"n": "count(*)"}}
    query = splitjoin.query(R, S, **asked | {key: how[key] for key in how if key != "engine"})
    with pytest.raises(error, match=message):
        splitjoin.open_unsorted(query, lateness=3, **chosen)


def test_teams_of_a_short_job_form_after_fewer_tuples() -> None:
    query = splitjoin.query(R, S, on="r.x = s.a", window=("RANGE 2", "RANGE 5"), time="ts", how="left",
                            aggregate={"n": "count(*)"})
    made = {}
    for arrivals in 64, 1 << 16:
        with splitjoin.open_unsorted(query, lateness=0, threads=3,
                                     tuning=Tuning(schedule_arrivals=arrivals)) as direct:
            for at in range(0, 2000, 50):
                direct.push_s(pa.table([range(at, at + 50), [1] * 50, [0.0] * 50, range(50)], schema=S))
                direct.push_r(pa.table([range(at, at + 50), [1] * 50, range(50)], schema=R))
                direct.poll()
            made[arrivals] = direct.engine.counters()["replications"]
    assert made[64] > made[1 << 16] == 0
