"""Compiling at run time with numba: functions of this package, and generated sources kept in the cache folder."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any, TypeVar, cast

import numba

from ..cache import cache_folder, making

__all__ = ["compiled", "digest", "load"]

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile ``function`` on first use, for each combination of argument types; keep the machine code on disk.

    It runs without the interpreter's lock. It must call compiled functions of its own file only: numba looks for
    changes nowhere else.
    """
    return cast(F, numba.njit(nogil=True, cache=True)(function))


@cache
def digest(*modules: ModuleType) -> str:
    """A hash of the files of ``modules``. A generated source that calls their functions contains it, as their machine
    code becomes part of its own, and numba looks for changes in its own file only.
    """
    return hashlib.sha256(b"".join(_source(m) for m in modules)).hexdigest()[:16]


def _source(module: ModuleType) -> bytes:
    loader = cast(Any, module.__loader__)  # of a folder, or of a zip file, in which Spark ships packages
    return cast(bytes, loader.get_data(module.__file__))


@cache
def load(text: str) -> ModuleType:
    """The module with source ``text``, written once to the cache folder, where numba keeps its machine code as well."""
    name = f"splitjoin_kernel_{hashlib.sha256((text + numba.__version__).encode()).hexdigest()[:24]}"
    folder = cache_folder() / "kernels"
    path = folder / f"{name}.py"  # numba keeps the machine code beside it, by processor
    if not path.exists() or path.read_text() != text:  # a crash can leave it empty
        with making(folder / f"{name}.lock"):
            part = path.with_suffix(".part")
            part.write_text(text)
            part.replace(path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # numba's cache looks the module up by name
    spec.loader.exec_module(module)
    return module

