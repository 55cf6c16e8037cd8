"""Environments of rivals whose packages exclude splitjoin's own, made once in build/rivals from lists in bench/."""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha256
from pathlib import Path

_ROOT = Path(__file__).parent.parent
_RIVALS = _ROOT / "build" / "rivals"
#: Rivals and the module that must start.
_MODULES = {"pathway": "pathway", "table_joins": "polars_bio", "flink": "pyflink.table"}
#: Seconds that pip may take for Pathway's 129 packages, which are 1.6 GB when they are installed: ten minutes on a busy
#: machine of two cores.
_PATIENCE = 1800


def rival(name: str) -> Path:
    """The Python of the environment "pathway", "table_joins" or "flink", made at first from bench/``name``.txt.

    Raises `RuntimeError`, with the reason, if it cannot be installed or does not start.
    """
    listed, folder = Path(__file__).with_name(f"{name}.txt"), _RIVALS / name
    python, made = folder / "bin" / "python", folder / "made"
    digest = sha256(listed.read_bytes()).hexdigest()
    if not made.exists() or made.read_text() != digest:
        # Without resolving: the list is complete, and pip's resolver takes far longer than the packages do.
        _run([sys.executable, "-m", "venv", "--clear", str(folder)])
        _run([str(python), "-m", "pip", "install", "--quiet", "--no-deps", "-r", str(listed)])
        _run([str(python), "-c", f"import {_MODULES[name]}"])
        made.write_text(digest)
    return python


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"a rival's environment must be made within {_PATIENCE} s, but {command[1:4]} took longer; "
                           f"the packages that are there already are kept by pip, so try again") from error
    if done.returncode:
        raise RuntimeError(f"a rival does not run here: {' '.join(command[1:5])} ended with {done.returncode}: "
                           f"{done.stderr.strip()[-2000:]}")
