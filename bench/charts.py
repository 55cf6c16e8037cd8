"""The charts of docs/benchmarks.md, as SVG, drawn from bench/results/*.json by `python -m bench.tables`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from cycler import cycler
from matplotlib import pyplot as plt, ticker  # after the backend is chosen

from splitjoin.base.svg import themed

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
Files = dict[str, dict[str, Any]]
Rows = list[dict[str, Any]]

#: The colour of texts and axes, which `save` replaces by that of the reader's theme.
INK = "#010203"
#: Colours that can be read on white and on black, and a marker for each, as one series may hide another.
COLOURS = ("#3987e5", "#d9772b", "#2aa876", "#d6556d", "#9d6fd6", "#8f8a1f", "#7d8790")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_NAMES = {"duckdb": "DuckDB", "polars": "Polars", "pathway": "Pathway"}
#: Inches: on a phone of 360 pixels, a point is a pixel.
WIDTH = 5.0

# Text stays text, which readers can search and scale; the same drawing always gives the same file.
mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "splitjoin", "font.size": 10, "axes.grid": True,
                     "axes.axisbelow": True, "grid.alpha": 0.25, "axes.spines.top": False, "axes.spines.right": False,
                     "font.sans-serif": ["DejaVu Sans", "Helvetica", "Arial"], "savefig.transparent": True,
                     "axes.titlesize": 10, "axes.labelsize": 10, "legend.fontsize": 9, "legend.frameon": False,
                     "axes.prop_cycle": cycler(color=COLOURS, marker=MARKERS), "lines.markersize": 5,
                     **dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor", "axes.edgecolor",
                                      "xtick.color", "ytick.color", "grid.color"), INK)})
_CREATED: dict[str, Any] = {"metadata": {"Date": None, "Creator": None}}


@contextmanager
def chart(name: str, height: float = 3.8) -> Iterator[Any]:
    """Axes to draw on; afterwards the picture ``name``.svg is written."""
    figure, axes = plt.subplots(figsize=(WIDTH, height), layout="constrained")
    yield axes
    save(figure, name)


def save(figure: Any, name: str) -> Path:
    """Write ``figure`` as ``name``.svg. Raises `ValueError` if something leaves the picture."""
    figure.canvas.draw()
    drawn = figure.get_tightbbox()
    if drawn.x0 < 0 or drawn.x1 > figure.get_figwidth():
        raise ValueError(f"{name} is {figure.get_figwidth()} inches wide, but drawn from {drawn.x0:.2f} to "
                         f"{drawn.x1:.2f}; break the line of a long title")
    path = PICTURES / f"{name}.svg"
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, **_CREATED)
    plt.close(figure)
    # matplotlib ends lines with spaces.
    text = "\n".join(line.rstrip() for line in path.read_text(encoding="utf-8").splitlines()) + "\n"
    path.write_text(themed(text).replace(INK, "currentColor"), encoding="utf-8")
    return path


def pick(files: Files, name: str, metric: str, **config: Any) -> Rows:
    """The rows of a metric whose configurations have these values."""
    return [row for row in files[name]["rows"] if row["metric"] == metric
            and all(row["config"].get(key) == value for key, value in config.items())]


def bars(axes: Any, groups: Sequence[str], series: dict[str, list[float | None]], text: str = "%.3g") -> None:
    """Bars of ``series``, beside each other in each of ``groups``; None has no bar."""
    width = 0.8 / len(series)
    for n, (label, values) in enumerate(series.items()):
        at = [k + (n - (len(series) - 1) / 2) * width for k in range(len(groups))]
        drawn = [(x, value) for x, value in zip(at, values, strict=True) if value is not None]
        axes.bar_label(axes.bar([x for x, _ in drawn], [v for _, v in drawn], width, label=label), fmt=text,
                       fontsize=8, padding=2)
    axes.set_xticks(range(len(groups)), groups)
    axes.grid(axis="x", visible=False)


def dots(axes: Any, groups: Sequence[str], series: dict[str, dict[str, float | None]], limit: float = 0.0) -> None:
    """Points of ``series`` on a log axis, group → value, one below the other in each of ``groups``; in place of None, a
    hollow one at the ``limit``.
    """
    for n, (label, values) in enumerate(series.items()):
        height = {group: k + (n - (len(series) - 1) / 2) * 0.8 / len(series) for k, group in enumerate(groups)}
        style = {"marker": MARKERS[n], "color": COLOURS[n], "ls": "", "ms": 7}
        there = {group: value for group, value in values.items() if value is not None}
        axes.plot(list(there.values()), [height[group] for group in there], label=label, **style)
        ended = [height[group] for group in values if group not in there]
        axes.plot([limit] * len(ended), ended, mfc="none", **style)
    axes.set_yticks(range(len(groups)), groups)
    axes.set(xscale="log", ylim=(len(groups) - 0.5, -0.5))


def plain(axis: Any) -> None:
    """Numbers such as 20 and 50 along a log ``axis`` of few decades."""
    axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_locator(ticker.NullLocator())


def draw_stages(files: Files) -> None:
    """Latency of a probe on an idle circuit by stage, against the number of cores, and the papers' model."""
    rows = [r for r in files["stages"]["rows"] if r["config"]["lanes"] == 1]
    smallest = min(r["config"]["sub_window"] for r in rows)
    rows = [r for r in rows if r["config"]["sub_window"] == smallest]
    cores = [str(k) for k in dict.fromkeys(r["config"]["cores"] for r in rows)]
    with chart("circuit-latency") as axes:
        bottom = [0.0] * len(cores)
        for stage in dict.fromkeys(r["config"]["stage"] for r in rows if r["metric"] == "stage_cycles"):
            part = [r["value"] for r in rows if r["config"].get("stage") == stage]
            axes.bar(cores, part, bottom=bottom, label=stage)
            bottom = [a + b for a, b in zip(bottom, part, strict=True)]
        axes.plot(cores, [r["value"] for r in rows if r["metric"] == "model_cycles"], ".--", color=INK,
                  label="model d·T + w·P + g·T")
        axes.set(xlabel="join cores", ylabel="cycles from a probe to its star",
                 title=f"Latency of a probe, idle circuit, {smallest} stored tuples a core")
        axes.set_ylim(0, max(bottom) * 1.4)
        axes.legend(ncols=2, loc="upper left")


