"""Graphs of operations on whole numbers of known ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

#: File and line.
Place = tuple[str, int]


@dataclass(frozen=True)
class Node:
    """One operation, whose value lies within ``low`` and ``high``.

    ``kind``: ``input`` (column ``side``, ``name``), ``constant`` (``low``), ``+ - * & | ^``, ``abs``, ``min``, ``max``,
    ``=``, ``<``, ``and``, ``or``, ``not``, ``choose`` (condition, then, otherwise), ``shift`` (by ``places`` to the
    left, or to the right if negative), ``bits`` (the lowest ``places`` bits), ``fit`` (the value, which lies within
    ``low`` and ``high``; as the source promises if ``places`` is 1). Of memories (`splitjoin.hls.memories`): ``read``,
    ``fetch`` (at an address of ``places`` bits) and ``write`` (the number, whether it is written, the address, and the
    reads, which come before).
    ``args``: the operands' numbers.
    """

    kind: str
    args: tuple[int, ...]
    low: int
    high: int
    side: str = ""
    name: str = ""
    places: int = 0

    @property
    def width(self) -> int:
        """Bits of the value, in two's complement if it can be negative."""
        return width_of(self.low, self.high)


@dataclass(frozen=True)
class Graph:
    """Operations, operands first, and the numbers of those whose values are the program's outputs. ``places``: of each
    operation the file and line that it is from, if known.
    """

    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]
    places: tuple[Place | None, ...] = field(default=(), compare=False)


def width_of(low: int, high: int) -> int:
    """Bits that numbers from ``low`` to ``high`` take, in two's complement if some are negative; 1 at least."""
    return max(1, high.bit_length() if low >= 0 else 1 + max(~low, high).bit_length())


def needed(nodes: Sequence[Node], outputs: Sequence[int], of: Sequence[Place | None]) -> Graph:
    """The graph of those of ``nodes`` that ``outputs`` need; ``of``: their places."""
    live, pending = set[int](), list(outputs)
    while pending:
        at = pending.pop()
        if at not in live:
            live.add(at)
            pending += nodes[at].args
    places = {old: new for new, old in enumerate(sorted(live))}
    kept = [Node(n.kind, tuple(places[a] for a in n.args), n.low, n.high, n.side, n.name, n.places)
            for n in (nodes[at] for at in sorted(live))]
    return Graph(tuple(kept), tuple(places[o] for o in outputs), tuple(of[at] for at in sorted(live)))
