"""docs/benchmarks.md: charts, short tables, and conclusions with the figures of bench/results/*.json."""

from __future__ import annotations

import math
import statistics
import textwrap
from collections.abc import Iterator
from typing import Any

from bench.charts import Files, pick
from bench.fold_pages import folded, interval_joins, kinds
from bench.hour_joins import JOINS, LIMIT, MEMORY, SPLITJOIN
from bench.table_pages import lost_tables, tables_by_threads, whole_tables

HEAD = """# Benchmarks

How fast splitjoin is, beside what you would use instead, and when you should use that. The scripts of `bench/` measured
the figures of this page on a machine with two processor cores; figures with more than two threads are of one with 16
([on a GPU](gpu.md#figures)). [All figures](#all-figures) are CSV files. `python -m bench.tables` generates this page.
Where no other condition is named, the condition is that of the papers' band benchmark, |x − a| ≤ 10 AND |y − b| ≤ 10.
"""


def page(files: Files) -> str:
    """The page."""
    parts = [HEAD, *where_others_win(files), *(whole_tables(files) if "whole_tables" in files else ()),
             *(tables_by_threads(files) if "table_threads" in files else ()),
             *(first_hour(files) if "first_hour" in files else ()), *engines(files),
             *(interval_joins(files) if "oij" in files else ()), *(folded(files) if "states" in files else ()),
             *(kinds(files) if "kinds" in files else ()),
             *sessions(files), *spark(files), *circuit(files), *all_figures(files)]
    return "\n".join(parts)


def one(files: Files, name: str, metric: str, **config: Any) -> float:
    """The value of the only row with this configuration."""
    (row,) = pick(files, name, metric, **config)
    return float(row["value"])


def where_others_win(files: Files) -> Iterator[str]:
    """The section that a reader in a hurry needs."""
    rewrite = one(files, "spark", "batch", way="bins of both bands and time", window_s=10)
    ours = one(files, "spark", "batch", way="splitjoin", window_s=10)
    yield "## Where another tool is better\n"
    if "first_hour" in files:
        for join, size, engine, theirs, own in lost(files):
            yield (f"- *{join}*, {size:,} rows a side: {NAMES[engine]} takes {theirs:.2g} s of CPU time, "
                   f"splitjoin {'more than ' if own == LIMIT else ''}{own:.2g} s.")
    if rewrite > ours:
        yield (f"- *A batch join in Spark over a short window*, if you write bins of both bands and of time into the "
               f"query: with 10 seconds such a rewrite joins {rewrite:,.0f} thousand rows a second, splitjoin "
               f"{ours:,.0f}.")
    if "threads" in files:
        gains = [row["value"] for row in pick(files, "threads", "speedup", threads=16)
                 if row["config"]["engine"].startswith("cpu, index")]
        yield (f"- *Many processor cores*: databases use all of them; 16 threads make [an index](cpu.md#index) "
               f"{min(gains):.1f} to {max(gains):.1f} times as fast as one, more in larger windows.")
    yield ("- *Three streams and more*: a database orders joins by its statistics, also between outer joins; splitjoin "
           "[inner joins of whole tables](sql.md#three-tables-and-more) alone.")
    yield from lost_tables(files) if "whole_tables" in files else ("",)


NAMES = {"splitjoin": "splitjoin", "duckdb": "DuckDB", "polars": "Polars", "pathway": "Pathway"}


def second(files: Files, join: str, size: int, engine: str) -> float | None:
    """Seconds of the second run; None if it was ended by the limit or cannot be expressed."""
    rows = pick(files, "first_hour", "join_cpu_seconds", join=join, rows=size, engine=engine, run="second")
    return float(rows[0]["value"]) if rows else None


def lost(files: Files) -> Iterator[tuple[str, int, str, float, float]]:
    """Joins at which a rival is faster: join, rows, engine, its seconds, splitjoin's."""
    for join in JOINS:
        for size in sizes(files):
            own = second(files, join, size, SPLITJOIN) or LIMIT
            for engine in NAMES:
                theirs = second(files, join, size, engine)
                if theirs is not None and theirs < own:
                    yield join, size, engine, theirs, own


def sizes(files: Files) -> list[int]:
    """Rows a side of the joins."""
    return list(dict.fromkeys(row["config"]["rows"] for row in pick(files, "first_hour", "join_cpu_seconds")))


