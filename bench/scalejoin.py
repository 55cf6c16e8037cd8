"""ScaleJoin's evaluation (section VI, Figures 5 to 8) in simulated cycles of circuits with a gate and several sources.

Run: python -m bench.scalejoin; --only threads, gate or readers for a part, beside the figures that are there. A core
stands for a thread of the paper: it stores every k-th tuple, compares every tuple of the other stream with its share,
and reads the gate's sequence. Rates are in comparisons and tuples a cycle, with the paper's ideal lines from one core:
k times its comparisons, √k times its tuples where windows are spans of time, so that they grow with the rate. Windows
here have some hundreds of tuples; the paper's have hundreds of thousands.
"""

from __future__ import annotations

import ctypes
import math
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from tests.testbench.gating import gate
from tests.testbench.models import Operation
from tests.testbench.on_amaranth import simulate
from tests.testbench.pauses import Stalls
from tests.testbench.testbench import Testbench

from bench.record import Recorder, options_of
from splitjoin import engines
from splitjoin.circuit.driver import CircuitSession
from splitjoin.circuit.wire import Configuration, Op
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.cpu import CpuDevice
from splitjoin.engines.loops import build
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin_hw.gate.gate import ScaleGate
from splitjoin_sim.device import SimDevice
from splitjoin_sim.pysim import PysimDevice

#: The paper's condition, on values uniform in 1 to 10,000.
ON = "abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10"
#: Windows in times; a tuple comes at each.
WINDOWS = (64, 128, 256)
HOW = f"simulated circuit with a gate; {ON}, values uniform in 1 to 10,000, order total, one lane, one probe"


@dataclass(frozen=True)
class Mix:
    """The division of a run's tuples: sources of R and of S, and the share of R at a time from 0 to 1.

    ``skew``: the weight of each source among those of its stream, at that time.
    """

    name: str
    r: int
    s: int
    share_r: Callable[[float], float] = lambda _: 0.5
    skew: Callable[[int, float], float] = lambda _n, _t: 1.0


#: Figures 8a to 8c: one source of R at 1,200 tuples a second and four of S at 900 together; three of R and two of S
#: whose rates go up and down; four of R and two of S with peaks.
SKEWED = (Mix("8a: 1 R and 4 S, 1,200 and 900 t/s", 1, 4, lambda _: 1200 / 2100),
          Mix("8b: 3 R and 2 S, sinusoidal", 3, 2, lambda t: 0.5 + 0.4 * math.sin(8 * math.pi * t),
              lambda n, t: 1.1 + math.sin(8 * math.pi * t + n)),
          Mix("8c: 4 R and 2 S, with peaks", 4, 2, lambda t: 0.9 if int(20 * t) % 5 == 0 else 0.4,
              lambda n, t: 5.0 if int(20 * t) % 6 == n else 1.0))
EVEN = Mix("even", 1, 1)


@dataclass(frozen=True)
class Input:
    """Tuples in arrival order, one at each time, and the source of each."""

    query: Query
    r: pa.Table
    s: pa.Table
    sources: npt.NDArray[np.intp]


def made(mix: Mix, tuples: int, window: int, seed: int = 1) -> Input:
    """``tuples`` tuples of both streams, with windows of ``window`` times."""
    rng = np.random.default_rng(seed)
    at = np.arange(tuples) / tuples
    of_r = np.diff(np.floor(np.cumsum([mix.share_r(t) for t in at])), prepend=0) > 0
    sources = np.empty(tuples, np.intp)
    for first, count, mine in ((0, mix.r, of_r), (mix.r, mix.s, ~of_r)):
        weights = np.array([[mix.skew(n, t) for n in range(count)] for t in at[mine]])
        edges = np.cumsum(weights, axis=1) / weights.sum(axis=1, keepdims=True)
        sources[mine] = first + (rng.random((mine.sum(), 1)) >= edges).sum(axis=1)
    ts = np.arange(tuples)
    r, s = (pa.table({"ts": pa.array(ts[mine], pa.int64()),
                      **{name: pa.array(rng.integers(1, 10_001, mine.sum()), pa.int32()) for name in names}})
            for mine, names in ((of_r, "xy"), (~of_r, "ab")))
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=ON, window=f"RANGE {window}", time="ts",
                       order="total")
    return Input(query, r, s, sources)


@dataclass(frozen=True)
class Run:
    """Comparisons of each core, both regions; cycles; tuples; and the latency of each probe in cycles."""

    comparisons: npt.NDArray[np.int64]
    cycles: int
    tuples: int
    latencies: npt.NDArray[np.int64]

    @property
    def deviation(self) -> float:
        """The standard deviation of the cores' comparisons, over their mean, in percent."""
        return float(100 * self.comparisons.std() / self.comparisons.mean())


