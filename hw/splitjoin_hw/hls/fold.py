"""Circuits of user-defined aggregates: a unit that folds partners one by one, and the datapaths of programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.fold_nodes import Graph, Node
from splitjoin.circuit.fold_schedule import FoldPlan, Pipeline
from splitjoin.lang.fold import Slot, Width

__all__ = ["FoldUnit", "evaluated", "lifted", "outside_width", "partner_layout", "result_layout", "state_layout"]


def partner_layout(plan: FoldPlan) -> data.StructLayout:
    """A partner of a base tuple. ``last``: nothing comes after it for this base tuple. ``present``: 0 if the record
    only ends a base tuple, or an argument is NULL. ``argument0`` …: the arguments without their points.
    """
    return data.StructLayout({"last": unsigned(1), "present": unsigned(1), **{
        f"argument{n}": _shape(a.width) for n, a in enumerate(plan.fold.arguments)}})


def state_layout(plan: FoldPlan) -> data.StructLayout:
    """The state of one base tuple. ``added``: 1 if a partner was added. ``over``: 1 if a slot left its width on the
    way; the slots then have no meaning. ``slot0`` …: the slots without their points.
    """
    return data.StructLayout({"added": unsigned(1), "over": unsigned(1), **{
        f"slot{n}": _shape(s.width) for n, s in enumerate(plan.fold.slots)}})


def result_layout(plan: FoldPlan) -> data.StructLayout:
    """The result of one base tuple. ``added``, ``over`` as of `state_layout`. ``wide``: 1 if the result does not fit
    its width. ``value``: without its point.
    """
    assert plan.fold.width is not None
    return data.StructLayout({"added": unsigned(1), "over": unsigned(1), "wide": unsigned(1),
                              "value": _shape(plan.fold.width)})


def _shape(width: Width) -> Shape:
    return signed(width.bits) if width.signed else unsigned(width.bits)


class FoldUnit(wiring.Component):
    """Folds the partners of base tuples, one base tuple after the other.

    A partner is taken every `FoldPlan.interval` cycles; the output of a base tuple is offered `FoldPlan.latency` cycles
    after its last partner was taken, if nothing waits. What does not depend on the state is computed ahead.

    Ports: ``i``: `partner_layout`. ``o``: `result_layout`, or `state_layout` if the result is computed elsewhere.
    """

    def __init__(self, plan: FoldPlan):
        self._plan, self._result = plan, plan.result
        super().__init__({
            "i": In(stream.Signature(partner_layout(plan))),
            "o": Out(stream.Signature(state_layout(plan) if self._result is None else result_layout(plan))),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        plan, fold, program = self._plan, self._plan.fold, self._plan.add
        state = [Signal(_shape(s.width), name=f"state{n}", init=s.init) for n, s in enumerate(fold.slots)]
        numbers = {s.name: n for n, s in enumerate(fold.slots)}
        arguments = {a.name: n for n, a in enumerate(fold.arguments)}
        advance, finish = Signal(), Signal()

        def column(node: Node) -> Value:
            return state[numbers[node.name]] if node.side == "r" else self.i.payload[f"argument{arguments[node.name]}"]

        path = _Datapath(m, "add", program, column, advance)
        valid, last, present = (path.delayed(name, value, reset=name == "valid") for name, value in (
            ("valid", self.i.valid), ("last", self.i.payload.last), ("present", self.i.payload.present)))
        outputs = path.outputs()

        # The loop: its inputs stay as they are until the last of its cycles.
        done = Const(1)
        if program.interval > 1:
            phase = Signal(range(program.interval))
            done = phase == program.interval - 1
            with m.If(finish):
                m.d.sync += phase.eq(0)
            with m.Elif(valid & ~done):
                m.d.sync += phase.eq(phase + 1)
        stall, final = Signal(), Signal()  # ``final``: the last state of a base tuple waits to leave
        m.d.comb += [finish.eq(valid & done & ~stall), advance.eq(~valid | finish), self.i.ready.eq(advance)]

        # A slot's upper bits are looked at a cycle later, when the state holds the others.
        over, added, fresh = Signal(), Signal(), Signal()
        checks = []
        for n, slot in plan.checked(program):
            upper = Signal(len(_upper(outputs[n], slot)), name=f"upper{n}")
            with m.If(finish):
                m.d.sync += upper.eq(_upper(outputs[n], slot))
            checks.append(_outside(upper, slot))
        bad = fresh & reduce(or_, checks, Const(0, 1))
        ended = [Signal(_shape(s.width), name=f"ended{n}") for n, s in enumerate(fold.slots)]
        was_added = Signal()
        with m.If(~stall):
            m.d.sync += [fresh.eq(finish & present), over.eq(~final & (over | bad)), final.eq(finish & last)]
        with m.If(finish):
            m.d.sync += added.eq(~last & (added | present))
            for n, (slot, register, after) in enumerate(zip(fold.slots, state, outputs, strict=True)):
                # Enable and reset of the flip-flops choose the next state: only what ends takes a LUT a bit.
                with m.If(last):
                    m.d.sync += [register.eq(slot.init), ended[n].eq(Mux(present, after, register))]
                with m.Elif(present):
                    m.d.sync += register.eq(after)
            with m.If(last):
                m.d.sync += was_added.eq(added | present)

        leave = _Output(m, self.o, final)
        m.d.comb += stall.eq(final & ~leave.advance)
        _finish(m, plan, self._result, leave, ended, {"added": was_added, "over": over | bad})
        return m


class _Output:
    """Registers in front of an output stream. ``advance``: they take what is ``offered``."""

    def __init__(self, m: Module, port, offered: Value):
        self.m, self.port, self.offered, self.advance = m, port, offered, Signal(name="leaves")
        m.d.comb += self.advance.eq(~port.valid | port.ready)


def _finish(m: Module, plan: FoldPlan, result: Pipeline | None, leave: _Output, state: Sequence[Value],
            flags: dict[str, Value]) -> None:
    """The way from a base tuple's state to the output: a register, or the pipeline of the result."""
    port, advance = leave.port, leave.advance
    if result is None:
        with m.If(advance):
            m.d.sync += [port.valid.eq(leave.offered), *(port.payload[name].eq(value) for name, value in flags.items()),
                         *(port.payload[f"slot{n}"].eq(value) for n, value in enumerate(state))]
        return
    numbers = {s.name: n for n, s in enumerate(plan.fold.slots)}
    path = _Datapath(m, "result", result, lambda node: state[numbers[node.name]], advance)
    width = plan.fold.width
    assert width is not None
    (value,) = path.outputs()
    node = result.graph.nodes[result.graph.outputs[0]]
    low, high = width.range
    slot = Slot("result", width)
    m.d.comb += [port.valid.eq(path.delayed("offered", leave.offered, reset=True)), port.payload.value.eq(value),
                 port.payload.wide.eq(Const(0) if low <= node.low <= node.high <= high else
                                      _outside(_upper(value, slot), slot)),
                 *(port.payload[name].eq(path.delayed(name, flag)) for name, flag in flags.items())]


