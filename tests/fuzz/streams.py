"""Random streams that a session of the CPU engine must answer as the golden model does. Sessions that change while they
run are driven by `tests/machine`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

import splitjoin
from splitjoin import StreamJoin

from .joins import Case, check_same, cpu_options, drawn, outcome


def pushed(chance: random.Random, case: Case, sessions: Sequence[Callable[[], StreamJoin]]) -> pa.Table:
    """The rows of a session that gets its tuples in random parts, and moves at times to the next of ``sessions``."""
    makers, parts = list(sessions), []
    session = makers[0]()
    at = [0, 0]
    tables = (case.r, case.s)
    while at[0] < len(tables[0]) or at[1] < len(tables[1]):
        side = chance.randrange(2)
        if case.time is None:  # arrival alternates, as that of the join over whole tables
            side = 0 if (at[0] <= at[1] and at[0] < len(tables[0])) or at[1] >= len(tables[1]) else 1
            size = 1
        else:
            size = chance.choice([1, 3, 20, 200])
        part = tables[side].slice(at[side], size)
        (session.push_s if side else session.push_r)(part)
        at[side] += len(part)
        action = chance.random()
        if action < 0.3:
            parts.append(session.poll())
        elif action < 0.36:
            data = session.snapshot()
            session.close()
            makers.append(makers.pop(0))
            session = makers[0]()
            session.restore(data)
        elif action < 0.46 and case.time is not None:
            side = chance.randrange(2)
            later = tables[side]["ts"].slice(at[side], 1).to_pylist()
            session.heartbeat(later[0] if later else 3000, "rs"[side])  # type: ignore[arg-type]  # it is a stream
    parts.append(session.flush())
    session.close()
    return pa.Table.from_batches(parts)


def _openers(chance: random.Random, case: Case, given: dict[str, Any]) -> list[Callable[[], StreamJoin]]:
    """What opens sessions of ``case`` with two choices of options."""
    if case.time is None:
        case.r, case.s = case.r.slice(0, 60), case.s.slice(0, 60)
    options = [{**cpu_options(chance), "engine": "auto"} for _ in range(2)]
    case.more |= {"threads": [one["threads"] for one in options]}

    def make(one: dict[str, Any]) -> StreamJoin:
        return splitjoin.open(splitjoin.query(case.r.schema, case.s.schema, **given), **one)

    return [partial(make, one) for one in options]


def of_streams(chance: random.Random) -> None:
    """Compare a session over two random streams with golden's join of them as whole tables."""
    case = drawn(chance, streams=True)
    given = {"on": case.on, "time": case.time, "window": case.window, "how": case.how, **case.more}
    by_distance = case.more.get("k", 1) > 1 or case.more.get("ties") == "last"  # rows leave by tuples of R
    sessions = _openers(chance, case, given)
    wanted = outcome(lambda: splitjoin.join(case.r, case.s, device="golden", order="left" if by_distance else "total",
                                            **given).table)
    check_same(case, "the session", outcome(lambda: pushed(chance, case, sessions)), wanted)
