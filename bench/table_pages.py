"""The section of docs/benchmarks.md on joins of whole tables."""

from __future__ import annotations

from collections.abc import Iterator

from bench.charts import Files, pick

__all__ = ["lost_tables", "tables_by_threads", "whole_tables"]

NAMES = {"splitjoin": "splitjoin", "duckdb": "DuckDB", "polars": "Polars", "pandas": "pandas",
         "polars_bio": "polars-bio", "chdb": "chdb"}
#: The engines in the page's table; the others have few of the joins.
IN_TABLE = ("splitjoin", "duckdb", "polars")
#: Rows a side of the joins in the table, and those of that size that are too like another one.
MOST = 1_000_000
NOT_IN_TABLE = ("overlap, the key folded by hand", "left, equal keys within 1,000 of time", "full, a band",
                "left, overlap by key", "anti, overlap by key", "anti, a band", "anti, equal keys",
                "anti, equal keys within 1,000 of time", "anti, equal keys and one inequality", "semi, overlap by key",
                "point in interval by key", "as-of by key, forward", "anti, one inequality",
                "3 points a row in 13 intervals")


def whole_tables(files: Files) -> Iterator[str]:
    """Joins of whole tables on each engine."""
    yield "## Whole tables beside other engines\n"
    yield ("CPU seconds of one thread, from tables in memory to the result in memory, the least of the runs after the "
           "first; in brackets the MiB of that. Tables have a million rows. All results are the same. Rivals are "
           "written as their documentation recommends, or faster. *time*: the engine took a minute or 8 GiB; –: it has "
           "no such join. [All joins and sizes, pandas, polars-bio and chdb](figures/whole_tables.csv):\n")
    yield "| join | " + " | ".join(NAMES[engine] for engine in IN_TABLE) + " |\n" + "|---" * (1 + len(IN_TABLE)) + "|"
    for join, (rows, found) in _largest(files, MOST).items():
        if rows != MOST or join in NOT_IN_TABLE:
            continue
        cells = []
        for engine in IN_TABLE:
            config = {"join": join, "rows": rows, "engine": engine}
            peaks = [row["value"] for row in pick(files, "whole_tables", "table_memory", **config)]
            ended = [row["config"].get("ended") for row in pick(files, "whole_tables", "table_cpu_seconds", **config)]
            took = f"{found[engine]:.2g} ({peaks[0]:,.0f})" if peaks else "–"
            cells.append("time" if any(ended) and not peaks else took)
        yield f"| {join} | " + " | ".join(cells) + " |"
    few = {join: found["duckdb"] / found["splitjoin"] for join, (rows, found) in _largest(files, MOST).items()
           if rows != MOST and "duckdb" in found}
    if few:
        yield (f"\nOver 100,000 rows, DuckDB takes {min(few.values()):.2f} to {max(few.values()):.1f} times as long as "
               f"splitjoin: {'; '.join(few)}.")
    beyond = sorted(found["splitjoin"] / min(seconds for engine, seconds in found.items() if engine != "splitjoin")
                    for rows, found in _largest(files).values() if rows > MOST and len(found) > 1)
    if beyond:
        yield (f"\nIn {len(beyond)} joins of ten million rows, splitjoin takes {beyond[0]:.1f} to {beyond[-1]:.1f} "
               f"times the CPU time of the fastest rival.")
    if "writings" in files:
        most = {row["config"]["condition"] + row["config"]["how"]: row["value"]
                for row in pick(files, "writings", "writing_seconds_most")}
        times = max(most[row["config"]["condition"] + row["config"]["how"]] / row["value"]
                    for row in pick(files, "writings", "writing_seconds_least"))
        yield (f"\nEquivalent writings of a condition, such as BETWEEN and two comparisons, take the same way, and at "
               f"most {times:.1f} times as long ([figures](figures/writings.csv)).")
    yield ""


def tables_by_threads(files: Files) -> Iterator[str]:
    """Joins of whole tables by numbers of threads, of the fewest rows, which all have with one thread."""
    rows = min(row["config"]["rows"] for row in pick(files, "table_threads", "table_clock_seconds"))
    clock = {(c["join"], c["engine"], c["threads"]): row["value"]
             for row in pick(files, "table_threads", "table_clock_seconds", rows=rows) for c in [row["config"]]}
    cores = pick(files, "table_threads", "table_clock_seconds")[0]["config"]["processors"]
    joins = dict.fromkeys(join for join, _, _ in clock)
    gains = {engine: sorted(clock[join, engine, 1] / clock[join, engine, cores] for join in joins)
             for engine in ("splitjoin", "duckdb")}
    ahead = [join for join in joins if clock[join, "duckdb", cores] > clock[join, "splitjoin", cores]]
    yield (f"By the clock, {cores} threads on as many processors make splitjoin {gains['splitjoin'][0]:.1f} to "
           f"{gains['splitjoin'][-1]:.1f} times as fast as one thread, and DuckDB {gains['duckdb'][0]:.1f} to "
           f"{gains['duckdb'][-1]:.1f} times: the plan, the choice of a way and Python's part of each task are not "
           f"shared. splitjoin is then faster in {len(ahead)} of {len(joins)} joins "
           f"([figures](figures/table_threads.csv)).\n")


def lost_tables(files: Files) -> Iterator[str]:
    """A line on the joins that the fastest rival does in less than 4/5 of the time, at their largest sizes."""
    lines = []
    for join, (rows, found) in _largest(files).items():
        best = min(found, key=lambda engine: found[engine])
        if found[best] < 0.8 * found.get("splitjoin", 0) and join not in NOT_IN_TABLE:
            size = "" if rows == MOST else f"{rows:,} rows: "
            lines.append(f"{join} ({size}{found['splitjoin']:.2g}, {NAMES[best]} {found[best]:.2g})")
    if lines:
        yield (f"- *[Whole tables](#whole-tables-beside-other-engines)* of a million rows, in brackets CPU seconds of "
               f"splitjoin and of that tool: {'; '.join(lines)}.")


def _largest(files: Files, most: float = float("inf")) -> dict[str, tuple[int, dict[str, float]]]:
    """Join → rows and engines' CPU seconds at its largest size up to ``most``."""
    largest: dict[str, tuple[int, dict[str, float]]] = {}
    for (join, rows), found in _by_join(files).items():
        if most >= rows >= largest.get(join, (0, {}))[0]:
            largest[join] = rows, found
    return largest


def _by_join(files: Files) -> dict[tuple[str, int], dict[str, float]]:
    """Join and rows → engine → CPU seconds."""
    table: dict[tuple[str, int], dict[str, float]] = {}
    for row in pick(files, "whole_tables", "table_cpu_seconds"):
        config = row["config"]
        table.setdefault((config["join"], config["rows"]), {})[config["engine"]] = row["value"]
    return table
