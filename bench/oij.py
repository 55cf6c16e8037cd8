"""Aggregates over interval joins by key: Key-OIJ, Scale-OIJ, ours, DuckDB and Pathway. Run: python -m bench.oij

The workloads and sweeps are those of Scale-OIJ's evaluation ("Scalable Online Interval Join on Modern Multicore
Processors in OpenMLDB", sections IV-B and V-D), with random data: uniform keys, and times that are out of order by up
to the lateness. Each base tuple gets the count and the sum of its partners. SplitJoin, adapted, compares each base
tuple with the window of all keys, and the host folds its pairs.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import splitjoin
from bench.oij_pathway import pathway_seconds
from bench.record import Recorder, options_of
from splitjoin.rows.interval_joins.baseline.scale_oij import ScaleOijEngine
from splitjoin.rows.interval_joins.baseline.schedule import unbalancedness

#: Arrivals in a micro-batch: of engines whose work for a tuple stays the same, of those that visit all partners where
#: these are many, and of SplitJoin, which makes pairs.
BATCH, SLOW_BATCH, SPLITJOIN_BATCH = 1 << 14, 1 << 11, 1 << 8
ENGINES = ("ours", "scale-oij", "key-oij")
#: Scale-OIJ that folds each window anew, and SplitJoin, which run on the paper's workloads only.
FURTHER = ("scale-oij, not incremental", "splitjoin")
#: Figures that are measured together. Workload B delivers 33 million tuples before the first that counts. Pathway takes
#: ten minutes more where its environment must be made first.
PARTS = ("workloads", "sweeps", "teams", "latency", "workload B", "latency of B", "pathway")
WORKERS = (1, 2, 4, 8, 16)
SCHEMAS = (pa.schema([("ts", pa.int64()), ("k", pa.int64())]),
           pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("v", pa.float64())]))
RATE = ("CPU seconds of one thread behind full windows, from tuples as they are delivered to result rows; a base tuple "
        "that is decided counts its share of the other stream")


@dataclass(frozen=True)
class Workload:
    """``bases`` and ``probes``: tuples of R and of S a second; ``keys``; ``window`` and ``lateness`` in microseconds.
    ``hot``: the share of tuples of one key, which is another one every 50 milliseconds.
    """

    name: str
    bases: float
    probes: float
    keys: int
    window: int
    lateness: int
    hot: float = 0.0

    @classmethod
    def of(cls, name: str, bases: float, keys: int, window: int, lateness: int, partners: float) -> Workload:
        """A workload by the mean number of ``partners`` of a base tuple."""
        return cls(name, bases, partners * keys / (window / 1e6), keys, window, lateness)

    @property
    def rate(self) -> float:
        """Arrivals of both streams a second."""
        return self.bases + self.probes

    @property
    def partners(self) -> float:
        """Mean partners of a base tuple, with uniform keys."""
        return self.probes * self.window / 1e6 / self.keys

    @property
    def config(self) -> dict[str, Any]:
        """For figures."""
        return {"workload": self.name, "keys": self.keys, "window_us": self.window, "lateness_us": self.lateness}


DEFAULT = Workload("synthetic", 5e5, 5e5, 100, 1000, 100)
#: The paper's four. Its rate is that of one stream: here of base tuples, and the other one's gives the paper's number
#: of partners, which makes a workload heavy. C has no rate: here 20,000 a second. D has no number of partners: here the
#: same rate for both streams.
PAPER = (Workload.of("A", 120e3, 5, 1_000_000, 1_000_000, 4000),
         Workload.of("C", 20e3, 45, 8_000_000, 100_000_000, 300),
         Workload("D", 15e3, 15e3, 5, 1_000_000, 2_000_000),
         Workload.of("B", 200e3, 111, 150_000_000, 10_000_000, 6000))


class Stream:
    """Tuples of a workload in delivery order, made as they are needed."""

    def __init__(self, workload: Workload, seed: int = 1):
        self._w, self._random, self._made = workload, np.random.default_rng(seed), 0
        # Delivery time, event time and stream of what is not delivered yet.
        self._held = np.empty((3, 0), np.int64)

    def take(self, n: int, bases_from: float = 0.0) -> tuple[pa.Table, pa.Table]:
        """The next tuples of R and of S, ``n`` arrivals in all, as the network delivers them. Of the tuples of R before
        ``bases_from`` only the last comes.
        """
        w = self._w
        number = np.arange(self._made, self._made + n + 1)
        of_s = np.diff(np.floor(number * (w.probes / w.rate))) > 0
        ts = (number[:-1] * (1e6 / w.rate)).astype(np.int64)
        self._made += n
        wanted = of_s | (ts >= bases_from)
        wanted[np.flatnonzero(~of_s)[-1:]] = True
        ts, of_s = ts[wanted], of_s[wanted]
        due = ts + self._random.integers(0, w.lateness + 1, len(ts))
        held = np.concatenate([self._held, np.stack([due, ts, of_s])], axis=1)
        held = held[:, np.argsort(held[0], kind="stable")]
        ready = int(np.searchsorted(held[0], self._made * (1e6 / w.rate)))
        self._held = held[:, ready:]
        ts, s = held[1, :ready], held[2, :ready] == 1
        keys = self._random.integers(0, w.keys, ready)
        if w.hot:
            keys = np.where(self._random.random(ready) < w.hot, ts // 50_000 % w.keys, keys)
        values = self._random.integers(100, 100_000, int(s.sum())) / 100
        return (pa.table([ts[~s], keys[~s]], schema=SCHEMAS[0]), pa.table([ts[s], keys[s], values], schema=SCHEMAS[1]))


class Session(Protocol):
    """The sessions of `splitjoin.open` and `splitjoin.open_unsorted`."""

    def push_r(self, data: Any) -> None:
        """Deliver base tuples."""

    def push_s(self, data: Any) -> None:
        """Deliver partners."""

    def poll(self) -> pa.RecordBatch:
        """The rows of decided base tuples."""

    def close(self) -> None:
        """Stop."""


def query(w: Workload) -> splitjoin.Query:
    """A row for each base tuple with what came up to ``window`` before it."""
    return splitjoin.query(*SCHEMAS, on="r.k = s.k", window=("RANGE 0", f"RANGE {w.window}"), time="ts", how="left",
                           aggregate={"n": "count(*)", "total": "sum(s.v)"})


def opened(engine: str, w: Workload, threads: int) -> Session:
    """A session: ours and SplitJoin's sort in their gates, the others take tuples as they are delivered."""
    if engine in ("ours", "splitjoin"):
        return splitjoin.open(query(w), threads=threads, lateness=w.lateness + 1,
                              engine="auto" if engine == "ours" else "nested")
    made = splitjoin.open_unsorted(query(w), lateness=w.lateness + 1, threads=threads,
                                   engine="key-oij" if engine == "key-oij" else "scale-oij")
    if engine == FURTHER[0]:
        assert isinstance(made.engine, ScaleOijEngine)
        made.engine.incremental = False
    return made


