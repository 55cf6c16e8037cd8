"""Sums of many terms as trees, in place of one addition after the other, and sums of three terms by full adders."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace

from .graph import Graph, Node, needed, width_of
from .memories import READS

#: Operations that take a carry chain or a multiplier: of these a path should have few.
_CHAINS = frozenset(("+", "-", "*", "<", "min", "max", "abs"))
#: A state counts as so many chains, as what comes behind it decides the interval.
_STATE = 1000
_SUMS = ("+", "-")


def balanced(graph: Graph) -> Graph:
    """``graph`` with sums of sums that nothing else reads as trees, where this shortens the path through them: two
    terms that are there first are added first, a state last. Values and their ranges are the same.
    """
    inner, made = _inner(graph), _Made()
    new: list[int] = []
    for n, node in enumerate(graph.nodes):
        place = graph.places[n] if graph.places else None
        number = made.add(replace(node, args=tuple(new[a] for a in node.args)), place)
        if node.kind in _SUMS and n not in inner and inner & set(node.args):
            terms = [(new[leaf], sign) for leaf, sign in _terms(graph.nodes, n, inner)]
            number = made.tree(terms, number, place)
        new.append(number)
    return needed(made.nodes, [new[n] for n in graph.outputs], made.places)


def carry_saved(graph: Graph) -> Graph:
    """``graph`` with sums of three terms, one of them of a state, as full adders in gates and one sum: a LUT and a
    chain behind each other, in place of two chains, for half as many LUTs again. Values and their ranges are the same.
    """
    bare = [replace(node, args=tuple(_proved(graph, a) for a in node.args)) if node.kind in _SUMS else node
            for node in graph.nodes]
    graph = needed(bare, graph.outputs, graph.places or [None] * len(bare))
    inner, made = _inner(graph), _Made()
    of_state: list[bool] = []
    new: list[int] = []
    for n, node in enumerate(graph.nodes):
        place = graph.places[n] if graph.places else None
        of_state.append(made.is_state(node) or any(of_state[a] for a in node.args))
        terms = _terms(graph.nodes, n, inner) if node.kind in _SUMS and n not in inner and of_state[n] else []
        # What is subtracted is added with all bits inverted, and 1, for which there is one place.
        if len(terms) == 3 and sum(sign < 0 for _, sign in terms) <= 1:
            new.append(made.saved([(new[a], sign) for a, sign in terms], node, place))
        else:
            new.append(made.add(replace(node, args=tuple(new[a] for a in node.args)), place))
    return needed(made.nodes, [new[n] for n in graph.outputs], made.places)


def _proved(graph: Graph, number: int) -> int:
    """The sum whose value ``number`` is, within limits that are proved, or ``number``."""
    node = graph.nodes[number]
    is_sum = node.kind == "fit" and not node.places and graph.nodes[node.args[0]].kind in _SUMS
    return node.args[0] if is_sum else number


def _inner(graph: Graph) -> set[int]:
    """The sums and differences that nothing but another one reads."""
    users: dict[int, list[int]] = {}
    for n, node in enumerate(graph.nodes):
        for a in node.args:
            users.setdefault(a, []).append(n)
    return {n for n, some in users.items() if graph.nodes[n].kind in _SUMS and n not in graph.outputs
            and len(some) == 1 and graph.nodes[some[0]].kind in _SUMS}


def _terms(nodes: Sequence[Node], root: int, inner: set[int]) -> list[tuple[int, int]]:
    """The operations that the sum ``root`` adds, with 1, or subtracts, with -1; sums of ``inner`` are taken apart."""
    found, pending = [], [(root, 1)]
    while pending:
        n, sign = pending.pop()
        if n != root and n not in inner:
            found.append((n, sign))
            continue
        a, b = nodes[n].args
        pending += [(b, sign if nodes[n].kind == "+" else -sign), (a, sign)]
    return found


class _Made:
    """Operations, each with the chains on the longest path to its value."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.places: list[tuple[str, int] | None] = []
        self._chains: list[int] = []

    def add(self, node: Node, place: tuple[str, int] | None) -> int:
        """The number of ``node``, which is a new operation."""
        before = max((self._chains[a] for a in node.args), default=0)
        self.nodes.append(node)
        self.places.append(place)
        self._chains.append(max(before + (node.kind in _CHAINS), _STATE * self.is_state(node)))
        return len(self.nodes) - 1

    @staticmethod
    def is_state(node: Node) -> bool:
        """True if ``node`` reads a state."""
        return node.side == "r" and node.kind in ("input", *READS)

    def saved(self, terms: Sequence[tuple[int, int]], sum_: Node, place: tuple[str, int] | None) -> int:
        """``sum_`` of three ``terms``, of which one may be subtracted."""
        one = Node("constant", (), 1, 1)
        wide = max(width_of(self.nodes[n].low, self.nodes[n].high) + (self.nodes[n].low >= 0) for n, _ in terms)

        def gate(kind: str, *args: int) -> int:
            return self.add(Node(kind, args, -1 << wide - 1, (1 << wide - 1) - 1), place)

        def inverted(n: int) -> int:
            return gate("^", n, self.add(Node("constant", (), -1, -1), place))

        a, b, c = (n if sign > 0 else inverted(n) for n, sign in terms)
        carries = gate("|", gate("&", a, b), gate("&", c, gate("|", a, b)))
        ends = -1 << wide, (1 << wide) - 1
        moved = self.add(Node("shift", (carries,), *ends, places=1), place)
        if any(sign < 0 for _, sign in terms):
            moved = self.add(Node("|", (moved, self.add(one, place)), *ends), place)
        return self.add(replace(sum_, kind="+", args=(gate("^", gate("^", a, b), c), moved)), place)

    def tree(self, terms: Sequence[tuple[int, int]], sum_: int, place: tuple[str, int] | None) -> int:
        """``sum_``, or the sum of ``terms`` as a tree if its path is shorter."""
        heap = [(self._chains[n], order, n, sign) for order, (n, sign) in enumerate(terms)]
        heapq.heapify(heap)
        order = len(heap)
        while len(heap) > 1:
            (_, _, a, of_a), (_, _, b, of_b) = heapq.heappop(heap), heapq.heappop(heap)
            if of_a < of_b:
                a, b, of_a, of_b = b, a, of_b, of_a
            x, y = self.nodes[a], self.nodes[b]
            low, high = (x.low + y.low, x.high + y.high) if of_a == of_b else (x.low - y.high, x.high - y.low)
            made = self.add(Node("+" if of_a == of_b else "-", (a, b), low, high), place)
            heapq.heappush(heap, (self._chains[made], order, made, of_a))
            order += 1
        _, _, made, sign = heap[0]
        # The first term of a sum is added, so this holds: what is added to it stays positive.
        assert sign == 1
        if self._chains[made] >= self._chains[sum_]:
            return sum_
        self.nodes[made] = replace(self.nodes[made], low=self.nodes[sum_].low, high=self.nodes[sum_].high)
        return made
