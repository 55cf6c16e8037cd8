"""Results that do not fit into memory: refused by a clear error, before memory runs out."""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from splitjoin import CapacityError, join, open as open_stream, query
from splitjoin.base import memory
from splitjoin.engines.cpu import CpuDevice, compiled_session, session as sessions
from splitjoin.engines.cpu.tuning import Tuning

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
    """A megabyte is left, and everything is worth looking."""
    monkeypatch.setattr(memory, "_SMALL", 1000)
    monkeypatch.setattr(memory, "available_memory", lambda: 2**20)


@pytest.mark.usefixtures("little")
@pytest.mark.parametrize("way", CONDITIONS)
def test_matches_that_do_not_fit_are_refused_before_they_are_gathered(
        way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    on, device = CONDITIONS[way]
    monkeypatch.setattr(compiled_session, "gather", lambda *_: pytest.fail("items were made"))
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
    with pytest.raises(CapacityError, match="at 10,000 pairs it needs 19 MiB more and 2 MiB are free"):
        join(wide, wide, on="r.x >= s.x - 9", window="ROWS 100")
    assert len(join(wide, wide, on="r.x >= s.x - 9", window="ROWS 100", select=["x_r"])) == 10_000


@pytest.mark.parametrize("where", ["_batch", "poll"])
def test_memory_errors_of_numpy_are_translated(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise MemoryError

    if where == "_batch":
        monkeypatch.setattr(compiled_session, "gather", fail)
    else:
        monkeypatch.setattr(sessions.np, "concatenate", fail)
    with pytest.raises(CapacityError, match="pairs memory ran out; write it to a file"):
        join(T.slice(0, 10), T.slice(0, 10), on="r.x = s.x", window="ROWS 10", order="outer(7)")


def test_available_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 2**20 < memory.available_memory() <= sys.maxsize
    used = int(Path("/proc/self/statm").read_text().split()[0]) * 4096
    monkeypatch.setattr(resource, "getrlimit", lambda _: (used + 2**24, -1))
    assert 0 < memory.available_memory() <= 2**25
    monkeypatch.setattr(memory, "_system", lambda: int("none"))
    monkeypatch.setattr(memory, "_control_group", lambda: int("max"))
    monkeypatch.setattr(memory, "_address_space", lambda: sys.maxsize)
    assert memory.available_memory() == sys.maxsize
