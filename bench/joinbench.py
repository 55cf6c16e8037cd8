"""joinbench: as-of, window, horizon, band, overlap, distance, rank, anti and snapshot joins on several engines, each
query in a process of its own on one thread, with checksums of the answers. Run: python -m bench.joinbench

``--rows 100000 1000000``: rows a side, up to 10^8; ``--seed 1``; ``--engine NAME``, ``--only TEXT``: some of the
engines and queries; ``--here``: engines of this environment alone, without making the one of the others; ``--quick``:
5,000 rows, these engines. Checksums tell whether the answers are equal; one that differs from most engines' is marked.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from bench.first_hour import run
from bench.joinbench_engines import ENGINES, SHORT
from bench.joinbench_queries import QUERIES
from bench.record import Recorder, options_of
from bench.rivals_environment import rival
from splitjoin.engines.loops import loops

ROOT = Path(__file__).parent.parent
#: Engines in an environment of their own.
APART = ("polars_bio", "datafusion", "chdb", "rayforce", "daft")
#: Runs that count, behind the first.
RUNS = 3


def answer(engine: str, query: str, rows: int, seed: int, limits: tuple[int, int]) -> dict[str, Any]:
    """The line that a process of ``engine`` prints, or why it ended at its ``limits``, CPU seconds and GiB."""
    with tempfile.TemporaryDirectory() as name:
        python = str(rival("table_joins")) if engine in APART else sys.executable
        settings = {"PYTHONPATH": str(ROOT), "SPLITJOIN_COMPILE": "first", "POLARS_MAX_THREADS": "1",
                    "RAYFORCE_CORES": "1"}
        done = run([python, "-m", "bench.joinbench_engines", engine, query, str(rows), str(seed), str(RUNS),
                    *map(str, limits)], Path(name), settings, may_end=True)
    lines = [line for line in done.printed.splitlines() if line.startswith("{")]
    made: dict[str, Any] = json.loads(lines[-1]) if lines else {"why": done.ended}
    words = {"time": f"more than {limits[0]} s for its runs", "memory": f"more than {limits[1]} GiB",
             "crash": "the process crashes"}
    return made | ({"why": words.get(made["why"], made["why"])} if "why" in made else {})


def measure(out: Recorder, query: str, rows: int, seed: int, engines: list[str],
            limits: tuple[int, int] = (60, 8)) -> None:
    """One query on these ``engines``: the CPU seconds and plan of each, or why it has no answer. ``limits`` of each
    process: CPU seconds for all runs, and GiB.
    """
    found = {engine: answer(engine, query, rows, seed, limits) for engine in engines}
    sums = Counter(made["sum"] for made in found.values() if "sum" in made)
    agreed = sums.most_common(1)[0][0] if sums else ""
    for engine, made in found.items():
        config = {"query": query, "rows": rows, "seed": seed, "engine": engine}
        if "sum" in made:
            config |= {"result": made["rows"], "checksum": made["sum"], "plan": made["plan"]}
            config |= {} if made["sum"] == agreed else {"differs": True}
        if "why" in made:
            out.add("joinbench_no_answer", 0, "", config | {"why": made["why"]}, "what the engine says, or the limit")
        else:
            out.add("joinbench_cpu_seconds", made["cpu"], "s", config, "CPU time from the engine's own tables to the "
                    f"result in memory, in a process of its own, one thread, the least of {RUNS} runs behind a first "
                    f"one, of which each lasts {SHORT} s, by repetition")


def main() -> None:
    """All figures, or those of some engines, queries and sizes."""
    options = options_of(__doc__ or "")
    options.add_argument("--rows", type=int, nargs="+", default=[100_000], help="rows a side; 100,000 by default")
    options.add_argument("--seed", type=int, default=1, help="of the tables; 1 by default")
    options.add_argument("--engine", nargs="+", choices=list(ENGINES), help="these engines")
    options.add_argument("--only", metavar="TEXT", nargs="+", default=[""], help="queries with one of these in their "
                         "names")
    options.add_argument("--limits", type=int, nargs=2, metavar=("SECONDS", "GIB"), default=(60, 8), help="CPU seconds "
                         "and memory of a process, with all its runs; 60 and 8 by default")
    options.add_argument("--here", action="store_true", help="engines of this environment alone")
    chosen = options.parse_args()
    loops()  # which the first join of a machine compiles, out of the limits
    engines = [e for e in chosen.engine or ENGINES if e not in APART or not (chosen.here or chosen.quick)]
    for rows in (5_000,) if chosen.quick else chosen.rows:
        for query in QUERIES:
            if any(text == query or (text in query and text not in QUERIES) for text in chosen.only):
                out = Recorder("joinbench", quick=chosen.quick, part=f"{query}, {rows:,} rows, seed {chosen.seed}")
                out.keep(lambda row: row["config"]["engine"] not in engines)
                measure(out, query, rows, chosen.seed, engines, tuple(chosen.limits))
                out.write()


if __name__ == "__main__":
    main()
