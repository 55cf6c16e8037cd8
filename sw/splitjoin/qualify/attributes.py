"""Attributes of physical plans, such as ``ts#17``: their names, their types, and which input of a join gives them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from .events import PlanNode

#: Nodes of joins. Spark's semi and anti joins give the columns of their left input only.
JOINS = ("BroadcastNestedLoopJoin", "CartesianProduct", "SortMergeJoin", "ShuffledHashJoin", "BroadcastHashJoin",
         "StreamingSymmetricHashJoin")
_LEFT_ONLY = re.compile(r"\b(LeftSemi|LeftAnti)\b")
#: Nodes that give the columns of their input.
_PASSING = re.compile(
    r"(Filter|Sort|Exchange|BroadcastExchange|ShuffleQueryStage|BroadcastQueryStage|ResultQueryStage|"
    r"TableCacheQueryStage|AQEShuffleRead|CustomShuffleReader|InputAdapter|WholeStageCodegen|ColumnarToRow|"
    r"AdaptiveSparkPlan|LocalLimit|GlobalLimit|CollectLimit|Coalesce|Sample|EventTimeWatermark)\b.*", re.DOTALL)
#: Nodes that print all columns that they give, in brackets. (A cached plan prints none if it gives all.)
_LISTING = re.compile(r"(Project|FileScan|Scan|BatchScan|LocalTableScan|InMemoryTableScan|ReusedExchange|RDDScan)\b.*",
                      re.DOTALL)
#: An attribute's number, behind its name, with Spark's mark of bigint and of a watermark.
_NUMBER = re.compile(r"#(\d{1,18})(L?)(?:-T\d{1,18}ms)?", re.ASCII)
_DECIMAL = re.compile(r"decimal\((\d{1,2}),\s?(\d{1,2})\)", re.ASCII)
_SPARK_TYPES = {
    "boolean": pa.bool_(), "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "string": pa.string(), "binary": pa.binary(), "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us"),
}
#: Functions whose value has one type.
_FUNCTION_TYPES = {
    **dict.fromkeys(("timestamp_micros", "timestamp_millis", "timestamp_seconds", "gettimestamp"), "timestamp"),
    **dict.fromkeys(("date_add", "date_sub", "last_day", "trunc"), "date"), "unix_timestamp": "bigint",
}
_CALL = re.compile(r"([a-z_]\w*)\((.*)\)", re.ASCII | re.DOTALL)


@dataclass(frozen=True)
class Attribute:
    """An attribute in a text: its place, name and number; ``big``: Spark marks it as bigint."""

    start: int
    end: int
    name: str
    number: int
    big: bool


@dataclass
class NodeColumns:
    """The columns that a node gives. ``complete``: there are no others.

    ``names``: numbers → names; ``types``: those that the plan tells; ``formulas``: the expression of a column that the
    plan computes.
    """

    names: dict[int, str] = field(default_factory=dict)
    types: dict[int, pa.DataType] = field(default_factory=dict)
    formulas: dict[int, str] = field(default_factory=dict)
    complete: bool = True

    def add(self, other: NodeColumns) -> None:
        """Add the columns of ``other``."""
        self.names.update(other.names)
        self.types.update(other.types)
        self.formulas.update(other.formulas)
        self.complete = self.complete and other.complete


class Attributes:
    """The columns that the nodes of a plan give."""

    def __init__(self, plan: PlanNode):
        self._made: dict[int, NodeColumns] = {}
        self._mentioned: dict[int, set[int]] = {}
        self._plan = plan

    def output(self, node: PlanNode) -> NodeColumns:
        """The columns that ``node`` gives."""
        if id(node) not in self._made:
            for below in reversed(list(node.walk())):  # inputs first
                if id(below) not in self._made:
                    self._made[id(below)] = self._of(below)
        return self._made[id(node)]

    def side(self, number: int, left: PlanNode, right: PlanNode) -> int | None:
        """0 if the ``left`` input gives an attribute, 1 if the ``right`` one does, None if the plan does not say.

        Aggregations do not print all columns that they give. Then a column belongs to an input that may have unknown
        columns if the other one has none, or else to the only input that mentions it.
        """
        outputs = (self.output(left), self.output(right))
        has = [number in output.names for output in outputs]
        if has[0] != has[1]:
            return has.index(True)
        if has[0]:
            return None
        may = [not output.complete for output in outputs]
        if may[0] != may[1]:
            return may.index(True)
        mentioned = [number in self._numbers(node) for node in (left, right)]
        return mentioned.index(True) if mentioned[0] != mentioned[1] else None

    def _numbers(self, node: PlanNode) -> set[int]:
        if id(node) not in self._mentioned:
            self._mentioned[id(node)] = {int(m[1]) for n in node.walk() for m in _NUMBER.finditer(n.text)}
        return self._mentioned[id(node)]

    def _of(self, node: PlanNode) -> NodeColumns:
        inputs = [self._made[id(child)] for child in node.children if not child.name.startswith("Subquery")]
        if len(inputs) == 1 and _PASSING.fullmatch(node.name):
            return inputs[0]
        output = NodeColumns()
        if len(inputs) == 2 and node.name.startswith(JOINS):
            output.add(inputs[0])
            if not _LEFT_ONLY.search(node.text):
                output.add(inputs[1])
            return output
        items = _items(node.text) if _LISTING.fullmatch(node.name) else None
        if items is None:
            # Unknown nodes may give other columns; aggregations give their keys, others mostly their input's columns.
            for one in inputs:
                output.add(one)
            output.complete = False
            return output
        schema = dict(_fields(node.schema))
        for item in items:
            self._add(output, item, schema, inputs)
        return output

    def _add(self, output: NodeColumns, item: str, schema: Mapping[str, str], inputs: list[NodeColumns]) -> None:
        numbers = list(_NUMBER.finditer(item))
        if not numbers or numbers[-1].end() != len(item):
            output.complete = False
            return
        number, before = int(numbers[-1][1]), item[:numbers[-1].start()]
        formula, alias, name = before.rpartition(" AS ")
        output.names[number] = name
        if numbers[-1][2]:
            output.types[number] = pa.int64()
        if alias:
            output.formulas[number] = formula
            type_ = formula_type(formula)
        else:
            type_ = _spark_type(schema.get(name, ""))
            for one in inputs:
                type_ = type_ or one.types.get(number)
                if number in one.formulas:
                    output.formulas[number] = one.formulas[number]
        if type_ is not None:
            output.types[number] = type_


def attributes_in(text: str, names: Mapping[int, str]) -> Iterator[Attribute]:
    """The attributes in an expression that Spark printed. ``names``: the names that are known, by number, as Spark
    prints names without quotes, whatever they hold. Takes time linear in the text.
    """
    last = 0
    for match in _NUMBER.finditer(text):
        number, at = int(match[1]), match.start()
        name = names.get(number, "")
        if not name or not text.endswith(name, last, at):
            name = _name_before(text, last, at)
        if name:
            yield Attribute(at - len(name), match.end(), name, number, bool(match[2]))
            last = match.end()


def _name_before(text: str, start: int, end: int) -> str:
    """The name in ``text`` from ``start`` or later up to ``end``: a word, or what stands in backticks or <>."""
    at = end
    if at > start and text[at - 1] in "`>":
        opening = text.rfind("`" if text[at - 1] == "`" else "<", start, at - 1)
        return text[opening:end] if opening >= 0 else ""
    while at > start and (text[at - 1].isalnum() or text[at - 1] in "_."):
        at -= 1
    return text[at:end]


def _spark_type(text: str) -> pa.DataType | None:
    """The Arrow type of a type that Spark names, or None for others."""
    decimal = _DECIMAL.fullmatch(text)
    if decimal:
        precision, scale = int(decimal[1]), int(decimal[2])
        return pa.decimal128(precision, scale) if 1 <= precision <= 38 and scale <= precision else None
    return _SPARK_TYPES.get(text)


def formula_type(formula: str) -> pa.DataType | None:
    """The type of an expression, where its outermost function tells it."""
    call = _CALL.fullmatch(formula)
    if call is None:
        return None
    if call[1] == "cast":
        return _spark_type(call[2].rpartition(" as ")[2])
    return _spark_type(_FUNCTION_TYPES.get(call[1], ""))


def cast_operand(formula: str) -> str:
    """``X`` of ``cast(X as bigint)``; empty for another expression."""
    call = _CALL.fullmatch(formula)
    return call[2].removesuffix(" as bigint") if call and call[1] == "cast" and call[2].endswith(" as bigint") else ""


def _items(text: str) -> list[str] | None:
    """The text in the first brackets of a node, or None."""
    start = text.find("[")
    if start < 0:
        return None
    items = split(bracketed(text[start:])[0])
    return [item for item in items if item]


def _fields(schema: str) -> Iterator[tuple[str, str]]:
    """The names and types in ``struct<x:int,ts:timestamp>``."""
    for one in split(schema.removeprefix("struct<").removesuffix(">"), "<(", ">)"):
        name, _, type_ = one.partition(":")
        yield name, type_


def bracketed(text: str) -> tuple[str, str]:
    """The text in the bracket with which ``text`` begins, and the rest behind it."""
    depth = 0
    for at, c in enumerate(text):
        depth += (c in "[(") - (c in "])")
        if depth == 0:
            return text[1:at], text[at + 1:]
    return text[1:], ""


def split(text: str, opening: str = "[(", closing: str = "])") -> list[str]:
    """The parts between the commas of ``text`` that are not inside brackets."""
    parts, depth, start = [], 0, 0
    for at, c in enumerate(text):
        depth += (c in opening) - (c in closing)
        if c == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]
