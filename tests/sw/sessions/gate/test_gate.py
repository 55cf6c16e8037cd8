"""The gate against its definition, under any interleaving; and every refusal by its text."""

import datetime as dt
from threading import Thread
from time import sleep
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, strategies as st

import splitjoin
from splitjoin import InputError, SchemaError, WindowError
from splitjoin.sessions.gate import ScaleGate

from ....support.gate_model import Model

SCHEMA = pa.schema([("ts", pa.int64()), ("name", pa.string())])


def table(rows: list[tuple[int, str]]) -> pa.Table:
    return pa.table({"ts": [t for t, _ in rows], "name": [n for _, n in rows]}, schema=SCHEMA)


def names(arrivals: Any) -> list[str]:
    """The tuples' names in arrival order; checks that streams, times and tables agree."""
    columns = [iter(t.to_pylist()) for t in (arrivals.r, arrivals.s)]
    rows = [next(columns[stream]) for stream in arrivals.stream]
    assert [row["ts"] for row in rows] == arrivals.ts.tolist()
    assert [next(c, None) for c in columns] == [None, None]
    return [row["name"] for row in rows]


steps = st.lists(st.one_of(
    st.tuples(st.just("push"), st.integers(0, 5), st.lists(st.integers(-4, 9), max_size=6)),
    st.tuples(st.just("heartbeat"), st.integers(0, 5), st.integers(-4, 12)),
    st.tuples(st.just("close"), st.integers(0, 5), st.just(0)),
    st.tuples(st.just("idle"), st.integers(0, 5), st.just(0)),
    st.tuples(st.just("time"), st.just(0), st.integers(1, 4)),
    st.tuples(st.just("add"), st.integers(0, 1), st.just(0)),
    st.tuples(st.just("restore"), st.just(0), st.just(0)),
), max_size=40)


@st.composite
def rules(draw: st.DrawFn) -> tuple[str, tuple[int | None, int | None]]:
    """A rule of lateness, and the delays of both streams."""
    rule = draw(st.sampled_from(["source", "min", "max", "spark"]))
    delays: list[int | None] = [draw(st.integers(0, 6)), draw(st.integers(0, 6))]
    if rule != "source" and draw(st.booleans()):
        delays[draw(st.integers(0, 1))] = None
    return rule, (delays[0], delays[1])


@example([("time", 0, 4), ("add", 0, 0), ("restore", 0, 0), ("push", 0, [0])], ("source", (0, 0)), 4, 0, False)
# What is idle, and for how long what is not has been silent, is restored.
@example([("add", 0, 0), ("add", 1, 0), ("idle", 1, 0), ("restore", 0, 0), ("push", 0, [5])], ("min", (0, 0)), 10**9, 0,
         True)
@example([("add", 0, 0), ("add", 1, 0), ("time", 0, 3), ("restore", 0, 0), ("time", 0, 1), ("push", 0, [5])],
         ("min", (0, 0)), 4, 0, True)
# By Spark's rule, a tuple at the watermark is late, within a batch too; and a promise counts as what was delivered.
@example([("add", 0, 0), ("add", 1, 0), ("push", 1, [9]), ("push", 0, [5, 5])], ("spark", (0, 0)), 10**9, 0, False)
@example([("add", 0, 0), ("add", 1, 0), ("heartbeat", 1, 9), ("push", 0, [5]), ("push", 0, [3])], ("min", (0, 0)),
         10**9, 0, False)