def first_hour(files: Files) -> Iterator[str]:
    """Time to the first result, and three joins beside rivals."""
    yield "## The first hour\n"
    yield ("The table gives the seconds from the start of a process to its end with empty caches, with full ones, and "
           "the CPU seconds of all its processes with full ones:\n")
    yield "| user and command | cold, s | warm, s | warm, CPU s | memory, MiB |\n|---|---|---|---|---|"
    for user in dict.fromkeys(row["config"]["user"] for row in pick(files, "first_hour", "first_result_seconds")):
        times = " | ".join(f"{one(files, 'first_hour', f'first_result_{metric}', user=user, cache=cache):.1f}"
                           for metric, cache in (("seconds", "cold"), ("seconds", "warm"), ("cpu_seconds", "warm")))
        peak = one(files, "first_hour", "first_result_memory", user=user, cache="warm")
        yield f"| {user} | {times} | {peak:,.0f} |"
    yield """
**Conclusion.** A join's first result does not wait for a compiler: its loops are in the wheel. A simulated circuit is
compiled before its first result, once for each machine; in containers, [fill the cache](cache.md) beforehand.

### Three joins beside DuckDB, Polars and Pathway

![CPU seconds of three joins on four engines](pictures/first-hour.svg)

DuckDB has one BETWEEN, which its IEJoin takes, and the other ranges as filters; Polars `join_where`, or an equality
and a filter; Pathway `interval_join`. Each process has two threads, and all find the same pairs. Pathway only counts
them.
"""
    yield "| join | pairs | " + " | ".join(f"{name}, CPU s" for name in NAMES.values()) + " |"
    yield "|---" * (2 + len(NAMES)) + "|"
    for join in JOINS:
        for size in [n for n in sizes(files) if pick(files, "first_hour", "join_cpu_seconds", join=join, rows=n)][-1:]:
            cells = []
            for engine in NAMES:
                took = second(files, join, size, engine)
                ended = pick(files, "first_hour", "join_cpu_seconds", join=join, rows=size, engine=engine)
                limit = ended[0]["config"]["run"].removeprefix("ended by its limit of ") if ended else "–"
                peak = pick(files, "first_hour", "join_memory", join=join, rows=size, engine=engine)
                cells.append((f"{took:.2g}" if took is not None else limit)
                             + (f" ({peak[0]['value']:,.0f})" if peak else ""))
            pairs = pick(files, "first_hour", "join_cpu_seconds", join=join, rows=size, run="second")
            count = pairs[0]["config"]["pairs"] if pairs else 0
            yield f"| {join} | {count:,} | " + " | ".join(cells) + " |"
    yield (f"\nOf {sizes(files)[-1]:,} rows a side ([all sizes](figures/first_hour.csv)), the second run in a process; "
           f"in brackets the MiB that the join took. *time* or *memory*: the first run reached {LIMIT} s of CPU time "
           f"or {MEMORY >> 30} GiB; –: no such join.\n")


def engines(files: Files) -> Iterator[str]:
    """The CPU engine beside databases, behind sliding windows."""
    windows = [row["config"]["window"] for row in pick(files, "cpu", "index_to_duckdb")]
    ratios = [one(files, "cpu", "index_to_duckdb", window=window) for window in windows]
    scaling = {row["config"]["engine"]: row["value"] for row in pick(files, "cpu", "thread_scaling", window=2**15)}
    yield f"""## The CPU engine behind sliding windows

![Tuples a second of splitjoin, DuckDB and Polars against the window](pictures/engines.svg)

Micro-batches of 8,192 tuples are joined with full windows, in order; a database joins each with the window by SQL. The
*grid equi-join* is the rewrite that experts make: an equality of bins as wide as the band.

**Conclusion.** splitjoin joins {ratios[0]:.0f} times as many tuples a second as the grid equi-join with a window of
{windows[0]:,} tuples, and {ratios[-1]:.0f} times as many with {windows[-1]:,}: a database builds its hash table anew
for each batch. Without the rewrite, DuckDB and Polars are slower by orders of magnitude.
Two threads make nested loops {scaling['cpu, nested']:.1f} times as fast as one (window of {2**15:,}; [an
index](cpu.md#index)).
"""


