"""`AdaptivePrecision`: the bounds within which a session moves the precision of its order by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from splitjoin.base.errors import InputError, OrderError
from splitjoin.lang.order import Order

#: Below this share of the time in which results are waited for, a coarser precision would not help.
_WAITS = 0.05
#: Pushes in a row that must be short before the precision becomes finer, as one may have few tuples.
_SHORT = 16


@dataclass(frozen=True, kw_only=True)
class AdaptivePrecision:
    """Bounds within which a session moves the n of order ``inner(n)`` by itself (SplitJoin, section 7.3), for
    ``splitjoin.open(…, precision=…)``. The n of the query's order is the finest.

    After a push that took k times ``latency``, k above 1, while tuples or cores of the device waited for results to
    leave, n grows k times, rounded up. After 16 in a row that took at most half of it, n is halved: that at most
    doubles the number of stars, so equal pushes do not become too long.

    Attributes:
        coarsest: The greatest n, comparisons of each sub-window between two stars.
        latency: Seconds of the session's clock, greater than 0.
    """

    coarsest: int
    latency: float

    def __post_init__(self) -> None:
        Order("inner", self.coarsest)  # raises
        if isinstance(self.latency, bool) or not isinstance(self.latency, (int, float)) or not self.latency > 0:
            raise InputError(f"the latency of an adaptive precision must be seconds, more than 0, not "
                             f"{self.latency!r}")

    def control(self, order: Order, clock: Callable[[], float]) -> PrecisionControl:
        """Its control of a session in ``order``. Raises `OrderError` for another order than a finer ``inner(n)``."""
        if order.kind != "inner":
            raise OrderError(f"an adaptive precision is of order 'inner(n)', as its stars are those that cost a device "
                             f"time, but the order is '{order}'; open the query with 'inner(1)', for example")
        if order.n > self.coarsest:
            raise OrderError(f"the coarsest precision must be the n of order '{order}', or more, not {self.coarsest}")
        return PrecisionControl(self, order.n, clock)


class PrecisionControl:
    """Chooses the precision behind each push, from ``finest`` on."""

    def __init__(self, rule: AdaptivePrecision, finest: int, clock: Callable[[], float]):
        self._rule, self._finest, self.clock = rule, finest, clock
        self._short = 0  # pushes in a row

    def chosen(self, n: int, seconds: float, waiting: float | None) -> int:
        """The precision after ``n``, if a push took ``seconds`` and the device was ``waiting`` (`Session.waiting`)."""
        self._short = self._short + 1 if 2 * seconds <= self._rule.latency else 0
        if seconds > self._rule.latency and (waiting is None or waiting >= _WAITS):
            return min(n * ceil(seconds / self._rule.latency), self._rule.coarsest)
        if self._short < _SHORT:
            return n
        self._short = 0
        return max(n // 2, self._finest)
