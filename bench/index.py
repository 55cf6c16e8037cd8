"""Cores with an index: cycles per tuple in windows of 2^15, against a scan of the same.

Run: python -m bench.index, which replaces these rows of bench/results/circuits.json
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import splitjoin
from bench.band import ON, streams
from bench.record import Recorder, arguments
from splitjoin.engines.arrival import Arrivals
from splitjoin_sim.device import SimDevice

#: Keys of the equality, and of the single band (of 21 keys each): one pair in 250,000 matches.
_KEYS = 250_000


def conditions(n: int) -> dict[str, tuple[str, pa.Table, pa.Table]]:
    """Kind of condition → condition, and ``n`` tuples of each stream, of which one pair in about 250,000 matches."""
    random = np.random.default_rng(2)
    out = {"two bands": (ON, *streams(n))}
    for name, on, keys in (("equality", "r.x = s.a", _KEYS), ("one band", "abs(r.x - s.a) <= 10", 21 * _KEYS)):
        r, s = (pa.table({column: random.integers(0, keys, n).astype(np.int32)}) for column in "xa")
        out[name] = (on, r, s)
    return out


def cycles_per_tuple(out: Recorder, condition: str, core: str, cores: int, window: int, count: int) -> None:
    """Cycles from full windows on, for ``count`` tuples of each stream that arrive alternately and do not wait."""
    on, r, s = conditions(window + count)[condition]
    query = splitjoin.Query.make(*(splitjoin.Schema.from_table(side, t) for side, t in zip("rs", (r, s), strict=True)),
                                 on=on, window=f"ROWS {window}", order="total")
    device = SimDevice(cores=cores, capacity=window // cores, core=core)
    # To fill both windows of a scan would take hours. Its two regions do not wait for each other, so that one of them
    # full is as slow as both.
    filled = (window, 0 if core == "scan" else window)
    alternating = np.arange(2 * count, dtype=np.uint8) % 2
    with device.open(query) as session:
        session.push(Arrivals(np.repeat(np.arange(2, dtype=np.uint8), filled), None, r[:window], s[:filled[1]]))
        start = session.counters()
        session.push(Arrivals(alternating, None, r[window:], s[filled[1]:filled[1] + count]))
        session.flush()  # so that the last ones are done
        end = session.counters()
    passed = {name: end[name] - start[name] for name in ("cycles", "comparisons", "matches")}
    shape: dict[str, Any] = {"condition": condition, "core": core, "cores": cores, "window": window,
                             "sub_window": window // cores, "comparisons a tuple": passed["comparisons"] / (2 * count)}
    out.add("index_cycles_per_tuple", passed["cycles"] / (2 * count), "cycles a tuple and core", shape,
            "simulation: cycles / tuples of both streams, which arrive alternately without waiting, windows full "
            "(of a scan R's, as the two regions do not wait for each other); every core works on every tuple; order "
            "total; one pair in about 250,000 matches")


def main() -> None:
    """All figures."""
    options = arguments(__doc__ or "")
    out = Recorder("circuits", quick=options.quick, part="index")
    window = 2**10 if options.quick else 2**15
    for condition, core in (("equality", "hash"), ("one band", "bucket"), ("two bands", "bucket")):
        cycles_per_tuple(out, condition, core, 1, window, 500 if options.quick else 8000)
        cycles_per_tuple(out, condition, "scan", 1, window, 20)
    for core, count in (("bucket", 2000), ("scan", 200)):
        cycles_per_tuple(out, "two bands", core, 16, window, count)
    print(out.write())


if __name__ == "__main__":
    main()
