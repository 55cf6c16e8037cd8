"""`early=True`: rows of NULL at once, taken back when a partner comes; together they are the rows without it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import splitjoin
from splitjoin.base.errors import InputError, SchemaError, SnapshotError
from splitjoin.sessions import StreamJoin

from ...support.lagging import LaggingDevice

R = pa.schema([("ts", pa.int64()), ("x", pa.int64())])
S = pa.schema([("ts", pa.int64()), ("a", pa.int64())])


def made(how: str, **more: Any) -> splitjoin.Query:
    return splitjoin.query(R, S, **{"on": "r.x = s.a", "window": "RANGE 5", "time": "ts", "order": "none", "how": how,
                                    **more})


def step(session: StreamJoin, r: Sequence[tuple[int, int | None]] = (),
         s: Sequence[tuple[int, int]] = ()) -> list[tuple[Any, ...]]:
    """The rows after a push of tuples (time, value), their operation first."""
    session.push_r(pa.Table.from_pylist([{"ts": ts, "x": x} for ts, x in r], R))
    session.push_s(pa.Table.from_pylist([{"ts": ts, "a": a} for ts, a in s], S))
    return [(row.pop("operation"), *row.values()) for row in session.poll().to_pylist()]


def test_the_rows_of_a_left_join_step_by_step() -> None:
    with splitjoin.open(made("left"), early=True) as session:
        assert session.schema.names == ["ts_r", "x", "ts_s", "a", "operation"]
        assert step(session, r=[(10, 1), (10, 2), (11, None)]) == [
            ("+", 11, None, None, None), ("+", 10, 1, None, None), ("+", 10, 2, None, None)]
        assert step(session, s=[(8, 1), (9, 1)]) == [
            ("-", 10, 1, None, None), ("+", 10, 1, 8, 1), ("+", 10, 1, 9, 1)]
        assert step(session, s=[(12, 1)]) == [("+", 10, 1, 12, 1)]
        assert step(session, r=[(13, 1)]) == [("+", 13, 1, 8, 1), ("+", 13, 1, 9, 1), ("+", 13, 1, 12, 1)]
        assert step(session, s=[(40, 2)]) == []
        session.push_r(pa.Table.from_pylist([{"ts": 40, "x": 3}], R))
        assert session.flush().to_pylist() == [{"ts_r": 40, "x": 3, "ts_s": None, "a": None, "operation": "+"}]


def test_the_rows_of_an_anti_join_step_by_step() -> None:
    with splitjoin.open(made("anti"), early=True) as session:
        assert step(session, r=[(10, 1), (12, 2)]) == [("+", 10, 1), ("+", 12, 2)]
        assert step(session, s=[(11, 1), (12, 1)]) == [("-", 10, 1)]
        assert step(session, r=[(13, 1)]) == []


@pytest.mark.parametrize("device", ["cpu", "golden", LaggingDevice(3)], ids=["cpu", "golden", "lagging"])
@pytest.mark.parametrize("how", ["left", "right", "full", "anti"])
def test_early_rows_together_are_the_rows(how: str, device: Any) -> None:
    """In parts that are not in step, across snapshots and other devices; nothing is taken back that was not given."""
    for seed in range(6):
        chance = random.Random(seed)
        tables = [pa.table({"ts": np.sort(np.random.default_rng(seed).integers(0, 60, 40)),
                            name: [chance.choice([None, *range(6)]) for _ in range(40)]}) for name in ("x", "a")]
        tables = [table.cast(schema) for table, schema in zip(tables, (R, S), strict=True)]
        more = {"on": "r.x = s.a AND r.x <> 3", "window": {"r": "RANGE 5", "s": "RANGE 9"}}
        query, session, at = made(how, **more), None, [0, 0]
        session = splitjoin.open(query, device, early=True)
        given: Counter[tuple[Any, ...]] = Counter()
        while min(at) < 40:
            side = chance.choice([n for n in (0, 1) if at[n] < 40])
            size = chance.randint(1, 12)
            (session.push_s if side else session.push_r)(tables[side].slice(at[side], size))
            at[side] += size
            note(given, session.poll())
            if chance.random() < 0.2:
                moved = splitjoin.open(query, chance.choice(["cpu", "golden"]), early=True)
                moved.restore(session.snapshot())
                session.close()
                session = moved
            elif chance.random() < 0.2:
                session.restart(chance.choice(["cpu", "golden"]))
        note(given, session.flush())
        session.close()
        expected = splitjoin.join(*tables, how=how, time="ts", device="golden", **more).table
        assert +given == Counter(tuple(row.values()) for row in expected.to_pylist())


def note(given: Counter[tuple[Any, ...]], batch: pa.RecordBatch) -> None:
    for row in batch.to_pylist():
        given[tuple(row.values())[:-1]] += 1 if row["operation"] == "+" else -1
    assert min(given.values(), default=0) >= 0


def test_statements() -> None:
    text = "SELECT x * 2 AS twice, a FROM r LEFT JOIN s ON x = a"
    query = splitjoin.sql(text, r=R, s=S, window="RANGE 5", time="ts", order="none")
    with splitjoin.open(query, early=True) as session:
        assert step(session, r=[(1, 4)]) == [("+", 8, None)]
        assert step(session, s=[(2, 4)]) == [("-", 8, None), ("+", 8, 4)]


@pytest.mark.parametrize("query", [
    made("inner"), made("semi"), made("left", order="total"), made("left", window="ROWS 3"),
    made("asof", order="none"), made("left", by="r", aggregate={"n": "count(*)"})], ids=range(6))
def test_what_has_no_early_rows_is_refused(query: splitjoin.Query) -> None:
    with pytest.raises(InputError, match=r"early=True needs how='left', 'right', 'full' or 'anti' without aggregates"):
        splitjoin.open(query, early=True)


def test_a_column_of_the_same_name_is_refused() -> None:
    r = pa.schema([*R, ("operation", pa.string())])
    query = splitjoin.query(r, S, on="r.x = s.a", window="RANGE 5", time="ts", order="none", how="anti")
    with pytest.raises(SchemaError, match="early=True adds the column 'operation'"):
        splitjoin.open(query, early=True)
    splitjoin.open(query, early=True, select=["x"]).close()


def test_snapshots_without_early_rows_are_refused() -> None:
    with (splitjoin.open(made("left")) as one, splitjoin.open(made("left"), early=True) as other,
          pytest.raises(SnapshotError, match="its results is")):
        other.restore(one.snapshot())
