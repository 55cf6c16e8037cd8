"""The cache folder for results of slow builds: compiled circuits and compiled kernels.

What is loaded from it is code, so nobody but this user and root may be able to change it (`trust`). It is kept within a
limit: the least recently used entries are removed first.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from . import disk
from .errors import ToolError
from .trust import Untrusted, change_of, check_folder, is_private

if TYPE_CHECKING:
    from filelock import BaseFileLock

#: Bytes that the cache may hold if $SPLITJOIN_CACHE_LIMIT does not say otherwise: some thousand kernels, or some
#: hundred simulated circuits.
_LIMIT = 4 << 30
_UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
#: Entries used within this many seconds are never removed: a process may be about to load them.
_IN_USE = 3600.0
#: The folder of the entries, below the one that the user or the platform names, which may hold other things.
_OWN = "splitjoin-cache"
#: Folder in it that holds an entry per name, rather than being one.
KERNELS = "kernels"
#: Names of entries up to the first dot. Nothing else is ever removed.
_ENTRY = re.compile(r"[A-Za-z0-9_-]+-[0-9a-f]{24}")
#: The file that says that a folder is a cache, to `trim` and to programs for back-ups
#: (the Cache Directory Tagging Specification).
_TAG, _SIGNATURE = "CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55"
_TAG_TEXT = f"""{_SIGNATURE}
# Splitjoin keeps compiled code here, which it makes again where it is missing: back-ups may leave this folder out.
# It is a cache directory by the Cache Directory Tagging Specification, https://bford.info/cachedir/
"""

#: The start of the errors for a cache that others can change.
REFUSED = "the cache holds code that is loaded, so nobody but this user and root may write"
_CURE = "set the variable SPLITJOIN_CACHE to a folder that can be written to"


class NoCache(ToolError):
    """No folder can be written to, neither the cache's nor one for temporary files."""


def cache_folder() -> Path:
    """The folder in which entries of the cache are made; absolute, without symbolic links, and made (mode 0700) if need
    be.

    It is ``splitjoin-cache`` in $SPLITJOIN_CACHE, else in the platform's cache folder for splitjoin. Where that cannot
    be written to, it is in a folder of this user among the temporary files, which is said in a warning, once.

    Raises `ToolError` if anyone but this user or root can change what $SPLITJOIN_CACHE names; `NoCache` if nothing can
    be written to.
    """
    folders = _folders()
    if folders.writable is None:
        raise NoCache(f"the cache of compiled circuits and kernels must be a folder that can be written to, but "
                      f"{folders.why}; {_CURE}")
    return folders.writable


def cache_problem() -> str:
    """The reason why the cache is not the folder where it belongs, and what to do; empty if it is. Raises as
    `cache_folder`.
    """
    return _usable_folders().problem


def find(name: str) -> Path | None:
    """The path of the entry ``name`` of the cache, a file or folder; None if there is none. Notes that it is used.

    A cache that this user may not write to, as in the image of a container, still gives the entries that it has. A file
    that others could have written counts as none: it is made again. Raises `ToolError` as `cache_folder`, and for a
    folder in the cache that others can change.
    """
    folders = _folders()
    for folder in (*folders.readable, *([folders.writable] if folders.writable else [])):
        path = folder
        try:
            for part in Path(name).parts:
                path = path / part
                status = path.lstat()
                if not stat.S_ISREG(status.st_mode):
                    _check_inner(path, status)
        except OSError:
            continue
        if path.is_dir() or is_private(status):
            with suppress(OSError):  # of a cache that may only be read
                os.utime(path)  # the least recently used entries are removed first
            return path
    return None


def place(name: str) -> Path:
    """The path at which the entry ``name`` is to be made; its folder is there. Raises as `cache_folder` and `find`."""
    folder = cache_folder()
    for part in Path(name).parts[:-1]:
        folder = folder / part
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            _check_inner(folder, folder.lstat())
        except OSError as error:
            raise NoCache(_unusable(folder, error)) from None
    return folder / Path(name).name


