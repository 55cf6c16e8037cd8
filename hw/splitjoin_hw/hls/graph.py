"""Datapaths of the programs of user-defined aggregates: graphs of operations on whole numbers of known ranges."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value, signed, unsigned

from splitjoin.hls.graph import Graph, Node
from splitjoin.hls.memories import READS
from splitjoin.hls.pipeline import ScheduledGraph
from splitjoin.lang.fold import Width


def combinational(m: Module, name: str, graph: Graph, column: Callable[[Node], Value]) -> list[Value]:
    """The outputs of ``graph``, without registers; ``column`` gives the value of an input."""
    values, inner = list[Value](), _inner_sums(graph, [0] * len(graph.nodes))
    for number, node in enumerate(graph.nodes):
        args = [values[a] for a in node.args]
        values.append(_value(m, f"{name}{number}", node, args, column, alone=number in inner))
    return [values[n] for n in graph.outputs]


def pipelined(m: Module, name: str, pipeline: ScheduledGraph, column: Callable[[Node], Value],
              earlier: Callable[[Node, int], Value] | None = None) -> list[Value]:
    """The outputs of ``pipeline``, which takes operands in every cycle, `ScheduledGraph.ahead` cycles later; ``column``
    gives the value of an input, and ``earlier`` that of so many cycles ago, where it has registers for it.
    """
    datapath = Datapath(m, name, pipeline, column, earlier=earlier)
    return [datapath.at(n, pipeline.ahead) for n in pipeline.graph.outputs]


class Datapath:
    """The operations of ``pipeline``, and registers for their values, made on demand.

    ``column`` gives the value of an input. ``loads``: when the register behind a cycle takes a value; by default in
    every cycle. ``turn``: the signal that is 1 in a cycle, for multipliers that several multiplications share.
    ``earlier``: as of `pipelined`. ``read``: the number of a memory at an address, in a cycle.
    """

    def __init__(self, m: Module, name: str, pipeline: ScheduledGraph, column: Callable[[Node], Value], *,
                 loads: Callable[[int], Value] | None = None, turn: Callable[[int], Value] | None = None,
                 earlier: Callable[[Node, int], Value] | None = None,
                 read: Callable[[Node, Value, int], Value] | None = None):
        self._m, self._name, self._pipeline, self._loads, self._earlier = m, name, pipeline, loads, earlier
        self._nodes = pipeline.graph.nodes
        self._values: list[list[Value]] = []  # of each operation, in its cycle, and in registers behind it
        #: Until which cycle a state stays in its own register.
        self._kept = {state.read: pipeline.cycles[state.write] for state in pipeline.carried
                      if self._nodes[state.read].kind == "input"}
        # Block RAM holds what it reads until it reads again.
        self._kept |= {n: pipeline.cycles[n] + pipeline.interval - 1 for n, node in enumerate(self._nodes)
                       if node.kind == "fetch"}
        units = {n: unit for unit, some in pipeline.shared().items() for n in some}
        operands: dict[int, list[tuple[int, list[Value], Value]]] = {}
        inner = _inner_sums(pipeline.graph, pipeline.cycles)
        for number, node in enumerate(self._nodes):
            cycle = pipeline.cycles[number]
            args = [self.at(a, cycle - (node.kind == "fetch")) for a in node.args]
            if number in units:
                made: Value = Signal(_shape(node), name=f"{name}{number}")
                operands.setdefault(units[number], []).append((cycle % pipeline.interval, args, made))
            elif node.kind in READS:
                assert read is not None
                made = read(node, args[0], cycle)
            elif node.kind == "write":
                made = Const(0)
            else:
                made = _value(m, f"{name}{number}", node, args, column, alone=number in inner)
            self._values.append([made])
        for unit, some in operands.items():
            assert turn is not None
            self._multiplier(f"{name}unit{unit}", some, turn)

    def at(self, number: int, cycle: int) -> Value:
        """The value of operation ``number`` in ``cycle``, its own one or a later one."""
        values, first, step = self._values[number], self._pipeline.cycles[number], self._pipeline.interval
        if self._nodes[number].kind == "constant" or cycle <= self._kept.get(number, first):
            return values[0]
        if self._nodes[number].kind == "input" and self._earlier is not None:
            return self._earlier(self._nodes[number], cycle)
        while len(values) <= -(-(cycle - first) // step):
            last = first + (len(values) - 1) * step
            register = Signal(_shape(self._nodes[number]), name=f"{self._name}{number}_{last + 1}", reset_less=True)
            if self._loads is None:
                self._m.d.sync += register.eq(values[-1])
            else:
                with self._m.If(self._loads(last)):
                    self._m.d.sync += register.eq(values[-1])
            values.append(register)
        return values[-(-(cycle - first) // step)]

    def _multiplier(self, name: str, some: Sequence[tuple[int, list[Value], Value]],
                    turn: Callable[[int], Value]) -> None:
        factors = []
        for side in range(2):
            shapes = [args[side].shape() for _, args, _ in some]
            is_signed = any(s.signed for s in shapes)
            width = max(s.width + (is_signed and not s.signed) for s in shapes)
            chosen = Signal(signed(width) if is_signed else unsigned(width), name=f"{name}_{'ab'[side]}")
            given: Value = some[-1][1][side]
            for cycle, args, _ in reversed(some[:-1]):
                given = Mux(turn(cycle), args[side], given)
            self._m.d.comb += chosen.eq(given)
            factors.append(chosen)
        product = Signal((factors[0] * factors[1]).shape(), name=name)
        self._m.d.comb += product.eq(factors[0] * factors[1])
        for _, _, made in some:
            self._m.d.comb += made.eq(product)


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


def _inner_sums(graph: Graph, cycles: Sequence[int]) -> set[int]:
    """The sums and differences of ``graph`` that only another one reads, or a comparison by size, in the same cycle."""
    users: dict[int, list[tuple[str, int]]] = {n: [("output", -1)] for n in graph.outputs}
    for node, cycle in zip(graph.nodes, cycles, strict=True):
        for a in node.args:
            users.setdefault(a, []).append((node.kind, cycle))
    return {n for n, (node, cycle) in enumerate(zip(graph.nodes, cycles, strict=True))
            if node.kind in ("+", "-") and users[n] in [[(kind, cycle)] for kind in ("+", "-", "<", "fit")]}


def _value(m: Module, name: str, node: Node, args: Sequence[Value], column: Callable[[Node], Value], *,
           alone: bool) -> Value:
    """The value of ``node``. ``alone``: a sum that takes a carry chain of its own. Yosys would add the operands of one
    within another one by full adders in LUTs, two a bit, where a chain takes one; not if their lowest bit is apart.
    """
    if node.kind == "constant":
        return Const(node.low, _shape(node))
    if node.kind == "input":
        return column(node)
    value = Signal(_shape(node), name=name)
    made = _operation(node, args)
    if alone:
        bits = Cat(args[0][0] ^ args[1][0], made[1:])
        made = bits.as_signed() if made.shape().signed else bits
    m.d.comb += value.eq(made)
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
        case "fit":
            return a
        case "bits":
            sign = a[-1] if a.shape().signed else Const(0, 1)
            return a[:node.places] if node.places <= len(a) else Cat(a, sign.replicate(node.places - len(a)))
        case "shift":
            return a << node.places if node.places > 0 else a >> -node.places
    raise TypeError(f"no operation {node.kind!r}")


def _less(a: Value, b: Value) -> Value:
    """True if ``a`` is less than ``b``: the sign of a difference, which Yosys maps to a carry chain, and ``a < b`` to
    several times as many LUTs.
    """
    return (a - b).as_signed()[-1]
