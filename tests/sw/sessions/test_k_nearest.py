"""Several partners of an as-of join, and the last of equally near ones, over streams: as over whole tables."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin import InputError, OrderError, WindowError

from ...support.sampling import examples

R = pa.schema({"t": pa.int64(), "x": pa.int64(), "n": pa.int64()})
S = pa.schema({"t": pa.int64(), "a": pa.int64(), "m": pa.int64()})
TIMES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 1)), max_size=12)


def table(schema: pa.Schema, rows: list[tuple[int, int]], *, timed: bool) -> pa.Table:
    rows = sorted(rows) if timed else rows
    values = [[t for t, _ in rows], [x for _, x in rows], list(range(len(rows)))]
    return pa.table([pa.array(v, pa.int64()) for v in values], schema=schema)


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_as_over_whole_tables(data: st.DataObject) -> None:
    timed = data.draw(st.booleans())
    r, s = (table(schema, data.draw(TIMES), timed=timed) for schema in (R, S))
    window = data.draw(st.sampled_from(["RANGE 4", "ROWS 3", "ROWS 4 RANGE 3", ("RANGE 2", "RANGE 9")] if timed else
                                       ["ROWS 3", ("ROWS 2", "ROWS 5")]))
    direction = data.draw(st.sampled_from(["backward", "forward", "nearest"]))
    how: dict[str, Any] = {
        "on": data.draw(st.sampled_from(["TRUE", "r.x = s.a", "r.x <= s.a"])), "time": "t" if timed else None,
        "window": window, "how": data.draw(st.sampled_from(["asof", "asof_left"])), "direction": direction,
        "k": data.draw(st.integers(1, 4))}
    if timed:
        how["allow_exact"] = data.draw(st.booleans())
        how["tolerance"] = data.draw(st.none() | st.integers(0, 3))
    if direction == "nearest":
        how["ties"] = data.draw(st.sampled_from(["backward", "last"]))
    device = "golden"  # the operator is the same on all devices, and the CPU engine compiles each condition
    if not timed:  # tables arrive alternately, and so must the streams
        r, s = (one.slice(0, min(len(r), len(s))) for one in (r, s))
    want = splitjoin.join(r, s, order="left", select=["n", "m"], device="golden", **how).to_pylist()
    session = splitjoin.open(splitjoin.query(R, S, **how), device=device, select=["n", "m"])
    rows, at = [], {"r": 0, "s": 0}
    tables = {"r": r, "s": s}
    while any(at[side] < len(tables[side]) for side in "rs"):
        for side in "rs":
            size = data.draw(st.integers(0, 4)) if timed else 1
            part = tables[side].slice(at[side], size)
            at[side] += len(part)
            if len(part):
                (session.push_r if side == "r" else session.push_s)(part)
        if data.draw(st.booleans()):
            rows += session.poll().to_pylist()
        if data.draw(st.integers(0, 5)) == 0:
            saved = session.snapshot()
            session.close()
            session = splitjoin.open(splitjoin.query(R, S, **how), device=device, select=["n", "m"])
            session.restore(saved)
    rows += session.flush().to_pylist()
    session.close()
    if how["k"] == 1 and how.get("ties") != "last":  # whose rows come when they are decided, in total order
        rows.sort(key=lambda row: row["n"])
    assert rows == want


def test_a_row_comes_once_nothing_can_meet_it() -> None:
    r, s = table(R, [(5, 0)], timed=True), table(S, [(1, 0), (3, 0), (4, 0)], timed=True)
    for direction, decided_at in (("backward", 6), ("nearest", 10)):
        query = splitjoin.query(R, S, on="TRUE", time="t", window="RANGE 4", how="asof", direction=direction, k=2)
        with splitjoin.open(query, select=["m"]) as session:
            session.push_s(s)
            session.push_r(r)
            session.heartbeat(decided_at - 1)
            assert session.poll().to_pylist() == []
            session.heartbeat(decided_at)
            assert session.poll().to_pylist() == [{"m": 2}, {"m": 1}]


@pytest.mark.parametrize(("how", "error", "message"), [
    ({"k": 0}, InputError, "k must be a whole number from 1 on"),
    ({"k": 2, "order": "none"}, OrderError, "come in order 'total' over streams, not 'none'; give order='total'"),
    ({"k": 2, "window": None}, WindowError, "keeps the last tuple of s of each key, so k must be 1, not 2; give a win"),
])
def test_refused(how: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        splitjoin.query(R, S, **{"on": "TRUE", "time": "t", "how": "asof", "window": "RANGE 4", **how})