@given(steps, rules(), st.sampled_from([4, 10**9]), st.integers(0, 12), st.booleans())
def test_any_interleaving_of_sources(steps: list[Any], rule: tuple[str, tuple[int | None, int | None]], idle: int,
                                     drift: int, often: bool) -> None:
    def fresh() -> ScaleGate:
        return ScaleGate(SCHEMA, SCHEMA, time="ts", lateness=rule[1], watermark=rule[0], idle=f"{idle} SECONDS",
                         clock=lambda: model.now, keep_late=10**6)

    model = Model(rule[1], rule[0], idle)
    gate = fresh()
    known = []
    given, expected = [], []
    for n, (kind, which, what) in enumerate(steps):
        if kind == "add":
            known.append((gate.add("rs"[which]), model.add(which)))
        elif kind == "time":
            model.now += what
            gate.ready() if often else gate.next_idle()
        elif kind == "restore":
            state = gate.state()
            gate = fresh()
            gate.restore(state)
            known = [(type(s)(gate, s.side, s.index), m) for s, m in known]
        elif known:
            source, twin = known[which % len(known)]
            if twin.closed:
                continue
            if kind == "push":
                rows = [(t + drift * n // 10, f"{n}.{i}") for i, t in enumerate(what)]
                source.push(table(rows))
                model.speak(twin)
                for row in rows:
                    model.push(twin, *row)
            elif kind == "heartbeat":
                source.heartbeat(what + drift * n // 10)
                twin.promise = max(twin.promise, what + drift * n // 10)
                model.speak(twin)
            elif kind == "idle":
                source.idle()
                twin.idle = True
            else:
                source.close()
                twin.closed = True
        expected += model.ready()  # at each step, as a source that is added may have to come after it
        if often:
            given += names(gate.ready())
            assert given == expected
    given += names(gate.ready())
    assert given == expected
    assert gate.waiting == len(model.waiting)
    late = [row["name"] for side in ("r", "s") for row in gate.late(side).to_pylist()]
    assert sorted(late) == sorted(model.late)
    counts = gate.counters()
    assert counts["late_r"] + counts["late_s"] == len(late)
    assert gate.late("r").num_rows == gate.late("s").num_rows == 0


@pytest.mark.parametrize("sources", [1, 3])
def test_large_batches_come_out_sorted(sources: int) -> None:
    rng = np.random.default_rng(1)
    gate = ScaleGate(SCHEMA, SCHEMA, time="ts", lateness=50)
    handles = [gate.add(side) for side in ("r", "s") for _ in range(sources)]
    pushed, seen = 0, []
    for round_ in range(20):
        for handle in handles:
            ts = round_ * 1000 + rng.integers(0, 1000, 3000)
            ts = np.sort(ts) - rng.integers(0, 25, 3000)  # never more than 50 behind
            handle.push(pa.table({"ts": ts, "name": [f"{handle!r}{i}" for i in range(3000)]}, schema=SCHEMA))
            pushed += 3000
        seen.append(gate.ready())
    for handle in handles:
        handle.close()
    seen.append(gate.ready())
    ts = np.concatenate([a.ts for a in seen])
    late = gate.counters()["late_r"] + gate.counters()["late_s"]
    assert len(ts) + late == pushed
    assert late < pushed // 100
    assert (ts[1:] >= ts[:-1]).all()
    assert len({n for a in seen for t in (a.r, a.s) for n in t["name"].to_pylist()}) <= 3000 * len(handles)


def test_nothing_is_ready_while_a_stream_never_had_a_source() -> None:
    gate = ScaleGate(SCHEMA, SCHEMA, time="ts")
    with gate.add("r") as r:
        r.push(table([(1, "a")]))
    assert (gate.behind(), len(gate.ready()), gate.frontier) == (["s"], 0, None)
    gate.finish("s")
    assert names(gate.ready()) == ["a"]


def test_a_source_that_is_closed_waits_for_none_and_one_that_is_read_no_more_ends_a_wait() -> None:
    gate = ScaleGate(SCHEMA, SCHEMA, time="ts")
    first, second = gate.add("r"), gate.add("r")
    first.push(table([(5, "a")]))
    assert (gate.held_up("r", 0), sorted(gate.behind())) == (True, ["r[1]", "s"])
    first.close()
    assert not gate.held_up("r", 0), "its tuples are refused at once"
    second.push(table([(5, "b")]))
    reader = gate.reader()
    waiting = Thread(target=reader.wait, args=(60,))
    waiting.start()
    while not reader._sequence._changed._waiters:  # type: ignore[attr-defined]
        sleep(0.001)
    reader.close()
    waiting.join(30)
    assert not waiting.is_alive()


def test_a_tie_goes_to_r_then_to_the_earlier_source() -> None:
    gate = ScaleGate(SCHEMA, SCHEMA, time="ts")
    s, r0, r1 = gate.add("s"), gate.add("r"), gate.add("r")
    for source, name in ((s, "s"), (r1, "r1"), (r0, "r0")):
        source.push(table([(5, name), (5, name + "'")]))
    assert names(gate.ready()) == ["r0", "r0'"]  # r0 may deliver more at 5, which would precede r1's
    assert gate.behind() == ["r[0]"]
    r0.heartbeat(6)
    assert names(gate.ready()) == ["r1", "r1'"]
    r1.close()
    assert names(gate.ready()) == ["s", "s'"]


def test_a_source_that_comes_later_must_not_precede_what_was_ready() -> None:
    gate = ScaleGate(SCHEMA, SCHEMA, time="ts", lateness=0, watermark="source")
    r, s = gate.add("r"), gate.add("s")
    r.push(table([(5, "r"), (9, "r'")]))
    s.push(table([(5, "s")]))  # arrival order is known up to s[0]'s next tuple at 5
    assert names(gate.ready()) == ["r", "s"]
    gate.add("r").push(table([(5, "before s"), (6, "r1")]))
    gate.add("s").push(table([(5, "s1")]))
    s.close()
    assert gate.late("r")["name"].to_pylist() == ["before s"]
    for side in ("r", "s"):
        gate.finish(side)
    assert names(gate.ready()) == ["s1", "r1", "r'"]


def test_extreme_times() -> None:
    gate = ScaleGate(SCHEMA, SCHEMA, time="ts", lateness=2**64)
    r, s = gate.add("r"), gate.add("s")
    low, high = -(2**63), 2**63 - 1
    r.push(table([(high, "a"), (low, "b"), (0, "c")]))
    s.push(table([(low, "d")]))
    assert len(gate.ready()) == 0
    r.heartbeat(high)
    s.close()
    assert names(gate.ready()) == ["b", "d", "c", "a"]
    strict = ScaleGate(SCHEMA, SCHEMA, time="ts", lateness=2**64 - 2, watermark="source")
    r = strict.add("r")
    r.push(table([(high, "a"), (low, "b"), (low + 1, "c")]))
    assert strict.late("r")["name"].to_pylist() == ["b"]


def test_late_tuples_are_kept_within_a_bound() -> None:
    gate = ScaleGate(SCHEMA, SCHEMA, time="ts", lateness=0, watermark="source", keep_late=3)
    r = gate.add("r")
    r.push(table([(9, "in time"), (1, "a"), (2, "b")]))
    r.push(table([(3, "c"), (4, "d"), (9, "in time too")]))
    assert gate.counters() == {"waiting": 2, "late_r": 4, "shed_r": 0, "forgotten_r": 1, "late_s": 0, "shed_s": 0,
                               "forgotten_s": 0}
    assert gate.late("r")["name"].to_pylist() == ["b", "c", "d"]
    assert gate.late("r").schema == SCHEMA


def test_nothing_is_kept_of_pushes_of_which_no_tuple_is_dropped() -> None:
    gate = ScaleGate(SCHEMA, SCHEMA, time="ts")
    r = gate.add("r")
    for ts in range(5):
        gate.deliver("r", r.index, table([(ts, "a")]), lambda n, waiting: np.zeros(n, np.bool_))
    assert not gate._shed["r"]._tables


def refused(error: type[Exception], text: str, call: Any) -> None:
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == text


def test_out_of_order_without_a_lateness() -> None:
    gate = ScaleGate(SCHEMA, SCHEMA, time="ts")
    r, s = gate.add("r"), gate.add("s")
    advice = "sort it first, or declare a lateness"
    refused(InputError, "the time column r.ts of source r[0] must not decrease, but row 1 of the batch has 2 after 3; "
            + advice, lambda: r.push(table([(3, "a"), (2, "b")])))
    assert gate.waiting == 0
    r.push(table([(3, "a")]))
    refused(InputError, "the time column r.ts of source r[0] must not decrease, but row 0 of the batch has 2 after 3 "
            f"in an earlier batch; {advice}", lambda: r.push(table([(2, "b")])))
    r.heartbeat(7)
    refused(InputError, "the time column r.ts of source r[0] must not decrease, but row 0 of the batch has 6 although "
            f"nothing below 7 was to come, by a heartbeat or as arrival order got there; {advice}",
            lambda: r.push(table([(6, "b"), (8, "c")])))
    s.heartbeat(7)
    new = gate.add("r")
    refused(InputError, "the time column r.ts of source r[1] must not decrease, but row 0 of the batch has 6 although "
            f"nothing below 7 was to come, by a heartbeat or as arrival order got there; {advice}",
            lambda: new.push(table([(6, "b")])))
    refused(InputError, "the time column r.ts must not hold NULL, but row 1 does; filter such rows out",
            lambda: r.push(pa.table({"ts": [9, None], "name": ["", ""]}, schema=SCHEMA)))
    assert gate.waiting == 1


def test_refusals() -> None:
    gate = ScaleGate(SCHEMA, SCHEMA, time="ts")
    r = gate.add("r")
    r.close()
    r.close()
    refused(InputError, "source r[0] is closed and takes no more; add a new one", lambda: r.push(table([])))
    refused(InputError, "source r[0] is closed and takes no more; add a new one", lambda: r.heartbeat(4))
    refused(InputError, "stream s has no source 0; it has 0", lambda: gate.remove("s", 0))
    refused(InputError, "a stream must be 'r' or 's', not 'q'",
            lambda: gate.add("q"))  # type: ignore[arg-type]  # wrong on purpose
    gate.finish("r")
    finished = ("stream r is finished and takes no more tuples or sources; push before it is closed, or open a new "
                "session")
    refused(InputError, finished, lambda: gate.add("r"))
    refused(InputError, finished, lambda: r.push(table([])))
    refused(InputError, finished, lambda: r.heartbeat(4))
    s = gate.add("s")
    refused(SchemaError, "stream s has no column 'nam' (did you mean 'name'?); a batch must have its columns ts, name",
            lambda: s.push(pa.table({"ts": [1], "nam": ["a"]})))
    refused(SchemaError, "a batch of stream s must have its columns ts, name, but lacks name",
            lambda: s.push(pa.table({"ts": [1]})))
    twice = pa.table([[1], ["a"], ["b"]], names=["ts", "name", "name"])
    refused(SchemaError, "a batch of stream s must have its columns ts, name, but has name twice",
            lambda: s.push(twice))
    refused(SchemaError, "column s.ts must be int64, but a batch has int32; cast it before it is pushed",
            lambda: s.push(pa.table({"ts": pa.array([1], pa.int32()), "name": ["a"]})))
    refused(InputError, "stream s must be an Arrow table, a DataFrame, a dict of columns, the path of a file, or offer "
            "__arrow_c_stream__, not list", lambda: s.push([1]))
    s.push(pa.table({"name": ["a"], "ts": [1]}))  # another order of columns is the same batch
    assert gate.waiting == 1


@pytest.mark.parametrize(("type_", "value", "ticks"), [
    (pa.int32(), 5, 5), (pa.int32(), np.int16(5), 5), (pa.int32(), pa.scalar(5, pa.int32()), 5),
    (pa.date32(), dt.date(1970, 1, 3), 2),
    (pa.timestamp("s"), dt.datetime(1970, 1, 1, 0, 0, 3, 999999), 3),
    (pa.timestamp("ns"), dt.datetime(1969, 12, 31, 23, 59, 59, 999999), -1000),
    (pa.timestamp("ns"), pa.scalar(7, pa.timestamp("ns")), 7),
    (pa.timestamp("ms", "Europe/Oslo"), dt.datetime(1970, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))), 0),
])
def test_times_as_users_write_them(type_: pa.DataType, value: Any, ticks: int) -> None:
    schema = pa.schema([("ts", type_)])
    gate = ScaleGate(schema, schema, time="ts")
    gate.add("r").heartbeat(value)
    gate.add("s").heartbeat(value)
    assert gate.frontier == ticks


@pytest.mark.parametrize(("type_", "value", "message"), [
    (pa.int32(), 5.0, "a time of stream r must be an integer, or an Arrow scalar of type int32, not 5.0"),
    (pa.int32(), True, "a time of stream r must be an integer, or an Arrow scalar of type int32, not True"),
    (pa.date32(), dt.datetime(2024, 1, 1), "a time of stream r must be a datetime.date, or an Arrow scalar of type "
     "date32[day], not datetime.datetime(2024, 1, 1, 0, 0)"),
    (pa.timestamp("s"), 5, "a time of stream r must be a datetime.datetime, or an Arrow scalar of type timestamp[s], "
     "not 5"),
    (pa.timestamp("s"), dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "the time columns have no time zone, so a time must "
     "have none, but 2024-01-01 00:00:00+00:00 has one"),
    (pa.timestamp("s", "UTC"), dt.datetime(2024, 1, 1), "the time columns have a time zone, so a time must have one, "
     "but 2024-01-01 00:00:00 has none"),
    (pa.int32(), pa.scalar(5), "a time of stream r must be a int32 like its column ts, not <pyarrow.Int64Scalar: 5>"),
    (pa.int32(), pa.scalar(None, pa.int32()), "a time of stream r must be a int32 like its column ts, not "
     "<pyarrow.Int32Scalar: None>"),
])
def test_wrong_times(type_: pa.DataType, value: Any, message: str) -> None:
    schema = pa.schema([("ts", type_)])
    gate = ScaleGate(schema, schema, time="ts")
    refused(InputError, message, lambda: gate.add("r").heartbeat(value))


@pytest.mark.parametrize(("type_", "lateness", "ticks"), [
    (pa.int32(), 5, 5), (pa.int32(), "5", 5), (pa.int32(), 0, 0), (pa.timestamp("ms"), "5 SECONDS", 5000),
    (pa.timestamp("s"), "1500 milliseconds", 1), (pa.date32(), "2 WEEKS", 14),
    (pa.timestamp("ms"), dt.timedelta(seconds=5), 5000),
])
def test_lateness_in_the_words_of_windows(type_: pa.DataType, lateness: int | str | dt.timedelta, ticks: int) -> None:
    schema = pa.schema([("ts", type_)])
    assert ScaleGate(schema, schema, time="ts", lateness=lateness).rule.delays == {"r": ticks, "s": ticks}


@pytest.mark.parametrize(("type_", "lateness", "reason"), [
    (pa.int32(), "5 SECONDS", "the time column is an integer"), (pa.timestamp("s"), 5, "has no unit"),
    (pa.int32(), "5 ROWS 3", "it has ROWS"), (pa.int32(), -1, "RANGE must be at least 0, not -1"),
    (pa.int32(), "soon", "needs a whole number after RANGE, not 'soon'"),
])
def test_wrong_lateness(type_: pa.DataType, lateness: int | str, reason: str) -> None:
    schema = pa.schema([("ts", type_)])
    with pytest.raises(WindowError) as caught:
        ScaleGate(schema, schema, time="ts", lateness=lateness)
    assert str(caught.value).startswith(f"lateness must be like the length of a RANGE, such as '5 SECONDS', or 5 with "
                                        f"an integer time column, but {lateness!r} is not: ")
    assert reason in str(caught.value)


def test_lateness_must_be_a_number_or_a_text() -> None:
    refused(WindowError, "lateness must be a whole number, a text such as '5 SECONDS' or a timedelta, not 1.5",
            lambda: ScaleGate(SCHEMA, SCHEMA, time="ts", lateness=1.5))  # type: ignore[arg-type]  # wrong on purpose


def test_a_source_that_is_added_behind_a_snapshot_is_late_by_what_its_stream_has_passed() -> None:
    r, s = (pa.schema([("ts", pa.int64()), (name, pa.int32())]) for name in "xa")
    query = splitjoin.query(r, s, on="r.x = s.a", window="RANGE 4", time="ts", order="none")

    def opened() -> splitjoin.StreamJoin:
        return splitjoin.open(query, "golden", lateness=0)

    with opened() as session, opened() as restored:
        session.push_r(pa.table({"ts": [10], "x": [0]}, schema=r))
        session.push_s(pa.table({"ts": [10], "a": [0]}, schema=s))
        restored.restore(session.snapshot())
        for one in session, restored:
            one.source("s").push(pa.table({"ts": [7], "a": [1]}, schema=s))
            assert one.late_s()["a"].to_pylist() == [1]


def test_a_reader_whose_columns_fail_reads_the_same_tuples_again() -> None:
    failures = [InputError("r.name must be a number, but is 'a'"), None]

    def columns(side: str, found: pa.Table) -> pa.Table:
        if side == "r" and len(found) and (failure := failures.pop(0)) is not None:
            raise failure
        return found

    gate = ScaleGate(SCHEMA, SCHEMA, time="ts")
    reader = gate.sequence().reader(columns)
    gate.add("r").push(table([(1, "a"), (2, "b")]))
    gate.finish("r")
    gate.finish("s")
    with pytest.raises(InputError, match="must be a number"):
        reader.ready()
    assert names(reader.ready()) == ["a", "b"]
