"""Which changes a session takes while it runs: what a precision and other windows need."""

from __future__ import annotations

from dataclasses import replace

from splitjoin.base.errors import OrderError, UnsupportedError
from splitjoin.engines.device import Device, checked_precision
from splitjoin.lang.order import Order
from splitjoin.lang.query import Query
from splitjoin.lang.windows import Extent
from splitjoin.rows.numbered import NumberedSession

__all__ = ["check_precision", "check_window", "resumed"]


def check_precision(order: Order, n: int) -> None:
    """Raise `OrderError` unless ``n`` can be the precision of ``order`` from some tuple on."""
    checked_precision(order, n)
    if order.kind != "outer":
        raise OrderError(f"slices of order '{order}' are made on the device, as it compares; take a snapshot, and "
                         f"go on in a session with order 'inner({n})', or use order 'outer({n})'")


def check_window(query: Query, device: Device, session: NumberedSession, *, takes_input: bool) -> None:
    """Raise `UnsupportedError` unless the windows of ``query`` can change in ``session`` of ``device``.
    ``takes_input``: True if tuples come in arrival order, and have not ended.
    """
    if not takes_input or not query.is_pairs or session.rotation > 1 or device.expire == "own":
        raise UnsupportedError("windows change while input comes in arrival order, in an inner join without "
                               "aggregates, with no core masked in the device, and without expire='own'; open a "
                               "session of a query with the other windows")


def resumed(query: Query, r: Extent, s: Extent, *, in_order: bool) -> Query:
    """``query`` with the windows of a snapshot, which may have changed. Raises `ValueError` where they cannot have.

    ``in_order``: True if tuples come in arrival order.
    """
    if (r, s) == (query.window_r, query.window_s):
        return query
    if not query.is_pairs or not in_order or Extent(None, None) in (r, s) or (
            query.time is None and (r.length, s.length) != (None, None)):
        raise ValueError("such windows do not change")
    return replace(query, window_r=r, window_s=s)
