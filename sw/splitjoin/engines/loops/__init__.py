"""The compiled loops that all queries share: a library in C++, which the installation builds.

Arrays have one dimension and lie contiguously: codes of keys are uint64, numbers of rows, groups and places int64.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cache, partial
from importlib import resources
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import numpy as np

from splitjoin.base.errors import ToolError

from ..device import ITEM
from .build import BuildError, built

__all__ = ["Loop", "address_of", "entries", "loops"]

_DTYPES = {"u": np.dtype(np.uint64), "i": np.dtype(np.int64), "b": np.dtype(np.uint8), "h": np.dtype(np.uint16),
           "l": np.dtype(np.uint32), "s": np.dtype(np.int32), "f": np.dtype(np.float32), "d": np.dtype(np.float64),
           "t": ITEM}
#: Of `flags.num` of an array (NumPy's C API, array flags): contiguous in the order of C, and aligned; and writeable.
_PLAIN, _WRITEABLE = 0x101, 0x400


class _Entry(ctypes.Structure):
    """A loop in the library's list (``loop.hpp``)."""

    _fields_ = (("name", ctypes.c_char_p), ("kinds", ctypes.c_char_p), ("call", ctypes.c_void_p),
                ("enter", ctypes.c_void_p))


class Loop:
    """The loop ``name``, which lies at ``address``. ``kinds``: a letter for each argument, one of `_DTYPES` for an
    array that is read, the same in upper case for one that is written, n for an int64 and w for a uint64.

    It runs without the interpreter's lock, and returns an int64, 0 for nothing. Raises `TypeError` for arrays of
    another type, or that do not lie contiguously, as it would read other memory.
    """

    def __init__(self, name: str, kinds: str, address: int):
        self.__name__ = name
        #: Of each argument the type, None of a number, and the flags that an array must have.
        self._kinds = [(_DTYPES.get(kind.lower()), _PLAIN | (_WRITEABLE if kind.isupper() else 0)) for kind in kinds]
        self._words = ctypes.c_uint64 * sum(1 if kind in "nw" else 2 for kind in kinds)
        self._call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(address)

    def __call__(self, *args: Any) -> int:
        found: int = self._call(self._told(args))
        return found

    def bound(self, *args: Any) -> Callable[[], int]:
        """The call with ``args``, whose arrays stay where they are, in a fifth of the time: the caller keeps these."""
        return partial(self._call, self._told(args))

    def _told(self, args: tuple[Any, ...]) -> Any:
        if len(args) != len(self._kinds):
            raise TypeError(f"{self.__name__} takes {len(self._kinds)} arguments, not {len(args)}")
        words: list[int] = []
        # In few steps, as all threads wait for each other here.
        for (dtype, needed), value in zip(self._kinds, args, strict=True):
            if dtype is None:
                words.append(int(value))
                continue
            if value.dtype != dtype or value.ndim != 1 or value.flags.num & needed != needed:
                raise TypeError(f"{self.__name__} takes contiguous arrays of {dtype}, not {value.dtype} with "
                                f"shape {value.shape} and strides {value.strides}")
            n = len(value)
            words += address_of(value) if n else 0, n
        return self._words(*words)


def address_of(array: Any) -> int:
    """The address of the first element of ``array``, which the caller keeps alive."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # in a fifth of the time
    except (TypeError, ValueError):  # not to be written to, or empty
        found: int = array.__array_interface__["data"][0]
        return found


@cache
def loops(level: int = 4, package: str = __name__) -> Mapping[str, Loop]:
    """All loops by name, in code for this processor, up to this ``level`` of x86-64: of the library of all queries, or
    of a ``package`` beside this one. Raises `ToolError` if there is no library and none can be built.
    """
    return {one.name.decode(): Loop(one.name.decode(), one.kinds.decode(), one.call) for one in _listed(level, package)
            if one.call}


@cache
def entries() -> Mapping[str, tuple[int, str]]:
    """The addresses of the loops that threads enter, by name, with the letters of the arguments in their blocks
    (``threads.hpp``). Raises as `loops`.
    """
    return {one.name.decode(): (one.enter, one.kinds.decode()) for one in _listed(4, __name__) if one.enter}


def _listed(level: int, package: str) -> list[_Entry]:
    with ExitStack() as files:
        library = ctypes.CDLL(str(_library(files, package)))
    library.splitjoin_loops.restype, library.splitjoin_loops.argtypes = ctypes.POINTER(_Entry), [ctypes.c_int64]
    found: dict[bytes, _Entry] = {}
    for most in (2, level):  # a higher one has only what wider vectors help
        listed = library.splitjoin_loops(most)
        found |= {one.name: one for one in takewhile(lambda one: one.name, (listed[n] for n in count()))}
    return list(found.values())


def _library(files: ExitStack, package: str) -> Path:
    """The file of the library of ``package``, for as long as ``files`` are open."""
    try:
        if Path(__file__).exists():
            return built(*(() if package == __name__ else (Path(__file__).parents[1] / package.rpartition(".")[2],)))
        packed = [of for of in resources.files(package).iterdir() if of.name.startswith("loops-")]
        return files.enter_context(resources.as_file(packed[0]))  # of a zip file, in which Spark ships packages
    except (BuildError, OSError, IndexError) as error:
        raise ToolError(f"the library of compiled loops is missing, and cannot be built ({error}); install splitjoin "
                        f"from a wheel, or in a checkout run make setup") from error
