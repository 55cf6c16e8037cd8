"""`splitjoin warmup`: queries find their loops compiled; durations as people write them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import splitjoin
from splitjoin.cli import DONE, USAGE, main
from splitjoin.engines.cpu import common_queries
from splitjoin.engines.cpu.compilation import Compilation
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.lang.types import TimeUnit, duration_text
from splitjoin.tables.inputs import as_table


@pytest.fixture
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SPLITJOIN_COMPILE", "background")
    monkeypatch.chdir(tmp_path)
    Path("R.csv").write_text("ts,x\n1,10\n4,20\n9,30\n")
    Path("S.csv").write_text("ts,a\n2,12\n5,70\n9,31\n")
    return tmp_path


@pytest.mark.long  # compiles for both engines, in a process of its own
def test_a_query_of_ones_own(cold: Path) -> None:
    command = ["warmup", "R.csv", "S.csv", "--on", "abs(r.x - s.a) <= 5", "--window", "RANGE 4", "--time", "ts"]
    done = subprocess.run([sys.executable, "-m", "splitjoin", *command], capture_output=True, text=True, check=True)
    first, last = done.stdout.splitlines()
    assert first == "compiled  abs(r.x - s.a) <= 5"
    assert last.endswith(f"s; the cache is {cold / 'cache' / 'splitjoin-cache'}")
    assert done.stderr == ""  # no progress off a terminal
    found = splitjoin.join("R.csv", "S.csv", on="abs(r.x - s.a) <= 5", window="RANGE 4", time="ts")
    assert "NumPy" not in found.plan
    other = [as_table(f"{side}.csv", side).rename_columns(["at", "v"]) for side in "RS"]  # names do not matter
    found = splitjoin.join(*other, on="abs(r.v - s.v) <= 5", window="RANGE 7", time="at")
    assert "NumPy" not in found.plan


def test_what_many_queries_share(cold: Path, monkeypatch: pytest.MonkeyPatch,
                                 capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(common_queries, "_COMMON", ("r.i = s.i",))
    assert main(["warmup"]) == DONE
    assert capsys.readouterr().out.splitlines()[0] == "compiled  r.i = s.i"
    for _, query, _, _ in common_queries.common_queries():
        assert Compilation(query, "auto").is_known


def test_all_or_nothing_of_a_query(cold: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warmup", "R.csv", "S.csv"]) == USAGE
    assert "warmup compiles the loops of a query, R S --on EXPR" in capsys.readouterr().err


@pytest.mark.parametrize(("count", "unit", "text"), [
    (20_000_000, "us", "20 s"), (0, "ns", "0 s"), (5400, "s", "1 h 30 min"), (-1500, "ms", "-1 s 500 ms"),
    (7 * 86400, "s", "7 d"), (1, "ns", "1 ns"), (90_061_000_000_001, "ns", "1 d 1 h 1 min 1 s 1 ns"),
])
def test_durations_as_people_write_them(count: int, unit: TimeUnit, text: str) -> None:
    assert duration_text(count, unit) == text


def test_constants_matter_to_what_is_known(cold: Path) -> None:
    r, s = as_table("R.csv", "r"), as_table("S.csv", "s")
    keys = {Compilation(Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=on, window="ROWS 5"),
                        engine)._marker for on in ("r.x = s.a", "r.x = s.a + 1", "r.x < s.a")
            for engine in ("auto", "index")}
    assert len(keys) == 6