def run(given: Input, cores: int, window: int, *, quick: bool, sources: int, pace: float | None = None) -> Run:
    """Fill the windows with the first tuples, and measure with the others."""
    capacity = 2 << (-(-WINDOWS[-1] // cores) - 1).bit_length()  # the same circuit for all windows
    make: Any = PysimDevice if quick else SimDevice
    with make(cores=cores, capacity=capacity, core="scan", sources=sources, region_counters=True,
              pace=pace).open(given.query) as session:
        assert isinstance(session, CircuitSession)
        whole = arrivals(given.query, given.r, given.s)
        n_r, n_s = ((whole.stream[:window] == number).sum() for number in (0, 1))
        parts = (arrivals(given.query, given.r.slice(0, n_r), given.s.slice(0, n_s)),
                 arrivals(given.query, given.r.slice(n_r), given.s.slice(n_s)))
        counts = []
        for part, sources_of in zip(parts, (given.sources[:window], given.sources[window:]), strict=True):
            session.push_from(part, sources_of) if sources > 1 else session.push(part)
            session.settle()
            counted = session.region_counters()
            assert counted is not None
            counts.append(counted["comparisons"].sum(axis=1))
        latencies, accepted = session.latencies(), session.accepted()
        assert latencies is not None
        assert accepted is not None
        done = (accepted + latencies)[window:]  # stars: tuples are accepted before they are compared
        return Run(counts[1] - counts[0], int(np.ptp(done)), len(parts[1]), latencies[window:])


def scaling(out: Recorder, cores: tuple[int, ...], windows: tuple[int, ...], *, quick: bool) -> None:
    """Figures 5 and 6: comparisons and tuples a cycle against the cores, and the deviation between cores."""
    for window in windows:
        first: Run | None = None
        for k in cores:
            found = run(made(EVEN, 3 * window, window), k, window, quick=quick, sources=2)
            first = first or found
            config = {"cores": k, "window": window, "sources": 2}
            rate, ideal = (run.comparisons.sum() / run.cycles for run in (found, first))
            out.add("comparisons_a_cycle", float(rate), "comparisons/cycle", config | {"ideal": float(ideal * k)}, HOW)
            out.add("tuples_a_cycle", found.tuples / found.cycles, "tuples/cycle", config, HOW)
            # A span of time T has T·rate tuples, so C = rate²·T: for a span that one core just sustains.
            spans = math.sqrt(rate / ideal)
            out.add("tuples_for_a_span", spans, "times one core", config | {"ideal": math.sqrt(k)},
                    "√ of the comparisons a cycle over those of one core: the rate at which windows of the same span "
                    "of time are sustained")
            out.add("core_deviation", found.deviation, "%", config, HOW)


def gate_alone(out: Recorder, sources: tuple[int, ...], *, quick: bool) -> None:
    """Figure 7a: records a cycle through the gate, by sources, whose records alternate: the worst case for its tree."""
    count = 30 if quick else 500
    for n in sources:
        given = [[*(Operation(Op.TUPLE, 0, at, (at,), ((0, 0),)) for at in range(first, n * count, n)),
                  Operation(Op.FLUSH)] for first in range(n)]
        config = Configuration(keys_r=(16,), keys_s=(16,), tests=((0, 0),), tree=0, time_bits=16)
        left: list[int] = []

        async def body(tb: Testbench, given: list[list[Operation]] = given, config: Configuration = config,
                       left: list[int] = left) -> None:
            sink = await gate(tb, config, given, Stalls(False, False))
            left += sink.cycles[:-2 * len(given)]  # the last ones wait until the other sources are known to be closed

        simulate(ScaleGate(config, n), body)
        out.add("gate_rate", (len(left) - 1) / (left[-1] - left[0]), "records/cycle", {"sources": n},
                "the gate alone, on Amaranth's simulator, without stalls")


def gate_readers(out: Recorder, sources: tuple[int, ...], readers: tuple[int, ...], *, quick: bool) -> None:
    """Figure 7a on threads: tuples a second through ScaleGate alone, by its sources and readers, which each get all."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "gate.so")
        subprocess.run([*build._compiler(), "-std=c++20", "-O3", "-w", "-shared", "-fPIC", "-pthread",
                        f"-I{Path(engines.__file__).parent}", str(Path(__file__).with_name("gate_rate.cpp")), "-o",
                        str(made)], check=True)
        call = ctypes.CDLL(str(made)).gate_rate
    call.restype, call.argtypes = ctypes.c_bool, [ctypes.c_int64] * 3 + [ctypes.POINTER(ctypes.c_double)]
    records, runs = 20_000 if quick else 1 << 19, 2 if quick else 5
    for n in sources:
        for r in readers:
            taken = (ctypes.c_double * 2)()
            best = [math.inf, math.inf]
            for _ in range(runs):
                assert call(n, r, records // n, taken), "a reader got another record than the next one"
                best = [min(pair) for pair in zip(best, taken, strict=True)]
            config, how = {"sources": n, "readers": r}, f"ScaleGate of threads, alone; the best of {runs} runs"
            passed = records // n * n
            out.add("gate_thread_rate", passed / best[0], "tuples/s", config, how)
            out.add("gate_thread_cpu", 1e9 * best[1] / passed, "CPU ns/tuple", config, f"{how}, all threads together")


def short_windows(out: Recorder, sources: tuple[int, ...], cores: tuple[int, ...], *, quick: bool) -> None:
    """The cores behind the gate, by sources, with windows so short that each compares next to nothing."""
    for n in sources:
        for k in cores:
            found = run(made(Mix("gate", n // 2, n - n // 2), 60 if quick else 2000, 1), k, 1, quick=quick, sources=n)
            out.add("short_window_rate", found.tuples / found.cycles, "tuples/cycle", {"sources": n, "cores": k},
                    "simulated circuit with a gate, windows of one tuple: a core's steps for a tuple are the limit")


def latency(out: Recorder, cores: tuple[int, ...], window: int, *, quick: bool) -> None:
    """Figures 7b and 7c: latency of a probe against the load."""
    for k in cores:
        given = made(EVEN, 3 * window, window)
        most = 1 / (run(given, k, window, quick=quick, sources=2).cycles / (2 * window))
        for load in (0.9,) if quick else (0.5, 0.9):
            found = run(given, k, window, quick=quick, sources=2, pace=load * most).latencies
            for name, value in (("mean", found.mean()), ("99 %", np.percentile(found, 99))):
                out.add("probe_latency", float(value), "cycles", {"cores": k, "window": window, "load": load,
                                                                   "of": name}, HOW)


def skewed(out: Recorder, mixes: tuple[Mix, ...], cores: int, window: int, *, quick: bool) -> None:
    """Figure 8: deviation between cores with sources of unequal rates."""
    for mix in mixes:
        found = run(made(mix, 3 * window, window), cores, window, quick=quick, sources=mix.r + mix.s)
        out.add("core_deviation", found.deviation, "%", {"cores": cores, "window": window, "sources": mix.r + mix.s,
                                                        "input": mix.name}, HOW)


def on_cpu(out: Recorder, mix: Mix, threads: int, window: int) -> None:
    """Figures 5 and 8 by threads of the CPU, in nested loops: comparisons a CPU second of all threads, and the
    deviation of what they have compared.
    """
    given = made(mix, 3 * window, window)
    whole = arrivals(given.query, given.r, given.s)
    with CpuDevice(engine="nested", threads=threads).open(given.query) as session:
        before, rest = whole.split(window)
        assert rest is not None
        session.push(before)
        counts, began = [session.region_counters()], time.process_time()
        session.push(rest)
        seconds = time.process_time() - began
        counts.append(session.region_counters())
    first, last = (counted["comparisons"].sum(axis=1) for counted in counts if counted is not None)
    done = last - first
    config = {"threads": threads, "window": window, "input": mix.name}
    how = f"CPU, nested loops; {ON}, values uniform in 1 to 10,000, order total, in one push"
    out.add("cpu_comparisons", float(done.sum() / seconds / 1e9), "Gcmp/CPU s", config, how)
    out.add("thread_deviation", float(100 * done.std() / done.mean()), "%", config, how)


def main() -> None:
    """All figures, or some."""
    parser = options_of((__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", choices=("threads", "gate", "readers", "circuits"), help="these alone (all)")
    options = parser.parse_args()
    quick, only = options.quick, options.only
    for mix in (EVEN, *SKEWED[:1 if quick else None]) if only in (None, "threads") else ():
        out = Recorder("scalejoin", quick=quick, part=f"threads, {mix.name}")
        for threads in (1, 2) if quick or mix is not EVEN else (1, 2, 4):
            on_cpu(out, mix, threads, 1024 if quick else 1 << 16)
        print(out.write())
    if only in (None, "gate"):
        out = Recorder("scalejoin", quick=quick, part="gate")
        gate_alone(out, (1, 2) if quick else (1, 2, 4, 8, 16), quick=quick)
        print(out.write())
    if only in (None, "readers"):
        out = Recorder("scalejoin", quick=quick, part="readers")
        gate_readers(out, (1, 2) if quick else (1, 2, 4, 8, 16), (1, 2) if quick else (1, 2, 4, 8), quick=quick)
        print(out.write())
    if only not in (None, "circuits"):
        return
    out = Recorder("scalejoin", quick=quick, part="circuits")
    cores, windows = ((1, 2), (16,)) if quick else ((1, 2, 4), WINDOWS)
    scaling(out, cores, windows, quick=quick)
    short_windows(out, (2,) if quick else (2, 4), cores[-1:] if quick else (1, 4), quick=quick)
    latency(out, cores[-1:] if quick else (1, 4), windows[-1], quick=quick)
    skewed(out, SKEWED[:1] if quick else SKEWED, cores[-1], windows[-1], quick=quick)
    print(out.write())


if __name__ == "__main__":
    main()
