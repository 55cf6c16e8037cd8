"""Several partners of an as-of join over streams; `tests/machine` has random ones."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import splitjoin
from splitjoin import InputError, OrderError, WindowError

R = pa.schema({"t": pa.int64(), "x": pa.int64(), "n": pa.int64()})
S = pa.schema({"t": pa.int64(), "a": pa.int64(), "m": pa.int64()})


def table(schema: pa.Schema, rows: list[tuple[int, int]]) -> pa.Table:
    values = [[t for t, _ in rows], [x for _, x in rows], list(range(len(rows)))]
    return pa.table([pa.array(v, pa.int64()) for v in values], schema=schema)


def test_a_row_comes_once_nothing_can_meet_it() -> None:
    r, s = table(R, [(5, 0)]), table(S, [(1, 0), (3, 0), (4, 0)])
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
