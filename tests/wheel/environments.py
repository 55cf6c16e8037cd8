"""Fresh virtual environments of users, in which no compiler is found unless a command needs one."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import venv
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from .pages import ROOT

#: Programs that compile, and what they are called by.
_COMPILERS = re.compile(r"(.*-)?(gcc|g\+\+|cc|c\+\+|clang|clang\+\+|cpp|c89|c99|as|ld|tcc)(-[\d.]+)?")
#: Seconds after which a command that should end is ended.
_LIMIT = 3600
#: Variables of the developer, which a user does not have.
_OURS = ("PYTHON", "VIRTUAL_ENV", "PYSPARK", "SPARK", "SPLITJOIN", "NUMBA", "VERILATOR", "MAKEFLAGS", "MAKELEVEL")


class CommandError(Exception):
    """A command must end with 0, and did not."""


class Environment:
    """A fresh virtual environment with a cache of its own; each piece of work gets a folder.

    Args:
        folder: Where the environment and its folders of work are made.
        tools: The programs of the system, without compilers.
        package: The wheel or sdist that ``pip install splitjoin`` installs.
        extras: What is installed: the extras of splitjoin, such as ``[spark]``, and other packages.
    """

    def __init__(self, folder: Path, tools: Path, package: Path, extras: str = "", others: Sequence[str] = ()):
        venv.create(folder, with_pip=True)
        self.folder, self.bin, self._tools = folder, folder / "bin", tools
        links = f"{os.environ.get('PIP_FIND_LINKS', '')} {package.parent}".strip()
        self._variables = {"PIP_FIND_LINKS": links, "PIP_DISABLE_PIP_VERSION_CHECK": "1",
                           "SPLITJOIN_CACHE": str(folder / "cache"), "SPARK_LOCAL_IP": "127.0.0.1"}
        work, python = self.work("install"), str(self.bin / "python")
        self.run([python, "-m", "pip", "install", "--quiet", f"{package}{extras}", *others], work)
        imported = self.run([python, "-c", "import splitjoin; print(splitjoin.__file__)"], work)
        if not Path(imported).is_relative_to(folder):
            raise AssertionError(f"splitjoin must be imported from {folder}, not {imported}")

    def work(self, name: str) -> Path:
        """A new folder ``name`` to work in, with a folder ``bin`` for programs of its own."""
        made = self.folder / "work" / name
        (made / "bin").mkdir(parents=True)
        (made / "run").mkdir(mode=0o700)
        return made

    def path(self, work: Path, *, compilers: bool) -> str:
        """PATH for ``work``: its own programs, those of the environment, then those of the system."""
        system = os.environ["PATH"] if compilers else str(self._tools)
        return os.pathsep.join([str(work / "bin"), str(self.bin), system])

    def run(self, command: Sequence[str], work: Path, *, compilers: bool = False) -> str:
        """The output of ``command`` in the folder ``work``. Raises `CommandError` if it fails."""
        return run(command, work, {**self._variables, "PATH": self.path(work, compilers=compilers),
                                   "XDG_RUNTIME_DIR": str(work / "run")})

    def example(self, name: str, *arguments: str, compilers: bool = False) -> str:
        """The output of a script of examples/; it is copied, so that nothing else of the repository is beside it."""
        work = self.work(Path(name).stem)
        copied = work / "scripts"
        shutil.copytree((ROOT / "examples" / name).parent, copied)
        return self.run([str(self.bin / "python"), str(copied / Path(name).name), *arguments], work,
                        compilers=compilers)


def without_compilers(folder: Path) -> Path:
    """A folder with links to all programs but compilers and assemblers."""
    folder.mkdir()
    for directory in ("/usr/local/bin", "/usr/bin", "/bin"):
        for program in Path(directory).glob("*"):
            link = folder / program.name
            if not _COMPILERS.fullmatch(program.name) and not link.exists() and not link.is_symlink():
                link.symlink_to(program.resolve())
    return folder


def run(command: Sequence[str], folder: Path, variables: dict[str, str]) -> str:
    """The output of ``command``. What it leaves in the background is ended.

    Raises `CommandError` if it fails, after what it printed has been shown.
    """
    start = time.perf_counter()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, cwd=folder, env={**kept, **variables}, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=errors, start_new_session=True)
        code: int | str = f"not ended after {_LIMIT} seconds"
        try:
            with suppress(subprocess.TimeoutExpired):
                code = process.wait(_LIMIT)
        finally:
            _end(process.pid)
        texts = []
        for file in (out, errors):
            file.seek(0)
            texts.append(file.read())
    shown = " ".join(command).replace("\n", "; ")[:110]
    print(f"{time.perf_counter() - start:6.1f} s  {shown}", flush=True)
    if code:
        print(texts[0][-4000:], texts[1][-6000:], code, sep="\n", flush=True)
        raise CommandError(shown)
    return texts[0]


def _end(group: int) -> None:
    """End the processes of ``group`` that still run."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(group, number)
        except ProcessLookupError:
            return
        time.sleep(0.5)
