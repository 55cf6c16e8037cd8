"""Changes while a query runs, and the golden model's answer with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from splitjoin import Query, StreamJoin, UnsupportedError
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import ITEM, PAIR, Items
from splitjoin.engines.golden import GoldenDevice
from splitjoin.lang.windows import WindowSpec
from splitjoin.rows.kinds import reference_rows

SCHEMA = pa.schema([("ts", pa.int64()), ("x", pa.int64())])
#: Cores that masks are of.
CORES = 3
#: Times and values of a stream.
ROWS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3)), min_size=4, max_size=24)
#: What is done, and with what.
Turn = tuple[str, Any]


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
    """The items of the pairs of ``query`` on the golden model, to which the changes are made between two tuples."""
    done, rest = 0, arrived
    with GoldenDevice(cores=cores).open(query.pairs) as session:
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


def golden_rows(query: Query, arrived: Arrivals, changes: list[Change], cores: int) -> Items:
    """The rows of ``query``, of any kind, by the reference from `golden`'s items."""
    items = golden(query, arrived, changes, cores)
    windows = [(c.at, query.with_window(c.window), c.now) for c in changes if c.window is not None]
    if query.is_pairs:
        return items
    if not query.chooses_by_distance:
        return reference_rows(query, arrived, items, changes=windows)
    assert arrived.ts is not None
    times = [arrived.ts[arrived.stream == n].tolist() for n in (0, 1)]
    rows = []
    for kind, side, r, s in reference_rows(
            query.narrowed, arrived, items, bases=True,
            changes=[(at, changed.narrowed, now) for at, changed, now in windows]).tolist():
        partners = _nearest(query, [(int(one), times[0][r], times[1][one]) for one in items["s"][
            (items["kind"] == PAIR) & (items["r"] == r)]]) if kind == PAIR else [s]
        rows += [(kind, side, r, one) for one in partners or ([-1] if query.kind.how == "asof_left" else [])]
    return np.array(rows, ITEM)


def _nearest(query: Query, partners: list[tuple[int, int, int]]) -> list[int]:
    """The row ids of the nearest ``partners``, given as row id, R's time and their own time."""
    kind = query.kind
    allowed = [(abs(time - mine), -s if kind.ties == "last" or (time <= mine and kind.direction != "forward") else s, s)
               for s, mine, time in partners if (kind.allow_exact or time != mine)
               and not (kind.direction == "backward" and time > mine)
               and not (kind.direction == "forward" and time < mine)]
    backward_first = [(apart, turn >= 0, turn, s) if kind.ties != "last" else (apart, False, turn, s)
                      for apart, turn, s in allowed]
    return [s for *_, s in sorted(backward_first)[:kind.k]]


def stream(rows: list[tuple[int, int]]) -> pa.Table:
    rows = sorted(rows, key=lambda row: row[0])
    return pa.table({"ts": [ts for ts, _ in rows], "x": [x for _, x in rows]}, schema=SCHEMA)


def turns(order: str, windows: Sequence[WindowSpec] = ()) -> st.SearchStrategy[list[Turn]]:
    """What is done one after the other: pushes of a stream's next rows, changes, and what must change nothing. With
    ``windows``: changes to one of them, and heartbeats too.
    """
    one: list[st.SearchStrategy[Turn]] = [st.tuples(st.just(side), st.integers(1, 6)) for side in "rs"]
    one += [st.tuples(st.just("window"), st.sampled_from(windows))] * 2 if windows else []
    one.append(st.tuples(st.just("mask"), st.sets(st.integers(0, CORES - 1))))
    one.append(st.tuples(st.sampled_from(["poll", "restart", "snapshot", *(["heartbeat"] if windows else [])]),
                         st.just(0)))
    if order.startswith(("outer", "inner")):
        one.append(st.tuples(st.just("precision"), st.integers(1, 4)))
    if not order.startswith("inner"):
        one.append(st.tuples(st.just("move"), st.integers(0, 2)))
    return st.lists(st.one_of(one), max_size=24)


def run(make: Callable[[int], StreamJoin], tables: dict[str, pa.Table], how: list[Turn],
        devices: Sequence[Any] = ()) -> tuple[Items, list[Change]]:
    """The items of a session that ``how`` feeds, and the changes with the places that it told."""
    session, opened, at, found = make(0), 0, dict.fromkeys("rs", 0), []
    changes: list[Change] = []
    for what, n in [*how, ("r", 99), ("s", 99)]:
        if what in tables:
            (session.push_r if what == "r" else session.push_s)(tables[what].slice(at[what], n))
            at[what] += n
        elif what == "heartbeat":
            for side in "rs":
                rest = tables[side]["ts"].to_pylist()[at[side]:]
                session.heartbeat(min(rest, default=50), side)
        elif what == "window":
            place = session.window(n)
            changes.append(Change(sum(place), window=n, now=session.frontier))  # type: ignore[arg-type]  # int64
        elif what == "mask":
            changes.append(Change(sum(session.mask(n, of=CORES)), masked=tuple(n)))
        elif what == "precision":
            changes.append(Change(sum(session.precision(n)), n=n))
        elif what == "poll":
            found.append(session.poll_items()[0])
        elif what == "restart":
            session.restart()
        elif what == "move":
            with suppress(UnsupportedError):  # a move is under way
                session.move(devices[n])
        else:
            saved, opened = session.snapshot(), opened + 1
            session.close()
            session = make(opened)
            session.restore(saved)
    session.close_r()
    session.close_s()
    found.append(session.poll_items()[0])
    session.close()
    return np.concatenate(found), changes
