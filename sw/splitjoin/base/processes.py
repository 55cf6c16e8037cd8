"""Processes of Python that splitjoin starts: none imports modules from the folder in which the user happens to be."""

from __future__ import annotations

import os
import sys

#: Environment of every process that is started, for Python that it starts in turn. Without it, Python looks for modules
#: in the current folder first (``-c``, ``-m``), where a download may have put a ``numba.py``.
SAFE = {"PYTHONSAFEPATH": "1"}


def python_command(code: str, *arguments: str) -> list[str]:
    """The command that runs ``code`` in this Python, with ``arguments`` in ``sys.argv``."""
    return [sys.executable, "-P", "-c", code, *arguments]


def python_path() -> str:
    """$PYTHONPATH with which a process finds the modules that this one finds, but none by way of the current folder:
    an empty entry of ``sys.path`` is that folder, whichever it is at the time.
    """
    return os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)
