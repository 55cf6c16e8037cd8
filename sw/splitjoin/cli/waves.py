"""The command ``waves``: what a simulated circuit did in a run, from its waveform file."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from splitjoin.base.disk import replacing
from splitjoin.base.errors import InputError, OptionError, needing
from splitjoin.tables import target_of

__all__ = ["run_waves", "waves_options"]

#: Ending of a file that is written → its text from a view.
_WRITERS: dict[str, Callable[[Any], str]] = {
    ".html": lambda view: view.html(), ".gtkw": lambda view: view.gtkw(), ".sucl": lambda view: view.sucl()}


def waves_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("file", metavar="RUN.vcd", help="the waveforms of a run, written by --trace of --device sim or "
                                                        "pysim")
    parser.add_argument("-o", "--output", metavar="FILE", action="append", required=True,
                        help="a page (.html), a save file for GTKWave (.gtkw) or a command file for Surfer (.sucl); "
                             "may be given several times")


def run_waves(args: argparse.Namespace) -> None:
    """Write what was asked for. Raises `InputError` for a file that is no such run, or that cannot be written."""
    outputs = [Path(one) for one in args.output]
    for one in outputs:
        if one.suffix not in _WRITERS:
            raise OptionError(f"-o must be a file that ends in {', '.join(_WRITERS)}, not {str(one)!r}; give another "
                              f"name")
    with needing("a view of a run needs", "sim"):
        from splitjoin_sim.run_view import read_run
    view = read_run(Path(args.file))
    for one in outputs:
        try:
            with replacing(target_of(one)) as file:
                file.write(_WRITERS[one.suffix](view).encode())
        except OSError as error:
            raise InputError(f"{one} cannot be written: {error.strerror or error}") from None
        print(one)
