"""Snapshot joins: each row meets the version of a table, by key, as of its time (``FOR SYSTEM_TIME AS OF``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin.base.errors import OptionError, SchemaError, StatementError
from tests.support.sampling import examples

_ROWS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2), st.booleans()), max_size=12)
_JOIN = "JOIN s FOR SYSTEM_TIME AS OF r.ts AS v ON r.k = v.k"


def _tables(r: Any, s: Any) -> tuple[pa.Table, pa.Table]:
    times, keys, ended = zip(*sorted(s, key=lambda row: row[0]), strict=True) if s else ((), (), ())
    first = sorted(row[:2] for row in r)
    return (pa.table({"ts": pa.array([row[0] for row in first], pa.int64()),
                      "k": pa.array([row[1] for row in first], pa.int64())}),
            pa.table({"ts": pa.array(times, pa.int64()), "k": pa.array(keys, pa.int64()),
                      "v": pa.array(range(len(s)), pa.int64()), "ended": pa.array(ended, pa.bool_())}))


def _versions(r: pa.Table, s: pa.Table) -> list[tuple[int, int, int | None]]:
    """For each row of R its time, its key and the version of the key, None where there is none or it has ended."""
    found = list[tuple[int, int, int | None]]()
    for row in r.to_pylist():
        known = [one for one in s.to_pylist() if one["k"] == row["k"] and one["ts"] <= row["ts"]]
        found.append((row["ts"], row["k"], known[-1]["v"] if known and not known[-1]["ended"] else None))
    return found


@settings(max_examples=examples(40), deadline=None)
@given(_ROWS, _ROWS, st.sampled_from([{}, {"time": "ts"}, {"time": "ts", "device": "golden"}]))
def test_tables_meet_the_version_as_of_their_time(r_rows: Any, s_rows: Any, options: dict[str, Any]) -> None:
    r, s = _tables(r_rows, s_rows)
    want = sorted(_versions(r, s), key=repr)
    left = splitjoin.sql(f"SELECT r.ts, r.k, CASE WHEN NOT v.ended THEN v.v END AS v FROM r LEFT {_JOIN}", r=r, s=s,
                         **options)
    assert sorted((tuple(row.values()) for row in left.to_pylist()), key=repr) == want
    inner = splitjoin.sql(f"SELECT r.ts, r.k, v.v FROM r {_JOIN} WHERE NOT ended", r=r, s=s, **options)
    assert sorted((tuple(row.values()) for row in inner.to_pylist()), key=repr) == [
        row for row in want if row[2] is not None]
    for how in ("asof", "asof_left"):
        found = splitjoin.join(r, s, on="r.k = s.k", how=how, select=["r.ts", "r.k", "v"], order="left", ended="ended",
                               **{"time": "ts", **options})
        rows = [row for row in _versions(r, s) if how == "asof_left" or row[2] is not None]
        assert [tuple(row.values()) for row in found.to_pylist()] == rows
        assert [None if n < 0 else n for n in found.items["s"].tolist()] == [row[2] for row in rows]


@pytest.mark.parametrize("how", ["asof", "asof_left"])
def test_ended_versions_leave_files_too(how: str, tmp_path: Path) -> None:
    r, s = _tables([(n, n % 3) for n in range(9)], [(0, 0, False), (1, 1, None), (2, 2, False), (5, 2, True)])
    call: dict[str, Any] = {"on": "r.k = s.k", "time": "ts", "how": how, "ended": "s.ended", "select": ["ts_r", "v"]}
    stored = splitjoin.join(r, s, to=tmp_path / "rows.parquet", **call)
    assert stored.to_arrow() == splitjoin.join(r, s, **call).to_arrow()
    assert stored.to_pydict() == ({"ts_r": [0, 2, 3, 6], "v": [0, 2, 0, 0]} if how == "asof" else {
        "ts_r": [*range(9)], "v": [0, None, 2, 0, None, None, 0, None, None]})


def test_ended_belongs_to_joins_that_look_backward() -> None:
    r, s = _tables([], [])
    for options in ({"how": "left"}, {"how": "asof", "direction": "nearest"}, {"how": "asof", "k": 2}):
        with pytest.raises(OptionError, match="ended belongs to how='asof' and 'asof_left' that look backward"):
            splitjoin.join(r, s, on="r.k = s.k", time="ts", ended="ended", **options)
    with pytest.raises(SchemaError, match="must name a column of s of truth values, but 'k' is int64; cast it"):
        splitjoin.join(r, s, on="r.k = s.k", time="ts", how="asof", ended="k")
    with pytest.raises(OptionError, match="ended must be the name of a column of s, not 3"):
        splitjoin.join(r, s, on="r.k = s.k", time="ts", how="asof", ended=3)  # type: ignore[arg-type]  # on purpose


@settings(max_examples=examples(20), deadline=None)
@given(_ROWS, _ROWS, st.integers(0, 12))
def test_streams_meet_the_version_as_of_their_time(r_rows: Any, s_rows: Any, cut: int) -> None:
    r, s = _tables(r_rows, s_rows)
    select = splitjoin.sql(f"SELECT r.ts, r.k, CASE WHEN NOT v.ended THEN v.v END AS v FROM r LEFT {_JOIN}",
                           r=r.schema, s=s.schema, time="ts")
    with splitjoin.open(select, "golden") as session:
        session.push_s(s.slice(0, cut))
        session.push_r(r)
        found = session.poll().to_pylist()
        session.push_s(s.slice(cut))
        found += session.flush().to_pylist()
    assert sorted((tuple(row.values()) for row in found), key=repr) == sorted(_versions(r, s), key=repr)


def test_two_tables_of_versions() -> None:
    r, s = _tables([(5, 1, False)], [(1, 1, False), (4, 1, False), (6, 1, False)])
    text = f"SELECT v.v, w.v AS w FROM r {_JOIN} LEFT JOIN s FOR SYSTEM_TIME AS OF v.ts AS w ON w.k = r.k"
    assert splitjoin.sql(text, r=r, s=s).to_pylist() == [{"v": 1, "w": 1}]


@pytest.mark.parametrize("text", [
    "FROM r JOIN s FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-01' ON r.k = s.k", "FROM r, s FOR SYSTEM_TIME AS OF r.ts",
    "FROM r JOIN s FOR VERSION AS OF r.ts ON r.k = s.k", "FROM r FOR SYSTEM_TIME AS OF s.ts JOIN s ON r.k = s.k",
    "FROM r ASOF JOIN s FOR SYSTEM_TIME AS OF r.ts ON r.k = s.k",
    "FROM r JOIN s FOR SYSTEM_TIME AS OF ts ON r.k = s.k",
    *(f"FROM r {kind} JOIN s FOR SYSTEM_TIME AS OF r.ts ON r.k = s.k" for kind in ("RIGHT", "FULL", "SEMI", "ANTI"))])
def test_other_versions_are_refused(text: str) -> None:
    r, s = _tables([], [])
    with pytest.raises(StatementError, match="FOR SYSTEM_TIME AS OF stands behind a table"):
        splitjoin.sql(f"SELECT r.k {text}", r=r, s=s)


@pytest.mark.parametrize("text", [
    "FROM r JOIN s AT (TIMESTAMP => 5) ON r.k = s.k", "FROM r AT (VERSION => 5) JOIN s ON r.k = s.k",
    "FROM r JOIN s BEFORE (TIMESTAMP => 5) ON r.k = s.k", "FROM r JOIN s WITH ORDINALITY ON r.k = s.k",
    "FROM r JOIN ONLY s ON r.k = s.k", "FROM r JOIN s WITH (NOLOCK) ON r.k = s.k",
    "FROM r JOIN s CHANGES (INFORMATION => DEFAULT) AT (TIMESTAMP => 5) ON r.k = s.k",
    "FROM (SELECT * FROM r AT (VERSION => 5)) r JOIN s ON r.k = s.k"])
@pytest.mark.parametrize("streams", [False, True])
def test_what_no_table_has_here_is_refused(text: str, streams: bool) -> None:
    r, s = _tables([], [])
    tables = {"r": r.schema, "s": s.schema} if streams else {"r": r, "s": s}
    with pytest.raises(StatementError, match="what stands at this table is not supported, as AT"):
        splitjoin.sql(f"SELECT r.k {text}", **tables)
