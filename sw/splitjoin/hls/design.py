"""A kernel with its pipeline for a clock, an interval and an FPGA family."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from splitjoin.base.errors import InputError, UnsupportedError

from .balance import carry_saved
from .kernels import Kernel, compiled
from .memories import READS, forwarded
from .pipeline import Carried, IntervalError, ScheduledGraph, scheduled

#: FPGA family → inputs of its LUTs.
FAMILIES = {"ecp5": 4, "ultrascale": 6}
#: The most writes to block RAM that registers hold.
_FORWARDED = 4


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
    if clock is not None and not (type(clock) in (int, float) and clock > 0):
        raise InputError(f"the clock must be a number of MHz above 0, or None, not {clock!r}")
    if interval is not None and not (type(interval) is int and interval >= 1):
        raise InputError(f"the interval must be a number of cycles from 1 on, or None, not {interval!r}")
    kernel = compiled(fn)
    # What is written to block RAM comes late for the next operands, but for registers that hold the last writes.
    depths = _FORWARDED if any(memory.block and memory.written for memory in kernel.memories) else 0
    found: list[Design] = []
    refused: list[UnsupportedError] = []
    for depth, saves in product(range(depths + 1), (False, True)):
        graph, slots = forwarded(kernel.graph, len(kernel.slots), kernel.memories, depth)
        form = replace(kernel, graph=carry_saved(graph) if saves else graph, slots=(*kernel.slots, *slots))
        try:
            pipeline = scheduled(form.graph, clock, interval=interval, carried=_carried(form, 1 + depth))
        except UnsupportedError as error:
            refused.append(error)
            continue
        found.append(Design(form, pipeline, family, clock))
        if pipeline.interval in (1, interval):
            break
    if not found:
        raise min(refused, key=lambda error: error.least if isinstance(error, IntervalError) else 0)
    return min(found, key=lambda design: design.pipeline.interval)


def _carried(kernel: Kernel, intervals: int) -> list[Carried]:
    """The states of ``kernel``; ``intervals``: from a write to block RAM to the next operands that may read it."""
    nodes = kernel.graph.nodes
    reads = {node.name: n for n, node in enumerate(nodes) if node.kind == "input" and node.side == "r"}
    new = dict(zip((slot.name for slot in kernel.slots), kernel.graph.outputs, strict=False))
    # Block RAM takes the address a cycle earlier, and what is written in that one is not yet read.
    return [*(Carried(n, new[name]) for name, n in reads.items()),
            *(Carried(n, kernel.writes[node.name], intervals if node.kind == "fetch" else 1, int(node.kind == "fetch"))
              for n, node in enumerate(nodes) if node.kind in READS and node.name in kernel.writes)]
