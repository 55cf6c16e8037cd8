"""Compiling at run time with numba: functions of this package, and generated sources."""

from __future__ import annotations

import hashlib
import linecache
import math
import sys
import time
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any, TypeVar, cast

from splitjoin.base.progress import tell

from .compiler import has_numba, needs_numba

if not has_numba():  # whoever imports this module has not asked
    raise needs_numba("a compiled loop", "use device='cpu' with engine='auto', which then joins by NumPy")

import numba  # behind the check
from numba.core import event

from .machine_code import MachineCode

F = TypeVar("F", bound=Callable[..., Any])

#: Digests of the sources of generated modules, by module name.
_generated: dict[str, str] = {}


class Teller(event.Listener):
    """A listener to numba that tells the user by ``say`` when loops are compiled; loading them from disk is silent.

    ``pause``: seconds without a compilation after which the next one is told again, as a query compiles several
    functions.
    """

    def __init__(self, say: Callable[[str], None] = tell, pause: float = 10.0) -> None:
        self._say, self._pause, self._ended = say, pause, -math.inf

    def on_start(self, event: Any) -> None:
        """Tell, unless it has just been told."""
        if time.monotonic() - self._ended > self._pause:
            self._say("compiling loops that this query needs, once for this machine, which takes some seconds")
        self._ended = time.monotonic()

    def on_end(self, event: Any) -> None:
        """Note the time."""
        self._ended = time.monotonic()


event.register("numba:compile", Teller())  # type: ignore[no-untyped-call]  # numba has no types


def compiled(function: F, **options: Any) -> F:
    """Compile ``function`` on first use, for each combination of argument types; keep the machine code on disk.

    It runs without the interpreter's lock. It must call compiled functions of its own file only: the cache looks for
    changes nowhere else. ``options``: more of numba's.
    """
    found = numba.njit(nogil=True, **options)(function)
    if found is not function:  # as it is with NUMBA_DISABLE_JIT
        found._cache = MachineCode(function, lambda: _digest_of(function.__module__))
    return cast(F, found)


def compiled_as_numpy(function: F) -> F:
    """As `compiled`, but a division by zero gives what NumPy gives, and is no error."""
    return compiled(function, error_model="numpy")


@cache
def digest(*modules: ModuleType) -> str:
    """A hash of the files of ``modules``. A generated source that calls their functions contains it, as their machine
    code becomes part of its own, and the cache looks for changes in its own file only.
    """
    return hashlib.sha256(b"".join(_source(m) for m in modules)).hexdigest()[:16]


@cache
def _digest_of(module: str) -> str:
    if module in _generated:
        return _generated[module]
    return hashlib.sha256(_source(sys.modules[module])).hexdigest()


def _source(module: ModuleType) -> bytes:
    loader = cast(Any, module.__loader__)  # of a folder, or of a zip file, in which Spark ships packages
    return cast(bytes, loader.get_data(module.__file__))


@cache
def load(text: str) -> ModuleType:
    """The module with source ``text``. Only the machine code of its functions goes to the disk."""
    key = hashlib.sha256(text.encode()).hexdigest()
    name = f"splitjoin_kernel_{key[:24]}"
    file = f"<{name}>"
    module = ModuleType(name)
    _generated[name] = key
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file  # lines for tracebacks
    sys.modules[name] = module  # numba looks the module up by name, for machine code from the cache too
    exec(compile(text, file, "exec"), module.__dict__)
    return module