def batch_of(engine: str, w: Workload) -> int:
    """Arrivals in a micro-batch."""
    if engine == "splitjoin":
        return SPLITJOIN_BATCH
    return BATCH if engine in ("ours", "scale-oij") or w.partners < 100 else SLOW_BATCH


@dataclass
class Run:
    """Figures of a run: arrivals, CPU seconds of all threads, base tuples, pairs, and figures of the engine."""

    arrivals: int = 0
    seconds: float = 0.0
    bases: int = 0
    pairs: int = 0
    effectiveness: float | None = None
    work: npt.NDArray[np.int64] | None = None


class Delivery:
    """A session behind a full window, and the stream that goes on."""

    def __init__(self, engine: str, w: Workload, threads: int = 1):
        self.stream, self.session, self.done = Stream(w), opened(engine, w, threads), Run()
        self.batch = batch_of(engine, w)
        # Base tuples that would be decided meanwhile would cost time, and leave nothing behind.
        filling, begin = int((w.window + 2 * w.lateness) * w.rate / 1e6), w.window + w.lateness
        for at in range(0, filling, 1 << 17):
            r, s = self.stream.take(min(1 << 17, filling - at), begin)
            self.session.push_s(s)
            self.session.push_r(r)
            self.session.poll()
        for _ in range(2):
            self.deliver(self.batch)
        self.done, self._work = Run(), self._engine_work()

    def _engine_work(self) -> npt.NDArray[np.int64] | None:
        engine = getattr(self.session, "engine", None)
        return None if engine is None else engine.work.copy()

    def deliver(self, n: int) -> float:
        """Deliver ``n`` arrivals; CPU seconds until the rows that they decide are there."""
        r, s = self.stream.take(n)
        start = time.process_time()
        self.session.push_s(s)
        self.session.push_r(r)
        rows = self.session.poll()
        took = time.process_time() - start
        self.done.arrivals += n
        self.done.seconds += took
        self.done.bases += len(rows)
        self.done.pairs += int(np.sum(rows.column("n").to_numpy()))
        return took

    def decide(self, bases: int, limit: float) -> None:
        """Deliver until so many base tuples are decided, or for ``limit`` seconds: times of S come in jumps where S is
        slow, so a short run may decide none.
        """
        while self.done.bases < bases and self.done.seconds < limit:
            self.deliver(self.batch)

    def end(self) -> Run:
        """Close the session; the figures."""
        engine, work = getattr(self.session, "engine", None), self._engine_work()
        if engine is not None:
            assert work is not None
            assert self._work is not None
            self.done.work = work - self._work
            self.done.effectiveness = getattr(engine, "effectiveness", None)
        counters = getattr(self.session, "counters", None)
        assert counters is None or counters()["late_r"] == 0
        self.session.close()
        return self.done


