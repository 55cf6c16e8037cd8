"""Files that stay: whatever ends a process or cuts the power, a name leads to the old content or to the whole new one.

A file is synced before it gets its name, and its folder afterwards. So no name leads to data that is not on the disk,
and what a call has done is still there after a power cut. All calls that change files go through a `Disk`. Tests put
one beneath that fails at chosen calls and forgets what was not synced (`using`).
"""

from __future__ import annotations

import errno
import io
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

#: How the names of half-written files begin.
PART = ".splitjoin-"
#: What a system says that cannot sync folders.
_UNSUPPORTED = (errno.EINVAL, errno.ENOTSUP)


class NotDurable(OSError):
    """A name leads to the new content, but this may not outlast a power cut, as its folder could not be synced."""


class Disk:
    """The system calls that change files. Each raises OSError."""

    def open(self, path: Path, mode: int) -> int:
        """The handle of the new file ``path``, for writing; ``mode`` without what the umask takes away."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
                       | getattr(os, "O_BINARY", 0), mode)

    def open_nameless(self, folder: Path) -> int | None:
        """The handle of a new file in ``folder`` that has no name, so that nothing of it stays however the process
        ends; None where the system or the file system has no such files. `link` gives it a name.
        """
        flag = getattr(os, "O_TMPFILE", None)
        if flag is None:
            return None
        try:
            handle = os.open(folder, flag | os.O_WRONLY, 0o600)
        except OSError:
            return None
        if os.path.exists(f"/proc/self/fd/{handle}"):
            return handle
        os.close(handle)
        return None

    def link(self, handle: int, path: Path) -> None:
        """Give a file of `open_nameless` the name ``path``."""
        # Only linkat follows the link in /proc; Python calls it for a src_dir_fd, which means nothing here.
        os.link(f"/proc/self/fd/{handle}", path, src_dir_fd=handle, follow_symlinks=True)

    def write(self, handle: int, data: memoryview) -> int:
        """Write some of ``data``: the number of bytes."""
        return os.write(handle, data)

    def chmod(self, handle: int, mode: int) -> None:
        """Give an open file the permissions ``mode``."""
        if hasattr(os, "fchmod"):  # not on Windows
            os.fchmod(handle, mode)

    def sync(self, handle: int) -> None:
        """Return once the content of an open file is on the disk."""
        os.fsync(handle)

    def sync_file(self, path: Path) -> None:
        """Return once the content of a file is on the disk."""
        handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)  # Windows syncs only what may be written
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def sync_folder(self, folder: Path) -> None:
        """Return once the names in ``folder`` are on the disk."""
        if os.name != "posix":  # Windows cannot open folders, and orders renames by itself
            return
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
        finally:
            os.close(handle)

    def close(self, handle: int) -> None:
        """Close a file."""
        os.close(handle)

    def rename(self, path: Path, target: Path) -> None:
        """Give a file or folder the name ``target``, in place of the file that has it."""
        os.replace(path, target)

    def remove(self, path: Path) -> None:
        """Remove a file."""
        os.unlink(path)

    def make_folder(self, path: Path, mode: int) -> None:
        """Make the folder ``path``; ``mode`` without what the umask takes away."""
        os.mkdir(path, mode)


_disk = Disk()


@contextmanager
def using(disk: Disk) -> Iterator[None]:
    """Within the block, all that this module does goes through ``disk``: for tests, in all threads."""
    global _disk
    before, _disk = _disk, disk
    try:
        yield
    finally:
        _disk = before


@contextmanager
def created(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """A new file, in place of one that has this name, whose content is on the disk when the block ends, unless it
    raises. `sync_folder` is due for its name.
    """
    with suppress(FileNotFoundError):
        _disk.remove(path)
    handle = _disk.open(path, mode)
    try:
        yield _file(handle)
        _disk.sync(handle)
    finally:
        _close(handle)


@contextmanager
def replacing(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """A new file that gets the name ``path`` when the block ends, but not if it raises: then what had it stays.

    ``mode``: its permissions, without what the umask takes away. Raises `NotDurable` if only the last step fails.
    """
    part = path.parent / f"{PART}{secrets.token_hex(8)}"
    nameless = _disk.open_nameless(path.parent)
    handle = _disk.open(part, 0o600) if nameless is None else nameless
    replaced = False
    try:
        try:
            yield _file(handle)
            _disk.chmod(handle, mode & ~_umask())  # as a file opened for writing would have
            _disk.sync(handle)
            if nameless is not None:
                _disk.link(handle, part)
        finally:
            _close(handle)
        _disk.rename(part, path)
        replaced = True
    finally:
        if not replaced:
            with suppress(OSError):
                _disk.remove(part)
    try:
        _disk.sync_folder(path.parent)
    except OSError as error:
        raise NotDurable(error.errno, f"{path} is written, but may be lost if the power fails now: "
                                   f"{error.strerror or error}") from error


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Make ``folder``, and those above it that are missing, unless it is there. All new names are on the disk then.

    ``mode``: the permissions of new ones, without what the umask takes away.
    """
    if is_new := not folder.is_dir():
        if folder.parent != folder:
            make_folder(folder.parent, mode)
        try:
            _disk.make_folder(folder, mode)
        except FileExistsError:
            if not folder.is_dir():
                raise
    try:
        _disk.sync_folder(folder.parent)  # also of one that is there: who made it may have ended before this
    except PermissionError:
        if is_new:
            raise


def publish(part: Path, path: Path) -> None:
    """Give the finished file or folder ``part`` the name ``path``, in one step, so that nobody sees half of it, nor
    after a power cut; the name itself may be lost then.
    """
    _sync_all(part)
    _disk.rename(part, path)


def rename(path: Path, target: Path) -> None:
    """Give a file the name ``target``, in place of the file that has it. `sync_folder` is due afterwards."""
    _disk.rename(path, target)


def remove(path: Path) -> None:
    """Remove a file."""
    _disk.remove(path)


def sync_folder(folder: Path) -> None:
    """Return once the names in ``folder`` are on the disk."""
    _disk.sync_folder(folder)


class _File(io.RawIOBase):
    """A file that is open for writing. Closing it leaves the handle open, as libraries close what they write to."""

    def __init__(self, handle: int):
        self._handle = handle

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        rest = memoryview(cast(bytes, data)).cast("B")
        size = len(rest)
        while rest:
            rest = rest[_disk.write(self._handle, rest):]
        return size


def _sync_all(path: Path) -> None:
    """Return once a file, or a folder and all that is in it, are on the disk."""
    if path.is_symlink():
        return
    if not path.is_dir():
        _disk.sync_file(path)
        return
    for one in sorted(path.iterdir()):
        _sync_all(one)
    _disk.sync_folder(path)


def _file(handle: int) -> BinaryIO:
    return cast(BinaryIO, _File(handle))


def _close(handle: int) -> None:
    with suppress(OSError):  # what matters has been synced
        _disk.close(handle)


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask
