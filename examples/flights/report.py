"""Output of the main job: the first results as a table, the counters, and a picture of the latencies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from splitjoin import ToolError
from splitjoin.spark import Latencies

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NEW_YORK = ZoneInfo("America/New_York")


def table_lines(pairs: pa.Table) -> list[str]:
    """A text table of result rows (columns ``departed_r``, ``carrier_r``, … of the main job), New York time."""
    rows: list[tuple[str, ...]] = [("left", "flight", "from", "to", "left", "flight", "from", "to", "apart")]
    for pair in pairs.to_pylist():
        times = {side: pair[f"departed_{side}"].astimezone(_NEW_YORK) for side in "rs"}
        row: list[str] = []
        for side, form in (("r", "%Y-%m-%d %H:%M"), ("s", "%H:%M")):
            row += [times[side].strftime(form), f"{pair[f'carrier_{side}']} {pair[f'flight_{side}']}",
                    pair[f"origin_{side}"], pair[f"dest_{side}"]]
        minutes = abs((times["r"] - times["s"]).total_seconds()) / 60
        rows.append((*row, f"{minutes:.0f} min"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [lines[0], "-" * max(map(len, lines)), *lines[1:]]


def counter_lines(tuples: int, warm: int, counters: Mapping[str, int]) -> list[str]:
    """Departures and the device's counters, one a line, and comparisons per cycle where both are counted."""
    numbers: dict[str, str] = {"departures": f"{tuples:,}", "of them read twice": f"{warm:,}"}
    numbers |= {name.replace("_", " "): f"{n:,}" for name, n in counters.items()}
    if counters.get("cycles") and "comparisons" in counters:
        numbers["comparisons per cycle"] = f"{counters['comparisons'] / counters['cycles']:.3f}"
    width, digits = max(map(len, numbers)), max(map(len, numbers.values()))
    return [f"{name.ljust(width)}  {n.rjust(digits)}" for name, n in numbers.items()]


def draw_latencies(latencies: Latencies, title: str, path: Path) -> None:
    """A PNG with the histogram of cycles per probe and its percentiles.

    Raises `ToolError` when matplotlib is missing, `ValueError` when nothing was measured.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ToolError(f"the picture needs the Python package {error.name!r}, which is not installed; "
                        f"pip install 'splitjoin[flights]'") from error
    figure = Figure(figsize=(10, 6), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    _draw(axes, latencies)
    axes.set_title(title, loc="left")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)  # inside it would cover bars
    figure.savefig(path)


def _draw(axes: Axes, latencies: Latencies) -> None:
    last = latencies.percentile(100)
    # Whole cycles a bar, about a hundred bars.
    first = int(latencies.cycles[0])
    width = max(1, -(-(last + 1 - first) // 100))
    edges = np.arange(first, last + width + 1, width) - 0.5
    axes.hist(latencies.cycles, bins=edges.tolist(), weights=latencies.counts, color="#9ab8d8")
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.5)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    styles = ((50, "#222222", "-"), (90, "#b8860b", "--"), (99, "#c05020", "-."), (99.9, "#a01030", ":"))
    for q, color, style in styles:
        cycles = latencies.percentile(q)
        axes.axvline(cycles, color=color, linestyle=style, label=f"{q:g} % of probes within {cycles:,} cycles")
    axes.plot([], [], " ", label=f"longest {last:,} cycles")
    axes.set_xlabel("cycles from accepting a probe to the end of its results")
    axes.set_ylabel(f"probes (log scale), {width} cycle{'s' if width > 1 else ''} a bar")
    axes.spines[["top", "right"]].set_visible(False)
