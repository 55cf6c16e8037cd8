"""Windows that follow from a condition's own time band, and a warning for windows that are shorter."""

from __future__ import annotations

import warnings
from dataclasses import replace

from splitjoin.base.errors import WindowError
from splitjoin.lang.query import Query, check_unbounded
from splitjoin.lang.schema import SIDES, Side, other_side
from splitjoin.lang.windows import Extent, WindowSpec
from splitjoin.plan.time_band import time_band

from .text import WHICH, duration

#: A window for `Query.make` where none is given; `windowed` replaces it.
ANY_WINDOW = "ROWS 1"


def windowed(query: Query, window: WindowSpec | None, stacklevel: int, *, streaming: bool) -> Query:
    """``query``, made with the argument ``window``: if that is None, with the RANGE windows that its condition needs;
    an as-of join whose condition has no time band has none then (`Query.is_unbounded`): of batch DataFrames, or of
    streaming ones backward.

    Warns, at the caller ``stacklevel`` calls up, of a RANGE that is shorter than the condition's time band. Raises
    `WindowError` where another join has no window and no time band.
    """
    assert query.time is not None
    band = time_band(query.predicate, query.time)
    if window is None:
        if query.kind.is_asof and query.kind.direction != "nearest":  # which itself bounds one side
            band = {**band, "r" if query.kind.direction == "backward" else "s": 0}
        if None in band.values() and query.kind.is_asof and (not streaming or query.kind.direction == "backward"):
            query = replace(query, window_r=Extent(None, None), window_s=Extent(None, None))
            if streaming:
                check_unbounded(query, has_aggregates=bool(query.aggregates))
            return query
        return replace(query, window_r=_needed(query, "r", band["r"]), window_s=_needed(query, "s", band["s"]))
    for side in SIDES:
        length, needed = query.window(side).length, band[side]
        if length is not None and needed is not None and length < needed:
            other = WHICH[other_side(side)]
            warnings.warn(f"the condition lets a row of {other} come up to {_said(query, needed)} after a row of "
                          f"{WHICH[side]}, but the window of {WHICH[side]} is only {_said(query, length)} long, so "
                          f"pairs that are further apart are left out; give a longer window, or leave window out: "
                          f"then it is as long as the condition needs", stacklevel=stacklevel + 1)
    return query


def _needed(query: Query, side: Side, length: int | None) -> Extent:
    if length is None:
        assert query.time is not None
        name, other = query.time.name(side), other_side(side)
        late = f"{other}.{query.time.name(other)} <= {side}.{name} + …"
        raise WindowError(f"a join of DataFrames needs window=…, such as 'RANGE 15 MINUTES', unless the condition "
                          f"itself bounds the times of a pair on both sides, and this one does not say how long after "
                          f"a row of {WHICH[side]} one of {WHICH[other]} may come; give window=…, or add {late} to "
                          f"the condition")
    return Extent(None, length)


def _said(query: Query, ticks: int) -> str:
    assert query.time is not None
    return str(ticks) if query.time.tick is None else duration(ticks, query.time.tick)
