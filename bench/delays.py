"""The delay of rows by kind of join, and what a session retains meanwhile. Run: python -m bench.delays [--before]

Two streams of a tuple a second each, pushed to a session some seconds at a time. A row's delay is from the arrival of
its tuple of R to the arrival after which the session gives it, in arrivals of both streams and in event time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import splitjoin
from bench.record import Recorder, options_of

KINDS: dict[str, dict[str, Any]] = {
    **{f"asof {way}": {"how": "asof", "direction": way} for way in ("backward", "forward", "nearest")},
    "left": {"how": "left"}, "anti": {"how": "anti"},
}
#: RANGE in seconds → tuples of each stream, and how many of one stream are pushed at once.
LENGTHS = {900: (3_000, 1), 3600: (9_000, 10)}


def tables(n: int, keys: int) -> tuple[pa.Table, pa.Table]:
    """Both streams: a tuple a second, with one of ``keys`` keys; one key in ten is NULL."""
    rng = np.random.default_rng(1)
    return tuple(pa.table({"ts": np.arange(n), name: pa.array(rng.integers(0, keys, n), mask=rng.random(n) < 0.1)})
                 for name in ("x", "a"))  # type: ignore[return-value]  # two of them


def measure(out: Recorder, name: str, length: int, n: int, step: int, decided: str) -> None:
    """Record the figures of a kind of join with ``RANGE length`` over ``n`` tuples of each stream, ``step`` at once;
    ``decided``: what decides rows.
    """
    r, s = tables(n, length)
    query = splitjoin.query(r.schema, s.schema, on="r.x = s.a", window=f"RANGE {length}", time="ts", **KINDS[name])
    arrivals, times = [], []
    with splitjoin.open(query) as session:
        for at in range(0, n, step):
            session.push_r(r.slice(at, step))
            session.push_s(s.slice(at, step))
            rows = session.poll()
            if "ts_s" in rows.schema.names and name == "left":  # the rows that wait
                rows = rows.filter(rows.column("ts_s").is_null())
            for ts in rows.column("ts_r" if "ts_r" in rows.schema.names else "ts").to_pylist():
                arrivals.append(2 * (at + step - 1 - ts) + 1)
                times.append(at + step - 1 - ts)
        retained, size = session.counters()["retained_bytes"], len(session.snapshot())
    config = {"kind": name, "range": length, "tuples": 2 * n, "step": step, "decided": decided}
    how = "a session on the device cpu, `step` tuples of each stream pushed in turn; rows before the end of input"
    for percentile in (5, 50, 99):
        out.add("delay_arrivals", float(np.percentile(arrivals, percentile)), "arrivals",
                {**config, "percentile": percentile}, how)
        out.add("delay_event_time", float(np.percentile(times, percentile)), "s", {**config, "percentile": percentile},
                how)
    out.add("retained_bytes", retained, "B", config, "counter retained_bytes before the end of input")
    out.add("snapshot_bytes", size, "B", config, "length of a snapshot before the end of input")


def main() -> None:
    """All figures."""
    parser = options_of(__doc__ or "")
    parser.add_argument("--before", action="store_true", help="write the part `before`, of an earlier commit")
    options = parser.parse_args()
    out = Recorder("delays", quick=options.quick, part="before" if options.before else "after")
    for length, (n, step) in ({300: (1_000, 4)} if options.quick else LENGTHS).items():
        for name in KINDS:
            measure(out, name, length, n, step, "by the window alone" if options.before else "as early as known")
    print(out.write())


if __name__ == "__main__":
    main()
