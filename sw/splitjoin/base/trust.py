"""Checks that nobody but this user or root can change a file or folder, to be made before its content runs as code.

The rule is that of sshd's StrictModes: each folder from the root on belongs to this user or to root, and nobody else
may write to it. In a folder with the sticky bit, such as ``/tmp``, others can neither rename nor remove what is ours.
In a parent, the group may write if it is the user's private group, which has no other member (as Debian's sshd has it).

Checking from the root on by path is no race: nobody else can exchange a part of a path whose earlier parts have passed.
Systems without user ids (Windows) protect a user's folders by access lists; there all paths pass.
"""

from __future__ import annotations

import errno
import os
import stat
from functools import cache
from pathlib import Path
from typing import BinaryIO

#: Symbolic links that a path may go through, as in Linux.
_LINKS = 40
#: Write permission of the group and of all others.
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class Untrusted(Exception):
    """Others can change a path; the text says which part of it, and why."""


def check_folder(folder: Path, *, inside: bool = True) -> Path:
    """The absolute path ``folder`` without symbolic links. Raises `Untrusted` if others can exchange it or one of its
    parents, or, with ``inside``, change what is in it; OSError if it is no folder.
    """
    if not hasattr(os, "geteuid"):
        return folder.resolve(strict=True)
    for _ in range(_LINKS):
        link = _check_parts(folder, inside)
        if link is None:
            return Path(os.path.normpath(folder))
        at, rest = link
        folder = Path(at.parent / os.readlink(at), *rest)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(folder))


def change_of(folder: Path, status: os.stat_result) -> str | None:
    """A text that says how others than this user and root can change what is in ``folder``, or in the folder that it
    links to; None if they cannot. ``status`` is its `os.lstat`. Its parents must have passed. Raises OSError for a link
    to anything but a folder.
    """
    if not hasattr(os, "geteuid"):
        return None
    if not _is_ours(status):
        return f"{folder} is of user {status.st_uid}"
    if stat.S_ISLNK(status.st_mode):
        try:
            check_folder(folder)
        except Untrusted as error:
            return str(error)
        return None
    if status.st_mode & _OTHERS_WRITE:
        return f"{folder} has mode {stat.S_IMODE(status.st_mode):04o}"
    return None


def is_private(status: os.stat_result) -> bool:
    """True for a regular file that nobody but this user or root owns or may write to."""
    if not stat.S_ISREG(status.st_mode):
        return False
    return not hasattr(os, "geteuid") or (_is_ours(status) and not status.st_mode & _OTHERS_WRITE)


def private_bytes(path: Path) -> bytes | None:
    """The content of the file ``path``; None if there is none that is `is_private`."""
    file = private_file(path)
    if file is None:
        return None
    with file:
        return file.read()


def private_file(path: Path) -> BinaryIO | None:
    """The file ``path``, open for reading; None if there is none that is `is_private`.

    The check is of the file that is open, so that it cannot be exchanged between check and reading.
    """
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
                       | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError:
        return None
    content = os.fdopen(file, "rb")
    if is_private(os.fstat(file)):
        return content
    content.close()
    return None


def _check_parts(folder: Path, inside: bool) -> tuple[Path, tuple[str, ...]] | None:
    """Check ``folder`` from the root on, up to its first symbolic link: that link, and the parts after it."""
    at = Path(folder.anchor)
    for n, part in enumerate(folder.parts):
        at = at / part if n else at
        status = at.lstat()
        if not _is_ours(status):
            raise Untrusted(f"{at} is of user {status.st_uid}")
        if stat.S_ISLNK(status.st_mode):
            return at, folder.parts[n + 1:]
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(at))
        strict = inside and n == len(folder.parts) - 1
        if status.st_mode & _OTHERS_WRITE and (strict or not _is_safe_parent(status)):
            raise Untrusted(f"{at} has mode {stat.S_IMODE(status.st_mode):04o}")
    return None


def _is_ours(status: os.stat_result) -> bool:
    return status.st_uid in (os.geteuid(), 0)


def _is_safe_parent(status: os.stat_result) -> bool:
    if status.st_mode & stat.S_ISVTX:
        return True
    return not status.st_mode & stat.S_IWOTH and _is_private_group(status.st_gid, os.geteuid())


@cache
def _is_private_group(group: int, user: int) -> bool:
    """True if ``group`` has the name of ``user``, and no other member."""
    import grp  # these two are not on Windows
    import pwd

    try:
        name, entry = pwd.getpwuid(user).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    return entry.gr_name == name and set(entry.gr_mem) <= {name}
