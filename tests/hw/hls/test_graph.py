# amaranth: UnusedElaboratable=no
"""Datapaths of users' programs: random classes and the examples give what the reference gives, in the stated cycle."""

from __future__ import annotations

from typing import Any

import pytest
from amaranth.hdl import Module, Shape, Value, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from hypothesis import HealthCheck, given, settings, strategies as st

from splitjoin import UnsupportedError
from splitjoin.hls.graph import Graph, Node, width_of
from splitjoin.hls.pipeline import ScheduledGraph, scheduled
from splitjoin.hls.programs import build_graph
from splitjoin.lang.fold import Fold, Width
from splitjoin_hw.hls.graph import combinational, outside_width, pipelined
from tests.testbench.on_amaranth import simulate

from ...support.random_aggregates import RandomAggregate, random_aggregates
from ...support.sampling import at_length, examples
from ...support.user_aggregates import EXAMPLES, Histogram, Variance

#: Clocks in MHz at which a program has one cycle, and several.
CLOCKS = (None, 100.0, 160.0)


def shape(low: int, bits: int) -> Shape:
    return signed(bits) if low < 0 else unsigned(bits)


class AddProgram(wiring.Component):
    """``add`` of a class, pipelined or without registers. Ports: its inputs and outputs, in the order of the graph, and
    whether each output is outside the width of its slot.
    """

    def __init__(self, fold: Fold, program: ScheduledGraph | Graph):
        self.fold, self.program = fold, program
        self.graph = program.graph if isinstance(program, ScheduledGraph) else program
        self.inputs = {(n.side, n.name): f"in{i}" for i, n in enumerate(self.graph.nodes) if n.kind == "input"}
        nodes = [self.graph.nodes[n] for n in self.graph.outputs]
        super().__init__({
            **{f"in{i}": In(shape(n.low, n.width)) for i, n in enumerate(self.graph.nodes) if n.kind == "input"},
            **{f"out{i}": Out(shape(n.low, n.width)) for i, n in enumerate(nodes)},
            **{f"outside{i}": Out(1) for i in range(len(nodes))}})

    def elaborate(self, platform: object) -> Module:
        m = Module()

        def column(node: Node) -> Value:
            port: Value = getattr(self, self.inputs[node.side, node.name])
            return port

        build: Any = pipelined if isinstance(self.program, ScheduledGraph) else combinational
        for i, (value, number) in enumerate(zip(build(m, "add", self.program, column), self.graph.outputs,
                                                strict=True)):
            node, width = self.graph.nodes[number], self.fold.slots[i].width
            m.d.comb += [getattr(self, f"out{i}").eq(value), getattr(self, f"outside{i}").eq(
                outside_width(value, node.low, node.high, width.bits, width.signed))]
        return m


def programs(fold: Fold, clock: float | None) -> list[ScheduledGraph | Graph]:
    """``add`` without registers, and for ``clock``, or a slower one where an operation is too wide for it."""
    graph = build_graph(fold.add)
    try:
        return [graph, scheduled(graph, clock)]
    except UnsupportedError as error:
        assert "so the clock must be at most" in str(error)
        return [graph, scheduled(graph, 60.0)]


def check(fold: Fold, clock: float | None, cases: list[tuple[list[int], list[int]]]) -> None:
    """``cases``: states and arguments, which come in successive cycles."""
    run = fold.add.evaluator()
    wanted = [[int(v) for v in run(fold.row(state), {a.name: v for a, v in zip(fold.arguments, values, strict=True)})]
              for state, values in cases]
    for program in programs(fold, clock):
        circuit = AddProgram(fold, program)
        ahead = program.ahead if isinstance(program, ScheduledGraph) else 0
        outputs: list[list[int]] = []
        outside: list[list[int]] = []

        async def body(tb: Any, circuit: AddProgram = circuit, ahead: int = ahead, outputs: list[list[int]] = outputs,
                       outside: list[list[int]] = outside) -> None:
            watched = [[tb.watch(f"{name}{i}") for i in range(len(fold.slots))] for name in ("out", "outside")]
            for cycle in range(len(cases) + ahead):
                state, values = cases[min(cycle, len(cases) - 1)]
                numbers = {("r", s.name): v for s, v in zip(fold.slots, state, strict=True)}
                numbers |= {("s", a.name): v for a, v in zip(fold.arguments, values, strict=True)}
                for column, port in circuit.inputs.items():
                    tb.set(port, numbers[column])
                await tb.steps(1)
                if cycle >= ahead:
                    outputs.append([get() for get in watched[0]])
                    outside.append([get() for get in watched[1]])

        simulate(circuit, body)
        assert outputs == wanted
        assert outside == [[int(not s.width.range[0] <= v <= s.width.range[1])
                            for s, v in zip(fold.slots, values, strict=True)] for values in wanted]


