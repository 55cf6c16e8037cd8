"""How functions here are compiled: arrays come to them in named tuples, whose fields `refine.refine` fills."""

from __future__ import annotations

import numba

__all__ = ["compiled"]

#: Once, and kept on disk.
compiled = numba.njit(cache=True, nogil=True)
