"""Times of whole tables: numbers, durations, decimals and text, with NULL; tolerance, and the k nearest partners."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin import InputError, OrderError, SchemaError, WindowError

from ...support.kinds import KINDS
from ...support.sampling import examples

INF, NAN = float("inf"), float("nan")

#: Name → the Arrow types of both time columns, the values to draw from, and a RANGE; None where there is none.
TIMES: dict[str, tuple[pa.DataType, pa.DataType, list[Any], str | None]] = {
    "float64": (pa.float64(), pa.float64(), [-INF, -1.5, -0.0, 0.0, 0.1, 0.25, 0.35, 2.0, 1e300, INF, NAN],
                "RANGE 0.25"),
    "float32": (pa.float32(), pa.float64(), [-2.0, 0.0, 0.5, 0.75, 3.0], "RANGE 0.5"),
    "uint64": (pa.uint64(), pa.uint64(), [0, 1, 2, 2**63 - 1, 2**63, 2**63 + 2, 2**64 - 1], "RANGE 2"),
    "unsigned and signed": (pa.uint64(), pa.int64(), [0, 1, 2, 3, 9], "RANGE 2"),
    "duration": (pa.duration("s"), pa.duration("ms"), [dt.timedelta(seconds=n) for n in (-3, 0, 1, 2, 60)],
                 "RANGE 2 SECONDS"),
    "decimal": (pa.decimal128(9, 1), pa.decimal128(9, 3), [Decimal(n) / 10 for n in (-7, 0, 1, 3, 4, 99)], "RANGE 0.2"),
    "text": (pa.string(), pa.large_string(), ["", "a", "aa", "b", "é", "\0"], None),
    "binary": (pa.binary(), pa.binary(), [b"", b"a", b"b\xff", b"c"], None),
    "date": (pa.date32(), pa.date32(), [dt.date(2020, 1, n) for n in (1, 2, 4, 5)], "RANGE 1 DAY"),
    "int64": (pa.int64(), pa.int32(), [-5, 0, 1, 2, 7], "RANGE 2"),
    "null": (pa.null(), pa.int64(), [1, 2], "RANGE 1"),
    "time of day": (pa.time32("s"), pa.time64("ns"), [dt.time(0), dt.time(9, 30), dt.time(9, 30, 1), dt.time(23, 59)],
                    "RANGE 1 SECOND"),
    "int64 beside float64": (pa.int64(), pa.float64(), [-2, 0, 1, 2, 2**53], "RANGE 0.5"),
    "decimal beside int32": (pa.decimal128(9, 2), pa.int32(), [Decimal(n) for n in (-7, 0, 1, 2)], "RANGE 1.5"),
    "date beside timestamp": (pa.date32(), pa.timestamp("ms"), [dt.datetime(2020, 1, n, h) for n in (1, 2, 4)
                                                                for h in (0, 9)], "RANGE 1 DAY"),
}


def tables(data: st.DataObject, name: str) -> tuple[pa.Table, pa.Table]:
    """Two tables with times of one kind, in any order, a few of them NULL."""
    made = []
    for type_, n, value in zip(TIMES[name][:2], ("n", "m"), ("x", "a"), strict=True):
        one = st.none() if pa.types.is_null(type_) else st.none() | st.sampled_from(TIMES[name][2])
        values = data.draw(st.lists(st.tuples(one, st.integers(0, 3)), max_size=9))
        made.append(pa.table({"t": pa.array([v for v, _ in values], type_), value: [x for _, x in values],
                              n: list(range(len(values)))}, schema=pa.schema({"t": type_, value: pa.int64(),
                                                                              n: pa.int64()})))
    return made[0], made[1]


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_golden_and_cpu_agree(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(TIMES)))
    r, s = tables(data, name)
    kind = dict(data.draw(st.sampled_from(KINDS)))
    if kind["how"].startswith("asof") and data.draw(st.booleans()):
        kind["k"] = data.draw(st.integers(1, 3))
    if name in ("text", "binary") and kind.get("direction") == "nearest":
        kind["direction"] = "forward"
    if kind.get("direction") == "nearest" and data.draw(st.booleans()):
        kind["ties"] = "last"
    window = data.draw(st.sampled_from([None, "ROWS 3", TIMES[name][3]]))
    on = data.draw(st.sampled_from(["TRUE", "r.x = s.a", "r.x <= s.a", "r.x * s.a % 2 = 0"]))
    found = [splitjoin.join(r, s, on=on, time="t", window=window, sort=True, device=device, **kind)
             for device in ("golden", "cpu")]
    assert found[0].items.tolist() == found[1].items.tolist()
    assert str(found[0].to_pylist()) == str(found[1].to_pylist())  # NaN differs from itself


def nearest(r: Any, times: list[Any], direction: str, exact: bool, limit: float | None, k: int,
            ties: str) -> list[int]:
    """The numbers of the partners of a tuple at ``r``, by the words of the documentation."""
    if r is None:
        return []
    allowed = [(t, n) for n, t in enumerate(times) if t is not None and (exact or t != r)
               and (limit is None or t == r or abs(t - r) <= limit)]
    back = sorted([(t, n) for t, n in allowed if t <= r], reverse=True)
    fore = sorted([(t, n) for t, n in allowed if t > r or (t == r and direction == "forward")])
    if direction == "nearest":
        some = sorted(allowed, key=lambda one: -one[1]) if ties == "last" else [*back, *fore]
        found = sorted(some, key=lambda one: 0 if one[0] == r else abs(one[0] - r))
    else:
        found = back if direction == "backward" else fore
    return [n for _, n in found[:k]]


@settings(max_examples=examples(60), deadline=None)
@given(times=st.tuples(*[st.lists(st.none() | st.floats(-9, 9) | st.integers(-3, 3).map(float)
                                  | st.sampled_from([INF, -INF]), max_size=8)] * 2),
       direction=st.sampled_from(["backward", "forward", "nearest"]), exact=st.booleans(),
       limit=st.none() | st.floats(0, 5), k=st.integers(1, 4), ties=st.sampled_from(["backward", "last"]))
def test_partners_by_floats(times: Any, direction: Any, exact: bool, limit: float | None, k: int, ties: str) -> None:
    r, s = ({"t": pa.array(ts, pa.float64()), "n": pa.array(range(len(ts)), pa.int64())} for ts in times)
    found = splitjoin.join(r, s, on="TRUE", time="t", sort=True, how="asof_left", direction=direction, k=k,
                           allow_exact=exact, tolerance=limit, order="left", select=["n_r", "n_s"],
                           ties=ties if direction == "nearest" else None)
    order = sorted(range(len(times[1])), key=lambda n: (times[1][n] is None, times[1][n] or 0.0))
    want = []
    for n, t in enumerate(times[0]):
        mine = nearest(t, [times[1][at] for at in order], direction, exact, limit, k, ties)
        want += [(n, order[at]) for at in mine] or [(n, None)]
    rows = [tuple(row.values()) for row in found.to_pylist()]
    assert rows == want


@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
def test_equal_infinite_times_are_near_as_pandas_has_it(direction: str) -> None:
    """Although their difference is NaN; which NaN times, that pandas refuses, are not."""
    r, s = {"t": [-INF, -4.0, 1.0, INF]}, {"t": [-INF, 0.5, INF], "n": [0, 1, 2]}
    want = pd.merge_asof(pd.DataFrame(r), pd.DataFrame(s), on="t", tolerance=1.0, direction=direction)
    for device in ("cpu", "golden"):
        found = splitjoin.join(r, s, on="TRUE", time="t", how="asof_left", tolerance=1.0, direction=direction,
                               select=["n"], device=device, order="left").to_pandas()
        assert found.n.equals(want.n)
        some = {"t": np.array([-INF, 1.0, INF, NAN])}
        found = splitjoin.join(some, some, on="TRUE", time="t", window="RANGE 1", select=["r.t"], device=device)
        assert found.to_pydict() == {"t_r": [-INF, 1.0, INF]}


@pytest.mark.parametrize("by", [None, "k"])
@pytest.mark.parametrize("exact", [True, False])
def test_the_last_of_equally_near_ones_as_polars_has_it(by: str | None, exact: bool) -> None:
    chance = np.random.default_rng(11)
    for rows in (0, 1, 9, 200):
        left, right = (pl.DataFrame({"t": np.sort(chance.integers(0, 60, rows)), "k": chance.integers(0, 3, rows),
                                     name: np.arange(rows)}) for name in "xy")
        want = left.join_asof(right, on="t", by=by, strategy="nearest", allow_exact_matches=exact,
                              check_sortedness=False)
        found = splitjoin.join(left, right, on="r.k = s.k" if by else "TRUE", time="t", how="asof_left",
                               direction="nearest", ties="last", allow_exact=exact)
        assert found.column("y").to_pylist() == want["y"].to_list()


def test_floats_that_are_equally_far_when_rounded() -> None:
    r, s = {"t": [-1.0], "n": [0]}, {"t": [0.0, 1e-300, 0.5], "m": [0, 1, 2]}
    for device in ("golden", "cpu"):
        for ties, want in (("last", [1, 0, 2]), ("backward", [0, 1, 2])):
            found = splitjoin.join(r, s, on="TRUE", time="t", how="asof", direction="nearest", ties=ties, k=3,
                                   device=device)
            assert found.column("m").to_pylist() == want


MERGED = {
    "float": lambda n: n / 4, "int": lambda n: n, "uint64": lambda n: np.uint64(n) + np.uint64(2**63),
    "timestamp": lambda n: pd.Timestamp("2020-01-01") + pd.Timedelta(seconds=int(n)),
    "timedelta": lambda n: pd.Timedelta(seconds=int(n)), "float32": lambda n: np.float32(n) / 8,
}
LIMITS: dict[str, Any] = {"float": 0.5, "int": 2, "uint64": 2, "timestamp": pd.Timedelta("2s"),
                          "timedelta": dt.timedelta(seconds=2), "float32": 0.25}


@pytest.mark.parametrize("name", sorted(MERGED))
@pytest.mark.parametrize("by", [False, True])
def test_as_pandas_merge_asof(name: str, by: bool) -> None:
    chance = np.random.default_rng(5)
    # Times of S differ, as pandas has another one of equal distances first.
    left = pd.DataFrame({"t": [MERGED[name](n) for n in np.sort(chance.integers(0, 30, 25))],
                         "k": chance.integers(0, 2, 25), "x": range(25)})
    right = pd.DataFrame({"t": [MERGED[name](n) for n in range(0, 30, 3)], "k": chance.integers(0, 2, 10),
                          "y": range(10)})
    on = "r.k = s.k" if by else "TRUE"
    for direction in ("backward", "forward", "nearest"):
        for exact in (True, False):
            for limit in (None, LIMITS[name]):
                want = pd.merge_asof(left, right, on="t", by="k" if by else None, direction=direction,
                                     allow_exact_matches=exact, tolerance=limit)
                found = splitjoin.join(left, right, on=on, time="t", how="asof_left", direction=direction,
                                       allow_exact=exact, tolerance=limit, order="left").to_pandas()
                assert found["x"].tolist() == want["x"].tolist()
                assert found["y"].fillna(-1).tolist() == want["y"].fillna(-1).tolist()


@pytest.mark.parametrize("name", ["float64", "uint64", "decimal", "text", "date"])
def test_as_duckdb_has_asof(name: str) -> None:
    chance = np.random.default_rng(7)
    type_, values = TIMES[name][0], [v for v in TIMES[name][2] if v == v]
    r, s = (pa.table({"t": pa.array([[*values, None][n] for n in chance.integers(0, len(values) + 1, 12)], type_),
                      "k": chance.integers(0, 2, 12), number: range(12)}) for number in "nm")
    s = s.filter(pa.array([n == s.column("t").to_pylist().index(t) for n, t in enumerate(s.column("t").to_pylist())]))
    for op in (">=", ">", "<=", "<"):
        text = f"SELECT n, m FROM r ASOF LEFT JOIN s ON r.k = s.k AND r.t {op} s.t ORDER BY n"
        assert splitjoin.sql(text, r=r, s=s, sort=True).to_pylist() == duckdb.sql(text).to_arrow_table().to_pylist()


def test_rows_without_a_time() -> None:
    r, s = {"t": [None, 1, None, 4], "n": [0, 1, 2, 3]}, {"t": [None, 2, None], "m": [0, 1, 2]}
    rows = {how: [tuple(row.values()) for row in splitjoin.join(
        r, s, on="TRUE", window="RANGE 1", time="t", how=how, select=["n"] if how in ("semi", "anti") else ["n", "m"],
        order="left").to_pylist()] for how in ("inner", "left", "right", "full", "semi", "anti")}
    assert rows == {"inner": [(1, 1)], "left": [(0, None), (1, 1), (2, None), (3, None)],
                    "right": [(1, 1), (None, 0), (None, 2)],
                    "full": [(0, None), (1, 1), (2, None), (3, None), (None, 0), (None, 2)], "semi": [(1,)],
                    "anti": [(0,), (2,), (3,)]}
    found = splitjoin.join(r, s, on="TRUE", time="t", how="left", aggregate={"c": "count(*)"}, order="left")
    assert found.to_pydict() == {"t": [None, 1, None, 4], "n": [0, 1, 2, 3], "c": [0, 1, 0, 1]}


def test_a_window_of_k_among_ten() -> None:
    r, s = {"t": [10], "n": [0]}, {"t": [1, 8, 9, 9, 11, 12], "m": [0, 1, 2, 3, 4, 5]}

    def partners(**how: Any) -> list[int]:
        found: list[int] = splitjoin.join(r, s, on="TRUE", time="t", how="asof", **how).column("m").to_pylist()
        return found

    assert partners(k=3) == [3, 2, 1]
    assert partners(k=4, direction="nearest") == [3, 2, 4, 1]
    assert partners(k=9, direction="forward") == [4, 5]
    assert partners(k=9, tolerance=1) == [3, 2]
    assert partners(k=1) == partners() == [3]


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"k": 0, "how": "asof"}, InputError, "k must be a whole number from 1 on, the most partners of a row, not 0"),
    ({"k": 2}, InputError, "k belongs to how='asof' and 'asof_left', but how is 'inner'"),
    ({"k": 2, "how": "asof", "order": "total"}, OrderError, "that are chosen by distance among several come in order"),
    ({"ties": "last", "how": "asof"}, InputError, "direction='nearest' alone has, but the direction is 'backward'"),
    ({"ties": "first", "how": "asof", "direction": "nearest"}, InputError, "ties must be 'backward' .* or 'last' .*"),
    ({"ties": "last"}, InputError, "ties belongs to how='asof' and 'asof_left', but how is 'inner'"),
    ({"ties": "last", "how": "asof", "direction": "nearest", "order": "total"}, OrderError, "give order='left'"),
    ({"tolerance": 2}, InputError, "tolerance belongs to how='asof' and 'asof_left', but how is 'inner'; write wi"),
    ({"tolerance": -1, "how": "asof"}, WindowError, "tolerance must be a number from 0 on in the unit of the time"),
    ({"tolerance": NAN, "how": "asof"}, WindowError, "tolerance must be a number from 0 on in the unit of the time"),
    ({"tolerance": "ROWS 4", "how": "asof"}, WindowError, "tolerance is a span of time, such as '15 MINUTES', not"),
    ({"tolerance": 0.5, "how": "asof"}, WindowError, r"tolerance 0\.5 needs a whole number, not '0\.5', as the t"),
    ({"tolerance": pd.Timedelta("1s"), "how": "asof"}, WindowError, "is given in SECONDS, but the time column is"),
    ({"tolerance": 2, "how": "asof", "time": None}, WindowError, "tolerance 2 needs a time column"),
    ({"window": "RANGE 5", "time": "w"}, WindowError, "the time column is text, which has an order and no distances"),
    ({"how": "asof", "direction": "nearest", "time": "w"}, InputError, "needs times that are some distance apart"),
    ({"time": "b"}, SchemaError, "must be a number, a date, a timestamp, a time of day, a duration or"),
    ({"time": ("t", "w")}, SchemaError, "must be of one kind, but r.t is int64 and s.w is string; cast one of them"),
    ({"time": ("l", "f")}, InputError, "r.l must hold whole numbers that floats, those of the other time column, do n"),
    ({"time": "u"}, InputError, "must have times within 64 bits, but hold -1 and 18446744073709551615"),
    ({"time": "d"}, InputError, "holds numbers that do not fit 64 bits with 20 digits behind the point"),
]


@pytest.mark.parametrize(("how", "error", "message"), REFUSED, ids=[str(n) for n in range(len(REFUSED))])
def test_refused(how: dict[str, Any], error: type[Exception], message: str) -> None:
    r = pa.table({"t": [1], "w": ["a"], "b": [True], "u": pa.array([2**64 - 1], pa.uint64()),
                  "d": pa.array([Decimal(10**9)], pa.decimal128(38, 20)), "l": [2**53 + 1], "f": [0.5]})
    s = r.set_column(3, "u", pa.array([-1]))
    with pytest.raises(error, match=message):
        splitjoin.join(r, s, on="TRUE", **{"time": "t", **how})


def test_a_row_that_decreases_is_named_as_it_was_given() -> None:
    with pytest.raises(InputError, match=r"r\.t must not decrease, but row 3 has 0\.5 after 1\.5"):
        splitjoin.join({"t": [None, 1.5, None, 0.5]}, {"t": [1.0]}, on="TRUE", time="t")


def test_tolerance_in_sessions() -> None:
    r, s = pa.table({"ts": [1, 5, 9], "x": [1, 2, 3]}), pa.table({"ts": [2, 4, 5, 20], "a": [1, 2, 3, 4]})
    for direction in ("backward", "nearest"):
        for window in (None, "RANGE 9"):
            how: dict[str, Any] = {"on": "TRUE", "time": "ts", "how": "asof_left", "direction": direction,
                                   "tolerance": 3, "window": window}
            with splitjoin.open(splitjoin.query(r.schema, s.schema, **how)) as session:
                session.push_r(r)
                session.push_s(s)
                rows = session.flush().to_pylist()
            assert rows == splitjoin.join(r, s, **how).to_pylist()
            assert [row["ts_s"] for row in sorted(rows, key=lambda row: row["ts_r"])] == [
                None if direction == "backward" else 2, 5, None]
