"""Spark's event logs: executions, their last physical plans, and what their tasks counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from splitjoin.base.errors import InputError, plural
from splitjoin.base.json_text import parsed_json

from .log_files import MOST_LINE, CutShort, lines, logs_at

#: The metric that counts the rows that a node gives.
ROWS = "number of output rows"
#: The longest text of a node that is kept, in characters, and the end of a longer one.
MOST_TEXT, CUT = 32_768, " … (cut)"
#: What a node takes in memory, about, in bytes, without its text.
_NODE = 1000
#: After so many lines that are no event, what follows them in a file is not read.
_MOST_WRONG = 10_000
#: Numbers in a log are below this: Spark's are int64.
_LARGE = 2**63
#: The errors of an event that is not as Spark writes it.
_WRONG = (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError)


@dataclass(frozen=True)
class PlanNode:
    """A node of a physical plan.

    ``text``: how Spark prints it; ``metrics``: the names of its metrics → the numbers of their accumulators;
    ``schema``: the columns that a scan of files reads, as Spark prints their types, or empty.
    """

    name: str
    text: str
    children: tuple[PlanNode, ...]
    metrics: Mapping[str, int]
    schema: str = ""

    def walk(self) -> Iterator[PlanNode]:
        """The node, and all below it."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.children)


@dataclass
class QueryRun:
    """A query that ran. ``plan``: the last one, as adaptive execution changes it."""

    number: int
    description: str
    plan: PlanNode


