"""Aggregates over interval joins by key: Key-OIJ, Scale-OIJ, ours, DuckDB and Pathway. Run: python -m bench.oij

The workloads and sweeps are those of Scale-OIJ's evaluation ("Scalable Online Interval Join on Modern Multicore
Processors in OpenMLDB", sections IV-B and V-D), with random data: base and probe tuples by turns, uniform keys, and
times that are out of order by up to the lateness. Each base tuple gets the count and the sum of its partners.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import duckdb
import numpy as np
import pyarrow as pa

import splitjoin
from bench.oij_pathway import pathway_seconds
from bench.record import Recorder, options_of
from splitjoin.rows.interval_joins.schedule import unbalancedness

#: Arrivals in a micro-batch.
BATCH = 1 << 14
ENGINES = ("ours", "scale-oij", "key-oij")
#: Figures that are measured together. Workload B takes minutes, as it fills a window with 15 million tuples. Pathway
#: takes ten more where its environment must be made first.
PARTS = ("workloads", "sweeps", "teams", "workload B", "pathway")
SCHEMAS = (pa.schema([("ts", pa.int64()), ("k", pa.int64())]),
           pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("v", pa.float64())]))
RATE = ("CPU seconds of one thread in micro-batches of 16,384 arrivals behind full windows, from tuples as they are "
        "delivered to result rows")


@dataclass(frozen=True)
class Workload:
    """``rate`` arrivals a second of both streams, ``keys``; ``window`` and ``lateness`` in microseconds. ``hot``: the
    share of tuples of one key, which is another one every 50 milliseconds.
    """

    name: str
    rate: float
    keys: int
    window: int
    lateness: int
    hot: float = 0.0

    @property
    def config(self) -> dict[str, Any]:
        """For figures."""
        return {"workload": self.name, "keys": self.keys, "window_us": self.window, "lateness_us": self.lateness}


DEFAULT = Workload("synthetic", 1e6, 100, 1000, 100)
#: The paper's four, of which C has no rate: here it has 20,000 a second. B has 15 million tuples in its window.
PAPER = (Workload("A", 120e3, 5, 1_000_000, 1_000_000), Workload("C", 20e3, 45, 8_000_000, 100_000_000),
         Workload("D", 15e3, 5, 1_000_000, 2_000_000), Workload("B", 200e3, 111, 150_000_000, 10_000_000))


class Stream:
    """Tuples of a workload in delivery order, made as they are needed."""

    def __init__(self, workload: Workload, seed: int = 1):
        self._w, self._random, self._made = workload, np.random.default_rng(seed), 0
        self._held = np.empty((2, 0), np.int64)  # delivery time and event time of what is not delivered yet

    def take(self, n: int) -> tuple[pa.Table, pa.Table]:
        """The next tuples of R and of S, ``n`` arrivals in all, as the network delivers them."""
        w = self._w
        ts = ((self._made + np.arange(n)) * (1e6 / w.rate)).astype(np.int64)
        self._made += n
        due = ts + self._random.integers(0, w.lateness + 1, n)
        self._held = np.concatenate([self._held, np.stack([due, ts])], axis=1)
        out = self._held[:, np.argsort(self._held[0], kind="stable")]
        ready = min(n, out.shape[1])
        self._held = out[:, ready:]
        ts = out[1, :ready]
        keys = self._random.integers(0, w.keys, ready)
        if w.hot:
            keys = np.where(self._random.random(ready) < w.hot, ts // 50_000 % w.keys, keys)
        values = self._random.integers(100, 100_000, ready) / 100
        return (pa.table([ts[::2], keys[::2]], schema=SCHEMAS[0]),
                pa.table([ts[1::2], keys[1::2], values[1::2]], schema=SCHEMAS[1]))


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
    """A session: ours sorts in its gate, the others take tuples as they are delivered."""
    if engine == "ours":
        return splitjoin.open(query(w), threads=threads, lateness=w.lateness + 1)
    assert engine in ("key-oij", "scale-oij")
    return splitjoin.open_unsorted(query(w), lateness=w.lateness + 1, engine=engine, threads=threads)


@dataclass
class Run:
    """Figures of a run: arrivals and seconds, seconds of each batch, and figures of the engine."""

    arrivals: int
    seconds: float
    batches: list[float]
    pairs: int
    effectiveness: float | None = None
    unbalancedness: float | None = None


def run(engine: str, w: Workload, arrivals: int, limit: float, threads: int = 1) -> Run:
    """Fill the window, then measure up to ``arrivals``, or for ``limit`` seconds."""
    stream, session = Stream(w), opened(engine, w, threads)
    filling = int((w.window + w.lateness) * w.rate / 1e6) + 8 * BATCH
    waiting = int(w.lateness * w.rate / 1e6) + 8 * BATCH  # arrivals whose base tuples the first measured ones decide
    while filling > 0:  # older base tuples would cost time, and leave nothing behind
        size = 1 << 17 if filling > 1 << 19 else BATCH
        r, s = stream.take(size)
        session.push_s(s)
        session.push_r(r if filling <= waiting else r.slice(len(r) - 1))
        session.poll()
        filling -= size
    counters = getattr(session, "counters", None)
    done = Run(0, 0.0, [], 0)
    clock = time.process_time if threads == 1 else time.perf_counter
    while done.arrivals < arrivals and done.seconds < limit:
        r, s = stream.take(BATCH)
        start = clock()
        session.push_s(s)
        session.push_r(r)
        rows = session.poll()
        took = clock() - start
        done.arrivals += BATCH
        done.seconds += took
        done.batches.append(took)
        done.pairs += int(np.sum(rows.column("n").to_numpy()))
    engine_of = getattr(session, "engine", None)
    if engine_of is not None:
        done.unbalancedness = unbalancedness(engine_of.work)
        done.effectiveness = getattr(engine_of, "effectiveness", None)
    assert counters is None or counters()["late_r"] == 0
    session.close()
    return done


def figures(out: Recorder, w: Workload, engine: str, arrivals: int, limit: float, sweep: str) -> float:
    """Record a run on one thread; arrivals a second."""
    found = run(engine, w, arrivals, limit)
    rate = found.arrivals / found.seconds / 1e6
    config = {"engine": engine, "sweep": sweep} | w.config | {"partners": round(2 * found.pairs / found.arrivals, 1)}
    out.add("oij_rate", rate, "M tuples/s", config, RATE)
    for percentile in (50, 99):
        out.add("oij_batch_ms", float(np.percentile(found.batches, percentile)) * 1e3, "ms",
                config | {"percentile": percentile},
                "CPU milliseconds from the delivery of a micro-batch of 16,384 arrivals to the rows that it decides")
    if found.effectiveness is not None:
        out.add("oij_effectiveness", found.effectiveness, "share", config,
                "mean share of the tuples that a scan visits that are in the window (Scale-OIJ, equation 1)")
    return rate


def behind_a_full_window(w: Workload, most: float) -> tuple[pa.Table, pa.Table, float]:
    """So many base tuples that there are about ``most`` pairs, the tuples of S up to a full window before them, and the
    partners of each.
    """
    partners = max(1.0, w.window * w.rate / 2e6 / w.keys)
    bases = int(min(200_000, max(50, most / partners)))
    before = int(w.window * w.rate / 2e6)
    stream = Stream(replace(w, lateness=0))
    tables = [stream.take(1 << 20) for _ in range(-(-2 * (before + bases) // (1 << 20)))]
    r = pa.concat_tables([t[0] for t in tables]).slice(before, bases)
    return r, pa.concat_tables([t[1] for t in tables]).slice(0, before + bases), partners


def duckdb_rate(out: Recorder, w: Workload, most: float) -> None:
    """DuckDB's GROUP BY over its join, for so many base tuples behind a full window that there are ``most`` pairs."""
    r, s, partners = behind_a_full_window(w, most)
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
    out.add("oij_rate", 2 * len(r) / took / 1e6, "M tuples/s",
            {"engine": "duckdb", "sweep": "engines"} | w.config | {"partners": round(partners, 1)},
            "CPU seconds of one thread for one GROUP BY over the LEFT JOIN of a table of base tuples with their "
            "windows; each base tuple counts as two")


