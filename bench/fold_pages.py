"""Sections of docs/benchmarks.md on aggregates over interval joins and on kinds of join."""

from __future__ import annotations

from collections.abc import Iterator

from bench.charts import Files, pick

__all__ = ["folded", "interval_joins", "kinds"]

_NAMES = {"ours": "splitjoin", "scale-oij": "Scale-OIJ", "key-oij": "Key-OIJ", "duckdb": "DuckDB", "pathway": "Pathway"}


def _rates(files: Files, sweep: str) -> list[tuple[str, dict[str, object], float]]:
    """Engine, configuration and million tuples a second of a sweep's rows."""
    rows = pick(files, "oij", "oij_rate", sweep=sweep)
    return [(row["config"]["engine"], row["config"], row["value"]) for row in rows]


def interval_joins(files: Files) -> Iterator[str]:
    """Key-OIJ, Scale-OIJ, ours and others."""
    yield "## Aggregates over an interval join\n\n![Tuples a second against partners](pictures/interval-joins.svg)\n"
    yield ("Each base tuple gets the count and the sum of the tuples with its key in the time before it; tuples come "
           "out of order. A to D are the workloads of Scale-OIJ's paper ([engines](aggregates.md#engines)). DuckDB and "
           "Pathway join a table of base tuples with their windows in one batch. The table gives million tuples of "
           "both streams a CPU second (– without a figure):\n")
    table: dict[str, dict[str, float]] = {}
    for engine, config, value in _rates(files, "engines"):
        table.setdefault(str(config["workload"]), {})[engine] = value
    engines = [engine for engine in _NAMES if any(engine in found for found in table.values())]
    yield "| workload | " + " | ".join(_NAMES[e] for e in engines) + " |\n|---" + "|---" * len(engines) + "|"
    for workload, found in sorted(table.items()):
        yield f"| {workload} | " + " | ".join(f"{found[e]:.3g}" if e in found else "–" for e in engines) + " |"
    flat = {row["config"]["over"]: row["value"] for row in pick(files, "oij", "oij_flatness")}
    ratios = {str(row["config"]): (row["config"], row["value"]) for row in
              pick(files, "oij", "oij_ratio", of="Scale-OIJ to Key-OIJ")}
    best, worst = (choose(ratios.values(), key=lambda found: found[1]) for choose in (max, min))
    where = [f"{found['keys']:,} keys and windows of {found['window_us']:,} µs" for found, _ in (best, worst)]
    yield f"""
**Conclusion.** Take the default: its rate does not depend on how many partners there are. From the shortest to the
longest lateness it changes by a factor of {flat['lateness']:.2f}, and from the shortest to the longest window by
{flat['window']:.2f}. splitjoin runs as a session here, which also sorts the tuples and can be restored; Key-OIJ and
Scale-OIJ take tuples unsorted. Scale-OIJ is {best[1]:.0f} times as fast as Key-OIJ with {where[0]}, where each scan is
long, and {worst[1]:.2f} times with {where[1]}, where there is next to nothing to scan.
"""
    if "ours" in table.get("B", {}):
        yield ("Key-OIJ was stopped on B after 13 minutes: it visits 135,000 partners of each base tuple.\n")


def folded(files: Files) -> Iterator[str]:
    """Circuits that fold aggregates, beside those whose pairs leave."""
    where = {"cores": 4, "lanes": 8, "probes": 16}
    rows = {(r["metric"], r["config"].get("share"), r["config"].get("leaves")): r["value"]
            for metric in ("scan_cycles", "fold_cycles", "fold_bytes") for r in pick(files, "states", metric, **where)}
    shares = sorted({share for _, share, _ in rows if share is not None})
    window = pick(files, "states", "scan_cycles", **where)[0]["config"]["window"]
    yield (f"## Aggregates folded in the circuit\n\nTuples of r probe {window:,} tuples of s for count, sum and "
           f"maximum, on 4 cores of 8 lanes × 16 probes. The table gives the cycles and the bytes at the output for a "
           f"probe, by the share of pairs that match:\n")
    yield "| pairs that match | folded: cycles | bytes | pairs leave: cycles | bytes |\n|---|---|---|---|---|"
    for share in shares:
        cells = [f"{rows[metric, share, leaves]:,.{digits}f}" for leaves in ("states", "pairs")
                 for metric, digits in (("fold_cycles", 1), ("fold_bytes", 0))]
        yield f"| {share:.0%} | " + " | ".join(cells) + " |"
    most = max(abs(row["value"] - 1) for row in pick(files, "states", "fold_against_scan"))
    clocks = [row["value"] for row in pick(files, "states", "states_mhz")]
    in_turn = ""
    if later := [row["value"] - 1 for row in pick(files, "states", "whole_against_scan")]:
        in_turn = (f" If partners also come after their base tuple, whose state then waits beside it, a tuple takes "
                   f"{min(later):.1%} to {max(later):.1%} more cycles.")
    yield f"""
**Conclusion.** A circuit that folds runs at the speed of its scan, whatever matches: over all shapes and shares, cycles
a probe differ from those of a scan that finds nothing by at most {most:.1%}.{in_turn} The part that folds, placed and
routed alone on ECP5, reaches {min(clocks):.0f} to {max(clocks):.0f} MHz ([its cells](aggregates.md#in-circuits)).
"""


def kinds(files: Files) -> Iterator[str]:
    """Every kind of join beside DuckDB and Polars."""
    yield "## Kinds of join\n"
    rows = pick(files, "kinds", "kind_cpu_seconds")
    memory = {(r["config"]["kind"], r["config"]["engine"]): r["value"] for r in pick(files, "kinds", "kind_memory")}
    seconds = {(r["config"]["kind"], r["config"]["engine"]): r["value"] for r in rows}
    yield (f"The joins are by equal keys within an interval, of {rows[0]['config']['rows']:,} rows a side with ten "
           f"rows a key, on one thread, from Arrow tables to Arrow tables. The table gives CPU seconds, and in "
           f"brackets the MiB at its peak:\n")
    yield "| kind | rows found | splitjoin | DuckDB | Polars |\n|---|---|---|---|---|"
    for kind in dict.fromkeys(r["config"]["kind"] for r in rows):
        found = next(r["config"]["result"] for r in rows if r["config"]["kind"] == kind)
        cells = [f"{seconds[kind, e]:.2f} ({memory[kind, e]:,.0f})" if (kind, e) in seconds else "has none"
                 for e in ("splitjoin", "duckdb", "polars")]
        yield f"| {kind} | {found:,} | " + " | ".join(cells) + " |"
    slower = [value / min(seconds[kind, e] for e in ("duckdb", "polars") if (kind, e) in seconds)
              for (kind, engine), value in seconds.items() if engine == "splitjoin"]
    yield f"""
**Conclusion.** For joins of whole tables by equal keys, take DuckDB or Polars: splitjoin takes {min(slower):.1f} to
{max(slower):.1f} times as long as the faster of them. Take
splitjoin for streams, for conditions without equality, and where the order of rows matters.
"""
