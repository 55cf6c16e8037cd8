"""Joins as methods of DataFrames."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pytest

import splitjoin
import splitjoin.frames
from splitjoin import InputError, SchemaError

R = {"t": [3, 1, 2], "x": [30, 10, 20]}
S = {"t": [1, 2], "a": [11, 19]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pl.LazyFrame], ids=["pandas", "polars", "lazy"])
def test_a_frame_of_the_same_kind_in_its_order(make: Any) -> None:
    found = make(R).splitjoin.join(make(S), on="abs(r.x - s.a) <= 1", how="left", select=["x", "a"])
    assert type(found) is make
    rows = found.collect() if make is pl.LazyFrame else found
    assert [*rows["x"]] == [30, 10, 20]
    assert [None if a != a else a for a in rows["a"]] == [None, 11, 19]


def test_names_of_columns_are_those_that_join_gives() -> None:
    frame, other = pd.DataFrame({"k": [1, 2], "v": [3, 4]}), pd.DataFrame({"k": [2], "v": [5]})
    found = frame.splitjoin.join(other, on="r.k = s.k", suffixes=("_x", "_y"))
    assert found.to_dict("list") == {"k_x": [2], "v_x": [4], "k_y": [2], "v_y": [5]}
    assert found.columns[1::2].tolist() == frame.merge(other, on="k", suffixes=("_x", "_y")).columns[1:].tolist()
    found = frame.splitjoin.join(other, on="r.k = s.k", select={"s.v": "theirs", "r.v": "v"})
    assert found.to_dict("list") == {"theirs": [5], "v": [4]}


def test_options_and_errors_are_those_of_join() -> None:
    left = pd.DataFrame(R)
    assert left.splitjoin.join(S, on="TRUE", time="t", sort=True, how="asof", k=2)["a"].tolist() == [19, 11, 11, 19, 11]
    with pytest.raises(InputError, match="to= writes the rows to a file, and a frame holds them in memory"):
        left.splitjoin.join(S, on="TRUE", to="out.parquet")
    with pytest.raises(SchemaError, match="has no column 'y'"):
        left.splitjoin.join(S, on="r.y = s.a")


def test_the_index_of_pandas_is_a_time() -> None:
    times = pd.to_datetime(["2020-01-01 00:00", "2020-01-01 00:10", "2020-01-01 00:30"])
    left, right = pd.DataFrame({"x": [1, 2, 3]}, index=times), pd.DataFrame({"a": [1, 2]}, index=times[:2])
    found = splitjoin.join(left, right, on="TRUE", time="index", how="asof", tolerance="15 MINUTES")
    assert found.column("a").to_pylist() == [1, 2]
    assert found.column_names == ["x", "index_r", "a", "index_s"]
    named = left.rename_axis("when")  # as a column it has its name
    assert splitjoin.join(named, right, on="TRUE", time="index", how="asof").column_names[1] == "index_r"
    assert len(splitjoin.join(named, named, on="r.x = s.x", time="when")) == 3
    with pytest.raises(SchemaError, match="stream r has no column 'index'"):
        splitjoin.join(R, S, on="TRUE", time="index")
    kept = pd.DataFrame({"index": [1, 2], "x": [1, 2]})
    assert len(splitjoin.join(kept, kept, on="r.x = s.x", time="index")) == 2


def test_a_list_of_tables_is_told_where_it_goes() -> None:
    with pytest.raises(InputError, match=r"splitjoin\.sql joins .* has frame\.splitjoin\.merge_asof\(\[a, b\]"):
        splitjoin.join(R, [pd.DataFrame(S), pd.DataFrame(S)], on="TRUE", time="t", how="asof")
