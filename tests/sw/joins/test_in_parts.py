"""Files that are joined in parts: the rows of the join in memory, whatever the parts."""

from __future__ import annotations

import datetime as dt
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
from splitjoin.joins import in_parts, sorted_parts

from ...support.kinds import KINDS
from ...support.sampling import examples

WINDOWS = ("RANGE 3", ("RANGE 0", "RANGE 9"), "RANGE 200")


def table(seed: int, n: int, value: str, ties: int = 1, *, unsorted: bool = False) -> pa.Table:
    chance = np.random.default_rng(seed)
    ts = chance.integers(0, max(1, n // ties), n)
    return pa.table({"ts": ts - n // 4 if unsorted else np.sort(ts), "k": chance.integers(0, 3, n),
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
    sort = data.draw(st.booleans())
    r, s = (table(seed, n, value, data.draw(st.sampled_from([1, 5, 100])), unsorted=sort)
            for seed, n, value in zip((1, 2), sizes, "xa", strict=True))
    pq.write_table(r, folder / "r.parquet", row_group_size=data.draw(st.integers(1, 40)))
    pyarrow.feather.write_feather(s, folder / "s.feather", chunksize=data.draw(st.integers(1, 40)))
    kind = dict(data.draw(st.sampled_from(KINDS)))
    if kind["how"] in ("inner", "left") and data.draw(st.booleans()):
        kind |= {"by": "r", "aggregate": {"n": "count(*)", "most": "max(s.a)"}}
    how: dict[str, Any] = {
        "on": data.draw(st.sampled_from(["r.k = s.k", "abs(r.x - s.a) <= 2", "r.x < s.a",
                                         "upper(r.word) = upper(s.word)"])),
        "window": data.draw(st.sampled_from(WINDOWS)), "time": "ts", "device": "golden",
        "sort": sort, **kind}
    with pytest.MonkeyPatch.context() as patch:
        for name, size in (("LARGE", 0), ("PART", data.draw(st.integers(1, 64))), ("_FIRST", 4)):
            patch.setattr(in_parts, name, size)
        patch.setattr(sorted_parts, "RUN", data.draw(st.integers(1, 1500)))
        patch.setattr(sorted_parts, "BATCHES", data.draw(st.integers(1, 5)))
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
@pytest.mark.parametrize("how", [{"window": "ROWS 3"}, {"order": "left"}, {"to": None}, {"order": "outer(2)"}],
                         ids=str)
def test_what_is_joined_in_memory(tmp_path: Path, how: dict[str, Any]) -> None:
    pq.write_table(table(1, 50, "x"), tmp_path / "r.parquet")
    pq.write_table(table(2, 50, "a"), tmp_path / "s.parquet")
    found = splitjoin.join(tmp_path / "r.parquet", tmp_path / "s.parquet", **{
        "on": "r.x = s.a", "window": "RANGE 3", "time": "ts", "to": tmp_path / "out.parquet", **how})
    assert not found.plan.startswith("in parts")


@pytest.mark.usefixtures("small_parts")
def test_sorting_a_column_with_a_dictionary_is_left_to_memory(tmp_path: Path) -> None:
    r, s = table(1, 90, "x", unsorted=True), table(2, 90, "a", unsorted=True)
    r = r.set_column(3, "word", r.column("word").dictionary_encode())
    for name, rows in (("r", r), ("s", s)):
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    options: dict[str, Any] = {"on": "r.x = s.a", "window": "RANGE 3", "time": "ts", "sort": True}
    files = tmp_path / "r.parquet", tmp_path / "s.parquet"
    found = splitjoin.join(*files, to=tmp_path / "out.parquet", **options)
    assert not found.plan.startswith("in parts")
    assert found.to_pylist() == splitjoin.join(r, s, **options).to_pylist()
    without = splitjoin.join(*files, to=tmp_path / "o.parquet", select=["x", "a"], **options)
    assert without.plan.startswith("in parts")


@pytest.mark.usefixtures("small_parts")
def test_no_room_for_the_rows_to_be_sorted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("r", "x"), ("s", "a")):
        pq.write_table(table(1, 50, value, unsorted=True), tmp_path / f"{name}.parquet")

    def full(*of: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sorted_parts, "_written", full)
    with pytest.raises(InputError, match=r"beside the output, but .* cannot be written: No space left"):
        splitjoin.join(tmp_path / "r.parquet", tmp_path / "s.parquet", on="r.x = s.a", window="RANGE 3", time="ts",
                       sort=True, to=tmp_path / "out.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.parquet", "s.parquet"]


@pytest.mark.usefixtures("small_parts")
def test_int96_times_of_spark(tmp_path: Path) -> None:
    times = [dt.datetime(1, 1, 1), dt.datetime(2020, 1, 1), dt.datetime(9999, 12, 31)]
    rows = pa.table({"n": [0, 1, 2], "to": pa.array(times, pa.timestamp("us"))})
    pq.write_table(rows, tmp_path / "r.parquet", use_deprecated_int96_timestamps=True)
    found = splitjoin.join(tmp_path / "r.parquet", tmp_path / "r.parquet", on="TRUE", time="to", window="RANGE 1 DAY",
                           select=["r.n", "r.to"], to=tmp_path / "o.parquet", device="golden")
    assert "in parts" in str(found.plan)
    assert found.to_pydict() == {"n_r": [0, 1, 2], "to_r": times}
