"""Random streams that a session of the CPU engine must answer as the golden model does, also where the session changes
while it runs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import splitjoin
from splitjoin import StreamJoin, UnsupportedError
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.device import PAIR, Items

from ..support.changes import Change, golden_rows
from .joins import Case, Difference, check_same, cpu_options, drawn, drawn_window, outcome

#: Sub-windows by which masks hide pairs.
CORES = 3
#: Kinds of joins that change.
_KINDS = ("inner", "inner", "inner", "left", "right", "full", "semi", "anti", "asof", "asof_left")


class Changes:
    """Random changes of a session while it runs, and with which of them golden must answer; and the session's items."""

    def __init__(self, chance: random.Random, timed: bool):
        self.made: list[Change] = []
        self.items: list[Items] = []
        self.told: list[str] = []
        self._chance, self._timed = chance, timed

    def make(self, session: StreamJoin) -> None:
        """Change ``session`` in one way."""
        chance = self._chance
        match what := chance.choice(["window", "window", "mask", "precision", "move", "restart"]):
            case "window":
                window: Any = drawn_window(chance, self._timed)
                if chance.random() < 0.3:
                    window = (window, drawn_window(chance, self._timed))
                at, now = sum(session.window(window)), session.frontier
                self.made.append(Change(at, window=window, now=now))  # type: ignore[arg-type]  # times are int64
            case "mask":
                masked = tuple(sorted(chance.sample(range(CORES), chance.randrange(CORES + 1))))
                self.made.append(Change(sum(session.mask(masked, of=CORES)), masked=masked))
            case "precision":
                with suppress(splitjoin.OrderError):  # order total has no stars
                    n = chance.randint(1, 6)
                    self.made.append(Change(sum(session.precision(n)), n=n))
            case "move":
                with suppress(UnsupportedError):  # a move is under way
                    session.move("cpu", **{**cpu_options(chance), "engine": "auto"})
            case _:
                session.restart()
        self.told.append(f"{what} {self.made[-1] if self.made else ''}")


def pushed(chance: random.Random, case: Case, sessions: Sequence[Callable[[], StreamJoin]],
           changes: Changes | None = None) -> pa.Table:
    """The rows of a session that gets its tuples in random parts, and moves at times to the next of ``sessions``; it
    makes ``changes`` too, if there are any.
    """
    makers, parts = list(sessions), []
    session = makers[0]()

    def polled() -> pa.RecordBatch:
        if changes is None:
            return session.poll()
        items, batch = session.poll_items()
        changes.items.append(items)
        return batch

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
            parts.append(polled())
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
        elif changes is not None and action > (0.97 if case.time is None else 0.8):
            changes.make(session)
    if changes is None:
        parts.append(session.flush())
    else:
        session.close_r()
        session.close_s()
        parts.append(polled())
    session.close()
    return pa.Table.from_batches(parts)


def _openers(chance: random.Random, case: Case, given: dict[str, Any], **more: Any) -> list[Callable[[], StreamJoin]]:
    """What opens sessions of ``case`` with two choices of options."""
    if case.time is None:
        case.r, case.s = case.r.slice(0, 60), case.s.slice(0, 60)
    options = [{**cpu_options(chance), "engine": "auto"} for _ in range(2)]
    case.more |= {"threads": [one["threads"] for one in options]}

    def make(one: dict[str, Any]) -> StreamJoin:
        return splitjoin.open(splitjoin.query(case.r.schema, case.s.schema, **given), **one, **more)

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


def of_changes(chance: random.Random, *, all_told: bool = True) -> None:
    """Compare a join whose session changes while it runs with golden, to which the same changes are made; or, without
    ``all_told``, none of them, which is a fault.
    """
    how = chance.choice(_KINDS)
    case = drawn(chance, streams=True, how=how)
    while min(len(case.r), len(case.s)) < 8:  # nothing would change
        case = drawn(chance, streams=True, how=how)
    given = {"on": case.on, "time": case.time, "window": case.window, "how": how, **case.more,
             "order": chance.choice(["total", "outer(1)", "outer(4)"]) if how == "inner" else "total"}
    sessions = _openers(chance, case, given, punctuation=True)
    changes = Changes(chance, case.time is not None)
    got = outcome(lambda: pushed(chance, case, sessions, changes))
    case.more |= {"order": given["order"], "changes": changes.told}
    if isinstance(got, str):
        check_same(case, "the session", got, outcome(lambda: splitjoin.join(case.r, case.s, device="golden",
                                                                            **given).table))
        return
    asked = splitjoin.query(case.r.schema, case.s.schema, **given)
    items = golden_rows(asked, arrivals(asked, case.r, case.s), changes.made if all_told else [], CORES)
    if (found := np.concatenate(changes.items)).tolist() != items.tolist():
        raise Difference(f"the session gives {len(found)} items, golden {len(items)}: {case}")
    rows = items[items["kind"] == PAIR]
    check_same(case, "the session", got, pa.table(
        [column for table, side in ((case.r, "r"), (case.s, "s"))[:1 if how in ("semi", "anti") else 2]
         for column in table.take(pa.array(rows[side], mask=rows[side] < 0)).columns], schema=got.schema))
