"""The pipelines of user-defined aggregates: the cycle of each operation of a program.

Operations are chained within a cycle as long as their delays (`splitjoin.circuit.delays`) fit the clock that is asked
for. Without a clock, every pipeline has one cycle.
"""

from __future__ import annotations

from dataclasses import dataclass

from splitjoin.base.errors import UnsupportedError

from .delays import operation_ns, register_ns
from .fold_nodes import Graph

__all__ = ["ScheduledGraph", "scheduled"]


@dataclass(frozen=True)
class ScheduledGraph:
    """Operations with their cycles, from 0 on."""

    graph: Graph
    cycles: tuple[int, ...]

    @property
    def ahead(self) -> int:
        """Cycles from the operands to the outputs, 1 at least: the outputs are registered."""
        return 1 + max(self.cycles, default=0)

    @property
    def register_bits(self) -> int:
        """Bits of the registers between cycles, and behind the last one."""
        last = [0] * len(self.graph.nodes)
        for node, cycle in zip(self.graph.nodes, self.cycles, strict=True):
            for a in node.args:
                last[a] = max(last[a], cycle)
        for a in self.graph.outputs:
            last[a] = self.ahead
        return sum(node.width * (until - cycle) for node, cycle, until in zip(
            self.graph.nodes, self.cycles, last, strict=True) if node.kind != "constant")


def scheduled(graph: Graph, clock: float | None) -> ScheduledGraph:
    """The cycles of the operations of ``graph`` at ``clock`` MHz. Raises `UnsupportedError` for one that takes more
    than a cycle.
    """
    room = None if clock is None else 1000 / clock - register_ns()
    cycles, ends = list[int](), list[float]()
    for node in graph.nodes:
        ns = operation_ns(node.kind, [graph.nodes[a].width for a in node.args] + [node.width])
        cycle, begin = max(((cycles[a], ends[a]) for a in node.args), default=(0, 0.0))
        if room is not None and ns > room:
            most = max([*(graph.nodes[a].width for a in node.args), node.width])
            raise UnsupportedError(f"an operation {node.kind!r} of {most} bits takes {ns + register_ns():.1f} ns, so "
                                   f"the clock must be at most {1000 / (ns + register_ns()):.0f} MHz, not {clock:g}; "
                                   f"state fewer bits, or ask for a slower clock")
        if room is not None and begin + ns > room:
            cycle, begin = cycle + 1, 0.0
        cycles.append(cycle)
        ends.append(begin + ns)
    return ScheduledGraph(graph, tuple(cycles))
