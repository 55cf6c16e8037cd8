"""Cost of the programs of user-defined aggregates: their operations, and the registers between cycles."""

from __future__ import annotations

from ..fold_nodes import Graph, Node
from ..fold_schedule import Pipeline
from ..schedule import FACTOR
from .elements import adder, equal, gate
from .resources import Family, Resources

__all__ = ["graph_cost", "pipeline_cost"]


def pipeline_cost(family: Family, pipeline: Pipeline) -> Resources:
    """The cost of the operations of ``pipeline``, with its registers."""
    return graph_cost(family, pipeline.graph) + Resources(ff=pipeline.register_bits)


def graph_cost(family: Family, graph: Graph) -> Resources:
    """The cost of the operations of ``graph`` alone."""
    total = Resources()
    for node in graph.nodes:
        total += _operation(family, node, [graph.nodes[a] for a in node.args])
    return total


def _operation(family: Family, node: Node, args: list[Node]) -> Resources:
    constants = sum(a.kind == "constant" for a in args)
    most = max([node.width, *(a.width for a in args)])
    match node.kind:
        case "+" | "-":
            return Resources(lut=adder(family, most))
        case "<":
            return Resources(lut=adder(family, most + 1))
        case "min" | "max":
            return Resources(lut=adder(family, most + 1) + (node.width + constants) // (1 + constants))
        case "abs":
            return Resources(lut=adder(family, most) + (most * 3 // 2 if family == "ecp5" else most * 2 // 3))
        case "=":
            return Resources(lut=gate(family, most) + 1 if constants else equal(family, most))
        case "&" | "|" | "^":
            return Resources(lut=0 if constants else node.width // 2)  # a LUT takes several in a row
        case "choose":
            return Resources(lut=node.width)
        case "and" | "or":
            return Resources(lut=1)
        case "*":
            parts = -(-args[0].width // FACTOR) * -(-args[-1].width // FACTOR)
            return Resources(lut=(parts - 1) * adder(family, node.width), dsp=parts)
    return Resources()
