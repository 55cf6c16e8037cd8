"""The section of docs/benchmarks.md on joins of whole tables."""

from __future__ import annotations

from collections.abc import Iterator

from bench.charts import Files, pick

__all__ = ["lost_tables", "tables_by_threads", "whole_tables"]

NAMES = {"splitjoin": "splitjoin", "duckdb": "DuckDB", "polars": "Polars", "pandas": "pandas",
         "polars_bio": "polars-bio", "chdb": "chdb"}


def whole_tables(files: Files) -> Iterator[str]:
    """Joins of whole tables on each engine."""
    yield "## Whole tables beside other engines\n"
    yield ("CPU seconds of one thread, from tables in memory to the result in memory, the least of the runs after the "
           "first in a process; in brackets the MiB of the first run. All results are the same. Rivals are written as "
           "their documentation recommends, or faster: DuckDB gets the key of overlapping intervals folded into the "
           "position. *time* or *memory*: the engine reached a minute or 8 GiB; –: it has no such join, or was not "
           "measured:\n")
    yield "| join | rows a side | " + " | ".join(NAMES.values()) + " |\n" + "|---" * (2 + len(NAMES)) + "|"
    for (join, rows), found in _by_join(files).items():
        cells = []
        for engine in NAMES:
            config = {"join": join, "rows": rows, "engine": engine}
            peaks = [row["value"] for row in pick(files, "whole_tables", "table_memory", **config)]
            ended = [row["config"].get("ended") for row in pick(files, "whole_tables", "table_cpu_seconds", **config)]
            took = f"{found[engine]:.2g} ({peaks[0]:,.0f})" if peaks else "–"
            cells.append(str(ended[0]) if ended and not peaks else took)
        yield f"| {join} | {rows:,} | " + " | ".join(cells) + " |"
    yield ""


def tables_by_threads(files: Files) -> Iterator[str]:
    """Joins of whole tables by numbers of threads."""
    table: dict[tuple[str, int], dict[tuple[str, int], float]] = {}
    for row in pick(files, "table_threads", "table_clock_seconds"):
        config = row["config"]
        table.setdefault((config["join"], config["rows"]), {})[config["engine"], config["threads"]] = row["value"]
    columns = sorted({key for found in table.values() for key in found}, key=lambda key: (key[0] != "splitjoin", *key))
    cores = pick(files, "table_threads", "table_clock_seconds")[0]["config"]["processors"]
    yield (f"### By threads\n\nSeconds by the clock on a machine of {cores} processors, the least of the runs after "
           f"the first. The plan, the choice of a way and Python's part of each task are not shared:\n")
    yield "| join | rows a side | " + " | ".join(f"{NAMES[engine]}, {n}" for engine, n in columns) + " |"
    yield "|---" * (2 + len(columns)) + "|"
    for (join, rows), found in table.items():
        cells = [f"{found[key]:.2g}" if key in found else "–" for key in columns]
        yield f"| {join} | {rows:,} | " + " | ".join(cells) + " |"
    yield ""


def lost_tables(files: Files) -> Iterator[str]:
    """A line on the joins that the fastest rival does in less than 4/5 of the time, at their largest sizes."""
    largest: dict[str, tuple[int, dict[str, float]]] = {}
    for (join, rows), found in _by_join(files).items():
        if rows >= largest.get(join, (0, {}))[0]:
            largest[join] = rows, found
    lines = []
    for join, (rows, found) in largest.items():
        best = min(found, key=lambda engine: found[engine])
        if found[best] < 0.8 * found.get("splitjoin", 0):
            lines.append(f"{join} ({rows:,}: {NAMES[best]} {found[best]:.2g}, splitjoin {found['splitjoin']:.2g})")
    if lines:
        yield (f"- *[Whole tables](#whole-tables-beside-other-engines)*, in brackets rows a side and seconds of CPU "
               f"time: {'; '.join(lines)}.")


def _by_join(files: Files) -> dict[tuple[str, int], dict[str, float]]:
    """Join and rows → engine → CPU seconds."""
    table: dict[tuple[str, int], dict[str, float]] = {}
    for row in pick(files, "whole_tables", "table_cpu_seconds"):
        config = row["config"]
        table.setdefault((config["join"], config["rows"]), {})[config["engine"]] = row["value"]
    return table
