"""Joins of two Parquet files whose rows go to a third: CPU time, and the most memory of the process that does it.
Run: python -m bench.large_files

Files have 10^6 and 10^7 rows each, with ``--rows`` others: 10^8 take five minutes and 8 GiB on the disk. From 10^7
rows on, files are read in parts. ``--only FORM`` measures one form. The means of prices are those of QuestDB's
published benchmark, which has ``--rows 50000000``: trades, and three times as many quotes, of 1,000 symbols by Zipf's
law.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

import splitjoin
from bench.first_hour import run
from bench.record import Recorder, options_of
from splitjoin.joins import in_parts

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build"
ROWS = (1_000_000, 10_000_000)
#: Rows of files that are joined before, so that what is measured is compiled.
FEW = 100_000
#: Rows that are made and written at once.
PART = 1 << 20
#: Each row has 501 tuples of the other file in its windows, and gives 0.35 rows.
CALL: Mapping[str, Any] = {"on": "abs(r.x - s.a) <= 10", "time": "ts", "window": "RANGE 250"}
VALUES = 30_000
#: Form → the further arguments, and of which kind its files are: sorted by time, not sorted, or trades and quotes.
FORMS: dict[str, tuple[dict[str, Any], str]] = {
    "all columns": ({}, "sorted"), "one column of 12": ({"select": ["r.v0"]}, "sorted"),
    "sorted first": ({"sort": True}, "unsorted"),
    "means of two prices of three times as many rows, by key within a second": ({
        "on": "r.sym = s.sym", "window": "RANGE 1 SECOND", "how": "left",
        "aggregate": {"n": "count(s.bid)", "bid": "avg(s.bid)", "ask": "avg(s.ask)"}}, "quotes")}


def drawn(index: npt.NDArray[np.uint64], column: int) -> npt.NDArray[np.int32]:
    """Values from 0 to `VALUES` - 1, by row numbers and a column's number: the mixing steps of SplitMix64."""
    z = (index * np.uint64(16) + np.uint64(column)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return ((z ^ (z >> np.uint64(27))) % np.uint64(VALUES)).astype(np.int32)


def make(path: Path, side: int, rows: int, *, ordered: bool) -> None:
    """Write a file of six columns, row after row in time or, unless ``ordered``, far from it, in parts of `PART`."""
    names = ("x" if side == 0 else "a", *(f"{'vw'[side]}{n}" for n in range(4)))
    schema = pa.schema({"ts": pa.int64(), **{name: pa.int32() for name in names}})
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, PART):
            index = np.arange(start, min(start + PART, rows), dtype=np.uint64)
            if not ordered:
                index = index * np.uint64(7_368_787) % np.uint64(rows)  # once each, as it is prime
            writer.write_table(pa.table({"ts": index.astype(np.int64), **{
                name: drawn(index, 8 * side + n) for n, name in enumerate(names)}}, schema=schema))


def make_quotes(path: Path, side: int, rows: int) -> None:
    """Write a file of trades, or of three times as many quotes, as those of `bench.writings.window_joins`."""
    each, prices = ((1, ["price"]), (3, ["bid", "ask"]))[side]
    weights = np.cumsum(1 / np.arange(1, 1001))
    schema = pa.schema({"ts": pa.timestamp("us"), "sym": pa.int32(), **dict.fromkeys(prices, pa.float64())})
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, PART):
            rng, some = np.random.default_rng([5, side, start]), min(PART, rows - start)
            at = np.sort(rng.integers(126 * start, 126 * (start + some), each * some))
            drawn_keys = np.searchsorted(weights, rng.random(each * some) * weights[-1]).astype(np.int32)
            writer.write_table(pa.table({"ts": pa.array(at, pa.timestamp("us")), "sym": drawn_keys, **{
                name: rng.random(each * some).round(4) for name in prices}}, schema=schema))


def joined(form: str, folder: str, large: str) -> None:
    """Join the files of a folder, and print CPU seconds, rows, and the most memory that this process had, in MiB.
    ``large``: the bytes of columns from which on files are read in parts.
    """
    arguments, _ = FORMS[form]
    paths = [os.path.join(folder, f"{name}.parquet") for name in "rs"]
    in_parts.LARGE = int(large)
    before = resource.getrusage(resource.RUSAGE_SELF)
    found = splitjoin.join(paths[0], paths[1], **{**CALL, **arguments}, threads=1,
                           to=os.path.join(folder, "found.parquet"))
    after = resource.getrusage(resource.RUSAGE_SELF)
    with open("/proc/self/status") as file:
        peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024
    print(json.dumps({"cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, "peak": peak,
                      "rows": len(found), "plan": found.plan}))


def measure(out: Recorder, rows: int, forms: tuple[str, ...] = tuple(FORMS)) -> None:
    """All ``forms`` on files of so many rows. Asserts that those on the same rows find the same number of them."""
    counts = dict[bool, int]()
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as name:
        made = None
        for form in forms:
            kind = FORMS[form][1]
            for size, large in ((FEW, 0), (FEW, in_parts.LARGE), (rows, in_parts.LARGE)):
                folder = Path(name, str(size))
                folder.mkdir(exist_ok=True)
                for side in range(2) if size == FEW or made != kind else ():
                    path = folder / f"{'rs'[side]}.parquet"
                    if kind == "quotes":
                        make_quotes(path, side, size)
                    else:
                        make(path, side, size, ordered=kind == "sorted")
                command = [sys.executable, "-m", "bench.large_files", "--child", form, str(folder), str(large)]
                done = run(command, folder, {"PYTHONPATH": str(ROOT)})
            made = kind
            found = json.loads(done.printed)
            config = {"form": form, "rows": rows, "result": found["rows"],
                      "in_parts": found["plan"].startswith("in parts")}
            out.add("large_file_cpu_seconds", found["cpu"], "s", config, "CPU time of a join from two Parquet files to "
                    "one, one thread, the first in its process, after another has compiled the condition")
            out.add("large_file_memory", found["peak"], "MiB", config, "peak resident memory of the process, with "
                    "Python and all modules")
            assert counts.setdefault(kind == "quotes", found["rows"]) == found["rows"], (rows, form, counts)


def main() -> None:
    """All figures, or those of some sizes."""
    if sys.argv[1:2] == ["--child"]:
        joined(*sys.argv[2:])
        return
    options = options_of(__doc__ or "")
    options.add_argument("--rows", type=int, nargs="+", help="rows of each file")
    options.add_argument("--only", choices=list(FORMS), nargs="+", default=list(FORMS), help="measure these forms")
    chosen = options.parse_args()
    for rows in chosen.rows or ((100_000,) if chosen.quick else ROWS):
        out = Recorder("large_files", quick=chosen.quick, part=f"{rows:,} rows")
        measure(out, rows, tuple(chosen.only))
        out.keep_others()
        out.write()


if __name__ == "__main__":
    main()
