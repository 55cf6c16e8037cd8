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
from ...support.sampling import at_length

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


def test_the_rows_of_an_as_of_join_step_by_step() -> None:
    with splitjoin.open(made("asof_left"), early=True) as session:
        assert step(session, r=[(10, 1), (10, 2), (11, None)]) == [
            ("+", 11, None, None, None), ("+", 10, 1, None, None), ("+", 10, 2, None, None)]
        assert step(session, s=[(8, 1)]) == [("-", 10, 1, None, None), ("+", 10, 1, 8, 1)]
        assert step(session, s=[(9, 1), (11, 2)]) == [("-", 10, 1, 8, 1), ("+", 10, 1, 9, 1)]
        assert step(session, r=[(13, 1)]) == [("+", 13, 1, 9, 1)]
    with splitjoin.open(made("asof", direction="nearest"), early=True) as session:
        assert step(session, r=[(10, 1)]) == []
        assert step(session, s=[(7, 1)]) == [("+", 10, 1, 7, 1)]
        assert step(session, s=[(12, 1)]) == [("-", 10, 1, 7, 1), ("+", 10, 1, 12, 1)]
        assert session.counters()["retained_r"] == 0  # decided


def test_the_rows_of_aggregates_step_by_step() -> None:
    query = made("left", aggregate={"n": "count(*)", "all": "list(s.ts)"})
    with splitjoin.open(query, early=True) as session:
        assert session.schema.names == ["ts", "x", "n", "all", "operation"]
        assert step(session, r=[(10, 1), (10, None)]) == [("+", 10, None, 0, None), ("+", 10, 1, 0, None)]
        assert step(session, s=[(8, 1), (9, 1)]) == [("-", 10, 1, 0, None), ("+", 10, 1, 2, [8, 9])]
        assert step(session, s=[(9, 1), (9, 2)]) == [("-", 10, 1, 2, [8, 9]), ("+", 10, 1, 3, [8, 9, 9])]
        assert step(session, s=[(16, 1)]) == []
        assert (session.counters()["retained_r"], session.counters()["unread_rows"]) == (0, 0)


AS_OF = [{"how": how, "direction": direction, "allow_exact": exact} for how in ("asof", "asof_left")
         for direction in ("backward", "forward", "nearest") for exact in (True, False)]
AGGREGATES = [{"how": how, "aggregate": {"n": "count(*)", "sum": "sum(s.a)", "all": "list(s.ts)", "f": "first(s.ts)"}}
              for how in ("inner", "left")]
EARLY: list[dict[str, Any]] = [*({"how": how} for how in ("left", "right", "full", "anti")), *AS_OF, *AGGREGATES]


@pytest.mark.parametrize("device", ["cpu", at_length("golden"), LaggingDevice(3)], ids=["cpu", "golden", "lagging"])
@pytest.mark.parametrize("kind", EARLY, ids=lambda kind: "-".join(map(str, kind.values())) if "aggregate" not in kind
                         else f"{kind['how']}-aggregates")
def test_early_rows_together_are_the_rows(kind: dict[str, Any], device: Any) -> None:
    """In parts that are not in step, across snapshots and other devices; nothing is taken back that was not given."""
    for seed in range(6 if len(kind) == 1 else 2):
        chance = random.Random(seed)
        tables = [pa.table({"ts": np.sort(np.random.default_rng(seed).integers(0, 60, 40)),
                            name: [chance.choice([None, *range(6)]) for _ in range(40)]}) for name in ("x", "a")]
        tables = [table.cast(schema) for table, schema in zip(tables, (R, S), strict=True)]
        more = {"on": "r.x = s.a AND r.x <> 3", "window": {"r": "RANGE 5", "s": "RANGE 9"}}
        query, session, at = made(**kind, **more), None, [0, 0]
        session = splitjoin.open(query, device, early=True)
        given: Counter[str] = Counter()
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
        expected = splitjoin.join(*tables, time="ts", device="golden", **kind, **more).table
        assert +given == Counter(str(list(row.values())) for row in expected.to_pylist())


def note(given: Counter[str], batch: pa.RecordBatch) -> None:
    for row in batch.to_pylist():
        given[str(list(row.values())[:-1])] += 1 if row["operation"] == "+" else -1
    assert min(given.values(), default=0) >= 0


def test_statements() -> None:
    text = "SELECT x * 2 AS twice, a FROM r LEFT JOIN s ON x = a"
    query = splitjoin.sql(text, r=R, s=S, window="RANGE 5", time="ts", order="none")
    with splitjoin.open(query, early=True) as session:
        assert step(session, r=[(1, 4)]) == [("+", 8, None)]
        assert step(session, s=[(2, 4)]) == [("-", 8, None), ("+", 8, 4)]


@pytest.mark.parametrize("query", [
    made("inner"), made("semi"), made("left", order="total"), made("left", window="ROWS 3"),
    made("asof", window=("ROWS 3", "RANGE 5")), made("left", order="total", aggregate={"n": "count(*)"})], ids=range(6))
def test_what_has_no_early_rows_is_refused(query: splitjoin.Query) -> None:
    with pytest.raises(InputError, match="early=True needs aggregates or a join whose rows may change"):
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