def cases(draw: Any, fold: Fold) -> list[tuple[list[int], list[int]]]:
    def numbers(parts: Any) -> st.SearchStrategy[list[int]]:
        return st.tuples(*(st.integers(*part.width.range) for part in parts)).map(list)

    return draw(st.lists(st.tuples(numbers(fold.slots), numbers(fold.arguments)), min_size=1, max_size=8))


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.too_slow])
@given(aggregate=random_aggregates(), clock=st.sampled_from(CLOCKS), data=st.data())
def test_random_classes_add_like_the_reference(aggregate: RandomAggregate, clock: float | None,
                                               data: st.DataObject) -> None:
    fold = aggregate.compiled.fold
    check(fold, clock, cases(data.draw, fold))


@pytest.mark.parametrize("number", [n if c in (Histogram, Variance) else at_length(n)
                                    for n, (c, *_) in enumerate(EXAMPLES)])
@settings(max_examples=examples(4), suppress_health_check=[HealthCheck.too_slow])
@given(clock=st.sampled_from(CLOCKS), data=st.data())
def test_examples_add_like_the_reference(number: int, clock: float | None, data: st.DataObject) -> None:
    fold = EXAMPLES[number][0].fold
    check(fold, clock, cases(data.draw, fold))


def test_a_clock_adds_cycles_and_too_fast_a_one_is_refused() -> None:
    graph = build_graph(Histogram.fold.add)
    assert [scheduled(graph, clock).ahead for clock in (None, 100.0, 250.0)] == [1, 1, 2]
    with pytest.raises(UnsupportedError, match=r"an operation '\*' of 31 bits takes 6.9 ns, so the clock must be at "
                                               r"most 145 MHz, not 200; state fewer bits"):
        scheduled(build_graph(Variance.fold.add), 200.0)


class Outside(wiring.Component):
    """Whether ``value``, from ``low`` to ``high``, is outside of each width of up to 4 bits: a bit for each."""

    def __init__(self, low: int, high: int):
        self.ends = low, high
        self.widths = [Width(bits, is_signed) for bits in range(1, 5) for is_signed in (False, True)]
        super().__init__({"value": In(shape(low, width_of(low, high))), "outside": Out(len(self.widths))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for bit, width in zip(self.outside, self.widths, strict=True):
            m.d.comb += bit.eq(outside_width(self.value, *self.ends, width.bits, width.signed))
        return m


def test_lines_do_not_tell_graphs_apart() -> None:
    """Graphs that differ in the lines of their nodes alone are equal, so their cost is computed once."""
    node = Node("input", (), 0, 1)
    assert {Graph((node,), (0,), (("a.py", 1),)), Graph((node,), (0,), (None,))} == {Graph((node,), (0,))}


def test_widths_are_the_least_that_hold_both_ends() -> None:
    for low in range(-9, 10):
        for high in range(low, 18):
            least = next(bits for bits in range(1, 9) if (
                low >= -(1 << bits - 1) and high < 1 << bits - 1 if low < 0 else high < 1 << bits))
            assert width_of(low, high) == Node("input", (), low, high).width == least


@pytest.mark.parametrize(("low", "high"), [(0, 31), (0, 1), (-32, 31), (-5, 20), (0, 7), (-8, 7)])
def test_outside_width_is_exact_for_every_value(low: int, high: int) -> None:
    circuit = Outside(low, high)

    async def body(tb: Any) -> None:
        outside = tb.watch("outside")
        for value in range(low, high + 1):
            tb.set("value", value)
            await tb.steps(1)
            assert outside() == sum((not width.range[0] <= value <= width.range[1]) << n
                                    for n, width in enumerate(circuit.widths)), value

    simulate(circuit, body)
