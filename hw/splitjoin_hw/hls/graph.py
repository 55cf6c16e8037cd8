"""Datapaths of the programs of user-defined aggregates: graphs of operations on whole numbers of known ranges."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value, signed, unsigned

from splitjoin.hls.graph import Graph, Node
from splitjoin.hls.pipeline import ScheduledGraph
from splitjoin.lang.fold import Width

__all__ = ["combinational", "outside_width", "pipelined"]


def combinational(m: Module, name: str, graph: Graph, column: Callable[[Node], Value]) -> list[Value]:
    """The outputs of ``graph``, without registers; ``column`` gives the value of an input."""
    values: list[Value] = []
    for number, node in enumerate(graph.nodes):
        values.append(_value(m, f"{name}{number}", node, [values[a] for a in node.args], column))
    return [values[n] for n in graph.outputs]


def pipelined(m: Module, name: str, pipeline: ScheduledGraph, column: Callable[[Node], Value]) -> list[Value]:
    """The outputs of ``pipeline``, which takes operands in every cycle, `ScheduledGraph.ahead` cycles later; ``column``
    gives the value of an input.
    """
    nodes, cycles = pipeline.graph.nodes, pipeline.cycles
    delayed: list[list[Value]] = []  # the values of each operation, in its cycle and those after it

    def at(number: int, cycle: int) -> Value:
        values = delayed[number]
        if nodes[number].kind == "constant":
            return values[0]
        while (last := cycles[number] + len(values) - 1) < cycle:
            register = Signal(_shape(nodes[number]), name=f"{name}{number}_{last + 1}", reset_less=True)
            m.d.sync += register.eq(values[-1])
            values.append(register)
        return values[cycle - cycles[number]]

    for number, (node, cycle) in enumerate(zip(nodes, cycles, strict=True)):
        delayed.append([_value(m, f"{name}{number}", node, [at(a, cycle) for a in node.args], column)])
    return [at(n, pipeline.ahead) for n in pipeline.graph.outputs]


def outside_width(value: Value, low: int, high: int, bits: int, is_signed: bool) -> Value:
    """True if ``value``, which lies from ``low`` to ``high``, does not fit ``bits`` bits."""
    least, most = Width(bits, is_signed).range
    if least <= low <= high <= most:
        return Const(0)
    # The bits that are all equal if it fits, and 0 for unsigned numbers.
    first = bits - is_signed
    wide = max(len(value) + 1, first + 2)
    sign = value[-1] if value.shape().signed else Const(0, 1)
    upper = (value if len(value) >= wide else Cat(value, sign.replicate(wide - len(value))))[first:]
    return ~((upper == 0) | upper.all()) if is_signed else upper.any()


def _value(m: Module, name: str, node: Node, args: Sequence[Value], column: Callable[[Node], Value]) -> Value:
    if node.kind == "constant":
        return Const(node.low, _shape(node))
    if node.kind == "input":
        return column(node)
    value = Signal(_shape(node), name=name)
    m.d.comb += value.eq(_operation(node, args))
    return value


def _shape(node: Node) -> Shape:
    return signed(node.width) if node.low < 0 else unsigned(node.width)


def _operation(node: Node, args: Sequence[Value]) -> Value:
    a, b = (*args, None, None)[:2]
    match node.kind:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "&" | "and":
            return a & b
        case "|" | "or":
            return a | b
        case "^":
            return a ^ b
        case "not":
            return ~a
        case "=":
            return a == b
        case "<":
            return _less(a, b)
        case "abs":
            return Mux(a[-1], -a, a)
        case "min":
            return Mux(_less(a, b), a, b)
        case "max":
            return Mux(_less(a, b), b, a)
        case "choose":
            return Mux(args[0], args[1], args[2])
        case "bits":
            return a[:node.places] if node.places <= len(a) else Cat(a, a[-1].replicate(node.places - len(a)))
        case "shift":
            return a << node.places if node.places > 0 else a >> -node.places
    raise TypeError(f"no operation {node.kind!r}")


def _less(a: Value, b: Value) -> Value:
    """True if ``a`` is less than ``b``: the sign of a difference, which Yosys maps to a carry chain, and ``a < b`` to
    several times as many LUTs.
    """
    return (a - b).as_signed()[-1]
