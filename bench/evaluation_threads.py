"""SplitJoin's Figures 12, 13 and 16 to 19 on threads of the CPU, and the product's own engine beside them, in one run.

Run: python -m bench.evaluation_threads, or for one figure python -m bench.evaluation_threads --figure 19. All
architectures of ``engine="threads"`` have the paper's condition: an integer and a float band of 10 on both sides,
values uniform in 1 to 10,000. One tuple of each stream comes at each time; windows are filled one and a half times
before anything is measured. A rate is the highest of some rounds, in which all systems take turns: of threads, by the
times at which the first and the last tuple of a round were accepted while all queues were full; of the own engine, and
in Figures 17 and 19, where a round has few tuples, by the time of a push. Latencies are of pairs, from accepting the
later tuple until the merger has the pair, at half the rate. Figure 17 has wider bands; Figure 19 orders ``inner(n)``.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.record import Recorder, options_of
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
#: Those that SplitJoin's text compares in Figures 17 and 18.
RIVALS = ("splitjoin", "low-latency-handshake")
FIGURES = ("12", "13", "16", "17", "18", "19")
HOW = f"threads of the CPU; {ON}, int32 and float32 uniform in 1 to {VALUES:,}, R and S by turns, order none"


@dataclass(frozen=True)
class Sizes:
    """Numbers of cores, windows in tuples of each stream, that of latencies, rounds, and pairs to look at in each; of
    Figures 17 and 19 the results of a round, the window and shares of pairs of the first, and sub-windows of the other.
    """

    cores: tuple[int, ...]
    windows: tuple[int, ...]
    latency_window: int
    rounds: int
    pairs: int
    results: int
    share_window: int
    shares: tuple[float, ...]
    sub_windows: tuple[int, ...]


FULL = Sizes((1, 2, 4), (1 << 10, 1 << 12, 1 << 14, 1 << 16), 1 << 13, 3, 1 << 28, 1 << 20, 1 << 10,
             (1e-4, 1e-3, 1e-2, 0.1, 0.5), (1 << 9, 1 << 11, 1 << 13))
QUICK = Sizes((2,), (1 << 8,), 1 << 10, 1, 1 << 20, 1 << 14, 1 << 8, (1e-2, 0.5), (1 << 7,))


def query_of(window: int, kind: str, tuples: int, order: str, share: float | None) -> tuple[Query, pa.Table, pa.Table]:
    """The query and both streams: a tuple of each at each time. ``share``: of matching pairs; None for bands of 10."""
    reach = 10 if share is None else round(VALUES * (1 - math.sqrt(1 - math.sqrt(share))))  # half of it by each band
    rng = np.random.default_rng(1)
    ts = pa.array(np.arange(tuples), pa.int64())
    r, s = (pa.table({"ts": ts, i: pa.array(rng.integers(1, VALUES + 1, tuples), pa.int32()),
                      f: pa.array(rng.uniform(1, VALUES, tuples), pa.float32())}) for i, f in (("x", "y"), ("a", "b")))
    size, time_column = (f"ROWS {window}", None) if kind == "ROWS" else (f"RANGE {window - 1}", "ts")
    return Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=ON.replace("10", str(reach)),
                      window=size, time=time_column, order=order), r, s


class Run:
    """A session with full windows, and what is pushed next. ``tuples``: of each stream in a round."""

    def __init__(self, system: str, cores: int, window: int, kind: str, tuples: int, rounds: int, order: str = "none",
                 share: float | None = None):
        self._fill, self._tuples, self._is_short = 3 * window // 2, tuples, order != "none" or share is not None
        self._query, self._r, self._s = query_of(window, kind, self._fill + rounds * tuples, order, share)
        device = CpuDevice(threads=cores) if system == OURS else CpuDevice(engine="threads", architecture=system,
                                                                            threads=cores)
        self.session = device.open(self._query)
        self._at = 0
        while self._at < self._fill:  # in parts, of which many pairs fit into memory
            self.push(min(tuples, self._fill - self._at))
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
        if isinstance(session, ThreadSession) and not self._is_short:
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


def best(run: Run, rounds: int) -> float:
    """The highest rate of some rounds."""
    found = 0.0
    for _ in range(rounds):
        found = max(found, run.rate())
        run.session.poll()
    return found


def selectivity(out: Recorder, sizes: Sizes) -> None:
    """Figure 17: the throughput against the share of pairs that match."""
    window = sizes.share_window
    for share in sizes.shares:
        for system in (*RIVALS, OURS):
            tuples = max(1 << 8, min(sizes.pairs // window // 2, int(sizes.results / window / share / 2)))
            run = Run(system, 2, window, "RANGE", tuples, sizes.rounds, share=share)
            out.add("thread_rate_by_selectivity", best(run, sizes.rounds), "tuples/s", {
                "figure": "17", "architecture": system, "cores": 2, "window": window, "kind": "RANGE",
                "share": share}, HOW)
            run.session.close()


def precision(out: Recorder, sizes: Sizes) -> None:
    """Figure 19: the throughput against the comparisons between two stars, from 2 to a sub-window."""
    for sub_window in sizes.sub_windows:
        window, steps = 2 * sub_window, [2 * 4**n for n in range((sub_window.bit_length() + 1) // 2)]
        run = Run("splitjoin", 2, window, "ROWS", max(1 << 7, sizes.results // window), sizes.rounds * len(steps),
                  order=f"inner({sub_window})")
        for every in steps:
            run.session.precision(every)
            out.add("thread_rate_by_precision", best(run, sizes.rounds), "tuples/s", {
                "figure": "19", "architecture": "splitjoin", "cores": 2, "window": window, "kind": "ROWS",
                "order": f"inner({every})"}, HOW.replace("order none", "order inner(n)"))
        run.session.close()


def visiting(out: Recorder, sizes: Sizes, figure: str) -> None:
    """Figure 13: latencies of pairs at half of the rate; Figure 18: with windows by rows."""
    window, kind = sizes.latency_window, "RANGE" if figure == "13" else "ROWS"
    for cores in sizes.cores:
        for system in ARCHITECTURES if figure == "13" else RIVALS:
            run = Run(system, cores, window, kind, 2 * window, 3)
            found = run.latencies(max(run.rate(), run.rate()) / 2)
            run.session.close()
            for metric, value in (("thread_pair_latency", found.mean()), ("thread_pair_latency_50", np.median(found))):
                out.add(metric, float(value), "ms", {"figure": figure, "architecture": system, "cores": cores,
                                                     "window": window, "kind": kind}, HOW)


def main() -> None:
    """All figures, or some."""
    parser = options_of((__doc__ or "").partition("\n")[0])
    parser.add_argument("--figure", choices=FIGURES, nargs="+", default=FIGURES, help="measure these anew (all)")
    options = parser.parse_args()
    sizes = QUICK if options.quick else FULL
    for figure in options.figure:
        out = Recorder("evaluation_threads", quick=options.quick, part=f"figure {figure}")
        match figure:
            case "12" | "16":
                rates(out, sizes, "RANGE" if figure == "12" else "ROWS", figure)
            case "13" | "18":
                visiting(out, sizes, figure)
            case "17":
                selectivity(out, sizes)
            case _:
                precision(out, sizes)
        print(out.write())


if __name__ == "__main__":
    main()
