"""The cache folder for results of slow builds: compiled circuits and compiled kernels."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import ToolError

__all__ = ["cache_folder", "locked"]


def cache_folder() -> Path:
    """$SPLITJOIN_CACHE, else splitjoin/ in the user's cache folder; absolute, and made if need be.

    Raises `ToolError` if there can be no such folder.
    """
    own = os.environ.get("SPLITJOIN_CACHE")
    base = Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "splitjoin"
    folder = base.absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(folder, error) from None
    return folder


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file ``path``, made if need be; processes that want the same thing wait for each other."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("w")
    except OSError as error:
        raise _unusable(path.parent, error) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _unusable(folder: Path, error: OSError) -> ToolError:
    return ToolError(f"the cache of compiled circuits and kernels must be a folder that can be written to, but "
                     f"{folder} is not ({error.strerror or error}); set the variable SPLITJOIN_CACHE to one that is")
