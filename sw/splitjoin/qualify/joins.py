"""Joins in physical plans that splitjoin could run: `qualify`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from splitjoin.base.errors import SplitJoinError
from splitjoin.lang.schema import SIDES, Schema, Side
from splitjoin.lang.sql.parser import parse_sql

from .events import Application, Execution, Node, read_logs

__all__ = ["RATE", "Candidate", "qualify"]

#: Rows of both inputs that a batch join in Spark takes a second and core, as bench/spark.py measured them.
RATE = 440_000.0

#: Nodes that compare every row of one side with every row of the other.
_LOOPS = ("BroadcastNestedLoopJoin", "CartesianProduct")
#: Nodes that join by equality first; what is left over is tested for every pair of equal keys.
_BY_KEY = ("SortMergeJoin", "ShuffledHashJoin", "BroadcastHashJoin")
_ROWS = "number of output rows"
#: Kinds of join as Spark prints them, and the `how` of each.
_HOW = {"Inner": "inner", "Cross": "inner", "LeftOuter": "left", "RightOuter": "right", "FullOuter": "full",
        "LeftSemi": "semi", "LeftAnti": "anti"}
_TYPE = re.compile(r"\b(Inner|Cross|LeftOuter|RightOuter|FullOuter|LeftSemi|LeftAnti|ExistenceJoin\([^)]*\))")
_ATTRIBUTE = re.compile(r"(`(?:[^`]|``)+`|[A-Za-z_][\w.]*|<[^#]*>)#(\d+)(L?)")
#: What else Spark prints of a join: the side that is built, and flags.
_FLAG = re.compile(r"BuildLeft|BuildRight|true|false|isSkew=\w+|isNullAwareAntiJoin=\w+")
_COMPARISON = re.compile(r"<=|>=|<(?!=>)|>|\babs\(")
#: Types that columns are tried with, as a log does not tell them: of bigint columns Spark says so.
_TYPES = (pa.int32(), pa.float64(), pa.string(), pa.timestamp("us", "UTC"), pa.date32(), pa.decimal128(18, 2))


@dataclass(frozen=True)
class Candidate:
    """A join that a log holds.

    Attributes:
        application: The application.
        execution: The number of the query in it, and its description.
        node: The name of the plan's node.
        condition: The condition in splitjoin's words, or in Spark's where it could not be read.
        takes: True if splitjoin takes it.
        reason: Why, or why not.
        rows: Rows of the left and of the right input, and of the result; None where the log does not say.
        seconds: Task time of the stages that the node ran in, which other nodes of these stages share.
        predicted: Seconds of task time that splitjoin would need, or None.
    """

    application: str
    execution: str
    node: str
    condition: str
    takes: bool
    reason: str
    rows: tuple[int | None, int | None, int | None]
    seconds: float
    predicted: float | None


def qualify(paths: Sequence[str | Path], *, rate: float = RATE) -> tuple[list[Candidate], list[str]]:
    """The joins in event logs that compare ranges or every pair, the slowest first; and what could not be read.

    ``rate``: rows of both inputs a second and core that splitjoin joins, for predictions. Raises `InputError` for
    what is no event log.
    """
    found, damaged = list[Candidate](), list[str]()
    for app in read_logs(paths):
        if app.damaged:
            damaged.append(f"{app.name}: {app.damaged}")
        for execution in app.executions.values():
            found += _joins(app, execution, rate)
    return sorted(found, key=lambda c: -c.seconds), damaged


def _joins(app: Application, execution: Execution, rate: float) -> Iterator[Candidate]:
    for node in execution.plan.walk():
        if node.name not in _LOOPS + _BY_KEY or len(node.children) != 2:
            continue
        keys, rest = _condition(node)
        if node.name in _BY_KEY and not (rest and _COMPARISON.search(rest)):
            continue  # Spark's equi-joins are the right tool for equality alone
        rows = (_rows(app, node.children[0]), _rows(app, node.children[1]), _own_rows(app, node))
        condition, reason, takes = _read(node, keys, rest)
        seconds = app.seconds.get(node.metrics.get(_ROWS, -1), 0.0)
        known = rows[0] is not None and rows[1] is not None
        predicted = ((rows[0] or 0) + (rows[1] or 0)) / rate if takes and known else None
        yield Candidate(app.name, f"{execution.number}: {execution.description}", node.name, condition, takes, reason,
                        rows, seconds, predicted)


def _rows(app: Application, node: Node) -> int | None:
    """The rows that ``node`` gives: of the first node from it downwards that counts them."""
    while True:
        own = _own_rows(app, node)
        if own is not None or len(node.children) != 1:
            return own
        node = node.children[0]


def _own_rows(app: Application, node: Node) -> int | None:
    number = node.metrics.get(_ROWS)
    return app.values.get(number) if number is not None else None


def _condition(node: Node) -> tuple[list[tuple[str, str]], str]:
    """The pairs of equal keys, and the rest of the condition, as Spark prints them."""
    text = node.text.removeprefix(node.name).strip()
    keys: list[tuple[str, str]] = []
    lists = []
    while text.startswith("["):
        inside, text = _bracketed(text)
        lists.append(_split(inside))
        text = text.removeprefix(",").strip()
    if len(lists) == 2:
        keys = list(zip(*lists, strict=False))
    found = _TYPE.search(text)
    rest = text[found.end():] if found else text
    words = [part for part in _split(rest) if part and not _FLAG.fullmatch(part)]
    return keys, ", ".join(words)


def _bracketed(text: str) -> tuple[str, str]:
    depth = 0
    for at, c in enumerate(text):
        depth += (c in "[(") - (c in "])")
        if depth == 0:
            return text[1:at], text[at + 1:]
    return text[1:], ""


def _split(text: str) -> list[str]:
    """The parts between the commas of ``text`` that are not inside brackets."""
    parts, depth, start = [], 0, 0
    for at, c in enumerate(text):
        depth += (c in "[(") - (c in "])")
        if c == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]


def _read(node: Node, keys: Sequence[tuple[str, str]], rest: str) -> tuple[str, str, bool]:
    """The condition in splitjoin's words, a reason, and if splitjoin takes it."""
    kind = _TYPE.search(node.text)
    spoken = " AND ".join([*(f"{a} = {b}" for a, b in keys), *([rest] if rest else [])]) or "(none)"
    how = "inner" if kind is None else _HOW.get(kind[1])
    if how is None:
        assert kind is not None
        return spoken, f"it is of the kind {kind[1]}, which splitjoin has not (Spark makes it of EXISTS and IN)", False
    if not keys and not rest:
        return spoken, "it has no condition: every pair is a result", False
    if "..." in spoken:
        return spoken, "Spark has cut the condition in the log; raise spark.sql.maxMetadataStringLength", False
    own = {number for part in node.children[0].walk() for _, number, _ in _ATTRIBUTE.findall(part.text)}
    columns: dict[Side, dict[str, bool]] = {"r": {}, "s": {}}

    def named(match: re.Match[str]) -> str:
        name, number, big = match[1].strip("`").replace("``", "`"), match[2], bool(match[3])
        side: Side = "r" if number in own else "s"
        columns[side][name] = big
        return f'{side}."{name.replace(chr(34), chr(34) * 2)}"'

    condition = _ATTRIBUTE.sub(named, spoken)
    error = ""
    for kind_ in _TYPES:
        try:
            schemas = [Schema.from_arrow(side, pa.schema([(name, pa.int64() if big else kind_)
                                                          for name, big in columns[side].items()]))
                       for side in SIDES]
            parse_sql(condition, *schemas)
        except SplitJoinError as failed:
            error = error or str(failed).splitlines()[0]
            continue
        pretty = re.sub(r'"([A-Za-z_]\w*)"', r"\1", condition)
        return pretty, f"{how} join; choose the event-time column and the window that the query means", True
    return condition, f"splitjoin cannot read the condition as Spark prints it: {error}", False
