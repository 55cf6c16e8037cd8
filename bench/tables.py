"""docs/benchmarks.md (conclusions), docs/figures/*.csv (all figures), tables on other pages, and charts, generated from
bench/results/*.json. Run: python -m bench.tables
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench import against, charts, conclusions, evaluation_pages, joinbench_pages, pythons, table_pages

BENCH = Path(__file__).parent
DOCS = BENCH.parent / "docs"
PAGE = DOCS / "benchmarks.md"
FIGURES = DOCS / "figures"
_BEGIN, _END = "<!-- table: python -m bench.tables -->\n", "<!-- end of the table -->\n"
#: Of each table its page, results file, metrics, the columns of configuration that it shows, by their headings, and
#: what all of its rows have in their configuration.
TOPICS: tuple[tuple[str, str, dict[str, str], dict[str, str], dict[str, Any]], ...] = (
    ("synthesis.md", "circuits", {"ecp5_lut4_per_comparison": "LUT4 a comparison", "ecp5_ff_per_comparison":
                                  "flip-flops a comparison", "ecp5_mhz": "clock, MHz"},
                     {"lanes": "lanes", "probes": "probes"}, {"part": "core"}),
    ("circuits.md", "circuits", {"ordered_cycles_per_tuple": "cycles a tuple"},
     {"on": "condition", "window": "window", "core": "core", "matches a tuple": "matches a tuple", "lut4": "LUT4",
      "block_ram": "block RAMs"}, {}),
    ("circuits.md", "circuits", {"ordered_routed_lut4": "LUT4", "ordered_routed_ff": "flip-flops",
                                 "ordered_routed_block_ram": "block RAMs", "ordered_routed_mhz": "MHz",
                                 "ordered_routed_rate": "tuples a second"}, {"core": "core", "window": "window"}, {}),
    ("circuits.md", "formulas", {"answer": "pairs of the answer", "other_pairs": "other pairs that leave",
                                 "cycles": "cycles a tuple", "ratio": "beside an interval test"},
                    {"condition": "condition"}, {"core": "scan"}),
    ("cost.md", "fold_units", {"ecp5_lut4": "LUT4 (predicted)", "stages": "stages at 100 MHz"},
                {"aggregate": "aggregate", "program": "unit"}, {"shown": True}),
    ("hls.md", "hls", {"ecp5_lut4": "LUT4 (predicted)", "ecp5_lut4_by_hand": "LUT4 by hand",
                       "ecp5_lut4_ratio": "ratio", "ecp5_ff": "flip-flops (predicted)",
                       "ecp5_ff_by_hand": "flip-flops by hand",
                       "ecp5_dsp": "multipliers (predicted)", "ecp5_dsp_by_hand": "multipliers by hand",
                       "ecp5_mhz": "MHz", "ecp5_mhz_by_hand": "MHz by hand"}, {"kernel": "kernel"}, {}),
    ("hls.md", "hls", {"polyphony_compiled_lut4": "LUT4", "polyphony_lut4": "LUT4 of Polyphony",
                       "polyphony_lut4_ratio": "ratio", "polyphony_ff": "flip-flops of Polyphony",
                       "polyphony_dsp": "multipliers of Polyphony"}, {"kernel": "kernel"}, {}),
    ("external-windows.md", "memory", {"memory_channels": "cycles a tuple (by the formula)"},
     {"keys": "keys", "order": "order", "cores": "cores", "heads": "heads", "candidates": "candidates"}, {}),
    ("external-windows.md", "memory", {"memory_cycles": "cycles a tuple (by the formula)"},
                  {"window": "window", "memory": "memory", "heads": "heads", "latency": "L", "interval": "I",
                   "contexts": "K", "candidates": "candidates"}, {}),
    ("boards.md", "link_fifo", {"fifo_tuples": "thousand tuples a second", "fifo_to_board": "MB/s to the board",
                                "fifo_to_host": "MB/s back"}, {"round trip": "round trip, ms"}, {}),
    ("install.md", "pythons", {f"pythons_{suite}": title for suite, title in pythons.TITLES.items()},
                   {"python": "Python", "pandas": "pandas", "numpy": "NumPy", "pyarrow": "pyarrow", "polars": "Polars",
                    "duckdb": "DuckDB"}, {}),
    ("streaming.md", "precision", {"precision_delay_50": "median delay", "precision_delay_99": "99 %",
                                   "precision_delay_most": "longest", "precision_mean": "mean n"},
     {"device": "device", "precision": "inner order", "unit": "unit"}, {}),
    ("shared-streams.md", "shared", {"push_seconds": "pushes, s", "poll_seconds": "polls, s",
                                     "common_poll_seconds": "polls of a common join, s",
                                     "sessions_seconds": "as many sessions, s", "kept_bytes": "kept bytes",
                                     "common_kept_bytes": "of a common join"}, {"queries": "queries"}, {}),
)


def results() -> dict[str, dict[str, Any]]:
    """Name → contents of each results file."""
    return {path.stem: json.loads(path.read_text()) for path in sorted((BENCH / "results").glob("*.json"))}


def figures(files: dict[str, dict[str, Any]]) -> dict[Path, str]:
    """The files of all figures: one for each results file, and one that says how each metric was measured."""
    machines = [("file", "metric", "unit", "measured", "system", "processor", "cores", "Python")]
    texts = {}
    for name, data in files.items():
        rows = data["rows"]
        keys = list(dict.fromkeys(key for row in rows for key in row["config"]))
        texts[FIGURES / f"{name}.csv"] = comma_separated([("metric", *keys, "value", "unit"), *(
            (row["metric"], *(row["config"].get(key, "") for key in keys), shown(row["value"]), row["unit"])
            for row in rows)])
        machines += dict.fromkeys((name, row["metric"], row["unit"], row["how"], *data["machine"].values())
                                  for row in rows)
    return texts | {FIGURES / "measured.csv": comma_separated(machines)}


def comma_separated(rows: Iterable[Iterable[Any]]) -> str:
    """``rows`` as the text of a CSV file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def shown(value: float) -> float:
    """A figure with six digits; whole numbers as they are."""
    return value if isinstance(value, int) else float(f"{value:.6g}")


