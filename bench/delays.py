"""The delay of rows by kind of join, and what a session retains meanwhile.

Run: python -m bench.delays [--before] [--forms]

Two streams of a tuple a second each, pushed to a session some seconds at a time. A row's delay is from the arrival of
its tuple of R to the arrival after which the session gives it, in arrivals of both streams and in event time.
``--forms``: as-of joins in order "none", early and without a window, where each stream may be late and one comes behind
the other.
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
#: Forms of as-of joins that look backward: arguments of the query, and whether rows come early.
FORMS: dict[str, tuple[dict[str, Any], bool]] = {
    "total": ({}, False), "none": ({"order": "none"}, False), "none, early": ({"order": "none"}, True),
    "total, no window": ({"window": None}, False), "none, no window": ({"window": None, "order": "none"}, False)}
#: Seconds by which tuples of each stream may be late, and by which one comes behind the other; and the number of keys.
LATENESS, BEHIND, KEYS = 300, 600, 100
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


def measure_form(out: Recorder, name: str, behind: str, length: int, n: int, step: int) -> None:
    """Record the figures of a form of as-of joins, where the stream ``behind`` comes `BEHIND` seconds after the other;
    the other arguments are those of `measure`.
    """
    r, s = tables(n, KEYS)
    more, early = FORMS[name]
    query = splitjoin.query(r.schema, s.schema, **{"on": "r.x = s.a", "window": f"RANGE {length}", "time": "ts",
                                                   "how": "asof_left", **more})
    delays: dict[int, int] = {}  # of the first row of each tuple of R
    with splitjoin.open(query, lateness=LATENESS, watermark="source", early=early) as session:
        first, second = (session.push_s, session.push_r) if behind == "r" else (session.push_r, session.push_s)
        ahead, after = (s, r) if behind == "r" else (r, s)
        first(ahead.slice(0, BEHIND))
        for at in range(0, n - BEHIND, step):
            second(after.slice(at, step))
            first(ahead.slice(at + BEHIND, step))
            now = at + step - 1 + (BEHIND if behind == "s" else 0)
            for ts in session.poll().column("ts_r").to_pylist():
                delays.setdefault(ts, now - ts)
        retained, size = session.counters()["retained_bytes"], len(session.snapshot())
    config = {"kind": f"asof backward, {name}", "range": length, "tuples": 2 * n, "step": step, "lateness": LATENESS,
              "watermark": "source", "behind": behind, "keys": KEYS}
    how = (f"a session on the device cpu, `step` tuples of each stream pushed in turn, those of `behind` {BEHIND} "
           f"seconds after the others")
    out.add("first_row_delay", float(np.median([*delays.values()])), "s", config, how + "; median of event time")
    out.add("retained_bytes", retained, "B", config, "counter retained_bytes before the end of input")
    out.add("snapshot_bytes", size, "B", config, "length of a snapshot before the end of input")


def main() -> None:
    """All figures."""
    parser = options_of(__doc__ or "")
    parser.add_argument("--before", action="store_true", help="write the part `before`, of an earlier commit")
    parser.add_argument("--forms", action="store_true", help="write the part `forms`, of as-of joins")
    options = parser.parse_args()
    if options.forms:
        out = Recorder("delays", quick=options.quick, part="forms")
        for name in FORMS:
            for behind in "rs":
                measure_form(out, name, behind, *(900, 2_000, 10) if options.quick else (3600, 9_000, 10))
        print(out.write())
        return
    out = Recorder("delays", quick=options.quick, part="before" if options.before else "after")
    for length, (n, step) in ({300: (1_000, 4)} if options.quick else LENGTHS).items():
        for name in KINDS:
            measure(out, name, length, n, step, "by the window alone" if options.before else "as early as known")
    print(out.write())


if __name__ == "__main__":
    main()
