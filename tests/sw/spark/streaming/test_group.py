"""The step of a group: micro-batches, groups, restarts and retries give the pairs of the golden model."""

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin.lang.schema import SIDES
from splitjoin.spark.streaming.watermark import WatermarkRule

from ....support.databases import database
from ....support.micro_batches import MicroBatches
from ....support.sampling import examples
from ....support.spark_streams import ON, answer, in_order, rows, stream

R, S = stream(1, 60, 40), stream(2, 50, 40)
#: Rows that bring the watermark past all others, and meet none.
END = 10**6
SHORT = pa.schema([("ts", pa.int64()), ("x", pa.int32())])
WINDOWS = ["RANGE 7", {"r": "RANGE 3", "s": "RANGE 12"}, "ROWS 5", {"r": "ROWS 3", "s": "RANGE 9"},
           "ROWS 6 RANGE 10", {"r": "ROWS 100", "s": "ROWS 1"}, "RANGE 0", "RANGE 1000"]
TIES = {"r": ("x", "y", "name", "day", "price", "n"), "s": ("x", "y", "name", "day", "price", "n")}


def cut(table: pa.Table, at: list[int]) -> list[pa.Table]:
    """``table`` cut at the times ``at``."""
    low = [-1, *at]
    return [table.filter((pc.field("ts") > a) & (pc.field("ts") <= b)) for a, b in zip(low, [*at, 10**9], strict=True)]


def ending(table: pa.Table) -> pa.Table:
    """``table`` with a last row far behind all others."""
    last = pa.table({f.name: pa.array([END if f.name == "ts" else None], f.type) for f in table.schema})
    return pa.concat_tables([table, last.cast(table.schema)])


def shuffled(table: pa.Table, chance: random.Random) -> list[pa.Table]:
    """The rows in any order, in one to three partitions."""
    order = list(range(len(table)))
    chance.shuffle(order)
    parts = chance.randint(1, 3)
    return [table.take(pa.array(order[n::parts], pa.int64())) for n in range(parts)]


def run(query: MicroBatches, r: list[pa.Table], s: list[pa.Table], chance: random.Random,
        again: bool = True, devices: Sequence[str] = (), groups: Sequence[int] = ()) -> pa.Table:
    """The results of micro-batches with the tables of ``r`` and ``s``. ``devices`` of their tasks, and their numbers of
    ``groups``, take turns.
    """
    found = []
    for n, (a, b) in enumerate(zip(r, s, strict=True)):
        if devices:
            query.device = devices[n % len(devices)]
        if groups:
            query.groups = groups[n % len(groups)]
        found.append(query.run(shuffled(a, chance), shuffled(b, chance), again=chance if again else None))
    return pa.concat_tables(found)


@settings(max_examples=examples(15))
@given(seed=st.integers(0, 2**32), window=st.sampled_from(WINDOWS), order=st.sampled_from(["none", "total"]),
       lateness=st.integers(0, 15), groups=st.integers(1, 3), keeps=st.booleans(),
       rule=st.sampled_from([("min", False), ("min", True), ("max", False), ("source", False)]))
def test_late_rows_are_left_out_and_the_others_are_joined(tmp_path_factory: pytest.TempPathFactory, seed: int,
                                                          window: Any, order: str, lateness: int,
                                                          groups: int, keeps: bool,
                                                          rule: tuple[Any, bool]) -> None:
    """Rows in any order: those below the watermark of the micro-batches before are late; by Spark's rule, those at or
    below that of the micro-batches before the last one.
    """
    chance = random.Random(seed)
    late_to = tmp_path_factory.mktemp("late")
    query = MicroBatches(str(tmp_path_factory.mktemp("state")), R.schema, S.schema, lateness,
                         {"on": ON, "window": window, "time": "ts", "order": order},
                         1 if order == "total" else groups, "cpu", TIES, late_to=str(late_to), kept=keeps,
                         rule=WatermarkRule(dict.fromkeys(SIDES, lateness), policy=rule[0], beyond=rule[1]))
    parts = {"r": shuffled(R, chance) + shuffled(R, chance), "s": shuffled(S, chance) + shuffled(S, chance)}
    batches = max(map(len, parts.values()))
    kept: dict[str, list[pa.Table]] = {"r": [], "s": []}
    late = dict.fromkeys(kept, 0)
    greatest: dict[str, int | None] = dict.fromkeys(kept)
    found, counted = [], {"late_r": 0, "late_s": 0}
    before = dict.fromkeys(kept, -END)
    for n in range(batches + 1 + rule[1]):  # by Spark's rule the last one moves the watermark of another one
        new = {side: parts[side][n] if n < len(parts[side]) else parts[side][0].slice(0, 0) for side in parts}
        if n == batches:
            new = {side: ending(table) for side, table in new.items()}
        own = {side: -END if t is None else t - lateness + rule[1] for side, t in greatest.items()}
        limits = own if rule[0] == "source" else dict.fromkeys(own, (min if rule[0] == "min" else max)(own.values()))
        if rule[1]:
            limits, before = before, limits
        for side, table in new.items():
            kept[side].append(table.filter(pc.field("ts") >= limits[side]))
            late[side] += len(table) - len(kept[side][-1])
            times = [t for t in (greatest[side], pc.max(table["ts"]).as_py()) if t is not None]
            greatest[side] = max(times, default=None)
        found.append(query.run(shuffled(new["r"], chance), shuffled(new["s"], chance), again=chance))
        counted = {name: counted[name] + query.counts[name] for name in counted}
    joined = {side: in_order(pa.concat_tables(tables)) for side, tables in kept.items()}
    assert rows(pa.concat_tables(found)) == rows(answer(joined["r"], joined["s"], on=ON, window=window, time="ts"))
    assert counted == {f"late_{side}": n for side, n in late.items()}
    written = {side: sum(len(pa.parquet.read_table(f)) for f in (late_to / which).glob("*.parquet"))
               for side, which in (("r", "left"), ("s", "right"))}
    assert written == late


