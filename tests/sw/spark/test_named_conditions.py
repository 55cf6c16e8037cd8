"""Several conditions in one streaming join: the rows of a join for each, with its name, from one state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession, functions as F  # noqa: N812

from splitjoin.base.errors import InputError, SchemaError, SnapshotError, UnsupportedError
from splitjoin.lang.eval.scalar import evaluate
from splitjoin.lang.eval.vector import Vector
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Schema
from splitjoin.rows.output import ResultNames, gather, output_columns
from splitjoin.spark import named_conditions, stream_join, task_error

from ...support.spark_files import Files, counts
from ...support.spark_streams import answer, rows
from .test_streams import parts

#: The last one implies no other, and the second one implies the first.
ON: dict[str, Any] = {"near": "abs(r.x - s.x) <= 2", "equal": "r.x = s.x AND r.name <> s.name",
                      "less": "r.n + 100 < s.n"}


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> Files:
    return Files(spark, tmp_path)


def wanted(tables: tuple[pa.Table, pa.Table], **arguments: Any) -> pa.Table:
    """The rows of a batch join for each condition, with its name."""
    found = []
    for name, on in ON.items():
        one = answer(*tables, on=on, time="ts", **arguments)
        found.append(one.add_column(0, "query", pa.array([name] * len(one))))
        assert len(one)
    return pa.concat_tables(found)


def test_rows_of_each_condition_across_restarts(files: Files, tables: tuple[pa.Table, pa.Table]) -> None:
    runs, window, select = [], {"r": "ROWS 12", "s": "RANGE 6"}, ["s.n", "r.n"]
    for n, (r, s) in enumerate(zip(parts(tables[0], [50]), parts(tables[1], [60]), strict=True)):
        files.add(r, s)
        left, right = files.frame("r"), files.frame("s")
        on = ON | {"near": F.abs(left["x"] - right["x"]) <= 2} if n == 1 else ON
        runs.append(files.run(stream_join(left, right, on=on, window=window, time="ts", late=0, groups=1 + n % 2,
                                          select=select)))
    want = wanted(tables, window=window, select=select)
    found = files.found()
    assert found.column_names == want.column_names
    assert rows(found) == rows(want)
    assert counts(runs)["stored_rows"] <= len(tables[0]) + len(tables[1])  # once for all conditions
    assert list((files.root / "out-checkpoint" / "splitjoin").rglob("*.state"))


def test_total_order(files: Files, tables: tuple[pa.Table, pa.Table]) -> None:
    for r, s in zip(parts(tables[0], [50]), parts(tables[1], [50]), strict=True):
        files.add(r, s)
    found: list[tuple[str, Any]] = []

    def take(frame: DataFrame, _: int) -> None:
        found.extend((row.pop("query"), repr(row)) for row in frame.toArrow().to_pylist())

    files.batches(stream_join(files.frame("r"), files.frame("s"), on=ON, window="RANGE 9", time="ts", order="total",
                              late=0, state=files.state), take)
    for name, on in ON.items():
        alone = answer(*tables, on=on, window="RANGE 9", time="ts")
        assert [row for of, row in found if of == name] == list(map(repr, alone.to_pylist()))
    of_pairs: list[list[str]] = []
    for n, (name, row) in enumerate(found):
        if n and found[n - 1][1] == row and list(ON).index(found[n - 1][0]) < list(ON).index(name):
            of_pairs[-1].append(name)
        else:
            of_pairs.append([name])
    assert any(len(names) > 1 for names in of_pairs)  # a pair's rows follow each other, in the order of conditions


def test_other_conditions_on_the_same_checkpoint_are_refused(files: Files, tables: tuple[pa.Table, pa.Table]) -> None:
    files.add(*tables)
    query: dict[str, Any] = {"window": "RANGE 9", "time": "ts", "late": 0, "groups": 1}
    on = {"near": "abs(r.x - s.x) <= 2", "equal": "r.x = s.x"}
    files.run(stream_join(files.frame("r"), files.frame("s"), on=on, **query))
    files.add(*tables)
    with pytest.raises(Exception) as caught:  # noqa: PT011  # Spark's, in which ours is looked for
        files.run(stream_join(files.frame("r"), files.frame("s"), on=on | {"equal": "r.x = s.x + 1"}, **query))
    found = task_error(caught.value)
    assert isinstance(found, SnapshotError) and "named conditions: was" in str(found)


@pytest.mark.parametrize(("change", "kind", "said"), [
    ({"how": "left"}, UnsupportedError, "one of kind 'left'"),
    ({"how": "left", "early": True}, UnsupportedError, "one with early=True"),
    ({"aggregate": {"n": "count(*)"}, "by": "r"}, UnsupportedError, "one with aggregates"),
    ({"engine": "rewrite"}, UnsupportedError, "one with engine='rewrite'"),
    ({"on": {}}, InputError, "one condition at least"), ({"on": {3: "r.x = s.x"}}, InputError, "by a name that is a"),
])
def test_what_is_refused(files: Files, tables: tuple[pa.Table, pa.Table], change: dict[str, Any],
                         kind: type[Exception], said: str) -> None:
    files.add(*tables)
    with pytest.raises(kind, match=said):
        stream_join(files.frame("r"), files.frame("s"), **{
            "on": ON, "window": "RANGE 9", "time": "ts", "late": 0, **change})


def test_batch_frames_and_a_column_of_the_name_are_refused(files: Files, frames: tuple[DataFrame, DataFrame],
                                                           tables: tuple[pa.Table, pa.Table]) -> None:
    with pytest.raises(UnsupportedError, match="one of batch DataFrames"):
        stream_join(*frames, on=ON, window="RANGE 9", time="ts")
    files.add(*tables)
    with pytest.raises(SchemaError, match="there is 'Query' too"):
        stream_join(files.frame("r").withColumnRenamed("n", "Query"), files.frame("s"), window="RANGE 9", time="ts",
                    late=0, on={"near": "r.x = s.x"})


def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch, tables: tuple[pa.Table, pa.Table]) -> None:
    r, s = (Schema.from_arrow(side, table.schema) for side, table in zip(SIDES, tables, strict=True))
    made = named_conditions.NamedConditions.read(ON, r, s, {})
    query = Query.make(r, s, on=made.any, window="RANGE 9", time="ts")
    of = made.over(query, output_columns(tables[0].schema, tables[1].schema, ResultNames.of(["r.n"])))
    at = np.arange(150)
    pairs = gather(of.gathered, *tables, at, at)

    def check() -> None:
        found = of.rows(pairs)
        for name, condition in made.conditions:
            rows_of = (table.select(["x", "name", "n"]).slice(0, len(at)).to_pylist() for table in tables)
            want = [one["n"] for one, other in zip(*rows_of, strict=True) if evaluate(condition, one, other) is True]
            assert found.filter(pc.field("query") == name).column("n_r").to_pylist() == want

    check()
    monkeypatch.setattr(named_conditions, "evaluate_columns", lambda e, values, n: Vector(*np.ones((2, n), np.bool_)))
    with pytest.raises(AssertionError):
        check()