def sessions(files: Files) -> Iterator[str]:
    """Latency of a session, and an hour of it."""
    rate = one(files, "latency", "sustainable_rate")
    growth = one(files, "soak", "soak_memory_growth")
    half = one(files, "latency", "push_to_result_ms", load="50%", percentile=99.0)
    yield f"""## Latency of a session

![Milliseconds from push to result at three loads](pictures/session-latency.svg)

**Conclusion.** One thread sustains {rate:.1f} million tuples a second. At half of that rate 99 % of the batches have
their results within {half:.1f} ms. Plan for half the rate; near the limit the slowest batches wait several times as
long. After an hour, with every pair checked, the memory was {growth:.2f} times that after warming up.

{decided(files)}

{at_once(files)}
"""


def decided(files: Files) -> str:
    """When rows of other kinds come."""
    found = {(row["metric"], row["config"]["kind"], row["part"]): row["value"] for row in files["delays"]["rows"]
             if row["config"]["range"] == 3600 and row["config"].get("percentile", 50) == 50}

    def change(metric: str, kind: str) -> str:
        before, after = (found[metric, kind, part] for part in ("before", "after"))
        return f"{after:,.0f} in place of {before:,.0f}"

    def form(metric: str, kind: str, behind: str) -> str:
        wanted = (metric, f"asof backward, {kind}", behind)
        return next(f"{row['value']:,g}" for row in files["delays"]["rows"] if row["part"] == "forms" and wanted == (
            row["metric"], row["config"]["kind"], row["config"]["behind"]))

    delays = [form("first_row_delay", *which) for which in (("total", "s"), ("none, early", "s"), ("total", "r"),
                                                             ("none", "r"))]
    retained = " in place of ".join(form("retained_bytes", kind, "r") for kind in ("total, no window", "total"))
    return f"""Half of the rows of an as-of join with `RANGE 3600`, in seconds, come within
{change("delay_event_time", "asof backward")} seconds (backward), {change("delay_event_time", "asof forward")} (forward)
or {change("delay_event_time", "asof nearest")} (nearest). A session retains
{change("retained_bytes", "asof backward")} bytes for the backward one.

Where S comes 600 seconds behind R and both may be 300 seconds late, half of the backward rows come within
{delays[0]} seconds, with `early=True` a first one within {delays[1]}. Where R is behind, {delays[2]} seconds in order
`"total"` and {delays[3]} in order `"none"`. Without a window, a session retains {retained} bytes for 100 keys
(`python -m bench.delays --forms`)."""


def at_once(files: Files) -> str:
    """The delay and the cost of pairs that come at once."""
    found = {(row["metric"], row["config"]["order"], row["config"]["lateness"], row["config"]["step"],
              row["config"]["condition"]): row["value"] for row in files["pairs_at_once"]["rows"]}
    costs = {step: sorted(value / found[metric, "total", late, step, condition]
                          for (metric, order, late, of_step, condition), value in found.items()
                          if metric == "cpu_seconds" and order == "none" and of_step == step) for step in (100, 2000)}
    none, total = (found["pair_delay", order, 500, 100, "r.k = s.k"] for order in ("none", "total"))
    return f"""With order `"none"`, half of the pairs of streams that are up to 500 ticks out of order come within
{none:.0f} ticks, their own lateness included, and in order `"total"` within {total:.0f}. That takes
{costs[100][0]:.1f} to {costs[100][-1]:.1f} times the CPU time if 100 tuples are pushed at once; {costs[2000][0]:.1f} to
{costs[2000][-1]:.1f} times if as many as a window holds (`python -m bench.pairs_at_once`)."""


def spark(files: Files) -> Iterator[str]:
    """Streaming and batch joins in Spark."""
    ratios = {row["config"]["window_s"]: row["value"] for row in pick(files, "spark", "stream_ratio")}
    batch = {row["config"]["window_s"]: row["value"] for row in pick(files, "spark", "batch_ratio")}
    latency = {row["config"]["way"]: row["value"] for row in pick(files, "spark", "pair_latency_p50")}
    own, rewrite = latency["splitjoin"], latency["bins of both bands and time"]
    slowest, fastest = min(ratios.values()), max(ratios.values())
    short = "faster" if batch[10] < 1 else "slower"
    yield f"""## Joins in Spark

![Thousand rows a second of streaming joins by way and window](pictures/spark-streams.svg)

The others are rewrites that give Spark's join an equality: bins of a band, of both bands and of time, or a constant
key.

**Conclusion.** Over streams splitjoin is {slowest:.0f} to {fastest:.0f} times as fast as the best rewrite, more with
longer windows. With a trigger of one second a pair comes out after {own:.1f} s in the median, and after
{rewrite:.1f} s from the best rewrite. Over batches the best rewrite is {short} with a window of 10 seconds (splitjoin
has {batch[10]:.2f} times its rate), and splitjoin is {batch[60]:.1f} times as fast with 60.
"""
    if "spark_sql" in files:
        yield plain_sql(files)
    if "spark_first" in files:
        yield spark_first(files)
    if "spark_rivals" in files:
        yield spark_rivals(files)
    if "spark_soak" in files:
        yield spark_soak(files)


