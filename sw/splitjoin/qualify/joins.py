"""Joins in physical plans that splitjoin could run: `qualify`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from splitjoin.base.errors import PredicateError
from splitjoin.lang.schema import SIDES, Side

from .attributes import JOINS, Attributes, NodeColumns, attributes_in, bracketed, cast_operand, formula_type, split
from .conditions import JoinCondition, read_condition
from .events import CUT, MOST_TEXT, ROWS, Application, PlanNode, QueryRun, read_logs
from .printed import null_safe

Number = TypeVar("Number", int, float)

#: What a batch join in Spark takes a second and core, as bench/spark.py measured it: rows of both inputs and pairs.
RATE, PAIRS = 283_000.0, 5_600_000.0
#: Task time that a join takes whatever its size, in seconds: workers begin, and input is sorted and cut.
FIXED = 0.9

#: Nodes that compare every row of one side with every row of the other; the others join by equality first, and test
#: what is left over for every pair of equal keys.
_LOOPS = ("BroadcastNestedLoopJoin", "CartesianProduct")
#: Spark's join of two streams.
_STREAMING = "StreamingSymmetricHashJoin"
#: Kinds of join as Spark prints them, and the `how` of each.
_HOW = {"Inner": "inner", "Cross": "inner", "LeftOuter": "left", "RightOuter": "right", "FullOuter": "full",
        "LeftSemi": "semi", "LeftAnti": "anti"}
_TYPE = re.compile(r"\b(Inner|Cross|LeftOuter|RightOuter|FullOuter|LeftSemi|LeftAnti|ExistenceJoin\([^)]{0,300}\))")
#: What else Spark prints of a join: the side that is built, and flags.
_FLAG = re.compile(r"BuildLeft|BuildRight|true|false|isSkew=\w+|isNullAwareAntiJoin=\w+")
_COMPARISON = re.compile(r"<=|>=|<(?!=>)|>|\babs\(|\btimestampdiff\(|\bdatediff\(")
#: Nodes between a join and the filter that tests the values of Python UDFs.
_BETWEEN = re.compile(r"(Project|WholeStageCodegen|InputAdapter|ColumnarToRow)\b.*", re.DOTALL)
_RESULT = re.compile(r"#\d{1,18}\Z", re.ASCII)
_CALLED = re.compile(r"\w+(?=\()")
#: Attributes that Spark makes of what occurs twice in a condition, and what is added to their numbers for that of the
#: operand of a cast.
_SHARED, _OPERAND = "_common_expr_", 10**12
#: The end of the description of a micro-batch, and numbers of attributes, which each micro-batch has of its own.
_BATCH, _NUMBER = re.compile(r", batch = \w+\Z"), re.compile(r"#\d+", re.ASCII)
#: The condition of a streaming join in what Spark prints of it, null for none.
_FULL = re.compile(r"\bfull = (.*) \], state info ", re.DOTALL)
_SUBQUERY = re.compile(r"\br\.subquery_\d+\b", re.ASCII)


#: Nodes that give as many rows as their input.
_KEEPING = re.compile(
    r"(Project|Sort|Exchange|BroadcastExchange|ShuffleQueryStage|BroadcastQueryStage|ResultQueryStage|"
    r"TableCacheQueryStage|AQEShuffleRead|CustomShuffleReader|InputAdapter|WholeStageCodegen|ColumnarToRow|"
    r"AdaptiveSparkPlan|ReusedExchange|Coalesce|EventTimeWatermark|\w+EvalPython)\b.*", re.DOTALL)


@dataclass(frozen=True)
class Candidate:
    """A join that a log holds.

    Attributes:
        application: The application.
        execution: The number of the query in it, and its description; of a stream, its last micro-batch.
        node: The name of the plan's node.
        condition: The condition in splitjoin's words, or in Spark's where it could not be read.
        takes: True if splitjoin takes it.
        reason: Why, or why not.
        rows: Rows of the left and of the right input, and of the result; None where the log does not say.
        seconds: Task time of the stages that the node ran in, which other nodes of these stages share.
        predicted: Seconds of task time that splitjoin would need, or None.
        columns: The columns of the condition with their types, as the log tells them or as they were chosen so that
            splitjoin takes the condition. Empty if it does not.
        window: The arguments ``time`` and ``window`` that follow from the condition, or empty.
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
    columns: str = ""
    window: str = ""


def qualify(paths: Sequence[str | Path], *, rate: float = RATE, most: int = 5000) -> tuple[list[Candidate], list[str]]:
    """The joins in event logs that compare ranges or every pair, the slowest first; and what could not be read.

    ``rate``: rows of both inputs a second and core that splitjoin joins, for predictions. ``most``: joins of an
    application that are read. Raises `InputError` for what is no event log.
    """
    applications, damaged = read_logs(paths)
    found = list[Candidate]()
    for app in applications:
        if app.damaged:
            damaged.append(f"{app.name}: {'; '.join(app.damaged)}")
        joins = list(itertools.islice(_joins(app, rate), most + 1))
        if len(joins) > most:
            damaged.append(f"{app.name}: of its joins, the first {most:,} were read")
        found += _of_streams(joins[:most])
    return sorted(found, key=lambda c: -c.seconds), damaged


