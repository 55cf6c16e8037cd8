"""The cache folder for results of slow builds: compiled circuits and compiled kernels.

What is loaded from it is code, so only its owner may write to it. It is kept within a limit: the least recently used
entries are removed first.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import platformdirs

from .errors import ToolError

__all__ = ["cache_folder", "cache_limit", "locked", "making", "trim", "try_lock"]

#: Bytes that the cache may hold if $SPLITJOIN_CACHE_LIMIT does not say otherwise: some thousand kernels, or some
#: hundred simulated circuits.
_LIMIT = 4 << 30
_UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
#: Entries used within this many seconds are never removed: a process may be about to load them.
_IN_USE = 3600.0
#: Folders that hold an entry per name, rather than being one.
_SHELVES = ("kernels", "kernels/__pycache__")


def cache_folder() -> Path:
    """$SPLITJOIN_CACHE, else the platform's cache folder for splitjoin; absolute, and made (mode 0700) if need be.

    Raises `ToolError` if there can be no such folder, or if anyone but this user or root owns it or may write to it.
    """
    own = os.environ.get("SPLITJOIN_CACHE")
    folder = Path(own).absolute() if own else platformdirs.user_cache_path("splitjoin").absolute()
    try:
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.stat()
    except OSError as error:
        raise _unusable(folder, error) from None
    _check_owner(folder, found)
    return folder


def cache_limit() -> int:
    """The bytes that the cache may hold: $SPLITJOIN_CACHE_LIMIT, such as ``500 MiB``, or 4 GiB. Raises `ToolError`."""
    text = os.environ.get("SPLITJOIN_CACHE_LIMIT")
    if not text:
        return _LIMIT
    found = re.fullmatch(r"\s*(\d+)\s*([KMGT]iB|B|)\s*", text)
    if found is None:
        raise ToolError(f"the variable SPLITJOIN_CACHE_LIMIT must be a whole number of B, KiB, MiB, GiB or TiB, such "
                        f"as '500 MiB', not {text!r}")
    return int(found[1]) * _UNITS[found[2]]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file ``path``, made if need be; processes that want the same thing wait for each other."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = path.open("w")
    except OSError as error:
        raise _unusable(path.parent, error) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def try_lock(paths: Sequence[Path]) -> Iterator[bool]:
    """Hold the first of the lock files ``paths`` that no other process holds; yields False if there is none."""
    with ExitStack() as stack:
        for path in paths:
            lock = stack.enter_context(path.open("w"))
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield True
                return
        yield False


@contextmanager
def making(path: Path) -> Iterator[None]:
    """Hold the lock file ``path`` while an entry of the cache is made. The first time in a process, `trim` follows."""
    with locked(path):
        yield
    _trim_once(cache_folder())


def trim(folder: Path, limit: int) -> int:
    """Remove the least recently used entries of the cache in ``folder`` until it holds at most ``limit`` bytes.

    Entries used within the last hour stay, even if they are too many. Returns the number of bytes removed. Does
    nothing if another process trims, or if the folder cannot be written to.
    """
    try:
        lock = (folder / "trim.lock").open("w")
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return _trim(folder, limit)
    except OSError:
        return 0


@dataclass
class _Entry:
    """Cache entry that is removed as a whole: its files and folders, size in bytes, and time of last use."""

    paths: list[Path]
    size: int = 0
    used: float = 0.0


def _trim(folder: Path, limit: int) -> int:
    found = _entries(folder)
    total, removed = sum(entry.size for entry in found), 0
    latest = time.time() - _IN_USE
    for entry in sorted(found, key=lambda entry: entry.used):
        if total - removed <= limit or entry.used > latest:
            break
        for path in entry.paths:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(OSError):
                    path.unlink()
        removed += entry.size
    return removed


def _entries(folder: Path) -> list[_Entry]:
    """The entries of the cache: files and folders whose names agree up to the first dot. Locks belong to none: a
    process may hold one whose entry is not there yet.
    """
    found: dict[str, _Entry] = {}
    shelves = [folder, *(folder / shelf for shelf in _SHELVES)]
    for shelf in shelves:
        for path in shelf.iterdir() if shelf.is_dir() else ():
            if path.suffix == ".lock" or path in shelves or path.name == "daemon":
                continue
            entry = found.setdefault(path.name.partition(".")[0], _Entry([]))
            entry.paths.append(path)
            for part in ([path] if not path.is_dir() else [path, *path.rglob("*")]):
                with suppress(OSError):  # others may remove it at the same time
                    status = part.lstat()
                    entry.used = max(entry.used, status.st_mtime)
                    if stat.S_ISREG(status.st_mode):
                        # Most file systems keep the time of the last read to a day only, which is fine enough here.
                        entry.used = max(entry.used, status.st_atime)
                        entry.size += status.st_size
    return list(found.values())


@cache
def _trim_once(folder: Path) -> None:
    trim(folder, cache_limit())


def _check_owner(folder: Path, found: os.stat_result) -> None:
    """Raise `ToolError` if another user could have put code into ``folder``. Root could anyway."""
    if found.st_uid not in (os.geteuid(), 0):
        raise ToolError(f"the cache holds code that is loaded, so its folder must be this user's own, but {folder} is "
                        f"of user {found.st_uid}; set the variable SPLITJOIN_CACHE to a folder of your own")
    if found.st_mode & 0o022:
        raise ToolError(f"the cache holds code that is loaded, so nobody else may write to its folder, but {folder} "
                        f"has mode {stat.S_IMODE(found.st_mode):04o}; remove it or chmod 700 it, if you trust what is "
                        f"in it, or set the variable SPLITJOIN_CACHE to another folder")


def _unusable(folder: Path, error: OSError) -> ToolError:
    return ToolError(f"the cache of compiled circuits and kernels must be a folder that can be written to, but "
                     f"{folder} is not ({error.strerror or error}); set the variable SPLITJOIN_CACHE to one that is")
