"""Environments of rivals whose packages exclude splitjoin's own, made once in build/rivals."""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha256
from pathlib import Path

__all__ = ["pathway"]

_ROOT = Path(__file__).parent.parent
_RIVALS = _ROOT / "build" / "rivals"
_PATHWAY = Path(__file__).with_name("pathway.txt")
#: Seconds that pip may take for Pathway's 129 packages, which are 1.6 GB when they are installed: ten minutes on a busy
#: machine of two cores.
_PATIENCE = 1800


def pathway() -> Path:
    """The Python of Pathway's environment, made at the first call from the list bench/pathway.txt.

    Raises `RuntimeError`, with the reason, if Pathway cannot be installed or does not start.
    """
    folder = _RIVALS / "pathway"
    python, made = folder / "bin" / "python", folder / "made"
    digest = sha256(_PATHWAY.read_bytes()).hexdigest()
    if not made.exists() or made.read_text() != digest:
        # Without resolving: the list is complete, and pip's resolver takes far longer than the packages do.
        _run([sys.executable, "-m", "venv", "--clear", str(folder)])
        _run([str(python), "-m", "pip", "install", "--quiet", "--no-deps", "-r", str(_PATHWAY)])
        _run([str(python), "-c", "import pathway"])
        made.write_text(digest)
    return python


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"Pathway's environment must be made within {_PATIENCE} s, but {command[1:4]} took longer; "
                           f"the packages that are there already are kept by pip, so try again") from error
    if done.returncode:
        raise RuntimeError(f"Pathway does not run here: {' '.join(command[1:5])} ended with {done.returncode}: "
                           f"{done.stderr.strip()[-2000:]}")