def _upper(value: Value, slot: Slot) -> Value:
    """The bits of ``value`` that are all equal if it fits ``slot``: for unsigned slots, 0."""
    first = slot.width.bits - slot.width.signed
    wide = max(len(value) + 1, first + 2)
    extended = value if len(value) >= wide else Cat(value, (value[-1] if value.shape().signed else Const(0, 1))
                                                    .replicate(wide - len(value)))
    return extended[first:]


def _outside(upper: Value, slot: Slot) -> Value:
    """True if the bits of `_upper` are those of a number outside ``slot``."""
    return ~((upper == 0) | upper.all()) if slot.width.signed else upper.any()


class _Datapath:
    """The operations of ``pipeline``; ``column`` gives the value of an input.

    What is computed ahead moves on in cycles with ``advance``. The loop's registers between its cycles hold what its
    inputs, which do not change, make of them.
    """

    def __init__(self, m: Module, name: str, pipeline: Pipeline, column: Callable[[Node], Value], advance: Value):
        self._m, self._name, self._pipeline, self._advance = m, name, pipeline, advance
        self._values: list[dict[int, Value]] = []
        for at, (node, cycle) in enumerate(zip(pipeline.graph.nodes, pipeline.cycles, strict=True)):
            self._values.append({cycle: self._made(at, node, cycle, column)})

    def outputs(self) -> list[Value]:
        """The outputs: in the loop's last cycle, or behind the pipeline's last register."""
        nodes, loop = self._pipeline.graph.outputs, self._pipeline.loop
        return [self._at(n, self._pipeline.interval - 1 if loop[n] else self._pipeline.ahead) for n in nodes]

    def delayed(self, name: str, value: Value, *, reset: bool = False) -> Value:
        """``value`` behind the pipeline's last register."""
        for cycle in range(self._pipeline.ahead):
            register = Signal(len(value), name=f"{self._name}_{name}_{cycle}", reset_less=not reset)
            with self._m.If(self._advance):
                self._m.d.sync += register.eq(value)
            value = register
        return value

    def _at(self, number: int, cycle: int) -> Value:
        """The value of an operation in a later cycle."""
        node, known = self._pipeline.graph.nodes[number], self._values[number]
        looped = self._pipeline.loop[number]
        if node.kind == "constant" or (looped and node.kind == "input"):
            return next(iter(known.values()))
        if looped:
            first = self._pipeline.cycles[number]
            if cycle > first and first + 1 not in known:
                register = Signal.like(known[first], name=f"{self._name}{number}_held", reset_less=True)
                self._m.d.sync += register.eq(known[first])
                known[first + 1] = register
            return known[min(cycle, first + 1)]
        while max(known) < cycle:
            last = max(known)
            register = Signal(_node_shape(node), name=f"{self._name}{number}_{last + 1}", reset_less=True)
            with self._m.If(self._advance):
                self._m.d.sync += register.eq(known[last])
            known[last + 1] = register
        return known[cycle]

    def _made(self, number: int, node: Node, cycle: int, column: Callable[[Node], Value]) -> Value:
        if node.kind == "constant":
            return Const(node.low, _node_shape(node))
        if node.kind == "input":
            return column(node)
        loop = self._pipeline.loop
        args = [self._at(a, self._pipeline.ahead if loop[number] and not loop[a] else cycle) for a in node.args]
        value = Signal(_node_shape(node), name=f"{self._name}{number}")
        self._m.d.comb += value.eq(_operation(node, args))
        return value


