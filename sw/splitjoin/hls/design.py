"""A kernel with its pipeline for a clock, an interval and an FPGA family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from splitjoin.base.errors import InputError

from .kernels import Kernel, compiled
from .memories import with_memories
from .pipeline import ScheduledGraph, scheduled

#: FPGA family → inputs of its LUTs.
FAMILIES = {"ecp5": 4, "ultrascale": 6}


@dataclass(frozen=True)
class Design:
    """A compiled function. ``clock``: in MHz, None if any."""

    kernel: Kernel
    pipeline: ScheduledGraph
    family: str
    clock: float | None


def design_of(fn: Any, clock: float | None, interval: int | None, family: str) -> Design:
    """The design of ``fn``; ``interval``: None for the shortest one."""
    if family not in FAMILIES:
        raise InputError(f"the family must be one of {', '.join(FAMILIES)}, not {family!r}")
    if clock is not None and not (isinstance(clock, (int, float)) and clock > 0):
        raise InputError(f"the clock must be a number of MHz above 0, or None, not {clock!r}")
    if interval is not None and not (isinstance(interval, int) and interval >= 1):
        raise InputError(f"the interval must be a number of cycles from 1 on, or None, not {interval!r}")
    kernel = with_memories(compiled(fn))
    return Design(kernel, scheduled(kernel.graph, clock, interval=interval, writes=_writes(kernel)), family, clock)


def _writes(kernel: Kernel) -> dict[int, int]:
    """The inputs that are a state, and the operations that compute its next value."""
    nodes = kernel.graph.nodes
    reads = {node.name: n for n, node in enumerate(nodes) if node.kind == "input" and node.side == "r"}
    new = dict(zip((slot.name for slot in kernel.slots), kernel.graph.outputs, strict=False))
    into = {nodes[n].name: n for n in kernel.graph.outputs if nodes[n].kind == "write"}
    return {n: new[name] for name, n in reads.items()} | {
        n: into[node.name] for n, node in enumerate(nodes) if node.kind == "read"}
