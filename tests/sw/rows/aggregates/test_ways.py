"""Every way to ask for aggregates gives the reference's rows, and what cannot be is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import splitjoin
from splitjoin import InputError, OrderError, PredicateError, SchemaError, StatementError
from splitjoin.base.errors import SnapshotError, UnsupportedError
from splitjoin.cli import DONE, main
from splitjoin.engines.golden import GoldenDevice
from splitjoin.sessions import StreamJoin

from ....support.scenarios import SCENARIOS

R = pa.table({"ts": [1, 4, 9, 20], "x": [1, 2, 3, 4]})
S = pa.table({"ts": [2, 4, 8, 9], "a": [1.5, 2.5, None, 8.0]})
AGGREGATES = {"n": "count(*)", "mean": "avg(s.a)", "high": "max(s.a + r.x)"}
HOW: dict[str, Any] = {"on": "TRUE", "window": "RANGE 5", "time": "ts"}
ROWS = [{"ts": 1, "x": 1, "n": 2, "mean": 2.0, "high": 3.5}, {"ts": 4, "x": 2, "n": 4, "mean": 4.0, "high": 10.0},
        {"ts": 9, "x": 3, "n": 3, "mean": 5.25, "high": 11.0}]
LONE = {"ts": 20, "x": 4, "n": 0, "mean": None, "high": None}


def test_join() -> None:
    for device in ("cpu", "golden"):
        for by in (None, "r"):
            made = splitjoin.join(R, S, **HOW, aggregate=AGGREGATES, by=by, device=device)
            assert made.to_pylist() == ROWS
            assert splitjoin.join(R, S, **HOW, aggregate=AGGREGATES, how="left", device=device).to_pylist() == [
                *ROWS, LONE]
    assert made.schema == pa.schema([*R.schema, pa.field("n", pa.int64(), nullable=False), ("mean", pa.float64()),
                                     ("high", pa.float64())])
    assert splitjoin.join(R, S, **HOW, aggregate={"n": "count(*)"}, select=["x"]).column_names == ["x", "n"]


def test_aggregates_alone() -> None:
    """Without a column of r, in joins, sessions and unsorted sessions alike."""
    wanted = splitjoin.join(R, S, **HOW, aggregate=AGGREGATES, select=[])
    assert wanted.to_pylist() == [{name: row[name] for name in AGGREGATES} for row in ROWS]
    made = splitjoin.query(R.schema, S.schema, **HOW, aggregate=AGGREGATES)
    for device in ("cpu", "golden"):
        with splitjoin.open(made, device, select=[]) as session:
            session.push_r(R)
            session.push_s(S)
            assert pa.Table.from_batches([session.flush()]) == wanted.to_arrow()
    counted = splitjoin.query(R.schema, S.schema, **HOW | {"on": "r.x = s.ts"}, aggregate={"n": "count(*)"})
    with splitjoin.open_unsorted(counted, lateness=9, select=[]) as unsorted:
        unsorted.push_r(R)
        unsorted.push_s(S)
        assert unsorted.flush().to_pydict() == {"n": [1]}


def test_circuits() -> None:
    from splitjoin_sim.pysim import PysimDevice

    case = next(c for c in SCENARIOS if c.name == "band-range")
    how: dict[str, Any] = {"on": case.on, "window": case.window, "time": case.time, "how": "left", "by": "r",
                           "aggregate": {"n": "count(*)", "last": "last(s.b)", "total": "sum(s.a * r.y)"}}
    r, s = case.r.slice(0, 25), case.s.slice(0, 20)
    assert splitjoin.join(r, s, **how, device=PysimDevice(cores=2, capacity=64)) == splitjoin.join(
        r, s, **how, device="golden")


def test_sessions_forget_what_is_decided() -> None:
    query = splitjoin.query(R.schema, S.schema, on="TRUE", window=("RANGE 20", "RANGE 3"), time="ts",
                            aggregate={"n": "count(*)"})
    with splitjoin.open(query) as session:
        counts = []
        for n in range(200):
            session.push_r(pa.table({"ts": [n], "x": [n]}))
            session.push_s(pa.table({"ts": [n], "a": [0.0]}))
            counts += session.poll()["n"].to_pylist()
        counters = session.counters()
        assert len(session.snapshot()) < 30_000
    assert set(counts[5:]) == {24}  # 3 before, one at its time, 20 behind
    assert counters["retained_r"] <= 22
    assert counters["retained_s"] <= 26


def test_snapshots_of_other_aggregates_are_refused() -> None:
    def opened(**more: Any) -> StreamJoin:
        return splitjoin.open(splitjoin.query(R.schema, S.schema, on="TRUE", window="ROWS 5", **more))

    with opened(aggregate={"n": "count(*)"}) as one, opened(aggregate={"n": "count(s.a)"}) as two:
        with pytest.raises(SnapshotError, match=r"aggregates is n count\(\), and this session's is n count\(s\.a\)"):
            two.restore(one.snapshot())
        two.restore(two.snapshot())


@pytest.mark.parametrize(("kind", "rows"), [("JOIN", ROWS), ("LEFT JOIN", [*ROWS, LONE])])
def test_sql(kind: str, rows: list[dict[str, Any]]) -> None:
    text = f"SELECT r.*, count(*) n, avg(s.a) AS mean, (max(a + x)) high FROM r {kind} s ON TRUE GROUP BY r"
    how = {"window": "RANGE 5", "time": "ts"}
    rows = [{**row, "n": max(row["n"], 1)} for row in rows]  # SQL counts the row of NULL
    assert splitjoin.sql(text, r=R, s=S, **how).table.to_pylist() == rows
    select = splitjoin.sql(text, r=R.schema, s=S.schema, **how)
    assert "mean: double = avg(s.a), folded for each tuple of r" in select.explain()
    with splitjoin.open(select) as session:
        session.push_s(S)
        session.push_r(R)
        assert session.flush().to_pylist() == rows


def test_sql_computes_values_of_base_tuples() -> None:
    text = "SELECT count(DISTINCT a), x * 2 AS y, * FROM r JOIN s ON x < a WHERE s.ts > 2 GROUP BY r"
    assert splitjoin.sql(text, r=R, s=S, window="RANGE 5", time="ts").table.to_pylist() == [
        {"count(DISTINCT a)": 1, "y": 2, "ts": 1, "x": 1}, {"count(DISTINCT a)": 2, "y": 4, "ts": 4, "x": 2},
        {"count(DISTINCT a)": 1, "y": 6, "ts": 9, "x": 3}]


@pytest.mark.parametrize(("text", "error", "message"), [
    ("SELECT x, |a|, count(*) FROM r JOIN s ON TRUE GROUP BY r", StatementError,
     "GROUP BY r gives columns of r only, not of s; leave this out, or write an aggregate of it"),
    ("SELECT x FROM r JOIN s ON TRUE GROUP BY r", StatementError,
     "a SELECT with GROUP BY r needs an aggregate, such as count(*)"),
    ("SELECT count(*) FROM r JOIN s ON TRUE |GROUP BY| s", StatementError,
     "GROUP BY s is not supported in a SELECT over streams: it must name the first table, r, for a row for each of its "
     "tuples"),
    ("SELECT |sum(x > 1)| FROM r JOIN s ON TRUE GROUP BY r", PredicateError,
     "'sum(x > 1)': sum needs numbers or durations, but this is bool"),
    ("SELECT |count(DISTINCT x, a)| FROM r JOIN s ON TRUE GROUP BY r", PredicateError,
     "'count(DISTINCT x, a)': DISTINCT belongs to count, sum, avg, median and string_agg, of one value; leave it "
     "out"),
    ("SELECT count(*) FROM r SEMI JOIN s ON TRUE GROUP BY r", InputError,
     "aggregates need how='inner', without rows for tuples that meet nothing, or 'left', with them, not 'semi'"),
])
def test_refused_sql(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        splitjoin.sql(text.replace("|", ""), r=R.schema, s=S.schema, window="RANGE 5", time="ts")
    lines = str(raised.value).split("\n")
    assert lines[0] == message
    if "|" in text:
        begin, end = text.index("|"), text.rindex("|") - 1
        assert lines[2].removeprefix("    ") == " " * begin + "^" * (end - begin)


@pytest.mark.parametrize(("given_", "error", "message"), [
    ({"by": "r"}, InputError, "by='r' belongs to aggregate; give both, such as by='r', aggregate={'n': 'count(*)'}"),
    ({"aggregate": AGGREGATES, "by": "s"}, InputError,
     "by must be 'r', the stream whose tuples get a row each, not 's'; whole tables also take a list "
     "of its columns, and to aggregate by s, give the tables the other "
     "way round"),
    ({"aggregate": AGGREGATES, "select": ["x", "n"]}, SchemaError,
     "select chooses columns of r, and all aggregates follow them; leave 'n' out of select"),
    ({"aggregate": {}}, InputError,
     "aggregate must be a mapping of names to aggregates, such as {'n': 'count(*)'}, not {}"),
    ({"aggregate": {"n": 3}}, InputError,
     "aggregate must have texts for names and aggregates, such as {'n': 'count(*)'}, or calls of classes under "
     "@splitjoin.aggregate, but it has 'n': 3"),
    ({"aggregate": {"x": "count(*)"}}, SchemaError,
     "an aggregate must not have the name of a column of r, but 'x' has; give it another name, or choose columns of r "
     "with select"),
    ({"aggregate": AGGREGATES, "order": "outer(2)"}, OrderError,
     "aggregates need order 'total' or 'none', not 'outer(2)': a row that waits for the last partner belongs to no "
     "probe"),
    ({"aggregate": {"n": "s.a"}}, PredicateError,
     "'s.a' is no aggregate; write one of count(*), count(x), count(DISTINCT x), sum(x), avg(x), min(x), max(x), "
     "first(x), last(x), argmin(x, by), argmax(x, by), stddev_samp(x), stddev_pop(x), var_samp(x), var_pop(x), "
     "bool_and(x), bool_or(x), bit_and(x), bit_or(x), bit_xor(x), median(x), quantile(x, q), mode(x), "
     "product(x), string_agg(x, ', ') and list(x)"),
])
def test_refused(given_: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        splitjoin.join(R, S, **HOW | given_)
    assert str(raised.value).split("\n")[0] == message


def test_devices_refuse_aggregates() -> None:
    query = splitjoin.query(R.schema, S.schema, on="TRUE", window="ROWS 5", aggregate={"n": "count(*)"})
    with pytest.raises(UnsupportedError, match="but the query has aggregates"):
        GoldenDevice().open(query)


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = {}
    for name, table in (("r", R), ("s", S)):
        paths[name] = str(tmp_path / f"{name}.parquet")
        pq.write_table(table, paths[name])
    out = str(tmp_path / "out.parquet")
    arguments = ["join", paths["r"], paths["s"], "--on", "TRUE", "--window", "RANGE 5", "--time", "ts", "-o", out]
    aggregates = [word for name, text in AGGREGATES.items() for word in ("--aggregate", f"{name}={text}")]
    assert main([*arguments, "--how", "left", *aggregates]) == DONE
    assert "rows                   4" in capsys.readouterr().out
    assert pq.read_table(out).to_pylist() == [*ROWS, LONE]
    assert main([*arguments, "--aggregate", "count(*)"]) != DONE
    assert "an aggregate must be given as NAME=AGG" in capsys.readouterr().err
