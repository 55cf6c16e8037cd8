"""Terms of one stream beyond the language, which DuckDB computes once per tuple: in joins, sessions and circuits."""

from __future__ import annotations

import datetime as dt
import importlib
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin import DeviceError, InputError, PredicateError
from splitjoin.joins.explain import explain
from splitjoin.joins.sql.database import close_idle
from tests.support.sampling import examples

R = pa.table({"ts": [1, 2, 3, 4, 5, 6], "x": [1, 2, 3, None, 5, 6], "word": ["Abc", "bcd", None, "ab", " x ", "Éa"],
              "at": [dt.datetime(2020, 1 + n, 28, 3 * n, n) for n in range(6)],
              "day": [dt.date(2020, 2, 25 + n % 4) for n in range(6)], "lat": [0.5 * n for n in range(6)],
              "tags": [["a"], ["b", "c"], [], None, ["a"], ["d"]]})
S = pa.table({"ts": [1, 2, 3, 4, 5, 6], "a": [3, 1, 2, 6, None, 4], "name": ["ABC", "ab", "Ab", None, "x", "éA"],
              "due": [dt.datetime(2020, 2 + n, 28, n, 3 * n) for n in range(6)],
              "end": [dt.date(2020, 2, 27)] * 6, "lon": [0.25 * n for n in range(6)]})

#: Conditions that a user of SQL writes.
CONDITIONS = [
    "lower(r.word) = lower(s.name)", "upper(word) = upper(name) AND r.x <= s.a", "trim(r.word) = s.name",
    "substring(r.word, 1, 2) = s.name", "r.word[1] = s.name[1]", "length(r.word) = s.a",
    "r.word || 'c' = s.name || 'c'",
    "replace(r.word, 'c', '') = s.name", "concat(r.word, r.x) = concat(s.name, s.a) OR r.x = s.a",
    "r.word ILIKE '%B%' AND s.name ILIKE 'a%'", "regexp_matches(r.word, '^[Ab]') AND r.x < s.a",
    "EXTRACT(month FROM r.at) = EXTRACT(month FROM s.due)", "year(r.at) = year(s.due) AND hour(r.at) < 9",
    "r.at + INTERVAL 1 MONTH = s.due OR r.x = s.a", "r.day + INTERVAL 2 DAY <= s.end::TIMESTAMP",
    "r.at::DATE < s.due::DATE",
    "r.at >= DATE '2020-03-01' AND r.x = s.a", "strftime(r.at, '%m') = strftime(s.due, '%m')",
    "sin(r.lat) <= cos(s.lon)", "r.lat * 2 = s.a AND radians(s.lon) < 1", "ln(r.x) < s.a", "power(r.x, 2) = s.a",
    "abs(length(r.word) - s.a) <= 1 AND r.x IS NOT NULL", "list_contains(r.tags, 'a') AND r.x >= s.a",
    "r.word SIMILAR TO '[a-c]+' AND r.x <> s.a", "CASE WHEN length(r.word) > 2 THEN r.x ELSE 0 END < s.a",
    "md5(lower(r.word)) = md5(lower(s.name))", "starts_with(lower(r.word), lower('AB')) AND s.a > 1",
    "starts_with(lower(r.word), lower(s.name)) OR r.x = s.a", "NOT starts_with(s.name, r.word) AND s.a > 1",
]


@pytest.mark.parametrize("on", CONDITIONS, ids=[str(n) for n in range(len(CONDITIONS))])
def test_as_duckdb_has_them(on: str) -> None:
    r, s = R.append_column("n", pa.array(range(6))), S.append_column("m", pa.array(range(6)))
    want = duckdb.sql(f"SELECT n, m FROM r JOIN s ON {on} ORDER BY n, m").to_arrow_table().to_pylist()
    for device in ("cpu", "golden"):
        found = splitjoin.join(r, s, on=on, order="left", select=["n", "m"], device=device)
        assert found.to_pylist() == want
    assert splitjoin.join(r, s, on=on).column_names == [
        "ts_r", *R.column_names[1:], "n", "ts_s", *S.column_names[1:], "m"]  # and no computed ones
    query = splitjoin.query(r.schema, s.schema, on=on, window="ROWS 9", time="ts")
    with splitjoin.open(query, "golden", select=["n", "m"]) as session:
        for n in range(0, 6, 2):
            session.push_r(r.slice(n, 2))
            session.push_s(s.slice(n, 2))
        rows = session.flush().to_pylist()
    assert rows == splitjoin.join(r, s, on=on, time="ts", device="golden", select=["n", "m"]).to_pylist()