def plain_sql(files: Files) -> str:
    """Joins in plain Spark SQL, of each size the least, the median and the greatest gain; and those left to Spark."""
    gains: dict[int, dict[bool, list[float]]] = {}
    slow: dict[float, float] = {}  # Spark's seconds, by the gain, of the smaller joins
    for row in pick(files, "spark_sql", "with_extension"):
        if row["config"]["replaced"] and row["part"] == "queries":
            without = one(files, "spark_sql", "without_extension", **row["config"])
            gain = round(without / row["value"], 6)  # the clock has hundredths, and a gain of 5 is one of 5
            gains.setdefault(row["config"]["rows"], {True: [], False: []})[row["config"]["adaptive"]].append(gain)
            if gain < 5 and row["config"]["rows"] == 20_000:
                slow[gain] = without
    told = []
    for rows, ways in sorted(gains.items()):
        every, middle = ways[True] + ways[False], f"{statistics.median(ways[True]):.1f} in the median"
        if ways[False]:
            middle += f", {statistics.median(ways[False]):.1f} without adaptive execution"
        told.append(f"{min(every):.1f} to {max(every):.0f} times as much for {len(ways[True])} joins of {rows:,} × "
                    f"{rows // 2:,} rows ({middle})")
    quick = gains[20_000]
    counted = one(files, "spark_sql", "rows_counted", rows=20_000, adaptive=True)
    mean, width = left_to_spark(files)
    often = min(sum(gain >= 5 for gain in quick[adaptive]) for adaptive in (True, False))
    text = (f"Spark's CPU time without [the extension](spark.md#plain-sparksql) is {', and '.join(told)}, in a session "
            f"that has run for a minute. {often} of the smaller joins gain 5 times and more; Spark runs the others in "
            f"{max(slow.values()):.1f} s at most, and counts rows alone in {counted:.2f}. Joins left to Spark, such as "
            f"those with an equality, take {mean:.2f} ± {width:.2f} times as much.")
    return textwrap.fill(text, 120, break_on_hyphens=False) + "\n"


def spark_first(files: Files) -> str:
    """The first join of a session beside plain Spark's own."""
    cpu = {(row["config"]["case"], row["config"]["query"]): row["value"]
           for row in pick(files, "spark_first", "first_cpu")}
    ways = {"plain SQL in splitjoin": "extension", "`stream_join`": "stream_join without time",
            "`stream_join` in windows": "stream_join in windows"}
    told = [f"{cpu[case, 'first']:.1f} by {way} ({cpu[case, 'first'] / cpu['plain Spark', 'first']:.2f} times as much)"
            for way, case in ways.items()]
    later = [f"{cpu[case, 'third']:.1f}" for case in ("plain Spark", *ways.values())]
    text = (f"The first join of a session, of 20,000 with 20,000 rows, takes {cpu['plain Spark', 'first']:.1f} s of "
            f"CPU time by Spark's own join, {', '.join(told)}; the third one {', '.join(later)}.")
    return textwrap.fill(text, 120) + "\n"


def left_to_spark(files: Files) -> tuple[float, float]:
    """The mean ratio of CPU times with and without the extension of joins that it leaves, and its 95 % confidence: each
    join counts by the width of its own confidence interval.
    """
    weights, total = 0.0, 0.0
    for row in pick(files, "spark_sql", "least_ratio"):
        low, high = math.log(row["value"]), math.log(one(files, "spark_sql", "greatest_ratio", **row["config"]))
        weight = ((high - low) / 2) ** -2
        weights, total = weights + weight, total + weight * (low + high) / 2
    mean = math.exp(total / weights)
    return mean, mean * weights ** -0.5


