"""The circuit's figures in bench/results/circuits.json: as tables, and as a picture of each against the cores."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt

from bench.charts import save
from bench.record import RESULTS, configuration

Row = dict[str, Any]


@dataclass(frozen=True)
class Panel:
    """A metric against the number of cores: a line for each ``label`` of the rows that have one."""

    metric: str
    title: str
    label: Callable[[Row], str | None]
    limit: float | None = None
    log: bool = False


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


def _indexed(row: Row) -> str | None:
    c = row["config"]
    return f"{c['condition']}, {c['core']}" if c["window"] == 2**15 else None


#: With the figure that each is held to, where one holds whatever the number of cores.
PANELS = (
    Panel("scan_efficiency", "comparisons a cycle, of peak", _scan, 0.99),
    Panel("latency_constant_cycles", "latency − scan − trees, cycles", _idle, 24),
    Panel("index_cycles_per_tuple", "cycles a tuple and core, window 2¹⁵", _indexed, 8, log=True),
    Panel("ecp5_lut4_per_comparison", "ECP5 LUT4 a comparison", _mapped, 190),
    Panel("ecp5_mhz", "ECP5-85F, routed, MHz", _mapped),
    Panel("ecp5_peak_gcmps", "ECP5-85F, routed, Gcmp/s", _mapped, log=True),
    Panel("xcup_lut_per_comparison", "UltraScale+ LUT a comparison", _mapped),
    Panel("verilog_seconds", "CPU seconds to generate Verilog", lambda row: _shape(row["config"]), 20),
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
    figure, grid = plt.subplots(3, 3, figsize=(12, 10), layout="constrained")
    found = rows()
    for panel, axes in zip(PANELS, grid.flat, strict=True):
        lines: dict[str, dict[int, float]] = {}
        for row in found:
            label = panel.label(row) if row["metric"] == panel.metric else None
            if label is not None:
                lines.setdefault(label, {})[row["config"].get("cores", 1)] = row["value"]
        for label, points in lines.items():
            axes.plot(sorted(points), [points[k] for k in sorted(points)], "o-", label=label)
        if panel.limit is not None:
            axes.axhline(panel.limit, color="k", linestyle=":", label=f"{panel.limit:g}")
        axes.set_xscale("log", base=2)
        cores = sorted({k for points in lines.values() for k in points})
        axes.set_xticks(cores, [str(k) for k in cores])
        axes.minorticks_off()
        if panel.log:
            axes.set_yscale("log")
        else:
            axes.set_ylim(*((0.9, 1.005) if panel.metric == "scan_efficiency" else (0, None)))
        axes.set(xlabel="cores", title=panel.title)
        axes.legend(fontsize=8)
    return save(figure, "against-cores")