def run(engine: str, w: Workload, arrivals: int, limit: float, threads: int = 1) -> Run:
    """Fill the window, then measure up to ``arrivals``, or for ``limit`` seconds."""
    delivery = Delivery(engine, w, threads)
    while delivery.done.arrivals < arrivals and delivery.done.seconds < limit:
        delivery.deliver(delivery.batch)
    delivery.decide(100, 10)
    return delivery.end()


def figures(out: Recorder, w: Workload, engine: str, arrivals: int, limit: float, sweep: str) -> float:
    """Record a run on one thread; arrivals a second."""
    found = run(engine, w, arrivals, limit)
    rate = found.bases * w.rate / w.bases / found.seconds / 1e6
    config = {"engine": engine, "sweep": sweep} | w.config | {"partners": round(found.pairs / found.bases, 1)}
    out.add("oij_rate", rate, "M tuples/s", config | {"batch": batch_of(engine, w)}, RATE)
    if found.effectiveness is not None:
        out.add("oij_effectiveness", found.effectiveness, "share", config,
                "mean share of the tuples that a scan visits that are in the window (Scale-OIJ, equation 1)")
    return rate


def latency(out: Recorder, w: Workload, engine: str, seconds: float, limit: float) -> None:
    """The distribution of latencies where tuples arrive at the workload's rate, for ``seconds`` of its time.

    The time is the workload's own, in which the engine takes its CPU seconds: as soon as it is free it takes what has
    arrived meanwhile. An engine that falls behind gets no latency, as that would grow for ever.
    """
    delivery, free, delivered, found = Delivery(engine, w), 0.0, 0, []
    while free < seconds and delivery.done.seconds < limit:
        n = max(1, int(free * w.rate) - delivered)
        if n > 2 * delivery.batch:
            break  # it has fallen behind by more than what it takes at a time
        start = max(free, (delivered + n) / w.rate)
        free = start + delivery.deliver(n)
        found.append(free - (delivered + 1 + np.arange(n)) / w.rate)
        delivered += n
    # Also after a single delivery, which may decide the base tuples of a long time.
    behind = int(free * w.rate) - delivered > 2 * delivery.batch
    delivery.decide(100, 10)
    done = delivery.end()
    config = {"engine": engine} | w.config
    out.add("oij_kept_up", min(1.0, done.bases / w.bases / done.seconds) if behind else 1.0, "share", config,
            "base tuples that one thread decides, in micro-batches of what has arrived meanwhile, of those that come")
    if free >= seconds and not behind:
        all_of_them = np.concatenate(found)
        for percentile in (50, 90, 99, 99.9):
            out.add("oij_latency_ms", float(np.percentile(all_of_them, percentile)) * 1e3, "ms",
                    config | {"percentile": percentile},
                    "from the delivery of a tuple to the rows that it decides, tuples arriving at the workload's rate; "
                    "the engine's time is its CPU time")


