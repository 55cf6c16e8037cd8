"""Graphs of operations in plain Python, with the widths that circuits give to their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from splitjoin.circuit.formula import Formula, input_slot
from splitjoin.hls.graph import Graph, Node
from splitjoin.hls.kernels import Kernel


def graph_outputs(graph: Graph, column: Callable[[Node], int]) -> list[int]:
    """The outputs of ``graph``; ``column`` gives the value of an input."""
    values: list[int] = []
    for node in graph.nodes:
        values.append(_of_width(node, _value(node, [values[a] for a in node.args], column)))
    return [values[n] for n in graph.outputs]


def _of_width(node: Node, value: int) -> int:
    value &= (1 << node.width) - 1
    return value - (1 << node.width) if node.low < 0 and value >> node.width - 1 else value


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


def _number(state: Mapping[str, int], inputs: Mapping[str, int], node: Node) -> int:
    return (state if node.side == "r" else inputs)[node.name]


def kernel_results(kernel: Kernel, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The results of ``kernel`` for ``rows``, one after the other and without None, by its graph's operations."""
    graph, found = kernel.graph, list[Any]()
    state = {slot.name: slot.init for slot in kernel.slots}
    memories = {m.name: [*m.init] * (m.rows // len(m.init)) for m in kernel.memories}
    for row in rows:
        inputs = {name: v for port in kernel.inputs for (name, _), v in zip(
            port.numbers, row[port.name] if port.field.names else [row[port.name]], strict=True)}
        values, writes = list[int](), list[tuple[str, int, int]]()
        for node in graph.nodes:
            args = [values[a] for a in node.args]
            if node.kind in ("read", "fetch"):
                rows_of = memories[node.name]
                value = rows_of[args[0] % len(rows_of)]  # what is read behind the end is not chosen
            elif node.kind == "write":
                number, enable, address = args[:3]
                value = enable
                writes += [(node.name, address, number)] * enable
            else:
                value = _value(node, args, partial(_number, state, inputs))
            values.append(_of_width(node, value))  # where it is not chosen, it may be out of its range
        state = dict(zip(state, (values[n] for n in graph.outputs), strict=False))
        for name, address, number in writes:
            memories[name][address] = number
        if kernel.present is None or values[kernel.present]:
            made = [values[n] for n in kernel.results]
            found.append(tuple(made) if len(made) > 1 else made[0])
    return found


def formula_holds(formula: Formula, r: Sequence[int], s: Sequence[int]) -> bool:
    """True if ``formula`` holds for two tuples with the keys ``r`` and ``s``."""
    def column(node: Node) -> int:
        key = int((r if node.side == "r" else s)[input_slot(node)]) & (1 << node.width) - 1
        return key - (1 << node.width - 1) if node.low < 0 else key

    return graph_outputs(formula.pipeline.graph, column) == [1]
