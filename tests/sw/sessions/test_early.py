"""`early=True`: rows of NULL at once, taken back when a partner comes; `tests/machine` has random ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

import splitjoin
from splitjoin.base.errors import InputError, SchemaError, SnapshotError
from splitjoin.rows.kinds import UnorderedKindOperator
from splitjoin.sessions import StreamJoin

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


@pytest.mark.parametrize("how", ["left", "right", "full", "anti"])
def test_what_a_session_took_back_is_not_taken_back_again(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    state = UnorderedKindOperator.state

    def older(operator: UnorderedKindOperator) -> dict[str, Any]:
        found = state(operator)
        return found | {f"{side}_given": found[f"{side}_given"] | found[f"{side}_matched"]
                        for side in "rs" if f"{side}_given" in found}

    monkeypatch.setattr(UnorderedKindOperator, "state", older)
    with splitjoin.open(made(how), early=True) as session:
        taken = [step(session, r=[(10, 1)]), step(session, s=[(9, 1)])]
        saved = session.snapshot()
    assert any(op == "+" for rows in taken for op, *_ in rows)
    with splitjoin.open(made(how), early=True) as session:
        session.restore(saved)
        assert session.flush().to_pylist() == []


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
