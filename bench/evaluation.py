"""SplitJoin's evaluation (section 7, Figures 12 to 19) in simulated cycles, for all architectures on one footing.

Run: python -m bench.evaluation, or for one figure python -m bench.evaluation --figure 13; --cores 28 32 --window 1024
for the paper's numbers of cores, beside the figures that are there; models of so many take minutes to compile. All
architectures have the same condition, windows, lanes and probes, so a comparison costs each the same. Windows are
smaller than the paper's, and given by their number of tuples, as one tuple of each stream comes at each time. Results
are in order none where nothing else is said, which all architectures have.

Rates are the highest that are sustained: input comes at a pace, and the queue before the circuit does not grow.
Latencies are of pairs, from accepting the later tuple until the pair leaves, at half the sustained rate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.record import Recorder, options_of
from splitjoin.circuit.cost import circuit_cost
from splitjoin.circuit.driver import CircuitDevice, CircuitSession
from splitjoin.circuit.registers import STAGES
from splitjoin.engines.arrival import arrivals
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin_sim.device import SimDevice
from splitjoin_sim.pysim import PysimDevice

#: Architecture → parameters beside the number of cores.
SYSTEMS: dict[str, dict[str, Any]] = {
    "splitjoin": {}, "chain": {}, "kang": {}, "celljoin": {}, "handshake": {}, "low-latency-handshake": {},
    "cascade": {"block": 4, "threshold": 4}}
#: Values of both keys: 1 to this number.
VALUES = 10_000_000
#: Figures of all architectures; the others are SplitJoin's.
COMPARED = ("12", "13", "16", "cells")
FIGURES = ("12", "13", "15", "16", "17", "18", "19", "cells")
#: A queue grows if waiting times rise, over the time of a window, by more than this share of it.
GROWTH = 0.005
HOW = (f"simulated; |x - a| <= w, values uniform in 1 to {VALUES:,}, R and S by turns, order none, one lane, one probe "
       f"if nothing else is said")


@dataclass(frozen=True)
class Case:
    """One run: the architecture, the number of cores, tuples of a window, its kind, the share of pairs that match, and
    the order of results.

    ``share``: more than 0, at most 1. ``root_width``: results that leave in a cycle.
    """

    system: str
    cores: int
    window: int
    kind: str = "RANGE"
    share: float = 1 / 100
    order: str = "none"
    lanes: int = 1
    probes: int = 1
    stage_counters: bool = False
    root_width: int = 1

    @property
    def config(self) -> dict[str, Any]:
        """For figures."""
        return {"architecture": self.system, "cores": self.cores, "window": self.window, "kind": self.kind,
                "share": self.share, "order": self.order, "probes": self.probes, **SYSTEMS[self.system]}


@dataclass(frozen=True)
class Run:
    """The measurements of one run: the cycles in which the tuples behind full windows were accepted, the latencies of
    the pairs that the first of them complete, and the stages' cycles of a probe.
    """

    accepted: npt.NDArray[np.int64]
    latencies: npt.NDArray[np.int64]
    stages: dict[str, float]

    @property
    def cycles(self) -> float:
        """Cycles a tuple."""
        return float(np.diff(self.accepted).mean())

    def grows(self, pace: float) -> bool:
        """True if tuples wait longer and longer before the circuit."""
        waits = self.accepted - np.arange(len(self.accepted)) / pace
        parts = np.array_split(waits, 4)
        return float(parts[-1].mean() - parts[0].mean()) > GROWTH * len(waits) / pace


@dataclass(frozen=True)
class Sizes:
    """The sizes of a run: numbers of cores, the window of all architectures in tuples and those of SplitJoin alone,
    shares of matching pairs with their numbers of cores and widths of the root, and sub-windows of Figure 19 with its
    probes.
    """

    cores: tuple[int, ...]
    window: int
    windows: tuple[int, ...]
    shares: tuple[float, ...]
    share_cores: tuple[int, ...]
    root_widths: tuple[int, ...]
    sub_windows: tuple[int, ...]
    probes: tuple[int, ...]


class Bench:
    """Makes the devices, those of a quick run without a compiler."""

    def __init__(self, out: Recorder, sizes: Sizes, sustained: dict[Case, float], *, quick: bool):
        """``sustained``: the rates that were found, which are kept for later figures."""
        self.out, self.sizes, self.quick, self._sustained = out, sizes, quick, sustained

    def device(self, case: Case, pace: float | None = None) -> CircuitDevice:
        """The circuit of ``case``, with twice the room of a share of the largest window: one model for all windows, and
        a full segment would hold up the tuples that follow.
        """
        cores = {} if case.system == "kang" else {"cores": case.cores}
        share = -(-max(case.window, self.sizes.window, *self.sizes.windows) // case.cores)
        options = SYSTEMS[case.system] | cores | {
            "capacity": 2 << (share - 1).bit_length(), "core": "scan", "lanes": case.lanes, "probes": case.probes,
            "stage_counters": case.stage_counters, "root_width": case.root_width, "pace": pace}
        make: Any = PysimDevice if self.quick else SimDevice
        found: CircuitDevice = make(architecture=case.system, **options)
        return found

    def run(self, case: Case, pace: float | None = None) -> Run:
        """Fill the windows, and measure one and a half of them; pairs of their first part, as a tuple of handshake join
        meets the last one when a window of others has come.
        """
        more = 3 * case.window // 2
        query, r, s = query_of(case, case.window + more)
        with self.device(case, pace).open(query) as session:
            assert isinstance(session, CircuitSession)
            parts = [arrivals(query, r.slice(at, n), s.slice(at, n))
                     for at, n in ((0, case.window), (case.window, more))]
            session.push(parts[0])
            before = {}
            if case.stage_counters:
                session.settle()
                before = session.stage_cycles() or {}
            session.push(parts[1])
            if case.stage_counters:
                session.settle()
                stages = {name: cycles - before[name] for name, cycles in (session.stage_cycles() or {}).items()}
            else:
                stages = {}
                session.flush()
            accepted, found = session.accepted(), session.pair_latencies()
        assert accepted is not None
        assert found is not None
        pairs, latencies = found
        later = pairs.max(axis=1)
        return Run(accepted[2 * case.window:], latencies[(later >= case.window) & (later < 1.5 * case.window)],
                   {name: cycles / (2 * more * (1 if name == "combiner" else case.cores))
                    for name, cycles in stages.items()})

    def sustained(self, case: Case) -> float:
        """The highest pace, in tuples of both streams a cycle, at which no queue grows, within about 2 %: by bisection
        around the pace at full speed.
        """
        case = replace(case, stage_counters=False)
        if case not in self._sustained:
            full = 1 / self.run(case).cycles
            low, high, holds = 0.88 * full, min(1.0, 1.04 * full), False
            for _ in range(1 if self.quick else 3):
                pace = (low + high) / 2
                grows = self.run(case, pace).grows(pace)
                low, high, holds = (low, pace, holds) if grows else (pace, high, True)
            while not holds and self.run(case, low).grows(low):
                low *= 0.9
            self._sustained[case] = low
        return self._sustained[case]

    def add(self, metric: str, value: float, unit: str, case: Case, how: str = HOW, **further: Any) -> None:
        """One figure of ``case``."""
        self.out.add(metric, value, unit, case.config | further, how)

    def rate(self, case: Case) -> None:
        """The sustained rate of ``case``."""
        self.add("sustained_rate", 1000 * self.sustained(case), "tuples/1,000 cycles", case)

    def visiting(self, case: Case) -> None:
        """Latencies of pairs at half the sustained rate."""
        found = self.run(case, self.sustained(case) / 2).latencies
        for metric, value in (("pair_latency", found.mean()), ("pair_latency_99", np.percentile(found, 99))):
            self.add(metric, float(value), "cycles", case)

    def stages(self, case: Case, load: float) -> None:
        """Cycles of a probe in each stage at ``load``, a share of the sustained rate."""
        counted = replace(case, stage_counters=True)
        found = self.run(counted, load * self.sustained(case))
        how = "stage counters of the simulated circuit, by Little's law"
        for stage in STAGES:
            self.add("loaded_stage_cycles", found.stages[stage], "cycles", case, how, stage=stage, load=load)
        self.add("loaded_pair_latency", float(found.latencies.mean()), "cycles", case, how, load=load)


def reach(share: float) -> int:
    """The distance within which ``share`` of all pairs of two uniform values are."""
    return round(VALUES * (1 - math.sqrt(1 - share)))


def query_of(case: Case, tuples: int) -> tuple[Query, pa.Table, pa.Table]:
    """The query and both streams: a tuple of each at each time."""
    rng = np.random.default_rng(1)
    ts = pa.array(np.arange(tuples), pa.int64())
    r, s = (pa.table({"ts": ts, name: pa.array(rng.integers(1, VALUES + 1, tuples), pa.int32())}) for name in "xa")
    width = reach(case.share)
    window, time = (f"ROWS {case.window}", None) if case.kind == "ROWS" else (f"RANGE {case.window - 1}", "ts")
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=f"abs(r.x - s.a) <= {width}",
                       window=window, time=time, order=case.order)
    return query, r, s


FULL = Sizes((4, 8, 16), 512, (1024,), (1e-3, 1e-2, 0.1, 0.5, 1.0), (4, 16, 28), (1, 4), (64, 256), (1, 4))
QUICK = Sizes((2,), 16, (8,), (1e-2, 1.0), (2,), (1,), (8,), (1,))


def cases(name: str, sizes: Sizes, kind: str) -> list[Case]:
    """Architecture ``name`` with each number of cores that it can have; Kang's has one."""
    cores = (1,) if name == "kang" else sizes.cores
    return [Case(name, k, sizes.window, kind) for k in cores
            if name != "low-latency-handshake" or k.bit_count() == 1]


