"""Rows of figures: metric, value, unit, configuration, how measured; one JSON file a script.

Full runs write the committed files in bench/results/, `--quick` ones files of the same names in build/bench/.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
#: Where quick runs write, which git ignores.
QUICK = Path(__file__).parent.parent / "build" / "bench"


class Recorder:
    """Collects rows, prints each as it comes, and writes them when done: those of a ``quick`` run beside the committed.

    Scripts that share a file have a ``part`` of it each: a run replaces the rows of its part, and the others' stay.
    ``common``: what the configurations of all rows have.
    """

    def __init__(self, name: str, *, quick: bool, part: str | None = None, common: Mapping[str, Any] | None = None):
        self._path = (QUICK if quick else RESULTS) / f"{name}.json"
        self._quick, self._part, self._common = quick, part, dict(common or {})
        self._rows: list[dict[str, Any]] = []

    def add(self, metric: str, value: float, unit: str, config: dict[str, Any], how: str) -> None:
        """One figure."""
        row: dict[str, Any] = {"metric": metric, "value": value, "unit": unit, "config": config | self._common,
                               "how": how}
        if self._part is not None:
            row |= {"part": self._part, "quick": self._quick}
        self._rows.append(row)
        print(f"{metric:28} {value:>12,.4g} {unit:18} {configuration(row)}", flush=True)

    def keep(self, which: Callable[[dict[str, Any]], bool]) -> None:
        """Take over those rows of the part that are in the file and for which ``which`` holds."""
        if self._path.exists():
            self._rows += [row for row in json.loads(self._path.read_text())["rows"]
                           if row.get("part") == self._part and which(row)]

    def keep_others(self) -> None:
        """Take over those rows of the part whose configurations, but for predictions, were not measured anew."""
        def measured(row: dict[str, Any]) -> dict[str, Any]:
            return {name: value for name, value in row["config"].items() if "predicted" not in name}

        new = [measured(row) for row in self._rows]
        self.keep(lambda row: measured(row) not in new)

    def sort(self, key: Callable[[dict[str, Any]], Any]) -> None:
        """Put all figures so far in the order of ``key``."""
        self._rows.sort(key=key)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All figures so far."""
        return list(self._rows)

    def write(self) -> Path:
        """Write the file, whole or not at all."""
        rows = self._rows
        if self._part is not None and self._path.exists():
            others = json.loads(self._path.read_text())["rows"]
            rows = [*(row for row in others if row["part"] != self._part), *rows]
        machine = {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count(),
                   "python": platform.python_version()}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps({"quick": self._quick, "machine": machine, "rows": rows}, indent=1) + "\n")
        part.replace(self._path)
        return self._path


def commit() -> str:
    """The commit of the checkout that is measured, with a ``+`` if files differ from it; "unknown" in a copy of files
    without history.
    """
    found = subprocess.run(["git", "describe", "--always", "--abbrev=8", "--dirty=+", "--exclude=*"], text=True,
                           cwd=RESULTS.parent, capture_output=True, check=False)
    return found.stdout.strip() or "unknown"


def committed(name: str) -> list[dict[str, Any]]:
    """The committed rows of the file ``name``; none if there is no such file."""
    path = RESULTS / f"{name}.json"
    found: list[dict[str, Any]] = json.loads(path.read_text())["rows"] if path.exists() else []
    return found


def configuration(row: dict[str, Any]) -> str:
    """A row's configuration in a line."""
    return ", ".join(f"{k} {v}" for k, v in row["config"].items())


def options_of(description: str) -> argparse.ArgumentParser:
    """The options that every script has, for a script to add its own."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="fewer and smaller cases, about a minute; "
                        "results go to build/bench/")
    return parser


def arguments(description: str) -> argparse.Namespace:
    """The options that every script has."""
    return options_of(description).parse_args()
