"""Pythons for Spark's workers that have no splitjoin, or another one."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pyarrow as pa


def python_without_splitjoin(folder: Path, other: Path | None = None) -> Path:
    """A program in ``folder`` that runs this Python with installed packages alone, and so without splitjoin.

    The folders of an editable install are neither read from its list (``-S``) nor taken from the driver's path.

    ``other``: a folder of packages that it has in place of them.
    """
    packages = Path(pa.__file__).parents[1]
    path = packages if other is None else f"{other}:{packages}"
    program = folder / f"python-{'none' if other is None else other.name}"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec {shlex.quote(sys.executable)} -S "$@"\n')
    program.chmod(0o755)
    return program
