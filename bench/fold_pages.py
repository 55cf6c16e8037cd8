"""Sections of docs/benchmarks.md on aggregates over interval joins and on kinds of join."""

from __future__ import annotations

from collections.abc import Iterator

from bench.charts import Files, pick

_ANEW = "scale-oij, not incremental"
_NAMES = {"ours": "splitjoin", "scale-oij": "Scale-OIJ", _ANEW: "Scale-OIJ, not incremental", "key-oij": "Key-OIJ",
          "splitjoin": "SplitJoin", "duckdb": "DuckDB", "pathway": "Pathway"}


def _rates(files: Files, sweep: str) -> list[tuple[str, dict[str, object], float]]:
    """Engine, configuration and million tuples a second of a sweep's rows."""
    rows = pick(files, "oij", "oij_rate", sweep=sweep)
    return [(row["config"]["engine"], row["config"], row["value"]) for row in rows]


def interval_joins(files: Files) -> Iterator[str]:
    """Key-OIJ, Scale-OIJ, ours and others."""
    yield "## Aggregates over an interval join\n\n![Tuples a second against partners](pictures/interval-joins.svg)\n"
    yield ("Each base tuple gets the count and the sum of the tuples with its key in the time before it; tuples come "
           "out of order. A to D are the workloads of Scale-OIJ's paper ([engines](aggregates.md#engines)). SplitJoin "
           "compares each base tuple with the window of all keys, and its pairs are folded. DuckDB and Pathway join "
           "one batch, Pathway of 200,000 pairs. Thousand tuples of both streams a CPU second:\n")
    table: dict[str, dict[str, float]] = {}
    partners: dict[str, float] = {}
    for engine, config, value in _rates(files, "engines"):
        table.setdefault(str(config["workload"]), {})[engine] = value
        partners[str(config["workload"])] = float(str(config["partners"]))
    engines = [engine for engine in _NAMES if any(engine in found for found in table.values())]
    yield "| workload | partners | " + " | ".join(_NAMES[e] for e in engines) + " |"
    yield "|---" * (len(engines) + 2) + "|"
    for workload, found in sorted(table.items()):
        cells = [f"{1000 * found[e]:,.3g}" if found.get(e, 1) < 1 else f"{1000 * found[e]:,.0f}" if e in found else "–"
                 for e in engines]
        yield f"| {workload} | {partners[workload]:,.0f} | " + " | ".join(cells) + " |"
    yield from _workers(files)
    yield from _latencies(files)
    flat = {row["config"]["over"]: row["value"] for row in pick(files, "oij", "oij_flatness")}
    most = max((w for w in table if {"scale-oij", _ANEW, "key-oij", "splitjoin"} <= table[w].keys()),
               key=lambda workload: table[workload]["scale-oij"] / table[workload]["key-oij"])
    times = {engine: table[most]["scale-oij"] / table[most][engine] for engine in ("key-oij", _ANEW, "splitjoin")}
    few = table["synthetic"]["scale-oij"] / table["synthetic"]["key-oij"]
    yield f"""
**Conclusion.** Take the default: its rate hardly depends on the number of partners. Over all latenesses it changes by
a factor of {flat['lateness']:.2f}, over all windows by {flat['window']:.2f}. splitjoin's session also sorts the
tuples and can be restored; Key-OIJ and Scale-OIJ take them unsorted. On {most}, Scale-OIJ is
{times['key-oij']:,.0f} times as fast as Key-OIJ (published: up to 24) and {times['splitjoin']:,.0f} times as fast as
SplitJoin (published: 20). It owes this to incremental aggregation: without it, it takes
{times[_ANEW] / times['key-oij']:.1f} times as long as Key-OIJ, as it follows links to as many tuples as that reads
in a row. With {partners['synthetic']:.0f} partners it has {few:.2f} times the rate of Key-OIJ.
"""


def _workers(files: Files) -> Iterator[str]:
    """The table of imbalance and CPU time against the number of workers."""
    rows = pick(files, "oij", "oij_speedup")
    if not rows:
        return
    workers = max(row["config"]["workers"] for row in rows)
    cases: dict[str, dict[str, float]] = {}
    for row in rows:
        c = row["config"]
        hot = f", one with {c['hot']:.0%} of the tuples" if c["hot"] else ""
        name = f"{c['workload']}, {c['keys']} keys{hot}"
        if c["workers"] == workers:
            cases.setdefault(name, {})[c["engine"]] = row["value"]
    shown = "; ".join(f"{name}: {found['scale-oij']:.1f} and {found['key-oij']:.1f}" for name, found in cases.items())
    yield (f"\nWith several workers, the busiest one decides. Operations of one worker alone over those of the busiest "
           f"of {workers}, by Scale-OIJ and by Key-OIJ: {shown} ([other numbers](figures/oij.csv)).")


