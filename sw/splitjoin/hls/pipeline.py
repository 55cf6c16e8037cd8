"""Pipelines: the cycle of each operation of a graph.

Operations are chained within a cycle as long as their delays, bit by bit (`splitjoin.hls.bits`), fit the clock
that is asked for. Without a clock, every pipeline has one cycle.
"""

from __future__ import annotations

from dataclasses import dataclass

from splitjoin.base.errors import UnsupportedError

from .bits import GraphBits
from .delays import REGISTERS
from .graph import Graph

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


def scheduled(graph: Graph, clock: float | None) -> ScheduledGraph:
    """The cycles of the operations of ``graph`` at ``clock`` MHz. Raises `UnsupportedError` for one that takes more
    than a cycle.
    """
    if clock is None:
        return ScheduledGraph(graph, (0,) * len(graph.nodes))
    room = 1000 / clock - REGISTERS
    bits, cycles = GraphBits(graph), list[int]()
    for node in graph.nodes:
        cycle = max((cycles[a] for a in node.args), default=0)
        if bits.place(cycle, room) > room:
            cycle += 1
            if (ns := bits.place(cycle, room)) > room:
                most = max([*(graph.nodes[a].width for a in node.args), node.width])
                raise UnsupportedError(f"an operation {node.kind!r} of {most} bits takes {ns + REGISTERS:.1f} ns, "
                                       f"so the clock must be at most {1000 / (ns + REGISTERS):.0f} MHz, not "
                                       f"{clock:g}; state fewer bits, or ask for a slower clock")
        cycles.append(cycle)
    return ScheduledGraph(graph, tuple(cycles))
