"""Ctrl-C at any time: the exit code of an interrupt, no traceback, and no file half-written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: Presses Ctrl-C when a module is looked for; Python imports sitecustomize by itself, before anything else.
PRESS = """
import os, signal, sys
class Press:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["PRESS_AT"]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Press())
"""
COMMAND = "import sys\nfrom splitjoin.cli import main\nsys.exit(main())\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sitecustomize.py").write_text(PRESS)
    (tmp_path / "splitjoin").write_text(COMMAND)
    (tmp_path / "another.py").write_text(COMMAND)
    (tmp_path / "t.csv").write_text("x\n1\n")
    return tmp_path


def pressed(folder: Path, at: str, *program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *program, "join", "t.csv", "t.csv", "--on", "r.x = s.x", "--window", "ROWS 1", "-o", "o.csv"],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(folder), "PRESS_AT": at, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, check=False)


@pytest.mark.parametrize("program", [("splitjoin",), ("-m", "splitjoin")], ids=str)
@pytest.mark.parametrize(("at", "said"), [
    ("numpy", ""), ("pyarrow", ""), ("splitjoin.circuit.tuner", ""), ("splitjoin.cli.running", ""),
    ("pyarrow.pandas_compat", "splitjoin: interrupted\n")])
def test_the_command_ends_quietly(folder: Path, program: tuple[str, ...], at: str, said: str) -> None:
    before = sorted(os.listdir(folder))
    done = pressed(folder, at, *program)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", said)
    assert sorted(os.listdir(folder)) == before


def test_other_programs_get_the_exception(folder: Path) -> None:
    assert "KeyboardInterrupt" in pressed(folder, "splitjoin.circuit.tuner", "another.py").stderr
