"""Pipelines: the cycle of each operation of a graph.

Operations are chained within a cycle as long as their delays, bit by bit (`splitjoin.hls.bits`), fit the clock that is
asked for. Without a clock, every pipeline has one cycle, and one more for each read of block RAM that waits for another
one. A state that an operation changes is read as late as the interval, in which the next operands come, allows.
Multiplications take turns on as few multipliers as the interval allows (modulo scheduling: Rau, Iterative modulo
scheduling, MICRO 1994).
"""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from splitjoin.base.errors import UnsupportedError

from .bits import GraphBits, multiplier_blocks
from .delays import GATE, REGISTERS
from .graph import Graph

#: Longest interval that is tried.
_LONGEST = 1024


@dataclass(frozen=True)
class Carried:
    """A state that operation ``read`` reads, and whose next value operation ``write`` computes: for the operands that
    come so many ``intervals`` later, and so many cycles ``ahead`` of these operands' read.
    """

    read: int
    write: int
    intervals: int = 1
    ahead: int = 0

    def slack(self, interval: int) -> int:
        """The cycles by which ``write`` may come after ``read``, at most."""
        return self.intervals * interval - 1 - self.ahead


@dataclass(frozen=True)
class ScheduledGraph:
    """Operations with their cycles, from 0 on; that of a ``fetch`` is the one behind its address. ``interval``: cycles
    from operands to the next ones. ``units``: of each multiplication that takes turns with others the number of their
    multiplier, else None. ``carried``: the states.
    """

    graph: Graph
    cycles: tuple[int, ...]
    interval: int = 1
    units: tuple[int | None, ...] = ()
    carried: tuple[Carried, ...] = ()

    @property
    def ahead(self) -> int:
        """Cycles from the operands to the outputs, 1 at least: the outputs are registered."""
        return 1 + max(self.cycles, default=0)

    def shared(self) -> dict[int, list[int]]:
        """The multiplications of each multiplier that several share."""
        found: dict[int, list[int]] = {}
        for n, unit in enumerate(self.units):
            if unit is not None:
                found.setdefault(unit, []).append(n)
        return found


class IntervalError(UnsupportedError):
    """An interval is shorter than ``least``, the least one."""

    def __init__(self, said: str, least: int):
        super().__init__(said)
        self.least = least


class _Recurrence(Exception):
    """A state is needed before it is there: the operation that gives it."""

    def __init__(self, write: int):
        super().__init__(write)
        self.write = write


def _located(graph: Graph, number: int) -> str:
    """The place of operation ``number`` in its source, as a line of an error's text; empty if it is not known."""
    place = graph.places[number] if graph.places else None
    return "" if place is None else f"\n  {place[0]}, line {place[1]}:\n    {linecache.getline(*place).strip()}"


def scheduled(graph: Graph, clock: float | None, *, interval: int | None = 1,
              carried: Sequence[Carried] = ()) -> ScheduledGraph:
    """The cycles of the operations of ``graph`` at ``clock`` MHz.

    ``carried``: the states. ``interval``: None for the least one that they allow. Raises `UnsupportedError` for an
    operation that takes more than a cycle, and for an interval that is too short.
    """
    states = tuple(carried)
    if clock is None and interval in (None, 1) and not any(node.kind == "fetch" for node in graph.nodes):
        return ScheduledGraph(graph, (0,) * len(graph.nodes), carried=states)
    room = 1000 / clock - REGISTERS if clock is not None else float("inf")
    if interval is not None:
        try:
            return _Schedule(graph, clock, room, interval, states).found()
        except _Recurrence as late:
            least = scheduled(graph, clock, interval=None, carried=carried).interval
            at = "" if clock is None else f"at {clock:g} MHz "
            raise IntervalError(f"{at}the next state is there after {least} cycles, so the interval must be at least "
                                f"{least}, not {interval}; or ask for a slower clock{_located(graph, late.write)}",
                                least) from None
    for tried in range(1, _LONGEST + 1):
        try:
            return _Schedule(graph, clock, room, tried, states).found()
        except _Recurrence:
            continue
    raise UnsupportedError(f"the next state takes more than {_LONGEST} cycles at {clock:g} MHz; ask for a slower clock")


class _Schedule:
    """Places operations for one interval."""

    def __init__(self, graph: Graph, clock: float | None, room: float, interval: int,
                 states: tuple[Carried, ...]):
        self._graph, self._clock, self._room, self._interval, self._states = graph, clock, room, interval, states
        nodes = graph.nodes
        blocks = {n: multiplier_blocks(graph, n) for n, node in enumerate(nodes) if node.kind == "*"}
        self._kinds = {n: k for n, k in blocks.items() if k and interval > 1}
        some = Counter(self._kinds.values())
        #: Multipliers for each number of blocks, and how many multiplications take turns on one.
        self._units = {k: -(-n // interval) for k, n in some.items()}
        self._turns = {k: -(-n // self._units[k]) for k, n in some.items()}

    def found(self) -> ScheduledGraph:
        """The schedule. Raises `_Recurrence` where a state is not there in time."""
        reads = {state.read: 0 for state in self._states}
        most = None
        while True:
            cycles, units = self._placed(reads)
            most = 1 + 2 * max(cycles, default=0) + len(reads) if most is None else most
            late = {state: cycles[state.write] - slack for state in self._states
                    if state.write != state.read
                    and cycles[state.write] > cycles[state.read] + (slack := state.slack(self._interval))}
            if not late:
                return ScheduledGraph(self._graph, tuple(cycles), self._interval, tuple(units), self._states)
            reads |= {state.read: cycle for state, cycle in late.items()}
            if max(reads.values()) > most:
                raise _Recurrence(max(late, key=lambda state: late[state]).write)

    def _placed(self, reads: Mapping[int, int]) -> tuple[list[int], list[int | None]]:
        bits, cycles, units = GraphBits(self._graph, interval=self._interval), list[int](), list[int | None]()
        taken = Counter[tuple[int, int]]()  # multipliers by their blocks and the turn
        for n, node in enumerate(self._graph.nodes):
            cycle = max([reads.get(n, 0), *(cycles[a] + (node.kind == "fetch") for a in node.args)])
            kind = self._kinds.get(n)
            turns = self._turns.get(kind, 1) if kind is not None else 1
            extra = GATE * -(-(turns - 1).bit_length() // 2) if turns > 1 else 0.0
            tries = 0
            while (kind is not None and taken[kind, cycle % self._interval] >= self._units[kind]) or (
                    (ns := bits.place(cycle, self._room, extra)) > self._room):
                blocked = kind is not None and taken[kind, cycle % self._interval] >= self._units[kind]
                cycle, tries = cycle + 1, tries + (not blocked)
                if tries > 1:
                    assert self._clock is not None
                    most = max([*(self._graph.nodes[a].width for a in node.args), node.width])
                    what = f"an operation {node.kind!r} of {most} bits" if node.kind != "fetch" else (
                        "a read of block RAM")
                    raise UnsupportedError(f"{what} takes {ns + REGISTERS:.1f} ns, "
                                           f"so the clock must be at most {1000 / (ns + REGISTERS):.0f} MHz, not "
                                           f"{self._clock:g}; state fewer bits, or ask for a slower clock"
                                           f"{_located(self._graph, n)}")
            unit = None
            if kind is not None:
                unit = taken[kind, cycle % self._interval] + sum(u for k, u in self._units.items() if k < kind)
                taken[kind, cycle % self._interval] += 1
            units.append(unit if turns > 1 else None)
            cycles.append(cycle)
        return cycles, units
