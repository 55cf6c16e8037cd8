"""Many queries over shared streams, each on its own, choosing from a common join, and in a session of its own: CPU time
and bytes by the number of queries; and on simulated circuits words, cycles and cells.

Run: python -m bench.shared [--quick]; python -m bench.shared --circuits maps cores with Yosys and simulates (minutes).
Each replaces its own rows.
"""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

import splitjoin
from bench.place_and_route import ecp5
from bench.place_and_route.design import core_design
from bench.record import Recorder, options_of
from splitjoin.circuit.wire import Configuration

QUERIES = (1, 4, 16)
WINDOW, STEP = 2_000, 1_000
#: Queries of a circuit, tuples of each stream, and the window there.
ON_CIRCUIT, FEW, SHORT = (1, 4), 1_000, 200


def tables(n: int) -> tuple[pa.Table, pa.Table]:
    """Both streams: a tuple a tick, with a text that results have."""
    rng = np.random.default_rng(1)

    def stream(column: str) -> pa.Table:
        return pa.table({"ts": np.arange(n), column: rng.integers(0, 10**6, n).astype(np.int32),
                         "k": rng.integers(0, 1000, n), "text": [f"{column}{k % 97}" for k in range(n)]})

    return stream("x"), stream("y")


def condition(number: int) -> str:
    """A condition of its own for each query."""
    return f"abs(r.x - s.y) <= {20 + number}"


def shared(q: int, r: pa.Table, s: pa.Table, *, common: bool) -> tuple[float, float, int]:
    """CPU seconds of the pushes and of the polls, and the bytes of the rows that the joins keep in the end."""
    pushing = polling = 0.0
    options = {"threads": 1}
    with splitjoin.share(r.schema, s.schema, time="ts") as streams:
        if common:
            join = streams.common_join(on=[condition(n) for n in range(q)], window=f"RANGE {WINDOW}", **options)
            queries = [join.query(on=condition(n)) for n in range(q)]
        else:
            queries = [streams.query(on=condition(n), window=f"RANGE {WINDOW}", **options) for n in range(q)]
        for at in range(0, len(r), STEP):
            begin = time.process_time()
            streams.push_r(r.slice(at, STEP))
            streams.push_s(s.slice(at, STEP))
            between = time.process_time()
            for query in queries:
                query.poll()
            polling += time.process_time() - between
            pushing += between - begin
        joins = [join] if common else queries
        return pushing, polling, sum(one.counters()["retained_bytes"] for one in joins)


def single(q: int, r: pa.Table, s: pa.Table) -> float:
    """CPU seconds of as many sessions, pushes and polls together: a push joins."""
    total = 0.0
    for n in range(q):
        query = splitjoin.query(r.schema, s.schema, on=condition(n), window=f"RANGE {WINDOW}", time="ts")
        with splitjoin.open(query, threads=1) as session:
            begin = time.process_time()
            for at in range(0, len(r), STEP):
                session.push_r(r.slice(at, STEP))
                session.push_s(s.slice(at, STEP))
                session.poll()
            total += time.process_time() - begin
    return total


def cpu(quick: bool) -> None:
    """CPU seconds and bytes."""
    out = Recorder("shared", quick=quick, part="cpu")
    n, times = (20_000, 2) if quick else (100_000, 3)
    r, s = tables(n)
    shared(1, r, s, common=False)  # compiles
    for q in QUERIES:
        runs = [(*shared(q, r, s, common=False), *shared(q, r, s, common=True), single(q, r, s)) for _ in range(times)]
        config = {"queries": q, "tuples": 2 * n, "range": WINDOW, "step": STEP}
        how = (f"on the device cpu, one thread; least of {times} runs, shared streams, a common join and sessions in "
               f"turn")
        for name, at, unit in (("push_seconds", 0, "s"), ("poll_seconds", 1, "s"), ("kept_bytes", 2, "B"),
                               ("common_push_seconds", 3, "s"), ("common_poll_seconds", 4, "s"),
                               ("common_kept_bytes", 5, "B"), ("sessions_seconds", 6, "s")):
            out.add(name, min(run[at] for run in runs), unit, config, how)
    print(out.write())


def on_circuits(q: int, r: pa.Table, s: pa.Table, *, common: bool) -> dict[str, int]:
    """Comparisons, tuples and pairs that the simulated circuits of ``q`` queries work on, and their cycles."""
    options: dict[str, int] = {"cores": 2, "capacity": 256}
    found: dict[str, int] = {}
    with splitjoin.share(r.schema, s.schema, time="ts") as streams:
        if common:
            join = streams.common_join(on=[condition(n) for n in range(q)], window=f"RANGE {SHORT}", device="sim",
                                       **options)
            queries = [join.query(on=condition(n)) for n in range(q)]
        else:
            queries = [streams.query(on=condition(n), window=f"RANGE {SHORT}", device="sim", **options)
                       for n in range(q)]
        streams.push_r(r)
        streams.push_s(s)
        streams.heartbeat(len(r))
        for query in queries:
            query.poll()
        for one in [join] if common else queries:
            counters = one.counters()
            found["tuples"] = found.get("tuples", 0) + counters["tuples_r"] + counters["tuples_s"]
            for name in ("cycles", "comparisons", "matches"):
                found[name] = found.get(name, 0) + counters[f"device_{name}"]
    return found


def circuits(quick: bool) -> None:
    """A common circuit beside one for each query, and beside one that compares by all tests and tells which held."""
    out = Recorder("shared", quick=quick, part="circuits")
    r, s = (table.select(["ts", name]).set_column(1, name, pa.array(
        np.random.default_rng(n).integers(0, 2_000, FEW), pa.int32()))
        for n, (table, name) in enumerate(zip(tables(FEW), "xy", strict=True)))
    for q in ON_CIRCUIT:
        for common in (False, True) if q > 1 else (True,):
            what = {"queries": q, "circuits": 1 if common else q, "tuples": 2 * FEW, "range": SHORT}
            for name, value in on_circuits(q, r, s, common=common).items():
                out.add(f"sim_{name}", value, name, what, "counters of the simulated circuits of 2 cores, added up")
    most = max(ON_CIRCUIT)
    one = Configuration(keys_r=(32,), keys_s=(32,), tests=((0, 0),), tree=0, cores=16, capacity=512, time_bits=32,
                        lanes=1, probes=4)
    # A test for each query, without the bits themselves, which items, queues and mergers would carry besides.
    each = Configuration(keys_r=(32,), keys_s=(32,), tests=((0, 0),) * most, tree=("or", *range(most)), cores=16,
                         capacity=512, time_bits=32, lanes=1, probes=4)
    for way, config, cores in (("a circuit each", one, most), ("a common circuit", one, 1), ("a bit each", each, 1)):
        cells = ecp5.utilization(core_design(config, "ecp5"))["part"]
        what = {"queries": most, "way": way, "lanes": 1, "probes": 4}
        how = "Yosys, synth_lattice -family ecp5, of a core with two regions of 512 tuples, for all queries together"
        out.add("ecp5_lut4", cores * cells.lut4, "LUT4", what, how)
        out.add("ecp5_ff", cores * cells.ff, "FF", what, how)
    print(out.write())


def main() -> None:
    """The figures that are asked for."""
    parser = options_of(__doc__ or "")
    parser.add_argument("--circuits", action="store_true", help="simulate circuits, and map cores with Yosys")
    options = parser.parse_args()
    (circuits if options.circuits else cpu)(options.quick)


if __name__ == "__main__":
    main()
