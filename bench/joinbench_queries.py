"""The queries of joinbench and their tables.

Each query is one of DuckDB's statements over ``r`` and ``s``, whose rows are numbered by ``n`` and ``m``. Results are
whole numbers, so that answers can be compared exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

#: The steps of a horizon join, and half of a window join's length.
STEPS, WINDOW = (0, 40, 400), 60
_KEY = "r.k = s.k"
_FOUND = "SELECT r.n, s.m FROM r"


@dataclass(frozen=True)
class Query:
    """A query by its ``sql``, and the ``kind`` of join that engines without SQL are asked for: with ``on``, a condition
    between r and s, ``by``, an equality of these columns, and ``direction``. Kinds: asof, horizon, snapshot, window,
    where, count, anti.
    """

    kind: str
    sql: str
    on: str = ""
    by: str | None = None
    direction: str = "backward"


def _asof(by: str | None, compared: str) -> str:
    return f"{_FOUND} ASOF JOIN s ON {'r.k = s.k AND ' if by else ''}r.t {compared} s.t"


def _where(on: str, by: str | None = None) -> Query:
    return Query("where", f"{_FOUND} JOIN s ON {f'{_KEY} AND ' if by else ''}{on}", on, by)


_BAND = f"s.t BETWEEN r.t - {WINDOW} AND r.t + {WINDOW}"
QUERIES: dict[str, Query] = {
    "as-of by key": Query("asof", _asof("k", ">="), by="k"),
    "as-of": Query("asof", _asof(None, ">=")),
    "as-of by key, forward": Query("asof", _asof("k", "<="), by="k", direction="forward"),
    "as-of by key, nearest": Query("asof", "", by="k", direction="nearest"),
    "snapshot": Query("snapshot", f"{_asof('k', '>=')} WHERE s.live = 1", by="k"),
    "horizon": Query("horizon", f"SELECT p.n, p.h, s.m FROM (SELECT r.n, r.k, u.h, r.t + u.h AS t FROM r, (VALUES "
                     f"{', '.join(f'({h})' for h in STEPS)}) AS u(h)) AS p ASOF JOIN s ON p.k = s.k AND p.t >= s.t",
                     by="k"),
    "window": Query("window", f"SELECT r.n, count(*) AS c, sum(s.v) AS v, max(s.v) AS high FROM r JOIN s ON {_KEY} AND "
                    f"{_BAND} GROUP BY r.n", _BAND, "k"),
    "band": _where("s.x BETWEEN r.x - 2 AND r.x + 2"),
    "band by key": _where(_BAND, "k"),
    "overlap": _where("r.x < s.x + s.w AND s.x < r.x + r.w"),
    "containment": _where("r.x BETWEEN s.x AND s.x + s.w"),
    "2-D distance": _where("(r.x - s.x) * (r.x - s.x) + (r.y - s.y) * (r.y - s.y) <= 40000"),
    "rank by an inequality": Query("count", "SELECT r.n, count(*) AS c FROM r JOIN s ON s.v < r.v GROUP BY r.n",
                                   "s.v < r.v"),
    "theta with a remainder": _where("s.x BETWEEN r.x - 20 AND r.x + 20 AND (r.y + s.y) % 7 = 3"),
    "anti by an inequality": Query("anti", "SELECT r.n FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.v >= r.v * 2 "
                                   "AND s.k = r.k)", "s.v >= r.v * 2", "k"),
}


def tables(rows: int, seed: int) -> tuple[pa.Table, pa.Table]:
    """R and S of so many rows: numbered (n, m), with rising times t that are never equal nor equally near, a key k by
    Zipf's law, a value v, a place x, y, a width w, and whether the row is a version or the end of one (live).
    """
    made = list[pa.Table]()
    for side, number in enumerate("nm"):
        rng = np.random.default_rng([seed, rows, side])
        made.append(pa.table({
            number: np.arange(rows), "t": np.sort(rng.choice(8 * rows, rows, replace=False)) * 4 + side,
            "k": np.minimum(rng.zipf(1.2, rows), 1000), "v": rng.integers(1, 10**6, rows),
            "x": rng.integers(0, 4 * rows, rows), "y": rng.integers(0, 4 * rows, rows),
            "w": rng.integers(1, 12, rows), "live": (rng.random(rows) < 0.9).astype(np.int64)}))
    return made[0], made[1]


def checksum(table: pa.Table) -> str:
    """A sum over the mixed values of each row (splitmix64), which their order does not change, in hexadecimal."""
    total = np.zeros(len(table), np.uint64)
    with np.errstate(over="ignore"):
        for column in table.columns:
            total = (total + column.cast(pa.int64()).to_numpy().view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            for shift, by in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
                total = (total ^ total >> np.uint64(shift)) * np.uint64(by)
        return f"{int(total.sum(dtype=np.uint64)):016x}"
