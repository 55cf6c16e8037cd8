"""Graphs of operations in plain Python, with the widths that circuits give to their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from splitjoin.circuit.formula import Formula, input_slot
from splitjoin.hls.graph import Graph, Node


def graph_outputs(graph: Graph, column: Callable[[Node], int]) -> list[int]:
    """The outputs of ``graph``; ``column`` gives the value of an input."""
    values: list[int] = []
    for node in graph.nodes:
        value = _value(node, [values[a] for a in node.args], column)
        value &= (1 << node.width) - 1
        values.append(value - (1 << node.width) if node.low < 0 and value >> node.width - 1 else value)
    return [values[n] for n in graph.outputs]


def _value(node: Node, args: Sequence[int], column: Callable[[Node], int]) -> int:
    a, b, c = [*args, 0, 0, 0][:3]
    match node.kind:
        case "constant":
            return node.low
        case "input":
            return column(node)
        case "shift":
            return a << node.places if node.places > 0 else a >> -node.places
        case "bits":
            return a & (1 << node.places) - 1
        case "choose":
            return b if a else c
        case "fit":
            return a
    values = {"+": a + b, "-": a - b, "*": a * b, "&": a & b, "|": a | b, "^": a ^ b, "abs": abs(a), "min": min(a, b),
              "fit": a, "max": max(a, b), "=": int(a == b), "<": int(a < b), "and": a & b, "or": a | b, "not": 1 - a}
    return values[node.kind]


def formula_holds(formula: Formula, r: Sequence[int], s: Sequence[int]) -> bool:
    """True if ``formula`` holds for two tuples with the keys ``r`` and ``s``."""
    def column(node: Node) -> int:
        key = int((r if node.side == "r" else s)[input_slot(node)]) & (1 << node.width) - 1
        return key - (1 << node.width - 1) if node.low < 0 else key

    return graph_outputs(formula.pipeline.graph, column) == [1]
