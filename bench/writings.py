"""Equivalent writings of conditions and statements over whole tables: CPU time and candidates of each.

Run: python -m bench.writings

The writings of a condition take turns, on one thread; beside each, both tables as int32, and an inner join also with
the tables swapped. Conditions of times and of keys that may be NULL, and statements, are written as they are alone;
statements also as texts that come for the first time. The window join is the mean of two prices of all quotes of a
trade's symbol within a second, by 1 / 50 of the rows of QuestDB's published benchmark: 10⁶ trades, 3·10⁶ quotes, 1,000
symbols by Zipf's law.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import splitjoin
from bench.record import Recorder, options_of
from splitjoin.base import recent

#: Condition → its writings: as an equality or two inequalities, as BETWEEN or comparisons, with keys folded by hand,
#: and with a bound that others imply.
WRITINGS: dict[str, tuple[str, ...]] = {
    "equality": ("r.st = s.st", "r.st <= s.st AND r.st >= s.st", "r.st - s.st = 0", "r.st BETWEEN s.st AND s.st",
                 "r.st = s.st AND r.st <= s.st + 5"),
    "two keys": ("r.c = s.c AND r.st = s.st", "r.c * 1000000 + r.st = s.c * 1000000 + s.st",
                 "r.c = s.c AND r.st <= s.st AND r.st >= s.st"),
    "point in interval": ("r.st BETWEEN s.st AND s.en", "r.st >= s.st AND r.st <= s.en",
                          "NOT (r.st < s.st OR r.st > s.en)", "r.st BETWEEN s.st AND s.en AND r.st - s.en <= 0"),
    "band": ("abs(r.st - s.st) <= 9", "r.st BETWEEN s.st - 9 AND s.st + 9",
             "r.st - s.st <= 9 AND s.st - r.st <= 9", "abs(r.st - s.st) <= 9 AND r.st <= s.st + 30"),
    "overlap by key": ("r.c = s.c AND r.st < s.en AND s.st < r.en",
                       "r.c <= s.c AND r.c >= s.c AND r.en > s.st AND s.en > r.st",
                       "r.c * 1000000 + r.st < s.c * 1000000 + s.en AND s.c * 1000000 + s.st < r.c * 1000000 + r.en",
                       "r.c = s.c AND r.st < s.en AND s.st < r.en AND r.st - s.en <= 0"),
    "one inequality": ("r.st > s.st + :far", "s.st + :far < r.st", "r.st - s.st > :far",
                       "r.st - :far > s.st AND r.st > s.st"),
}
#: The same of times `t`, in seconds apart, and of keys `k` that may be NULL.
SPELLINGS: dict[str, tuple[str, ...]] = {
    "seconds apart": (
        "r.t - s.t BETWEEN INTERVAL 0 SECONDS AND INTERVAL 5 SECONDS", "epoch(r.t - s.t) BETWEEN 0 AND 5",
        "epoch(r.t) - epoch(s.t) BETWEEN 0 AND 5", "date_diff('millisecond', s.t, r.t) BETWEEN 0 AND 5000",
        "epoch_ms(r.t) - epoch_ms(s.t) BETWEEN 0 AND 5000", "r.t BETWEEN s.t AND s.t + INTERVAL 5 SECONDS"),
    "equal or both NULL": (
        "coalesce(r.k, -1) = coalesce(s.k, -1) AND r.st = s.st", "r.k IS NOT DISTINCT FROM s.k AND r.st = s.st",
        "(r.k = s.k OR (r.k IS NULL AND s.k IS NULL)) AND r.st = s.st"),
}
_PARTNERS = "s.k = r.k AND s.t <= r.t"
_LATEST = f"FROM s WHERE {_PARTNERS} ORDER BY s.t DESC LIMIT 1"
_PLAIN = "r.k = s.k AND s.t < r.t AND r.t < s.t + 200"
#: Statements over r (id, k, t, x) and s (k, t, v) with the same rows, by what the first of them says.
STATEMENTS: dict[str, tuple[str, ...]] = {
    "SEMI JOIN": (
        f"SELECT r.* FROM r SEMI JOIN s ON {_PARTNERS}",
        f"SELECT * FROM r WHERE EXISTS (SELECT 1 FROM s WHERE {_PARTNERS})",
        f"SELECT r.* FROM r WHERE 0 < (SELECT count(*) FROM s WHERE {_PARTNERS})",
        f"SELECT DISTINCT r.* FROM r JOIN s ON {_PARTNERS}", f"SELECT r.* FROM s, r WHERE {_PARTNERS} GROUP BY r.*"),
    "SEMI JOIN by a key": (
        "SELECT r.* FROM r SEMI JOIN s ON r.k = s.k", "SELECT * FROM r WHERE k IN (SELECT k FROM s)",
        "SELECT * FROM r WHERE r.k = ANY (SELECT s.k FROM s)"),
    "ANTI JOIN": (
        f"SELECT r.* FROM r ANTI JOIN s ON {_PARTNERS}",
        f"SELECT * FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE {_PARTNERS})",
        f"SELECT * FROM r WHERE (SELECT count(*) FROM s WHERE {_PARTNERS}) = 0",
        f"SELECT r.* FROM r LEFT JOIN s ON {_PARTNERS} WHERE s.k IS NULL"),
    "ANTI JOIN of none greater": (
        "SELECT r.* FROM r ANTI JOIN s ON r.k = s.k AND s.t > r.t",
        "SELECT * FROM r WHERE t >= ALL (SELECT t FROM s WHERE s.k = r.k)"),
    "ASOF JOIN": (
        f"SELECT r.*, s.t AS st, s.v FROM r ASOF JOIN s ON {_PARTNERS}",
        f"SELECT r.*, q.st, q.v FROM r, LATERAL (SELECT s.t AS st, s.v {_LATEST}) q",
        f"SELECT r.*, q.t AS st, q.v FROM r JOIN LATERAL (SELECT * {_LATEST}) q ON true"),
    "ASOF LEFT JOIN": (
        f"SELECT r.*, s.t AS st FROM r ASOF LEFT JOIN s ON {_PARTNERS}",
        f"SELECT r.*, (SELECT max(s.t) FROM s WHERE {_PARTNERS}) AS st FROM r",
        f"SELECT r.*, (SELECT s.t {_LATEST}) AS st FROM r",
        f"SELECT r.*, q.t AS st FROM r LEFT JOIN LATERAL (SELECT s.t {_LATEST}) q ON true"),
    "count of a JOIN": (
        f"SELECT count(*) AS n FROM r JOIN s ON {_PARTNERS}",
        f"SELECT count(*) AS n FROM (SELECT r.id, s.v FROM r JOIN s ON {_PARTNERS}) q",
        f"WITH q AS (SELECT r.id, s.v FROM r JOIN s ON {_PARTNERS}) SELECT count(*) AS n FROM q"),
    "JOIN": (
        f"SELECT r.id, s.v FROM r JOIN s ON {_PLAIN}",
        f"SELECT id, v FROM (SELECT r.id, s.v FROM r JOIN s ON {_PLAIN}) q",
        f"WITH q AS (SELECT r.*, s.v FROM r, s WHERE {_PLAIN}) SELECT q.id, v FROM q",
        f"WITH q AS (SELECT k, v, t FROM s) SELECT r.id, s.v FROM r JOIN q AS s ON {_PLAIN}",
        f"SELECT r.id, s.v FROM (SELECT * FROM r) r JOIN (SELECT * FROM s) s ON {_PLAIN}"),
    "JOIN by OR": (
        "SELECT r.id, s.v FROM r JOIN s ON r.k = s.k AND (s.t - r.t BETWEEN 1 AND 99 OR r.t - s.t BETWEEN 1 AND 99)",
        "SELECT r.id, s.v FROM r JOIN s ON r.k = s.k AND s.t - r.t BETWEEN 1 AND 99 UNION ALL "
        "SELECT r.id, s.v FROM r JOIN s ON r.k = s.k AND r.t - s.t BETWEEN 1 AND 99"),
    "sums of a JOIN": (
        f"SELECT r.*, sum(s.v) AS n FROM r JOIN s ON {_PARTNERS} GROUP BY r",
        f"SELECT r.*, (SELECT sum(s.v) FROM s WHERE {_PARTNERS}) AS n FROM r WHERE EXISTS (FROM s WHERE {_PARTNERS})"),
    "sums of a LEFT JOIN": (
        f"SELECT r.*, sum(s.v) AS n FROM r LEFT JOIN s ON {_PARTNERS} GROUP BY r",
        f"SELECT r.*, (SELECT sum(s.v) FROM s WHERE {_PARTNERS}) AS n FROM r"),
}
HOWS = ("inner", "left", "semi")
_MEANS = {"n": "count(s.bid)", "bid": "avg(s.bid)", "ask": "avg(s.ask)"}
_SECOND = "s.ts BETWEEN r.ts - INTERVAL 1 SECOND AND r.ts + INTERVAL 1 SECOND"


def intervals(seed: int, n: int) -> pa.Table:
    """Intervals of 1 to 60 with a key of 5 values, of which about six overlap each."""
    rng = np.random.default_rng(seed)
    start = rng.integers(0, 10 * n, n)
    return pa.table({"c": rng.integers(0, 5, n), "st": start, "en": start + rng.integers(1, 60, n)})


def forms(condition: str, how: str, n: int) -> dict[str, tuple[pa.Table, pa.Table, str]]:
    """The tables and the condition of each equivalent writing of a join, ``n`` rows a side, by the writing's name."""
    r, s = intervals(3, n), intervals(4, n)
    narrow = [t.cast(pa.schema([(name, pa.int32()) for name in t.column_names])) for t in (r, s)]
    found = {}
    for number, text in enumerate(WRITINGS[condition]):
        on = text.replace(":far", str(10 * n - n // 20))
        found[f"{number}"] = r, s, on
        found[f"{number}, int32"] = narrow[0], narrow[1], on
        if how == "inner":
            found[f"{number}, swapped"] = s, r, re.sub(r"\b[rs]\.", lambda m: {"r.": "s.", "s.": "r."}[m[0]], on)
    return found


def spelled(condition: str, n: int) -> dict[str, tuple[pa.Table, pa.Table, str]]:
    """As `forms`, of `SPELLINGS`."""
    made = []
    for seed in (3, 4):
        table = intervals(seed, n)
        keys = np.random.default_rng(seed).integers(0, n, n)
        made.append(table.append_column("k", pa.array(keys, mask=keys % 10 == 0)).append_column(
            "t", pa.array(table["st"].to_numpy() * 200, pa.timestamp("ms"))))
    return {f"{number}": (*made, text) for number, text in enumerate(SPELLINGS[condition])}


def stated(n: int, *, nulls: bool = False) -> dict[str, pa.Table]:
    """The tables of `STATEMENTS`, of ``n`` rows; half of the keys of s are in r. With ``nulls``, a tenth of all values
    but ids is NULL. No two rows of s have one time.
    """
    rng = np.random.default_rng(1)
    keys, times = max(6, n // 2000), rng.permutation(2 * n)
    columns: dict[str, dict[str, Any]] = {
        "r": {"k": rng.integers(0, keys, n), "t": times[:n], "x": rng.random(n)},
        "s": {"k": rng.integers(0, 2 * keys, n), "t": times[n:2 * n], "v": rng.integers(0, n, n)}}
    made = {name: pa.table({of: pa.array(values, mask=rng.random(n) < 0.1 if nulls else None)
                            for of, values in of_table.items()}) for name, of_table in columns.items()}
    return {"r": made["r"].add_column(0, "id", pa.array(np.arange(n))), "s": made["s"]}


def window_joins(n: int) -> dict[str, Callable[[], Any]]:
    """The writings of a window join of ``n`` trades with 3 ``n`` quotes."""
    rng, tables = np.random.default_rng(5), []
    weights = 1 / np.arange(1, 1001)
    for rows, prices in ((n, ["price"]), (3 * n, ["bid", "ask"])):
        at = np.sort(rng.integers(0, 126 * n, rows))  # a second is 10⁶ of 126·10⁶ microseconds for 10⁶ trades
        tables.append(pa.table({"ts": pa.array(at, pa.timestamp("us")), "sym": rng.choice(1000, rows, p=weights /
                                weights.sum()), **{name: rng.random(rows).round(4) for name in prices}}))
    joined = partial(splitjoin.join, *tables, how="left", aggregate=_MEANS, threads=1)
    text = ("SELECT r.*, count(s.bid) AS n, avg(s.bid) AS bid, avg(s.ask) AS ask FROM r LEFT JOIN s "
            f"ON r.sym = s.sym AND {_SECOND} GROUP BY r")
    return {
        "window": partial(joined, on="r.sym = s.sym", window="RANGE 1 SECOND", time="ts"),
        "window, redundant": partial(joined, on="r.sym = s.sym AND s.ts >= r.ts - INTERVAL 1 SECOND",
                                     window="RANGE 1 SECOND", time="ts"),
        "BETWEEN": partial(joined, on=f"r.sym = s.sym AND {_SECOND}"),
        "difference": partial(joined, on="abs(epoch(r.ts - s.ts)) <= 1 AND s.sym = r.sym"),
        "GROUP BY": partial(splitjoin.sql, text, r=tables[0], s=tables[1], threads=1),
    }


def main() -> None:
    """All figures."""
    parser = options_of(__doc__ or "")
    parser.add_argument("--only", help="measure the one of this name, or those whose names hold this, and keep "
                        "the others' figures")
    parser.add_argument("--rows", type=int, nargs="+", help="rows a side of statements, beside the figures of others; "
                        "100,000 and 1,000,000 by default")
    options = parser.parse_args()
    rows, turns = (20_000, 2) if options.quick else (100_000, 4)
    sizes = options.rows or ([rows] if options.quick else [rows, 10 * rows])
    out = Recorder("writings", quick=options.quick)
    known = (*WRITINGS, *SPELLINGS, *STATEMENTS, "window join")
    chosen = [options.only] if options.only in known else [name for name in known if (options.only or "") in name]
    out.keep(lambda row: row["config"]["condition"] not in chosen or (
        row["config"]["how"] == "statements" and row["config"]["rows"] not in sizes))

    def measured(calls: dict[str, Callable[[], Any]], config: dict[str, Any], named: str = "writing_seconds", *,
                 anew: bool = False) -> dict[str, Any]:
        took: dict[str, list[float]] = {}
        found = dict[str, Any]()
        for _ in range(1 + turns):
            for name, call in calls.items():
                if anew:
                    recent.forget()
                begin = time.process_time()
                found[name] = call()
                took.setdefault(name, []).append(time.process_time() - begin)
        least = sorted(min(seconds[1:]) for seconds in took.values())
        said = (f"the least of {turns} turns after a first one, one thread, loops compiled before"
                f"{', each text forgotten before it comes' if anew else ''}")
        for metric, value in ((f"{named}_least", least[0]), (f"{named}_most", least[-1])):
            out.add(metric, value, "s", config, said)
        return found

    for condition in chosen:
        if condition == "window join":
            trades = 100_000 if options.quick else 1_000_000
            calls = window_joins(trades)
            measured(calls, {"condition": condition, "how": "left", "rows": trades, "writings": len(calls)})
            continue
        if condition in STATEMENTS:
            for size in sizes:
                tables = stated(size)
                calls = {text: partial(splitjoin.sql, text, tables=tables, threads=1)
                         for text in STATEMENTS[condition]}
                config = {"condition": condition, "how": "statements", "rows": size, "writings": len(calls)}
                measured(calls, config)
                measured(calls, config, "first_writing_seconds", anew=True)
            continue
        for how in HOWS:
            joins = forms(condition, how, rows) if condition in WRITINGS else spelled(condition, rows)
            config = {"condition": condition, "how": how, "rows": rows, "writings": len(joins)}
            found = measured({name: partial(splitjoin.join, r, s, on=on, how=how, threads=1)
                              for name, (r, s, on) in joins.items()}, config)
            tried = [result.counters["candidates"] for result in found.values()]
            out.add("writing_candidates_ratio", max(tried) / max(1, min(tried)), "times", config,
                    "candidates of the writing with the most over those of the one with the fewest")
    print(out.write())


if __name__ == "__main__":
    main()
