"""Order ``left``: the rows of r as they were given, on every engine, and the same rows in order ``none``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin import OrderError
from splitjoin.joins.arranged import Arranged

from ...support.kinds import KINDS
from ...support.sampling import examples

CONDITIONS = ("r.k = s.k", "abs(r.x - s.a) <= 2", "r.x < s.a", "r.k = s.k AND r.x <= s.a", "r.x * s.a % 3 = 1")


def by_left(rows: list[tuple[int | None, int | None]], given: list[int]) -> list[tuple[int | None, int | None]]:
    """``rows`` of row numbers: R's by their place in ``given``, then S's as they came; those of S alone last."""
    place = {row: at for at, row in enumerate(given)}
    return sorted(rows, key=lambda row: (len(place) if row[0] is None else place[row[0]],
                                         -1 if row[1] is None else row[1]))


def numbered(found: Any, kind: dict[str, Any]) -> list[tuple[int | None, int | None]]:
    table = found.to_arrow()
    n = table.column("n").to_pylist()
    return list(zip(n, table.column("m").to_pylist() if "m" in table.column_names else [None] * len(n), strict=True))


@pytest.mark.parametrize("device", ["cpu", "golden"])
@settings(max_examples=examples(25))
@given(data=st.data())
def test_the_rows_of_r_as_given(device: str, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    on, window = data.draw(st.sampled_from(CONDITIONS)), data.draw(st.sampled_from([None, "RANGE 3", "ROWS 4"]))
    sizes = data.draw(st.tuples(st.integers(0, 12), st.integers(0, 12)))
    chance = np.random.default_rng(data.draw(st.integers(0, 99)))
    r, s = ({"t": chance.integers(0, 9, n), "k": chance.integers(0, 3, n), value: chance.integers(0, 9, n),
             number: np.arange(n)} for n, value, number in zip(sizes, "xa", "nm", strict=True))
    how = {"on": on, "window": window, "time": "t", "sort": True, "device": device, **kind}
    if kind["how"] in ("semi", "anti"):
        how["select"] = ["n"]
    else:
        how["select"] = ["n", "m"]
    total = numbered(splitjoin.join(r, s, **how), kind)
    found = splitjoin.join(r, s, order="left", **how)
    arriving = {row: at for at, row in enumerate(np.argsort(s["t"], kind="stable").tolist())}
    want = by_left([(a, None if b is None else arriving[b]) for a, b in total], list(range(sizes[0])))
    back = {at: row for row, at in arriving.items()}
    assert numbered(found, kind) == [(a, None if b is None else back[b]) for a, b in want]
    assert [tuple(None if v < 0 else v for v in (item[2], item[3])) for item in found.items.tolist()] == (
        numbered(found, kind))  # items have the numbers of the rows as given, and no stars
    some = splitjoin.join(r, s, order="none", **how)
    assert sorted(numbered(some, kind), key=str) == sorted(total, key=str)


def test_aggregates_and_statements() -> None:
    r = {"t": [5, 1, 3], "x": [1, 2, 3]}
    s = {"t": [4, 2], "a": [1, 3]}
    found = splitjoin.join(r, s, on="r.x <= s.a", time="t", sort=True, order="left", how="left",
                           aggregate={"n": "count(*)"})
    assert found.to_pydict() == {"t": [5, 1, 3], "x": [1, 2, 3], "n": [2, 1, 1]}
    found = splitjoin.sql("SELECT x, a FROM r LEFT JOIN s ON x = a", r=r, s=s, time="t", sort=True, order="left")
    assert found.to_pydict() == {"x": [1, 2, 3], "a": [1, None, 3]}


def test_to_a_file(tmp_path: Path) -> None:
    for on in ("r.x <= s.a", "r.x * r.x <> s.a * s.a + 1"):  # by sorted keys, and by a session
        how: dict[str, Any] = {"on": on, "order": "left", "how": "full"}
        r, s = {"x": [3, 1, 2]}, {"a": [2, 0, 3]}
        splitjoin.join(r, s, to=tmp_path / "out.parquet", **how)
        assert pq.read_table(tmp_path / "out.parquet").equals(splitjoin.join(r, s, **how).to_arrow())


def test_streams_have_no_such_order() -> None:
    schema = pa.schema({"t": pa.int64()})
    for how in ("inner", "left"):
        with pytest.raises(OrderError, match="order 'left' is that of the rows of r as they were given, so it needs"):
            splitjoin.query(schema, schema, on="TRUE", window="ROWS 1", order="left", how=how)


@pytest.mark.parametrize("how", ["left", "inner"])
def test_as_pandas_merges(how: Any) -> None:
    import pandas as pd

    left = pd.DataFrame({"k": [3, 1, 2, 1], "x": range(4)})
    right = pd.DataFrame({"k": [1, 4, 3, 1], "y": range(4)})
    want = left.merge(right, on="k", how=how)
    found = splitjoin.join(left, right, on="r.k = s.k", how=how, order="left").to_pandas()
    assert found[["x", "y"]].astype(float).equals(want[["x", "y"]].astype(float))


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_chosen_rows_are_not_sorted(how: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A semi or anti join flags the rows of R that it keeps, and flags are in the order of R."""
    def refused(*_: Any) -> Any:
        raise AssertionError("sorted")

    monkeypatch.setattr(Arranged, "_left_order", refused)
    r, s = pa.table({"n": range(99), "k": [n % 9 for n in range(99)]}), pa.table({"k": [8, 7, 1]})
    result = splitjoin.join(r, s, on="r.k = s.k", how=how, order="left", select=["n"])
    kept = [n for n in range(99) if (n % 9 in (1, 7, 8)) == (how == "semi")]
    assert result.table.column("n").to_pylist() == kept == result.items["r"].tolist()
