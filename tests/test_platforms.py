"""Joins without Unix's own modules and functions, as on Windows: on the CPU, by the reference, in Amaranth's simulator,
in sessions, and with files.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

#: Takes away what Windows lacks. Libraries that have a part for each system, such as asyncio, load before that.
_BLOCK = """
import asyncio, filelock, multiprocessing, os, platformdirs, subprocess, sys, tempfile
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for name in ("fchmod", "fork", "getegid", "geteuid", "getgid", "getpriority", "getuid", "killpg", "memfd_create",
             "nice", "posix_spawn", "sched_getaffinity", "setpriority", "waitpid"):
    if hasattr(os, name):
        delattr(os, name)
"""
_JOINS = _BLOCK + """
import json
import pyarrow as pa
import splitjoin

r, s = {"ts": [1, 4, 9], "x": [10, 20, 30]}, {"ts": [2, 5, 9], "a": [12, 70, 31]}
how = {"on": "abs(r.x - s.a) <= 5", "window": "RANGE 4", "time": "ts"}
found = {device: splitjoin.join(r, s, **how, device=device).to_pylist() for device in ("golden", "cpu")}
found["pysim"] = splitjoin.join(r, s, **how, device="pysim", small=True, capacity=4).to_pylist()
r, s = pa.table(r), pa.table(s)
with splitjoin.open(splitjoin.query(r.schema, s.schema, **how), "cpu") as session:
    session.push_r(r)
    session.push_s(s)
    found["session"] = session.flush().to_pylist()
for ending in ("csv", "parquet", "arrow"):
    splitjoin.join(r, s, **how, to=f"out.{ending}")
    found[ending] = splitjoin.join(f"out.{ending}", s, on="r.x = s.a - 2", select=["x", "a_s"]).to_pylist()
print(json.dumps(found))
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(code: str, *arguments: str, **environment: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True,
                          env={**os.environ, **environment}, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_joins_and_files(here: Path) -> None:
    found: dict[str, Any] = json.loads(run(_JOINS))
    assert found["golden"] == found["cpu"] == found["pysim"] == found["session"]
    assert len(found["golden"]) == 2
    assert found["csv"] == found["parquet"] == found["arrow"] == [{"x": 10, "a_s": 12}]


def test_the_command_line(here: Path) -> None:
    Path("R.csv").write_text("ts,x\n1,10\n4,20\n9,30\n")
    Path("S.csv").write_text("ts,a\n2,12\n5,70\n9,31\n")
    code = _BLOCK + "from splitjoin.cli import main; sys.exit(main(sys.argv[1:]))"
    said = run(code, "join", "R.csv", "S.csv", "--on", "abs(r.x - s.a) <= 5", "--window", "RANGE 4", "--time", "ts",
               "-o", "out.csv")
    assert Path("out.csv").read_text().count("\n") == 3, said
    lines = run(code, "devices").splitlines()
    lacking = {line.split()[0] for line in lines if "which is not on this platform; use it on Linux" in line}
    assert {"daemon", "xdma", "zynq"} <= lacking
    assert not lacking & {"cpu", "golden", "pysim", "sim"}
