"""Tells if numba is installed, which compiles expressions, user-defined aggregates and kernels of the GPU."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache

from splitjoin.base.errors import ToolError


def has_numba() -> bool:
    """True if numba can be imported, as far as that is known without importing it, which takes a third of a second."""
    return sys.modules["numba"] is not None if "numba" in sys.modules else _is_found(tuple(sys.path))


@cache
def _is_found(_path: tuple[str, ...]) -> bool:
    """True if numba can be found in the folders of ``sys.path``, which are the key of a cache: each join asks."""
    try:
        return importlib.util.find_spec("numba") is not None
    except (ImportError, ValueError):  # somebody blocks it
        return False


def needs_numba(what: str, instead: str) -> ToolError:
    """The error that ``what`` needs numba, with what to do ``instead`` of installing it."""
    return ToolError(f"{what} needs the Python package 'numba', which is not installed; pip install numba, or "
                     f"{instead}")
