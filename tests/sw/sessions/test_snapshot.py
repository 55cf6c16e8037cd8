"""Snapshots: the texts of refusals, the state that is restored, and the memory of a long run."""

import hashlib
import json
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import splitjoin
from splitjoin import InputError, Limit, Query, Schema, SchemaError, SnapshotError
from splitjoin.base.sliding import SlidingArray
from splitjoin.lang.layouts import take
from splitjoin.sessions.snapshot import MAGIC, VERSION

from ...support.sampling import at_length

R, S = pa.schema([("ts", pa.int64()), ("x", pa.int32())]), pa.schema([("ts", pa.int64()), ("a", pa.int32())])
WINDOW: dict[str, Any] = {"on": "r.x = s.a", "window": "RANGE 1000", "time": "ts"}


def query(**more: Any) -> Query:
    return splitjoin.query(R, S, **WINDOW | more)


def saved() -> bytes:
    with splitjoin.open(query(), "golden") as session:
        session.push_r(pa.table({"ts": [1, 2], "x": [0, 0]}, schema=R))
        return session.snapshot()


def refused(error: type[Exception], text: str, call: Any) -> None:
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == text


@pytest.mark.parametrize(("spoil", "message"), [
    (lambda b: b"PAR1" + b, "these bytes are no snapshot of a streaming session: they do not begin as one"),
    (lambda b: b[:20], "these bytes are no snapshot of a streaming session: they do not begin as one"),
    (lambda b: b"", "these bytes are no snapshot of a streaming session: they do not begin as one"),
    (lambda b: "text", "a snapshot must be bytes, not str"),
    (lambda b: b[:-1], "the snapshot is damaged: its checksum is wrong; it may have been cut off"),
    (lambda b: b + b"\0", "the snapshot is damaged: its checksum is wrong; it may have been cut off"),
    (lambda b: b[:200] + bytes([b[200] ^ 1]) + b[201:],
     "the snapshot is damaged: its checksum is wrong; it may have been cut off"),
    (lambda b: b[:8] + struct.pack("<I", VERSION + 1) + b[12:], f"the snapshot must be of version {VERSION}, but is of "
     f"version {VERSION + 1}; restore it with the release of splitjoin that took it"),
])
def test_bytes_that_are_no_snapshot(spoil: Any, message: str) -> None:
    with splitjoin.open(query(), "golden") as session:
        session.push_r(pa.table({"ts": [7], "x": [0]}, schema=R))
        refused(SnapshotError, message, lambda: session.restore(spoil(saved())))
        assert session.counters()["waiting"] == 1, "a refused snapshot changes nothing"


