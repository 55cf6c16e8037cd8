"""A statement over streams: the rows of the whole tables, however they are cut, on any device; limits, failures."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin import InputError, Select, StreamJoin
from splitjoin.engines.device import PAIR
from splitjoin.sessions import Limit
from tests.support.sampling import examples
from tests.support.scenarios import SCENARIOS

FIXED = next(s for s in SCENARIOS if s.name == "band-range")
TEXT = ("SELECT t.x - q.a AS gap, q.b * 2, t.ts, q.* FROM trades t JOIN quotes q ON abs(t.x - q.a) <= 4 "
        "WHERE (t.x - q.a) * (t.x - q.a) + (t.y - q.b) * (t.y - q.b) <= 40 AND t.y <> 3 AND q.b < 18")


def prepared(text: str = TEXT, **how: Any) -> Select:
    how = {"window": FIXED.window, "time": FIXED.time} | how
    made: Select = splitjoin.sql(text, trades=FIXED.r.schema, quotes=FIXED.s.schema, **how)
    return made


def whole(text: str = TEXT, **how: Any) -> pa.Table:
    found: pa.Table = splitjoin.sql(text, trades=FIXED.r, quotes=FIXED.s, window=FIXED.window, time=FIXED.time,
                                    **how).table
    return found


def fed(session: StreamJoin, cuts: Sequence[int]) -> list[dict[str, Any]]:
    """The rows from both tables pushed by turns, in pieces of these sizes."""
    at, rows = {"r": 0, "s": 0}, []
    for n, cut in enumerate([*cuts, 10**6, 10**6]):
        side, table = (("r", FIXED.r), ("s", FIXED.s))[n % 2]
        piece = table.slice(at[side], cut)
        at[side] += len(piece)
        (session.push_r if side == "r" else session.push_s)(piece)
        rows += session.poll().to_pylist()
    return rows + session.flush().to_pylist()


@pytest.mark.parametrize("device", ["golden", "cpu"])
@settings(max_examples=examples(15))
@given(cuts=st.lists(st.integers(0, 40), max_size=6))
def test_streams_give_the_rows_of_the_tables(device: str, cuts: list[int]) -> None:
    want = whole()
    assert len(want) > 20
    with splitjoin.open(prepared(), device) as session:
        assert session.schema == want.schema
        assert fed(session, cuts) == want.to_pylist()


def test_streams_on_a_circuit() -> None:
    with splitjoin.open(prepared(), "pysim", cores=1, capacity=64) as session:
        assert fed(session, (7, 30, 11)) == whole(device="cpu").to_pylist()


def test_items_belong_to_the_rows() -> None:
    with splitjoin.open(prepared(), "golden", punctuation=True) as session:
        session.push_r(FIXED.r)
        session.push_s(FIXED.s)
        session.close_r()
        session.close_s()
        items, rows = session.poll_items()
    pairs = items[items["kind"] == PAIR]
    assert [row["ts_t"] for row in rows.to_pylist()] == FIXED.r.column("ts").take(pairs["r"]).to_pylist()


def test_only_what_is_needed_is_kept() -> None:
    text = "SELECT r.x, s.a + 1 AS n FROM trades r, quotes s WHERE r.x > s.a"
    with splitjoin.open(prepared(text), "cpu") as session:
        session.push_r(FIXED.r)
        session.push_s(FIXED.s)
        # ts (8 bytes), x and a (4 each, with a byte each where there is NULL); y and b stay behind.
        counted = session.counters()
        assert counted["retained_bytes"] <= 13 * (counted["retained_r"] + counted["retained_s"])


def test_a_value_that_does_not_fit_loses_nothing() -> None:
    r, s = pa.schema([("x", pa.int64())]), pa.schema([("a", pa.int64())])
    wrong = splitjoin.sql("SELECT x, a, x + a AS total FROM r, s", r=r, s=s, window="ROWS 9")
    right = splitjoin.sql("SELECT x, a, x / 2 + a / 2 AS half FROM r, s", r=r, s=s, window="ROWS 9")
    said = (r"the values of 'x \+ a' in the result must fit int64, but one is 9223372036854775808; select what it is "
            r"computed from, or make one of its columns a decimal or a float before the join")
    with splitjoin.open(wrong, "golden") as session:
        session.push_r(pa.table({"x": [1, 2**63 - 1]}))
        session.push_s(pa.table({"a": [1]}))
        for _ in range(2):
            with pytest.raises(InputError, match=said):
                session.poll()
        session.push_r(pa.table({"x": [3]}))
        with pytest.raises(InputError, match=said):
            session.flush()
        kept = session.snapshot()
    with splitjoin.open(right, "golden") as session:
        session.restore(kept)
        assert session.poll().to_pylist() == [{"x": 1, "a": 1, "half": 1.0}, {"x": 2**63 - 1, "a": 1, "half": 2.0**62},
                                              {"x": 3, "a": 1, "half": 2.0}]


def test_snapshots_and_limits() -> None:
    with splitjoin.open(prepared(), "cpu", limit=Limit(rows=5)) as session:
        session.push_r(FIXED.r)
        session.push_s(FIXED.s.slice(0, 30))
        kept = session.snapshot()
    with splitjoin.open(prepared(), "golden") as session:
        session.restore(kept)
        session.push_s(FIXED.s.slice(30))
        rows = session.poll().to_pylist()
        assert rows + session.flush().to_pylist() == whole().to_pylist()


def test_asyncio() -> None:
    async def run() -> list[dict[str, Any]]:
        async with splitjoin.open_async(prepared(), "golden") as session:
            await session.push_r(FIXED.r)
            await session.push_s(FIXED.s)
            return [*(await session.poll()).to_pylist(), *(await session.flush()).to_pylist()]

    assert asyncio.run(run()) == whole().to_pylist()
