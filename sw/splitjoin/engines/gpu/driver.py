"""The GPU itself, by numba-cuda: what is there, and what is missing. With NUMBA_ENABLE_CUDASIM=1, its simulator."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from splitjoin.base.arrays import Array
from splitjoin.base.errors import CapacityError, DeviceError, ToolError
from splitjoin.base.memory import size_text

_CURE = "pip install 'splitjoin[gpu]', or use device='cpu'"


def is_simulated() -> bool:
    """True if kernels run in numba's simulator, on the CPU: slow, and meant for tests."""
    return os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"


def gpu_problem() -> str:
    """What the device ``gpu`` lacks on this machine, with the cure; empty if there is a GPU."""
    try:
        _cuda()
    except ToolError as error:
        return str(error)
    return ""


def gpu_name(number: int = 0) -> str:
    """The name of a GPU, and its memory. Raises `ToolError` and `DeviceError` as `open_gpu`."""
    gpu = open_gpu(number)
    if is_simulated():
        return "numba's simulator"
    with gpu:
        name = gpu.cuda.get_current_device().name
        return f"{name.decode() if isinstance(name, bytes) else name}, {size_text(int(gpu.memory[1]))}"


class Gpu:
    """One GPU of this machine: a context manager, within which this thread works with it.

    Attributes:
        cuda: The module ``numba.cuda``.
    """

    def __init__(self, cuda: Any, number: int):
        self.cuda, self._context = cuda, cuda.gpus[number]
        self._copies: Any = importlib.import_module("numba.cuda.cudadrv.driver")

    def __enter__(self) -> Gpu:
        self._context.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._context.__exit__(*raised)

    @property
    def memory(self) -> tuple[float, float]:
        """Bytes that are free, and all; infinite in the simulator."""
        free, total = self.cuda.current_context().get_memory_info()
        return free, total

    def release(self) -> None:
        """Free the memory of arrays that are dropped, which numba-cuda does late."""
        manager = getattr(self.cuda.current_context(), "memory_manager", None)
        if (waiting := getattr(manager, "deallocations", None)) is not None:  # neither the simulator's nor a pool's
            waiting.clear()

    def copy_in(self, array: Any, host: Array, size: int, stream: Any) -> None:
        """Copy the first ``size`` bytes of ``host``, of pinned memory, to ``array`` on the GPU, in the order of
        ``stream``. What `copy_to_device` does for slices takes a hundred microseconds.
        """
        self._copies.host_to_device(array, host, size, stream)

    def copy_out(self, host: Array, array: Any, size: int, stream: Any) -> None:
        """Copy the first ``size`` bytes of ``array`` to ``host``, as `copy_in`."""
        self._copies.device_to_host(host, array, size, stream)

    def array(self, n: int, kind: Any, what: str) -> Any:
        """An array (n,) in the GPU's memory, not filled. ``what`` it is for, in words.

        Raises `CapacityError` if it does not fit.
        """
        need = n * np.dtype(kind).itemsize
        if need > self.memory[0]:
            self.release()
        free, total = self.memory
        if need > free:
            raise CapacityError(f"{what} take {size_text(need)} of the GPU's memory, but {size_text(int(free))} of "
                                f"{size_text(int(total))} are free; give a shorter window, or use device='cpu'")
        return self.cuda.device_array(n, kind)


def open_gpu(number: int) -> Gpu:
    """GPU ``number``. Raises `ToolError` if there is none that can be used, `DeviceError` if it has another number."""
    cuda = _cuda()
    if not 0 <= number < len(cuda.gpus):
        raise DeviceError(f"there is no GPU {number}; this machine has {len(cuda.gpus)}, numbered from 0")
    return Gpu(cuda, number)


@cache
def _cuda() -> Any:
    """The module ``numba.cuda``. Raises `ToolError` without a package that it needs, a driver or a GPU."""
    if not is_simulated() and find_spec("numba_cuda") is None:
        raise ToolError(f"the device 'gpu' needs the Python package 'numba-cuda', which is not installed; {_CURE}")
    try:
        with _row_stack(), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of NumPy, which numba-cuda's own modules draw
            cuda: Any = importlib.import_module("numba.cuda")
            with suppress(ImportError):  # where a later import would need the name
                importlib.import_module("numba.cuda.np.arrayobj")
    except (ImportError, AttributeError, OSError) as error:  # its modules look for libraries, by the system's tools
        raise ToolError(f"the device 'gpu' cannot import numba-cuda: {error}; {_CURE}") from error
    if not cuda.is_available():
        why = " ".join(str(cuda.cuda_error() or "the driver finds no GPU, or libraries of CUDA are missing").split())
        raise ToolError(f"the device 'gpu' needs an NVIDIA GPU with its driver, and there is none here ({why}); use "
                        f"device='cpu', or install the driver")
    for name in ("numba.core.config", "numba.cuda.core.config"):  # few probes make few blocks, which is no mistake
        with suppress(ImportError):
            importlib.import_module(name).CUDA_LOW_OCCUPANCY_WARNINGS = 0  # type: ignore[attr-defined]  # of a module by name
    return cuda


@contextmanager
def _row_stack() -> Iterator[None]:
    """numba-cuda from 0.21 to 0.30 names ``np.row_stack``, which NumPy 2.5 has no more."""
    if hasattr(np, "row_stack"):
        yield
        return
    np.row_stack = np.vstack
    try:
        yield
    finally:
        del np.row_stack
