"""The CPU engine by threads: time by the clock, CPU seconds, and what runs serially. Run: python -m bench.threads

The numbers of threads take turns in one session, batch after batch of the same streams, whose windows are full. The
first batches of a turn are not counted: they find the caches as other threads have left them. On a machine with few
processors the CPU seconds tell whether work grows with threads, and the serial share how far a batch scales; with a
processor for each thread, the speed-up is measured, beside that of arithmetic alone, which is the machine's. Needs
NumPy, numba and pyarrow only, and a minute and a half on 16 processors.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from bench.arithmetic import measure_arithmetic
from bench.band import ON, streams
from bench.record import Recorder, options_of
from splitjoin.base.processors import processors
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.compiled.helpers import Team
from splitjoin.engines.cpu import CpuDevice, fused_batch, session as cpu_session
from splitjoin.engines.cpu.finder import Finder
from splitjoin.engines.cpu.grid_index import IndexFinder
from splitjoin.engines.cpu.search import PlanSearch
from splitjoin.engines.cpu.session import CpuSession, MeasuredThreads
from splitjoin.engines.cpu.timeline import Timeline
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema

#: Arrivals of a batch, numbers of threads, batches of a turn that are not counted, and turns of each number.
BATCH, THREADS, WARM, ROUNDS = 1 << 16, (1, 2, 4, 8, 16), 2, 3
#: The case that has no batches.
ARITHMETIC = "arithmetic alone"
#: The condition of sorted runs.
BETWEEN = "r.x BETWEEN s.low AND s.high"
CLOCK = "time by the clock a tuple, windows full, ordered output included; the least of batches in turn, median of each"
CPU = "CPU seconds of all threads in the same batches, a tuple"
SERIAL = "CPU time of the first thread a batch, outside of work that threads share: the least of batches in turn"
#: What a batch is made of, as `--stages` tells: by name the functions.
STAGES = {"windows and codes": (cpu_session, "run_jobs"), "columns": (PlanSearch, "deferred"),
          "arrivals": (Timeline, "next"), "choice": (PlanSearch, "finder"), "keep": (Finder, "keep"),
          "expire": (Finder, "expire"), "find": (IndexFinder, "find"), "tasks": (IndexFinder, "_tasks_of"),
          "describe": (IndexFinder, "_describe"), "sort": (IndexFinder, "_sort"),
          "gather": (cpu_session, "gather")}
#: What one thread calls in place of them.
CALLS = {"one call": (fused_batch, "find_matches"), "items": (fused_batch, "write_items")}
#: What threads share, and all of it.
SHARED = {"shared": (Team, "share"), "mapped": (Team, "map"), "batch": (CpuSession, "push")}


def intervals(n: int) -> tuple[pa.Table, pa.Table]:
    """Points, and intervals of which a point meets about one in 2**15."""
    chance = np.random.default_rng(5)
    x, low = (chance.integers(0, 1 << 30, n).astype(np.int32) for _ in range(2))
    width = chance.integers(0, 1 << 16, n).astype(np.int32)
    return pa.table({"x": x}), pa.table({"low": low, "high": low + width})


def timed(n: int) -> tuple[pa.Table, pa.Table]:
    """The band benchmark with event times."""
    r, s = streams(n)
    ts = pa.array(np.arange(n))
    return r.append_column("ts", ts), s.append_column("ts", ts)


#: By name: the engine, the condition, the exponent of the window, the streams, and the batches of a turn that count.
CASES: dict[str, tuple[Any, str, int, Callable[[int], tuple[pa.Table, pa.Table]], int]] = {
    "index, 2^15": ("index", ON, 15, streams, 12), "index, 2^18": ("index", ON, 18, streams, 12),
    "nested, 2^15": ("nested", ON, 15, streams, 3), "index, 2^12": ("index", ON, 12, streams, 12),
    "index, RANGE 2^15": ("index", ON, 15, timed, 12), "sorted, 2^15": ("sorted", BETWEEN, 15, intervals, 6),
    "nested, 2^18": ("nested", ON, 18, streams, 3)}


def cpu_seconds() -> float:
    """CPU seconds of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


