"""A batch join in Spark of 20 M and 20 M rows, 90 % of them in 1 % of the time: seconds and the most memory.

Run: python -m bench.spark_skew
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.record import Recorder, arguments
from splitjoin.spark import local_session, stream_join

#: Rows of a file; seconds of event time; cores; memory of the JVM.
FILE, SPAN, CORES, MEMORY = 500_000, 20_000, 2, "3g"


def write(folder: Path, rows: int, column: str) -> None:
    """A stream by event time, in files: nine tenths of the rows lie in the second half's first hundredth."""
    rng = np.random.default_rng(column == "x")
    hot = np.sort(rng.integers(SPAN // 2 * 1_000_000, (SPAN // 2 + SPAN // 100) * 1_000_000, rows // 10 * 9))
    cold = np.sort(rng.integers(0, SPAN * 1_000_000, rows - len(hot)))
    ts = np.sort(np.concatenate([hot, cold]), kind="stable")
    folder.mkdir(parents=True)
    for n, first in enumerate(range(0, rows, FILE)):
        part = ts[first: first + FILE]
        pq.write_table(pa.table({"ts": pa.array(part, pa.timestamp("us", "UTC")),
                                 column: rng.integers(1, 100_001, len(part)).astype(np.int32)}),
                       folder / f"{n:05d}.parquet")


class Memory(threading.Thread):
    """Looks twice a second at the memory of this process and of all that it started; pages shared are counted once."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.peak = {"java": 0, "python": 0, "all": 0}

    def run(self) -> None:
        """Look until `ended`."""
        while not self.ended.wait(0.5):
            now = {"java": 0, "python": 0}
            for pid in self._family():
                try:
                    kind = "java" if Path(f"/proc/{pid}/comm").read_text().startswith("java") else "python"
                    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
                except (FileNotFoundError, ProcessLookupError):
                    continue  # it ended meanwhile
                now[kind] += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
            now["all"] = now["java"] + now["python"]
            self.peak = {kind: max(self.peak[kind], now[kind]) for kind in now}

    @staticmethod
    def _family() -> list[int]:
        parents: dict[int, list[int]] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                except (FileNotFoundError, ProcessLookupError):
                    continue  # likewise
                parents.setdefault(parent, []).append(int(entry.name))
        family = [os.getpid()]
        for pid in family:
            family += parents.get(pid, [])
        return family


def main() -> None:
    """All figures."""
    options = arguments(__doc__ or "")
    out = Recorder("spark_skew", quick=options.quick)
    rows = 1_000_000 if options.quick else 20_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "r", rows, "x")
        write(folder / "s", rows, "a")
        spark = local_session("bench", cores=CORES, log=folder / "spark.log", config={"spark.driver.memory": MEMORY})
        left, right = spark.read.parquet(str(folder / "r")), spark.read.parquet(str(folder / "s"))
        memory = Memory()
        memory.start()
        began = time.perf_counter()
        pairs = stream_join(left, right, on="r.x = s.a", window="RANGE 1 SECOND", time="ts").count()
        seconds = time.perf_counter() - began
        memory.ended.set()
        memory.join()
        spark.stop()
    config = {"rows": rows, "window_s": 1, "cores": CORES, "heap": MEMORY, "pairs": pairs}
    how = "20 M rows a side by default, 90 % of them in 1 % of the time, from Parquet to the count of pairs"
    out.add("skew_rate", 2 * rows / seconds / 1000, "k rows/s", config, how)
    out.add("skew_seconds", seconds, "s", config, how)
    for kind, peak in memory.peak.items():
        out.add("skew_memory", peak / 2**30, "GiB", config | {"processes": kind},
                "peak of the proportional set sizes, read twice a second, of all processes of the kind")
    out.write()


if __name__ == "__main__":
    main()
