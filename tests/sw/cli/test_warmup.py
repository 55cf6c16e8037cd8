"""`splitjoin warmup`: queries find compiled what the library lacks; durations as people write them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from splitjoin.cli import DONE, FAILURE, main
from splitjoin.lang.types import TimeUnit, duration_text

QUERY = ["--window", "RANGE 4", "--time", "ts"]


@pytest.fixture
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("R.csv").write_text("ts,x\n1,10\n4,20\n9,30\n")
    Path("S.csv").write_text("ts,a\n2,12\n5,70\n9,31\n")
    return tmp_path


def kernels(cold: Path) -> set[str]:
    return {path.name.partition("-")[0] for path in (cold / "cache").rglob("*.code")}


def test_what_tests_leave_is_compiled(cold: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warmup", "R.csv", "S.csv", "--on", "r.x * s.a % 7 = 3", *QUERY]) == DONE
    first, last = capsys.readouterr().out.splitlines()
    assert first == "compiled  r.x * s.a % 7 = 3"
    assert last.endswith(f"s; the cache is {cold / 'cache' / 'splitjoin-cache'}")
    assert "find" in kernels(cold)


def test_a_condition_of_tests_needs_nothing(cold: Path, capsys: pytest.CaptureFixture[str],
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    assert main(["warmup", "R.csv", "S.csv", "--on", "abs(r.x - s.a) <= 5", *QUERY]) == DONE
    assert capsys.readouterr().out == "nothing to compile for  abs(r.x - s.a) <= 5\n"
    assert kernels(cold) == set()
    assert main(["warmup", "R.csv", "S.csv", "--on", "r.x * s.a % 7 = 3", *QUERY]) == FAILURE
    assert "compiling in advance needs the Python package 'numba'" in capsys.readouterr().err


@pytest.mark.parametrize(("count", "unit", "text"), [
    (20_000_000, "us", "20 s"), (0, "ns", "0 s"), (5400, "s", "1 h 30 min"), (-1500, "ms", "-1 s 500 ms"),
    (7 * 86400, "s", "7 d"), (1, "ns", "1 ns"), (90_061_000_000_001, "ns", "1 d 1 h 1 min 1 s 1 ns"),
])
def test_durations_as_people_write_them(count: int, unit: TimeUnit, text: str) -> None:
    assert duration_text(count, unit) == text