def _latencies(files: Files) -> Iterator[str]:
    """Latencies where tuples arrive as fast as in the paper's workloads."""
    shares = pick(files, "oij", "oij_kept_up")
    if not shares:
        return
    yield ("\nMilliseconds, at the paper's rates, from the delivery of a tuple to the rows that it decides: of half "
           "the tuples and of 99 %; or the share of base tuples that one thread decides in time. C has no rate:\n")
    found = {(r["config"]["workload"], r["config"]["engine"], r["config"]["percentile"]): r["value"]
             for r in pick(files, "oij", "oij_latency_ms")}
    kept = {(r["config"]["workload"], r["config"]["engine"]): r["value"] for r in shares}
    workloads = sorted({workload for workload, _ in kept})
    yield "| engine | " + " | ".join(workloads) + " |\n|---" + "|---" * len(workloads) + "|"
    for engine in (name for name in _NAMES if any((w, name) in kept for w in workloads)):
        cells = [f"{found[w, engine, 50]:.2g}, {found[w, engine, 99]:.2g}" if (w, engine, 50) in found
                 else f"{kept[w, engine]:.0%}" if kept[w, engine] >= 0.1 else f"{kept[w, engine]:.1%}"
                 for w in workloads]
        yield f"| {_NAMES[engine]} | " + " | ".join(cells) + " |"


def folded(files: Files) -> Iterator[str]:
    """Circuits that fold aggregates, beside those whose pairs leave."""
    where = {"cores": 4, "lanes": 8, "probes": 16}
    rows = {(r["metric"], r["config"].get("share"), r["config"].get("leaves")): r["value"]
            for metric in ("scan_cycles", "fold_cycles", "fold_bytes") for r in pick(files, "states", metric, **where)}
    shares = sorted({share for _, share, _ in rows if share is not None})
    window = pick(files, "states", "scan_cycles", **where)[0]["config"]["window"]
    yield "## Aggregates folded in the circuit\n"
    most = max(abs(row["value"] - 1) for row in pick(files, "states", "fold_against_scan"))
    clocks = [row["value"] for row in pick(files, "states", "states_mhz")]
    in_turn = ""
    if later := [row["value"] - 1 for row in pick(files, "states", "whole_against_scan")]:
        in_turn = (f" If partners also come after their base tuple, whose state then waits beside it, a tuple takes "
                   f"{min(later):.1%} to {max(later):.1%} more cycles.")
    folds, pairs, bytes_, pair_bytes = (rows[metric, shares[-1], leaves] for metric in ("fold_cycles", "fold_bytes")
                                        for leaves in ("states", "pairs"))
    yield f"""\
**Conclusion.** A circuit that folds runs at the speed of its scan, whatever matches: over all shapes and shares, cycles
a probe differ from those of a scan that finds nothing by at most {most:.1%}.{in_turn} With 4 cores of 8 lanes × 16
probes and a window of {window:,}, count, sum and maximum of {shares[-1]:.0%} of it take {folds:.0f} cycles and
{bytes_:.0f} bytes at the output, where pairs take {pairs:,.0f} and {pair_bytes:,.0f} ([all
shares](figures/states.csv)). The part that folds, placed and routed alone on ECP5, reaches {min(clocks):.0f} to
{max(clocks):.0f} MHz ([its cells](aggregates.md#in-circuits)).
"""


def kinds(files: Files) -> Iterator[str]:
    """Every kind of join beside DuckDB and Polars."""
    yield "## Kinds of join\n"
    rows = pick(files, "kinds", "kind_cpu_seconds")
    seconds = {(r["config"]["kind"], r["config"]["engine"]): r["value"] for r in rows}
    times = {kind: value / min(seconds[kind, e] for e in ("duckdb", "polars") if (kind, e) in seconds)
             for (kind, engine), value in seconds.items() if engine == "splitjoin"}
    yield f"""\
**Conclusion.** By equal keys within an interval, over {rows[0]["config"]["rows"]:,} rows a side with ten rows a key, on
one thread, splitjoin takes {min(times.values()):.1f} to {max(times.values()):.1f} times the CPU seconds of the faster
of DuckDB and Polars ([all kinds](figures/kinds.csv)). It is slower than the faster one for
{", ".join(kind for kind, ratio in times.items() if ratio > 1)}.
"""
