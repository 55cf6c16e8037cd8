"""The tables and the picture of docs/joinbench.md."""

from __future__ import annotations

from typing import Any

from bench.charts import Files, Rows, chart, pick
from bench.joinbench_queries import QUERIES

NAMES = {"splitjoin": "splitjoin", "duckdb": "DuckDB", "polars": "Polars", "pandas": "pandas",
         "polars_bio": "polars-bio", "datafusion": "DataFusion", "chdb": "chdb", "rayforce": "rayforce-py",
         "daft": "Daft"}


def _rows(files: Files, rows: int) -> tuple[Rows, Rows]:
    """The answers and the lacking ones of so many rows a side."""
    return (pick(files, "joinbench", "joinbench_cpu_seconds", rows=rows),
            pick(files, "joinbench", "joinbench_no_answer", rows=rows))


def _sizes(files: Files) -> list[int]:
    return sorted({row["config"]["rows"] for row in files["joinbench"]["rows"]})


def section(files: Files) -> str:
    """A table for each size: a line for each query, a column for each engine, with the plan, or why there is none."""
    text = ""
    for size in _sizes(files):
        answers, lacking = _rows(files, size)
        engines = [e for e in NAMES if any(row["config"]["engine"] == e for row in (*answers, *lacking))]
        cells = {(row["config"]["query"], row["config"]["engine"]): _answer(row) for row in answers}
        cells |= {(row["config"]["query"], row["config"]["engine"]): f"*{_plain(row['config']['why'])}*"
                  for row in lacking}
        results = {row["config"]["query"]: row["config"]["result"] for row in answers}
        text += (f"\n{size:,} rows a side:\n\n| query | rows | " + " | ".join(NAMES[e] for e in engines) + " |\n" +
                 "|---" * (2 + len(engines)) + "|\n")
        text += "".join(f"| {query} | {results[query]:,} | " + " | ".join(
            cells.get((query, e), "not run") for e in engines) + " |\n" for query in QUERIES if query in results)
    return text + "\n"


def _answer(row: dict[str, Any]) -> str:
    marked = " **another answer**" if row["config"].get("differs") else ""
    return f"{row['value']:.2g} s{marked}: {_plain(row['config']['plan'])}"


def _plain(text: str) -> str:
    """``text`` for a cell of a table."""
    return text.removeprefix("rows of whole tables, by ").removeprefix("rows without pairs, by ").replace(
        "|", "\\|").replace("*", "\\*").replace("<", "&lt;").replace("_", "\\_")


def draw(files: Files) -> None:
    """CPU seconds of each query on each engine, at the largest size that most queries have."""
    if "joinbench" not in files:
        return
    answers, _ = _rows(files, _sizes(files)[-1])
    queries = [q for q in QUERIES if any(row["config"]["query"] == q for row in answers)]
    with chart("joinbench", 0.4 * len(queries) + 1.5) as axes:
        for engine, marker in zip(NAMES, "Dos^vPX*h", strict=True):
            mine = [(row["value"], queries.index(row["config"]["query"])) for row in answers
                    if row["config"]["engine"] == engine]
            axes.plot([x for x, _ in mine], [y for _, y in mine], marker, label=NAMES[engine], alpha=0.8)
        axes.set_xscale("log")
        axes.set_yticks(range(len(queries)), queries)
        axes.invert_yaxis()
        axes.set(xlabel="CPU seconds, one thread",
                 title=f"joinbench, {_sizes(files)[-1]:,} rows a side")
        axes.legend(ncols=3, loc="upper center", bbox_to_anchor=(0.3, -0.1))