@settings(max_examples=examples(10))
@given(seed=st.integers(0, 2**32), sizes=st.lists(st.sampled_from([0, 2, 200]), min_size=3, max_size=6),
       groups=st.integers(1, 3), length=st.sampled_from([0, 5, 60, 10**6]), kept=st.booleans())
def test_duckdb_finds_the_same_pairs(tmp_path_factory: pytest.TempPathFactory, seed: int, sizes: list[int],
                                     groups: int, length: int, kept: bool) -> None:
    """Micro-batches whose sizes jump by 100, or are empty in one stream, with ties, NULL, duplicates and late rows."""
    rng = np.random.default_rng(seed)
    query = MicroBatches(str(tmp_path_factory.mktemp("state")), SHORT, SHORT, 4,
                         {"on": "abs(r.x - s.x) <= 1", "window": f"RANGE {length}", "time": "ts", "order": "none"},
                         groups, "cpu", kept=kept)
    found, arrived = [], []
    for batch, size in enumerate(sizes):
        parts = []
        for side in range(2):
            n = size if side or batch % 3 else 0  # R is silent in every third micro-batch
            ts = rng.integers(10 * batch - 8, 10 * batch + 10, n)
            x = pa.array(rng.integers(0, 8, n), pa.int32(), mask=rng.random(n) < 0.1)
            parts.append(pa.table({"ts": ts, "x": x}, schema=SHORT))
        found.append(query.run([parts[0]], [parts[1]]))
        arrived += [(batch, side, t, x) for side, part in enumerate(parts) for t, x in zip(*part.to_pydict().values(),
                                                                                          strict=True)]
    with database() as db:
        db.execute("CREATE TABLE a (batch INT, side INT, ts BIGINT, x INT)")
        if arrived:
            db.executemany("INSERT INTO a VALUES (?, ?, ?, ?)", arrived)
        # A watermark needs a row of both streams in earlier micro-batches; a row is late if it is below.
        want = db.execute("""
            WITH marks AS (SELECT b AS batch, max(ts) FILTER (side = 0) AS r, max(ts) FILTER (side = 1) AS s
                           FROM range(10) t(b) LEFT JOIN a ON a.batch < b GROUP BY b),
                 kept AS (SELECT a.* FROM a JOIN marks USING (batch)
                          WHERE r IS NULL OR s IS NULL OR ts >= least(r, s) - 4)
            SELECT r.ts, r.x, s.ts, s.x FROM kept r, kept s
            WHERE r.side = 0 AND s.side = 1 AND abs(r.x - s.x) <= 1 AND abs(r.ts - s.ts) <= ?""", [length]).fetchall()
    assert Counter(zip(*pa.concat_tables(found).to_pydict().values(), strict=True)) == Counter(want)


def test_a_hot_key_is_stored_by_all_groups(tmp_path: Path) -> None:
    """Nine of ten rows have one key: first its home group does all with it, then every group has its share."""
    def many(seed: int, first: int) -> pa.Table:
        chance = random.Random(seed)
        n = 1000
        return pa.table({"ts": pa.array(range(first, first + n)), "k": [0 if chance.random() < 0.9 else i + 1
                                                                         for i in range(n)],
                         "v": [chance.randrange(10**5) for _ in range(n)]})

    r, s = [many(n, 1000 * n) for n in range(3)], [many(10 + n, 1000 * n) for n in range(3)]
    on, window = "r.k = s.k AND abs(r.v - s.v) <= 500", "RANGE 700"
    query = MicroBatches(str(tmp_path), r[0].schema, s[0].schema, 0,
                         {"on": on, "window": window, "time": "ts", "order": "none"}, 4, "cpu")
    shares, found = [], []
    for a, b in zip(r, s, strict=True):
        task = query.task()
        found.append(query.run([a], [b]))
        comparisons = []
        for group in range(4):
            before = query.batch - 1
            query.batch = before
            last = list(query._group(task, group, [a], [b]))[-1]
            comparisons.append(last.column("__splitjoin").to_pylist()[0]["comparisons"])
            query.batch = before + 1
        shares.append(max(comparisons) / sum(comparisons))
    assert shares[0] > 0.9
    assert shares[2] < 0.35
    want = splitjoin.join(pa.concat_tables(r), pa.concat_tables(s), on=on, window=window, time="ts")
    assert rows(pa.concat_tables(found)) == rows(want)
    assert len(want) > 1000
