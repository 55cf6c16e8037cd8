"""When joins of whole tables use compiled loops: once these are compiled.

All conditions share them. The first joins on a machine run by NumPy, while another process compiles them. Where the
system can have them as an image (`table_image`), a process loads that; elsewhere it loads the compiler once that pays.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from splitjoin.base.cache import KERNELS, NoCache, find, made, place
from splitjoin.base.errors import SplitJoinError

from .compilation import Child, compile_alone, start_child, toolchain
from .compiler import has_numba
from .object_code import NotAlone
from .table_image import has_images, image_name, load_image, save_image

__all__ = ["TableCompilation", "compile_in_background", "compile_loops"]

#: Rows that a process has joined, of both tables and all joins, from which on the loops are compiled.
_MANY = 500_000
#: The same, from which on numba is loaded for them where there is no image: by then NumPy has taken about as much
#: longer as loading takes.
_ENOUGH = 3_000_000
#: Seconds after which a process that has found others compiling is started again.
_PATIENCE = 5.0


class TableCompilation:
    """The loops of `table_loops`, and the process that compiles them."""

    def __init__(self) -> None:
        self._rows = 0
        self._child: Child | None = None
        self._again = 0.0

    def for_rows(self, rows: int, when: str) -> Mapping[str, Callable[..., Any]] | None:
        """The loops by name for a join of so many rows; None where NumPy is to do the work. ``when``: "background", or
        "first" to compile them before the first result.
        """
        self._rows += rows
        if not has_numba():
            return None
        if (image := self._image()) is not None:
            return image
        if when != "first":
            many = self._rows >= (_MANY if has_images() else _ENOUGH)
            if not many and "numba" not in sys.modules:
                return None
            if not self._is_known():
                if many:
                    self._start()
                return None
            if self._rows < _ENOUGH and "numba" not in sys.modules:  # an image that cannot be made or run
                return None
        from .table_loops import LOOPS

        return LOOPS

    @staticmethod
    def _image() -> Mapping[str, Callable[..., Any]] | None:
        try:
            return load_image(image_name()) if has_images() else None
        except SplitJoinError:  # a cache that others can write to
            return None

    @staticmethod
    def _is_known() -> bool:
        try:
            return find(_marker()) is not None
        except SplitJoinError:
            return False

    def _start(self) -> None:
        """Have another process compile the loops, unless one does."""
        if (self._child is not None and self._child.code is None) or time.monotonic() < self._again:
            return
        self._again = time.monotonic() + _PATIENCE
        if sys.executable and hasattr(os, "posix_spawn"):
            with suppress(OSError, SplitJoinError):  # no process, or a cache that cannot be written to: NumPy goes on
                self._child = start_child(__name__, compile_in_background.__name__, _marker())


def _marker() -> str:
    """The entry of the cache that says that the loops are in it, each by itself."""
    return f"{KERNELS}/tables-{hashlib.sha256(toolchain().encode()).hexdigest()[:24]}.compiled"


def compile_loops() -> None:
    """Compile the loops in this process into the cache, unless they are there: as an image, or each by itself where
    that cannot be.
    """
    if has_images() and load_image(image_name()) is not None:
        return
    from .table_loops import LOOPS

    if has_images():
        with suppress(NotAlone, NoCache, OSError, AttributeError):  # the last of an older llvmlite
            save_image([(name, loop.kinds, loop.plain) for name, loop in LOOPS.items()], image_name())
            if load_image(image_name()) is not None:
                return
    for loop in LOOPS.values():
        loop.ready()
    with suppress(NoCache):
        place(_marker()).touch(mode=0o600)
        made()


def compile_in_background(marker: str) -> None:
    """Do the work of the process that compiles, and end it."""
    sys.exit(compile_alone(marker, compile_loops))
