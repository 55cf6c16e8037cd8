"""Ctrl-C while the command line is imported: the process ends with the exit code of an interrupt and says nothing."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["INTERRUPTED", "quiet_interrupts"]

#: The exit code after Ctrl-C, as shells have it: 128 + SIGINT.
INTERRUPTED = 130


@contextmanager
def quiet_interrupts() -> Iterator[None]:
    """Let Ctrl-C end the process at once, without a traceback, if this is the command line and nothing has run yet.

    In a user's own program Ctrl-C does what it does anyway.
    """
    if not _is_command() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_command() -> bool:
    """True for ``splitjoin`` and for ``python -m splitjoin``, which Python calls -m until the package is imported."""
    name = sys.argv[0] if sys.argv else ""
    return (os.path.basename(name) == "splitjoin" or name == os.path.join(os.path.dirname(__file__), "__main__.py")
            or (name == "-m" and "splitjoin" in sys.orig_argv))
