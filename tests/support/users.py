"""Files of another user, for tests of who may have written what is loaded: root gives them away, others pretend."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

#: The id of a user that is neither root nor the one that runs the tests.
OTHER = 12345


@contextmanager
def of_another_user(path: Path) -> Iterator[None]:
    """Let ``path`` belong to the user `OTHER`; a symbolic link itself, not what it names."""
    before = path.lstat()
    if os.geteuid() == 0:
        os.chown(path, OTHER, -1, follow_symlinks=False)
        try:
            yield
        finally:
            if os.path.lexists(path):
                os.chown(path, before.st_uid, -1, follow_symlinks=False)
        return

    def given(found: os.stat_result) -> os.stat_result:
        if (found.st_dev, found.st_ino) != (before.st_dev, before.st_ino):
            return found
        return os.stat_result((*found[:4], OTHER, *found[5:]))

    with pytest.MonkeyPatch.context() as patch:
        lstat, fstat = Path.lstat, os.fstat
        patch.setattr(Path, "lstat", lambda self: given(lstat(self)))
        patch.setattr(os, "fstat", lambda file: given(fstat(file)))
        yield
