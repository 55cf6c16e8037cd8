"""Left, semi, anti and as-of joins in any step of a join of several streams; `tests/machine` has random ones."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

import splitjoin
from splitjoin import PredicateError, StatementError
from splitjoin.engines.golden import GoldenDevice
from splitjoin.joins.sql import MultiwaySelect
from splitjoin.sessions import MultiwayJoin

from .test_multiway import SCHEMA

#: The condition of each stream's join.
ON = {"b": "a.v = b.v", "c": "c.v <= a.v", "d": "(d.v = b.v OR d.v > a.v)"}
WORDS = {"inner": "JOIN", "asof_left": "ASOF LEFT JOIN"}


def chain(kinds: list[str], ops: list[str]) -> str:
    """A statement of joins of these kinds."""
    there, text = ["a"], "FROM a"
    for name, kind, op in zip("bcd", kinds, ops, strict=False):
        on = ON[name] if name != "d" or "b" in there else "d.v > a.v"
        if kind.startswith("asof"):
            latest = "a.t" if there == ["a"] else f"greatest({', '.join(f'{n}.t' for n in there)})"
            on = f"a.v = {name}.v AND {latest} {op} {name}.t"
        text += f" {WORDS.get(kind, f'{kind.upper()} JOIN')} {name} ON {on}"
        there += [name] if kind not in ("semi", "anti") else []
    return f"SELECT {', '.join(f'{n}.t AS {n}t, {n}.v AS {n}v' for n in there)} {text}"


def made(text: str, names: str, lengths: list[int]) -> MultiwaySelect:
    windows = {name: f"RANGE {n}" for name, n in zip(names, lengths, strict=True)}
    found = splitjoin.sql(text, window=windows, time="t", tables=dict.fromkeys(names, SCHEMA))
    assert isinstance(found, MultiwaySelect)
    return found


@pytest.mark.parametrize("kinds", [["left", "inner", "inner"], ["anti", "left", "asof"], ["inner", "asof_left", "semi"],
                                   ["asof", "semi", "left"], ["left", "asof", "anti"]])
def test_duckdb_s_rows(kinds: list[str]) -> None:
    """Over windows that hold everything."""
    text = chain(kinds, [">=", ">", ">="])
    streams = {name: pa.table([[(3 * n + k) % 11 for n in range(12)], [(n * k + n // 3) % 3 for n in range(12)]],
                              schema=SCHEMA).sort_by("t") for k, name in enumerate("abcd", 1)}
    with duckdb.connect() as db, MultiwayJoin(select := made(text, "abcd", [99] * 4), [
            GoldenDevice() for _ in range(3)]) as session:
        for name, table in streams.items():
            db.register(name, table)
            session.push(name, table)
        rows = session.flush().to_pylist()
        wanted = db.sql(text).fetchall()
    assert sorted([tuple(row.values()) for row in rows], key=repr) == sorted(wanted, key=repr), select


@pytest.mark.parametrize(("kinds", "ops", "delays"), [
    (["asof", "semi", "left"], [">=", "", ""], [0, 5, 5]),
    (["inner", "asof_left", "semi"], ["", ">", ""], [None, 0, 5]),
    (["asof_left", "inner", "asof"], ["<=", "", ">"], [5, None, 0])])
def test_how_late_rows_of_a_step_may_come(kinds: list[str], ops: list[str], delays: list[int | None]) -> None:
    """Not at all where an as-of join looks back, and else by the shortest window."""
    select = made(chain(kinds, ops), "abcd", [5, 7, 11, 13])
    assert [step.delay for step, _ in select.steps] == delays


def test_a_heartbeat_of_a_silent_stream_lets_rows_go_on() -> None:
    """Rows without a partner wait for their windows alone."""
    select = made(chain(["left", "inner"], [">=", ">="]), "abc", [2, 2, 9])
    with splitjoin.open_multiway(select, "golden") as session:
        session.push("a", pa.table([[0, 1], [1, 1]], schema=SCHEMA))
        session.push("c", pa.table([[0, 4], [0, 1]], schema=SCHEMA))
        session.heartbeat(2)
        assert not len(session.poll())
        session.heartbeat(10)
        assert [tuple(row.values()) for row in session.poll().to_pylist()] == [
            (0, 1, None, None, 0, 0), (1, 1, None, None, 0, 0)], "c at 4 is too late for both"
        assert session.counters()["2_waiting"] < 2


def test_rows_wait_for_those_of_their_time_that_are_decided_later() -> None:
    """The row of a tuple of a without a partner comes first at its time, and is decided when b has passed it."""
    select = made(chain(["left", "inner"], [">=", ">="]), "abc", [2, 2, 9])
    with splitjoin.open_multiway(select, "golden") as session:
        session.push("a", pa.table([[4, 5], [1, 2]], schema=SCHEMA))
        session.push("b", pa.table([[5], [1]], schema=SCHEMA))
        session.push("c", pa.table([[1], [0]], schema=SCHEMA))
        session.heartbeat(7)
        found = session.poll().to_pylist()
        found += session.flush().to_pylist()
        assert [(row["at"], row["bt"]) for row in found] == [(5, None), (4, 5)]


def test_times_with_a_zone() -> None:
    schema = pa.schema([("t", pa.timestamp("us", "UTC")), ("v", pa.int64())])
    text = "SELECT a.v, b.v AS w, c.v AS x FROM a{} JOIN b ON a.v = b.v JOIN c ON a.v = c.v"
    table, whole = pa.table([[0, 3_000_000], [1, 2]], schema=schema), dict.fromkeys("abc", "RANGE 2 SECONDS")
    one = table.slice(1)
    for kind, rows in (("", [(2, 2, 2)]), (" LEFT", [(1, None, 1), (2, 2, 2)])):
        select = splitjoin.sql(text.format(kind), window=whole, time="t", tables=dict.fromkeys("abc", schema))
        assert isinstance(select, MultiwaySelect)
        with splitjoin.open_multiway(select, "golden") as session:
            for name, pushed in (("a", table), ("b", one), ("c", table)):
                session.push(name, pushed)
            assert [tuple(row.values()) for row in session.flush().to_pylist()] == rows
    tables = {"a": table, "b": one, "c": table}
    found = splitjoin.sql(text.format(""), window=whole, time="t", tables=tables)
    assert found.to_pylist() == [{"v": 2, "w": 2, "x": 2}]


@pytest.mark.parametrize(("text", "error", "said"), [
    ("SELECT a.t FROM a FULL JOIN b ON a.v = b.v JOIN c ON a.v = c.v", StatementError,
     "a join that is not INNER, LEFT, SEMI, ANTI or ASOF is not supported in a join of three"),
    ("SELECT a.t FROM a JOIN b ON a.v = b.v ASOF JOIN c ON a.v = c.v AND a.t >= c.t", PredicateError,
     r"compares the time of a row's latest tuple; write greatest\(a.t, b.t\) in place of a.t in 'a.t >= c.t'"),
    ("SELECT a.t FROM a JOIN b ON a.v = b.v ASOF JOIN c ON greatest(a.t, b.t, 5) >= c.t", PredicateError,
     r"write greatest\(a.t, b.t\) in place of GREATEST\(a.t, b.t, 5\)"),
    ("SELECT a.t FROM a SEMI JOIN b ON a.v = b.v ASOF JOIN c ON a.v >= c.t", PredicateError,
     "write a.t in place of a.v"),
    ("SELECT b.t FROM a SEMI JOIN b ON a.v = b.v JOIN c ON a.v = c.v", PredicateError,
     "'b.t' is of a table behind SEMI JOIN, which only chooses rows"),
    ("SELECT a.t FROM a ANTI JOIN b ON a.v = b.v JOIN c ON b.v = c.v", PredicateError, "behind ANTI JOIN"),
    ("SELECT b.* FROM a SEMI JOIN b ON a.v = b.v JOIN c ON a.v = c.v", PredicateError,
     r"'b.\*' is of a table behind SEMI JOIN"),
    ("SELECT a.t FROM a JOIN b ON a.v = b.v LEFT JOIN c ON a.v = c.v WHERE c.t > 3", PredicateError,
     "WHERE names c in 'c.t > 3', and no inner join stands behind it"),
    ("SELECT a.t FROM a LEFT JOIN b ON a.v = b.v LEFT JOIN c ON a.v = c.v WHERE a.v > 1", PredicateError,
     "WHERE names a in 'a.v > 1', and no inner join stands behind it"),
    ("SELECT a.t FROM a JOIN b ON a.v = b.v ASOF JOIN c ON a.v = c.v", StatementError,
     "an ASOF JOIN needs one comparison of both tables' time columns"),
])
def test_what_is_refused(text: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        made(text, "abc", [1, 1, 1])
