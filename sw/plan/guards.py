"""Selections at ingress: conditions on one stream, evaluated on the host once a tuple.

A tuple that fails one keeps its place in the window; its key's code is 0, which no probe's interval holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..lang.eval.vector import evaluate

if TYPE_CHECKING:
    from .forms import OneSided

__all__ = ["guard_holds"]

Mask = npt.NDArray[np.bool_]


def guard_holds(guards: tuple[OneSided, ...], table: pa.Table) -> Mask:
    """Whether all conditions have one of their wanted values, for every row."""
    holds = np.ones(table.num_rows, np.bool_)
    for guard in guards:
        v = evaluate(guard.condition, table)
        wanted = np.zeros(table.num_rows, np.bool_)
        if "true" in guard.values:
            wanted |= v.valid & v.values
        if "false" in guard.values:
            wanted |= v.valid & ~v.values
        if "null" in guard.values:
            wanted |= ~v.valid
        holds &= wanted
    return holds
