"""Results that do not fit into memory: refused by a clear error, before memory runs out."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from splitjoin import CapacityError, join, open as open_stream, query
from splitjoin.base import memory
from splitjoin.engines.cpu import CpuDevice, session as cpu_session
from splitjoin.engines.tuning import Tuning
from splitjoin.rows import whole

N = 2000
T = pa.table({"x": pa.array(np.arange(N) % 7, pa.int32()), "y": pa.array(np.arange(N) % 3, pa.int32())})

#: One condition for each way in which matches are found.
CONDITIONS = {
    "nested loops": ("r.x >= s.y - 9", CpuDevice(engine="nested", threads=1)),
    "index": ("r.x >= s.y - 9", CpuDevice(engine="index", threads=1)),
    "expression by NumPy": ("r.x * s.x + r.y * s.y >= 0", CpuDevice(threads=1)),
    "verified candidates": ("r.x >= s.y - 9 AND r.x * s.x + r.y * s.y >= 0", CpuDevice(threads=1)),
    "two workers": ("r.x >= s.y - 9", CpuDevice(engine="nested", threads=4)),
}


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte is left, everything is worth looking, and no pairs can be counted beforehand."""
    monkeypatch.setattr(memory, "_SMALL", 1000)
    monkeypatch.setattr(CpuDevice, "count_pairs", lambda *_: None)
    monkeypatch.setattr(memory, "available_memory", lambda: 2**20)


@pytest.mark.usefixtures("little")
@pytest.mark.parametrize("way", CONDITIONS)
def test_matches_that_do_not_fit_are_refused_before_they_are_gathered(
        way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    on, device = CONDITIONS[way]
    monkeypatch.setattr(cpu_session, "gather", lambda *_: pytest.fail("items were made"))
    with pytest.raises(CapacityError, match=(
            r"^the result must fit into memory, but at [\d,]+ pairs it needs \d+ MiB more and 1 MiB are free; "
            r"write it to a file with to='OUT.parquet', use a shorter window or a tighter condition, or take the "
            r"result in parts: open the join with splitjoin.open, push smaller batches and poll after each$")):
        join(T, T, on=on, window=f"ROWS {N}", device=device)


@pytest.mark.usefixtures("little")
def test_candidates_are_not_matches() -> None:
    found = join(T, T, on="r.x >= s.y - 9 AND r.x * s.x + r.y * s.y < 0", window=f"ROWS {N}", device="cpu")
    assert len(found) == 0


@pytest.mark.usefixtures("little")
def test_batches_that_do_not_fit_together_are_refused() -> None:
    device = CpuDevice(tuning=Tuning(batch=100))
    with pytest.raises(CapacityError, match=r"at [\d,]+ pairs it needs \d+ MiB more"):
        join(T, T, on="r.x = s.x", window=f"ROWS {N}", device=device)
    with open_stream(query(T.schema, T.schema, on="r.x = s.x", window=f"ROWS {N}"), device=device) as stream:
        rows = 0
        for at in range(0, N, 50):
            stream.push_r(T.slice(at, 50))
            stream.push_s(T.slice(at, 50))
            rows += len(stream.poll())
    assert rows == sum(np.bincount(np.arange(N) % 7) ** 2)


def test_result_rows_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = T.slice(0, 100).append_column("t", pa.array(["x" * 1000] * 100))
    monkeypatch.setattr(memory, "_SMALL", 2**20)
    monkeypatch.setattr(memory, "available_memory", lambda: 2**21)
    with pytest.raises(CapacityError, match="but there are 10,000, which take about 20 MiB, and 2 MiB are free"):
        join(wide, wide, on="r.x >= s.x - 9", window="ROWS 100")
    assert len(join(wide, wide, on="r.x >= s.x - 9", window="ROWS 100", select=["x_r"])) == 10_000


@pytest.mark.parametrize("where", ["_batch", "poll"])
def test_memory_errors_of_numpy_are_translated(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise MemoryError

    if where == "_batch":
        monkeypatch.setattr(cpu_session, "gather", fail)
    else:
        monkeypatch.setattr(cpu_session.np, "concatenate", fail)
    with pytest.raises(CapacityError, match="pairs memory ran out; write it to a file"):
        join(T.slice(0, 10), T.slice(0, 10), on="r.x = s.x", window="ROWS 10", order="outer(7)")


def test_available_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 2**20 < memory.available_memory() <= sys.maxsize
    used = int(Path("/proc/self/statm").read_text().split()[0]) * 4096
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2 * used, -1))
    assert 0 < memory.available_memory() <= used * 7 // 8
    monkeypatch.setattr(memory, "_system", lambda: int("none"))
    monkeypatch.setattr(memory, "_control_groups", lambda: int("max"))
    monkeypatch.setattr(memory, "_address_space", list)
    assert memory.available_memory() == sys.maxsize
    monkeypatch.setattr(memory, "_system", lambda: [(2**20, 2**24), (2**40, 2**41)])
    assert memory.available_memory() == 0
    monkeypatch.setattr(memory, "_system", lambda: [(2**23, 2**24), (2**40, 2**41)])
    assert memory.available_memory() == 2**23 - 2**20
    monkeypatch.setattr(memory, "_system", lambda: [(2**40, 2**41)])
    assert memory.available_memory() == 2**40 - 2**31


