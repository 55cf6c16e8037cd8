"""The names of files: which formats there are, and what is no file of this machine."""

from __future__ import annotations

import os
import re
from pathlib import Path

from splitjoin.base.errors import InputError

__all__ = ["IPC", "has_format", "is_url", "known", "short"]

#: Suffixes of Arrow IPC, as a file or as a stream.
IPC = (".arrow", ".feather")
_SUFFIXES = (".parquet", ".csv", *IPC)
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")


def is_url(path: str | os.PathLike[str]) -> bool:
    """True if ``path`` is the address of something on another machine."""
    return isinstance(path, str) and _URL.match(path) is not None


def has_format(path: str | Path) -> bool:
    """True if the suffix of ``path`` tells a format."""
    return Path(path).suffix.lower() in _SUFFIXES


def known(path: Path) -> Path:
    """``path``, if its suffix tells a format. Raises `InputError`."""
    if not has_format(path):
        raise InputError(f"the format of a file follows from its suffix, which must be .parquet, .csv, .arrow or "
                         f".feather, but {path} has {path.suffix or 'none'}")
    return path


def short(path: Path) -> str:
    """``path`` as messages show it."""
    text = str(path)
    return text if len(text) <= 300 else f"{text[:100]} … {text[-100:]}"
