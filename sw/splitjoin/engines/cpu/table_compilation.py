"""When joins of whole tables use compiled loops: once these are compiled, and pay for loading the compiler.

All conditions share them. The first joins on a machine run by NumPy, while another process compiles them.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from splitjoin.base.cache import KERNELS, NoCache, find, made, place
from splitjoin.base.errors import SplitJoinError

from .compilation import Child, compile_alone, start_child, toolchain
from .compiler import has_numba

__all__ = ["TableCompilation", "compile_in_background"]

#: Rows that a process has joined, of both tables and all joins, from which on numba is loaded, or the loops compiled:
#: by then NumPy has taken about as much longer as loading takes.
_ENOUGH = 3_000_000
#: Seconds after which a process that has found others compiling is started again.
_PATIENCE = 5.0


class TableCompilation:
    """The loops of `table_loops`, and the process that compiles them."""

    def __init__(self) -> None:
        self._rows = 0
        self._child: Child | None = None
        self._again = 0.0

    def for_rows(self, rows: int, when: str) -> Mapping[str, Any] | None:
        """The loops by name for a join of so many rows; None where NumPy is to do the work. ``when``: "background", or
        "first" to compile them before the first result.
        """
        self._rows += rows
        if not has_numba():
            return None
        if when != "first":
            many = self._rows >= _ENOUGH
            if not many and "numba" not in sys.modules:
                return None
            if not self._is_known():
                if many:
                    self._start()
                return None
        from .table_loops import LOOPS

        return LOOPS

    @staticmethod
    def _is_known() -> bool:
        try:
            return find(_marker()) is not None
        except SplitJoinError:  # a cache that others can write to
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
    """The entry of the cache that says that the loops are in it."""
    return f"{KERNELS}/tables-{hashlib.sha256(toolchain().encode()).hexdigest()[:24]}.compiled"


def compile_in_background(marker: str) -> None:
    """Do the work of the process that compiles, and end it."""
    def compile_all() -> None:
        from .table_loops import LOOPS

        for loop in LOOPS.values():
            loop.ready()
        with suppress(NoCache):
            place(marker).touch(mode=0o600)
            made()

    sys.exit(compile_alone(marker, compile_all))