@contextmanager
def noted(stages: dict[str, float], names: dict[str, tuple[Any, str]],
          clock: Callable[[], float] = time.perf_counter) -> Iterator[None]:
    """Add up in ``stages`` the seconds of the functions ``names``, by ``clock``."""
    kept = [(owner, name, getattr(owner, name)) for owner, name in names.values()]

    def noting(label: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            began = clock()
            try:
                return function(*arguments, **named)
            finally:
                stages[label] = stages.get(label, 0.0) + clock() - began
        return call

    for label, (owner, name, function) in zip(names, kept, strict=True):
        setattr(owner, name, noting(label, function))
    try:
        yield
    finally:
        for owner, name, function in kept:
            setattr(owner, name, function)


class AsAsked(MeasuredThreads):
    """Has so many threads share a batch as a turn asks for, whether it is faster or not."""

    def choose(self, several: int, arrivals: int) -> int:
        """``several``."""
        return several


class Case:
    """A session behind full windows."""

    def __init__(self, name: str, threads: tuple[int, ...], rounds: int):
        engine, on, bits, make, self.batches = CASES[name]
        self.window = 1 << bits
        n = self.window + BATCH // 2 * (self.batches + WARM) * (rounds + 2) * len(threads)
        self.r, self.s = make(n)
        ranged = "ts" in self.r.column_names
        query = Query.make(Schema.from_table("r", self.r), Schema.from_table("s", self.s), on=on,
                           window=f"RANGE {self.window}" if ranged else f"ROWS {self.window}",
                           time="ts" if ranged else None)
        opened = CpuDevice(engine=engine, threads=max(threads)).open(query)
        assert isinstance(opened, CpuSession)
        opened._measured = AsAsked()
        self.session, self.at, self.ranged = opened, 0, ranged
        for size in [BATCH // 2] * (self.window * 2 // BATCH) + [self.window % (BATCH // 2)]:
            self.push(size)

    def push(self, rows: int) -> None:
        """Push and poll the next ``rows`` of each stream, which alternate."""
        part, stream = slice(self.at, self.at + rows), np.tile(np.array([0, 1], np.uint8), rows)
        ts = np.repeat(np.arange(self.at, self.at + rows), 2) if self.ranged else None
        self.at += rows
        self.session.push(Arrivals(stream, ts, self.r[part], self.s[part]))
        self.session.poll()

    def begin(self, threads: int) -> None:
        """Begin a turn of so many threads, with the batches that are not counted."""
        self.session._threads = threads
        for _ in range(WARM):
            self.push(BATCH // 2)

    def turn(self) -> tuple[float, float]:
        """Seconds of a batch by the clock, the median, and CPU seconds, the mean of a turn that has begun."""
        clock, used = [], cpu_seconds()
        for _ in range(self.batches):
            began = time.perf_counter()
            self.push(BATCH // 2)
            clock.append(time.perf_counter() - began)
        return float(np.median(clock)), (cpu_seconds() - used) / self.batches

    def alone(self) -> float:
        """Microseconds of a batch that the first thread works alone, in a turn that has begun."""
        found = []
        for _ in range(self.batches):
            stages: dict[str, float] = {}
            with noted(stages, {**SHARED, **CALLS}, time.thread_time):
                self.push(BATCH // 2)
            found.append(stages["batch"] - sum(stages.get(name, 0.0) for name in ("shared", "mapped", *CALLS)))
        return min(found) * 1e6


def measure(out: Recorder, name: str, threads: tuple[int, ...], rounds: int, shown: bool) -> None:
    """The figures of one case."""
    case, best = Case(name, threads, rounds), {n: (float("inf"), float("inf")) for n in threads}
    for _ in range(rounds):
        for n in threads:
            case.begin(n)
            found = case.turn()
            best[n] = min(best[n][0], found[0]), min(best[n][1], found[1])
    for n in threads:
        config = {"engine": f"cpu, {name}", "threads": n, "batch": BATCH, "processors": processors()}
        out.add("clock_ns_per_tuple", best[n][0] / BATCH * 1e9, "ns", config, CLOCK)
        out.add("speedup", best[threads[0]][0] / best[n][0], "times", config, "time by the clock of one thread over it")
        out.add("cpu_ns_per_tuple", best[n][1] / BATCH * 1e9, "ns", config, CPU)
        out.add("cpu_to_one_thread", best[n][1] / best[threads[0]][1], "times", config, "CPU seconds over those of one")
        case.begin(n)
        out.add("serial_us_per_batch", case.alone(), "µs", config, SERIAL)
        if shown:
            stages: dict[str, float] = {}
            case.begin(n)
            with noted(stages, {**STAGES, **CALLS, **SHARED}):
                case.turn()
            print("   ", ", ".join(f"{stage} {seconds / case.batches * 1e6:,.0f} µs"
                                   for stage, seconds in stages.items()), flush=True)
    case.session.close()


def main() -> None:
    """All figures."""
    parser = options_of(__doc__ or "")
    parser.add_argument("--stages", action="store_true", help="print the time of each stage of a batch")
    parser.add_argument("--threads", default=",".join(map(str, THREADS)), help="numbers of threads, 1 the first")
    parser.add_argument("--cases", default=None, help="names of cases, with ; between them")
    options = parser.parse_args()
    out = Recorder("threads", quick=options.quick)
    threads = tuple(map(int, options.threads.split(",")))
    for name in options.cases.split(";") if options.cases else (ARITHMETIC, *CASES):
        if name == ARITHMETIC:
            measure_arithmetic(out, threads)
        elif not options.quick or name in ("index, 2^15", "nested, 2^15") or options.cases:
            measure(out, name, threads, 2 if options.quick else ROUNDS, options.stages)
    print(out.write())


if __name__ == "__main__":
    main()
