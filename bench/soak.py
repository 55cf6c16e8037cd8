"""Streaming sessions at a steady rate for an hour: every pair checked, and no growth in memory. Run: make soak

Two loads, side by side. The *checked* one is joined by the golden model as well, pair by pair, in order. The *fast* one
runs with the index and with nested loops, whose rows must be the same. Ends with exit code 1 at the first difference,
or if memory has grown.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
from tqdm import tqdm

import splitjoin
from bench.band import ON, streams
from bench.record import Recorder
from splitjoin.engines.cpu import CpuDevice

#: Tuples of each stream a second, windows, and how wide the bands are.
CHECKED, CHECKED_WINDOW, CHECKED_BAND = 200, 128, 300
FAST, FAST_WINDOW, FAST_BAND = 5_000, 1 << 14, 30
#: Memory may differ by so much between the first and the last tenth of the time, beyond a first warm-up.
GROWTH = 1.05


class Load:
    """Pushes the same random streams into several sessions, and compares their results as they arrive."""

    def __init__(self, window: int, rate: int, band: int, devices: dict[str, Any]):
        r, s = streams(1)
        query = splitjoin.query(r.schema, s.schema, on=ON.replace("10", str(band)), window=f"ROWS {window}")
        self.rate, self.pushed, self.pairs, self._seed = rate, 0, 0, 0
        self._sessions = {name: splitjoin.open(query, device) for name, device in devices.items()}
        self._sums = {name: hashlib.sha256() for name in devices}
        self._rows = dict.fromkeys(devices, 0)

    def push(self, n: int) -> None:
        """``n`` tuples of each stream, in small batches as they would come."""
        self._seed += 1
        r, s = streams(n, self._seed)
        for name, session in self._sessions.items():
            for at in range(0, n, 64):
                session.push_r(r[at:at + 64])
                session.push_s(s[at:at + 64])
                self._take(name, session.poll())
        self.pushed += n
        self.pairs = max(self._rows.values())

    def _take(self, name: str, batch: pa.RecordBatch) -> None:
        self._rows[name] += len(batch)
        for column in batch.columns:
            self._sums[name].update(column.to_numpy(zero_copy_only=False).tobytes())

    def differs(self) -> str | None:
        """The differences between the sessions, which all had the same input."""
        sums = {name: (self._rows[name], one.hexdigest()) for name, one in self._sums.items()}
        return None if len(set(sums.values())) == 1 else str(sums)


def resident() -> float:
    """Memory of this process, in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


def main() -> int:
    """Run, and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    minutes = parser.parse_args().minutes
    out = Recorder("soak", quick=minutes < 60)
    loads = {"checked": Load(CHECKED_WINDOW, CHECKED, CHECKED_BAND, {"cpu": "cpu", "golden": "golden"}),
             "fast": Load(FAST_WINDOW, FAST, FAST_BAND, {"index": CpuDevice(engine="index"),
                                                         "nested": CpuDevice(engine="nested")})}
    memory, start, behind, second = [], time.monotonic(), 0.0, 0
    bar = tqdm(total=round(minutes * 60), unit="s", disable=not sys.stderr.isatty())
    while (second := second + 1) <= minutes * 60:
        for load in loads.values():
            load.push(load.rate)
            if second % 10 == 0 and (wrong := load.differs()):
                print(f"the sessions differ after {second} s: {wrong}", file=sys.stderr)
                return 1
        memory.append(resident())
        left = start + second - time.monotonic()
        behind = max(behind, -left)
        time.sleep(max(0.0, left))
        bar.update()
    bar.close()
    settled = memory[len(memory) // 10:]
    part = max(1, len(settled) // 10)
    first, last = max(settled[:part]), max(settled[-part:])
    config = {"minutes": minutes}
    for name, load in loads.items():
        of = {"load": name, "tuples a second and stream": load.rate} | config
        out.add("soak_tuples", 2 * load.pushed, "tuples", of, "tuples pushed, every result compared")
        out.add("soak_pairs", load.pairs, "pairs", of, "pairs, the same from both sessions in the same order")
    out.add("soak_memory_growth", last / first, "times", config,
            "resident memory, the most in the last tenth of the time over that in the first, behind a warm-up")
    out.add("soak_memory", last, "MiB", config, "resident memory, the most in the last tenth of the time")
    out.add("soak_behind", behind, "s", config, "how far the sessions fell behind the rate, at most")
    print(out.write())
    return int(last / first > GROWTH)


if __name__ == "__main__":
    sys.exit(main())