def test_every_bit_of_a_snapshot_counts() -> None:
    data = saved()
    rng = np.random.default_rng(0)
    with splitjoin.open(query(), "golden") as session:
        for at in rng.integers(0, len(data) * 8, 200).tolist():
            spoiled = bytearray(data)
            spoiled[at // 8] ^= 1 << at % 8
            with pytest.raises(SnapshotError):
                session.restore(bytes(spoiled))
        session.restore(bytearray(data))
        assert session.counters()["waiting"] == 2


def test_the_layout_is_as_documented() -> None:
    data = saved()
    assert data.startswith(MAGIC)
    version, checksum, length = struct.unpack("<I32sQ", data[8:52])
    assert version == VERSION
    assert checksum == hashlib.sha256(data[44:]).digest()
    assert data[52:53] + data[51 + length:52 + length] == b"{}"


def resealed(data: bytes, change: Callable[[dict[str, Any]], None], *, digest: bool = True) -> bytes:
    """A snapshot whose header was changed, with a fitting checksum, and with ``digest`` also a fitting digest in it."""
    length = struct.unpack("<Q", data[44:52])[0]
    header = json.loads(data[52:52 + length])
    change(header)
    if digest and isinstance(header, dict):
        header.pop("digest", None)
        header["digest"] = hashlib.sha256(json.dumps(header, sort_keys=True).encode()).hexdigest()
    text = json.dumps(header).encode()
    rest = struct.pack("<Q", len(text)) + text + data[52 + length:]
    return data[:12] + hashlib.sha256(rest).digest() + rest


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of each value in a header."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield (*path, key)
        yield from places(part, (*path, key))


def header_of(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(data[52:52 + struct.unpack("<Q", data[44:52])[0]])
    return found


def replacing(path: tuple[Any, ...], value: Any) -> Callable[[dict[str, Any]], None]:
    def change(header: dict[str, Any]) -> None:
        inner: Any = header
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
    return change


@pytest.mark.parametrize("more", [{}, {"how": "left"}, {"how": "full", "order": "none"}],
                         ids=["inner", "left", "unordered"])
def test_every_change_of_a_header_is_refused(more: Any) -> None:
    """Even where the checksum fits. Where the digest fits as well, a change is refused or is a state of a session."""
    made = query(**more)
    with splitjoin.open(made, "golden", lateness=1) as session:
        session.push_r(pa.table({"ts": [1, 2, 5], "x": [0, 0, 1]}, schema=R))
        session.push_s(pa.table({"ts": [1, 2, 4], "a": [0, 1, 1]}, schema=S))
        data = session.snapshot()
        whole, changed, accepted = header_of(data), 0, set()
        for path in places(whole):
            for value in (None, -1, 1 << 70, 7, "x", [], {}, True, [1, 2, 3], 0.5):
                spoiled = resealed(data, replacing(path, value))
                if header_of(spoiled) == whole:
                    continue
                changed += 1
                with pytest.raises(SnapshotError):
                    session.restore(resealed(data, replacing(path, value), digest=False))
                try:
                    session.restore(spoiled)
                except SnapshotError:
                    continue
                accepted.add(path[0])
        session.restore(data)
        assert session.snapshot() == data
    assert changed > 300
    assert accepted <= {"sources", "frontier", "finished", "now", "passed", "silent", "ended", "restarts", "total",
                        "settled", "first", "late", "shed", "changes", "default"} | (
        set() if "order" in more else {"windows"})


@pytest.mark.parametrize(("change", "message"), [
    (lambda header: header.clear(), "the field about of its header is none that a session writes"),
    (lambda header: header["blobs"].pop("seen"), "the field blobs of its header is none that a session writes"),
    (lambda header: header["default"].update(r=5), "the field default of its header is none that a session writes"),
    (lambda header: header.update(settled=[9, 0]),
     "results of 9 and 0 probes cannot be there, as 0 and 0 tuples arrived"),
    (lambda header: header["blobs"].update(retained_r=header["blobs"]["retained_r"] + 8,
                                           retained_s=header["blobs"]["retained_s"] - 8),
     "its table inbox_r cannot be read ("),
])
def test_headers_that_no_session_writes(change: Any, message: str) -> None:
    with splitjoin.open(query(), "golden") as session, pytest.raises(SnapshotError) as caught:
        session.restore(resealed(saved(), change))
    assert str(caught.value).startswith(f"the snapshot is damaged: {message}")


@pytest.mark.parametrize(("other", "options", "message"), [
    ({"on": "r.x < s.a"}, {}, "condition is (r.x = s.a), and this session's is (r.x < s.a)"),
    ({"order": "outer(3)"}, {}, "order is total, and this session's is outer(3)"),
    ({"window": ("RANGE 1000", "ROWS 5 RANGE 1000")}, {},
     "window of s is RANGE 1000, and this session's is ROWS 5 RANGE 1000"),
    ({"window": "ROWS 5", "time": None}, {}, "window of r is RANGE 1000, and this session's is ROWS 5"),
    ({}, {"select": ["x"]}, "results is ts_r int64, x int32, ts_s int64, a int32, and this session's is x int32"),
    ({}, {"lateness": 4}, "lateness is (none), and this session's is 4 by min"),
    ({}, {"punctuation": True}, "punctuation is False, and this session's is True"),
])
def test_snapshots_of_other_queries(other: Any, options: Any, message: str) -> None:
    with splitjoin.open(query(**other), "golden", **options) as session:
        refused(SnapshotError, f"the snapshot is of another query: its {message}; open the session as the other "
                "one was",
                lambda: session.restore(saved()))


def test_snapshots_of_other_schemas() -> None:
    for schema, message in (
            (pa.schema([("ts", pa.int64()), ("x", pa.int64())]),
             "schema of r is ts int64, x int32, and this session's is ts int64, x int64"),
            (pa.schema([("ts", pa.int64()), pa.field("x", pa.int32(), nullable=False)]),
             "columns of r without NULL is (none), and this session's is x")):
        with splitjoin.open(splitjoin.query(schema, S, **WINDOW), "golden", select=["a"]) as session, \
                splitjoin.open(query(), "golden", select=["a"]) as mine:
            refused(SnapshotError, f"the snapshot is of another query: its {message}; open the session as the "
                    f"other one was", lambda mine=mine, session=session: session.restore(mine.snapshot()))


def test_all_a_session_knows_travels() -> None:
    """Unread rows, late rows, promises, closed sources, counts, default sources, tuples that are not ready."""
    by_source: Any = {"lateness": 2, "watermark": "source"}
    with splitjoin.open(query(), "golden", limit=Limit(rows=1, late=2), **by_source) as one:
        one.push_r(pa.table({"ts": [5, 1, 2, 0, 6, 9], "x": [0] * 6}, schema=R))
        one.source("r").close()
        one.push_s(pa.table({"ts": [5, 6, 7], "a": [0] * 3}, schema=S))
        one.heartbeat(8)
        one.source("s").heartbeat(100)
        taken = len(one.poll())
        data, counts = one.snapshot(), one.counters()
        assert counts["rows"] > counts["unread_rows"] > 0
    with splitjoin.open(query(), "golden", limit=Limit(rows=1, late=2), **by_source) as two:
        two.restore(data)
        found = two.counters()
        assert {k: v for k, v in found.items() if not k.startswith("device_")} == {
            k: v for k, v in counts.items() if not k.startswith("device_")}
        assert found["forgotten_r"] == 1
        assert two.late_r()["ts"].to_pylist() == [2, 0]
        assert two.snapshot() != data  # the late rows are taken
        found_rows = sum(len(two.poll()) for _ in range(9))
        refused(InputError, "source r[1] is closed and takes no more; add a new one",
                lambda: two.source_at("r", 1).push(R.empty_table()))
        refused(InputError, "stream r has no source 2; it has 2", lambda: two.source_at("r", 2))
        refused(InputError, "a stream must be 'r' or 's', not 'x'",
                lambda: two.source_at("x", 2))  # type: ignore[arg-type]  # wrong on purpose
        two.push_r(pa.table({"ts": [7], "x": [0]}, schema=R))
        assert two.late_r()["ts"].to_pylist() == [7]
        rows = two.flush()
        assert taken + found_rows + len(rows) == two.counters()["rows"] == 9
        assert two.source_at("r", 0).index == 0
    with splitjoin.open(query(), "golden", **by_source) as three:
        three.restore(two_finished := finished(data))
        assert (three.finished, len(three.poll()), len(three.flush())) == (True, 0, 0)
        assert two_finished


def finished(data: bytes) -> bytes:
    with splitjoin.open(query(), "golden", lateness=2, watermark="source") as session:
        session.restore(data)
        assert len(session.flush()) > 0
        return session.snapshot()


def every_type(n: int, first: int) -> pa.Table:
    """Columns of every kind that travels to the result, beside the key ``x`` and the time ``ts``."""
    i = range(first, first + n)
    words = [None if k % 7 == 0 else f"word {k % 5}" for k in i]
    ree = pa.array([k // 3 for k in i], pa.int64())
    return pa.table({
        "ts": pa.array(i, pa.int64()), "x": pa.array([k % 4 for k in i], pa.int32()),
        "text": pa.array(words), "large": pa.array(words, pa.large_string()),
        "view": pa.array(words, pa.string_view()), "bytes": pa.array([str(k).encode() for k in i], pa.binary_view()),
        "dictionary": pa.array(words).dictionary_encode(), "list": pa.array([[k, None] for k in i]),
        "struct": pa.array([{"a": k, "b": str(k)} for k in i]), "bool": pa.array([k % 3 == 0 for k in i]),
        "map": pa.array([[(str(k), k)] for k in i], pa.map_(pa.string(), pa.int64())),
        "decimal": pa.array(i, pa.decimal128(20, 2)), "wide": pa.array(i, pa.decimal256(50, 2)),
        "number": pa.array([None if k % 5 == 0 and k > 30 else k for k in i], pa.int16()),
        "days": pa.array([None if k % 5 == 1 else k for k in i], pa.int32()).cast(pa.date32()),
        "half": pa.array(np.array(i, np.float16)),
        "zoned": pa.array(i, pa.timestamp("us", "Europe/Oslo")), "null": pa.nulls(n),
        "fixed": pa.array([b"%04d" % k for k in i], pa.binary(4)),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array(range(1, n + 1), pa.int32()), ree),
    })


@pytest.mark.parametrize("window", ["ROWS 5", "RANGE 40"])
def test_every_arrow_type_travels(window: str) -> None:
    whole = every_type(120, 0)
    made = splitjoin.query(whole.schema, whole.schema, on="r.x = s.x", window=window, time="ts")
    session = splitjoin.open(made, "golden", lateness=3)
    batches = []
    for at in range(0, 120, 12):
        part = every_type(12, at)  # with dictionaries of their own
        order = pa.array([k ^ 1 for k in range(12)])
        session.push_r(pa.table([take(c, order) for c in part.columns], schema=part.schema))
        session.push_s(part)
        if at % 24:
            batches.append(session.poll())
        if at % 36 == 0:
            data = session.snapshot()
            session.close()
            session = splitjoin.open(made, "golden", lateness=3)
            session.restore(data)
    batches.append(session.flush())
    expected = splitjoin.join(whole, whole, on="r.x = s.x", window=window, time="ts", device="golden")
    assert pa.Table.from_batches(batches, session.schema).to_pylist() == expected.to_pylist()
    assert len(expected) > 100


def test_columns_that_nobody_needs() -> None:
    """Without time, condition and select on S's columns, rows of S still count."""
    made = splitjoin.query(R, S, on="TRUE", window="ROWS 2")
    with splitjoin.open(made, "golden", select=["x"]) as session:
        session.push_r(pa.table({"x": [1], "ts": [0]}, schema=pa.schema([R.field("x"), R.field("ts")])))
        session.push_s(pa.table({"ts": [1, 2], "a": [1, 2]}, schema=S))
        assert session.flush().to_pylist() == [{"x": 1}, {"x": 1}]


@pytest.mark.parametrize("window", [at_length("ROWS 100"), at_length("RANGE 100"), ("ROWS 50", "RANGE 100")])
@pytest.mark.parametrize("device", ["cpu", "golden"])
def test_memory_stays_bounded(window: Any, device: str) -> None:
    made = splitjoin.query(pa.schema([*R, ("text", pa.string())]), S, on="r.x = s.a", window=window, time="ts")
    rounds, n = (150, 400) if device == "cpu" else (40, 200)
    most, allocated = [0, 0], []
    with splitjoin.open(made, device) as session:
        for at in range(rounds):
            ts = np.arange(at * n, at * n + n)
            session.push_r(pa.table({"ts": ts, "x": (ts % 50).astype(np.int32), "text": ["x" * 100] * n}))
            session.push_s(pa.table({"ts": ts, "a": (ts % 50).astype(np.int32)}))
            session.poll()
            counters = session.counters()
            rows = counters["retained_r"] + counters["retained_s"]
            most = [max(most[0], rows), max(most[1], counters["retained_bytes"])]
            allocated.append(pa.total_allocated_bytes())
    assert most[0] <= 2 * 101
    assert most[1] <= 4 * n * 150
    assert max(allocated[rounds // 2:]) <= max(allocated[:rounds // 2]) + 200_000


def test_a_silent_stream_does_not_pile_up_the_other_one() -> None:
    """R's rows stay in a ROWS window for ever; S's go; and heartbeats let go of what no arrival will need."""
    with splitjoin.open(query(window=("ROWS 5", "RANGE 10")), "golden") as session:
        session.push_r(pa.table({"ts": range(5), "x": [0] * 5}, schema=R))
        for at in range(0, 5000, 500):
            session.heartbeat(at + 501, "r")
            session.push_s(pa.table({"ts": range(at, at + 500), "a": [1] * 500}, schema=S))
        counters = session.counters()
        assert (counters["retained_r"], counters["waiting"]) == (5, 0)
        assert counters["retained_s"] <= 11
        session.heartbeat(10_000)
        assert session.counters()["retained_s"] == 0
        data = session.snapshot()
    assert len(data) < 10_000


def test_sliding_arrays_keep_what_is_appended_and_not_dropped() -> None:
    rng, numbers, model = np.random.default_rng(0), SlidingArray(), np.empty(0, np.int64)
    for _ in range(300):
        new = rng.integers(0, 100, rng.integers(0, 200))
        numbers.append(new)
        drop = int(rng.integers(0, len(model) + len(new) + 1))
        numbers.drop(drop)
        model = np.concatenate([model, new])[drop:]
        assert numbers.values.tolist() == model.tolist()


def test_sliding_arrays_keep_memory_that_they_need_again() -> None:
    """Batches may be far longer than the window. What a long batch took is given back behind short ones."""
    numbers, places = SlidingArray(), set()
    for batch in range(20):
        numbers.append(np.arange(5000))
        numbers.drop(len(numbers) - 100)
        if batch >= 10:
            places.add(id(numbers._array))
    assert len(places) == 1
    for _ in range(20):
        numbers.append(np.arange(100))
        numbers.drop(100)
    assert len(numbers._array) <= 1024


def test_what_open_refuses() -> None:
    made = query()
    refused(InputError, "early must be True or False, not 'yes'",
            lambda: splitjoin.open(made, early="yes"))  # type: ignore[arg-type]  # wrong on purpose
    refused(InputError, "clock must be a function that returns seconds, not 5",
            lambda: splitjoin.open(made, clock=5))  # type: ignore[arg-type]  # wrong on purpose
    refused(InputError, "when_full must be 'raise', 'block' or 'shed', not 'drop'",
            lambda: splitjoin.open(made, when_full="drop"))  # type: ignore[arg-type]  # wrong on purpose
    refused(InputError, "a session needs a Query, as splitjoin.query(r_schema, s_schema, on=…, window=…) makes it, "
            "or a Select, as splitjoin.sql makes it of schemas, not int",
            lambda: splitjoin.open(5))  # type: ignore[arg-type]  # wrong on purpose
    table = pa.table({"x": [1]})
    refused(InputError, "a session needs a Query, as splitjoin.query(r_schema, s_schema, on=…, window=…) makes it, "
            "or a Select, as splitjoin.sql makes it of schemas, not Table; splitjoin.join joins whole tables",
            lambda: splitjoin.open(table, table))  # type: ignore[arg-type]  # wrong on purpose
    refused(SchemaError, "select must name at least one column, as a table without columns has no rows",
            lambda: splitjoin.open(made, select=[]))
    refused(InputError, "a lateness needs a query with a time column; without one, tuples arrive as they are pushed",
            lambda: splitjoin.open(query(window="ROWS 5", time=None), lateness=4))
    refused(SchemaError, "the schema of stream r must be a pyarrow.Schema, or a table of Arrow, pandas or Polars, not "
            "str; pyarrow.schema([('x', pyarrow.int64()), …]) makes one", lambda: splitjoin.query("x int", S, **WINDOW))
    bare = Query.make(Schema("r", query().r.columns), Schema.from_arrow("s", S), **WINDOW)
    refused(SchemaError, "a session needs the Arrow schema of stream r, but the query was made without one; make it "
            "with splitjoin.query(r_schema, s_schema, on=…, window=…)", lambda: splitjoin.open(bare))
    none = splitjoin.query(pa.schema([]), S, on="TRUE", window="ROWS 1")
    refused(SchemaError, "stream r must have at least one column", lambda: splitjoin.open(none))
    with splitjoin.open(query(window="ROWS 5", time=None), "golden") as session:
        refused(InputError, "a heartbeat needs a query with a time column; without one, tuples arrive as they are "
                "pushed", lambda: session.heartbeat(5))
        refused(InputError, "poll_items needs a session opened with punctuation=True", session.poll_items)
        refused(InputError, "a stream must be 'r' or 's', not 'q'",
                lambda: session.source("q"))  # type: ignore[arg-type]  # wrong on purpose
    strict = splitjoin.query(pa.schema([R.field("ts"), pa.field("x", pa.int32(), nullable=False)]), S, **WINDOW)
    with splitjoin.open(strict, "golden") as session:
        refused(InputError, "column r.x must not hold NULL, as the schema says, but row 1 of a batch does; declare the "
                "column nullable in the schema, or leave such rows out",
                lambda: session.push_r(pa.table({"ts": [1, 1], "x": pa.array([1, None], pa.int32())})))
        session.push_r(pa.table({"ts": [1], "x": pa.array([1], pa.int32())}))
        assert session.counters()["waiting"] == 1
