"""What the synthesis tools made, kept by the content that it was made from."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from splitjoin.cache import cache_folder, locked

__all__ = ["cached"]


def cached(kind: str, key: Iterable[str], make: Callable[[Path], None]) -> Path:
    """The folder of ``kind`` for ``key``, filled by ``make`` unless it is there already; complete, or not there at all.

    Processes that want the same folder wait for each other.
    """
    digest = hashlib.sha256("\0".join(key).encode()).hexdigest()[:24]
    target = cache_folder() / f"{kind}-{digest}"
    if target.exists():
        return target
    with locked(target.with_suffix(".lock")):
        if not target.exists():
            work = target.with_suffix(".work")
            shutil.rmtree(work, ignore_errors=True)  # what a killed run left
            work.mkdir()
            make(work)
            work.replace(target)
    return target
