"""The CPU engine by threads: CPU seconds, time by the clock, and what runs serially. Run: python -m bench.threads"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa

import splitjoin
from bench.band import ON, streams
from bench.record import Recorder, arguments
from splitjoin.base.processors import processors
from splitjoin.engines.arrival import Arrivals, arrivals
from splitjoin.engines.cpu import CpuDevice
from splitjoin.engines.cpu.compiled_session import CpuSession
from splitjoin.engines.cpu.helpers import Team
from splitjoin.engines.cpu.index import IndexFinder
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema

#: Arrivals of a batch, and numbers of threads.
BATCH, THREADS = 1 << 16, (1, 2, 4, 16)
#: The condition of sorted runs.
BETWEEN = "r.x BETWEEN s.low AND s.high"
CPU = "CPU seconds of all threads, from full windows on, ordered output included; the least of runs in turn"
CLOCK = "time by the clock of the same runs"


def intervals(n: int) -> tuple[pa.Table, pa.Table]:
    """Points, and intervals of which a point meets about one in 2**15."""
    chance = np.random.default_rng(5)
    x, low = (chance.integers(0, 1 << 30, n).astype(np.int32) for _ in range(2))
    width = chance.integers(0, 1 << 16, n).astype(np.int32)
    return pa.table({"x": x}), pa.table({"low": low, "high": low + width})


#: By name: the engine, the condition, the exponent of the window, the streams, and the tuples of each behind it.
CASES: dict[str, tuple[Any, str, int, Callable[[int], tuple[pa.Table, pa.Table]], int]] = {
    "index, 2^12": ("index", ON, 12, streams, 400_000), "index, 2^15": ("index", ON, 15, streams, 400_000),
    "index, 2^18": ("index", ON, 18, streams, 400_000), "sorted, 2^15": ("sorted", BETWEEN, 15, intervals, 200_000),
    "nested, 2^15": ("nested", ON, 15, streams, 65_536), "nested, 2^18": ("nested", ON, 18, streams, 32_768)}


def cpu_seconds() -> float:
    """CPU seconds of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Case:
    """Streams behind full windows, for one query."""

    def __init__(self, name: str, quick: bool):
        self.engine, on, bits, make, tuples = CASES[name]
        self.window, self.tuples = 1 << bits, tuples // (4 if quick else 1)
        self.r, self.s = make(self.window + self.tuples)
        self.query = Query.make(Schema.from_table("r", self.r), Schema.from_table("s", self.s), on=on,
                                window=f"ROWS {self.window}")

    def behind(self, threads: int, prepare: Callable[[CpuSession], None] = lambda session: None) -> tuple[float, float]:
        """CPU seconds and time by the clock."""
        with CpuDevice(engine=self.engine, threads=threads, compiling="first").open(self.query) as session:
            assert isinstance(session, CpuSession)
            push(session, arrivals(self.query, self.r[:self.window], self.s[:self.window]))
            prepare(session)
            incoming = arrivals(self.query, self.r[self.window:], self.s[self.window:])
            used, began = cpu_seconds(), time.perf_counter()
            push(session, incoming)
            return cpu_seconds() - used, time.perf_counter() - began


def push(session: CpuSession, incoming: Arrivals) -> None:
    """Push and poll batch by batch."""
    for at in range(0, len(incoming), BATCH):
        part = slice(at // 2, (at + BATCH) // 2)
        session.push(Arrivals(incoming.stream[at:at + BATCH], None, incoming.r[part], incoming.s[part]))
        session.poll()


class Profile(Team):
    """A team of ``threads`` whose work one thread does, part by part, so that the time of each is known.

    Attributes:
        shared: Seconds that were spent in parts that threads share.
        ideal: Seconds that these would take if nothing delayed the threads: the longest part, or an equal share.
    """

    def __init__(self, threads: int, finder: Callable[[], object]):
        super().__init__(threads)
        self._finder = finder
        self.shared = self.ideal = 0.0

    def run(self, function: Callable[[int], object], size: int | None = None) -> None:
        """As `Team.run`: thread 0 claims all tickets."""
        finder = self._finder()
        looked = finder._rooms[0].looked if isinstance(finder, IndexFinder) and finder._rooms else np.zeros(3)
        before = looked.copy()
        began = time.thread_time()
        function(0)
        took = time.thread_time() - began
        _, probing, storing = (looked - before)[:3]
        share = storing / (probing + storing) if probing + storing else 0.0
        self.shared += took
        self.ideal += took * ((1 - share) / self.size + share / min(self.size, 2))  # R's tuples and S's

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """As `Team.map`."""
        found, times = [], []
        for item in items:
            began = time.thread_time()
            found.append(function(item))
            times.append(time.thread_time() - began)
        if self.size > 1 and times:
            self.shared += sum(times)
            self.ideal += max(*times, sum(times) / self.size)
        return found


def profile(case: Case, threads: int) -> tuple[float, float]:
    """The share of the CPU time that runs serially, and the speed-up that follows for so many threads."""
    made: list[Profile] = []

    def prepare(session: CpuSession) -> None:
        made.append(Profile(threads, lambda: getattr(session._search, "_finder", None)))
        session._team = made[0]

    total, _ = case.behind(threads, prepare)
    alone, _ = case.behind(1)
    serial = total - made[0].shared
    return serial / total, alone / (serial + made[0].ideal)


def measure(out: Recorder, name: str, quick: bool) -> None:
    """The figures of one case."""
    case, best = Case(name, quick), {n: (float("inf"), float("inf")) for n in THREADS}
    for _ in range(2 if quick else 5):
        for n in THREADS:
            cpu, clock = case.behind(n)
            best[n] = min(best[n][0], cpu), min(best[n][1], clock)
    for n in THREADS:
        config = {"engine": f"cpu, {name}", "threads": n, "batch": BATCH, "processors": processors()}
        out.add("cpu_ns_per_tuple", best[n][0] / case.tuples / 2e-9, "ns", config, CPU)
        out.add("clock_ns_per_tuple", best[n][1] / case.tuples / 2e-9, "ns", config, CLOCK)
        out.add("cpu_to_one_thread", best[n][0] / best[1][0], "times", config, "CPU seconds over those of one thread")
        if n > 1:
            share, predicted = profile(case, n)
            out.add("serial_share", share, "", config, "of the CPU time of a run whose parts one thread does in turn")
            out.add("predicted_speedup", predicted, "times", config,
                    "CPU time of one thread over the serial part and the longest share of each parallel part")


def main() -> None:
    """All figures."""
    options = arguments(__doc__ or "")
    out = Recorder("threads", quick=options.quick)
    splitjoin.join(*streams(10), on=ON, window="ROWS 9")
    for name in ("index, 2^15", "nested, 2^15") if options.quick else CASES:
        measure(out, name, options.quick)
    print(out.write())


if __name__ == "__main__":
    main()