def _node_shape(node: Node) -> Shape:
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


def evaluated(m: Module, name: str, graph: Graph, column: Callable[[Node], Value]) -> list[Value]:
    """The outputs of ``graph``, without registers; ``column`` gives the value of an input."""
    values: list[Value] = []
    for number, node in enumerate(graph.nodes):
        if node.kind == "constant":
            values.append(Const(node.low, _node_shape(node)))
        elif node.kind == "input":
            values.append(column(node))
        else:
            value = Signal(_node_shape(node), name=f"{name}{number}")
            m.d.comb += value.eq(_operation(node, [values[a] for a in node.args]))
            values.append(value)
    return [values[n] for n in graph.outputs]


def lifted(m: Module, name: str, pipeline: Pipeline, column: Callable[[Node], Value]) -> list[Value]:
    """The outputs of ``pipeline``, which takes operands in every cycle, `Pipeline.ahead` cycles later."""
    return _Datapath(m, name, pipeline, column, Const(1)).outputs()


def outside_width(value: Value, low: int, high: int, bits: int, is_signed: bool) -> Value:
    """True if ``value``, which lies from ``low`` to ``high``, does not fit ``bits`` bits."""
    width = Width(bits, is_signed)
    if width.range[0] <= low <= high <= width.range[1]:
        return Const(0)
    slot = Slot("", width)
    return _outside(_upper(value, slot), slot)