def cached(name: str, make: Callable[[Path], Path]) -> Path:
    """The entry ``name`` of the cache. If it is not there yet, it is made, while processes that need it too wait:
    ``make`` gets an empty folder beside it, and returns what becomes the entry, a finished file in the folder or the
    folder itself. All else in there is removed afterwards, and what a build left that was killed. Raises as `find` and
    `place`.
    """
    found = find(name)
    if found is not None:
        return found
    target = place(name)
    with making(target.with_suffix(".lock")):
        if find(name) is None:
            work = target.with_suffix(".work")
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(mode=0o700)
            try:
                publish(make(work), target)
            finally:
                shutil.rmtree(work, ignore_errors=True)
    return target


def publish(part: Path, target: Path) -> None:
    """Give the finished file or folder ``part`` the name ``target``, in one step, so that nobody sees half of it, also
    after a power cut.

    Others lose write permission, which they have where the user's umask gives it.
    """
    part.chmod(stat.S_IMODE(part.stat().st_mode) & ~(stat.S_IWGRP | stat.S_IWOTH))
    disk.publish(part, target)


def cache_limit() -> int:
    """The bytes that the cache may hold: $SPLITJOIN_CACHE_LIMIT, such as ``500 MiB``, or 4 GiB. Raises `ToolError`."""
    text = os.environ.get("SPLITJOIN_CACHE_LIMIT")
    if not text:
        return _LIMIT
    size = re.fullmatch(r"\s*(\d+)\s*([KMGT]iB|B|)\s*", text)
    if size is None:
        raise ToolError(f"the variable SPLITJOIN_CACHE_LIMIT must be a whole number of B, KiB, MiB, GiB or TiB, such "
                        f"as '500 MiB', not {text!r}")
    return int(size[1]) * _UNITS[size[2]]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file ``path``, made if need be; processes that want the same thing wait for each other."""
    try:
        if not path.parent.is_dir():
            disk.make_folder(path.parent, 0o700)
        lock = _lock(path)
        lock.acquire()
    except OSError as error:
        raise NoCache(_unusable(path.parent, error)) from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def try_lock(paths: Sequence[Path]) -> Iterator[bool]:
    """Hold the first of the lock files ``paths`` that no other process holds; yields False if there is none."""
    from filelock import Timeout  # here, as it takes 20 ms to import, which a process that finds all entries spares

    with ExitStack() as stack:
        for path in paths:
            with suppress(Timeout):
                stack.enter_context(_lock(path).acquire(blocking=False))
                yield True
                return
        yield False


@contextmanager
def making(path: Path) -> Iterator[None]:
    """Hold the lock file ``path`` while an entry of the cache is made. The first time in a process, `trim` follows."""
    with locked(path):
        yield
    note_entry()


def note_entry() -> None:
    """Note that an entry has been made. The first time in a process, `trim` follows."""
    _trim_once(cache_folder())


def trim(folder: Path, limit: int) -> int:
    """Remove the least recently used entries of the cache in ``folder`` until it holds at most ``limit`` bytes.

    Entries used within the last hour stay, even if they are too many. Removes nothing whose name is not one that
    splitjoin gives, and follows no links. Returns the number of bytes removed. Does nothing if another process trims,
    if the folder cannot be written to, or if no ``CACHEDIR.TAG`` says that it is a cache.
    """
    try:
        if not (folder / _TAG).read_text(errors="replace").startswith(_SIGNATURE):
            return 0
        with try_lock([folder / "trim.lock"]) as mine:
            return _trim(folder, limit) if mine else 0
    except OSError:
        return 0


@dataclass
class _CacheEntry:
    """Cache entry that is removed as a whole: its files and folders, size in bytes, and time of last use."""

    paths: list[Path]
    size: int = 0
    used: float = 0.0


def _trim(folder: Path, limit: int) -> int:
    entries = _entries(folder)
    total, removed = sum(one.size for one in entries), 0
    latest = time.time() - _IN_USE
    for one in sorted(entries, key=lambda one: one.used):
        if total - removed <= limit or one.used > latest:
            break
        for path in one.paths:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(OSError):
                    path.unlink()
        removed += one.size
    return removed


def _entries(folder: Path) -> list[_CacheEntry]:
    """The entries of the cache: files and folders whose names agree up to the first dot. Locks belong to none: a
    process may hold one whose entry is not there yet.
    """
    entries: dict[str, _CacheEntry] = {}
    for shelf in (folder, folder / KERNELS):
        if shelf.is_symlink() or not shelf.is_dir():
            continue
        for path in shelf.iterdir():
            name = path.name.partition(".")[0]
            if path.suffix == ".lock" or not _ENTRY.fullmatch(name):
                continue
            one = entries.setdefault(name, _CacheEntry([]))
            one.paths.append(path)
            for part in _files(path):
                with suppress(OSError):  # others may remove it at the same time
                    status = part.lstat()
                    one.used = max(one.used, status.st_mtime)
                    if stat.S_ISREG(status.st_mode):
                        # Most file systems keep the time of the last read to a day only, which is fine enough here.
                        one.used = max(one.used, status.st_atime)
                        one.size += status.st_size
    return list(entries.values())


def _files(path: Path) -> Iterator[Path]:
    """``path``, and if it is a folder, all files and folders in it. No links are followed."""
    yield path
    if not path.is_symlink():
        for above, folders, files in os.walk(path):
            yield from (Path(above, name) for name in (*folders, *files))


@cache
def _trim_once(folder: Path) -> None:
    trim(folder, cache_limit())


@dataclass(frozen=True)
class _Folders:
    """The cache's folders: those that may only be read, and the one in which entries are made, None if there is none.
    ``why``: why that is not the folder where it belongs, empty if it is.
    """

    readable: tuple[Path, ...] = ()
    writable: Path | None = None
    why: str = ""

    @property
    def problem(self) -> str:
        """The text for users, if there is something to say."""
        does = "stays in memory, and each process compiles it again" if self.writable is None else (
            f"goes to the temporary folder {self.writable}")
        return f"compiled code {does}, as {self.why}; {_CURE}" if self.why else ""


def _folders() -> _Folders:
    """The folders to use; what is wrong with the usual ones is said once."""
    folders = _usable_folders()
    if folders.problem:
        _say(folders.problem)
    return folders


def _usable_folders() -> _Folders:
    own = os.environ.get("SPLITJOIN_CACHE")
    base = Path(own).absolute() if own else platformdirs.user_cache_path("splitjoin").absolute()
    folder, readable = base / _OWN, tuple[Path, ...]()
    try:
        folder = _prepared(base)
        if os.access(folder, os.W_OK | os.X_OK):
            return _Folders(writable=folder)
        why, readable = "it cannot be written to", (folder,)
    except Untrusted as error:
        if own:
            raise ToolError(f"{REFUSED} to its folder, but in {folder}, {error}; set the variable SPLITJOIN_CACHE "
                            f"to a folder of your own, or chmod 700 this one, if you trust what is in it") from None
        why = str(error)
    except OSError as error:
        why = str(error.strerror or error)
    try:
        temporary = _prepared(_temporary())
    except (OSError, Untrusted) as error:
        return _Folders(readable, None, f"the cache {folder} cannot be used ({why}), nor a temporary folder ({error})")
    return _Folders(readable, temporary, f"the cache {folder} cannot be used ({why})")


def _prepared(base: Path) -> Path:
    """The cache's folder below ``base``, made if need be. Raises OSError if that fails, `Untrusted` if others can
    change it.
    """
    folder = base / _OWN
    if not folder.is_dir():
        there = base
        while not there.exists():
            there = there.parent
        check_folder(there, inside=False)
        disk.make_folder(folder, 0o700)
    folder = check_folder(folder)
    tag = folder / _TAG
    if not tag.exists():
        with suppress(OSError):  # of a cache that may only be read
            tag.write_text(_TAG_TEXT)
    return folder


def _temporary() -> Path:
    """A folder among the temporary files, which all processes of this user share."""
    user = f"-{os.geteuid()}" if hasattr(os, "geteuid") else ""
    return Path(tempfile.gettempdir()).absolute() / f"splitjoin{user}"


def _check_inner(folder: Path, status: os.stat_result) -> None:
    """Raise `ToolError` if others can change what is in ``folder``, a folder in the cache, or a link of our own to one.
    The cache itself has passed.
    """
    if (why := change_of(folder, status)) is not None:
        raise ToolError(f"{REFUSED} to its folders, but {why}; remove it, or chmod 700 it if you trust what is in "
                        f"it")


def _lock(path: Path) -> BaseFileLock:
    from filelock import FileLock

    return FileLock(path, mode=0o600)


@cache
def _say(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=5)


def _unusable(folder: Path, error: OSError) -> str:
    return (f"the cache of compiled circuits and kernels must be a folder that can be written to, but "
            f"{folder} is not ({error.strerror or error}); set the variable SPLITJOIN_CACHE to one that is")
