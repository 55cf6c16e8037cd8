"""Questions of everyday work, with the options that nobody thinks about left out, beside pandas."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from splitjoin import join, sql

chance = np.random.default_rng(3)
DAY = pd.Timestamp("2024-01-01")
T = pd.DataFrame({"when": DAY + pd.to_timedelta(np.sort(chance.integers(0, 86400, 200)), "s"),
                  "sym": chance.choice(["A", "B", "C"], 200), "px": chance.normal(100, 5, 200).round(2),
                  "qty": pd.array(np.where(chance.random(200) < .1, None, chance.integers(1, 9, 200)), "Int64")})
Q = pd.DataFrame({"when": DAY + pd.to_timedelta(np.sort(chance.integers(0, 86400, 500)), "s"),
                  "sym": chance.choice(["a", "b", "c"], 500), "bid": chance.normal(100, 5, 500).round(2)})
UPPER = Q.assign(sym=Q.sym.str.upper())
SPANS = pd.DataFrame({"lo": [0, 10, 25], "hi": [12, 20, 40], "name": ["x", "y", "z"]})
POINTS = pd.DataFrame({"v": [5, 11, 22, 30, None]})
APART = np.abs(T.px.to_numpy()[:, None] - Q.bid.to_numpy()[None, :])
LESS = T.px.to_numpy()[:, None] < Q.bid.to_numpy()[None, :]
SAME = T.sym.to_numpy()[:, None] == UPPER.sym.to_numpy()[None, :]

#: Question → what this package answers, and what pandas, NumPy or a look at it does.
QUESTIONS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "the last quote of the same symbol, in other letters": (
        lambda: join(T, Q, on="r.sym = upper(s.sym)", time="when", how="asof_left", order="left",
                     select=["bid"]).to_pandas().bid.fillna(0).tolist(),
        lambda: pd.merge_asof(T, UPPER, on="when", by="sym").bid.fillna(0).tolist()),
    "the same within five minutes": (
        lambda: join(T, UPPER, on="r.sym = s.sym", time="when", how="asof_left", tolerance="5 MINUTES",
                     order="left").to_pandas().bid.fillna(0).tolist(),
        lambda: pd.merge_asof(T, UPPER, on="when", by="sym", tolerance=pd.Timedelta("5min")).bid.fillna(0).tolist()),
    "the nearest quote, in the order of the trades": (
        lambda: join(T, Q, on="TRUE", time="when", how="asof_left", direction="nearest", order="left").to_pandas()
        .px.tolist(), lambda: T.px.tolist()),
    "the interval of each point": (
        lambda: join(POINTS, SPANS, on="r.v BETWEEN s.lo AND s.hi", how="left",
                     order="left").column("name").to_pylist(),
        lambda: ["x", "x", "y", None, "z", None]),
    "near prices of large trades": (
        lambda: len(join(T, Q, on="abs(r.px - s.bid) <= 0.05 AND r.qty > 3")),
        lambda: int(((APART <= 0.05) & (T.qty.fillna(0).astype(int).to_numpy()[:, None] > 3)).sum())),
    "trades without any near price": (
        lambda: len(join(T, Q, on="abs(r.px - s.bid) <= 0.01", how="anti")),
        lambda: int((~(APART <= 0.01).any(axis=1)).sum())),
    "how many quotes are higher": (
        lambda: join(T, Q, on="r.px < s.bid", how="left", aggregate={"n": "count(*)"}).column("n").to_pylist(),
        lambda: LESS.sum(axis=1).tolist()),
    "a count by symbol": (
        lambda: sql("SELECT T.sym, count(*) AS n FROM T JOIN Q ON T.sym = upper(Q.sym) AND T.px < Q.bid "
                    "GROUP BY T.sym ORDER BY 1", T=T, Q=Q).column("n").to_pylist(),
        lambda: [int((LESS & SAME)[T.sym == sym].sum()) for sym in "ABC"]),
    "a field of a struct": (
        lambda: len(join(pl.DataFrame({"at": [{"lo": 3, "in": {"hi": 9}}]}), POINTS,
                         on="s.v BETWEEN r.at.lo AND r.at.in.hi")),
        lambda: 1),
    "rows of the same UUID": (
        lambda: join(*(pa.table({"u": pa.array([n.to_bytes(16) for n in of], pa.uuid())})
                       for of in ((1, 2, 3), (2, 4))), on="r.u = s.u").to_arrow()["u_r"].to_pylist(),
        lambda: [uuid.UUID(int=2)]),
    "the last whole day before each time": (
        lambda: sql("SELECT Q.bid, days.n FROM Q ASOF JOIN days ON Q.when > days.day ORDER BY Q.when LIMIT 2", Q=Q,
                    days=pl.DataFrame({"day": [DAY.date(), (DAY + pd.Timedelta("1D")).date()], "n": [0, 1]})
                    ).column("n").to_pylist(),
        lambda: [0, 0]),
    "the same hour": (
        lambda: len(join(T, Q, on="hour(r.when) = hour(s.when) AND r.sym = upper(s.sym)")),
        lambda: len(T.assign(h=T.when.dt.hour).merge(UPPER.assign(h=Q.when.dt.hour), on=["h", "sym"]))),
    "a LazyFrame": (
        lambda: len(join(pl.LazyFrame({"a": [1, 2, 3]}), pl.DataFrame({"b": [2, 3]}), on="r.a < s.b")), lambda: 3),
    "pairs of one table": (
        lambda: len(join(T, T, on="r.sym = s.sym AND r.px < s.px")),
        lambda: int((T.merge(T, on="sym").pipe(lambda both: both.px_x < both.px_y)).sum())),
    "a shuffled table": (
        lambda: len(join(T.sample(frac=1, random_state=1), Q, on="TRUE", time="when", how="asof_left", sort=True)),
        lambda: len(T)),
    "times that are floats": (
        lambda: join({"t": [1.5, 2.5]}, {"t": [1.4, 2.6]}, on="TRUE", time="t", how="asof",
                     direction="nearest").column("t_s").to_pylist(), lambda: [1.4, 2.6]),
    "dates at most a day apart": (
        lambda: len(join({"d": [dt.date(2024, 1, n) for n in (1, 5, 9)]}, {"d": [dt.date(2024, 1, n) for n in (2, 8)]},
                         on="TRUE", window="RANGE 1 DAY", time="d")), lambda: 2),
    "times of different names": (
        lambda: len(join(T.rename(columns={"when": "a"}), Q.rename(columns={"when": "b"}), on="TRUE", time=("a", "b"),
                         how="asof_left")), lambda: len(T)),
    "all pairs": (lambda: len(join({"a": [1, 2]}, {"b": [1, 2, 3]}, on="TRUE")), lambda: 6),
    "categories": (
        lambda: len(join(T.assign(sym=T.sym.astype("category")), UPPER.assign(sym=UPPER.sym.astype("category")),
                         on="r.sym = s.sym")), lambda: int(SAME.sum())),
    "the three nearest near prices": (
        lambda: len(join(T, Q, on="abs(r.px - s.bid) < 1", time="when", how="asof", k=3, direction="nearest")),
        lambda: int(np.minimum((APART < 1).sum(axis=1), 3).sum())),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_everyday(question: str) -> None:
    found, want = QUESTIONS[question]
    assert found() == want()