CHARACTERS = st.text(st.sampled_from("ab\x7f\x80\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff"), max_size=3)


@settings(max_examples=examples(30))
@given(st.lists(st.none() | CHARACTERS, max_size=6), st.lists(st.none() | CHARACTERS, max_size=6))
def test_beginnings_of_any_characters(texts: list[str | None], beginnings: list[str | None]) -> None:
    r, s = (pa.table({"n": range(len(of)), "t": pa.array(of, pa.string())}) for of in (texts, beginnings))
    for on in ("starts_with(r.t, s.t)", "NOT starts_with(r.t, s.t)"):
        found = splitjoin.join(r, s, on=on, device="golden", order="left", select=["r.n", "s.n"]).to_pylist()
        assert found == [{"n_r": n, "n_s": m} for n, text in enumerate(texts) for m, begin in enumerate(beginnings)
                         if text is not None and begin is not None and text.startswith(begin) is (on[0] == "s")]


def test_an_operator_that_duckdb_has_otherwise_keeps_its_meaning() -> None:
    r, s = pa.table({"x": [3], "y": [4], "k": ["a"]}), pa.table({"a": [1, 9, 7, 81]})
    for on, want in [("r.x ^ 2 = s.a AND upper(r.k) = 'A'", 1), ("lower(r.k) = 'a' AND r.x ^ r.y = s.a", 7)]:
        assert splitjoin.join(r, s, on=on, select=["a"], device="golden").to_pylist() == [{"a": want}]


def test_sessions_move_and_keep_late_rows() -> None:
    query = splitjoin.query(R.schema, S.schema, on="lower(r.word) = lower(s.name)", window="RANGE 9", time="ts")
    with splitjoin.open(query, lateness=0) as first:
        first.push_r(R.slice(0, 4))
        first.push_s(S.slice(0, 3))
        first.push_r(R.slice(0, 1))
        early = first.poll().to_pylist()
        snapshot = first.snapshot()
        assert first.late_r().equals(R.slice(0, 1))  # as they were given
    with splitjoin.open(query, "golden", lateness=0) as second:
        second.restore(snapshot)
        second.push_r(R.slice(4))
        second.push_s(S.slice(3))
        rows = early + second.flush().to_pylist()
    assert rows == splitjoin.join(R, S, on="lower(r.word) = lower(s.name)", window="RANGE 9", time="ts").to_pylist()


def test_a_select_over_streams() -> None:
    text = ("SELECT left_one.*, a + 1 AS more FROM left_one, right_one t WHERE lower(word) = lower(t.name) "
            "AND (t.a > 1 OR length(t.name) < 9) AND left_one.x < 9")
    made = splitjoin.sql(text, left_one=R.schema, right_one=S.schema, window="RANGE 9", time="ts")
    assert made.schema.names == [*R.column_names, "more"]
    with splitjoin.open(made) as session:
        session.push_r(R)
        session.push_s(S)
        rows = session.flush().to_pylist()
    assert rows == splitjoin.sql(text, left_one=R, right_one=S, window="RANGE 9", time="ts").to_pylist()
    assert len(rows) > 1
    with pytest.raises(PredicateError, match=r"(?s)LEVENSHTEIN is not supported in WHERE.*\n.*levenshtein.*\n +\^"):
        splitjoin.sql("SELECT x FROM r, s WHERE levenshtein(word, name) < 2", r=R.schema, s=S.schema, window="RANGE 9",
                      time="ts")


def test_shared_streams() -> None:
    on = "lower(r.word) = lower(s.name)"
    whole = splitjoin.join(R, S, on=on, window="RANGE 9", time="ts").to_pylist()
    with splitjoin.share(R.schema, S.schema, time="ts", retain="RANGE 9") as streams:
        queries = [streams.query(on=on, window="RANGE 9"),
                   streams.sql(f"SELECT r.x, s.a FROM r JOIN s ON {on}", window="RANGE 9"),
                   streams.query(on="CAST(word AS BIGINT) = s.a", window="RANGE 9")]
        streams.push_r(R.slice(0, 3))
        streams.push_s(S.slice(0, 3))
        late = streams.query(on=on, window="RANGE 9", history=True)
        streams.push_r(R.slice(3))
        streams.push_s(S.slice(3))
        for kind in (InputError, DeviceError):  # which has failed since; it is no other query's failure
            with pytest.raises(kind, match="gives no rows: Conversion Error"):
                queries[2].poll()
        streams.close_r()
        streams.close_s()
        rows, listed, newer = (query.flush().to_pylist() for query in (*queries[:2], late))
    assert rows == whole
    assert listed == [{"x": row["x"], "a": row["a"]} for row in whole]
    assert newer == [row for row in whole if max(row["ts_r"], row["ts_s"]) > 2]