def sweeps(quick: bool) -> list[tuple[str, Workload]]:
    """The synthetic workload with one parameter changed."""
    lengths = (20, 10_000) if quick else (20, 100, 1000, 10_000)
    return [*(("lateness", replace(DEFAULT, lateness=n)) for n in lengths),
            *(("window", replace(DEFAULT, window=n)) for n in ((10, 10_000) if quick else (10, 100, 1000, 10_000))),
            *(("keys", replace(DEFAULT, keys=n)) for n in ((10, 10_000) if quick else (10, 100, 1000, 10_000))),
            ("long windows", replace(DEFAULT, keys=5, window=100_000)),
            ("hot keys", replace(DEFAULT, hot=0.5, window=10_000))]


def engine_figures(out: Recorder, workloads: Sequence[Workload], arrivals: int, limit: float, quick: bool,
                   engines: Sequence[str] = ENGINES) -> None:
    """The ``engines`` on each of ``workloads``."""
    for w in workloads:
        rates = [figures(out, w, engine, arrivals, limit, "engines") for engine in engines]
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
    """The balance of several workers."""
    for w in (DEFAULT, replace(DEFAULT, keys=5), replace(DEFAULT, hot=0.5, window=10_000)):
        for engine in ("scale-oij", "key-oij"):
            for threads in (2, 4):
                found = run(engine, w, arrivals, limit, threads)
                out.add("oij_unbalancedness", found.unbalancedness or 0.0, "σ/mean",
                        {"engine": engine, "workers": threads, "hot": w.hot} | w.config,
                        "standard deviation of the workers' operations over their mean (Scale-OIJ, equation 2)")


