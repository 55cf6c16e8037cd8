"""Spark's event logs: executions, their last physical plans, and what their tasks counted."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from splitjoin.base.errors import InputError, first_line

__all__ = ["Application", "Execution", "Node", "read_logs"]

#: Compressed logs that no package here reads, by the ending that Spark gives them.
_OTHERS = {".lz4": "lz4", ".snappy": "snappy", ".lzf": "lzf", ".zstd": "zstd"}


@dataclass(frozen=True)
class Node:
    """A node of a physical plan.

    ``text``: how Spark prints it; ``metrics``: the names of its metrics → the numbers of their accumulators.
    """

    name: str
    text: str
    children: tuple[Node, ...]
    metrics: Mapping[str, int]

    def walk(self) -> Iterator[Node]:
        """The node, and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass
class Execution:
    """A query that ran. ``plan``: the last one, as adaptive execution changes it."""

    number: int
    description: str
    plan: Node


@dataclass
class Application:
    """Contents of one application's event logs.

    Attributes:
        name: The application's name and id.
        executions: Its queries, by number.
        values: The values of accumulators.
        seconds: Time that tasks ran, by the accumulators that these tasks updated.
        damaged: What could not be read, in words, or empty.
    """

    name: str = "?"
    executions: dict[int, Execution] = field(default_factory=dict)
    values: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    seconds: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    damaged: str = ""


def read_logs(paths: Sequence[str | Path]) -> list[Application]:
    """The applications in event logs: files, folders of logs, and rolling logs (folders ``eventlog_v2_…``).

    Raises `InputError` for what is not there, holds no event log, or is compressed in a way that is not read. A log
    that ends early or has damaged lines is read as far as it goes, and says so.
    """
    found = [log for path in paths for log in _logs(Path(path))]
    return [_read(log) for log in found]


def _logs(path: Path) -> list[list[Path]]:
    """The logs at ``path``, each as its files in order."""
    if not path.exists():
        raise InputError(f"there is no event log at {str(path)!r}; give the files or folders that Spark wrote to "
                         f"spark.eventLog.dir")
    if path.is_file():
        return [[path]]
    if path.name.startswith("eventlog_v2_"):
        parts = [p for p in path.iterdir() if p.name.startswith("events_")]
        return [sorted(parts, key=lambda p: int(p.name.split("_")[1]))]
    logs = [log for child in sorted(path.iterdir()) if not child.name.startswith(".") for log in _logs(child)]
    if not logs:
        raise InputError(f"{str(path)!r} holds no event log; give the folder of spark.eventLog.dir")
    return logs


def _lines(path: Path) -> Iterator[str]:
    ending = path.suffix if path.suffix != ".inprogress" else Path(path.stem).suffix
    if ending in _OTHERS:
        raise InputError(f"{str(path)!r} is compressed by {_OTHERS[ending]}, which is not read here; unpack it, or let "
                         f"Spark write logs with spark.eventLog.compress=false")
    if ending == ".gz":
        with gzip.open(path, "rt", encoding="utf-8", errors="replace") as lines:
            yield from lines
    else:
        with path.open(encoding="utf-8", errors="replace") as lines:
            yield from lines


def _read(parts: Sequence[Path]) -> Application:
    app, wrong, any_event = Application(), 0, False
    for part in parts:
        try:
            for line in _lines(part):
                try:
                    event = json.loads(line)
                    kind = event["Event"].rpartition(".")[2]
                except (ValueError, KeyError, TypeError, AttributeError):
                    wrong += 1
                    continue
                any_event = True
                _take(app, kind, event)
        except (OSError, EOFError) as error:
            app.damaged = f"{part.name} ends early: {first_line(error)}"
    if not any_event:
        raise InputError(f"{str(parts[0])!r} is no event log of Spark: no line of it is an event")
    if wrong:
        app.damaged = f"{wrong} {'line' if wrong == 1 else 'lines'} could not be read"
    return app


def _take(app: Application, kind: str, event: Mapping[str, Any]) -> None:
    """Add what ``event`` says."""
    match kind:
        case "SparkListenerApplicationStart":
            app.name = f"{event.get('App Name', '?')} ({event.get('App ID', '?')})"
        case "SparkListenerSQLExecutionStart":
            number = event["executionId"]
            app.executions[number] = Execution(number, str(event.get("description", "")), _node(event["sparkPlanInfo"]))
        case "SparkListenerSQLAdaptiveExecutionUpdate":
            if event["executionId"] in app.executions:
                app.executions[event["executionId"]].plan = _node(event["sparkPlanInfo"])
        case "SparkListenerDriverAccumUpdates":
            for number, value in event["accumUpdates"]:
                app.values[number] += int(value)
        case "SparkListenerTaskEnd":
            info = event.get("Task Info") or {}
            seconds = (event.get("Task Metrics") or {}).get("Executor Run Time", 0) / 1000
            for update in info.get("Accumulables", []):
                app.seconds[update["ID"]] += seconds
                if str(update.get("Update", "")).lstrip("-").isdigit():
                    app.values[update["ID"]] += int(update["Update"])


def _node(info: Mapping[str, Any]) -> Node:
    return Node(str(info.get("nodeName", "")), str(info.get("simpleString", "")),
                tuple(_node(child) for child in info.get("children", [])),
                {m["name"]: m["accumulatorId"] for m in info.get("metrics", [])})