def test_explained_and_simulated() -> None:
    query = splitjoin.query(R.schema, S.schema, on="length(r.word) = s.a AND s.name ILIKE 'a%'", window="ROWS 4")
    assert "length(r.word)" in explain(query).lower()
    devices: list[dict[str, Any]] = [{"device": "golden"}, {"device": "pysim", "cores": 1, "capacity": 4}]
    found = [splitjoin.join(R[:3], S[:3], on="length(r.word) = s.a", window="ROWS 4", **device).to_pylist()
             for device in devices]
    assert found[0] == found[1]


REFUSED = [
    ("r.word || s.name = 'ab'", "concatenation"), ("random() < r.x AND r.x = s.a", "random"),
    ("frobnicate(r.x) = s.a", "frobnicate"), ("lower(r.word) = lower(s.nam)", "has no column 'nam'"),
    ("sin(r.lat - s.lon) < 1", "sin"), ("r.x IN (SELECT 1)", "how='semi' gives the rows of r that have a partner"),
    ("r.x = 'text' AND r.x = s.a", "int64 and string cannot be compared"),
]


@pytest.mark.parametrize(("on", "word"), REFUSED, ids=[str(n) for n in range(len(REFUSED))])
def test_refused_as_before(on: str, word: str) -> None:
    with pytest.raises((PredicateError, splitjoin.SchemaError), match=f"(?i){word}"):
        splitjoin.join(R, S, on=on)


def test_nested_too_deeply() -> None:
    deep = "(" * 3000 + "s.a" + ")" * 3000
    for given_ in {"on": f"r.x = {deep}"}, {"on": "r.x = s.a", "aggregate": {"n": f"sum({deep})"}}:
        with pytest.raises(PredicateError, match="must not be nested more than 100 levels deep"):
            splitjoin.join(R, S, **given_)  # type: ignore[arg-type]  # either has texts


def test_a_value_without_result() -> None:
    with pytest.raises(InputError, match=r"DuckDB, which computes .* gives no rows: Conversion Error"):
        splitjoin.join(R, S, on="CAST(r.word AS BIGINT) = s.a")


def test_without_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def missing(name: str, package: str | None = None) -> Any:
        if name == "duckdb":
            raise ModuleNotFoundError("no module", name="duckdb")
        return real(name, package)

    close_idle()  # the database that a process keeps
    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(PredicateError, match=r"(?s)ln\(r\.x\).* or install DuckDB, which computes"):
        splitjoin.join(R, S, on="ln(r.x) < s.a")


def test_what_duckdb_refuses_too_is_told_in_its_words() -> None:
    with pytest.raises(PredicateError) as raised:
        splitjoin.join({"k": ["a"]}, {"w": ["a"]}, on="lowr(r.k) = s.w")
    assert str(raised.value).split("\n")[0] == (
        "'lowr(r.k)': function LOWR is not supported in a condition; DuckDB, which computes other functions, says: "
        "Scalar Function with name lowr does not exist! (did you mean 'lower'?)")


@pytest.mark.parametrize(("on", "message"), [
    ("levenshtein(r.k, s.w) < 2", "'levenshtein(r.k, s.w)': function LEVENSHTEIN is not supported in a condition; over "
     "tables, splitjoin.sql has DuckDB compute it, on the pairs that the other terms let through"),
    ("least(r.k, s.w) = levenshten(r.k, s.w)", "let through"), ("absd(r.x - s.n) < 2", "(did you mean 'abs'?)"),
    ("r.k LIKE s.w || '%'", "let through, and starts_with(x, y) finds prefixes"),
    ("r.k = s.n", "cannot be compared; convert the text before the join, or in SQL over tables by CAST(… AS BIGINT)"),
    ("r.k = s.d", "cannot be compared; convert the text before the join, or in SQL over tables by CAST(… AS DATE)"),
])
def test_ways_for_what_join_refuses(on: str, message: str) -> None:
    with pytest.raises(PredicateError) as raised:
        splitjoin.join({"k": ["a"], "x": [1]}, {"w": ["a"], "n": [1], "d": [dt.date(2020, 1, 1)]}, on=on)
    assert str(raised.value).split("\n")[0].endswith(message)
