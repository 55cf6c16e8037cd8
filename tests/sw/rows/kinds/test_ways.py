"""Every way to ask for a kind of join gives the reference's rows: `join`, SQL, sessions, the command line, circuits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import splitjoin
from splitjoin import SchemaError, StatementError
from splitjoin.base.errors import SnapshotError
from splitjoin.cli import DONE, main
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.device import Device
from splitjoin.engines.golden import GoldenDevice
from splitjoin.joins.join import join
from splitjoin.lang.query import Query
from splitjoin.rows import answers
from splitjoin.sessions import StreamJoin

from ....support.conformance import run
from ....support.deciding import decide
from ....support.kinds import KINDS
from ....support.sampling import at_length
from ....support.scenarios import SCENARIOS, Scenario

R = pa.table({"ts": [1, 4, 9], "x": [1, 2, 3], "tag": ["a", None, "c"]})
S = pa.table({"ts": [2, 4, 8], "a": [1, 2, 7]})


def case_of(name: str) -> Scenario:
    return next(case for case in SCENARIOS if case.name == name)


@pytest.mark.parametrize("name", [at_length("band-range"), "band-rows-17"])
def test_circuits_give_the_same_rows(name: str) -> None:
    from splitjoin_sim.device import SimDevice
    from splitjoin_sim.pysim import PysimDevice

    case = case_of(name)
    devices: list[Device] = [SimDevice(cores=3, capacity=64, fanin=3, lanes=2, probes=4, seed=0, stall_in=0.3,
                                       stall_out=0.3)]
    if name == "band-range":
        case = Scenario(name, case.r.slice(0, 25), case.s.slice(0, 20), case.on, case.window, 0, case.time)
        devices.append(PysimDevice(cores=2, capacity=64))
    for device in devices:
        items = run(device, case.query(), case.r, case.s)
        for kind in KINDS:
            if case.time is None and not kind.get("allow_exact", True):
                continue
            how = {"on": case.on, "window": case.window, "time": case.time, **kind}
            expected = join(case.r, case.s, device="golden", **how).items.tolist()
            query = splitjoin.query(case.r.schema, case.s.schema, **how)
            assert decide(query, arrivals(query, case.r, case.s), items).tolist() == expected
            if kind == {"how": "full"}:  # the whole way
                assert join(case.r, case.s, device=device, **how).items.tolist() == expected


def test_columns_and_their_fields() -> None:
    r = R.cast(pa.schema([pa.field("ts", pa.int64(), nullable=False), *list(R.schema)[1:]]))
    s = S.cast(pa.schema([pa.field("ts", pa.int64(), nullable=False), *list(S.schema)[1:]]))

    def joined(how: str, **more: Any) -> pa.Table:
        return splitjoin.join(r, s, on="r.x = s.a", window="RANGE 5", time="ts", how=how, **more)

    nullable = {how: tuple(joined(how).schema.field(name).nullable for name in ("ts_r", "ts_s"))
                for how in ("inner", "left", "right", "full", "asof", "asof_left")}
    assert nullable == {"inner": (False, False), "left": (False, True), "right": (True, False), "full": (True, True),
                        "asof": (False, False), "asof_left": (False, True)}
    assert joined("semi").column_names == joined("anti").column_names == ["ts", "x", "tag"]
    assert joined("full", select=["x", "a"]).to_pylist() == [
        {"x": 1, "a": 1}, {"x": 2, "a": 2}, {"x": None, "a": 7}, {"x": 3, "a": None}]
    with pytest.raises(SchemaError, match="has no column 'a'"):
        joined("semi", select=["a"])


def test_a_heartbeat_decides() -> None:
    query = splitjoin.query(R.schema, S.schema, on="r.x = s.a", window="RANGE 5", time="ts", how="left")
    with splitjoin.open(query) as session:
        session.push_r(R.slice(0, 1))
        session.heartbeat(6)
        assert len(session.poll()) == 0  # a tuple of S at time 6 could still come
        session.heartbeat(7)
        assert session.poll().to_pylist() == [{"ts_r": 1, "x": 1, "tag": "a", "ts_s": None, "a": None}]


@pytest.mark.parametrize("how", [at_length("left"), "full", at_length("anti"), "semi", "asof"])
def test_sessions_forget_what_is_decided(how: str) -> None:
    query = splitjoin.query(R.schema, S.schema, on="r.x = s.a", window=("RANGE 20", "RANGE 3"), time="ts", how=how)
    with splitjoin.open(query) as session:
        for n in range(300):
            session.push_r(pa.table({"ts": [n], "x": [n % 5], "tag": ["t"]}))
            session.push_s(pa.table({"ts": [n], "a": [n % 5]}))
            session.poll()
        counters = session.counters()
    assert counters["retained_r"] <= 22
    assert counters["retained_s"] <= (26 if how == "asof" else 5)


def test_snapshots_of_another_kind_are_refused() -> None:
    def opened(how: str) -> StreamJoin:
        return splitjoin.open(splitjoin.query(R.schema, S.schema, on="r.x = s.a", window="ROWS 5", how=how))

    with opened("left") as left, opened("inner") as inner, opened("anti") as anti:
        with pytest.raises(SnapshotError, match="its kind is left, and this session's is inner"):
            inner.restore(left.snapshot())
        with pytest.raises(SnapshotError, match="its kind is inner, and this session's is left"):
            left.restore(inner.snapshot())
        with pytest.raises(SnapshotError, match="its results is"):
            anti.restore(left.snapshot())


SQL: list[tuple[str, dict[str, Any]]] = [
    ("LEFT JOIN s ON x = a", {"how": "left"}), ("LEFT OUTER JOIN s ON x = a", {"how": "left"}),
    ("RIGHT JOIN s ON x = a", {"how": "right"}), ("FULL OUTER JOIN s ON x = a", {"how": "full"}),
    ("SEMI JOIN s ON x = a", {"how": "semi"}), ("LEFT SEMI JOIN s ON x = a", {"how": "semi"}),
    ("ANTI JOIN s ON x = a", {"how": "anti"}), ("LEFT ANTI JOIN s ON x = a", {"how": "anti"}),
    ("ASOF JOIN s ON x >= a AND r.ts >= s.ts", {"how": "asof", "on": "r.x >= s.a"}),
    ("ASOF JOIN s ON s.ts < r.ts", {"how": "asof", "on": "TRUE", "allow_exact": False}),
    ("ASOF LEFT JOIN s ON r.ts <= s.ts AND x >= a AND a > 0",
     {"how": "asof_left", "on": "r.x >= s.a AND s.a > 0", "direction": "forward"}),
    ("ASOF JOIN s MATCH_CONDITION (r.ts >= s.ts) ON x = a", {"how": "asof_left"}),
    ("ASOF JOIN s MATCH_CONDITION (s.ts > r.ts)",
     {"how": "asof_left", "on": "TRUE", "direction": "forward", "allow_exact": False}),
]


@pytest.mark.parametrize(("text", "kind"), SQL, ids=[text for text, _ in SQL])
def test_sql(text: str, kind: dict[str, Any]) -> None:
    how: dict[str, Any] = {"window": "RANGE 5", "time": "ts"}
    expected = splitjoin.join(R, S, **{"on": "r.x = s.a"} | kind, **how)
    statement = f"SELECT * FROM r {text}"
    assert splitjoin.sql(statement, r=R, s=S, **how).table == expected
    select = splitjoin.sql(statement, r=R.schema, s=S.schema, **how)
    assert f"kind             {select.query.kind}, decided on the host" in select.explain()
    with splitjoin.open(select) as session:
        session.push_r(R)
        session.push_s(S)
        assert pa.Table.from_batches([session.flush()]) == expected


def test_sql_takes_the_time_columns_from_the_comparison() -> None:
    text = "SELECT x, a IS NULL AS lacks, a + 1 AS more FROM r ASOF LEFT JOIN s ON r.ts > s.ts AND x = a"
    assert splitjoin.sql(text, r=R, s=S, window="RANGE 9").table.to_pylist() == [
        {"x": 1, "lacks": True, "more": None}, {"x": 2, "lacks": True, "more": None},
        {"x": 3, "lacks": True, "more": None}]


COMPARE = ("an ASOF JOIN needs one comparison of both tables' time columns by >=, >, <= or <, such as {}, in ON or in "
           "MATCH_CONDITION; {}")


@pytest.mark.parametrize(("text", "message"), [
    ("ASOF JOIN s ON x = a", COMPARE.format("r.ts >= s.ts", "there are 0 in ON")),
    ("ASOF JOIN s MATCH_CONDITION (r.ts >= 3) ON x = a",
     COMPARE.format("r.ts >= s.ts", "MATCH_CONDITION has (r.ts >= 3)")),
    ("ASOF JOIN s MATCH_CONDITION (-r.ts >= s.ts) ON x = a",
     COMPARE.format("r.ts >= s.ts", "MATCH_CONDITION has (-r.ts >= s.ts)")),
    ("JOIN s MATCH_CONDITION (r.ts >= s.ts) ON x = a",
     "MATCH_CONDITION compares the times of an ASOF JOIN; leave it out, or write ASOF JOIN"),
])
def test_refused_sql(text: str, message: str) -> None:
    with pytest.raises(StatementError) as raised:
        splitjoin.sql(f"SELECT x FROM r {text}", r=R, s=S, window="RANGE 5", time="ts")
    assert str(raised.value).split("\n")[0] == message


def test_semi_joins_give_no_column_of_the_second_table() -> None:
    with pytest.raises(StatementError, match=r"a SEMI JOIN gives columns of r only, not of s; leave this out"):
        splitjoin.sql("SELECT x, a FROM r SEMI JOIN s ON x = a", r=R, s=S, window="RANGE 5", time="ts")


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = {}
    for name, table in (("r", R), ("s", S)):
        paths[name] = str(tmp_path / f"{name}.parquet")
        pq.write_table(table, paths[name])
    out = str(tmp_path / "out.parquet")
    arguments = ["join", paths["r"], paths["s"], "--on", "r.x = s.a", "--window", "RANGE 5", "--time", "ts", "-o", out]
    options = {"--how": "asof_left", "--direction": "nearest"}
    assert main([*arguments, *(word for option in options.items() for word in option), "--no-exact"]) == DONE
    assert "rows                   3" in capsys.readouterr().out
    assert pq.read_table(out) == splitjoin.join(R, S, on="r.x = s.a", window="RANGE 5", time="ts", how="asof_left",
                                                direction="nearest", allow_exact=False)
    assert main([*arguments, "--how", "outer"]) != DONE
    assert "how must be 'inner', 'left'" in capsys.readouterr().err


def test_explain_names_the_kind() -> None:
    from splitjoin.joins.explain import explain

    query: Query = splitjoin.query(R.schema, S.schema, on="r.x = s.a", window="ROWS 5", how="asof", order="none")
    assert "kind        asof backward, decided on the host from pairs" in explain(query)
    assert run(GoldenDevice(), query.pairs, R, S).tolist()[-1][0] == 1  # in total order, with stars


def test_times_of_all_arrivals_are_forgotten_before_columns_take_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[Any]()
    made = answers.table_rows
    monkeypatch.setattr(answers, "table_rows", lambda query, incoming, found: seen.append(incoming) or made(
        query, incoming, found))
    found = join(R, S, on="r.x = s.a", how="anti", window="RANGE 5", time="ts")
    assert found.table["x"].to_pylist() == [3]
    (incoming,) = seen
    assert "ts" not in vars(incoming)
    assert incoming.ts.tolist() == [1, 2, 4, 4, 8, 9]  # found anew
