"""Progress bars for work that takes long: on a terminal and in notebooks, nowhere else."""

from __future__ import annotations

import sys
import warnings
from contextlib import nullcontext
from typing import Any

#: Seconds of work before which no bar appears.
_DELAY = 1.0


class _Quiet:
    """Nobody watches."""

    def update(self, n: float = 1) -> None:
        """Nothing to do."""


def progress_bar(total: int | None, what: str, unit: str) -> Any:
    """A bar for ``total`` steps of ``what``, counted in ``unit``; quiet where nobody watches, and in the first second.

    Use as a context manager, and call its `update` with the number of steps done.
    """
    if not _is_watched():
        return nullcontext(_Quiet())
    return _tqdm()(total=total, desc=what, unit=f" {unit}", unit_scale=True, delay=_DELAY, leave=False)


def tell(text: str) -> None:
    """Print a line on standard error, where somebody watches."""
    if _is_watched():
        _tqdm().write(f"splitjoin: {text}", file=sys.stderr)  # above bars, if there are any


def _tqdm() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # in a notebook without widgets tqdm warns, and shows bars as text
        from tqdm.auto import tqdm  # here, as it takes 20 ms of a short process
    return tqdm


def _is_watched() -> bool:
    """True on a terminal and in a notebook."""
    return sys.stderr.isatty() or _in_notebook()


def _in_notebook() -> bool:
    """True if a Jupyter kernel runs this process."""
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"
