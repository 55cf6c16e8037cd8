"""Sessions and shared streams whose pushes, polls, changes and snapshots are in threads of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

import splitjoin
from splitjoin import Limit
from splitjoin.base.threads import thread

from ..support.scheduler import Scheduler

R, S = pa.schema([("ts", pa.int64()), ("x", pa.int32())]), pa.schema([("ts", pa.int64()), ("a", pa.int32())])
#: The window with which queries of shared streams begin.
LONG = 16
#: A row: the numbers of its tuples, of which number n of R has the time 2n, and of S 2n + 1.
Row = tuple[int, int]


def together(scheduler: Scheduler, *functions: Callable[[], object]) -> None:
    """Call each function in a thread of its own, which begin in random order, and return when all have."""
    threads = [thread(one, name=one.__name__) for one in scheduler.chance.sample(functions, len(functions))]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


def batches(scheduler: Scheduler, n: int) -> list[range]:
    """The numbers below ``n``, cut at random."""
    cuts = sorted({0, n, *(scheduler.chance.randrange(n) for _ in range(scheduler.chance.randint(0, n)))})
    return [range(a, b) for a, b in pairwise(cuts)]


def tuples(side: str, numbers: Sequence[int]) -> pa.Table:
    """Tuples of a stream; each meets those of the other stream whose numbers are the same modulo 2."""
    name, schema = ("x", R) if side == "r" else ("a", S)
    return pa.table({"ts": [2 * n + (side == "s") for n in numbers], name: [n % 2 for n in numbers]}, schema=schema)


def rows(n: int, window: Callable[[int, int], int], first: int = 0) -> list[Row]:
    """The rows of ``n`` tuples of each stream, from the arrival ``first`` on, in order; ``window``: the length that
    probe number n of a stream (0: R, 1: S) sees.
    """
    found = []
    for probe in range(first, 2 * n):
        side, number = probe % 2, probe // 2
        for stored in range(max(first, probe - window(side, number)), probe):
            other = stored // 2
            if stored % 2 != side and other % 2 == number % 2:
                found.append((other, number) if side else (number, other))
    return found


def changed(n: int, changes: Sequence[tuple[int, int, int]], *, is_live: bool) -> list[Row]:
    """The rows of ``n`` tuples of each stream in a window of `LONG`, and in other ones from row ids (R's, S's) on.

    A tuple that no later one could have met when its window changed stays away. ``is_live``: one that only the very
    next tuple could have met does not, as who delivered first says whether that one was known to come.
    """
    found = []
    for r, s in rows(n, lambda side, number: LONG):
        probe, stored = sorted((2 * r, 2 * s + 1))[::-1]
        length, sees = LONG, True
        for at_r, at_s, to in changes:
            if probe >= at_r + at_s:  # numbers of tuples are their times
                sees &= stored >= at_r + at_s - is_live - length
                length = to
        if sees and probe - stored <= length:
            found.append((r, s))
    return found


def given(table: pa.Table | pa.RecordBatch) -> list[Row]:
    """The rows of a result."""
    return [(r // 2, s // 2) for r, s in zip(table["ts_r"].to_pylist(), table["ts_s"].to_pylist(), strict=True)]


def session(scheduler: Scheduler, folder: Path) -> None:
    """A session with bounds: pushes of several sources wait for the thread that polls, and others look at it."""
    n, chance = scheduler.chance.randint(4, 12), scheduler.chance
    found: list[Row] = []
    query = splitjoin.query(R, S, on="r.x = s.a", window="RANGE 5", time="ts")
    with splitjoin.open(query, device="golden", limit=Limit(rows=chance.randint(1, 5), waiting=chance.randint(1, 5)),
                        when_full="block") as join:
        def push(side: str) -> None:
            for batch in batches(scheduler, n):
                (join.push_r if side == "r" else join.push_s)(tuples(side, batch))
            (join.close_r if side == "r" else join.close_s)()

        def poll() -> None:
            for batch in join:
                found.extend(given(batch))

        def look() -> None:
            for _ in range(3):
                if (counters := join.counters())["unread_rows"] < 0 or counters["rows"] < counters["unread_rows"]:
                    raise AssertionError(counters)
                with splitjoin.open(query, device="golden") as copy:
                    copy.restore(join.snapshot())
                    assert set(given(copy.poll())) <= set(rows(n, lambda side, number: 5))

        together(scheduler, lambda: push("r"), lambda: push("s"), poll, look)
        assert found == rows(n, lambda side, number: 5)
        assert join.finished


def shared(scheduler: Scheduler, folder: Path) -> None:
    """Queries of shared streams that are read, changed, added and closed while tuples come."""
    _shared(scheduler, has_common=False)


def common_join(scheduler: Scheduler, folder: Path) -> None:
    """Queries of a common join that are read, changed, added and closed while tuples come."""
    _shared(scheduler, has_common=True)


def ended(scheduler: Scheduler, folder: Path) -> None:
    """A query of a common join that is flushed while another one has the join work: it gives the rows of all tuples
    that were ready when it was flushed.
    """
    n = scheduler.chance.randint(1, 4)
    with splitjoin.share(R, S, time="ts") as streams:
        of = streams.common_join(on="r.x = s.a", window=f"RANGE {LONG}", device="golden")
        other, query = (of.query(on="r.x = s.a", window=f"RANGE {LONG}", name=name) for name in "ab")
        for batch in batches(scheduler, n):
            streams.push_r(tuples("r", batch))
            streams.push_s(tuples("s", batch))
        found: list[Row] = []
        together(scheduler, other.poll, lambda: found.extend(given(query.flush())))
        last = n - 1  # of S, which is not ready, as R may still bring an earlier one
        assert found == [row for row in rows(n, lambda side, number: LONG) if row[1] != last or row[0] > last], found
        assert query.finished


def _shared(scheduler: Scheduler, *, has_common: bool) -> None:
    chance = scheduler.chance
    has_few = chance.random() < 0.5
    n, limit = chance.randint(4, 12), None if has_few else chance.choice([None, 1, 3, 6])
    found: dict[str, list[Row]] = {"a": [], "b": []}
    changes: dict[str, list[tuple[int, int, int]]] = {name: [] for name in found}
    with splitjoin.share(R, S, time="ts", unread=limit, when_full="block") as streams:
        device = {} if has_common else {"device": "golden"}
        of: Any = streams if not has_common else streams.common_join(
            on="r.x = s.a", window=f"RANGE {LONG}", device="golden")
        queries = {name: of.query(on="r.x = s.a", window=f"RANGE {LONG}", name=name, **device) for name in found}

        def push(side: str) -> None:
            for batch in batches(scheduler, n):
                (streams.push_r if side == "r" else streams.push_s)(tuples(side, batch))
            (streams.close_r if side == "r" else streams.close_s)()

        def push_both() -> None:
            for batch in batches(scheduler, n):
                streams.push_r(tuples("r", batch))
                streams.push_s(tuples("s", batch))
            streams.close_r()
            streams.close_s()

        def poll(name: str) -> None:
            for batch in queries[name]:
                found[name].extend(given(batch))

        def change() -> None:
            for at in range(4):
                name = "a" if has_few else chance.choice(list(queries))
                length = chance.choice([chance.randint(1, LONG), (1, LONG)[at % 2]])
                try:
                    if has_common and not has_few and chance.random() < 0.5:
                        of.window(f"RANGE {length + LONG}")  # within which those of the queries lie
                    place = queries[name].window(f"RANGE {length}")
                except splitjoin.SplitJoinError as error:
                    assert "has ended" in str(error) or "has none" in str(error), error
                    return
                changes[name].append((*place, length))

        def come_and_go() -> None:
            later: list[Row] = []
            with of.query(on="r.x = s.a", window=f"RANGE {LONG}", name="c", **device) as query:
                for _ in range(chance.randint(0, 3)):
                    later.extend(given(query.poll()))
                if chance.random() < 0.5:
                    later.extend(given(query.flush()))
                    assert query.finished  # its end was a place in the streams, not one amid a push
            possible = [rows(n, lambda side, number: LONG, first) for first in range(2 * n + 1)]
            assert any(later == one[:len(later)] for one in possible), later

        def look() -> None:
            streams.snapshot()
            streams.counters()

        if has_few:  # so that each is often where another one is
            together(scheduler, push_both, lambda: poll("b"), chance.choice([change, change, come_and_go]))
            poll("a")
        else:
            together(scheduler, lambda: push("r"), lambda: push("s"), lambda: poll("a"), lambda: poll("b"),
                     *chance.sample([change, come_and_go, look], chance.randint(1, 3)))
        for name, rows_of in found.items():
            least, most = (changed(n, changes[name], is_live=is_live) for is_live in (False, True))
            assert [row for row in most if row in rows_of] == rows_of, (name, changes[name], rows_of, most)
            assert set(least) <= set(rows_of), (name, changes[name], rows_of, least)
