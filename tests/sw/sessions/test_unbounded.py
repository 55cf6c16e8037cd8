"""As-of joins without a window: the last tuple of S of each key is all that a session keeps of S."""

from __future__ import annotations

import random
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin import Query, StreamJoin, UnsupportedError, WindowError
from splitjoin.engines.cpu import CpuDevice
from splitjoin.engines.golden import GoldenDevice
from splitjoin.lang.windows import Extent
from splitjoin.rows.kinds.reference import reference_rows
from tests.support.kinds import plain_rows
from tests.support.sampling import examples
from tests.support.strategies import COLUMN_TYPES, arrays

from ...support.feeding import answer, feed, feeds, whole

R = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("x", pa.int64())])
S = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("a", pa.int64())])
CONDITIONS = ["r.k = s.k", "r.k = s.k AND s.a > 1 AND r.x < 3", "TRUE", "s.a + 1 = r.x AND r.k = s.k", "s.a > 1"]


def made(**more: Any) -> Query:
    return splitjoin.query(R, S, **{"on": "r.k = s.k", "time": "ts", "how": "asof"} | more)


def table(schema: pa.Schema, *rows: tuple[int, int, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def tables(chance: np.random.Generator, n: int, times: int, keys: int) -> list[pa.Table]:
    def column(top: int) -> pa.Array:
        return pa.array(chance.integers(0, top, n), mask=chance.random(n) < 0.1)

    return [pa.table([np.sort(chance.integers(0, times, n)), column(keys), column(5)], schema=schema)
            for schema in (R, S)]


@settings(max_examples=examples(40))
@given(st.data())
def test_sessions_give_the_golden_rows_however_they_are_fed(data: st.DataObject) -> None:
    """In parts, from several sources, over snapshots that another device restores: rows and their order."""
    chance = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    r, s = tables(chance, data.draw(st.integers(0, 24)), data.draw(st.sampled_from([4, 30])), 3)
    timed = data.draw(st.booleans())
    query = made(on=data.draw(st.sampled_from(CONDITIONS)), how=data.draw(st.sampled_from(["asof", "asof_left"])),
                 time="ts" if timed else None, allow_exact=data.draw(st.booleans()) if timed else None,
                 order=data.draw(st.sampled_from(["total", "none"])))
    how = data.draw(feeds(len(r), len(s)))
    devices = data.draw(st.permutations([CpuDevice(), GoldenDevice()]))
    makers = [lambda d=d: StreamJoin(query, d, punctuation=True) for d in devices]
    with feed(how, makers, r, s, "ts" if timed else None):
        arrived = whole(query, how, r, s)
        pairs = replace(query, window_r=Extent(1000, None), window_s=Extent(1000, None))
        expected = reference_rows(query, arrived, answer(pairs.pairs, arrived)[0])
        assert np.concatenate(how.items).tolist() == expected.tolist()
        ids = plain_rows(expected)
        rows = pa.Table.from_batches(how.rows).to_pylist()
        assert [(row["x"], row["a"]) for row in rows] == [
            (arrived.r["x"][i].as_py(), None if j < 0 else arrived.s["a"][j].as_py()) for i, j in ids]


@settings(max_examples=examples(25))
@given(st.sampled_from(COLUMN_TYPES), st.data())
def test_keys_of_every_type(type_: pa.DataType, data: st.DataObject) -> None:
    size = 12
    r, s = (pa.table({"ts": range(size), "k": data.draw(arrays(type_, size)), name: range(size)}) for name in "xa")
    query = splitjoin.query(r.schema, s.schema, on="r.k = s.k", time="ts", how="asof_left")
    found = []
    for device in "cpu", "golden":
        with splitjoin.open(query, device, select=["x", "a"]) as session:
            for at in range(0, size, 5):
                session.push_r(r.slice(at, 5))
                session.push_s(s.slice(at, 5))
                session.restore(session.snapshot())
            found.append(session.flush().to_pylist())
    expected = splitjoin.join(r, s, on="r.k = s.k", time="ts", how="asof_left", device="golden", select=["x", "a"])
    assert found == [expected.table.to_pylist()] * 2


@pytest.mark.parametrize(("k_r", "k_s", "partners"), [
    (pa.array([1, 2, 3], pa.int16()), pa.array([1.0, 2.5, 3.0], pa.float64()), [0, None, 2]),
    (pa.array([1, 2, 3]), pa.array([Decimal("1.00"), Decimal("2.01"), Decimal("3.00")]), [0, None, 2]),
    (pa.array([1, 2, 3], pa.timestamp("s")), pa.array([1000, 2000, 3001], pa.timestamp("ms")), [0, 1, None]),
    (pa.array(["a", "b", "a"]).dictionary_encode(), pa.array(["a", "a", "b"]), [0, None, 1]),
], ids=["float", "decimal", "timestamp", "dictionary"])
def test_keys_of_two_types(k_r: pa.Array, k_s: pa.Array, partners: list[int | None]) -> None:
    r, s = pa.table({"ts": [1, 2, 3], "k": k_r}), pa.table({"ts": [1, 2, 3], "k": k_s, "a": [0, 1, 2]})
    for device in "cpu", "golden":
        with splitjoin.open(splitjoin.query(r.schema, s.schema, on="r.k = s.k", time="ts", how="asof_left"), device,
                            select=["a"]) as session:
            session.push_s(s.slice(0, 1))
            session.push_r(r)
            session.push_s(s.slice(1))
            assert session.flush()["a"].to_pylist() == partners


@pytest.mark.parametrize("device", ["cpu", "golden"])
def test_memory_is_that_of_one_partner_a_key(device: str) -> None:
    """However far back the partner is, and however many keys only R has."""
    chance, keys = random.Random(0), 20
    query = made(how="asof_left", on="r.k = s.k AND s.a >= 0")
    with splitjoin.open(query, device) as session:
        session.push_s(table(S, *((0, -k, 1) for k in range(keys))))
        sizes = []
        for at in range(1, 40 if device == "cpu" else 12):
            rows = [(at, chance.randrange(10**9), 0) for _ in range(200)]
            session.push_r(table(R, *rows))
            session.push_s(table(S, *((at, -chance.randrange(keys), chance.randrange(-1, 9)) for _ in range(200)),
                                 (at, 1, -1)))
            session.poll()
            counters = session.counters()
            assert counters["retained_s"] <= 2 * keys + 1024 + 201
            assert counters["retained_r"] == 200  # those of the last time
            sizes += [len(session.snapshot())] if at % 5 == 0 else []
        assert max(sizes) - min(sizes) < 400
        if device == "cpu":
            assert len(session._pipeline.device_session._session._slots) < 2 * keys + 2048  # type: ignore[attr-defined]
        session.push_r(table(R, (100, 0, 7)))
        assert session.flush()["ts_s"].to_pylist()[-1] is not None


def test_rows_come_when_arrival_order_has_passed_them() -> None:
    with splitjoin.open(made(how="asof_left")) as session:
        session.push_s(table(S, (1, 7, 1)))
        session.push_r(table(R, (1000, 7, 1), (1000, 8, 2)))
        session.push_s(table(S, (1000, 7, 2)))
        assert session.poll().num_rows == 0
        session.heartbeat(1001, "s")
        session.heartbeat(1001, "r")
        assert [(row["x"], row["a"]) for row in session.poll().to_pylist()] == [(1, 2), (2, None)]
        session.push_r(table(R, (2000, 7, 3)))
        session.heartbeat(2001)
        assert session.poll()["a"].to_pylist() == [2]
    with splitjoin.open(made(how="asof_left", allow_exact=False)) as session:
        session.push_s(table(S, (1, 7, 1)))
        session.push_r(table(R, (1000, 7, 1)))
        session.push_s(table(S, (1000, 7, 2)))
        assert session.poll()["a"].to_pylist() == [1]


def test_statements() -> None:
    query = splitjoin.sql("SELECT x, a FROM r ASOF JOIN s ON r.k = s.k AND r.ts >= s.ts", r=R, s=S)
    with splitjoin.open(query) as session:
        session.push_s(table(S, (1, 7, 1), (5, 8, 2)))
        session.push_r(table(R, (900, 7, 3)))
        assert session.flush().to_pylist() == [{"x": 3, "a": 1}]


@pytest.mark.parametrize(("more", "message"), [
    ({"how": "left"}, "streams that do not end need a window, such as window='RANGE 15 MINUTES'; only an as-of join "
                      "that looks backward needs none"),
    ({"direction": "forward"}, "an as-of join of direction 'forward' needs a window, such as window='RANGE 15 "
     "MINUTES', since a tuple of r would wait without end for a partner that never comes; direction 'backward' needs "
     "none"),
    ({"on": "r.k = s.k AND r.x > s.a"}, "an as-of join without a window keeps the last tuple of s of each key, so its "
     "condition must consist of equalities between r and s and of conditions on one of them, but (r.x > s.a) is "
     "neither; give a window, such as window='RANGE 15 MINUTES'"),
], ids=["left", "forward", "condition"])
def test_what_needs_a_window_says_so(more: dict[str, Any], message: str) -> None:
    with pytest.raises(WindowError) as caught:
        made(**more)
    assert str(caught.value) == message


@pytest.mark.parametrize(("device", "options"), [
    ("sim", {"cores": 2}), ("pysim", {"cores": 2}), ("cpu", {"engine": "index"})])
def test_devices_of_bounded_windows_refuse(device: str, options: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError, match="as-of join without a window"):
        splitjoin.open(made(), device, **options)


def test_a_session_cannot_move_to_a_circuit() -> None:
    with splitjoin.open(made()) as session:
        session.push_s(table(S, (1, 7, 1)))
        with pytest.raises(UnsupportedError, match="the device 'sim' stores windows of bounded size"):
            session.restart("sim")
        session.push_r(table(R, (9, 7, 5)))
        assert session.flush()["a"].to_pylist() == [1]


def test_no_circuit_is_laid_out() -> None:
    from splitjoin.joins.explain import explain

    with pytest.raises(UnsupportedError, match="a circuit stores windows of bounded size"):
        explain(made())