def behind_a_full_window(w: Workload, most: float) -> tuple[pa.Table, pa.Table]:
    """So many base tuples that there are about ``most`` pairs, and the tuples of S up to a full window before them."""
    bases = int(min(200_000, max(50, most / max(1.0, w.partners))))
    stream = Stream(replace(w, lateness=0))
    r: list[pa.Table] = []
    s: list[pa.Table] = []
    while sum(len(some) for some in r) < bases:
        some, more = stream.take(1 << 20, w.window)
        r.append(some.filter(pc.greater_equal(some["ts"], w.window)))
        s.append(more)
    whole = pa.concat_tables(r).slice(0, bases)
    others = pa.concat_tables(s)
    return whole, others.filter(pc.less_equal(others["ts"], whole["ts"][-1]))


def duckdb_rate(out: Recorder, w: Workload, most: float) -> None:
    """DuckDB's GROUP BY over its join, for so many base tuples behind a full window that there are ``most`` pairs."""
    r, s = behind_a_full_window(w, most)
    with duckdb.connect() as db:
        db.execute("SET threads = 1")
        db.register("r_in", r)
        db.register("s_in", s)
        db.execute("CREATE TABLE r AS SELECT *, row_number() OVER () AS id FROM r_in")
        db.execute("CREATE TABLE s AS FROM s_in")
        start = time.process_time()
        rows = db.sql(f"SELECT any_value(r.ts), any_value(r.k), count(s.v), sum(s.v) FROM r LEFT JOIN s ON r.k = s.k "
                      f"AND s.ts <= r.ts AND s.ts >= r.ts - {w.window} GROUP BY r.id").to_arrow_table()
        took = time.process_time() - start
    assert len(rows) == len(r)
    out.add("oij_rate", len(r) * w.rate / w.bases / took / 1e6, "M tuples/s",
            {"engine": "duckdb", "sweep": "engines"} | w.config | {"partners": round(w.partners, 1)},
            "CPU seconds of one thread for one GROUP BY over the LEFT JOIN of a table of base tuples with their "
            "windows; with each base tuple counts its share of the other stream")


def sweeps(quick: bool) -> list[tuple[str, Workload]]:
    """The synthetic workload with one parameter changed."""
    lengths = (20, 10_000) if quick else (20, 100, 1000, 10_000)
    return [*(("lateness", replace(DEFAULT, lateness=n)) for n in lengths),
            *(("window", replace(DEFAULT, window=n)) for n in ((10, 10_000) if quick else (10, 100, 1000, 10_000))),
            *(("keys", replace(DEFAULT, keys=n)) for n in ((10, 10_000) if quick else (10, 100, 1000, 10_000))),
            ("long windows", replace(DEFAULT, keys=5, window=100_000)),
            ("hot keys", replace(DEFAULT, hot=0.5, window=10_000))]


def engine_figures(out: Recorder, workloads: Sequence[Workload], arrivals: int, limit: float, quick: bool) -> None:
    """All engines on each of ``workloads``."""
    for w in workloads:
        rates = [figures(out, w, engine, arrivals, limit, "engines") for engine in (*ENGINES, *FURTHER)]
        ratio(out, w, rates)
        duckdb_rate(out, w, 1e6 if quick else 2e7)


def sweep_figures(out: Recorder, arrivals: int, limit: float, quick: bool) -> None:
    """All engines on the synthetic workload with one parameter changed."""
    ours: dict[str, list[float]] = {}
    for sweep, w in sweeps(quick):
        rates = [figures(out, w, engine, arrivals, limit, sweep) for engine in ENGINES]
        ratio(out, w, rates)
        ours.setdefault(sweep, []).append(rates[0])
    for name in ("lateness", "window"):
        out.add("oij_flatness", max(ours[name]) / min(ours[name]), "times", {"engine": "ours", "over": name},
                "the highest rate over the lowest one of the sweep")


