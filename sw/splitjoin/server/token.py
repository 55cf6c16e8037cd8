"""The token of a server, which every call must have: without it, any user of the machine could call."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from splitjoin.base import disk
from splitjoin.base.errors import InputError, first_line

#: The least characters of a token.
_LEAST = 16


def token_in(path: Path) -> str:
    """The token in the file ``path``, which is made with a random one, for its owner alone, if it is not there.

    Raises `InputError` for a file that others may read or that another user owns, and for a text that is no token.
    """
    if os.path.lexists(path):
        return _read(path)
    token = secrets.token_hex(32)
    try:
        with disk.replacing(path, 0o600) as file:
            file.write(f"{token}\n".encode())
    except OSError as error:
        raise InputError(f"the token of a server is made in token_file, but {first_line(error)}; name another "
                         f"file") from None
    return token


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            found, data = os.fstat(file.fileno()), file.read(1 << 12)
    except OSError as error:
        raise InputError(f"token_file must be a file that can be read, but {first_line(error)}") from None
    if os.name == "posix" and (found.st_mode & 0o077 or found.st_uid != os.geteuid()):
        raise InputError(f"a token must belong to the user of the server, who alone may read it, but {path} has the "
                         f"mode {stat.S_IMODE(found.st_mode):03o} and the owner {found.st_uid}; run chmod 600 on it")
    text = data.decode("utf-8", "replace").strip()
    if len(text) < _LEAST or not text.isprintable() or not text.isascii() or " " in text:
        raise InputError(f"a token must be one line of at least {_LEAST} ASCII characters without blanks, but {path} "
                         f"has another text; write a random one, as of `openssl rand -hex 32`, or remove the file")
    return text
