"""Rows of all kinds of join from DuckDB: plain SQL over the pairs of the window oracle, nothing of splitjoin's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa

from splitjoin.engines.device import PAIR, Items
from tests.support.oracle import NS_PER_TICK, oracle

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
     back AS (SELECT rk, max(st) AS bt FROM p WHERE {before} GROUP BY rk),
     lasts AS (SELECT e.*, b.bt, CASE e.side WHEN 0 THEN {last_r} ELSE {last_s} END AS last
               FROM e LEFT JOIN back b ON e.side = 0 AND b.rk = e.k),
     times AS (SELECT l.*, (SELECT min(d.n) FROM e d WHERE {timed} AND d.n > l.n AND d.t > l.last) AS by_time,
                      (SELECT min(d.n) FROM e d WHERE CASE l.side WHEN 0 THEN {decides_r} ELSE {decides_s} END)
                        AS by_arrival FROM lasts l),
     waits AS (SELECT side, k, t, least(by_time, by_arrival) AS n,
                      CASE WHEN by_arrival < by_time OR (by_time IS NULL AND by_arrival IS NOT NULL) THEN 1 ELSE 0 END
                        AS class, CASE WHEN by_time IS NOT NULL OR by_arrival IS NULL THEN last END AS last FROM times)
"""
_PAIRS = "SELECT n, 2 AS class, 0 AS last, 0 AS side, stored AS key, rk, sk FROM p"
_FIRST = ("SELECT n, 2, 0, 0, stored, rk, -1 FROM (SELECT *, row_number() OVER (PARTITION BY rk ORDER BY n, stored) "
          "AS i FROM p) WHERE i = 1")
_LACKS_R = "SELECT n, class, last, 0, k, k, -1 FROM waits WHERE side = 0 AND k NOT IN (SELECT rk FROM p)"
_LACKS_S = "SELECT n, class, last, 1, k, -1, k FROM waits WHERE side = 1 AND k NOT IN (SELECT sk FROM p)"
#: The partners of each R tuple, the best first.
_AS_OF = """
SELECT w.n, w.class, w.last, 0, w.k, w.k, coalesce(c.sk, -1) FROM waits w {kind} JOIN (
  SELECT rk, sk FROM (SELECT rk, sk, row_number() OVER (PARTITION BY rk ORDER BY abs(st - rt), st > rt,
                                                        CASE WHEN {last} THEN -sk ELSE sk END) AS i
                      FROM p WHERE {direction} AND {exact}) WHERE i = 1) c ON c.rk = w.k WHERE w.side = 0
"""


def kind_oracle(db: duckdb.DuckDBPyConnection, r: pa.Table, s: pa.Table, kind: dict[str, Any], *,
                window_r: tuple[int | None, int | None], window_s: tuple[int | None, int | None],
                time: str | None = None, ruled_out: tuple[Sequence[int], Sequence[int]] = ((), ()),
                **how: Any) -> list[tuple[int, int]]:
    """The row ids (R's, S's, −1 for NULL) of the rows of ``kind``, in total order.

    ``ruled_out``: the row ids of the tuples of R and of S that their own side of the condition rules out. The other
    arguments are those of `tests.support.oracle.oracle`.
    """
    pairs = oracle(db, r, s, window_r=window_r, window_s=window_s, time=time, **how)
    db.register("pairs_in", pa.table({"rk": pa.array([p[0] for p in pairs], pa.int64()),
                                      "sk": pa.array([p[1] for p in pairs], pa.int64())}))
    name, timed, direction = kind["how"], time is not None, kind.get("direction")
    exact = kind.get("allow_exact", True)
    units = [] if time is None else [table.schema.field(time).type for table in (r, s)]
    tick = min((NS_PER_TICK[unit.unit] for unit in units if pa.types.is_timestamp(unit)), default=1)
    tuples = _TUPLES.format(
        order="k, side" if time is None else "t, side, k", timed=timed,
        before="st <= rt" if exact else "st < rt", last_r=_last(window_r, timed, direction, tick),
        last_s=_last(window_s, timed, None, tick), decides_s=_decides(1, window_s[0], ruled_out[1]),
        decides_r=" OR ".join([_decides(0, window_r[0], ruled_out[0]), _decides_as_of(timed, direction, exact)]))
    parts = {"left": (_PAIRS, _LACKS_R), "right": (_PAIRS, _LACKS_S), "full": (_PAIRS, _LACKS_R, _LACKS_S),
             "semi": (_FIRST,), "anti": (_LACKS_R,)}.get(name)
    if parts is None:
        assert direction is not None
        parts = (_AS_OF.format(
            kind="LEFT" if name == "asof_left" else "",
            direction={"backward": "st <= rt", "forward": "st >= rt", "nearest": "TRUE"}[direction],
            last={"backward": "TRUE", "forward": "FALSE", "nearest": "st <= rt"}[direction],
            exact="TRUE" if exact else "st <> rt"),)
    columns = "(n, class, last, side, key, rk, sk)"
    return db.sql(f"{tuples}, rows{columns} AS ({' UNION ALL '.join(parts)}) SELECT rk, sk FROM rows "
                  f"ORDER BY n NULLS LAST, class, CASE class WHEN 0 THEN last END NULLS LAST, side, key").fetchall()


def _last(window: tuple[int | None, int | None], timed: bool, direction: str | None, tick: int) -> str:
    """The last event time of an arrival that may change the row of tuple ``e``; NULL without one."""
    parts = ["NULL::HUGEINT"]
    if timed:
        parts += [] if window[1] is None else [f"e.t::HUGEINT + {window[1] // tick * tick}"]
        parts += ["e.t"] if direction == "backward" else []
        near = f"CASE WHEN b.bt IS NOT NULL THEN greatest(2 * e.t::HUGEINT - b.bt - {tick}, e.t) END"
        parts += [near] if direction == "nearest" else []
    return f"least({', '.join(parts)})" if len(parts) > 1 else parts[0]


def _decides(side: int, rows: int | None, ruled_out: Sequence[int]) -> str:
    """True for the arrivals ``d`` that decide tuple ``l`` of stream ``side`` by a window of ROWS, or as themselves."""
    parts = [f"(d.n = l.n AND l.k IN ({', '.join(map(str, [-1, *ruled_out]))}))"]
    if rows is not None:
        parts.append(f"(d.side = {side} AND d.k >= l.k + {rows})")
    return " OR ".join(parts)


def _decides_as_of(timed: bool, direction: str | None, exact: bool) -> str:
    """True for the arrivals ``d`` that decide tuple ``l`` of R by its partners."""
    if direction is None:
        return "FALSE"
    if direction == "backward":
        return "FALSE" if timed and exact else "d.n = l.n"
    behind = "p.st >= p.rt" if exact and direction == "forward" else "p.st > p.rt"
    found = f"d.n IN (SELECT p.n FROM p WHERE p.rk = l.k AND {behind})"
    return found if timed or direction == "forward" else f"{found} OR (d.n >= l.n AND d.n >= 2 * l.t - l.bt - 1)"


def plain_rows(items: Items) -> list[tuple[int, int]]:
    """The row ids of the rows among ``items``, without stars."""
    rows = items[items["kind"] == PAIR]
    return list(zip(rows["r"].tolist(), rows["s"].tolist(), strict=True))
