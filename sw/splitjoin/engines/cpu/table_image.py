"""The compiled loops of whole tables as one file of machine code, which is loaded without the compiler.

Loading numba takes a third of a second and 100 MiB. The loops need nothing of it once they are compiled: their
arguments are addresses and numbers. So the process that compiles them writes them to one file of the cache, in which no
address has to be changed (`object_code`); others map it into memory and call it. The file is for one processor and one
release of everything that it is made by. Linux on x86-64 has it; elsewhere numba loads the loops.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import mmap
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from splitjoin.base.cache import KERNELS, find, made, place, publish
from splitjoin.base.trust import private_file

from .compilation import toolchain

__all__ = ["ImageLoop", "has_images", "image_name", "load_image", "save_image"]

#: Bytes at the start of the file: a digest of the rest; and where the code begins.
_DIGEST, _PAGE = 32, 4096
_DTYPES = {"u": np.dtype(np.uint64), "i": np.dtype(np.int64), "b": np.dtype(np.uint8)}
#: Of `flags.num` of an array (NumPy's C API, array flags): contiguous in the order of C, and aligned; and writeable.
_PLAIN, _WRITEABLE = 0x101, 0x400


def has_images() -> bool:
    """True if this system can have the loops as an image."""
    return sys.platform == "linux" and platform.machine() == "x86_64" and not os.environ.get("NUMBA_DISABLE_JIT")


@cache
def _processor() -> str:
    """The processor's model and instruction sets, as /proc/cpuinfo names them; empty where that cannot be read."""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().split("\n\n", 1)[0].splitlines()
        return "\n".join(line for line in lines if line.startswith(("model", "cpu family", "stepping", "flags")))
    return ""


def image_name() -> str:
    """The entry of the cache for the image."""
    return f"{KERNELS}/tables-{hashlib.sha256((toolchain() + _processor()).encode()).hexdigest()[:24]}.image"


class ImageLoop:
    """A loop whose machine code lies at ``address``. ``kinds``: those of its arguments, as of `table_loop.loop`.

    It takes and returns what the compiled function does. Raises `TypeError` for arrays of another type, or that do not
    lie contiguously, as it would read other memory.
    """

    def __init__(self, name: str, kinds: str, address: int):
        self.__name__ = name
        #: Of each argument the type, None of a number, and the flags that an array must have.
        self._kinds = [(_DTYPES.get(kind.lower()), _PLAIN | (_WRITEABLE if kind.isupper() else 0)) for kind in kinds]
        types: list[Any] = [ctypes.c_void_p, ctypes.c_void_p]  # for the result and for exceptions, which it has none of
        for kind in kinds:
            types += ([ctypes.c_int64] if kind == "n" else [ctypes.c_uint64] if kind == "w" else
                      [ctypes.c_void_p, ctypes.c_int64])
        self._call = ctypes.CFUNCTYPE(ctypes.c_int32, *types)(address)  # which runs without the interpreter's lock

    def __call__(self, *args: Any) -> int:
        if len(args) != len(self._kinds):
            raise TypeError(f"{self.__name__} takes {len(self._kinds)} arguments, not {len(args)}")
        result, error = ctypes.c_int64(), ctypes.c_void_p()
        given: list[Any] = [ctypes.addressof(result), ctypes.addressof(error)]
        # In few steps, as all threads wait for each other here.
        for (dtype, needed), value in zip(self._kinds, args, strict=True):
            if dtype is None:
                given.append(int(value))
                continue
            if value.dtype != dtype or value.ndim != 1 or value.flags.num & needed != needed:
                raise TypeError(f"{self.__name__} takes contiguous arrays of {dtype}, not {value.dtype} with "
                                f"shape {value.shape} and strides {value.strides}")
            n = len(value)
            given += _address(value) if n else 0, n
        if self._call(*given):
            raise RuntimeError(f"the loop {self.__name__} ended with an error")
        return result.value


def _address(array: Any) -> int:
    """Where ``array`` begins."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # in a fifth of the time
    except TypeError:  # not to be written to
        found: int = array.ctypes.data
        return found


@cache
def load_image(name: str) -> Mapping[str, ImageLoop] | None:
    """The loops of the image that is the entry ``name`` of the cache; None if there is none that can be run. A found
    one is loaded once for a process.
    """
    path = find(name)
    file = None if path is None else private_file(path)
    if file is None:
        return None
    with file:
        data = file.read()
        if hashlib.sha256(data[_DIGEST:]).digest() != data[:_DIGEST]:
            return None
        try:
            code = mmap.mmap(file.fileno(), len(data), mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
        except OSError:  # the cache lies where no code may be run
            return None
    address = np.frombuffer(code, np.uint8).ctypes.data + _PAGE  # the array keeps the map, and it itself is kept below
    _mapped.append(code)
    end = int.from_bytes(data[_DIGEST:_DIGEST + 4], "little") + _DIGEST + 4
    return {name: ImageLoop(name, kinds, address + at) for name, kinds, at in json.loads(data[_DIGEST + 4:end])}


#: Maps of code that has been loaded, which stay as long as the process.
_mapped: list[mmap.mmap] = []


def save_image(loops: Sequence[tuple[str, str, Callable[..., Any]]], name: str) -> None:
    """Compile ``loops``, of which each has a name, its kinds and its Python function, and make the entry ``name``.

    Raises `NotAlone` if one needs more than its arguments.
    """
    from .table_objects import object_of

    code, found = bytearray(), []
    for of, kinds, function in loops:
        part, at = object_of(function, kinds)
        code += bytes(-len(code) % 64)
        found.append((of, kinds, len(code) + at))
        code += part
    header = json.dumps(found).encode()
    start = len(header).to_bytes(4, "little") + header
    content = start + bytes(_PAGE - _DIGEST - len(start)) + code
    target = place(name)
    part_file = target.with_suffix(f".{os.getpid()}.part")
    part_file.unlink(missing_ok=True)
    try:
        with open(part_file, "xb", opener=partial(os.open, mode=0o600)) as file:
            file.write(hashlib.sha256(content).digest() + content)
        publish(part_file, target)
    finally:
        part_file.unlink(missing_ok=True)
    load_image.cache_clear()
    made()
