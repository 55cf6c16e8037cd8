"""mypy and pyright check a user's file against the installed package: from a wheel, and from an editable install.

Pyright runs as basedpyright, whose wheel brings its own Node.js; it is installed from the package index for the test.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = ROOT / "tests" / "typing_files"
#: Lines with a mistake.
WRONG = {n for n, line in enumerate((FILES / "wrong.py").read_text().splitlines(), 1) if line.endswith("# wrong")}

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("typing")]


def run(*command: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MYPY"))}
    return subprocess.run([str(c) for c in command], cwd=cwd, env=kept, capture_output=True, text=True, timeout=600)


def pip(python: Path, *arguments: str | Path) -> None:
    done = run(python, "-m", "pip", "install", "--quiet", *arguments, cwd=python.parent)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module", params=["wheel", "editable"])
def python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment in which splitjoin is installed, beside the packages of this one."""
    folder = tmp_path_factory.mktemp(request.param)
    source = folder / "source"
    source.mkdir()
    for name in ("sw", "hw", "sim", "boards", "pyproject.toml", "README.md", "LICENSE"):
        copy: Callable[[Path, Path], object] = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    venv.create(folder / "venv", with_pip=True)
    found = folder / "venv" / "bin" / "python"
    pip(found, "--no-deps", *(["--editable"] if request.param == "editable" else []), source)
    (packages,) = (folder / "venv" / "lib").glob("python3*/site-packages")
    inherited = {sysconfig.get_paths()["purelib"], *(p for p in sys.path if p.endswith("site-packages"))}
    (packages / "beside.pth").write_text("".join(f"{path}\n" for path in sorted(inherited)))
    return found


@pytest.fixture(scope="module")
def pyright(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pyright")
    venv.create(folder, with_pip=True)
    pip(folder / "bin" / "python", "basedpyright==1.40.2")
    return folder / "bin" / "basedpyright"


def test_mypy(python: Path, tmp_path: Path) -> None:
    for name in ("right.py", "wrong.py"):
        shutil.copy(FILES / name, tmp_path)
    mypy = (sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "--disable-error-code",
            "import-untyped", "--no-incremental")
    right = run(*mypy, "right.py", cwd=tmp_path)
    assert right.returncode == 0, right.stdout + right.stderr
    wrong = run(*mypy, "wrong.py", cwd=tmp_path)
    assert {int(n) for n in re.findall(r"(?m)^wrong\.py:(\d+): error", wrong.stdout)} == WRONG, wrong.stdout


def test_pyright(python: Path, pyright: Path, tmp_path: Path) -> None:
    for name in ("right.py", "wrong.py"):
        shutil.copy(FILES / name, tmp_path)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "standard"}))
    done = run(pyright, "--pythonpath", python, "--outputjson", "--level", "error", cwd=tmp_path)
    found = {(Path(d["file"]).name, d["range"]["start"]["line"] + 1)
             for d in json.loads(done.stdout)["generalDiagnostics"] if d["severity"] == "error"}
    assert found == {("wrong.py", line) for line in WRONG}, done.stdout


def test_the_package_runs(python: Path, tmp_path: Path) -> None:
    code = ("import splitjoin, splitjoin_sim; r = splitjoin.join({'x': [1, 5]}, {'a': [1]}, on='r.x = s.a', "
            "device='golden'); print(len(r), splitjoin.__file__)")
    done = run(python, "-c", code, cwd=tmp_path)
    count, where = done.stdout.split()
    assert count == "1", done.stderr
    assert str(python.parents[2]) in where