def figure(bench: Bench, number: str, name: str, sizes: Sizes) -> None:
    """The figures of Figure ``number`` for the architecture ``name``, which is SplitJoin's in most."""
    kind = "ROWS" if number in ("16", "18", "19") else "RANGE"
    most = sizes.cores[-1]
    match number:
        case "12" | "16":  # throughput against the cores, with windows by time and by rows
            for case in cases(name, sizes, kind):
                bench.rate(case)
                for window in sizes.windows if name == "splitjoin" else ():
                    bench.rate(replace(case, window=window))
        case "13":  # visiting latency against the cores
            for case in cases(name, sizes, kind):
                bench.visiting(case)
        case "15" | "18":  # stages against the cores
            for k in (sizes.cores[0], most):
                for load in (0.5, 0.95):
                    bench.stages(Case("splitjoin", k, sizes.window, kind, order="outer(1)"), load)
        case "17":  # selectivity: comparisons are the limit, and then results; a metric beside that of Figure 12
            for k in sizes.share_cores:
                for width in sizes.root_widths:
                    for share in sizes.shares:
                        case = Case("splitjoin", k, sizes.window, kind, share, root_width=width)
                        bench.add("rate_by_selectivity", 1000 * bench.sustained(case), "tuples/1,000 cycles", case,
                                  root_width=width)
        case "19":  # precision of inner order: stars from every 2 comparisons of a core to one for all
            for window in sizes.sub_windows:
                for probes in sizes.probes:
                    every = 2
                    while every <= window:
                        bench.rate(Case("splitjoin", sizes.cores[0], sizes.cores[0] * window, kind, 1e-4,
                                        f"inner({every})", probes=probes))
                        every *= 4
        case _:  # what each takes
            for case in cases(name, sizes, "ROWS"):
                cost = circuit_cost(bench.device(case).configuration(query_of(case, 3)[0])).total
                for metric, cells, unit in (("lut4", cost.lut, "LUT4"), ("ff", cost.ff, "FF"),
                                            ("memory", cost.ram_bits, "bits")):
                    bench.add(metric, cells, unit, case, "predicted for ECP5")


