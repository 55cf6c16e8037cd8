"""``python -m splitjoin``."""

import sys


def run() -> int:
    """Run the command line, without modules of the current folder; returns the exit code."""
    if not sys.flags.safe_path:
        del sys.path[0]  # where -m puts the current folder, in which a download may have put a ``numba.py``
    from splitjoin.cli import main

    return main()


sys.exit(run())