def spark_rivals(files: Files) -> str:
    """Flink beside Spark."""
    rows = max(row["config"]["rows"] for row in pick(files, "spark_rivals", "spark_rivals_cpu"))
    flink, bins, own, newest, none = (one(files, "spark_rivals", "spark_rivals_cpu", rows=rows, way=way) for way in (
        "Flink, interval join", "Flink, bins of both bands", "Spark, splitjoin",
        "Spark, bins of both bands and time, newest state", "Spark, no join"))
    text = (f"Flink's interval join takes {flink:.1f} s of CPU time for {rows:,} rows a stream, {bins:.1f} with bins, "
            f"splitjoin {own:.1f}, bins in Spark's newest state {newest:.1f}; a query that hands the rows to "
            f"tasks which join nothing takes {none:.1f}.")
    return textwrap.fill(text, 120) + "\n"


def spark_soak(files: Files) -> str:
    """Memory of a streaming join."""
    pairs, minutes = ((row := pick(files, "spark_soak", "spark_soak_pairs")[0])["value"], row["config"]["minutes"])
    heap, workers = ([row["value"] for row in pick(files, "spark_soak", f"spark_soak_{what}")]
                     for what in ("heap", "workers"))
    text = (f"In {minutes:.0f} minutes of a stream join all {pairs:,} pairs were right; after garbage collections the "
            f"JVM's heap held {min(heap):.0f} to {max(heap):.0f} MiB, and two Python workers {min(workers):.0f} to "
            f"{max(workers):.0f}.")
    return textwrap.fill(text, 120) + "\n"


def _sustained(files: Files) -> str:
    """A sentence on what circuits sustain under results."""
    rows = pick(files, "circuits", "cycles_per_tuple")
    off = sorted(abs(row["config"]["predicted"] / row["value"] - 1) for row in rows)
    near = sum(each <= 0.1 for each in off)
    return f"""**Conclusion.** A tuple takes the cycles of the scan, or those of its results at the output if they are
more. If tuples arrive at random or in bursts, the regions of a core wait for each other, unless records can [wait ahead
of them](circuits.md#streams-at-random-or-in-bursts). The tuner's model is within 10 % in {near} of {len(rows)} cases,
and off by {off[-1]:.0%} at most.
"""


#: Results of a tuple in the table of sustained rates.
_MATCHES = (0, 2, 8, 20)


def _routed(row: dict[str, Any]) -> str:
    """The name of a routed circuit in tables."""
    config = row["config"]
    return (f"{config['cores']} cores of {config['lanes']} × {config['probes']}"
            f"{', tables' if config.get('tables') else ''}")


def _rates(files: Files, row: dict[str, Any], arrival: str) -> str:
    """The cells of a circuit's sustained rates: comparisons in a cycle, and tuples in 1,000 cycles."""
    same = {key: row["config"][key] for key in ("cores", "lanes", "probes")}
    cycles = [found["config"]["cycles"] for found in pick(files, "circuits", "sustained_gcmps", input=arrival, **same)]
    window = row["config"]["cores"] * row["config"]["sub_window"]
    return " | ".join(f"{window / n:.0f} ({1000 / n:.1f})" for n in cycles)


