"""Many queries over shared streams, each on its own, choosing from a common join, and in a session of its own: CPU time
and bytes by the number of queries; and on simulated circuits words, cycles and cells.

Run: python -m bench.shared [--quick]; python -m bench.shared --circuits maps cores with Yosys and simulates (minutes).
Each replaces its own rows.
"""

from __future__ import annotations

import time
from typing import Any

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
ON_CIRCUIT, FEW, SHORT = (1, 4, 16), 1_000, 200


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


def on_circuits(q: int, *, common: bool, columns: bool) -> dict[str, int]:
    """Comparisons, tuples and pairs that the simulated circuits of ``q`` queries work on, and their cycles. The queries
    differ in constants, or with ``columns`` each compares columns of its own.
    """
    options: dict[str, int] = {"cores": 2, "capacity": 256}
    found: dict[str, int] = {}
    width = q if columns else 1
    r, s = (pa.table({"ts": np.arange(FEW)} | {
        f"{name}{n}": np.random.default_rng(2 * n + side).integers(0, 2_000, FEW).astype(np.int32)
        for n in range(width)}) for side, name in enumerate("xy"))
    on = [f"abs(r.x{n % width} - s.y{n % width}) <= {20 if columns else 20 + n}" for n in range(q)]
    with splitjoin.share(r.schema, s.schema, time="ts") as streams:
        if common:
            join = streams.common_join(on=on, window=f"RANGE {SHORT}", device="sim", **options)
            queries = [join.query(on=one) for one in on]
        else:
            queries = [streams.query(on=one, window=f"RANGE {SHORT}", device="sim", **options) for one in on]
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
    for q in ON_CIRCUIT[:2] if quick else ON_CIRCUIT:
        for differ in ("constants", "columns") if q > 1 else ("constants",):
            for common in (False, True) if q > 1 else (True,):
                what = {"queries": q, "differ in": differ, "circuits": 1 if common else q, "tuples": 2 * FEW,
                        "range": SHORT}
                for name, value in on_circuits(q, common=common, columns=differ == "columns").items():
                    out.add(f"sim_{name}", value, name, what, "counters of the simulated circuits of 2 cores, added up")
    for q in ON_CIRCUIT[1:2] if quick else ON_CIRCUIT[1:]:
        shape: dict[str, Any] = {"cores": 16, "capacity": 512, "time_bits": 32, "lanes": 1, "probes": 4}
        one = Configuration(keys_r=(32,), keys_s=(32,), tests=((0, 0),), tree=0, **shape)
        # A test for each query, without the bits themselves, which items, queues and mergers would carry besides.
        some = ("or", *range(q))
        each = Configuration(keys_r=(32,), keys_s=(32,), tests=((0, 0),) * q, tree=some, **shape)
        own = Configuration(keys_r=(32,) * q, keys_s=(32,) * q, tests=tuple((n, n) for n in range(q)), tree=some,
                            **shape)
        for way, differ, config, cores in (
                ("a circuit each", "constants", one, q), ("a common circuit", "constants", one, 1),
                ("a bit each", "constants", each, 1), ("a circuit each", "columns", one, q),
                ("a common circuit", "columns", own, 1)):
            cells = ecp5.utilization(core_design(config, "ecp5"))["part"]
            what = {"queries": q, "differ in": differ, "way": way, "lanes": 1, "probes": 4}
            how = ("Yosys, synth_lattice -family ecp5, of a core with two regions of 512 tuples, for all queries "
                   "together")
            out.add("ecp5_lut4", cores * cells.lut4, "LUT4", what, how)
            out.add("ecp5_ff", cores * cells.ff, "FF", what, how)
            out.write()  # to map a core takes minutes


def main() -> None:
    """The figures that are asked for."""
    parser = options_of(__doc__ or "")
    parser.add_argument("--circuits", action="store_true", help="simulate circuits, and map cores with Yosys")
    options = parser.parse_args()
    (circuits if options.circuits else cpu)(options.quick)


if __name__ == "__main__":
    main()
