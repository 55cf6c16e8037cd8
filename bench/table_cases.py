"""The joins of bench/whole_tables.py: their tables, and how splitjoin and its rivals write them.

It imports nothing of the project, as some rivals have an environment without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

Tables = tuple[pa.Table, pa.Table]


@dataclass(frozen=True)
class Join:
    """A join: its tables for so many rows, splitjoin's arguments, and how rivals write it.

    ``duckdb``, ``chdb``: the statement behind ``FROM``, with what it selects. ``polars``, ``pandas``, ``polars_bio``:
    functions of the rival's module and both frames. An engine without an entry has no such join, or does not end.
    ``ties``: the engines that choose otherwise among partners that are equally near. ``most``: the most rows that it
    is measured with.
    """

    tables: Callable[[int], Tables]
    call: dict[str, Any]
    duckdb: str = ""
    chdb: str = ""
    polars: Callable[[Any, Any, Any], Any] | None = None
    pandas: Callable[[Any, Any, Any], Any] | None = None
    polars_bio: Callable[[Any, Any, Any], Any] | None = None
    ties: tuple[str, ...] = ()
    most: int = 1 << 62


def _ids(n: int, name: str) -> dict[str, Any]:
    return {name: np.arange(n)}


def _both(make: Callable[..., pa.Table], r: str, s: str) -> Tables:
    """Both tables, made by their columns' names, a letter each."""
    return make(*r), make(*s)


def timed(n: int) -> Tables:
    """Sorted and distinct times on average 10 apart, 1,000 keys, and values."""
    rng = np.random.default_rng(n)
    return _both(lambda i, t, k, x: pa.table({
        **_ids(n, i), t: np.sort(rng.permutation(10 * n)[:n]), k: rng.integers(0, 1000, n),
        x: rng.integers(0, 1000, n)}), "itkx", "jula")


def quoted(n: int) -> Tables:
    """Trades, three times as many quotes with two prices in cents, and 1,000 symbols of which few are frequent; each
    trade has on average 1,500 quotes of its symbol within 1,000 of time.
    """
    rng = np.random.default_rng(n)
    made = [{"i": np.arange(rows), time: np.sort(rng.permutation(4 * n)[:rows]),
             key: np.minimum(rng.zipf(1.2, rows), 1000)} for rows, time, key in ((n, "t", "k"), (3 * n, "u", "l"))]
    made[1] |= {name: rng.integers(1000, 50_000, 3 * n) / 100 for name in "be"}
    del made[1]["i"]
    return pa.table(made[0]), pa.table(made[1])


