"""joinbench: engines agree, checksums tell answers apart, and each cell of the page has a plan or a reason."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from bench import joinbench_engines, joinbench_pages
from bench.joinbench_engines import ENGINES, CannotSay
from bench.joinbench_queries import QUERIES, checksum, tables

HERE = ("splitjoin", "duckdb", "polars", "pandas")


@pytest.mark.parametrize("query", QUERIES)
def test_engines_give_the_same_answer(query: str) -> None:
    found = {engine: joinbench_engines.run(engine, query, 400, 3, 1, short=0.0) for engine in HERE}
    answers = {engine: made for engine, made in found.items() if "sum" in made}
    assert "splitjoin" in answers
    assert len(answers) > 1
    assert len({(made["rows"], made["sum"]) for made in answers.values()}) == 1, found
    assert all(made["rows"] and made["plan"] for made in answers.values()), found
    assert all(made["why"] for engine, made in found.items() if engine not in answers)


def test_an_engine_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise ValueError("no such thing\nat all")

    monkeypatch.setitem(ENGINES, "failing", failing)
    assert joinbench_engines.run("failing", "band", 10, 1, 1) == {"why": "ValueError: no such thing"}
    with pytest.raises(CannotSay, match="one way"):
        ENGINES["duckdb"](*tables(10, 1), QUERIES["as-of by key, nearest"])


def test_tables_are_of_their_seed_and_size() -> None:
    assert tables(50, 1)[0].equals(tables(50, 1)[0])
    assert not tables(50, 1)[0].equals(tables(50, 2)[0])
    r, s = tables(50, 1)
    gaps = np.abs(r.column("t").to_numpy()[:, None] - s.column("t").to_numpy())
    assert all(len(np.unique(row)) == 50 for row in gaps)  # no two are equally near


def test_checksums_are_of_the_rows_in_any_order() -> None:
    table = pa.table({"a": [1, 2, 3], "b": [4, 5, 6]})
    assert checksum(table) == checksum(table.take([2, 0, 1]))
    others = [pa.table({"a": [1, 2, 3], "b": [5, 4, 6]}), table.slice(0, 2), pa.table({"a": [4, 5, 6], "b": [1, 2, 3]}),
              pa.concat_tables([table, table])]
    assert len({checksum(one) for one in (table, *others)}) == 5


def test_cells_have_a_plan_or_a_reason() -> None:
    config = {"query": "band", "rows": 10, "seed": 1}
    files = {"joinbench": {"rows": [
        {"metric": "joinbench_cpu_seconds", "value": 0.25, "config": {
            **config, "engine": "duckdb", "result": 7, "plan": "IE_JOIN"}},
        {"metric": "joinbench_cpu_seconds", "value": 0.5, "config": {
            **config, "engine": "polars", "result": 7, "plan": "a|b", "differs": True}},
        {"metric": "joinbench_no_answer", "value": 0, "config": {**config, "engine": "pandas", "why": "no words"}}]}}
    assert joinbench_pages.section(files).splitlines()[3:] == [
        "| query | rows | DuckDB | Polars | pandas |", "|---|---|---|---|---|",
        "| band | 7 | 0.25 s: IE\\_JOIN | 0.5 s **another answer**: a\\|b | *no words* |", ""]
