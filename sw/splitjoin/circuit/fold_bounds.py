"""Bounds of the states of user-defined aggregates over many partners, through sums and choices.

A merge gives each slot one of several *candidates*: sums of slots of both states. A slot *grows linearly* if none of
them is more than what the two states may add up to by their numbers of partners. Then n partners bring it to n times
the bounds of one partner at most, in whichever order states are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from splitjoin.base.errors import UnsupportedError
from splitjoin.hls.graph import Graph, Node, width_of
from splitjoin.lang.fold import Slot

#: A sum: a constant, and factors of slots, each by the side of its state and its name.
Sum = tuple[int, frozenset[tuple[tuple[str, str], int]]]
#: Sums of which the least, or the greatest, bounds a value.
Sums = frozenset[Sum]
#: Most candidates of a value that are told apart.
_MOST = 16


@dataclass(frozen=True)
class StateBounds:
    """The bounds of the slots of one aggregate. ``lifted``: the slots' values for a partner alone; ``merge``: the
    program that merges states, in columns ``slot0`` … of the sides r and s; ``most``: the most partners of a state.
    """

    slots: Sequence[Slot]
    lifted: Sequence[Node]
    merge: Graph
    most: int

    def may_exceed(self, n: int) -> bool:
        """True if slot ``n`` may leave its width, so that the circuit must check it.

        The reference checks the state after each partner, in order; the circuit, which merges in another one, checks
        what it merges. Both fail together if the slot only rises or only falls as states are merged, as then the last
        state leaves the width if any does. Raises `UnsupportedError`, which says what width is enough, if any is known,
        where that is not so.
        """
        slot = self.slots[n]
        low, high = slot.width.range
        if self._is_bounded(n):
            return False
        if n not in self._linear:
            raise UnsupportedError(f"{slot.name} may leave {slot.width} in one order of partners and not in another: "
                                   f"no bound of it is known, as merge does more with it than add, compare and choose")
        least, greatest = (self.most * end for end in self._ends(n))
        if low <= least and greatest <= high:
            return False
        if self._is_monotone(n):
            return True
        bits = width_of(least, greatest)
        must = (f"state at least {bits} bits" if bits <= 64 else "which takes more than the 64 bits that a state may "
                "have; ask for a smaller window or capacity")
        raise UnsupportedError(f"{slot.name} may leave {slot.width} in one order of up to {self.most:,} partners and "
                               f"not in another, as these bring it to numbers from {least:,} to {greatest:,}; {must}")

    def _is_bounded(self, n: int) -> bool:
        """True if slot ``n`` stays within its width whatever the states that are merged."""
        low, high = self.slots[n].width.range
        return all(low <= node.low <= node.high <= high
                   for node in (self.lifted[n], self.merge.nodes[self.merge.outputs[n]]))

    def _ends(self, n: int) -> tuple[int, int]:
        """The least and the greatest value of slot ``n`` for each partner of a state, if it grows linearly."""
        return min(self.lifted[n].low, 0), max(self.lifted[n].high, 0)

    @cached_property
    def _linear(self) -> frozenset[int]:
        """The slots that grow linearly."""
        found = frozenset(n for n in range(len(self.slots)) if not self._is_bounded(n))
        while True:
            kept = frozenset(n for n in found if self._grows_linearly(n, found))
            if kept == found:
                return found
            found = kept

    def _grows_linearly(self, n: int, linear: frozenset[int]) -> bool:
        """True if slot ``n`` does, provided that the slots ``linear`` do."""
        low, high = self._ends(n)
        lows, highs = self._candidates[self.merge.outputs[n]]
        return (all(self._within(c, high, linear, sign=1) for c in highs)
                and all(self._within(c, -low, linear, sign=-1) for c in lows))

    def _within(self, candidate: Sum, end: int, linear: frozenset[int], sign: int) -> bool:
        """True if ``sign · candidate <= end · (i + j)`` for states of i and j partners, 1 at least each."""
        constant, by = sign * candidate[0], {"r": 0, "s": 0}
        for (side, name), factor in candidate[1]:
            slot = self._number(name)
            if slot in linear:
                by[side] += max(sign * factor * x for x in self._ends(slot))
            else:
                constant += max(sign * factor * x for x in self.slots[slot].width.range)
        return max(by.values()) <= end and constant + sum(by.values()) <= 2 * end

    def _is_monotone(self, n: int) -> bool:
        """True if merging never makes slot ``n`` less than in either state, or never greater."""
        lows, highs = self._candidates[self.merge.outputs[n]]
        own = [(0, frozenset({((side, f"slot{n}"), -1)})) for side in "rs"]
        return (all(self._least(_added(c, mine)) >= 0 for c in lows for mine in own)
                or all(self._least(_times(_added(c, mine), -1)) >= 0 for c in highs for mine in own))

    def _least(self, candidate: Sum) -> int:
        least = candidate[0]
        for (_, name), factor in candidate[1]:
            slot = self._number(name)
            ends = [self.most * x for x in self._ends(slot)] if slot in self._linear else self.slots[slot].width.range
            least += min(factor * x for x in ends)
        return least

    def _number(self, name: str) -> int:
        return int(name.removeprefix("slot"))

    @cached_property
    def _candidates(self) -> list[tuple[Sums, Sums]]:
        """For each node of the merge candidates for its least, and for its greatest value."""
        found: list[tuple[Sums, Sums]] = []
        for node in self.merge.nodes:
            lows, highs = _bounds(node, [found[a] for a in node.args], [self.merge.nodes[a] for a in node.args])
            found.append((lows if 0 < len(lows) <= _MOST else frozenset({(node.low, frozenset())}),
                          highs if 0 < len(highs) <= _MOST else frozenset({(node.high, frozenset())})))
        return found


def _bounds(node: Node, args: Sequence[tuple[Sums, Sums]], nodes: Sequence[Node]) -> tuple[Sums, Sums]:
    """Candidates for the least and the greatest value of ``node``; none where only its range is known."""
    none: Sums = frozenset()
    match node.kind:
        case "input":
            own = frozenset({(0, frozenset({((node.side, node.name), 1)}))})
            return own, own
        case "+":
            return _each(_added, args[0][0], args[1][0]), _each(_added, args[0][1], args[1][1])
        case "-":
            turned = _scaled(args[1], -1)
            return _each(_added, args[0][0], turned[0]), _each(_added, args[0][1], turned[1])
        case "fit":
            return args[0]
        case "min" | "max" | "choose":
            some = args[1:] if node.kind == "choose" else args
            return some[0][0] | some[1][0], some[0][1] | some[1][1]
        case "abs":
            return none, args[0][1] | _scaled(args[0], -1)[1]
        case "shift" if node.places > 0:
            return _scaled(args[0], 1 << node.places)
        case "*":
            for one, by in zip(args, reversed(nodes), strict=True):
                if by.kind == "constant":
                    return _scaled(one, by.low)
                if (by.low, by.high) == (0, 1):
                    zero = _scaled(one, 0)
                    return one[0] | zero[0], one[1] | zero[1]
    return none, none


def _each(function: Callable[[Sum, Sum], Sum], a: Sums, b: Sums) -> Sums:
    return frozenset(function(x, y) for x in a for y in b)


def _scaled(bounds: tuple[Sums, Sums], factor: int) -> tuple[Sums, Sums]:
    lows, highs = (frozenset(_times(c, factor) for c in ends) for ends in bounds)
    return (lows, highs) if factor >= 0 else (highs, lows)


def _added(a: Sum, b: Sum) -> Sum:
    factors = dict(a[1])
    for slot, factor in b[1]:
        factors[slot] = factors.get(slot, 0) + factor
    return a[0] + b[0], frozenset((slot, f) for slot, f in factors.items() if f)


def _times(a: Sum, factor: int) -> Sum:
    return a[0] * factor, frozenset((slot, f * factor) for slot, f in a[1] if factor)
