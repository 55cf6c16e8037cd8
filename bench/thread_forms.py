"""Every form of join by threads, from rows in to rows out: CPU seconds, what is serial, and the speed-up that follows.
Run: python -m bench.thread_forms

Sessions get the same batches in turn, with one thread and with more, behind full windows; joins of whole tables run in
turn. The CPU seconds tell whether work grows with threads, also where there are fewer processors: then as many helpers
wake as there are (docs/adr/0118), but the work is divided for all. With the time that the first thread works alone they
give the speed-up that 16 processors would (Amdahl), which is a prediction. Where there is a processor for each thread,
the speed-up by the clock stands beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import splitjoin
from bench.band import ON, streams
from bench.record import Recorder, options_of
from bench.table_cases import JOINS
from bench.threads import BETWEEN, CALLS, SHARED, cpu_seconds, intervals, noted
from splitjoin.base.processors import processors

#: Arrivals of each stream in a batch, tuples of a window, rows a side of whole tables, and numbers of threads.
HALF, WINDOW, ROWS, THREADS = 1 << 15, 1 << 15, 1_000_000, (1, 2, 16)
CPU = "CPU seconds of all threads for the same batches or tables, the least of turns"
SERIAL = "CPU time of the first thread in the same calls, outside of work that threads share, over CPU seconds of one"
CLOCK = "time by the clock of the same batches or tables, the least of turns"
SPEEDUP = "time by the clock of one thread over it, with a processor for each thread"
PREDICTED = "CPU seconds of one thread over serial time and a share of the other CPU seconds with so many threads"

#: A call that joins the next batch, or the tables again.
Step = Callable[[], Any]


class Form(NamedTuple):
    """A form of join: ``make`` gives the step for a number of threads, of which a turn has ``steps``."""

    make: Callable[[int], Step]
    steps: int


def banded(n: int) -> tuple[pa.Table, pa.Table]:
    """The streams of the band benchmark with event times."""
    ts = pa.array(np.arange(n))
    r, s = streams(n)
    return r.append_column("ts", ts), s.append_column("ts", ts)


def keyed(n: int) -> tuple[pa.Table, pa.Table]:
    """Event times, 1,000 keys, and values."""
    chance = np.random.default_rng(3)
    r, s = (pa.table({"ts": np.arange(n), "k": chance.integers(0, 1000, n), "v": chance.integers(0, 1000, n)})
            for _ in range(2))
    return r, s


def equal(n: int) -> tuple[pa.Table, pa.Table]:
    """Keys of which a window has about one in two."""
    chance = np.random.default_rng(7)
    r, s = (pa.table({"ts": np.arange(n), "k": chance.integers(0, 2 * WINDOW, n)}) for _ in range(2))
    return r, s


def session(streams_of: Callable[[int], tuple[pa.Table, pa.Table]], on: str, window: str, *, window_rows: int = WINDOW,
            half: int = HALF, engine: str = "auto", unsorted: bool = False, **asked: Any) -> Callable[[int], Step]:
    """A streaming session behind full windows, whose streams begin anew when they end."""

    def make(threads: int) -> Step:
        r, s = streams_of(window_rows + 32 * half)
        timed = "ts" in r.column_names
        query = splitjoin.query(r.schema, s.schema, on=on, window=window, time="ts" if timed else None, **asked)
        opened: Any
        if unsorted:
            opened = splitjoin.open_unsorted(query, lateness=1, threads=threads, engine=engine)
        else:
            opened = splitjoin.open(query, engine=engine, threads=threads)
        at = 0

        def push(rows: int = half) -> int:
            nonlocal at
            if at + rows > len(r):
                raise RuntimeError("the streams have ended")
            opened.push_s(s[at:at + rows])
            opened.push_r(r[at:at + rows])
            at += rows
            return len(opened.poll())

        for _ in range(-(-window_rows // half)):
            push()
        return push

    return make


def tables(join: str, rows: int) -> Callable[[int], Step]:
    """A join of whole tables."""
    given = JOINS[join].tables(rows)
    return lambda threads: lambda: splitjoin.join(*given, **JOINS[join].call, threads=threads).table


def forms(rows: int) -> dict[str, Callable[[], Form]]:
    """All, by name."""
    ranged, by_key = f"RANGE {WINDOW}", "r.k = s.k"
    kinds: dict[str, dict[str, Any]] = {name: {"how": name} for name in ("inner", "left", "semi", "full", "asof")}
    kinds["asof"]["direction"] = "backward"
    folds: dict[str, Any] = {"how": "left", "aggregate": {"n": "count(*)", "total": "sum(s.v)"}, "window_rows": 4096}
    before = ("RANGE 0", "RANGE 4000")
    found: dict[str, Callable[[], Form]] = {
        f"session, {name}": lambda kind=kind: Form(session(banded, ON, ranged, **kind), 2)
        for name, kind in kinds.items()}
    found |= {
        "session, equal keys": lambda: Form(session(equal, by_key, ranged), 2),
        "session, index 2^12": lambda: Form(session(banded, ON, "ROWS 4096", window_rows=4096, engine="index"), 2),
        "session, nested loops": lambda: Form(session(
            banded, ON, f"ROWS {WINDOW}", half=4096, engine="nested"), 2),
        "session, sorted runs": lambda: Form(session(intervals, BETWEEN, f"ROWS {WINDOW}", engine="sorted"), 2),
        "session, expression": lambda: Form(session(
            banded, "abs(r.x - s.a) + abs(r.y - s.b) <= 10", "ROWS 4096", window_rows=4096, half=4096), 2),
        "aggregate, sliding": lambda: Form(session(keyed, by_key, before, **folds), 3),
        "aggregate, key-oij": lambda: Form(session(
            keyed, by_key, before, engine="key-oij", unsorted=True, **folds), 3),
        "aggregate, scale-oij": lambda: Form(session(
            keyed, by_key, before, engine="scale-oij", unsorted=True, **folds), 3)}
    for join in ("inner, one band", "overlap by key", "inner, equal keys within 1,000 of time", "as-of by key"):
        found[f"tables, {join}"] = lambda join=join: Form(tables(join, rows), 1)
    return found


def measure(out: Recorder, name: str, form: Form, threads: tuple[int, ...], rounds: int) -> None:
    """The figures of one form."""
    steps = {n: form.make(n) for n in threads}
    best: dict[int, tuple[float, float]] = {}
    clock = dict.fromkeys(threads, float("inf"))
    for n in threads:
        steps[n]()
    for _ in range(rounds):
        for n in threads:
            time.sleep(0.02)  # helpers of the sessions before have stopped to look for work
            steps[n]()  # not counted: it finds the caches as other threads have left them
            stages: dict[str, float] = {}
            used, own, began = cpu_seconds(), time.thread_time(), time.perf_counter()
            with noted(stages, {**{k: SHARED[k] for k in ("shared", "mapped")}, **CALLS}, time.thread_time):
                for _ in range(form.steps):
                    steps[n]()
            clock[n] = min(clock[n], time.perf_counter() - began)
            serial = time.thread_time() - own - sum(stages.values())
            best[n] = min(best.get(n, (float("inf"), 0.0)), (cpu_seconds() - used, serial))
    one = best[threads[0]][0]
    for n in threads:
        total, serial = best[n]
        config = {"form": name, "threads": n, "processors": processors()}
        out.add("form_cpu_seconds", total / form.steps, "s", config, CPU)
        out.add("form_cpu_to_one_thread", total / one, "times", config, CPU)
        if n <= processors():
            out.add("form_clock_seconds", clock[n] / form.steps, "s", config, CLOCK)
        if 1 < n <= processors():
            out.add("form_speedup", clock[threads[0]] / clock[n], "times", config, SPEEDUP)
        if n > 1:
            out.add("form_serial_share", serial / one, "", config, SERIAL)
            out.add("form_predicted_speedup", one / (serial + (total - serial) / n), "times", config, PREDICTED)


def main() -> None:
    """All figures."""
    parser = options_of(__doc__ or "")
    parser.add_argument("--only", default="", metavar="TEXT", help="measure the forms with this in their names")
    options = parser.parse_args()
    for name, make in forms(200_000 if options.quick else ROWS).items():
        if options.only in name:
            out = Recorder("thread_forms", quick=options.quick, part=name)
            measure(out, name, make(), THREADS, 3 if options.quick else 5)
            out.write()


if __name__ == "__main__":
    main()