@dataclass
class Application:
    """Contents of one application's event logs.

    Attributes:
        name: The application's name and id.
        executions: Its queries, by number.
        counts: For each accumulator that counts rows, the rows of each partition. A partition that was computed
            several times counts once: Spark runs the streamed side of some outer joins twice.
        values: What the driver counted, by accumulator.
        stages: The stages whose tasks updated an accumulator.
        products: For each stage that makes Cartesian products, the partitions of their left and right inputs.
        seconds: Time that tasks ran, by the accumulators that these tasks updated.
        zone: The time zone in which Spark prints timestamps, or empty.
        damaged: What could not be read, in words.
    """

    name: str = "?"
    executions: dict[int, QueryRun] = field(default_factory=dict)
    counts: dict[int, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    values: dict[int, int] = field(default_factory=dict)
    stages: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    products: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    zone: str = ""
    damaged: list[str] = field(default_factory=list)

    def rows(self, accumulator: int | None) -> int | None:
        """The rows that an accumulator counted, or None where the log does not say."""
        if accumulator in self.counts:
            return sum(self.counts[accumulator].values())
        return None if accumulator is None else self.values.get(accumulator)


def read_logs(paths: Sequence[str | Path], *, plan_bytes: int = 2**28,
              counts: int = 2_000_000) -> tuple[list[Application], list[str]]:
    """The applications in event logs, and which logs could not be read, and why.

    ``paths``: files, folders of logs, and rolling logs (folders ``eventlog_v2_…``). A log that ends early or has
    damaged lines is read as far as it goes, and says so. ``plan_bytes``: what an application's plans may take in
    memory, about. ``counts``: the counts of tasks that are kept of an application. Raises `InputError` where there is
    no log that can be read.
    """
    found, refused = list[Application](), list[InputError]()
    for path in paths:
        for log in logs_at(Path(path)):
            try:
                found.append(_read(log, _EventReader(plan_bytes, counts)))
            except InputError as error:
                refused.append(error)
    if not found and refused:
        raise refused[0]
    return found, [str(error) for error in refused]


def _read(parts: Sequence[Path], reader: _EventReader) -> Application:
    for part in parts:
        try:
            for line in lines(part):
                reader.take(line)
                if reader.wrong >= _MOST_WRONG:
                    raise CutShort(f"{part.name} is not read to its end: too many lines of the log are no event")
        except CutShort as error:
            reader.app.damaged.append(str(error))
    for count, what, said in ((reader.wrong, "line", "could not be read"),
                              (reader.long, "line", f"left out: longer than {MOST_LINE:,} bytes"),
                              (reader.left_out, "event", "left out: more plans or counts than are kept")):
        if count:
            reader.app.damaged.append(f"{count:,} {plural(count, what)} {said}")
    if not reader.events:
        reasons = "; ".join(reader.app.damaged) or "it holds no event"
        raise InputError(f"{str(parts[0])!r} is no event log of Spark: {reasons}")
    return reader.app


class _EventReader:
    """Adds the events of a log to an application. An event that is not as Spark writes it changes nothing.
    ``plan_bytes``, ``counts``: as of `read_logs`.
    """

    def __init__(self, plan_bytes: int, counts: int) -> None:
        self._plan_bytes, self._most_counts = plan_bytes, counts
        self.app = Application()
        self.events = self.wrong = self.long = self.left_out = 0
        self._plans: dict[int, int] = {}
        self._all_plans = self._counts = 0

    def take(self, line: bytes | None) -> None:
        """Add the event of a line; None stands for a line that is too long."""
        if line is None:
            self.long += 1
            return
        if not line.strip():
            return
        try:
            event = parsed_json(line.decode("utf-8", "replace"))
            kind = event["Event"].rpartition(".")[2]
            self._take(kind, event)
        except _WRONG:
            self.wrong += 1
        else:
            self.events += 1

    def _take(self, kind: str, event: Mapping[str, Any]) -> None:
        app = self.app
        match kind:
            case "SparkListenerApplicationStart":
                app.name = f"{_short(event.get('App Name', '?'))} ({_short(event.get('App ID', '?'))})"
            case "SparkListenerEnvironmentUpdate":
                set_, system = (event.get(of) or {} for of in ("Spark Properties", "System Properties"))
                app.zone = _short(set_.get("spark.sql.session.timeZone") or system.get("user.timezone"))
            case "SparkListenerSQLExecutionStart":
                number, plan = _whole(event["executionId"]), _EventPlan(event["sparkPlanInfo"])
                if self._keeps(number, plan):
                    app.executions[number] = QueryRun(number, _short(event.get("description", "")), plan.root)
            case "SparkListenerSQLAdaptiveExecutionUpdate":
                number, plan = _whole(event["executionId"]), _EventPlan(event["sparkPlanInfo"])
                if number in app.executions and self._keeps(number, plan):
                    app.executions[number].plan = plan.root
            case "SparkListenerDriverAccumUpdates":
                updates = [(_whole(number), _whole(value)) for number, value in event["accumUpdates"]]
                for number, value in updates:
                    app.values[number] = app.values.get(number, 0) + value
            case "SparkListenerStageCompleted":
                stage, products = _whole(event["Stage Info"]["Stage ID"]), _products(event["Stage Info"])
                if products:
                    app.products[stage] = products
            case "SparkListenerTaskEnd":
                self._task(event)

    def _keeps(self, number: int, plan: _EventPlan) -> bool:
        """True if there is room for the plan of an execution, which takes the place of the one before."""
        size = self._all_plans - self._plans.get(number, 0) + plan.size
        if size > self._plan_bytes:
            self.left_out += 1
            return False
        self._plans[number], self._all_plans = plan.size, size
        return True

    def _task(self, event: Mapping[str, Any]) -> None:
        info = event.get("Task Info") or {}
        stage = _whole(event.get("Stage ID", 0))
        partition = _whole(info.get("Partition ID", info.get("Task ID", 0)))  # Spark names partitions from 3.3 on
        seconds = _whole((event.get("Task Metrics") or {}).get("Executor Run Time", 0)) / 1000
        updates = [(_whole(u["ID"]), _update(u["Update"])) for u in info.get("Accumulables", [])
                   if u.get("Name") == ROWS and "Update" in u]
        if self._counts + len(updates) > self._most_counts:
            self.left_out += 1
            return
        self._counts += len(updates)
        for number in {number for number, _ in updates}:
            self.app.seconds[number] += seconds
            self.app.stages[number].add(stage)
        for number, value in updates:
            rows = self.app.counts[number]
            rows[partition] = max(rows.get(partition, 0), value)


class _EventPlan:
    """The plan of an event: ``root``, and its ``size`` in memory, about, in bytes."""

    def __init__(self, info: Mapping[str, Any]):
        self.size = 0
        self.root = self._node(info)

    def _node(self, info: Mapping[str, Any]) -> PlanNode:
        # A node of streams has two of this name, of which the second is for Python.
        metrics = {m["name"]: _whole(m["accumulatorId"]) for m in reversed(info.get("metrics", []))
                   if m["name"] == ROWS}
        text, schema = _short(info.get("simpleString", "")), _short((info.get("metadata") or {}).get("ReadSchema", ""))
        self.size += _NODE + len(text) + len(schema)
        return PlanNode(_short(info.get("nodeName", "")), text, tuple(self._node(c) for c in info.get("children", [])),
                    metrics, schema)


def _short(text: object) -> str:
    said = text if isinstance(text, str) else "" if text is None else str(text)
    return said if len(said) <= MOST_TEXT else said[:MOST_TEXT] + CUT


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _LARGE:
        raise ValueError(value)
    return value


def _update(value: object) -> int:
    """The number of an accumulator's update, which Spark writes as text."""
    return _whole(int(value) if isinstance(value, str) else value)


def _products(info: Mapping[str, Any]) -> list[tuple[int, int]]:
    """The numbers of partitions of the left and the right input of each Cartesian product in a stage."""
    rdds = {_whole(rdd["RDD ID"]): rdd for rdd in info.get("RDD Info", [])}
    made = [rdd["Parent IDs"] for rdd in rdds.values() if rdd.get("Name") == "UnsafeCartesianRDD"]
    return [(_whole(rdds[left]["Number of Partitions"]), _whole(rdds[right]["Number of Partitions"]))
            for left, right in made]
