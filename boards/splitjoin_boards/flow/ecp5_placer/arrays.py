"""Array types of the placer, and the compiler for functions that loop over arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from splitjoin.engines.cpu.jit import compiled

__all__ = ["Bools", "Floats", "Ints", "compiled"]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