def topics(files: dict[str, dict[str, Any]]) -> dict[Path, str]:
    """The pages of `TOPICS` with their tables: a row for each configuration, a column for each metric."""
    tables: dict[str, list[str]] = {}
    for name_of_page, name, metrics, columns, common in TOPICS:
        cells: dict[tuple[str, ...], dict[str, str]] = {}
        for metric in metrics:
            for row in charts.pick(files, name, metric, **common):
                predicted = row["config"].get("predicted")
                cells.setdefault(tuple(cell(row["config"].get(key, "")) for key in columns), {})[metric] = (
                    cell(shown(row["value"])) + (f" ({cell(predicted)})" if predicted is not None else ""))
        lines = [[*columns.values(), *metrics.values()], ["---"] * (len(columns) + len(metrics)),
                 *([*key, *(values.get(metric, "–") for metric in metrics)] for key, values in cells.items())]
        tables.setdefault(name_of_page, []).append("".join("| " + " | ".join(line) + " |\n" for line in lines))
    texts = {DOCS / of: between(DOCS / of, *found) for of, found in tables.items()}
    if "evaluation" in files:
        page = DOCS / "architectures.md"
        texts[page] = between(page, evaluation_pages.threads(files), evaluation_pages.section(files),
                              evaluation_pages.scalejoin(files))
    if "large_files" in files:
        page = DOCS / "tables.md"
        texts[page] = between(page, table_pages.large_files(files))
    if "joinbench" in files:
        page = DOCS / "joinbench.md"
        texts[page] = between(page, joinbench_pages.section(files))
    return texts


def between(page: Path, *texts: str) -> str:
    """The contents of ``page``, with ``texts`` between its marks."""
    before, *parts = page.read_text(encoding="utf-8").split(_BEGIN)
    return before + "".join(_BEGIN + text + _END + part.split(_END, 1)[1]
                            for text, part in zip(texts, parts, strict=True))


def cell(value: Any) -> str:
    """A value, for a cell of a table: four digits of a fraction, all of a whole number."""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else (
        f"{value:,.4g}" if isinstance(value, float) else str(value).replace("|", "\\|"))


def main() -> None:
    """Write the pages, the files of figures and the charts."""
    files = results()
    FIGURES.mkdir(exist_ok=True)
    for path, text in {PAGE: conclusions.page(files), **figures(files), **topics(files)}.items():
        path.write_text(text, encoding="utf-8")
    charts.draw_all(files)
    evaluation_pages.draw(files)
    joinbench_pages.draw(files)
    print(PAGE, FIGURES, against.draw(), sep="\n")


if __name__ == "__main__":
    main()
