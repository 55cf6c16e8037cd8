"""Where splitjoin keeps what is slow to build: compiled circuits, compiled kernels."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["cache_folder", "locked"]


def cache_folder() -> Path:
    """$SPLITJOIN_CACHE, else splitjoin/ in the user's cache folder."""
    base = os.environ.get("SPLITJOIN_CACHE")
    if base:
        return Path(base)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "splitjoin"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file ``path``, made if need be; processes that want the same thing wait for each other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