def main() -> None:
    """All figures, or one."""
    parser = options_of((__doc__ or "").partition("\n")[0])
    parser.add_argument("--figure", choices=FIGURES, nargs="+", default=FIGURES, help="measure these anew (all)")
    parser.add_argument("--architecture", choices=SYSTEMS, nargs="+", default=list(SYSTEMS), help="these alone (all)")
    parser.add_argument("--cores", type=int, nargs="+", metavar="K", help="numbers of cores (4 8 16)")
    parser.add_argument("--window", type=int, metavar="N", help="tuples of each stream in the window (512 and 1,024)")
    options = parser.parse_args()
    sizes = QUICK if options.quick else FULL
    if options.cores:
        sizes = replace(sizes, cores=tuple(options.cores), share_cores=tuple(options.cores))
    if options.window:
        sizes = replace(sizes, window=options.window, windows=())
    sustained: dict[Case, float] = {}
    for number in options.figure:
        for name in options.architecture:
            if name == "splitjoin" or number in COMPARED:
                out = Recorder("evaluation", quick=options.quick, part=f"figure {number}, {name}")
                figure(Bench(out, sizes, sustained, quick=options.quick), number, name, sizes)
                if options.cores or options.window:
                    out.keep_others()
                print(out.write())


if __name__ == "__main__":
    main()
