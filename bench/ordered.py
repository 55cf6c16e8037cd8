"""Ordered cores: cycles per tuple by window and selectivity, against a scan of the same.

Run: python -m bench.ordered, which replaces these rows of bench/results/circuits.json, or --window 512 for those of
one window. python -m bench.ordered --routed places and routes each kind of core with windows of 2^12 tuples (minutes
each, kept for a second run), and multiplies its clock by the committed rate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import splitjoin
from bench.place_and_route import ecp5
from bench.place_and_route.design import whole_design
from bench.record import Recorder, committed, options_of
from splitjoin.circuit.cost import circuit_cost
from splitjoin.engines.arrival import Arrivals
from splitjoin_sim.device import SimDevice

#: Keys are spread evenly over so many values.
_KEYS = 2**20
#: Cores that are routed, their windows, the device, and the clock in MHz at which the router stops.
ROUTED, ROUTED_WINDOW, DEVICE, TARGET_MHZ = ("scan", "bucket", "ordered"), 2**12, "LFE5U-85F", 150
#: Condition → the length of intervals of columns, in keys.
CONDITIONS = {"r.x < s.a AND s.a < r.x + 1000": 0, f"r.x < s.a AND s.a < r.x + {_KEYS // 10}": 0,
              "r.x BETWEEN s.a AND s.b": _KEYS // 50, "r.x < s.a": 0}


def circuit_of(on: str, core: str, window: int) -> tuple[splitjoin.Query, SimDevice]:
    """The query, and a circuit of one core with room for its windows."""
    x, ab = (pa.schema([pa.field(name, pa.int32(), nullable=False) for name in names]) for names in ("x", "ab"))
    r, s = splitjoin.Schema.from_arrow("r", x), splitjoin.Schema.from_arrow("s", ab)
    query = splitjoin.Query.make(r, s, on=on, window=f"ROWS {window}", order="total")
    return query, SimDevice(cores=1, capacity=window, core=core)


def cycles_per_tuple(out: Recorder, on: str, core: str, window: int, count: int) -> None:
    """Cycles from full windows on, for ``count`` tuples of each stream that arrive alternately and do not wait."""
    random, n = np.random.default_rng(2), window + count
    keys = [random.integers(0, _KEYS, n).astype(np.int32) for _ in "rs"]
    longest = CONDITIONS[on]
    ends = (keys[1] + random.integers(0, longest + 1, n)).astype(np.int32)
    r, s = pa.table({"x": keys[0]}), pa.table({"a": keys[1], "b": ends})
    query, device = circuit_of(on, core, window)
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


def routed(out: Recorder, core: str) -> None:
    """Cells, clock and rate of one kind of core with `ROUTED_WINDOW` tuples of each stream, as a whole circuit."""
    on = next(iter(CONDITIONS))
    query, device = circuit_of(on, core, ROUTED_WINDOW)
    config = device.configuration(query)
    found = ecp5.route(whole_design(config, "ecp5"), device=DEVICE, target=TARGET_MHZ)
    what: dict[str, Any] = {"on": on, "core": core, "window": ROUTED_WINDOW}
    how = f"{ecp5.versions()}: {DEVICE} speed grade 6, heap, router1, one seed; whole circuit of one core, with harness"
    for name, cells, unit in (("lut4", found.lut4, "LUT4"), ("ff", found.ff, "FF"),
                              ("block_ram", found.block_ram, "of 208")):
        out.add(f"ordered_routed_{name}", cells, unit, what, how)
    out.add("ordered_routed_mhz", found.mhz, "MHz", what, f"{how}; critical path from {found.source} to {found.sink}")
    cycles = next(row["value"] for row in committed("circuits") if row["metric"] == "ordered_cycles_per_tuple"
                  and what.items() <= row["config"].items())
    out.add("ordered_routed_rate", 1000 * round(1000 * found.mhz / cycles), "tuples/s", what,
            "ordered_routed_mhz / ordered_cycles_per_tuple")


def main() -> None:
    """All figures, or those of some windows, or those of routed circuits."""
    parser = options_of((__doc__ or "").partition("\n")[0])
    parser.add_argument("--window", type=int, nargs="+", default=[2**n for n in range(8, 14)], help="these alone (all)")
    parser.add_argument("--routed", choices=ROUTED, nargs="*", metavar="CORE", help="place and route these (all)")
    options = parser.parse_args()
    if options.routed is not None:
        for core in options.routed or ROUTED:
            out = Recorder("circuits", quick=options.quick, part=f"ordered, routed {core}")
            routed(out, core)
            print(out.write())
        return
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