def _joins(app: Application, rate: float) -> Iterator[Candidate]:
    seen = set[int]()
    for execution in app.executions.values():
        plan = _PlanReader(app, execution)
        for node in execution.plan.walk():
            if not node.name.startswith(JOINS):
                continue
            number = node.metrics.get(ROWS)
            if number is not None:
                if number in seen:  # of a cached table, which is in the plan of every query that reads it
                    continue
                seen.add(number)
            made = plan.candidate(node, rate)
            if made is not None:
                yield made


def _of_streams(joins: Sequence[Candidate]) -> Iterator[Candidate]:
    """The joins, where those of all micro-batches of a streaming query are one, with the sums of rows and times."""
    streams = dict[tuple[str, ...], Candidate]()
    for number, join in enumerate(joins):
        query = join.execution.partition(": ")[2]
        of = _BATCH.sub("", query)
        key = (of, join.node, _NUMBER.sub("", join.condition)) if of != query else (str(number),)
        if (before := streams.get(key)) is not None:
            rows = [_sum(a, b) for a, b in zip(before.rows, join.rows, strict=True)]
            join = replace(join, rows=(rows[0], rows[1], rows[2]), seconds=before.seconds + join.seconds,
                           predicted=_sum(before.predicted, join.predicted))
        streams[key] = join
    yield from streams.values()


def _sum(a: Number | None, b: Number | None) -> Number | None:
    return b if a is None else a if b is None else a + b  # a micro-batch without rows counts none


class _PlanReader:
    """A plan whose joins are read."""

    def __init__(self, app: Application, execution: QueryRun):
        self.app, self.execution = app, execution
        self._attributes = Attributes(execution.plan)
        self._above = {id(child): node for node in execution.plan.walk() for child in node.children}

    def candidate(self, node: PlanNode, rate: float) -> Candidate | None:
        """The join of ``node``, if it compares ranges or every pair."""
        inputs = [child for child in node.children if not child.name.startswith(("Subquery", "ReusedSubquery"))]
        if len(inputs) != 2:
            return None
        left, right = inputs
        keys, rest = _condition(node)
        udf, called = self._udf(node, left, right)
        if not (node.name.startswith(_LOOPS) or udf or (rest and _COMPARISON.search(rest))):
            return None  # Spark's equi-joins are the right tool for equality alone
        condition, reason, read = self._read(node, left, right, keys, rest, udf)
        last = node if called is None else called
        of_inputs = [_input_rows(self.app, node, side, inputs) for side in range(2)]
        rows = of_inputs[0], of_inputs[1], self.app.rows(last.metrics.get(ROWS))
        predicted = None
        if read is not None and rows[0] is not None and rows[1] is not None:
            predicted = FIXED + (rows[0] + rows[1]) / rate + (rows[2] or 0) / PAIRS
        of = f"{self.execution.number}: {', '.join(self.execution.description.splitlines())}"
        return Candidate(self.app.name, of, node.name, condition,
                         read is not None, reason, rows, self.app.seconds.get(node.metrics.get(ROWS, -1), 0.0),
                         predicted, *((read.columns, read.window) if read is not None else ()))

    def _udf(self, node: PlanNode, left: PlanNode, right: PlanNode) -> tuple[str, PlanNode | None]:
        """The test of Python UDFs over both inputs that a filter above the join makes, and the filter."""
        values: dict[int, str] = {}
        above = self._above.get(id(node))
        while above is not None and (_BETWEEN.fullmatch(above.name) or above.name.endswith("EvalPython")):
            if above.name.endswith("EvalPython"):
                calls, after = bracketed(above.text[above.text.find("["):])
                names = bracketed(after[after.find("["):])[0] if "[" in after else ""
                for call, name in zip(split(calls), split(names), strict=False):
                    for one in attributes_in(name, {}):
                        values[one.number] = _RESULT.sub("", call)
            above = self._above.get(id(above))
        if above is None or above.name != "Filter" or not values:
            return "", None
        test = above.text.removeprefix("Filter ").removesuffix(": boolean")
        used = [one for one in attributes_in(test, {}) if one.number in values]
        sides = {self._attributes.side(inner.number, left, right)
                 for one in used for inner in attributes_in(values[one.number], {})}
        if not {0, 1} <= sides:
            return "", None
        parts, end = list[str](), 0
        for one in used:
            parts += [test[end:one.start], values[one.number]]
            end = one.end
        return "".join([*parts, test[end:]]), above

    def _read(self, node: PlanNode, left: PlanNode, right: PlanNode, keys: list[tuple[str, str]], rest: str, udf: str,
              ) -> tuple[str, str, JoinCondition | None]:
        """The condition as it is shown, a reason, and what splitjoin takes."""
        kind = _TYPE.search(node.text)
        spoken = " AND ".join([*null_safe(keys), *(x for x in (rest, udf) if x)]) or "(none)"
        how = "inner" if kind is None else _HOW.get(kind[1])
        if how is None:
            assert kind is not None
            return spoken, (f"it is of the kind {kind[1]}, which splitjoin has not (Spark makes it of EXISTS and IN)"
                            ), None
        if udf:
            name = _CALLED.findall(udf)
            return spoken, (f"it calls the Python UDF {name[0] if name else ''}() for every pair; write what that "
                            f"computes as the condition, in SQL or as a Python function of r and s"), None
        if not keys and not rest:
            return spoken, "it has no condition: every pair is a result", None
        if node.text.endswith(CUT):
            return spoken, f"Spark prints the join in more than the {MOST_TEXT:,} characters that are read here", None
        if "..." in spoken:
            return spoken, "Spark has cut the condition in the log; raise spark.sql.maxMetadataStringLength", None
        outputs = [self._attributes.output(one) for one in (left, right)]
        names = {**outputs[0].names, **outputs[1].names}
        found = {one.number: one for one in attributes_in(spoken, names)}
        names.update((number, one.name.strip("`").replace("``", "`")) for number, one in found.items())
        types = {number: pa.int64() for number, one in found.items() if one.big}
        types.update((number, type_) for output in outputs for number, type_ in output.types.items())

        def side(number: int) -> Side | None:
            n = self._attributes.side(number % _OPERAND, left, right)
            return None if n is None else SIDES[n]

        formulas = dict[int, str]()
        for output in outputs:
            for number in found.keys() & output.formulas.keys():
                operand = cast_operand(output.formulas[number])
                if operand and names[number].startswith(_SHARED):
                    formulas[number] = _as_cast(number, operand, output, names, types)
        try:
            read = read_condition(spoken, side, names, types, formulas, self.app.zone)
        except PredicateError as error:
            return spoken, f"splitjoin cannot read the condition as Spark prints it: {error}", None
        subqueries = sorted(set(_SUBQUERY.findall(read.text)))
        reason = f"{how} join" + " of two streams, which plain SQL takes by the hint SPLITJOIN" * (
            node.name == _STREAMING) + "; "
        if subqueries:
            reason += f"compute the scalar subquery first, and write its value in place of {', '.join(subqueries)}; "
        return read.text, reason + ("with this window no pair is lost" if read.window else
                                    "choose the event-time column and the window that the query means"), read


