"""Conditions that no interval or sum test decides, computed in the cores: pairs that leave the circuit, and cycles a
tuple, beside an interval test that is true for as many pairs.

Run: python -m bench.formulas [--kinds scan hash bucket] [--only NAME …], which writes bench/results/formulas.json
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
from tests.support.formula_conditions import CONDITIONS, SCHEMAS, rows

import splitjoin
from bench.record import Recorder, options_of
from splitjoin.engines.arrival import Arrivals
from splitjoin_sim.device import SimDevice

#: Kind of core → what stands beside each condition, for an index to find candidates by.
BESIDE = {"scan": "", "hash": " AND r.w % 4 = s.c % 4", "bucket": " AND abs(r.y - s.b) <= 12"}
#: Tuples of each stream that fill the windows, and behind them.
WINDOW, COUNT = 32, 150
_HOW = "simulation: both streams alternately without waiting, windows full; order none; 1 core, 4 probes"


def tables(name: str) -> tuple[pa.Table, pa.Table]:
    """Rows of both streams, with a number ``j`` from 0 to 999 for the interval test."""
    rng = random.Random(name)
    return tuple(rows(side, WINDOW + COUNT, name).append_column(
        pa.field("j", pa.int16(), False), pa.array([rng.randrange(1000) for _ in range(WINDOW + COUNT)], pa.int16()))
        for side in ("r", "s"))


def query_of(on: str) -> splitjoin.Query:
    """A join by ``on``."""
    schemas = (splitjoin.Schema.from_arrow(side, SCHEMAS[side].append(pa.field("j", pa.int16(), False)))
               for side in ("r", "s"))
    return splitjoin.Query.make(*schemas, on=on, window=f"ROWS {WINDOW}")


def measure(on: str, kind: str, r: pa.Table, s: pa.Table) -> tuple[int, int, float]:
    """Pairs that leave the circuit, those of the answer, and cycles a tuple, from full windows on."""
    device = SimDevice(probes=4 if kind == "scan" else 1, capacity=WINDOW, core=kind)
    parts = [Arrivals(np.arange(2 * n, dtype=np.uint8) % 2, None, r.slice(at, n), s.slice(at, n))
             for at, n in ((0, WINDOW), (WINDOW, COUNT))]
    with device.open(query_of(on + BESIDE[kind])) as session:
        session.push(parts[0])
        session.settle()
        start = session.counters()
        session.push(parts[1])
        session.flush()
        end = session.counters()
    left = end.get("unverified", end["matches"]) - start.get("unverified", start["matches"])
    return left, end["matches"] - start["matches"], (end["cycles"] - start["cycles"]) / (2 * COUNT)


def interval_for(pairs: int, kind: str, r: pa.Table, s: pa.Table) -> str:
    """An interval test that is true for about as many pairs as ``pairs``, of those that meet from full windows on."""
    i, j = (n.ravel() for n in np.indices((WINDOW + COUNT,) * 2))
    column = {f"{side}.{name}": t[name].to_numpy().astype(np.int64)[at]
              for side, t, at, names in (("r", r, i, "jwy"), ("s", s, j, "jcb")) for name in names}
    meet = {"scan": True, "hash": column["r.w"] % 4 == column["s.c"] % 4,
            "bucket": abs(column["r.y"] - column["s.b"]) <= 12}[kind]
    sums = np.sort((column["r.j"] + column["s.j"])[(j - i >= -WINDOW) & (j - i < WINDOW) & (np.maximum(i, j) >= WINDOW)
                                                   & meet])
    return f"r.j + s.j <= {sums[pairs] - 1}"


def main() -> None:
    """All figures."""
    parser = options_of(__doc__ or "")
    parser.add_argument("--kinds", nargs="*", default=list(BESIDE), choices=list(BESIDE), help="kinds of cores")
    parser.add_argument("--only", nargs="*", help="conditions that are measured; the figures of others stay")
    options = parser.parse_args()
    out = Recorder("formulas", quick=options.quick, part="conditions")
    names = options.only or list(CONDITIONS)
    for kind in options.kinds:
        for name in names[:1] if options.quick else names:
            on, (r, s) = f"({CONDITIONS[name]})", tables(name)
            left, answer, cycles = measure(on, kind, r, s)
            *_, decided = measure(interval_for(answer, kind, r, s), kind, r, s)
            shape: dict[str, Any] = {"condition": CONDITIONS[name], "core": kind}
            out.add("answer", answer, "pairs", shape, _HOW)
            out.add("other_pairs", left - answer, "pairs", shape, f"{_HOW}; pairs that leave, not of the answer")
            out.add("cycles", cycles, "cycles a tuple", shape, _HOW)
            out.add("ratio", cycles / decided, "", shape,
                    f"{_HOW}; cycles beside those of an interval test that is true for as many pairs")
    out.keep_others()
    print(out.write())


if __name__ == "__main__":
    main()
