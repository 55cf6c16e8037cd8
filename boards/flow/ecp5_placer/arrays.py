"""Array types of the placer, and the compiler for functions that loop over arrays."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

__all__ = ["Bools", "Floats", "Ints", "compiled"]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]

#: Compiles a function to machine code, which is cached on disk. Such functions take arrays in named tuples.
compiled = numba.njit(cache=True, nogil=True)