def valued(n: int) -> Tables:
    """Values of which each has on average two partners within 1."""
    rng = np.random.default_rng(n)
    return _both(lambda i, x: pa.table({**_ids(n, i), x: rng.integers(0, 3 * n // 2, n)}), "ix", "ja")


def dense(n: int) -> Tables:
    """Values of which each has on average 20 partners within 10."""
    rng = np.random.default_rng(n)
    return _both(lambda i, x: pa.table({**_ids(n, i), x: rng.integers(0, n, n)}), "ix", "ja")


def intervals(n: int) -> Tables:
    """Intervals of 1 to 200 on 24 chromosomes, each with about two partners, and the key folded into the position."""
    rng = np.random.default_rng(n)
    length = max(1000, 100 * n // 24)
    made = []
    for i, c, a, b in (("i", "c", "st", "en"), ("j", "d", "lo", "hi")):
        chromosome, start = rng.integers(0, 24, n), rng.integers(0, length, n)
        end = start + rng.integers(1, 200, n)
        offset = chromosome * (length + 1000)
        made.append(pa.table({**_ids(n, i), c: chromosome, a: start, b: end, f"{a}_at": start + offset,
                              f"{b}_at": end + offset}))
    return made[0], made[1]


#: The lengths of the 24 human chromosomes, in millions of base pairs, of 3,088 in total.
CHROMOSOMES = (248, 242, 198, 190, 182, 171, 159, 145, 138, 134, 135, 133, 114, 107, 102, 90, 83, 80, 59, 64, 47, 51,
               156, 57)


def genome(n: int) -> Tables:
    """1.2 n and 2 n intervals of 2,500 on average on chromosomes of uneven lengths, sorted as in BED files, of which
    four million pairs overlap if n is a million; and the key folded into the position.
    """
    rng = np.random.default_rng(n)
    lengths = np.array(CHROMOSOMES) * n
    offsets = np.cumsum(lengths + 100_000) - lengths
    made = []
    for rows, i, c, a, b in ((6 * n // 5, "i", "c", "st", "en"), (2 * n, "j", "d", "lo", "hi")):
        chromosome = np.sort(rng.choice(len(lengths), rows, p=lengths / lengths.sum()))
        start = rng.integers(0, lengths[chromosome])
        start = start[np.lexsort((start, chromosome))]
        end = start + 1 + rng.exponential(2500, rows).astype(np.int64)
        made.append(pa.table({**_ids(rows, i), c: chromosome, a: start, b: end,
                              f"{a}_at": start + offsets[chromosome], f"{b}_at": end + offsets[chromosome]}))
    return made[0], made[1]


def stamps(n: int) -> Tables:
    """Three times as many points as rows, and 13 intervals that hold about one in ten of them."""
    rng = np.random.default_rng(n)
    low = np.arange(13) * (30 * n // 13)
    return (pa.table({**_ids(3 * n, "i"), "x": rng.integers(0, 30 * n, 3 * n)}),
            pa.table({**_ids(13, "j"), "lo": low, "hi": low + 3 * n // 13}))


def texts(n: int) -> Tables:
    """Times as ISO texts of 19 bytes, and intervals of them with about two points."""
    rng = np.random.default_rng(n)
    at, low = rng.integers(0, 20 * n, n), rng.integers(0, 20 * n, n)
    high = low + rng.integers(1, 80, n)

    def iso(seconds: Any) -> pa.Array:
        return pa.array(np.datetime_as_string(np.datetime64("2020-01-01") + seconds.astype("timedelta64[s]")))

    return (pa.table({**_ids(n, "i"), "x": iso(at)}), pa.table({**_ids(n, "j"), "lo": iso(low), "hi": iso(high)}))


def named(n: int) -> Tables:
    """Names of 7 to 11 bytes, each of which has on average one partner."""
    rng = np.random.default_rng(n)
    return _both(lambda i, x: pa.table({**_ids(n, i), x: np.char.add("name-", rng.integers(0, n, n).astype(str))}),
                 "ix", "ja")


def planes(n: int) -> Tables:
    """Points of which each has on average two within a distance of 5."""
    rng = np.random.default_rng(n)
    side = int((78 * n / 2) ** 0.5)
    return _both(lambda i, x, y: pa.table({**_ids(n, i), x: rng.integers(0, side, n), y: rng.integers(0, side, n)}),
                 "ixy", "jab")


def pairs_of(n: int) -> Tables:
    """Two values of which one rises nearly as the other: two inequalities hold for few pairs."""
    rng = np.random.default_rng(n)
    made = []
    for i, x, y, shift in (("i", "x", "y", 0), ("j", "a", "b", 3)):
        first = rng.integers(0, 2 * n, n)
        made.append(pa.table({**_ids(n, i), x: first, y: first + rng.integers(0, 3, n) + shift}))
    return made[0], made[1]


def twofold(n: int) -> Tables:
    """Two unrelated values, for each of which a row has on average two partners within 1."""
    rng = np.random.default_rng(n)
    return _both(lambda i, x, y: pa.table({
        **_ids(n, i), x: rng.integers(0, 3 * n // 2, n), y: rng.integers(0, 3 * n // 2, n)}), "ixy", "jab")


def apart(n: int) -> Tables:
    """Values of which nearly all of r are below those of s: two pairs a row have the greater one in r."""
    rng = np.random.default_rng(n)
    return (pa.table({**_ids(n, "i"), "x": rng.integers(0, n, n)}),
            pa.table({**_ids(n, "j"), "a": rng.integers(n - 2 * int(n ** 0.5), 2 * n, n)}))


def hashes(n: int) -> Tables:
    """Hashes of 64 bits, and the same in another order with 0 to 7 bits flipped."""
    rng = np.random.default_rng(n)
    first = rng.integers(0, 1 << 63, n)
    second = rng.permutation(first)
    for bit in range(7):
        second = second ^ np.where(rng.integers(0, 7, n) > bit, 1 << rng.integers(0, 63, n), 0)
    return pa.table({**_ids(n, "i"), "x": first}), pa.table({**_ids(n, "j"), "a": second})


def taxed(n: int) -> Tables:
    """Pay, and a tax of three times as much and a little more: who earns more and is taxed less than one other."""
    rng = np.random.default_rng(n)
    made = []
    for i, x, y in (("i", "x", "y"), ("j", "a", "b")):
        pay = rng.integers(0, 100 * n, n)
        made.append(pa.table({**_ids(n, i), x: pay, y: 3 * pay + rng.integers(0, 1800, n)}))
    return made[0], made[1]


def _band(pl: Any, r: Any, s: Any, width: int) -> Any:
    return r.join_where(s, pl.col("a") >= pl.col("x") - width, pl.col("a") <= pl.col("x") + width)


def _asof(pl: Any, r: Any, s: Any, **how: Any) -> Any:
    return r.join_asof(s, left_on="t", right_on="u", **how).drop_nulls("j")


def _merge_asof(pd: Any, r: Any, s: Any, **how: Any) -> Any:
    return pd.merge_asof(r, s, left_on="t", right_on="u", **how).dropna(subset="j")


def _overlap(pb: Any, r: Any, s: Any) -> Any:
    return pb.overlap(r, s, cols1=["c", "st", "en"], cols2=["d", "lo", "hi"], output_type="polars.DataFrame")


def _nearest_3(pl: Any, r: Any, s: Any) -> Any:
    ranked = s.with_columns(q=pl.int_range(pl.len()).over("l"))
    return _asof(pl, r, ranked, by_left="k", by_right="l").select(*r.columns, "q").with_columns(
        q=pl.concat_list(pl.col("q") - back for back in range(3))).explode("q").join(
        ranked, left_on=["k", "q"], right_on=["l", "q"])


def _either(pl: Any, r: Any, s: Any) -> Any:
    first, second = _band(pl, r, s, 1), r.join_where(s, pl.col("b") >= pl.col("y") - 1, pl.col("b") <= pl.col("y") + 1)
    return pl.concat([first, second.filter((pl.col("x") - pl.col("a")).abs() > 1)])


_KEY = {"left_by": "k", "right_by": "l"}
_MEANS = {"n": "count(*)", "bid": "avg(s.b)", "ask": "avg(s.e)"}
#: Counts and sums up to each quote, of which those at the ends of a window are looked up; times are distinct.
_UPTO = ("(SELECT l, u, count(*) OVER w AS c, sum(b) OVER w AS b, sum(e) OVER w AS e FROM s "
         "WINDOW w AS (PARTITION BY l ORDER BY u ROWS UNBOUNDED PRECEDING))")
_BY_PREFIXES = ("SELECT i, t, k, n, (y.b - coalesce(x.b, 0)) / n AS bid, (y.e - coalesce(x.e, 0)) / n AS ask FROM "
                f"(SELECT r.*, y, x, coalesce(y.c, 0) - coalesce(x.c, 0) AS n FROM r ASOF LEFT JOIN {_UPTO} y ON "
                f"r.k = y.l AND r.t + 1000 >= y.u ASOF LEFT JOIN {_UPTO} x ON r.k = x.l AND r.t - 1000 > x.u)")
_ROWS = "SELECT * FROM r JOIN s ON "
#: Both tables, joined by the cells of a grid in which a square around a point of r is, and those ranges.
_SQUARES = ("SELECT * EXCLUDE (p, q) FROM (SELECT *, unnest(range((y - 5) // 11, (y + 5) // 11 + 1)) AS q FROM "
            "(SELECT *, unnest(range((x - 5) // 11, (x + 5) // 11 + 1)) AS p FROM r)) r JOIN s ON r.p = s.a // 11 "
            "AND r.q = s.b // 11 AND s.a BETWEEN r.x - 5 AND r.x + 5 AND s.b BETWEEN r.y - 5 AND r.y + 5")
#: Hashes that differ in three bits at most, which therefore are equal in one of four parts.
_EQUAL_PARTS = ("SELECT DISTINCT * EXCLUDE (p, q) FROM (SELECT *, unnest([0, 16, 32, 48]) AS p FROM r) r "
                "JOIN (SELECT *, unnest([0, 16, 32, 48]) AS q FROM s) s ON r.p = s.q "
                "AND (x >> p) & 65535 = (a >> q) & 65535 AND bit_count(xor(x, a)) <= 3")
_OVERLAP = "r.st < s.hi AND s.lo < r.en"
JOINS: dict[str, Join] = {
    "as-of": Join(timed, {"on": "TRUE", "time": ("t", "u"), "how": "asof"},
                  duckdb="SELECT * FROM r ASOF JOIN s ON r.t >= s.u", polars=_asof, pandas=_merge_asof),
    "as-of, forward": Join(
        timed, {"on": "TRUE", "time": ("t", "u"), "how": "asof", "direction": "forward"},
        duckdb="SELECT * FROM r ASOF JOIN s ON r.t <= s.u",
        polars=lambda pl, r, s: _asof(pl, r, s, strategy="forward"),
        pandas=lambda pd, r, s: _merge_asof(pd, r, s, direction="forward")),
    "as-of, nearest": Join(
        timed, {"on": "TRUE", "time": ("t", "u"), "how": "asof", "direction": "nearest"},
        polars=lambda pl, r, s: _asof(pl, r, s, strategy="nearest"),
        pandas=lambda pd, r, s: _merge_asof(pd, r, s, direction="nearest"), ties=("polars",)),
    "as-of by key": Join(timed, {"on": "r.k = s.l", "time": ("t", "u"), "how": "asof"},
                         duckdb="SELECT * FROM r ASOF JOIN s ON r.k = s.l AND r.t >= s.u",
                         chdb="SELECT * FROM r ASOF JOIN s ON r.k = s.l AND r.t >= s.u",
                         polars=lambda pl, r, s: _asof(pl, r, s, by_left="k", by_right="l"),
                         pandas=lambda pd, r, s: _merge_asof(pd, r, s, **_KEY)),
    "as-of by key, forward": Join(
        timed, {"on": "r.k = s.l", "time": ("t", "u"), "how": "asof", "direction": "forward"},
        duckdb="SELECT * FROM r ASOF JOIN s ON r.k = s.l AND r.t <= s.u",
        polars=lambda pl, r, s: _asof(pl, r, s, by_left="k", by_right="l", strategy="forward"),
        pandas=lambda pd, r, s: _merge_asof(pd, r, s, **_KEY, direction="forward")),
    "as-of by key, nearest within 5,000": Join(
        timed, {"on": "r.k = s.l", "time": ("t", "u"), "how": "asof", "direction": "nearest", "window": "RANGE 5000"},
        polars=lambda pl, r, s: _asof(pl, r, s, by_left="k", by_right="l", strategy="nearest", tolerance=5000),
        pandas=lambda pd, r, s: _merge_asof(pd, r, s, **_KEY, direction="nearest", tolerance=5000), ties=("polars",)),
    "as-of by key, 3 nearest": Join(
        timed, {"on": "r.k = s.l", "time": ("t", "u"), "how": "asof", "k": 3},
        duckdb="WITH c AS (SELECT *, row_number() OVER (PARTITION BY l ORDER BY u) AS q FROM s), "
               "m AS (SELECT r.*, q, unnest([0, 1, 2]) AS back FROM r ASOF JOIN c ON r.k = c.l AND r.t >= c.u) "
               "SELECT m.* EXCLUDE (q, back), c.* EXCLUDE q FROM m JOIN c ON m.k = c.l AND c.q = m.q - back",
        polars=_nearest_3),
    "as-of by key, order none": Join(
        timed, {"on": "r.k = s.l", "time": ("t", "u"), "how": "asof", "order": "none"}),
    "as-of by key, a further inequality": Join(
        timed, {"on": "r.k = s.l AND r.x >= s.a", "time": ("t", "u"), "how": "asof"},
        duckdb="SELECT r.*, s.* FROM r JOIN (SELECT r.i, max(s.j) AS j FROM r JOIN s ON r.k = s.l AND r.x >= s.a "
               "AND r.t >= s.u GROUP BY r.i) m ON r.i = m.i JOIN s ON s.j = m.j"),
    "semi, one inequality": Join(
        valued, {"on": "r.x < s.a", "how": "semi"},
        duckdb="SELECT * FROM r WHERE r.x < (SELECT max(a) FROM s)",
        polars=lambda pl, r, s: r.filter(pl.col("x") < s["a"].max())),
    "anti, one inequality": Join(
        valued, {"on": "r.x < s.a", "how": "anti"},
        duckdb="SELECT * FROM r WHERE NOT coalesce(r.x < (SELECT max(a) FROM s), false)",
        polars=lambda pl, r, s: r.filter(pl.col("x") >= s["a"].max())),
    "semi, equal keys and one inequality": Join(
        timed, {"on": "r.k = s.l AND r.x < s.a", "how": "semi"},
        duckdb="SELECT r.* FROM r JOIN (SELECT l, max(a) AS most FROM s GROUP BY l) m ON r.k = m.l WHERE r.x < most",
        polars=lambda pl, r, s: r.join(s.group_by("l").agg(pl.col("a").max()), left_on="k", right_on="l").filter(
            pl.col("x") < pl.col("a")).drop("a")),
    "anti, equal keys and one inequality": Join(
        timed, {"on": "r.k = s.l AND r.x < s.a", "how": "anti"},
        duckdb="SELECT r.* FROM r LEFT JOIN (SELECT l, max(a) AS most FROM s GROUP BY l) m ON r.k = m.l "
               "WHERE most IS NULL OR r.x >= most",
        polars=lambda pl, r, s: r.join(s.group_by("l").agg(pl.col("a").max()), left_on="k", right_on="l",
                                       how="left").filter((pl.col("x") < pl.col("a")).fill_null(False).not_())),
    "inner, equal keys": Join(valued, {"on": "r.x = s.a"}, duckdb=_ROWS + "r.x = s.a",
                              polars=lambda pl, r, s: r.join(s, left_on="x", right_on="a")),
    "left, equal keys": Join(valued, {"on": "r.x = s.a", "how": "left"},
                             duckdb="SELECT * FROM r LEFT JOIN s ON r.x = s.a",
                             polars=lambda pl, r, s: r.join(s, left_on="x", right_on="a", how="left")),
    "inner, equal texts": Join(named, {"on": "r.x = s.a"}, duckdb=_ROWS + "r.x = s.a",
                               polars=lambda pl, r, s: r.join(s, left_on="x", right_on="a")),
    "full, equal keys": Join(valued, {"on": "r.x = s.a", "how": "full"},
                             duckdb="SELECT * FROM r FULL JOIN s ON r.x = s.a",
                             polars=lambda pl, r, s: r.join(s, left_on="x", right_on="a", how="full")),
    "sum by equal keys": Join(
        valued, {"on": "r.x = s.a", "aggregate": {"n": "sum(s.j)"}, "by": "r"},
        duckdb="SELECT r.*, n FROM r JOIN (SELECT a, sum(j) AS n FROM s GROUP BY a) m ON r.x = m.a",
        polars=lambda pl, r, s: r.join(s.group_by("a").agg(n=pl.col("j").sum()), left_on="x", right_on="a")),
    "semi, equal keys": Join(valued, {"on": "r.x = s.a", "how": "semi"},
                             duckdb="SELECT * FROM r SEMI JOIN s ON r.x = s.a",
                             polars=lambda pl, r, s: r.join(s, left_on="x", right_on="a", how="semi")),
    "anti, equal keys": Join(valued, {"on": "r.x = s.a", "how": "anti"},
                             duckdb="SELECT * FROM r ANTI JOIN s ON r.x = s.a",
                             polars=lambda pl, r, s: r.join(s, left_on="x", right_on="a", how="anti")),
    "semi, a band": Join(valued, {"on": "abs(r.x - s.a) <= 1", "how": "semi"},
                         duckdb="SELECT * FROM r SEMI JOIN s ON s.a BETWEEN r.x - 1 AND r.x + 1",
                         polars=lambda pl, r, s: r.join(_band(pl, r, s, 1).select("i").unique(), on="i", how="semi")),
    "anti, a band": Join(valued, {"on": "abs(r.x - s.a) <= 1", "how": "anti"},
                         duckdb="SELECT * FROM r ANTI JOIN s ON s.a BETWEEN r.x - 1 AND r.x + 1",
                         polars=lambda pl, r, s: r.join(_band(pl, r, s, 1).select("i").unique(), on="i", how="anti")),
    "left, a band": Join(valued, {"on": "abs(r.x - s.a) <= 1", "how": "left"},
                         duckdb="SELECT * FROM r LEFT JOIN s ON s.a BETWEEN r.x - 1 AND r.x + 1"),
    "right, a band": Join(valued, {"on": "abs(r.x - s.a) <= 1", "how": "right"},
                          duckdb="SELECT * FROM r RIGHT JOIN s ON s.a BETWEEN r.x - 1 AND r.x + 1"),
    "left, one inequality": Join(apart, {"on": "r.x > s.a", "how": "left"},
                                 duckdb="SELECT * FROM r LEFT JOIN s ON r.x > s.a"),
    "full, a band": Join(valued, {"on": "abs(r.x - s.a) <= 1", "how": "full"},
                         duckdb="SELECT * FROM r FULL JOIN s ON s.a BETWEEN r.x - 1 AND r.x + 1"),
    "inner, equal keys within 1,000 of time": Join(
        timed, {"on": "r.k = s.l", "time": ("t", "u"), "window": "RANGE 1000"},
        duckdb=_ROWS + "r.k = s.l AND s.u BETWEEN r.t - 1000 AND r.t + 1000",
        polars=lambda pl, r, s: r.lazy().join(s.lazy(), left_on="k", right_on="l").filter(
            pl.col("u").is_between(pl.col("t") - 1000, pl.col("t") + 1000)).collect(engine="streaming")),
    "left, equal keys within 1,000 of time": Join(
        timed, {"on": "r.k = s.l", "time": ("t", "u"), "window": "RANGE 1000", "how": "left"},
        duckdb="SELECT * FROM r LEFT JOIN s ON r.k = s.l AND s.u BETWEEN r.t - 1000 AND r.t + 1000"),
    "anti, equal keys within 1,000 of time": Join(
        timed, {"on": "r.k = s.l", "time": ("t", "u"), "window": "RANGE 1000", "how": "anti"},
        duckdb="SELECT * FROM r ANTI JOIN s ON r.k = s.l AND s.u BETWEEN r.t - 1000 AND r.t + 1000"),
    "rank: count(*) where s.a <= r.x": Join(
        valued, {"on": "s.a <= r.x", "aggregate": {"n": "count(*)"}, "by": "r"},
        duckdb="SELECT r.*, n FROM r ASOF JOIN (SELECT a, count(*) OVER (ORDER BY a) AS n FROM s) c ON r.x >= c.a",
        polars=lambda pl, r, s: r.with_columns(n=s["a"].sort().search_sorted(r["x"], side="right")).filter(
            pl.col("n") > 0)),
    "sum over a band of 20 partners": Join(
        dense, {"on": "abs(r.x - s.a) <= 10", "aggregate": {"n": "sum(s.j)"}, "by": "r"},
        duckdb="SELECT r.i, any_value(r.x) AS x, sum(s.j) AS n FROM r JOIN s ON s.a BETWEEN r.x - 10 AND r.x + 10 "
               "GROUP BY r.i"),
    "means of two prices by key within 1,000 of time": Join(
        quoted, {"on": "r.k = s.l", "time": ("t", "u"), "window": "RANGE 1000", "how": "left", "aggregate": _MEANS},
        duckdb=_BY_PREFIXES),
    "means of two prices by key within 1,000 of time, in the condition": Join(
        quoted, {"on": "r.k = s.l AND s.u BETWEEN r.t - 1000 AND r.t + 1000", "how": "left", "aggregate": _MEANS},
        duckdb=_BY_PREFIXES),
    "inner, one band": Join(valued, {"on": "abs(r.x - s.a) <= 1"}, duckdb=_ROWS + "s.a BETWEEN r.x - 1 AND r.x + 1",
                            polars=lambda pl, r, s: _band(pl, r, s, 1)),
    "inner, one band, order left": Join(
        valued, {"on": "abs(r.x - s.a) <= 1", "order": "left"},
        duckdb=_ROWS + "s.a BETWEEN r.x - 1 AND r.x + 1 ORDER BY i, j"),
    "inner, one band, order none": Join(valued, {"on": "abs(r.x - s.a) <= 1", "order": "none"}),
    "two bands": Join(planes, {"on": "abs(r.x - s.a) <= 5 AND abs(r.y - s.b) <= 5"}, duckdb=_SQUARES),
    "either of two bands": Join(
        twofold, {"on": "abs(r.x - s.a) <= 1 OR abs(r.y - s.b) <= 1"},
        duckdb=_ROWS + "s.a BETWEEN r.x - 1 AND r.x + 1 UNION ALL " + _ROWS + "s.b BETWEEN r.y - 1 AND r.y + 1 "
               "AND s.a NOT BETWEEN r.x - 1 AND r.x + 1", polars=_either),
    "Hamming distance of 3": Join(
        hashes, {"on": "bit_count(r.x ^ s.a) <= 3"}, most=100_000, duckdb=_EQUAL_PARTS),
    "Hamming distance of 3, equal parts by hand": Join(
        hashes, {"on": "(" + " OR ".join(f"r.x >> {n} & 65535 = s.a >> {n} & 65535" for n in (0, 16, 32, 48))
                 + ") AND bit_count(r.x ^ s.a) <= 3"}, duckdb=_EQUAL_PARTS),
    "two inequalities": Join(
        pairs_of, {"on": "r.x >= s.a AND r.y <= s.b"}, duckdb=_ROWS + "r.x >= s.a AND r.y <= s.b",
        polars=lambda pl, r, s: r.join_where(s, pl.col("x") >= pl.col("a"), pl.col("y") <= pl.col("b"))),
    "two inequalities, unrelated": Join(
        taxed, {"on": "r.x > s.a AND r.y < s.b"}, duckdb=_ROWS + "r.x > s.a AND r.y < s.b",
        polars=lambda pl, r, s: r.join_where(s, pl.col("x") > pl.col("a"), pl.col("y") < pl.col("b"))),
    "overlap by key": Join(
        intervals, {"on": f"r.c = s.d AND {_OVERLAP}"}, duckdb=_ROWS + "r.st_at < s.hi_at AND s.lo_at < r.en_at",
        polars=lambda pl, r, s: r.join_where(s, pl.col("st_at") < pl.col("hi_at"), pl.col("lo_at") < pl.col("en_at")),
        polars_bio=_overlap),
    "overlap, the key folded by hand": Join(
        intervals, {"on": "r.st_at < s.hi_at AND s.lo_at < r.en_at"},
        duckdb=_ROWS + "r.st_at < s.hi_at AND s.lo_at < r.en_at", polars_bio=_overlap),
    "overlap by key, 1.2 and 2 times the rows": Join(
        genome, {"on": f"r.c = s.d AND {_OVERLAP}"}, duckdb=_ROWS + "r.st_at < s.hi_at AND s.lo_at < r.en_at",
        polars=lambda pl, r, s: r.join_where(s, pl.col("st_at") < pl.col("hi_at"), pl.col("lo_at") < pl.col("en_at")),
        polars_bio=_overlap),
    "semi, overlap by key": Join(
        intervals, {"on": f"r.c = s.d AND {_OVERLAP}", "how": "semi"},
        duckdb="SELECT * FROM r SEMI JOIN s ON r.st_at < s.hi_at AND s.lo_at < r.en_at"),
    "left, overlap by key": Join(
        intervals, {"on": f"r.c = s.d AND {_OVERLAP}", "how": "left"},
        duckdb="SELECT * FROM r LEFT JOIN s ON r.st_at < s.hi_at AND s.lo_at < r.en_at"),
    "anti, overlap by key": Join(
        intervals, {"on": f"r.c = s.d AND {_OVERLAP}", "how": "anti"},
        duckdb="SELECT * FROM r ANTI JOIN s ON r.st_at < s.hi_at AND s.lo_at < r.en_at"),
    "containment by key": Join(
        intervals, {"on": "r.c = s.d AND r.st >= s.lo AND r.en <= s.hi"},
        duckdb=_ROWS + "r.st_at >= s.lo_at AND r.en_at <= s.hi_at"),
    "point in interval by key": Join(
        intervals, {"on": "r.c = s.d AND r.st BETWEEN s.lo AND s.hi"},
        duckdb=_ROWS + "r.st_at BETWEEN s.lo_at AND s.hi_at"),
    "3 points a row in 13 intervals": Join(
        stamps, {"on": "r.x BETWEEN s.lo AND s.hi"}, duckdb=_ROWS + "r.x BETWEEN s.lo AND s.hi"),
    "text in interval of texts": Join(
        texts, {"on": "r.x BETWEEN s.lo AND s.hi"}, duckdb=_ROWS + "r.x BETWEEN s.lo AND s.hi"),
    "distance by sqrt": Join(
        planes, {"on": "sqrt((r.x - s.a) * (r.x - s.a) + (r.y - s.b) * (r.y - s.b)) <= 5"},
        duckdb=_SQUARES + " AND sqrt((r.x - s.a) * (r.x - s.a) + (r.y - s.b) * (r.y - s.b)) <= 5"),
}
