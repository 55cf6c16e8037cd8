"""Compiled loops over whole tables: each has one signature, so all are compiled once for a machine, for any condition.

Arrays have one dimension and lie contiguously: codes of keys are uint64, numbers of rows, groups and places int64.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from threading import Lock
from typing import Any

from numba import types

from .jit import compiled

__all__ = ["LOOPS", "Loop", "loop", "scalar_kinds"]

#: The types of elements and of numbers, by the letter of a kind.
scalar_kinds: dict[str, Any] = {"u": types.uint64, "i": types.int64, "b": types.uint8, "n": types.int64,
                                "w": types.uint64}
_READ, _WRITE = ({name: types.Array(scalar_kinds[name], 1, "C", readonly=readonly, aligned=True) for name in "uib"}
                 for readonly in (True, False))
_compiling = Lock()
_KINDS: dict[str, Any] = {**_READ, **{name.upper(): kind for name, kind in _WRITE.items()},
                          **{name: scalar_kinds[name] for name in "nw"}}


class Loop:
    """A function with one signature, which is compiled, or read from the cache, at its first call, or by `ready`.

    Attributes:
        plain: The function as Python has it.
        kinds: Those of its arguments.
    """

    def __init__(self, function: Callable[..., Any], signature: str):
        self.plain, self.kinds = function, signature
        self._function: Any = compiled(function)
        self._signature = tuple(_KINDS[kind] for kind in signature)
        self._is_ready = not hasattr(self._function, "compile")  # with NUMBA_DISABLE_JIT
        update_wrapper(self, function)

    def ready(self) -> Any:
        """The function, compiled."""
        if not self._is_ready:
            with _compiling:
                if not self._is_ready:
                    self._function.compile(self._signature)
                    self._function.disable_compile()
                    self._is_ready = True
        return self._function

    def __call__(self, *args: Any) -> Any:
        return self.ready()(*args)


#: All loops, by name.
LOOPS: dict[str, Loop] = {}


def loop(signature: str) -> Callable[[Callable[..., Any]], Loop]:
    """A loop whose arguments are of the kinds in ``signature``: u, i, b for arrays of uint64, int64 and uint8 that are
    read, U, I, B for those that are written, n for an int64 and w for a uint64.

    It returns a number or nothing and makes no arrays, so that its machine code needs nothing else (`table_image`).
    """
    def made(function: Callable[..., Any]) -> Loop:
        LOOPS[function.__name__] = found = Loop(function, signature)
        return found
    return made
