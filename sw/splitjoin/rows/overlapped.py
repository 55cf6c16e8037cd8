"""`OverlappedSession`: two device sessions in succession, of which the second one takes over without a replay."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from splitjoin.base.errors import UnsupportedError
from splitjoin.base.sliding import SlidingArray
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import ITEM, PAIR, STAR, Fault, Items, chosen_items, joined_items
from splitjoin.lang.order import Order
from splitjoin.lang.schema import SIDES

from .numbered import NumberedSession, RowIds

_NO_ITEMS: Items = np.empty(0, ITEM)


class OverlappedSession(NumberedSession):
    """``old``, which has the windows, and ``new``, which has seen nothing before row ids ``place``, as one session.

    Both get all tuples. A pair whose stored tuple came before ``place`` is the old one's, any other the new one's; what
    the old one finds of later tuples is dropped. So of each probe the old one's pairs come first, which is the order of
    the stored tuples. Stars are the new one's. Once no probe sees a tuple before ``place`` any more, `successor` leaves
    the new one alone.
    """

    def __init__(self, old: NumberedSession, new: NumberedSession, place: RowIds):
        self._old, self._new, self._place = old, new, place
        self.changes, self.pushed, self.stored_s = new.changes, new.pushed, None
        self._order, self._times = new._order, None
        self._is_over = False  # the old one has given all
        self._waiting: list[Items] = [_NO_ITEMS, _NO_ITEMS]  # what one of the two has settled: the old one, the new one
        self._arrived = 0
        self._positions = {side: SlidingArray() for side in SIDES}  # of the probes from `_first` on
        self._first = dict(zip(SIDES, place, strict=True))

    @property
    def settled(self) -> tuple[int, int]:
        if self._is_over:
            return self._new.settled
        r, s = (min(pair) for pair in zip(self._old.settled, self._new.settled, strict=True))
        return r, s

    @property
    def rotation(self) -> int:
        return 1

    @property
    def lags(self) -> bool:
        return self._old.lags or self._new.lags

    @property
    def faults(self) -> tuple[Fault, ...]:
        return (*self._old.faults, *self._new.faults)

    @property
    def hides_pairs(self) -> bool:
        return self._old.hides_pairs or self._new.hides_pairs

    def fits(self, arrivals: Arrivals) -> bool:
        return (self._is_over or self._old.fits(arrivals)) and self._new.fits(arrivals)

    def push(self, arrivals: Arrivals) -> Items:
        for number, side in enumerate(SIDES):
            self._positions[side].append(self._arrived + np.flatnonzero(arrivals.stream == number))
        self._arrived += len(arrivals)
        old = _NO_ITEMS if self._is_over else self._old.push(arrivals)
        return self._merged(old, self._new.push(arrivals))

    def poll(self) -> Items:
        return self._merged(_NO_ITEMS if self._is_over else self._old.poll(), self._new.poll())

    def settle(self) -> Items:
        return self._merged(_NO_ITEMS if self._is_over else self._old.settle(), self._new.settle())

    def flush(self) -> Items:
        old = self._end_old()
        new = self._new.flush()
        last = self._closing(new)
        return joined_items([self._merged(old, chosen_items(new, ~last)), chosen_items(new, last)])

    def successor(self, needed: RowIds) -> tuple[NumberedSession, Items]:
        """The session that goes on, and the items that are settled: the new session, once no probe needs a row before
        row ids ``needed`` any more, all of which are the new one's, and it has settled what the old one has.
        """
        if any(first < place for first, place in zip(needed, self._place, strict=True)):
            return self, _NO_ITEMS
        items = self._merged(self._end_old(), self._new.poll())
        if len(self._waiting[0]):
            return self, items
        self._old.close()
        return self._new, items

    def rescued(self, limit: tuple[int, int]) -> Items:
        """None: what one session gave is of no use without the other one's."""
        return _NO_ITEMS

    def counters(self) -> dict[str, int]:
        return self._new.counters()

    def plan(self) -> str:
        return self._new.plan()

    def close(self) -> None:
        self._old.close()
        self._new.close()

    def _end_old(self) -> Items:
        """The last items of the old session, without stars of groups that its end alone closes."""
        if self._is_over:
            return _NO_ITEMS
        items = self._old.end()
        self._is_over = True
        return items

    def _merged(self, old: Items, new: Items) -> Items:
        """The items of probes that both have settled, each probe's together."""
        self._waiting = [joined_items([before, items]) for before, items in zip(
            self._waiting, (self._of_old(old), new), strict=True)]
        limits = np.array(self.settled)
        ready, positions, ranks = [], [], []
        for number, items in enumerate(self._waiting):
            probes = np.where(items["side"] == 0, items["r"], items["s"])
            done = probes < limits[items["side"]]
            ready.append(chosen_items(items, done))
            self._waiting[number] = chosen_items(items, ~done)
            positions.append(self._position(items["side"][done], probes[done]))
            # Before the place all is the old session's, in its order; after it a probe's star follows both's pairs.
            ranks.append(np.where((ready[-1]["kind"] == STAR) & (positions[-1] >= 0), 2, number))
        found = joined_items(ready)
        for side, limit in zip(SIDES, limits.tolist(), strict=True):
            gone = min(max(limit - self._first[side], 0), len(self._positions[side]))
            self._positions[side].drop(gone)
            self._first[side] += gone
        # Stable: the items of one probe and one session stay in their order.
        return found[np.lexsort((np.concatenate(ranks), np.concatenate(positions)))] if len(found) else found

    def _of_old(self, items: Items) -> Items:
        """The ``items`` of the old session without what is the new one's: pairs of later tuples, and stars."""
        probe = np.where(items["side"] == 0, items["r"], items["s"])
        stored = np.where(items["side"] == 0, items["s"], items["r"])
        later = probe >= np.array(self._place)[items["side"]]
        new = np.where(items["kind"] == PAIR, stored >= np.array(self._place)[1 - items["side"].astype(np.intp)], True)
        return chosen_items(items, ~(later & new)) if (later & new).any() else items

    def _position(self, sides: npt.NDArray[np.uint8], probes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The positions of ``probes`` in arrival order, −1 before the place."""
        out = np.full(len(probes), -1, np.int64)
        for number, side in enumerate(SIDES):
            mine = (sides == number) & (probes >= self._place[number])
            out[mine] = self._positions[side].values[probes[mine] - self._first[side]]
        return out


def against_overlap(old: NumberedSession, order: Order, *, ended: bool, in_order: bool,
                    checks: Iterable[Callable[[], None]]) -> list[str]:
    """All that rules out that another session takes over from ``old`` without a replay.

    Args:
        old: The session that has the windows.
        order: That of the query.
        ended: True if both streams have ended.
        in_order: True if tuples are joined in arrival order.
        checks: Calls that raise `UnsupportedError` for further reasons.
    """
    under_way = isinstance(old, OverlappedSession)
    reasons = [reason for reason, holds in (
        ("both streams have ended", ended),
        (f"order {str(order)!r} joins tuples as they come, but the old device knows its own by arrival order",
         not in_order),
        (f"slices of order {str(order)!r} are made on the device", order.kind == "inner"),
        ("a move before is under way until the tuples that the old device has stored leave the windows", under_way),
        ("a core is masked in the device", not under_way and old.rotation > 1)) if holds]
    for check in checks:
        try:
            check()
        except UnsupportedError as error:
            if str(error) not in reasons:
                reasons.append(str(error))
    return reasons
