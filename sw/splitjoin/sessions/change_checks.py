"""Checks of other windows for a session that runs, and the point at which it goes on with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from splitjoin.base.errors import UnsupportedError
from splitjoin.engines.device import Device
from splitjoin.lang.query import Query
from splitjoin.lang.windows import Extent
from splitjoin.rows.numbered import NumberedSession

#: Makes a change that was checked, and returns the row ids (R's, S's) of the first tuples after it.
Change = Callable[[], tuple[int, int]]


def check_window(query: Query, device: Device, session: NumberedSession, *, ended: bool, in_order: bool) -> None:
    """Raise `UnsupportedError` unless the windows of ``query`` can change in ``session`` of ``device``. ``ended``: True
    if its input has; ``in_order``: True if tuples come in arrival order.
    """
    if ended:
        reason = "the input has ended, so no tuple comes after a change"
    elif not in_order:
        reason = ("order 'none' joins tuples of RANGE windows as they come, whatever their order, so there is no first "
                  "one after a change; use order 'total'")
    elif query.aggregates:
        reason = ("engines that fold aggregates find them by one window, and a tuple that waits may have partners by "
                  "the one before; fold the pairs of a join, whose windows change")
    elif query.is_unbounded:
        reason = "of each key the last tuple alone is there, so no window finds those before it"
    elif session.rotation > 1:
        reason = ("cores of the device are masked, which hold tuples by their numbers in its session; mask them in "
                  "the session")
    elif device.expire == "own":
        reason = "expire='own' lets tuples leave a window by what their own stream brought"
    else:
        return
    raise UnsupportedError(f"windows cannot change here: {reason}; or open a session of a query with the other windows")


def resumed(query: Query, r: Extent, s: Extent, *, in_order: bool) -> Query:
    """``query`` with the windows of a snapshot, which may have changed. Raises `ValueError` where they cannot have.

    ``in_order``: True if tuples come in arrival order.
    """
    if (r, s) == (query.window_r, query.window_s):
        return query
    if query.aggregates or not in_order or Extent(None, None) in (r, s) or (
            query.time is None and (r.length, s.length) != (None, None)):
        raise ValueError("such windows do not change")
    return replace(query, window_r=r, window_s=s)
