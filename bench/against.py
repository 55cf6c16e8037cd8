"""The circuit's figures in bench/results/circuits.json: as tables, and as a picture of each against the cores."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt

from bench.charts import INK, WIDTH, save
from bench.record import RESULTS, configuration

Row = dict[str, Any]


@dataclass(frozen=True)
class Panel:
    """A metric against the number of cores: a line for each ``label`` of the rows that have one."""

    metric: str
    title: str
    label: Callable[[Row], str | None]
    limit: float | None = None


def _shape(config: Row) -> str:
    return f"L = {config['lanes']}, B = {config['probes']}"


def _scan(row: Row) -> str | None:
    c = row["config"]
    wanted = (c["input"], c["order"], c["sub_window"]) == ("alternating", "total", 512)
    return _shape(c) if wanted and (c["lanes"], c["probes"]) == (2, 4) else None


def _idle(row: Row) -> str | None:
    c = row["config"]
    return _shape(c) if c["sub_window"] == 16 else None


def _mapped(row: Row) -> str | None:
    c = row["config"]
    return None if c["part"] == "matcher" else _shape(c)


#: With the figure that each is held to, where one holds whatever the number of cores. The table has other metrics.
PANELS = (
    Panel("scan_efficiency", "comparisons a cycle, of peak (axis from 0.9)", _scan, 0.99),
    Panel("latency_constant_cycles", "latency − scan − trees, cycles", _idle, 24),
    Panel("ecp5_lut4_per_comparison", "ECP5 LUT4 a comparison", _mapped, 190),
    Panel("ecp5_mhz", "ECP5-85F, routed, MHz", _mapped),
    Panel("verilator_build_seconds", "CPU seconds to build a model", lambda row: _shape(row["config"]), 60),
)


def rows() -> list[Row]:
    """All rows of the circuit."""
    found: list[Row] = json.loads((RESULTS / "circuits.json").read_text())["rows"]
    return found


def tables() -> str:
    """A table for each metric: the value, and the configuration that it belongs to."""
    lines: list[str] = []
    found = rows()
    for metric in dict.fromkeys(row["metric"] for row in found):
        mine = [row for row in found if row["metric"] == metric]
        lines.append(f"\n{metric}, {mine[0]['unit']}")
        lines += [f"  {row['value']:>12,.4g}  {configuration(row)}" for row in mine]
    return "\n".join(lines)


def draw() -> Path:
    """The picture: a panel for each metric."""
    figure, grid = plt.subplots(len(PANELS), 1, figsize=(WIDTH, 2.8 * len(PANELS)), layout="constrained")
    found = rows()
    for panel, axes in zip(PANELS, grid.flat, strict=True):
        lines: dict[str, dict[int, float]] = {}
        for row in found:
            label = panel.label(row) if row["metric"] == panel.metric else None
            if label is not None:
                lines.setdefault(label, {})[row["config"].get("cores", 1)] = row["value"]
        for label, points in lines.items():
            axes.plot(sorted(points), [points[k] for k in sorted(points)], label=label)
        if panel.limit is not None:
            axes.axhline(panel.limit, color=INK, linestyle=":", label=f"{panel.limit:g}")
        axes.set_xscale("log", base=2)
        cores = sorted({k for points in lines.values() for k in points})
        axes.set_xticks(cores, [str(k) for k in cores])
        axes.minorticks_off()
        top = max(panel.limit or 0, *(value for points in lines.values() for value in points.values()))
        axes.set_ylim(*((0.9, 1.005) if panel.metric == "scan_efficiency" else (0, 1.1 * top)))
        axes.set(xlabel="cores", title=panel.title)
        axes.legend(ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.3))
    return save(figure, "against-cores")
