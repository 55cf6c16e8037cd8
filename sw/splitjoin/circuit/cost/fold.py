"""Cost of the circuits of user-defined aggregates: their operations, the registers between cycles, and the state."""

from __future__ import annotations

from ..fold_nodes import Graph, Node
from ..fold_schedule import FoldPlan, Pipeline
from ..schedule import FACTOR
from .elements import adder, equal, gate
from .resources import Family, Resources

__all__ = ["fold_cost", "graph_cost", "pipeline_cost"]


def fold_cost(family: Family, plan: FoldPlan) -> Resources:
    """The cost of a `splitjoin_hw.hls.fold.FoldUnit`."""
    total = _pipeline(family, plan.add, looped=True)
    # The next state is the initial one behind the last partner; that of the base tuple that ends, the old one for NULL.
    read = {n.name for n in plan.result.graph.nodes if n.kind == "input"} if plan.result is not None else {
        s.name for s in plan.fold.slots}
    ended = sum(s.width.bits for s in plan.fold.slots if s.name in read)
    total += Resources(lut=plan.state_bits + ended, ff=plan.state_bits + ended)
    # A choice between a slot's old value and another one is the enable of its register.
    graph = plan.add.graph
    for slot, output in zip(plan.fold.slots, graph.outputs, strict=True):
        node = graph.nodes[output]
        if node.kind == "choose" and any(graph.nodes[a].side == "r" and graph.nodes[a].name == slot.name
                                         for a in node.args[1:]):
            total += Resources(lut=-node.width)
    for n, slot in plan.checked(plan.add):
        node = plan.add.graph.nodes[plan.add.graph.outputs[n]]
        upper = max(1, node.width - slot.width.bits + 1)
        total += Resources(lut=gate(family, upper), ff=upper)
    if plan.result is None:
        total += Resources(ff=plan.state_bits)
    else:
        total += _pipeline(family, plan.result, looped=False)
    control = 3 * plan.add.ahead + (0 if plan.result is None else 3 * plan.result.ahead)
    return total + Resources(lut=8 + 2 * plan.interval.bit_length(), ff=6 + control + plan.interval.bit_length())


def pipeline_cost(family: Family, pipeline: Pipeline) -> Resources:
    """The cost of operations that are all computed ahead, with their registers."""
    return _pipeline(family, pipeline, looped=False)


def _pipeline(family: Family, pipeline: Pipeline, *, looped: bool) -> Resources:
    total = Resources(ff=pipeline.registers(looped=False) + (pipeline.registers(looped=True) if looped else 0))
    return total + graph_cost(family, pipeline.graph)


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
