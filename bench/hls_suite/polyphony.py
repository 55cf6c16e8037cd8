"""LUTs of the functions that Polyphony compiles, a public high-level synthesis of Python, beside ours."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from bench.place_and_route import ecp5
from bench.place_and_route.design import Design
from splitjoin_boards.flow.tools import YOSYS, cached

VERSION = "0.4.2"
#: The functions in its types.
_SOURCE = Path(__file__).with_name("in_polyphony.py")
_FOLDER = Path(__file__).parents[2] / "build" / "rivals" / "polyphony"


def polyphony(python: str | None) -> dict[str, ecp5.Ecp5Utilization]:
    """Function → its cells after mapping for ECP5. ``python``: a Python from 3.12 on, which Polyphony needs; None for
    the first one on the path. Raises `RuntimeError` if there is none, or a step fails.
    """
    program = _FOLDER / "bin" / "polyphony"
    if not program.exists():
        found = python or next(filter(None, map(shutil.which, ("python3.12", "python3.13", "python3.14"))), None)
        if found is None:
            raise RuntimeError("Polyphony needs a Python from 3.12 on, and there is none on the path; name one by "
                               "--python")
        _run([found, "-m", "venv", "--clear", str(_FOLDER)])
        _run([str(program.with_name("python")), "-m", "pip", "install", "--quiet", f"polyphony=={VERSION}"])

    def compiled(folder: Path) -> None:
        _run([str(program), "-q", "-d", str(folder), str(_SOURCE)])
        for file in sorted(folder.glob("*_i*.v")):
            YOSYS.run(["-q", "-p", f"read_verilog {file.name}; proc; write_rtlil {file.stem}.il"], folder)

    folder = cached("polyphony", (_SOURCE.read_text(), VERSION, YOSYS.version), compiled)
    return {file.stem.rpartition("_")[0]: ecp5.utilization(Design(file.read_text(), file.stem, ()))[file.stem]
            for file in sorted(folder.glob("*.il"))}


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:4])} ended with {done.returncode}: "
                           f"{(done.stderr or done.stdout)[-800:]}")


if __name__ == "__main__":
    print(polyphony(sys.argv[1] if len(sys.argv) > 1 else None))