def team_figures(out: Recorder, arrivals: int, limit: float) -> None:
    """Several workers: how even their work is, how much faster they could be, and what they cost."""
    for w in (DEFAULT, replace(DEFAULT, keys=5), replace(DEFAULT, hot=0.5, window=10_000), PAPER[0]):
        for engine in ("scale-oij", "key-oij"):
            alone = 0.0
            for workers in WORKERS:
                found = run(engine, w, arrivals, limit, workers)
                assert found.work is not None
                config = {"engine": engine, "workers": workers, "hot": w.hot} | w.config
                busiest = float(found.work.max()) / found.arrivals
                alone = alone or busiest
                out.add("oij_unbalancedness", unbalancedness(found.work), "σ/mean", config,
                        "standard deviation of the workers' operations over their mean (Scale-OIJ, equation 2)")
                out.add("oij_speedup", alone / busiest, "times", config | {"ideal": workers},
                        "operations of one worker alone over those of the busiest one: the speed-up where each has a "
                        "core")
                out.add("oij_rate", found.arrivals / found.seconds / 1e6, "M tuples/s", config | {"sweep": "workers"},
                        "CPU seconds of all threads")


def latency_figures(out: Recorder, workloads: Sequence[Workload], seconds: float) -> None:
    """Latencies at the arrival rates of ``workloads``, over so many seconds of their time."""
    for w in workloads:
        for engine in (*ENGINES, *FURTHER):
            latency(out, w, engine, seconds, seconds)


def pathway_figures(out: Recorder) -> None:
    """Pathway on all workloads."""
    for w in (DEFAULT, *PAPER):
        r, s = behind_a_full_window(w, 2e5)
        seconds, rows, found = pathway_seconds((r, s), w.window)
        assert (rows, found) == (len(r), _pairs(r, s, w.window)), (w, rows, found)
        out.add("oij_rate", len(r) * w.rate / w.bases / seconds / 1e6, "M tuples/s",
                {"engine": "pathway", "sweep": "engines"} | w.config | {"partners": round(w.partners, 1)},
                "CPU seconds of all threads for interval_join_left and groupby of a table of base tuples with their "
                "windows, in one batch, the tables taken in meanwhile; with each base tuple counts its share of the "
                "other stream")


def _pairs(r: pa.Table, s: pa.Table, window: int) -> int:
    """The number of pairs, by DuckDB."""
    with duckdb.connect() as db:
        db.register("r", r)
        db.register("s", s)
        found = db.sql(f"SELECT count(*) FROM r JOIN s ON r.k = s.k AND s.ts <= r.ts AND s.ts >= r.ts - {window}")
        return int(found.fetchall()[0][0])


def ratio(out: Recorder, w: Workload, rates: Sequence[float]) -> None:
    """Scale-OIJ beside Key-OIJ, and ours beside both."""
    found = {"ours to Scale-OIJ": rates[0] / rates[1], "Scale-OIJ to Key-OIJ": rates[1] / rates[2]}
    for name, rate in zip(FURTHER, rates[3:], strict=False):
        found[f"Scale-OIJ to {name}"] = rates[1] / rate
    for name, value in found.items():
        out.add("oij_ratio", value, "times", {"of": name} | w.config | {"hot": w.hot}, "of the rates above")


def main() -> None:
    """All figures, or those of one part."""
    parser = options_of(__doc__ or "")
    parser.add_argument("--part", choices=PARTS, help="measure one part anew (all)")
    options = parser.parse_args()
    arrivals, limit = (100_000, 0.3) if options.quick else (400_000, 0.5)
    for engine in (*ENGINES, *FURTHER):
        run(engine, DEFAULT, 50_000, 9)  # compiles
    gc.collect()
    gc.freeze()  # a search for garbage among all that is imported takes 65 ms, as a service saves itself too
    for part in [options.part] if options.part else PARTS[:-3] if options.quick else PARTS:
        out = Recorder("oij", quick=options.quick, part=part)
        if part == "workloads":
            engine_figures(out, [DEFAULT, *PAPER[:1 if options.quick else -1]], arrivals, limit, options.quick)
        elif part == "sweeps":
            sweep_figures(out, arrivals, limit, options.quick)
        elif part == "teams":
            team_figures(out, arrivals, limit)
        elif part == "latency":
            # Key-OIJ keeps up where windows are short.
            latency_figures(out, (DEFAULT, PAPER[0], PAPER[2]), 1.0 if options.quick else 5.0)
        elif part == "pathway":
            pathway_figures(out)
        elif part == "latency of B":
            latency_figures(out, PAPER[-1:], 5.0)
        else:
            engine_figures(out, PAPER[-1:], arrivals, limit, options.quick)
        print(out.write())
    gc.unfreeze()


if __name__ == "__main__":
    main()
