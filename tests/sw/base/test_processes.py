"""Processes of Python: none that splitjoin starts imports modules from the current folder."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from splitjoin.base.processes import SAFE, python_command, python_path
from splitjoin_boards.flow.tools import Tool

ROOT = Path(__file__).parents[3]


@pytest.fixture
def downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with modules that somebody else has put there."""
    monkeypatch.chdir(tmp_path)
    for name in ("numba", "timeit", "splitjoin", "sqlglot"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w').close()\n")
    return tmp_path


def test_a_process_and_those_that_it_starts_in_turn(downloads: Path) -> None:
    code = ("import subprocess, sys; import timeit; "
            "subprocess.run([sys.executable, '-c', 'import timeit, sys; print(sys.argv[1])', sys.argv[1]], check=True)")
    done = subprocess.run(python_command(code, "said"), env={**os.environ, **SAFE}, capture_output=True, text=True,
                          check=True)
    assert done.stdout == "said\n"
    assert not (downloads / "ran").exists()


def test_the_path_of_modules_is_this_process_s(downloads: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the empty entry, which is the current folder; entries stay what they are wherever the process runs."""
    monkeypatch.setattr(sys, "path", ["", "/a", "", "b"])
    assert python_path() == f"/a{os.pathsep}{downloads / 'b'}"


def test_tools_from_pypi(downloads: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPLITJOIN_TEST_TOOL", raising=False)
    Tool("timeit", "timeit", "main", "SPLITJOIN_TEST_TOOL").run(["-n", "1", "-r", "1", "pass"], downloads)
    assert not (downloads / "ran").exists()


def test_the_module_as_a_command(downloads: Path) -> None:
    """By -m, Python looks for the package in the current folder first; what it imports in turn comes from elsewhere."""
    for path in downloads.glob("s*.py"):
        path.unlink()
    code = ("import runpy, sys; sys.argv = ['splitjoin', '--version']\n"
            "try: runpy.run_module('splitjoin', run_name='__main__', alter_sys=True)\n"
            "finally: import timeit, numba")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("splitjoin ")
    assert not (downloads / "ran").exists()


def test_all_commands_say_so() -> None:
    """The kind: a list that begins with this Python has -P after it."""
    bare = []
    for folder in ("sw", "hw", "sim", "boards"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text()
            for node in ast.walk(ast.parse(text if "sys.executable" in text else "")):
                if isinstance(node, ast.List | ast.Tuple) and len(node.elts) > 1:
                    first, second = map(ast.unparse, node.elts[:2])
                    if first == "sys.executable" and second != "'-P'":
                        bare.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert bare == []
