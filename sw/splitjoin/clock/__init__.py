"""Times of one clock in those of another, in whole numbers: `unwrap` makes counts of a counter that begins anew into
counts that go on, and `fit` finds from points that both clocks have seen a `ClockMap` with its residual, which a join
then needs as a tolerance.
"""

from .counters import Unwrapper, unwrap
from .mapping import ClockMap, fit

__all__ = ["ClockMap", "Unwrapper", "fit", "unwrap"]
