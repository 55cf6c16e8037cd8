"""The daemon's socket: its path, its lock file, and the check of the user at the other end of a connection."""

from __future__ import annotations

import fcntl
import os
import socket as sockets
import stat
import struct
from pathlib import Path
from typing import IO

from splitjoin.base import threads
from splitjoin.base.cache import cache_folder
from splitjoin.base.errors import DeviceError

#: Longer paths do not fit the kernel's address of a Unix socket (108 bytes with a zero at the end).
_MAX_PATH = 107
#: Connections that wait until the daemon accepts them.
_BACKLOG = 64
_CREDENTIALS = struct.Struct("3i")


def default_socket() -> Path:
    """The default path: splitjoin/daemon.sock in $XDG_RUNTIME_DIR, or daemon/daemon.sock in the cache folder."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime) / "splitjoin" / "daemon.sock" if runtime else cache_folder() / "daemon" / "daemon.sock"


def lock_socket(path: Path) -> IO[str]:
    """Lock the socket ``path`` for this process, until the returned lock file is closed. Makes the folder if needed.

    The kernel releases the lock when the process ends, even if it is killed. Raises `DeviceError` if another daemon
    holds the lock, or if other users may enter the folder.
    """
    if len(os.fsencode(path)) > _MAX_PATH:
        raise DeviceError(f"the path of a socket must have at most {_MAX_PATH} bytes, but {path} has "
                          f"{len(os.fsencode(path))}; choose a shorter one")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_folder(path.parent)
        # Not truncated: it holds the id of the process that has the lock.
        lock = os.fdopen(os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+")
    except OSError as error:
        raise DeviceError(f"the folder of the socket must be one that can be written to, but {path.parent} is not "
                          f"({error.strerror or error}); choose another") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        with lock:
            holder = lock.read().strip()
        raise DeviceError(f"a socket must have one daemon, but process {holder or '(unknown)'} serves {path} already; "
                          f"stop it with splitjoin daemon stop, or choose another socket") from None
    lock.truncate()
    lock.write(f"{os.getpid()}\n")
    lock.flush()
    return lock


def listen(path: Path) -> sockets.socket:
    """A socket that listens at ``path``, of mode 0600.

    The caller must hold the lock, so an existing socket there was left by a dead daemon, and is replaced. Raises
    `DeviceError` if ``path`` is a file of another kind, or no socket can be made.
    """
    socket = threads.unix_socket()
    try:
        if path.is_symlink() or path.exists():
            if not stat.S_ISSOCK(path.lstat().st_mode):
                raise DeviceError(f"the socket must not take the place of a file, but {path} is one; choose another")
            path.unlink()
        socket.bind(os.fspath(path))
        path.chmod(0o600)
        socket.listen(_BACKLOG)
    except OSError as error:
        socket.close()
        raise DeviceError(f"no socket can be made at {path} ({error.strerror or error}); choose another path") from None
    except BaseException:
        socket.close()
        raise
    return socket


def peer(socket: sockets.socket) -> tuple[int, int]:
    """The ids of the process and of the user at the other end of a connected Unix socket, according to the kernel."""
    pid, uid, _ = _CREDENTIALS.unpack(socket.getsockopt(sockets.SOL_SOCKET, sockets.SO_PEERCRED, _CREDENTIALS.size))
    return pid, uid


def check_peer(socket: sockets.socket) -> int:
    """The id of the process at the other end. Raises `DeviceError` if it belongs to another user."""
    pid, uid = peer(socket)
    if uid != os.geteuid():
        raise DeviceError(f"daemon and client must be of one user, but one is of user {uid} and the other of user "
                          f"{os.geteuid()}; start a daemon of your own")
    return pid


def _check_folder(folder: Path) -> None:
    found = folder.stat()
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise DeviceError(f"the folder of the socket must be the user's own with mode 0700, but {folder} is of user "
                          f"{found.st_uid} with mode {found.st_mode & 0o7777:04o}; choose another folder, or chmod 700 "
                          f"it")
