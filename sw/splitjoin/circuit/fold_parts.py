"""Folded states of a circuit: the values that stored tuples bring, and the parts of the state that they are folded to.

Where regions fold, a partner is *lifted* to the state that it makes alone, and states are merged: over the lanes of a
read, over the reads of a pass, and over cores. So every part has a merge that depends neither on the order nor on the
grouping, and the state before the first partner, which is the initial one, changes nothing that it is merged with.
Where one unit folds in the order of arrival, it adds one partner after the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from splitjoin.hls.graph import Graph, Node, width_of
from splitjoin.hls.pipeline import Carried, ScheduledGraph, scheduled


@dataclass(frozen=True)
class FoldValue:
    """A value that a tuple is stored with, beside its keys. ``bits``: 0 where it only counts whether it is NULL;
    ``nullable``: it may be NULL; ``ranged``: it may be outside of what an argument's stated width holds; ``row``: it is
    the tuple's row id, which the circuit knows, so it is not stored.
    """

    bits: int
    signed: bool
    nullable: bool
    ranged: bool = False
    row: bool = False


@dataclass(frozen=True)
class StateSlot:
    """A number of the state, of ``bits`` bits, in two's complement if ``signed``. ``init``: before the first partner.
    ``checked``: a merge, or a partner alone, may leave the width.
    """

    bits: int
    signed: bool
    init: int = 0
    checked: bool = False

    @property
    def range(self) -> tuple[int, int]:
        """The least and the greatest number."""
        return (-(2 ** (self.bits - 1)), 2 ** (self.bits - 1) - 1) if self.signed else (0, 2**self.bits - 1)


@dataclass(frozen=True)
class FoldPart:
    """A part of the state: of one aggregate, or shared by several.

    ``values``: the numbers of the values that it folds; a partner for which one of them is NULL is passed over.
    ``lift``: the slots of a partner alone, from columns ``argument0`` … of stream s. ``merge``: the slots of two
    states, in columns ``slot0`` … of streams r and s, within one cycle. ``add``: the slots of a state, in columns
    ``slot0`` … of stream r, with one more partner, in columns ``argument0`` … of stream s, where one unit folds in
    order; ``lift`` and ``merge`` are empty then.
    """

    values: tuple[int, ...]
    slots: tuple[StateSlot, ...]
    lift: ScheduledGraph
    merge: Graph
    add: ScheduledGraph | None = None

    @property
    def checked(self) -> bool:
        """True if a slot may leave its width."""
        return any(slot.checked for slot in self.slots)


#: The ``lift`` and the ``merge`` of a part that has neither.
NO_MERGE = ScheduledGraph(Graph((), ()), ()), Graph((), ())


def scheduled_add(add: Graph, clock: float | None, interval: int | None = None) -> ScheduledGraph:
    """``add`` of a part, for ``clock`` in MHz and an ``interval``; None for the least one that its state allows."""
    reads = {n.name: at for at, n in enumerate(add.nodes) if n.kind == "input" and n.side == "r"}
    carried = [Carried(at, add.outputs[int(name.removeprefix("slot"))]) for name, at in reads.items()]
    return scheduled(add, clock, interval=interval, carried=carried)


def added(part: FoldPart) -> Graph:
    """The program that adds a partner to a state, of a ``part`` with one slot, whose lift is a node."""
    first, _, merge = part.merge.nodes
    return Graph((first, part.lift.graph.nodes[0], merge), (2,))


def _slot(low: int, high: int, init: int = 0) -> StateSlot:
    return StateSlot(width_of(low, high), low < 0, init)


def _part(values: tuple[int, ...], slot: StateSlot, lifted: Node, operation: str) -> FoldPart:
    low, high = slot.range
    merged = Graph((Node("input", (), low, high, "r", "slot0"), Node("input", (), low, high, "s", "slot0"),
                    Node(operation, (0, 1), low, high)), (2,))
    return FoldPart(values, (slot,), ScheduledGraph(Graph((lifted,), (0,)), (0,)), merged)


def empty_part() -> FoldPart:
    """A part without numbers: a state of it tells only whether there was a partner."""
    return FoldPart((), (), *NO_MERGE)


def count_part(values: tuple[int, ...], most: int) -> FoldPart:
    """The number of partners, up to ``most``, of which no value is NULL."""
    return _part(values, _slot(0, most), Node("constant", (), 1, 1), "+")


def sum_part(value: int, low: int, high: int, most: int) -> FoldPart:
    """The sum of value number ``value`` from ``low`` to ``high`` over up to ``most`` partners."""
    return _part((value,), _slot(min(low * most, 0), max(high * most, 0)), _argument(low, high), "+")


def extreme_part(value: int, low: int, high: int, kind: str) -> FoldPart:
    """The least (``kind`` min) or greatest (max) of value number ``value`` from ``low`` to ``high``."""
    slot = _slot(low, high)
    slot = StateSlot(slot.bits, slot.signed, slot.range[1 if kind == "min" else 0])
    return _part((value,), slot, _argument(low, high), kind)


def _argument(low: int, high: int) -> Node:
    return Node("input", (), low, high, "s", "argument0")