def circuit(files: Files) -> Iterator[str]:
    """Latency and size of the circuit, and its rates in cycles: no clock, as circuits so large were routed by a flow
    that is gone.
    """
    constant = one(files, "circuits", "latency_constant_cycles", cores=64)
    yield f"""## The circuit

![Cycles of a probe by stage, against cores](pictures/circuit-latency.svg)

**Conclusion.** Latency follows the [papers' model](tuning.md#what-the-predictions-are-made-of), PL = d·T + w·P + g·T,
plus a constant of {constant:.0f} cycles for the pipeline, whatever the number of cores. Twice the cores halve the scan
and add two cycles for the trees.

![Cycles a tuple against its results, by order of arrival](pictures/sustained.svg)

{_sustained(files)}
Two circuits of cores of lanes × probes, with windows of 4,096 tuples: sustained comparisons in a cycle (and tuples in
1,000 cycles), for streams at random, by results of a tuple. Bitstreams of ECP5 boards have [84 to 150
MHz](boards.md#built); circuits as large as these [have no clock yet](synthesis.md#a-whole-device) by the tools of
today:

| circuit | LUT4 of 83,640 | {" | ".join(f"{results} results" for results in _MATCHES)} |
|---|---|---|---|---|---|"""
    routed = sorted(pick(files, "circuits", "ecp5_mhz", part="whole circuit"), key=lambda row: -row["config"]["cores"])
    for row in routed:
        size = row["config"]
        luts = one(files, "circuits", "ecp5_lut4", **{key: size[key] for key in ("cores", "lanes", "probes", "part")})
        yield f"| {_routed(row)} | {luts:,.0f} | {_rates(files, row, 'random')} |"
    sustains = pick(files, "circuits", "sustained_gcmps", input="random", cores=size["cores"])[1]["config"]
    compared = size["cores"] * size["sub_window"] / sustains["cycles"]
    peak = 2 * size["cores"] * size["lanes"] * size["probes"]
    index = pick(files, "circuits", "index_cycles_per_tuple", condition="one band", core="bucket")
    scan = pick(files, "circuits", "index_cycles_per_tuple", condition="one band", core="scan")
    nested = max(row["value"] for row in pick(files, "cpu", "nested_gcmps_per_core")
                 if row["config"]["engine"].startswith("cpu"))
    by_index, by_scan, window = index[0]["value"], scan[0]["value"], index[0]["config"]["window"]
    yield f"""
**Conclusion.** If no index can search by a condition, the larger of them compares {compared:.0f} pairs in a cycle with
{sustains["matches"]:.0f} results a tuple and streams at random ({peak} at most). At 100 MHz that would be
{compared / 10:.0f} billion a second, where one core of this machine's processor compares {nested:.0f} billion at its
best. With more results, the output is the limit, at one result a cycle. If an index can search by the condition,
it beats any number of comparators: {by_index:.1f} cycles a tuple instead of {by_scan:,.0f} with a window of
{window:,}. So let the [tuner](tuning.md) choose. The first gain of a circuit is latency: a fixed number of cycles,
where the CPU needs milliseconds.

![Efficiency, latency, cells, clock and time to build, against the number of cores](pictures/against-cores.svg)
"""


#: Results file → its topic.
TOPICS = {"first_hour": "first hour", "pythons": "Pythons", "cpu": "CPU engine", "threads": "its threads",
          "kinds": "kinds of join", "thread_forms": "every form by threads", "oij": "aggregates",
          "delays": "when rows come", "pairs_at_once": "pairs at once",
          "shared": "shared streams", "moves": "changes of a session",
          "precision": "an order that follows the load", "multiway": "three streams",
          "whole_tables": "whole tables", "writings": "equivalent conditions", "table_threads": "their threads",
          "joinbench": "joinbench",
          "large_files": "large files",
          "gpu": "GPU", "latency": "latency of a session", "soak": "an hour of it", "spark": "Spark",
          "spark_skew": "skew in Spark", "spark_sql": "plain Spark SQL", "spark_paths": "Spark's rows through Python",
          "spark_first": "a session's first join in Spark", "spark_realtime": "Spark's Real-time Mode",
          "circuits": "circuits", "formulas": "formulas in circuits", "hls": "Python functions as circuits",
          "stages": "latency by stage", "evaluation": "architectures", "evaluation_threads": "on threads",
          "routed": "their cells",
          "scalejoin": "several sources", "states": "folding circuits", "costs": "predicted cells",
          "fold_units": "units that fold",
          "predicates": "conditions on circuits", "boards": "bitstreams",
          "external": "external memory (a model)", "memory": "windows in external memory",
          "link": "the link", "link_fifo": "the link over an FT232H", "link_states": "the link with states",
          "spark_rivals": "Flink", "spark_soak": "Spark's memory", "link_soak": "an hour of bad line",
          "link_schedules": "1,000 bad lines"}


def all_figures(files: Files) -> Iterator[str]:
    """The CSV files of all figures, by topic."""
    yield """## All figures

Each row is one figure, with its configuration and unit; [`measured.csv`](figures/measured.csv) says how and where each
was measured. With `--quick`, scripts of `bench/` take a minute and write to `build/bench/`; `make soak` takes an hour.
"""
    yield textwrap.fill("; ".join(f"[{topic}](figures/{name}.csv)" for name, topic in TOPICS.items() if name in files)
                        + ".\n", 120, break_on_hyphens=False, break_long_words=False) + "\n"
