"""Ordered cores: cycles per tuple by window and selectivity, against a scan of the same.

Run: python -m bench.ordered, which replaces these rows of bench/results/circuits.json, or --window 512 for those of
one window.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import splitjoin
from bench.record import Recorder, options_of
from splitjoin.circuit.cost import circuit_cost
from splitjoin.engines.arrival import Arrivals
from splitjoin_sim.device import SimDevice

#: Keys are spread evenly over so many values.
_KEYS = 2**20
#: Condition → the length of intervals of columns, in keys.
CONDITIONS = {"r.x < s.a AND s.a < r.x + 1000": 0, f"r.x < s.a AND s.a < r.x + {_KEYS // 10}": 0,
              "r.x BETWEEN s.a AND s.b": _KEYS // 50, "r.x < s.a": 0}


def cycles_per_tuple(out: Recorder, on: str, core: str, window: int, count: int) -> None:
    """Cycles from full windows on, for ``count`` tuples of each stream that arrive alternately and do not wait."""
    random, n = np.random.default_rng(2), window + count
    keys = [random.integers(0, _KEYS, n).astype(np.int32) for _ in "rs"]
    longest = CONDITIONS[on]
    ends = (keys[1] + random.integers(0, longest + 1, n)).astype(np.int32)
    r, s = pa.table({"x": keys[0]}), pa.table({"a": keys[1], "b": ends})
    query = splitjoin.Query.make(*(splitjoin.Schema.from_table(side, t) for side, t in zip("rs", (r, s), strict=True)),
                                 on=on, window=f"ROWS {window}", order="total")
    device = SimDevice(cores=1, capacity=window, core=core)
    # To fill both windows of a scan would take hours. Its two regions do not wait for each other, so that one of them
    # full is as slow as both.
    filled = (window, 0 if core == "scan" else window)
    with device.open(query) as session:
        session.push(Arrivals(np.repeat(np.arange(2, dtype=np.uint8), filled), None, r[:window], s[:filled[1]]))
        start = session.counters()
        session.push(Arrivals(np.arange(2 * count, dtype=np.uint8) % 2, None, r[window:],
                              s[filled[1]:filled[1] + count]))
        session.flush()  # so that the last ones are done
        end = session.counters()
    passed = {name: (end[name] - start[name]) / (2 * count) for name in ("cycles", "comparisons", "matches")}
    cost = circuit_cost(device.configuration(query)).total
    shape: dict[str, Any] = {"on": on, "core": core, "window": window, "comparisons a tuple": passed["comparisons"],
                             "matches a tuple": passed["matches"], "lut4": cost.lut, "block_ram": cost.block_ram}
    out.add("ordered_cycles_per_tuple", passed["cycles"], "cycles a tuple", shape,
            "simulation: cycles / tuples of both streams, which arrive alternately without waiting; one core, windows "
            "full (of a scan R's, as the two regions do not wait for each other); order total; LUT4 and block RAMs of "
            "the circuit on ECP5 by the cost model")


def main() -> None:
    """All figures, or those of some windows."""
    parser = options_of((__doc__ or "").partition("\n")[0])
    parser.add_argument("--window", type=int, nargs="+", default=[2**n for n in range(8, 14)], help="these alone (all)")
    options = parser.parse_args()
    out = Recorder("circuits", quick=options.quick, part="ordered")
    narrow, wide, between, inequality = CONDITIONS
    out.keep(lambda row: row["config"]["window"] not in options.window)
    for window in (2**8,) if options.quick else options.window:
        for on, core, count in ((narrow, "scan", 10), (narrow, "bucket", 300), (narrow, "ordered", 300),
                                (wide, "ordered", 40), (between, "ordered", 100), (inequality, "ordered", 20),
                                (inequality, "scan", 10)):
            if on == narrow or window == 2**12:
                cycles_per_tuple(out, on, core, window, count)
        out.sort(lambda row: row["config"]["window"])
        out.write()  # a window takes minutes


if __name__ == "__main__":
    main()
