"""The cost of a move of a running session to another device session: CPU time of batches before, at and after it.

Run: python -m bench.moves [--quick]
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import pyarrow as pa

import splitjoin
from bench.record import Recorder, options_of
from bench.shared import tables

STEP = 1_024
WAYS: dict[str, Callable[[splitjoin.StreamJoin, int], object]] = {
    "move": lambda session, window: session.move("cpu", threads=1),
    "restart": lambda session, window: session.restart("cpu", threads=1),
    "window": lambda session, window: session.window(f"RANGE {window - 1}")}


def batches(r: pa.Table, s: pa.Table, window: int, way: str | None, at: int) -> tuple[list[float], float]:
    """CPU seconds of each batch, and of the change in front of batch ``at``."""
    query = splitjoin.query(r.schema, s.schema, on="abs(r.x - s.y) <= 20", window=f"RANGE {window}", time="ts")
    taken, change = list[float](), 0.0
    with splitjoin.open(query, threads=1) as session:
        for n in range(len(r) // STEP):
            if n == at and way is not None:
                begin = time.process_time()
                WAYS[way](session, window)
                change = time.process_time() - begin
            begin = time.process_time()
            session.push_r(r.slice(n * STEP, STEP))
            session.push_s(s.slice(n * STEP, STEP))
            session.poll()
            taken.append(time.process_time() - begin)
    return taken, change


def main() -> None:
    """All figures."""
    options = options_of(__doc__ or "").parse_args()
    out = Recorder("moves", quick=options.quick)
    window, times = (1 << 13, 2) if options.quick else (1 << 16, 3)
    at = 2 * window // STEP
    r, s = tables(4 * window)
    batches(r, s, window, "move", at)  # compiles
    found: dict[str, list[tuple[float, ...]]] = {way: [] for way in WAYS}
    for _ in range(times):
        plain, _ = batches(r, s, window, None, at)
        for way, runs in found.items():
            taken, change = batches(r, s, window, way, at)
            runs.append((median(plain[at:]), change + taken[at], median(taken[at:at + window // STEP]),
                         median(taken[at + window // STEP + 1:]), change + sum(taken[at:]) - sum(plain[at:])))
    how = f"on the device cpu, one thread; median of {times} runs, the ways in turn, beside a run without a change"
    for way, runs in found.items():
        unchanged, first, during, after, extra = (median(column) for column in zip(*runs, strict=True))
        config = {"change": way, "range": window, "tuples a batch": 2 * STEP}
        for name, seconds in (("unchanged", unchanged), ("first", first), ("meanwhile", during), ("after", after)):
            out.add(f"tuples_{name}", round(2 * STEP / seconds), "tuples a CPU s", config, how)
        out.add("extra_seconds", extra, "s", config, how)
    print(out.write())


if __name__ == "__main__":
    main()