def draw_session(files: Files) -> None:
    """From push to result on the CPU: percentiles against the load."""
    rows = pick(files, "latency", "push_to_result_ms")
    loads = list(dict.fromkeys(r["config"]["load"] for r in rows))
    percentiles = dict.fromkeys(r["config"]["percentile"] for r in rows)
    with chart("session-latency") as axes:
        bars(axes, loads, {f"{p:g} % of the batches take less": [r["value"] for r in rows
                                                               if r["config"]["percentile"] == p]
                           for p in percentiles}, "%.1f")
        axes.set(xlabel="load, of the highest rate that can be sustained", ylabel="milliseconds from push to result",
                 title=f"Latency of a session on one thread, windows of {rows[0]['config']['window']:,} tuples")
        axes.set_ylim(top=1.1 * max(r["value"] for r in rows))
        axes.legend(loc="upper left")


def draw_engines(files: Files) -> None:
    """Tuples a second of the index and of the rivals, against the window."""
    lines: dict[str, dict[int, float]] = {}
    names: list[tuple[str, str, Callable[[str], str]]] = [
        ("index_mtuples_per_s", "splitjoin", lambda _: "splitjoin"),
        ("duckdb_mtuples_per_s", "duckdb", lambda engine: engine.replace("duckdb", "DuckDB")),
        ("polars_mtuples_per_s", "polars", lambda engine: engine.replace("polars", "Polars"))]
    for metric, _, label in names:
        for row in pick(files, "cpu", metric, batch=8192):
            lines.setdefault(label(row["config"]["engine"]), {})[row["config"]["window"]] = row["value"] * 1e6
    with chart("engines") as axes:
        for label, points in lines.items():
            axes.plot(sorted(points), [points[k] for k in sorted(points)], label=label)
        windows = sorted({k for points in lines.values() for k in points})
        axes.set(xscale="log", yscale="log", xlabel="tuples of each stream in the window",
                 ylabel="tuples a second on one thread", title="Two bands, batches of 8,192 tuples, ordered results")
        axes.set_xticks(windows, [f"{k:,}" for k in windows])
        axes.minorticks_off()
        axes.figure.legend(loc="outside upper center", ncols=2)


def draw_intervals(files: Files) -> None:
    """Tuples a second of the engines on each workload, against the partners of a base tuple."""
    if "oij" not in files:
        return
    names = {"ours": "splitjoin", "scale-oij": "Scale-OIJ", "key-oij": "Key-OIJ", "duckdb": "DuckDB"}
    lines: dict[str, dict[float, float]] = {}
    for sweep in ("engines", "window", "keys", "long windows", "hot keys"):
        for row in pick(files, "oij", "oij_rate", sweep=sweep):
            config = row["config"]
            if config["engine"] in names and "partners" in config:
                lines.setdefault(names[config["engine"]], {})[max(config["partners"], 0.05)] = row["value"] * 1e6
    with chart("interval-joins") as axes:
        for label, points in lines.items():
            axes.plot(sorted(points), [points[k] for k in sorted(points)], label=label)
        axes.set(xscale="log", yscale="log", xlabel="partners of a base tuple",
                 ylabel="tuples of both streams a second, one thread",
                 title="count and sum of the partners with an equal key\nwithin an interval")
        axes.legend()


