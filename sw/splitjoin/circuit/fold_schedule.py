"""The schedule of a user-defined aggregate's circuit: the cycle of each operation, and the initiation interval.

Operations are chained within a cycle as long as their delays (`splitjoin.circuit.delays`) fit the clock that is asked
for. What does not depend on the state is computed ahead, in a pipeline; what does is the loop, and a partner takes as
many cycles as the loop has: the initiation interval. Without a clock, every pipeline has one cycle.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from splitjoin.base.errors import UnsupportedError
from splitjoin.lang.fold import Fold, Program, Slot

from .delays import operation_ns, register_ns
from .fold_nodes import Graph, build_graph

__all__ = ["FoldPlan", "Pipeline", "plan_fold", "scheduled"]


@dataclass(frozen=True)
class Pipeline:
    """Operations with their cycles, from 0 on. ``loop``: True for those that depend on the state and are not computed
    ahead; their cycles count from the begin of the loop.
    """

    graph: Graph
    cycles: tuple[int, ...]
    loop: tuple[bool, ...]

    @property
    def ahead(self) -> int:
        """Cycles of what is computed ahead, 1 at least: the inputs are registered."""
        return 1 + max((c for c, looped in zip(self.cycles, self.loop, strict=True) if not looped), default=0)

    @property
    def interval(self) -> int:
        """Cycles of the loop: the initiation interval."""
        return 1 + max((c for c, looped in zip(self.cycles, self.loop, strict=True) if looped), default=0)

    def registers(self, *, looped: bool) -> int:
        """Bits of the registers between cycles, of the loop or of what is computed ahead."""
        last = [0] * len(self.graph.nodes)
        end = (self.interval if looped else self.ahead) - 1
        for node, cycle, loop in zip(self.graph.nodes, self.cycles, self.loop, strict=True):
            for a in node.args:
                last[a] = max(last[a], cycle if loop == self.loop[a] else end + 1)
        for a in self.graph.outputs:
            last[a] = max(last[a], end + (not looped))
        return sum(node.width * ((until > cycle) if looped else until - cycle) for node, cycle, loop, until in zip(
            self.graph.nodes, self.cycles, self.loop, last, strict=True) if loop == looped and node.kind not in (
                "constant", *(("input",) if looped else ())))


@dataclass(frozen=True)
class FoldPlan:
    """The circuit of a user-defined aggregate. ``add``: with a loop. ``result``: a pipeline, or None.

    ``host_result``: the reason why the host computes the result from the state, empty if the circuit does. ``clock``:
    MHz, or None.
    """

    fold: Fold
    add: Pipeline
    result: Pipeline | None
    host_result: str
    clock: float | None

    @cached_property
    def state_bits(self) -> int:
        """Bits of the state."""
        return sum(slot.width.bits for slot in self.fold.slots)

    @property
    def interval(self) -> int:
        """Cycles from a partner to the next one."""
        return self.add.interval

    @property
    def latency(self) -> int:
        """Cycles from the last partner to the output, if nothing waits."""
        return self.add.ahead + self.add.interval + (1 if self.result is None else self.result.ahead)

    def checked(self, program: Pipeline) -> list[tuple[int, Slot]]:
        """The outputs of ``program`` that may leave the width of their slots, by number."""
        found = []
        for n, (slot, output) in enumerate(zip(self.fold.slots, program.graph.outputs, strict=True)):
            node, (low, high) = program.graph.nodes[output], slot.width.range
            if node.low < low or node.high > high:
                found.append((n, slot))
        return found


def plan_fold(fold: Fold, clock: float | None = None) -> FoldPlan:
    """The circuits of ``fold`` for ``clock`` MHz. Raises `UnsupportedError` for operations that circuits do not have,
    and for a clock at which one of them takes more than a cycle.
    """
    add = _pipeline(fold.add, clock, looped=True)
    try:
        if fold.width is None:
            raise UnsupportedError("result() has no stated width")
        return FoldPlan(fold, add, _pipeline(fold.result, clock, looped=False), "", clock)
    except UnsupportedError as error:
        return FoldPlan(fold, add, None, str(error), clock)


def _pipeline(program: Program, clock: float | None, *, looped: bool) -> Pipeline:
    return scheduled(build_graph(program), clock, looped=looped)


def scheduled(graph: Graph, clock: float | None, *, looped: bool = False) -> Pipeline:
    """The cycles of the operations of ``graph``. Raises `UnsupportedError` for one that takes more than a cycle."""
    room = None if clock is None else 1000 / clock - register_ns()
    cycles, ends, loops = list[int](), list[float](), list[bool]()
    for node in graph.nodes:
        in_loop = looped and ((node.kind == "input" and node.side == "r") or any(loops[a] for a in node.args))
        ns = operation_ns(node.kind, [graph.nodes[a].width for a in node.args] + [node.width])
        # What was computed ahead is in registers when the loop begins.
        cycle, begin = max(((cycles[a], ends[a]) for a in node.args if loops[a] == in_loop), default=(0, 0.0))
        if room is not None and ns > room:
            most = max([*(graph.nodes[a].width for a in node.args), node.width])
            raise UnsupportedError(f"an operation {node.kind!r} of {most} bits takes {ns + register_ns():.1f} ns, so "
                                   f"the clock must be at most {1000 / (ns + register_ns()):.0f} MHz, not {clock:g}; "
                                   f"state fewer bits, or ask for a slower clock")
        if room is not None and begin + ns > room:
            cycle, begin = cycle + 1, 0.0
        cycles.append(cycle)
        ends.append(begin + ns)
        loops.append(in_loop)
    return Pipeline(graph, tuple(cycles), tuple(loops))
