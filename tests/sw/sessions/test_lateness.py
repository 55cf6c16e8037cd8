"""What is late at the ends of int64 and at a watermark; `tests/machine` has random sources, late and idle."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import splitjoin

R = pa.schema([("ts", pa.int64()), ("x", pa.int32()), ("id", pa.int64())])
S = pa.schema([("ts", pa.int64()), ("a", pa.int32()), ("jd", pa.int64())])


@pytest.mark.parametrize("kind", [{}, {"how": "left"}, {"how": "asof_left", "k": 2}],
                         ids=["inner", "left", "asof_left"])
@pytest.mark.parametrize("low", [True, False], ids=["least", "greatest"])
def test_watermarks_beyond_int64_are_saved(kind: dict[str, Any], low: bool) -> None:
    times = [-(2**63), 3 - 2**63, 9 - 2**63] if low else [2**63 - 9, 2**63 - 3, 2**63 - 1]
    r = pa.table([times, [1, 2, 3], [10, 20, 30]], schema=R)
    s = pa.table([times, [1, 2, 3], [40, 50, 60]], schema=S)
    made: dict[str, Any] = {"on": "abs(r.x - s.a) <= 1", "window": "RANGE 4", "time": "ts", **kind}
    rows = []
    session = splitjoin.open(splitjoin.query(R, S, **made), "golden", lateness=5)
    for i in range(4):
        if i < 3:
            session.push_r(r[i:i + 1])
            session.push_s(s[i:i + 1])
        else:
            session.heartbeat(-(2**64) if low else 2**64)
        rows += session.poll().to_pylist()
        saved = session.snapshot()
        session.close()
        session = splitjoin.open(splitjoin.query(R, S, **made), "cpu", lateness=5)
        session.restore(saved)
    with session:
        rows += session.flush().to_pylist()
    assert rows == splitjoin.join(r, s, **made, device="golden").to_pylist()


@pytest.mark.parametrize(("rule", "first"), [("min", 10), ("max", 10), ("source", 10), ("spark", 11)])
def test_one_rule_at_a_watermark(rule: Any, first: int) -> None:
    """``first`` is the first time that is not late, by tuples that have got to 12 with a delay of 2; a heartbeat of
    this time sets the same watermark, as it promises that nothing below it comes.
    """
    schema = pa.schema([("ts", pa.int64())])
    query = splitjoin.query(schema, schema, on="r.ts = s.ts", window="RANGE 5", time="ts")

    def late(promised: bool) -> list[int]:
        with splitjoin.open(query, "golden", lateness=2, watermark=rule) as session:
            if promised:
                session.heartbeat(first)
            else:
                session.push_r(pa.table({"ts": [12]}))
                session.push_s(pa.table({"ts": [12]}))
            for ts in range(first - 3, first + 2):
                session.push_r(pa.table({"ts": [ts]}))
            return session.late_r().column("ts").to_pylist()

    assert late(promised=False) == late(promised=True) == [first - 3, first - 2, first - 1]