def pathway_figures(out: Recorder) -> None:
    """Pathway on all workloads but B, whose window has 15 million tuples."""
    for w in (DEFAULT, *PAPER[:-1]):
        r, s, partners = behind_a_full_window(w, 2e5)
        seconds, rows, found = pathway_seconds((r, s), w.window)
        assert (rows, found) == (len(r), _pairs(r, s, w.window)), (w, rows, found)
        out.add("oij_rate", 2 * len(r) / seconds / 1e6, "M tuples/s",
                {"engine": "pathway", "sweep": "engines"} | w.config | {"partners": round(partners, 1)},
                "CPU seconds of all threads for interval_join_left and groupby of a table of base tuples with their "
                "windows, in one batch, the tables taken in meanwhile; each base tuple counts as two")


def _pairs(r: pa.Table, s: pa.Table, window: int) -> int:
    """The number of pairs, by DuckDB."""
    with duckdb.connect() as db:
        db.register("r", r)
        db.register("s", s)
        found = db.sql(f"SELECT count(*) FROM r JOIN s ON r.k = s.k AND s.ts <= r.ts AND s.ts >= r.ts - {window}")
        return int(found.fetchall()[0][0])


def ratio(out: Recorder, w: Workload, rates: Sequence[float]) -> None:
    """Scale-OIJ beside Key-OIJ, and ours beside both."""
    found = {"ours to Scale-OIJ": rates[0] / rates[1]}
    if len(rates) > 2:
        found["Scale-OIJ to Key-OIJ"] = rates[1] / rates[2]
    for name, value in found.items():
        out.add("oij_ratio", value, "times", {"of": name} | w.config | {"hot": w.hot}, "of the rates above")


def main() -> None:
    """All figures, or those of one part."""
    parser = options_of(__doc__ or "")
    parser.add_argument("--part", choices=PARTS, help="measure one part anew (all)")
    options = parser.parse_args()
    arrivals, limit = (100_000, 0.5) if options.quick else (600_000, 1.0)
    for engine in ENGINES:
        run(engine, DEFAULT, 50_000, 9)  # compiles
    for part in [options.part] if options.part else PARTS[:-2] if options.quick else PARTS:
        out = Recorder("oij", quick=options.quick, part=part)
        if part == "workloads":
            engine_figures(out, [DEFAULT, *PAPER[:1 if options.quick else -1]], arrivals, limit, options.quick)
        elif part == "sweeps":
            sweep_figures(out, arrivals, limit, options.quick)
        elif part == "teams":
            team_figures(out, arrivals, limit)
        elif part == "pathway":
            pathway_figures(out)
        else:
            # Key-OIJ would visit 135,000 partners of each of a million base tuples before the first one is measured.
            engine_figures(out, PAPER[-1:], arrivals, limit, options.quick, ENGINES[:2])
        print(out.write())


if __name__ == "__main__":
    main()