def _as_cast(number: int, operand: str, output: NodeColumns, names: dict[int, str],
             types: dict[int, pa.DataType]) -> str:
    """The cast to bigint that Spark has computed in attribute ``number``, of a column: the attribute that it is of, or
    else one of its own, which is added to ``names`` and ``types``.
    """
    same = [n for n, formula in output.formulas.items() if formula == operand]
    one = next(attributes_in(operand, output.names), None)
    if one is not None and one.start == 0 and one.end == len(operand):
        of = one.number
    elif same:
        of = same[0]
    else:
        of = number + _OPERAND
        type_ = formula_type(operand)
        if type_ is not None:
            types[of] = type_
    names.setdefault(of, names[number])
    return f"cast({names[of]}#{of} as bigint)"


def _condition(node: PlanNode) -> tuple[list[tuple[str, str]], str]:
    """The pairs of equal keys, and the rest of the condition, as Spark prints them."""
    text = node.text.removeprefix(node.name).strip()
    keys: list[tuple[str, str]] = []
    lists = []
    while text.startswith("["):
        inside, text = bracketed(text)
        lists.append(split(inside))
        text = text.removeprefix(",").strip()
    if len(lists) == 2:
        keys = list(zip(*lists, strict=False))
    found = _TYPE.search(text)
    rest = text[found.end():] if found else text
    if node.name == _STREAMING:
        full = _FULL.search(rest)
        return keys, "" if full is None or full[1] == "null" else full[1]
    words = [part for part in split(rest) if part and not _FLAG.fullmatch(part)]
    return keys, ", ".join(words)


def _input_rows(app: Application, join: PlanNode, side: int, inputs: Sequence[PlanNode]) -> int | None:
    """The rows of the left (``side`` 0) or the right (1) of a join's two ``inputs``; None where the log does not say.

    A partition that Spark computed several times counts once.
    """
    node: PlanNode | None = inputs[side]
    while node is not None and app.rows(node.metrics.get(ROWS)) is None:
        node = node.children[0] if len(node.children) == 1 and _KEEPING.fullmatch(node.name) else None
    if node is None:
        return None
    number, own = node.metrics[ROWS], join.metrics.get(ROWS, -1)
    shared = app.stages.get(number, set()) & app.stages.get(own, set())
    if join.name != "CartesianProduct" or not shared or len(app.counts[number]) == 1:
        return app.rows(number)
    # Each task of a Cartesian product reads a partition of the left input and one of the right input.
    products = [product for stage in shared for product in app.products.get(stage, [])]
    if len(products) != 1:
        return None
    _, right = products[0]
    counts = app.counts[number].items()
    return sum(rows for partition, rows in counts if (partition % right == 0 if side == 0 else partition < right))
