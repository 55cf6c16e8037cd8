"""The watermark that a join hands to a later one: no row comes below it, and it goes on without rows."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.lang.order import Order
from splitjoin.lang.schema import SIDES
from splitjoin.spark.streaming.frontier import Frontier
from splitjoin.spark.streaming.watermark import WatermarkRule
from tests.support.micro_batches import MicroBatches
from tests.support.multiway import combinations
from tests.support.sampling import examples

_SCHEMAS = {name: pa.schema([("ts", pa.int64()), ("k", pa.int32()), (f"n{name}", pa.int64())]) for name in "abc"}
#: Rows of a join of a and b with the time of the later tuple.
_ROWS = pa.schema([("na", pa.int64()), ("nb", pa.int64()), ("ta", pa.int64()), ("tb", pa.int64()), ("k", pa.int32()),
                   ("time", pa.int64())])


def stream(name: str, chance: random.Random, n: int) -> pa.Table:
    """Tuples in order of time."""
    times = sorted(chance.randrange(60) for _ in range(n))
    return pa.table({"ts": times, "k": [chance.randrange(3) for _ in times], f"n{name}": range(n)},
                    schema=_SCHEMAS[name])


def joined_again(pairs: pa.Table) -> pa.Table:
    """The rows of the first join as the second one gets them."""
    time = pc.max_element_wise(pairs["ts_r"], pairs["ts_s"])
    return pa.table([pairs["na"], pairs["nb"], pairs["ts_r"], pairs["ts_s"], pairs["k_r"], time], schema=_ROWS)


class Chain:
    """Two joins of one streaming query, each of a micro-batch in turn."""

    def __init__(self, root: Path, lengths: tuple[int, int, int], late: int, order: str, how: str, equality: bool,
                 policy: Any = "min"):
        a, b, c = lengths
        self.lengths, self.how, self.found = lengths, how, list[pa.Table]()
        rules = [WatermarkRule({"r": delay, "s": late}, dict.fromkeys(SIDES), "min", policy == "spark")
                 for delay in (late, 0)]
        on = "r.k = s.k" if equality else "r.k <= s.k AND r.k >= s.k"
        self.first = MicroBatches(str(root), _SCHEMAS["a"], _SCHEMAS["b"], late, {
            "on": on, "window": (f"RANGE {a}", f"RANGE {b}"), "time": "ts", "order": order},
            groups=1 if order == "total" else 2, name="first", rule=rules[0])
        self.second = MicroBatches(str(root), _ROWS, _SCHEMAS["c"], late, {
            "on": f"{on} AND s.ts - r.ta <= {a} AND s.ts - r.tb <= {b}", "time": ("time", "ts"), "how": how,
            "window": (f"RANGE {min(a, b)}", f"RANGE {c}"), "order": Order("none")}, groups=2, name="second",
            rule=rules[1])

    def run(self, a: pa.Table, b: pa.Table, c: pa.Table, again: random.Random) -> None:
        """The next micro-batch."""
        rows = joined_again(self.first.run([a], [b], again=again))
        self.second.earlier = {"r": Frontier(self.first.root, "first", self.first.groups)}
        self.found.append(self.second.run([rows.slice(0, len(rows) // 2), rows.slice(len(rows) // 2)], [c],
                                          again=again))
        assert self.second.counts["late_r"] == 0

    def restart(self) -> None:
        """Stop, and start from the state alone; the first join with other groups."""
        self.first = self.first.restarted(groups=1 if self.first.groups == 3 else 3) if (
            self.first.query["order"] == "none") else self.first.restarted()
        self.second = self.second.restarted()

    def rows(self) -> Counter[tuple[Any, ...]]:
        """All rows so far, as numbers of their tuples."""
        table = pa.concat_tables(self.found).select(["na", "nb", "nc"])
        return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def wanted(tables: dict[str, pa.Table], lengths: tuple[int, int, int], how: str) -> Counter[tuple[Any, ...]]:
    """The rows by their definition."""
    found = Counter((a["na"], b["nb"], c["nc"]) for a, b, c in combinations(
        tables, lambda a, b, c: a["k"] == b["k"] == c["k"], lengths, "ts"))
    if how == "left":
        pairs = {name: tables[name] for name in "ab"}
        met = {row[:2] for row in found}
        found += Counter((a["na"], b["nb"], None) for a, b in combinations(
            pairs, lambda a, b: a["k"] == b["k"], lengths[:2], "ts") if (a["na"], b["nb"]) not in met)
    return found


@settings(max_examples=examples(6))
@given(seed=st.integers(0, 10**6), lengths=st.tuples(*[st.integers(0, 12)] * 3), late=st.integers(0, 6),
       order=st.sampled_from(["none", "none", "total"]), how=st.sampled_from(["inner", "left"]),
       equality=st.booleans(), policy=st.sampled_from(["min", "spark"]))
def test_rows_of_three_streams(tmp_path_factory: pytest.TempPathFactory, seed: int, lengths: tuple[int, int, int],
                               late: int, order: str, how: str, equality: bool, policy: str) -> None:
    """Rows come late within bounds, tasks run again, and the query starts again between micro-batches."""
    chance = random.Random(seed)
    tables = {name: stream(name, chance, chance.randrange(25)) for name in "abc"}
    chain = Chain(tmp_path_factory.mktemp("state"), lengths, late + (policy == "spark"), order, how, equality, policy)
    cuts = sorted(chance.randrange(70) for _ in range(3))
    comes = {name: np.searchsorted(cuts, [t + chance.randrange(late + 1) for t in table["ts"].to_pylist()], "right")
             for name, table in tables.items()}
    for n in range(len(cuts) + 3):
        parts = {name: table.filter(pa.array(comes[name] == n)) for name, table in tables.items()}
        if n > len(cuts):  # rows that meet nothing end the streams
            parts = {name: pa.table({"ts": [10**6], "k": [None], f"n{name}": [-1]}, schema=_SCHEMAS[name])
                     for name in tables}
        chain.run(*parts.values(), again=chance)
        if chance.random() < 0.4:
            chain.restart()
    found = Counter({row: n for row, n in chain.rows().items() if row[0] != -1})
    assert found == wanted(tables, lengths, how)


def test_a_silent_first_join_holds_nothing_back(tmp_path: Path) -> None:
    """Its watermark goes on without rows, so that the second join forgets its tuples."""
    chain = Chain(tmp_path, (5, 5, 5), 0, "none", "inner", True)
    for n in range(3):
        parts = {name: pa.table({"ts": [100 * n], "k": [{"a": 0, "b": 1, "c": 2}[name]], f"n{name}": [n]},
                                schema=_SCHEMAS[name]) for name in "abc"}
        chain.run(*parts.values(), again=random.Random(n))
    assert chain.second.counts["stored_rows"] == 1
    assert chain.first.counts["pairs"] == 0


def test_a_row_at_the_watermark_of_its_join_is_not_late(tmp_path: Path) -> None:
    """The third stream is ahead, so that the first join alone holds the second one's watermark back."""
    chain = Chain(tmp_path, (50, 50, 50), 10, "none", "inner", True)

    def tuples(name: str, *rows: tuple[int, int]) -> pa.Table:
        return pa.table({"ts": [t for t, _ in rows], "k": [k for _, k in rows], f"n{name}": range(len(rows))},
                        schema=_SCHEMAS[name])

    chain.run(tuples("a", (30, 1)), tuples("b", (30, 2)), tuples("c", (70, 0)), again=random.Random(0))
    chain.run(tuples("a", (20, 0)), tuples("b", (20, 0)), tuples("c"), again=random.Random(1))
    assert chain.rows() == Counter([(0, 0, 0)])
