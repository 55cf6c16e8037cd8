"""Changes while a query runs, and the golden model's answer with them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from splitjoin import Query
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import Items
from splitjoin.engines.golden import GoldenDevice
from splitjoin.lang.windows import WindowSpec

__all__ = ["Change", "golden"]


@dataclass(frozen=True)
class Change:
    """Made before arrival ``at``: ``masked`` cores, another precision ``n``, or the other ``window``, where no later
    tuple lies below event time ``now``.
    """

    at: int
    masked: tuple[int, ...] | None = None
    n: int | None = None
    window: WindowSpec | None = None
    now: int | None = None


def golden(query: Query, arrived: Arrivals, changes: list[Change], cores: int) -> Items:
    """The items of ``query`` on the golden model, to which the changes are made between two tuples."""
    done, rest = 0, arrived
    with GoldenDevice(cores=cores).open(query) as session:
        for change in changes:
            if change.at > done:
                head, tail = rest.split(change.at - done)
                session.push(head)
                done, rest = change.at, tail if tail is not None else rest.split(0)[0]
            if change.masked is not None:
                session.mask(change.masked)
            if change.n is not None:
                session.precision(change.n)
            if change.window is not None:
                session.window(query.with_window(change.window), change.now)
        if rest is not None and len(rest):
            session.push(rest)
        return np.concatenate([session.poll(), session.flush()])
