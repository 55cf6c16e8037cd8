"""Ranks of texts of whole tables: the order of their bytes, NULL below all."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, strategies as st

from splitjoin.engines.arrival import arrivals
from splitjoin.engines.cpu.text_ranks import with_ranked_texts
from splitjoin.joins.join import join
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.plan.passes.pipeline import make_plan

PIECES = st.lists(st.sampled_from(["", "a", "\0", "é", "aaaaaaaa", "aaaaaaa\0"]), max_size=5).map("".join)
TEXTS = st.lists(st.none() | PIECES, max_size=9)


@given(TEXTS, TEXTS, TEXTS)
def test_ranks_are_in_the_order_of_bytes(x: list[str | None], low: list[str | None], high: list[str | None]) -> None:
    n = min(len(low), len(high))
    r = pa.table({"x": pa.array(x, pa.string())})
    s = pa.table({"low": pa.array(low[:n], pa.string()), "high": pa.array(high[:n], pa.string())})
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), window="ROWS 9",
                       on="r.x >= s.low AND r.x < s.high")
    plan = make_plan(query.predicate)
    ranked = with_ranked_texts(plan, arrivals(query, r, s))
    longest = max((len(t.encode()) for t in (*x, *low[:n], *high[:n]) if t), default=0)
    assert (ranked is not plan) == (longest > 8)
    if ranked is not plan:
        texts = [*x] + [t for slot in ranked.slots_s for t in s.column(slot.key.expr.name).to_pylist()]
        ranks = [int(rank) for side in "rs" for slot in ranked.slots(side)
                 for rank in slot.key.values(r if side == "r" else s).values]
        assert all((a is None) == (rank == 0) for a, rank in zip(texts, ranks, strict=True))
        known = sorted({t.encode() for t in texts if t is not None})
        assert all(known.index(a.encode()) < known.index(b.encode()) for a, i in zip(texts, ranks, strict=True)
                   for b, j in zip(texts, ranks, strict=True) if a is not None and b is not None and i < j)
        assert len(set(ranks) - {0}) == len(known)


def test_times_as_texts_are_found_by_one_range_each() -> None:
    n = 2000
    stamps = [f"2026-01-01 {i // 3600:02}:{i // 60 % 60:02}:{i % 60:02}" for i in range(n + 3)]
    r, s = pa.table({"x": stamps[:n]}), pa.table({"low": stamps[:n], "high": stamps[3:]})
    found = join(r, s, on="r.x BETWEEN s.low AND s.high")
    assert len(found) == 4 * n - 6
    assert found.counters["candidates"] == len(found)
    assert found == join(r, s, on="r.x BETWEEN s.low AND s.high", device="golden")
