"""Files that are joined in parts: the rows of the join in memory, whatever the parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin import InputError
from splitjoin.joins import in_parts

from ...support.kinds import KINDS
from ...support.sampling import examples

WINDOWS = ("RANGE 3", ("RANGE 0", "RANGE 9"), "RANGE 200")


def table(seed: int, n: int, value: str, ties: int = 1) -> pa.Table:
    chance = np.random.default_rng(seed)
    return pa.table({"ts": np.sort(chance.integers(0, max(1, n // ties), n)), "k": chance.integers(0, 3, n),
                     value: chance.integers(0, 9, n), "word": [f"w{k}" for k in chance.integers(0, 5, n)]})


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_parts, "LARGE", 0)
    monkeypatch.setattr(in_parts, "PART", 16)
    monkeypatch.setattr(in_parts, "_FIRST", 4)


@settings(max_examples=examples(25), deadline=None)
@given(data=st.data())
def test_the_rows_of_the_join_in_memory(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("parts")
    sizes = data.draw(st.tuples(st.integers(0, 60), st.integers(0, 60)))
    r, s = (table(seed, n, value, data.draw(st.sampled_from([1, 5, 100])))
            for seed, n, value in zip((1, 2), sizes, "xa", strict=True))
    pq.write_table(r, folder / "r.parquet", row_group_size=data.draw(st.integers(1, 40)))
    pyarrow.feather.write_feather(s, folder / "s.feather", chunksize=data.draw(st.integers(1, 40)))
    kind = dict(data.draw(st.sampled_from(KINDS)))
    if kind["how"] in ("inner", "left") and data.draw(st.booleans()):
        kind |= {"by": "r", "aggregate": {"n": "count(*)", "most": "max(s.a)"}}
    how: dict[str, Any] = {
        "on": data.draw(st.sampled_from(["r.k = s.k", "abs(r.x - s.a) <= 2", "r.x < s.a",
                                         "upper(r.word) = upper(s.word)"])),
        "window": data.draw(st.sampled_from(WINDOWS)), "time": "ts", "device": "golden", **kind}
    with pytest.MonkeyPatch.context() as patch:
        for name, size in (("LARGE", 0), ("PART", data.draw(st.integers(1, 64))), ("_FIRST", 4)):
            patch.setattr(in_parts, name, size)
        found = splitjoin.join(folder / "r.parquet", folder / "s.feather", to=folder / "out.parquet", **how)
    assert found.plan.startswith("in parts, by time") or not any(sizes)
    want = splitjoin.join(r, s, **how)
    assert found.to_pylist() == want.to_pylist()
    assert found.schema == want.schema
    assert [found.counters[f"tuples_{side}"] for side in "rs"] == list(sizes)


@pytest.mark.usefixtures("small_parts")
def test_by_the_cpu_from_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_parts, "PART", 300)
    monkeypatch.setattr(in_parts, "_FIRST", 200)
    r, s = table(1, 900, "x"), table(2, 900, "a")
    for n in range(3):
        pq.write_table(r.slice(300 * n, 300), tmp_path / f"r-{n}.parquet")
    pq.write_table(s, tmp_path / "s.parquet")
    for how in ("inner", "asof"):
        options: dict[str, Any] = {"on": "abs(r.x - s.a) <= 1 AND r.k = s.k", "window": "RANGE 20", "time": "ts",
                                   "how": how, "select": ["x", "a"]}
        found = splitjoin.join(str(tmp_path / "r-*.parquet"), tmp_path / "s.parquet", to=tmp_path / "out.arrow",
                               **options)
        assert found.plan.startswith("in parts, by time")
        assert found.to_arrow().equals(splitjoin.join(r, s, **options).to_arrow())


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(("times", "message"), [
    ([*range(20), 5], r"r\.ts must not decrease, but row 20 has a lesser time than the row before"),
    ([*range(20), None], r"r\.ts must not hold NULL, but row"),
])
def test_refused(tmp_path: Path, times: list[Any], message: str) -> None:
    pq.write_table(pa.table({"ts": pa.array(times, pa.int64())}), tmp_path / "r.parquet", row_group_size=20)
    pq.write_table(pa.table({"ts": list(range(30))}), tmp_path / "s.parquet")
    with pytest.raises(InputError, match=message):
        splitjoin.join(tmp_path / "r.parquet", tmp_path / "s.parquet", on="TRUE", window="RANGE 1", time="ts",
                       to=tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("how", [{"window": "ROWS 3"}, {"order": "left"}, {"sort": True}, {"to": None},
                                 {"order": "outer(2)"}], ids=str)
def test_what_is_joined_in_memory(tmp_path: Path, how: dict[str, Any]) -> None:
    pq.write_table(table(1, 50, "x"), tmp_path / "r.parquet")
    pq.write_table(table(2, 50, "a"), tmp_path / "s.parquet")
    found = splitjoin.join(tmp_path / "r.parquet", tmp_path / "s.parquet", **{
        "on": "r.x = s.a", "window": "RANGE 3", "time": "ts", "to": tmp_path / "out.parquet", **how})
    assert not found.plan.startswith("in parts")
