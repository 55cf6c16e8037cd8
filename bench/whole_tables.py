"""Joins of whole tables beside DuckDB, Polars, pandas, polars-bio and chdb: one thread, and a process for each.
Run: python -m bench.whole_tables

``--quick`` takes all joins with 20,000 rows a side, without the rivals that have an environment of their own.
``--rows 10000000`` measures another size, ``--only TEXT`` a join, or those with a text in their names;
``--engine NAME`` one engine, beside the others' figures that are there; ``--threads 2`` time by the clock with two
threads, beside the figures of one. ``--within 10 30`` leaves out joins that splitjoin is expected to take more than
10 s for, by the figures of fewer rows, and rivals that would take more than 30 s.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.first_hour import run
from bench.record import Recorder, committed, options_of
from bench.rivals_environment import rival
from bench.table_cases import JOINS
from bench.table_joins import ENGINES, LIMIT, MEMORY, SHORT, SPLITJOIN, has
from splitjoin.base.processors import processors

ROOT = Path(__file__).parent.parent
#: Where Python keeps the bytecode of what is measured.
BYTECODE = ROOT / "build" / "bytecode"
#: Engines in an environment of their own.
APART = ("polars_bio", "chdb")
ROWS = (100_000, 1_000_000)
#: Runs in a process, of which the first is not counted.
RUNS = 3


def expected(join: str, rows: int, engine: str) -> float:
    """The seconds that a run on ``rows`` should take, by the largest committed figure of fewer; 0 without one."""
    known = [(row["config"]["rows"], row["value"]) for row in committed("whole_tables")
             if row["metric"] == "table_cpu_seconds" and row["config"]["join"] == join
             and row["config"]["engine"] == engine and row["config"]["rows"] < rows]
    return max(((n, seconds * rows / n) for n, seconds in known), default=(0, 0.0))[1]


def measure(out: Recorder, join: str, rows: int, engines: Sequence[str] = tuple(ENGINES), threads: int = 1) -> None:
    """One join on all ``engines`` that have it. Asserts that their results are the same, as far as they are defined."""
    found: dict[str, tuple[int, int]] = {}
    with tempfile.TemporaryDirectory() as name:
        for engine in engines:
            if not has(engine, join):
                continue
            python = str(rival("table_joins")) if engine in APART else sys.executable
            command = [python, str(ROOT / "bench" / "table_joins.py"), engine, join, str(rows), str(RUNS), str(threads)]
            settings = {"PYTHONPATH": str(ROOT), "POLARS_MAX_THREADS": str(threads),
                        "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(BYTECODE)}
            if engine == SPLITJOIN:  # kernels, and Python's bytecode, are compiled once in a user's life
                run([*command[:-2], "1", str(threads)], Path(name), settings, may_end=True)
            done = run(command, Path(name), settings, may_end=True)
            lines = [json.loads(line) for line in done.printed.splitlines() if line.startswith("{")]
            config = {"join": join, "rows": rows, "engine": engine}
            how = ("in a process of its own, from tables in memory to the result with all columns in memory, one "
                   f"thread, the least of the runs after the first, of which each lasts {SHORT} s, by repetition")
            many = how.replace("one thread", f"{threads} threads")
            if lines[2:]:
                if engine not in JOINS[join].ties:
                    found[engine] = lines[1]["rows"], lines[1]["sum"]
                if threads > 1:
                    best = min(lines[2:], key=lambda line: float(line["clock"]))
                    config |= {"threads": threads, "processors": processors(), "result": lines[1]["rows"]}
                    out.add("table_threads_clock_seconds", best["clock"], "s", config, f"time by the clock {many}")
                    out.add("table_threads_cpu_seconds", best["cpu"], "s", config, "CPU seconds of the same run")
                    continue
                out.add("table_cpu_seconds", min(line["cpu"] for line in lines[2:]), "s",
                        {**config, "result": lines[1]["rows"]}, f"CPU time {how}")
                out.add("table_first_cpu_seconds", lines[1]["cpu"], "s", config,
                        "CPU time of the first run in a process, after the engine's module has been imported")
                out.add("table_memory", lines[1]["peak"] - lines[0]["before"], "MiB", config,
                        "peak resident memory of the process in the first run, less what it had with the tables and "
                        "the engine's module")
            elif threads == 1:
                ended = done.ended or "time"
                out.add("table_cpu_seconds", LIMIT, "s", {**config, "ended": ended},
                        f"the runs reached the limit of {LIMIT} s of CPU time or of {MEMORY >> 30} GiB of memory")
    assert len(set(found.values())) <= 1, (join, rows, found)


def main() -> None:
    """All figures, or those of some joins and sizes."""
    options = options_of(__doc__ or "")
    options.add_argument("--only", metavar="TEXT", nargs="+", default=[""], help="measure these joins, or those with "
                         "one of these texts in their names")
    options.add_argument("--engine", choices=list(ENGINES), help="measure one engine")
    options.add_argument("--rows", type=int, nargs="+", help="rows a side; 100,000 and 1,000,000 by default")
    options.add_argument("--threads", type=int, default=1, help="threads of each engine; 1 by default")
    options.add_argument("--within", type=float, nargs=2, metavar=("OURS", "RIVALS"), default=(1e9, 1e9),
                         help="leave out what is expected to take longer than so many seconds")
    chosen = options.parse_args()
    for rows in chosen.rows or ((20_000,) if chosen.quick else ROWS):
        for join in JOINS:
            if any(text == join or (text in join and text not in JOINS) for text in chosen.only):
                if rows > JOINS[join].most or expected(join, rows, SPLITJOIN) > chosen.within[0]:
                    continue
                of = "" if chosen.threads == 1 else f", {chosen.threads} threads"
                out = Recorder("whole_tables", quick=chosen.quick, part=f"{join}, {rows:,} rows{of}")
                engines = [e for e in ENGINES if (not chosen.quick or e not in APART)
                           and expected(join, rows, e) <= chosen.within[1]]
                out.keep(lambda row: chosen.engine is not None and row["config"]["engine"] != chosen.engine)
                measure(out, join, rows, engines if chosen.engine is None else [chosen.engine], chosen.threads)
                out.write()


if __name__ == "__main__":
    main()
