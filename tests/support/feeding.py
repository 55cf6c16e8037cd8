"""Random ways to feed a streaming session, and the answer it must give whatever the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from splitjoin import Query, Schema
from splitjoin.engines.arrival import Arrivals, arrivals
from splitjoin.engines.device import Items, pairs
from splitjoin.engines.golden import GoldenDevice
from splitjoin.rows.output import gather, output_columns
from splitjoin.sessions import StreamJoin


@dataclass
class Feed:
    """A sequence of calls of a session that delivers all tuples of both streams, in the order of ``turns``.

    Each turn delivers some rows of a source, then calls ``poll``, ``heartbeat``, ``snapshot``, ``restart`` or nothing.
    Sources are given by stream and index; rows of a stream go to its sources by ``deal``.
    """

    sources: tuple[int, int]
    deal: tuple[list[int], list[int]]
    turns: list[tuple[int, int, str]]
    rows: list[Any] = field(default_factory=list)
    items: list[Items] = field(default_factory=list)


def stream_query(r: pa.Table, s: pa.Table, *, on: Any, window: Any, time: Any, order: str) -> Query:
    """The query as a session has it, with nullability as the Arrow schemas declare it."""
    return Query.make(Schema.from_arrow("r", r.schema), Schema.from_arrow("s", s.schema), on=on, window=window,
                      time=time, order=order)


def feeds(n_r: int, n_s: int, *, most_sources: int = 3) -> st.SearchStrategy[Feed]:
    """Ways to feed ``n_r`` and ``n_s`` rows."""
    action = st.sampled_from(["", "", "poll", "poll", "heartbeat", "snapshot", "restart"])

    @st.composite
    def make(draw: st.DrawFn) -> Feed:
        sources = draw(st.tuples(st.integers(1, most_sources), st.integers(1, most_sources)))
        deal = tuple(draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n))
                     for k, n in zip(sources, (n_r, n_s), strict=True))
        turns = draw(st.lists(st.tuples(st.integers(0, sum(sources) - 1), st.integers(0, 7), action), max_size=24))
        return Feed(sources, deal, turns)

    return make()


def whole(query: Query, how: Feed, r: pa.Table, s: pa.Table) -> Arrivals:
    """All tuples in arrival order, by semantics, section 1: with a time column, equal times go by source, then by place
    in the source; without, by the turns.
    """
    if query.time is not None:
        dealt = []
        for table, side, deal in ((r, "r", how.deal[0]), (s, "s", how.deal[1])):
            ts = table.column(query.time.name(side)).to_pylist()
            dealt.append(table.take(pa.array(sorted(range(len(table)), key=lambda i: (ts[i], deal[i], i)), pa.int64())))
        return arrivals(query, *dealt)
    rows: tuple[list[int], list[int]] = ([], [])
    stream = []
    for side, index, count in deliveries(how, len(r), len(s)):
        mine = [i for i, k in enumerate(how.deal[side]) if k == index and i not in rows[side]]
        rows[side].extend(mine[:count])
        stream += [side] * len(mine[:count])
    return Arrivals(np.array(stream, np.uint8), None, r.take(pa.array(rows[0], pa.int64())),
                    s.take(pa.array(rows[1], pa.int64())))


def deliveries(how: Feed, n_r: int, n_s: int) -> list[tuple[int, int, int]]:
    """(stream, source, largest number of rows) in the order of delivery; at the end, all remaining rows."""
    out = [(*_which(how, source), count) for source, count, _ in how.turns]
    return out + [(side, index, n) for side, n in ((0, n_r), (1, n_s)) for index in range(how.sources[side])]


def _which(how: Feed, source: int) -> tuple[int, int]:
    return (0, source) if source < how.sources[0] else (1, source - how.sources[0])


def feed(how: Feed, open_: Sequence[Any], r: pa.Table, s: pa.Table, time: str | None) -> StreamJoin:
    """Feed a session as ``how`` says, and keep its results in ``how``; returns the flushed session.

    ``open_``: functions that make sessions; each snapshot is restored by the next one, cyclically.
    """
    makers = list(open_)
    session = makers[0]()
    tables = (r, s)
    handles = [[session.source("rs"[side]) for _ in range(how.sources[side])] for side in (0, 1)]
    left = [[[i for i, k in enumerate(how.deal[side]) if k == index] for index in range(how.sources[side])]
            for side in (0, 1)]
    actions = [action for *_, action in how.turns] + [""] * sum(how.sources)
    for (side, index, count), action in zip(deliveries(how, len(r), len(s)), actions, strict=True):
        mine = left[side][index]
        now, left[side][index] = mine[:count], mine[count:]
        handles[side][index].push(tables[side].take(pa.array(now, pa.int64())))
        if action == "poll":
            _keep(how, session)
        elif action == "heartbeat" and time is not None and left[side][index]:
            handles[side][index].heartbeat(tables[side].column(time)[left[side][index][0]])
        elif action == "restart":
            session.restart()
        elif action == "snapshot":
            data = session.snapshot()
            session.close()
            makers.append(makers.pop(0))
            session = makers[0]()
            session.restore(data)
            handles = [[session.source_at("rs"[a], b) for b in range(how.sources[a])] for a in (0, 1)]
    _keep(how, session)
    session.close_r()
    session.close_s()
    _keep(how, session)
    assert session.finished
    return session


def _keep(how: Feed, session: StreamJoin) -> None:
    items, rows = session.poll_items()
    assert rows.schema == session.schema
    assert len(pairs(items)[0]) == len(rows)
    how.items.append(items)
    how.rows.append(rows)


def answer(query: Query, arrived: Arrivals) -> tuple[Items, pa.Table]:
    """The golden items and the result rows of all arrivals at once."""
    with GoldenDevice().open(query) as session:
        session.push(arrived)
        items = session.flush()
    columns = output_columns(arrived.r.schema, arrived.s.schema)
    return items, gather(columns, arrived.r, arrived.s, *pairs(items))
