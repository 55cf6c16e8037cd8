"""SplitJoin's Figures 12, 13 and 16 on threads of the CPU, and the product's own engine beside them, in one run.

Run: python -m bench.evaluation_threads. All architectures of ``engine="threads"`` have the paper's condition: an
integer and a float band of 10 on both sides, values uniform in 1 to 10,000. One tuple of each stream comes at each
time; windows are filled one and a half times before anything is measured. A rate is the highest of some rounds, in
which all systems take turns: of threads, by the times at which the first and the last tuple of a round were accepted
while all queues were full; of the own engine, by the time of a push. Latencies are of pairs, from accepting the later
tuple until the merger has the pair, at half the rate.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.record import Recorder, arguments
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.cpu import CpuDevice
from splitjoin.engines.device import pairs
from splitjoin.engines.threads import ARCHITECTURES, ThreadSession
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema

ON = "abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10"
VALUES = 10_000
OURS = "splitjoin's own engine"
SYSTEMS = (*ARCHITECTURES, OURS)
HOW = f"threads of the CPU; {ON}, int32 and float32 uniform in 1 to {VALUES:,}, R and S by turns, order none"


@dataclass(frozen=True)
class Sizes:
    """Numbers of cores, windows in tuples of each stream, that of latencies, rounds, and pairs to look at in each."""

    cores: tuple[int, ...]
    windows: tuple[int, ...]
    latency_window: int
    rounds: int
    pairs: int


FULL = Sizes((1, 2, 4), (1 << 10, 1 << 12, 1 << 14, 1 << 16), 1 << 13, 3, 1 << 28)
QUICK = Sizes((2,), (1 << 8,), 1 << 10, 1, 1 << 20)


def query_of(window: int, kind: str, tuples: int) -> tuple[Query, pa.Table, pa.Table]:
    """The query and both streams: a tuple of each at each time."""
    rng = np.random.default_rng(1)
    ts = pa.array(np.arange(tuples), pa.int64())
    r, s = (pa.table({"ts": ts, i: pa.array(rng.integers(1, VALUES + 1, tuples), pa.int32()),
                      f: pa.array(rng.uniform(1, VALUES, tuples), pa.float32())}) for i, f in (("x", "y"), ("a", "b")))
    size, time_column = (f"ROWS {window}", None) if kind == "ROWS" else (f"RANGE {window - 1}", "ts")
    return Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=ON, window=size, time=time_column,
                      order="none"), r, s


class Run:
    """A session with full windows, and what is pushed next. ``tuples``: of each stream in a round."""

    def __init__(self, system: str, cores: int, window: int, kind: str, tuples: int, rounds: int):
        self._fill, self._tuples = 3 * window // 2, tuples
        self._query, self._r, self._s = query_of(window, kind, self._fill + rounds * tuples)
        device = CpuDevice(threads=cores) if system == OURS else CpuDevice(engine="threads", architecture=system,
                                                                            threads=cores)
        self.session = device.open(self._query)
        self._at = 0
        self.push(self._fill)
        self.session.poll()

    def push(self, n: int) -> float:
        """Push ``n`` tuples of each stream, and return the seconds."""
        part = arrivals(self._query, self._r.slice(self._at, n), self._s.slice(self._at, n))
        self._at += n
        session = self.session
        if isinstance(session, ThreadSession):
            session.accepted = []
        began = time.perf_counter()
        session.push(part)
        seconds = time.perf_counter() - began
        if isinstance(session, ThreadSession):
            assert session.accepted is not None
            seconds = sum(float(one[-1] - one[0]) / 1e9 for one in session.accepted)
        return seconds

    def rate(self) -> float:
        """Tuples of both streams a second in the next round."""
        return 2 * self._tuples / self.push(self._tuples)

    def latencies(self, rate: float) -> npt.NDArray[np.float64]:
        """Milliseconds that pairs took whose later tuple is in the first half of the next round, at ``rate``."""
        session = self.session
        assert isinstance(session, ThreadSession)
        session.poll()
        session.pace, session.left, first = int(1e9 / rate), [], 2 * self._at
        self.push(self._tuples)
        items = np.concatenate([session.poll(), session.flush()])
        left, accepted = np.concatenate(session.left), np.concatenate(session.accepted or [])
        r, s = pairs(items)
        assert len(left) == len(items)
        later = np.maximum(2 * r, 2 * s + 1) - first
        mine = (later >= 0) & (later < self._tuples)
        found: npt.NDArray[np.float64] = (left[mine] - accepted[later[mine]]) / 1e6
        return found


def rates(out: Recorder, sizes: Sizes, kind: str, figure: str) -> None:
    """Figures 12 and 16: the throughput against cores and windows."""
    for window in sizes.windows:
        for cores in sizes.cores if window == sizes.windows[len(sizes.windows) // 2] else (2,):
            tuples = max(1 << 9, min(1 << 15, sizes.pairs // window // 2))
            runs = {system: Run(system, cores, window, kind, tuples, sizes.rounds) for system in SYSTEMS}
            best = dict.fromkeys(runs, 0.0)
            for _ in range(sizes.rounds):
                for system, run in runs.items():
                    best[system] = max(best[system], run.rate())
            for system, run in runs.items():
                run.session.close()
                out.add("thread_rate", best[system], "tuples/s", {
                    "figure": figure, "architecture": system, "cores": cores, "window": window, "kind": kind}, HOW)


def visiting(out: Recorder, sizes: Sizes) -> None:
    """Figure 13: latencies of pairs at half of the rate."""
    window = sizes.latency_window
    for cores in sizes.cores:
        for system in ARCHITECTURES:
            run = Run(system, cores, window, "RANGE", 2 * window, 3)
            found = run.latencies(max(run.rate(), run.rate()) / 2)
            run.session.close()
            for metric, value in (("thread_pair_latency", found.mean()), ("thread_pair_latency_50", np.median(found))):
                out.add(metric, float(value), "ms", {"figure": "13", "architecture": system, "cores": cores,
                                                     "window": window, "kind": "RANGE"}, HOW)


def main() -> None:
    """All figures."""
    options = arguments((__doc__ or "").partition("\n")[0])
    sizes = QUICK if options.quick else FULL
    for figure, kind in (("12", "RANGE"), ("16", "ROWS")):
        out = Recorder("evaluation_threads", quick=options.quick, part=f"figure {figure}")
        rates(out, sizes, kind, figure)
        print(out.write())
    out = Recorder("evaluation_threads", quick=options.quick, part="figure 13")
    visiting(out, sizes)
    print(out.write())


if __name__ == "__main__":
    main()