def draw_spark(files: Files) -> None:
    """Rows a second of streaming joins in Spark, by way and window."""
    rows = pick(files, "spark", "stream")
    windows = list(dict.fromkeys(r["config"]["window_s"] for r in rows))
    with chart("spark-streams") as axes:
        dots(axes, [f"±{window} s" for window in windows],
             {way: {f"±{r['config']['window_s']} s": r["value"] for r in rows if r["config"]["way"] == way}
              for way in dict.fromkeys(r["config"]["way"] for r in rows)})
        axes.set(ylabel="window", xlabel="thousand rows a second",
                 title=f"Streaming joins in Spark on {rows[0]['config']['cores']} cores, two bands")
        plain(axes.xaxis)
        axes.figure.legend(loc="outside upper center")


def draw_hour(files: Files) -> None:
    """Seconds of the three joins on each engine, points on a log axis, a chart a size; what a limit ended stands there.
    Without results of the first hour, nothing.
    """
    found = files.get("first_hour")
    if found is None:
        return
    rows = [r for r in found["rows"] if r["metric"] == "join_cpu_seconds"]
    sizes, joins, engines = (list(dict.fromkeys(r["config"][key] for r in rows)) for key in ("rows", "join", "engine"))
    limit = max((r["value"] for r in rows if r["config"]["run"].startswith("ended")), default=None)
    figure, grid = plt.subplots(len(sizes), 1, figsize=(WIDTH, 0.6 + 2.2 * len(sizes)), layout="constrained",
                                sharex=True, squeeze=False)
    for axes, size in zip(grid.flat, sizes, strict=True):
        series: dict[str, dict[str, float | None]] = {}
        for engine in engines:
            mine = pick(files, "first_hour", "join_cpu_seconds", rows=size, engine=engine)
            took = {r["config"]["join"]: r["value"] for r in mine if r["config"]["run"] == "second"}
            series[_NAMES.get(engine, engine)] = {r["config"]["join"]: took.get(r["config"]["join"]) for r in mine}
        dots(axes, joins, series, limit or 0.0)
        if limit is not None:
            axes.axvline(limit, color=INK, ls=":", lw=1)
        axes.set_yticks(range(len(joins)), [re.split(r":| within|,", join)[0] for join in joins])
        axes.set_title(f"{size:,} rows a side")
    grid.flat[-1].set_xlabel("CPU seconds of the second run" + ("" if limit is None else (
        f"\nhollow: ended at {limit:g} s (dotted) or by lack of memory")))
    figure.legend(*grid.flat[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(engines))
    save(figure, "first-hour")


def draw_sustained(files: Files) -> None:
    """Cycles of a tuple against its results: circuits measured (points) and predicted (lines), by order of arrival."""
    rows = [row for row in pick(files, "circuits", "cycles_per_tuple")
            if row["config"]["window"] == row["config"]["cores"] * row["config"]["sub_window"]]
    if not rows:
        return
    names = {"alternating": "both streams alternating", "random": "both at random", "bursts": "bursts of 32"}
    figure, grid = plt.subplots(len(names), 1, figsize=(WIDTH, 8.5), layout="constrained", sharex=True)
    for axes, (arrival, title) in zip(grid.flat, names.items(), strict=True):
        designs: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            config = row["config"]
            if config["input"] == arrival:
                designs.setdefault(f"{config['cores']} × {config['lanes']} × {config['probes']}, window "
                                   f"{config['window']:,}", []).append(row)
        for name, mine in designs.items():
            at = [row["config"]["matches"] for row in mine]
            line, = axes.plot(at, [row["config"]["predicted"] for row in mine], marker="")
            axes.plot(at, [row["value"] for row in mine], "o", color=line.get_color(), label=name)
        axes.set(title=title, ylabel="cycles a tuple", yscale="log")
    grid.flat[-1].set_xlabel("results of a tuple; lines: predicted")
    figure.legend(*grid.flat[0].get_legend_handles_labels(), loc="outside upper center", ncols=2,
                  title="cores × lanes × probes")
    save(figure, "sustained")


def draw_external(files: Files) -> None:
    """Share of the peak that a region reaches behind external memories, against the probes of a batch."""
    if "external" not in files:
        return
    rows = files["external"]["rows"]
    longest = max(row["config"]["window"] for row in rows)
    with chart("external-memory") as axes:
        for name in dict.fromkeys(row["config"]["memory"] for row in rows):
            mine = pick(files, "external", "external_efficiency", memory=name, window=longest)
            if mine:
                axes.plot([row["config"]["probes"] for row in mine], [row["value"] for row in mine],
                          label=f"{name}: {mine[0]['config']['bytes a cycle']:.3g} bytes a cycle")
        axes.set(xlabel="probes of a batch", ylabel="share of the peak", xscale="log", ylim=(0, 1.05),
                 title=f"128 comparators, window of {longest:,} tuples of 8 bytes,\nby a model")
        axes.set_xticks([1, 4, 16, 64, 256, 1024], ["1", "4", "16", "64", "256", "1,024"])
        axes.legend()


def draw_all(files: Files) -> None:
    """All charts but those against cores."""
    for draw in (draw_hour, draw_engines, draw_intervals, draw_session, draw_spark, draw_stages,
                 draw_sustained, draw_external):
        draw(files)
