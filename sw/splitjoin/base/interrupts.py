"""Signals that end the command line: Ctrl-C while it is imported, which it does silently, and SIGTERM while it runs."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

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


class _Terminated(BaseException):
    """SIGTERM has come."""


@contextmanager
def orderly_termination() -> Iterator[None]:
    """Within the block, SIGTERM ends the process like a signal without a handler, but only once all blocks around what
    runs have cleaned up.
    """
    if (threading.current_thread() is not threading.main_thread()
            or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL):
        yield
        return

    def stop(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the cleaning up is not to be cleaned up
        raise _Terminated

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except _Terminated:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _is_command() -> bool:
    """True for ``splitjoin`` and for ``python -m splitjoin``, which Python calls -m until the package is imported."""
    name = sys.argv[0] if sys.argv else ""
    return (os.path.basename(name) == "splitjoin" or name == os.path.join(os.path.dirname(os.path.dirname(__file__)),
                                                                              "__main__.py")
            or (name == "-m" and "splitjoin" in sys.orig_argv))
