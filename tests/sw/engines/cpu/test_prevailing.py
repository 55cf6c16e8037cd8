"""Window joins with prevailing rows, beside a look at every row, on the devices that have them."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import splitjoin
from splitjoin.base.errors import OptionError, PredicateError, SplitJoinError, UnsupportedError, WindowError

from ....support.sampling import examples

Row = dict[str, Any]
#: Conditions, and whether a row of r and one of s meet by them.
CONDITIONS = {"TRUE": lambda r, s: True, "r.k = s.k": lambda r, s: r["k"] is not None and r["k"] == s["k"],
              "r.t = s.t AND r.k = s.k AND s.n > 2": lambda r, s: (
                  r["k"] is not None and (r["k"], r["t"]) == (s["k"], s["t"]) and s["n"] > 2),
              "r.t = s.t AND r.n < 5": lambda r, s: r["t"] == s["t"] and r["n"] < 5,
              "s.t = 'a'": lambda r, s: s["t"] == "a"}


def drawn(rng: random.Random, *, nulls: bool) -> list[Row]:
    times = sorted(rng.randrange(25) for _ in range(rng.randrange(14)))
    return [{"ts": None if nulls and rng.random() < 0.2 else ts, "k": rng.choice([None, 0, 1]),
             "t": rng.choice(["a", "a longer text", "another longer text"]), "n": n} for n, ts in enumerate(times)]


def table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("t", pa.string()),
                                                 ("n", pa.int64())]))


def partners(r: list[Row], s: list[Row], x: int, meets: Any, before: int, after: int, rows: int | None) -> list[int]:
    """The rows of s that row ``x`` of r meets: r's RANGE is ``after``, s's ``before``, and s's ROWS ``rows``."""
    ts = r[x]["ts"]
    if ts is None:
        return []
    timed = [n for n, one in enumerate(s) if one["ts"] is not None]
    earlier = [n for n in timed if s[n]["ts"] < ts]  # at equal times r comes first
    first = len(earlier) - rows if rows is not None else 0
    begin = max(sum(s[n]["ts"] < ts - before for n in timed), first)
    mine = [n for n in timed[begin:] if s[n]["ts"] <= ts + after and meets(r[x], s[n])]
    return [n for n in timed[:max(begin, 0)] if meets(r[x], s[n])][-1:] + mine


@pytest.mark.parametrize("device", ["cpu", "golden"])
def test_pairs_and_folds(device: str) -> None:
    for seed in range(examples(60)):
        rng = random.Random(seed)
        r, s = drawn(rng, nulls=seed % 3 == 0), drawn(rng, nulls=seed % 3 == 0)
        on, (before, after) = rng.choice(list(CONDITIONS)), (rng.randrange(6), rng.randrange(4))
        rows = rng.choice([None, None, 1, 2, 5])
        of_s = f"RANGE {before}" + (f" ROWS {rows}" if rows else "")
        given: dict[str, Any] = {"on": on, "window": (f"RANGE {after}", of_s), "time": "ts", "order": "left",
                                 "prevailing": True, "device": device}
        wanted = [partners(r, s, x, CONDITIONS[on], before, after, rows) for x in range(len(r))]
        pairs = splitjoin.join(table(r), table(s), **given, select=["n_r", "n_s"])
        assert [tuple(row.values()) for row in pairs.to_pylist()] == [
            (x, n) for x, met in enumerate(wanted) for n in met], f"seed {seed}"
        folds = splitjoin.join(table(r), table(s), **given, how="left", by="r", select=["n"], aggregate={
            "count": "count(*)", "high": "max(s.n)", "all": "list(s.n)", "sum": "sum(s.n * r.n)"})
        assert [tuple(row.values()) for row in folds.to_pylist()] == [
            (x, len(met), max(met, default=None), met or None, sum(n * x for n in met) if met else None)
            for x, met in enumerate(wanted)], f"seed {seed}"


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("order", ["total", "none", "left"])
def test_rows_are_goldens_in_every_order(how: str, order: str) -> None:
    rng = random.Random(7)
    for _ in range(6):
        r, s = drawn(rng, nulls=False), drawn(rng, nulls=False)
        found: list[list[Any]] = [splitjoin.join(
            table(r), table(s), on="r.k = s.k", window="RANGE 2", time="ts", prevailing=True, how=how, order=order,
            device=device, select=["n_r", "n_s"]).to_pylist() for device in ("cpu", "golden")]
        if order == "none":
            found = [sorted(map(str, rows)) for rows in found]
        assert found[0] == found[1]


TIMES = {"ts": [1, 2], "x": [1, 2]}


@pytest.mark.parametrize(("more", "error", "message"), [
    ({"prevailing": "yes"}, OptionError, "must be True or False, not 'yes'"),
    ({"window": None}, WindowError, "the last partner before a window, but there is none"),
    ({"on": "r.x < s.x"}, PredicateError, "the condition must consist of equalities"),
    ({"how": "full"}, OptionError, "prevailing=True needs how='inner' or 'left', not 'full'"),
    ({"device": "pysim"}, UnsupportedError, "not by 'pysim'"),
    ({"device": "cpu", "engine": "sliding", "aggregate": {"n": "count(*)"}}, UnsupportedError, "without engine="),
    ({"order": "outer(2)"}, UnsupportedError, "use order 'total', 'none' or 'left'"),
])
def test_what_it_does_not_hold_for_is_refused(more: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        splitjoin.join(TIMES, TIMES, **{"on": "r.x = s.x", "window": "RANGE 1", "time": "ts", "prevailing": True,
                                        **more})


@pytest.mark.parametrize("name", ["prevailing", "ended"])
def test_streams_spark_and_statements_refuse_it_by_name(name: str) -> None:
    r = pa.table(TIMES)
    how: dict[str, Any] = {"window": "RANGE 1", "time": "ts", name: True}
    on: dict[str, Any] = {"on": "r.x = s.x", **how}
    text = "SELECT r.x FROM r JOIN s ON r.x = s.x"
    calls: list[Any] = [
        lambda: splitjoin.query(r.schema, r.schema, **on), lambda: splitjoin.sql(text, r=r, s=r, **how),
        lambda: splitjoin.sql(f"{text} FULL JOIN r t ON r.x = t.x", r=r, s=r, **how),
        lambda: splitjoin.share(r.schema, r.schema, time="ts").query(**{k: v for k, v in on.items() if k != "time"}),
        lambda: splitjoin.spark.stream_join(None, None, **on),
        lambda: splitjoin.spark.stream_sql(text, r=None, s=None, **how)]
    for call in calls:
        with pytest.raises(OptionError, match=rf"{name}=… is an argument of splitjoin\.join, over whole tables"):
            call()


def test_float_times_are_refused() -> None:
    times = {"ts": [1.0, 2.5]}
    with pytest.raises(SplitJoinError, match="cast the times to integers or timestamps"):
        splitjoin.join(times, times, on="TRUE", window="RANGE 1", time="ts", prevailing=True)
