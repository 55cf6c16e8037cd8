"""Rows of figures: metric, value, unit, configuration, how measured; one JSON file a script in bench/results/."""

from __future__ import annotations

import argparse
import json
import os
import platform
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


class Recorder:
    """Collects rows, prints each as it comes, and writes them when done."""

    def __init__(self, name: str, *, quick: bool):
        self._path = RESULTS / f"{name}.json"
        self._quick = quick
        self._rows: list[dict[str, Any]] = []

    def add(self, metric: str, value: float, unit: str, config: dict[str, Any], how: str) -> None:
        """One figure."""
        self._rows.append({"metric": metric, "value": value, "unit": unit, "config": config, "how": how})
        shown = ", ".join(f"{k} {v}" for k, v in config.items())
        print(f"{metric:28} {value:>12,.4g} {unit:18} {shown}", flush=True)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All figures so far."""
        return list(self._rows)

    def write(self, *, beside: bool = False) -> Path:
        """Write the file, whole or not at all. With ``beside`` its rows of other metrics than these stay."""
        mine = {row["metric"] for row in self._rows}
        others = json.loads(self._path.read_text())["rows"] if beside and self._path.exists() else []
        rows = [*(row for row in others if row["metric"] not in mine), *self._rows]
        machine = {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count(),
                   "python": platform.python_version()}
        RESULTS.mkdir(exist_ok=True)
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps({"quick": self._quick, "machine": machine, "rows": rows}, indent=1) + "\n")
        part.replace(self._path)
        return self._path


def options_of(description: str) -> argparse.ArgumentParser:
    """The options that every script has, for a script to add its own."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="fewer and smaller cases, about a minute")
    return parser


def arguments(description: str) -> argparse.Namespace:
    """The options that every script has."""
    return options_of(description).parse_args()
