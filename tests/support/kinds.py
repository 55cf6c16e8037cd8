"""Rows of all kinds of join from DuckDB: plain SQL over the pairs of the window oracle, nothing of splitjoin's."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa

from splitjoin.engines.device import PAIR, Items
from tests.support.oracle import oracle

__all__ = ["KINDS", "kind_oracle", "plain_rows"]

#: Every kind of join, with the options of as-of joins; equal times can be excluded only where there are times.
KINDS: tuple[dict[str, Any], ...] = (
    *({"how": how} for how in ("left", "right", "full", "semi", "anti")),
    *({"how": how, "direction": direction, "allow_exact": exact} for how in ("asof", "asof_left")
      for direction in ("backward", "forward", "nearest") for exact in (True, False)),
)

#: Arrival numbers ``n`` and times ``t`` of both streams' tuples (``t`` is ``n`` without a time column), and the pairs.
_TUPLES = """
WITH ev AS (SELECT 0 AS side, k, t FROM r_in UNION ALL SELECT 1, k, t FROM s_in),
     e AS (SELECT side, k, n, coalesce(t, n) AS t FROM (SELECT *, row_number() OVER (ORDER BY {order}) AS n FROM ev)),
     p AS (SELECT q.rk, q.sk, greatest(r.n, s.n) AS n, CASE WHEN r.n > s.n THEN s.k ELSE r.k END AS stored,
                  r.t AS rt, s.t AS st
           FROM pairs_in q JOIN e r ON r.side = 0 AND r.k = q.rk JOIN e s ON s.side = 1 AND s.k = q.sk),
     waits AS (SELECT side, k, t, (SELECT min(d.n) FROM e d WHERE
                 CASE e.side WHEN 0 THEN {decides_r} ELSE {decides_s} END) AS n FROM e)
"""
_PAIRS = "SELECT n, 1 AS class, 0 AS side, stored AS key, rk, sk FROM p"
_FIRST = ("SELECT n, 1, 0, stored, rk, -1 FROM (SELECT *, row_number() OVER (PARTITION BY rk ORDER BY n, stored) AS i "
          "FROM p) WHERE i = 1")
_LACKS_R = ("SELECT n, 0, 0, k, k, -1 FROM waits WHERE side = 0 AND k NOT IN (SELECT rk FROM p)")
_LACKS_S = ("SELECT n, 0, 1, k, -1, k FROM waits WHERE side = 1 AND k NOT IN (SELECT sk FROM p)")
#: The partners of each R tuple, the best first.
_AS_OF = """
SELECT w.n, 0, 0, w.k, w.k, coalesce(c.sk, -1) FROM waits w {kind} JOIN (
  SELECT rk, sk FROM (SELECT rk, sk, row_number() OVER (PARTITION BY rk ORDER BY abs(st - rt), st > rt,
                                                        CASE WHEN {last} THEN -sk ELSE sk END) AS i
                      FROM p WHERE {direction} AND {exact}) WHERE i = 1) c ON c.rk = w.k WHERE w.side = 0
"""


def kind_oracle(db: duckdb.DuckDBPyConnection, r: pa.Table, s: pa.Table, kind: dict[str, Any], *,
                window_r: tuple[int | None, int | None], window_s: tuple[int | None, int | None],
                time: str | None = None, **how: Any) -> list[tuple[int, int]]:
    """The row ids (R's, S's, −1 for NULL) of the rows of ``kind``, in total order. The other arguments are those of
    `tests.support.oracle.oracle`.
    """
    pairs = oracle(db, r, s, window_r=window_r, window_s=window_s, time=time, **how)
    db.register("pairs_in", pa.table({"rk": pa.array([p[0] for p in pairs], pa.int64()),
                                      "sk": pa.array([p[1] for p in pairs], pa.int64())}))
    tuples = _TUPLES.format(order="k, side" if time is None else "t, side, k", decides_r=_decides(0, *window_r),
                            decides_s=_decides(1, *window_s))
    name = kind["how"]
    parts = {"left": (_PAIRS, _LACKS_R), "right": (_PAIRS, _LACKS_S), "full": (_PAIRS, _LACKS_R, _LACKS_S),
             "semi": (_FIRST,), "anti": (_LACKS_R,)}.get(name)
    if parts is None:
        parts = (_AS_OF.format(
            kind="LEFT" if name == "asof_left" else "",
            direction={"backward": "st <= rt", "forward": "st >= rt", "nearest": "TRUE"}[kind["direction"]],
            last={"backward": "TRUE", "forward": "FALSE", "nearest": "st <= rt"}[kind["direction"]],
            exact="TRUE" if kind["allow_exact"] else "st <> rt"),)
    columns = "(n, class, side, key, rk, sk)"
    return db.sql(f"{tuples}, rows{columns} AS ({' UNION ALL '.join(parts)}) SELECT rk, sk FROM rows "
                  f"ORDER BY n NULLS LAST, class, side, key").fetchall()


def _decides(side: int, rows: int | None, length: int | None) -> str:
    """True for the arrivals ``d`` that no longer find the tuple ``e`` of stream ``side`` in its window."""
    parts = []
    if rows is not None:
        parts.append(f"(d.side = {side} AND d.k >= e.k + {rows})")
    if length is not None:
        parts.append(f"(d.n > e.n AND d.t > e.t + {length})")
    return " OR ".join(parts)


def plain_rows(items: Items) -> list[tuple[int, int]]:
    """The row ids of the rows among ``items``, without stars."""
    rows = items[items["kind"] == PAIR]
    return list(zip(rows["r"].tolist(), rows["s"].tolist(), strict=True))
