"""Machine code of compiled functions, kept in the cache folder.

numba has a cache of its own, beside the source or in ``$NUMBA_CACHE_DIR``. splitjoin does not use it: numba unpickles
what it finds there, and so runs code, whoever has written it. Here a file is read only if nobody else could have
written it.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba
from numba.core import config
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from splitjoin.base.cache import KERNELS, NoCache, find, note_entry, place, publish
from splitjoin.base.trust import private_bytes

#: Settings of numba, beside the processor, that machine code depends on.
_SETTINGS = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT")
#: Bytes at the start of a file: a digest of the rest, so that a damaged file counts as none.
_DIGEST = 32


class MachineCode(NullCache):
    """The cache of one compiled ``function``, in the place of numba's. ``source`` gives a digest of all source that its
    machine code depends on.

    A file is an entry of the cache, for one function, combination of argument types, and processor.
    """

    def __init__(self, function: Callable[..., Any], source: Callable[[], str]):
        self._function, self._source = function, source

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function for the argument types ``sig``; None if the cache has none."""
        target_context.refresh()
        path = find(self._name(sig, target_context.codegen()))
        data = None if path is None else private_bytes(path)
        if data is None or hashlib.sha256(data[_DIGEST:]).digest() != data[:_DIGEST]:
            return None
        rebuilt: Any = CompileResult  # numba is not typed
        return rebuilt._rebuild(target_context, *pickle.loads(data[_DIGEST:]))

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep ``data``, compiled for the argument types ``sig``, if there is a cache that can be written to."""
        if data.lifted or data.library.has_dynamic_globals:
            return  # holds addresses of this process
        content: bytes = dumps(data._reduce())  # type: ignore[no-untyped-call]  # numba is not typed
        with suppress(NoCache, OSError):  # without a cache, and on a full disk, the code stays in memory
            target = place(self._name(sig, data.codegen))
            part = target.with_suffix(f".{os.getpid()}.part")
            with suppress(FileNotFoundError):
                part.unlink()
            try:
                with open(part, "xb", opener=_private) as file:
                    file.write(hashlib.sha256(content).digest() + content)
                publish(part, target)
            finally:
                part.unlink(missing_ok=True)
            note_entry()

    def _name(self, sig: Any, codegen: Any) -> str:
        key = (numba.__version__, sys.implementation.cache_tag, self._source(), self._function.__module__,
               self._function.__qualname__, str(sig), codegen.magic_tuple(),
               [getattr(config, name, None) for name in _SETTINGS])
        return f"{KERNELS}/{self._function.__name__}-{hashlib.sha256(repr(key).encode()).hexdigest()[:24]}.code"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