def group(folder: Path, **files: str) -> None:
    """A control group with these ``files``, whose names have _ in place of a dot."""
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("_", ".", 1)).write_text(text)


def test_memory_of_control_groups(tmp_path: Path) -> None:
    """Each group around the process leaves its limit but for what it has, and files may give up some of this. Without
    a limit, nothing else of a group is read, which would take longer than a small join.
    """
    own = tmp_path / "own"
    own.write_text("4:memory:/docker/a\n0::/user.slice/job\n")
    assert memory._control_groups(tmp_path, own) == []
    group(tmp_path / "user.slice", memory_max="max\n", memory_high="5000\n", memory_current="2000\n",
          memory_stat="anon 10\ninactive_file 500\n")
    group(tmp_path / "user.slice/job", memory_max="4000\n", memory_current="3000\n", memory_stat="anon 10\n")
    group(tmp_path / "user.slice/other", memory_max="1\n", memory_current="1\n", memory_stat="\n")
    assert memory._control_groups(tmp_path, own) == [(3500, 5000), (1000, 4000)]
    stat = "total_inactive_file 30\n"
    group(tmp_path / "memory", memory_limit_in_bytes=f"{2**63 - 4096}")
    group(tmp_path / "memory/docker", memory_limit_in_bytes="900", memory_usage_in_bytes="800", memory_stat=stat)
    assert memory._control_groups(tmp_path, own) == [(130, 900), (3500, 5000), (1000, 4000)]


def test_a_result_far_too_large_is_refused_with_its_size() -> None:
    """In a process whose address space has 8, 3 and 2 GiB; before any pair is made, as that would fail otherwise."""
    code = """
import resource, splitjoin
from splitjoin.engines.cpu import band_join
from splitjoin.rows.whole import WholeRows
def no_pairs(*_, **__):
    raise AssertionError
band_join.pairs_of = WholeRows._items = no_pairs
for limit in (8, 3, 2):
    resource.setrlimit(resource.RLIMIT_AS, (limit << 30, 8 << 30))
    try:
        splitjoin.join({"a": range(300000)}, {"b": range(300000)}, on="r.a < s.b")
    except splitjoin.CapacityError as error:
        print(error)
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    lines = told.stdout.splitlines()
    assert len(lines) == 3, told.stderr
    for line in lines:
        assert line.startswith("the rows of the join must fit into memory, but there are 44,999,850,000, which take "
                               "about 2,011.7 GiB, and ")


def test_a_result_too_large_for_memory_is_written_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_SMALL", 1000)
    monkeypatch.setattr(memory, "available_memory", lambda: 2**25)
    made = list[int]()
    parts = whole.operator_of_pairs

    def noted(*args: Any) -> Any:
        made.append(1)
        return parts(*args)

    monkeypatch.setattr(whole, "operator_of_pairs", noted)
    n = 1500
    table = {"x": np.arange(n)}
    with pytest.raises(CapacityError, match="must fit into memory, but there are 1,124,250, which take about"):
        join(table, table, on="r.x < s.x")
    assert not made
    found = join(table, table, on="r.x < s.x", to=tmp_path / "out.parquet")
    assert made
    assert len(found) == n * (n - 1) // 2


@pytest.mark.parametrize(("size", "text"), [
    (0, "0 bytes"), (1023, "1,023 bytes"), (1024, "1 KiB"), (100_000, "98 KiB"), (2**20, "1 MiB"),
    (1000 * 2**20, "1,000 MiB"), (2**30, "1.0 GiB")])
def test_sizes_in_words(size: int, text: str) -> None:
    assert memory.size_text(size) == text
