"""Rows come at the first arrival after which nothing can change them, and not later."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import splitjoin
from splitjoin.engines.arrival import arrivals
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.rows.kinds import OwnSide, reference
from splitjoin.sessions import StreamJoin

R = pa.table({"ts": pa.array([0] * 4, pa.int64()), "x": [1, None, 3, 4], "f": [1.0, 0.0, None, 4.0],
              "t": ["a", "b", None, "d"]})
S = pa.table({"ts": pa.array([0] * 2, pa.int64()), "a": [1, None], "g": [1.0, 2.0], "u": ["a", None]})


@pytest.mark.parametrize(("on", "r", "s"), [
    ("TRUE", [], []), ("FALSE", [0, 1, 2, 3], [0, 1]), ("r.x = s.a", [1], [1]), ("r.x + 1 <= 2 * s.a", [1], [1]),
    ("r.x > 2", [0, 1], []), ("s.a > 2 AND r.x > 3", [0, 1, 2], [0, 1]), ("r.t = s.u", [2], [1]),
    ("abs(r.f - s.g) <= 1", [2], []), ("r.t LIKE 'a%' AND r.x = s.a", [1, 2, 3], [1]), ("10 // r.x = s.a", [1], [1]),
    # Nothing that depends on the other stream, and no part of a disjunction.
    ("r.x = s.a OR r.t = s.u", [], []), ("coalesce(r.x, 0) = s.a", [], [1]), ("r.x IS NULL OR r.x = s.a", [], []),
    ("NOT (r.x = s.a)", [], []), ("least(r.x, 2) = s.a", [], [1]),
])
def test_what_its_own_side_rules_out(on: str, r: list[int], s: list[int]) -> None:
    query = splitjoin.query(R.schema, S.schema, on=on, window="RANGE 1", time="ts", how="full")
    for side, table, expected in (("r", R, r), ("s", S, s)):
        assert np.flatnonzero(OwnSide.of(query, side).ruled_out(table)).tolist() == expected
    whole = arrivals(query, R, S)
    for side, expected in (("r", r), ("s", s)):
        assert [n for n, out in enumerate(reference._ruled_out(query, side, whole)) if out] == expected
        # None of them is in a pair.
        found = splitjoin.join(R, S, on=on, window="RANGE 1", time="ts", device="golden").items
        assert not set(expected) & set(found[side][found["kind"] == 0].tolist())


def steps(session: StreamJoin, *, r: str = "ts_r", s: str = "ts_s") -> list[list[tuple[Any, Any]]]:
    """The times of the rows after each push: of R at 10, and S at 7; R at 12; S at 13; both at 20; R at 40, S at 40."""
    found = []
    for times_r, times_s in (([10], [7]), ([12], []), ([], [13]), ([20], [20]), ([40], [40])):
        session.push_r(pa.table({"ts": pa.array(times_r, pa.int64()), "x": pa.array([1] * len(times_r), pa.int64())}))
        session.push_s(pa.table({"ts": pa.array(times_s, pa.int64()), "a": pa.array([1] * len(times_s), pa.int64())}))
        rows = session.poll().to_pylist()
        found.append([(row.get(r, row.get("ts")), row.get(s)) for row in rows])
    return found


@pytest.mark.parametrize(("kind", "expected"), [
    # The gate holds back what the other stream could still precede: nothing is ready at first, then R up to 12, S at 13
    # and R at 20, and so on.
    ({"how": "asof"}, [[], [], [(10, 7)], [(12, 7)], [(20, 20)]]),
    ({"how": "asof", "allow_exact": False}, [[], [], [(10, 7), (12, 7)], [(20, 13)], []]),
    ({"how": "asof", "direction": "forward"}, [[], [], [], [(10, 13), (12, 13)], [(20, 20)]]),
    # The partner of 10 before it is 3 away, and so is that at 13; that of 12 at 13 is nearer.
    ({"how": "asof", "direction": "nearest"}, [[], [], [], [(10, 7), (12, 13)], [(20, 20)]]),
    ({"how": "anti", "on": "r.x > 1"}, [[], [], [(10, None), (12, None)], [(20, None)], [(40, None)]]),
    ({"how": "left", "on": "r.x > s.a"}, [[], [], [], [], [(10, None), (12, None), (20, None)]]),
])
def test_the_step_at_which_rows_come(kind: dict[str, Any], expected: list[list[tuple[int, int | None]]]) -> None:
    schemas = (pa.schema([("ts", pa.int64()), (name, pa.int64())]) for name in ("x", "a"))
    query = splitjoin.query(*schemas, time="ts", window="RANGE 19", **{"on": "TRUE", **kind})
    with splitjoin.open(query) as session:
        found = steps(session)
    assert found == expected


@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
def test_as_of_sessions_retain_no_longer_than_their_rows_wait(direction: str) -> None:
    r, s = (pa.table({"ts": np.arange(2000), name: np.arange(2000) % 10}) for name in ("x", "a"))
    query = splitjoin.query(r.schema, s.schema, on="r.x = s.a", window="RANGE 500", time="ts", how="asof",
                            direction=direction)
    with splitjoin.open(query) as session:
        for at in range(0, 2000, 10):
            session.push_r(r.slice(at, 10))
            session.push_s(s.slice(at, 10))
            session.poll()
        counters = session.counters()
    assert counters["retained_r"] <= 25
    assert counters["retained_s"] <= (25 if direction == "forward" else 525)


def test_windows_are_narrowed_where_as_of_joins_look_no_further() -> None:
    def windows(**kind: Any) -> list[tuple[int | None, int | None]]:
        made = Query.make(Schema.from_table("r", R), Schema.from_table("s", S), on="TRUE", **kind).narrowed
        return [(w.rows, w.length) for w in (made.window_r, made.window_s)]

    both: dict[str, Any] = {"window": "ROWS 3 RANGE 9", "time": "ts", "how": "asof"}
    assert windows(**both) == [(3, 0), (3, 9)]
    assert windows(**both, direction="forward") == [(3, 9), (3, 0)]
    assert windows(**both, direction="nearest") == windows(**{**both, "how": "left"}) == [(3, 9), (3, 9)]
    assert windows(window="ROWS 5", how="asof") == [(1, None), (5, None)]
