"""The section of docs/benchmarks.md on joins of whole tables."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from bench.charts import Files, pick

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
                "3 points a row in 13 intervals", "as-of, forward", "as-of, nearest", "left, one inequality",
                "right, a band", "semi, equal keys and one inequality", "semi, equal keys", "two inequalities",
                "inner, one band, order left", "inner, one band, order none", "as-of by key, order none",
                "full, equal keys", "sum by equal keys", "containment by key", "semi, one inequality",
                "as-of by key, nearest within 5,000", "Hamming distance of 3, equal parts by hand")


def whole_tables(files: Files) -> Iterator[str]:
    """Joins of whole tables on each engine."""
    yield "## Whole tables beside other engines\n"
    ended = any("ended" in row["config"] and row["config"]["rows"] == MOST
                for row in pick(files, "whole_tables", "table_cpu_seconds"))
    yield (f"CPU seconds of one thread from tables in memory, of a million rows, to the result in memory, the least of "
           f"the runs after the first; in brackets the MiB of that. All results are the same. Rivals are written as "
           f"their documentation recommends, or faster. The machine had other work, which CPU seconds leave out, but "
           f"for its caches. {'*time*: a minute or 8 GiB; ' if ended else ''}–: no such "
           f"join. [All joins and sizes, pandas, polars-bio and chdb](figures/whole_tables.csv):\n")
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
    beyond = sorted(found["splitjoin"] / min(seconds for engine, seconds in found.items() if engine != "splitjoin")
                    for rows, found in _largest(files).values() if rows > MOST and len(found) > 1)
    if beyond:
        won = sum(ratio < 1 for ratio in beyond)
        yield (f"\nOf {len(beyond)} joins of ten million rows, splitjoin is the fastest in {won}; the median of its "
               f"CPU time is {statistics.median(beyond):.2g} of the fastest rival's, and the worst {beyond[-1]:.2g} "
               "times.")
    yield from _orders(files)
    if "writings" in files:
        least, most, least_first, most_first = ({
            (c["condition"], c["how"], c["rows"]): row["value"] for row in pick(files, "writings", metric)
            for c in [row["config"]]} for metric in ("writing_seconds_least", "writing_seconds_most",
                                                     "first_writing_seconds_least", "first_writing_seconds_most"))
        times = max(most[key] / seconds for key, seconds in least.items() if key[1] != "statements")
        yield (f"\nEquivalent writings of a condition take at most {times:.1f} times as long "
               f"([figures](figures/writings.csv)).")
        yield from _statements({(name, rows, turn): (seconds, others[name, how, rows])
                                for turn, these, others in (("first", least_first, most_first), ("again", least, most))
                                for (name, how, rows), seconds in these.items() if how == "statements"})
    yield ""


def _statements(found: dict[tuple[str, int, str], tuple[float, float]]) -> Iterator[str]:
    """The writings of statements, by what the first says, by rows, and by whether their texts came before: the seconds
    of the cheapest and the dearest.
    """
    columns = sorted({(rows, turn) for _, rows, turn in found}, key=lambda column: (column[0], column[1] == "again"))
    if not columns:
        return
    yield ("\nStatements that say the same, the cheapest and the dearest of each, CPU seconds with one thread, by rows "
           "a side, for texts that come first and [that come again](adr/0183-statements-carry-their-steps.md):\n")
    yield "| statements | " + " | ".join(f"{rows:,}, {turn}" for rows, turn in columns) + " |"
    yield "|---|" + "---|" * len(columns)
    for name in dict.fromkeys(name for name, _, _ in found):
        cells = [f"{least:.2g} to {most:.2g}, {most / least:.1f} times" for least, most in (
            found[name, *column] for column in columns)]
        yield f"| {name} | " + " | ".join(cells) + " |"


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
    ours, theirs = (f"{gains[engine][0]:.1f} to {gains[engine][-1]:.1f} times" for engine in ("splitjoin", "duckdb"))
    yield (f"By the clock, {cores} threads make splitjoin {ours} as fast as one, and DuckDB {theirs}; splitjoin is "
           f"then faster in {len(ahead)} of {len(joins)} joins ([figures](figures/table_threads.csv)).\n")


def lost_tables(files: Files) -> Iterator[str]:
    """A table of the joins that the fastest rival does in less than 4/5 of the time, at their largest sizes."""
    lines = []
    for join, (rows, found) in _largest(files).items():
        best = min(found, key=lambda engine: found[engine])
        if found[best] < 0.8 * found.get("splitjoin", 0):
            own = found["splitjoin"]
            lines.append((own / found[best], f"| {join} | {rows:,} | {own:.2g} | {found[best]:.2g} ({NAMES[best]}) |"))
    if lines:
        yield (f"\nOf {len(_largest(files))} [joins of whole tables](#whole-tables-beside-other-engines), each at its "
               f"largest size, these {len(lines)}, in CPU seconds:\n")
        yield "| join | rows a side | splitjoin | fastest |\n|---|---|---|---|"
        yield from (line for _, line in sorted(lines, reverse=True))
        yield ""


def large_files(files: Files) -> str:
    """A list of joins of files that are read in parts, by their sizes and forms, for docs/tables.md."""
    sizes: dict[int, list[str]] = {}
    for row in pick(files, "large_files", "large_file_cpu_seconds", in_parts=True):
        config = row["config"]
        peak = pick(files, "large_files", "large_file_memory", form=config["form"], rows=config["rows"])[0]["value"]
        sizes.setdefault(config["rows"], []).append(f"{config['form']}: {row['value']:.3g} s, {peak:,.0f} MiB")
    return "".join(f"- {rows:,} rows each: {'; '.join(found)}.\n" for rows, found in sorted(sizes.items()))


def _orders(files: Files) -> Iterator[str]:
    """A sentence on what the orders of rows cost."""
    lines = []
    for join, orders in (("inner, one band", ("total", "left", "none")), ("as-of by key", ("left", "none"))):
        took = []
        for number, order in enumerate(orders):
            name = join if number == 0 else f"{join}, order {order}"
            found = pick(files, "whole_tables", "table_cpu_seconds", join=name, rows=MOST, engine="splitjoin")
            took += [f"`{order}` {row['value']:.2g} s" for row in found]
        lines.append(f"{join}: {', '.join(took)}")
    yield f"\n[Orders](language.md#orders) cost: {'; '.join(lines)}."


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
