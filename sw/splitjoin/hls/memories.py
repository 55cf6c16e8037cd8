"""Tuples of a state as memories in LUT RAM, where a step reads numbers at computed places and writes one at most.

As registers, such a tuple takes a choice among all numbers for each access. The graph of a memory has an operation
``read`` for each place that is read, whose operands are the bits of the address, and one ``write``, whose operands are
the new number, whether it is written, the address, and the reads, which come before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .graph import Graph, Node, needed
from .kernels import Kernel, StateMemory

#: What a step writes: nothing, a number (the operations of the address and of the number), or one of two (with the
#: condition).
_Write = tuple[Any, ...]
_HOLD: _Write = ()


def with_memories(kernel: Kernel) -> Kernel:
    """``kernel`` with memories for the tuples of its state that can be one; its registers are the other slots."""
    groups: dict[str, list[int]] = {}
    for n, slot in enumerate(kernel.slots):
        groups.setdefault(slot.name.partition("[")[0], []).append(n)
    graph, memories, inside = kernel.graph, list[StateMemory](), set[int]()
    writes: list[int] = []
    for name, some in groups.items():
        slots = [kernel.slots[n] for n in some]
        if len(some) < StateMemory.LEAST or len({(s.width, s.init) for s in slots}) > 1:
            continue
        found = _Accesses(graph, [s.name for s in slots], some).graph_with(name)
        if found is not None:
            graph, memories, inside = found, [*memories, StateMemory(name, len(some), slots[0])], {*inside, *some}
            writes.append(len(found.nodes) - 1)
    if not memories:
        return kernel
    stay = [n for n in range(len(kernel.slots)) if n not in inside]
    outputs = [*(graph.outputs[n] for n in stay), *writes, *graph.outputs[len(kernel.slots):]]
    return replace(kernel, graph=needed(graph.nodes, outputs, graph.places), memories=tuple(memories),
                   slots=tuple(kernel.slots[n] for n in stay))


class _Accesses:
    """The accesses of ``graph`` to the numbers ``names`` of a state, whose new values are its ``outputs``."""

    def __init__(self, graph: Graph, names: Sequence[str], outputs: Sequence[int]):
        self._graph, self._nodes, self._outputs = graph, graph.nodes, outputs
        row_of = {name: row for row, name in enumerate(names)}
        #: Operations that are the number of a row, or a choice of successive rows: the first one, how many, and the
        #: bits that choose.
        self._chosen: dict[int, tuple[int, int, tuple[int, ...]]] = {}
        for n, node in enumerate(self._nodes):
            if node.kind == "input" and node.side == "r" and node.name in row_of:
                self._chosen[n] = row_of[node.name], 1, ()
            elif node.kind == "choose" and node.args[1] in self._chosen and node.args[2] in self._chosen:
                (high, more, by), (low, size, bits) = (self._chosen[a] for a in node.args[1:])
                if low + size == high and more <= size == 1 << len(bits) and by == bits[:len(by)]:
                    self._chosen[n] = low, size + more, (*bits, node.args[0])
        self._reads = [n for n, (_, size, _) in self._chosen.items() if size == len(names)]

    def graph_with(self, name: str) -> Graph | None:
        """The graph with reads of the memory ``name``, and its write at the end; None if it cannot be one."""
        rows = {self._chosen[n][0]: n for n in self._chosen if self._nodes[n].kind == "input"}
        own = set(self._chosen)
        writes = {self._write(self._graph.outputs[output], row, rows.get(row), own)
                  for row, output in enumerate(self._outputs)}
        uses = Counter(a for n, node in enumerate(self._nodes) if n not in own for a in node.args)
        uses.update(n for i, n in enumerate(self._graph.outputs) if i not in self._outputs)
        write = writes.pop()
        if writes or write is None or write == _HOLD or any(uses[n] for n in own - set(self._reads)):
            return None
        return self._made(name, write)

    def _write(self, number: int, row: int, held: int | None, own: set[int]) -> _Write | None:
        """The write that operation ``number`` does to ``row``, whose value is operation ``held``; None if it is no
        write at a computed place. Adds the operations to ``own``.
        """
        node = self._nodes[number]
        if number == held:
            return _HOLD
        own.add(number)
        if node.kind == "fit":
            return self._write(node.args[0], row, held, own)
        if node.kind != "choose":
            return None
        which, then, otherwise = node.args
        address = self._address(which, row) if otherwise == held else None
        if address is not None:
            return address, then
        parts = self._write(then, row, held, own), self._write(otherwise, row, held, own)
        return None if None in parts else (which, *parts)

    def _address(self, which: int, row: int) -> int | None:
        """The operation that condition ``which`` compares with the number of ``row``, if it does."""
        node = self._nodes[which]
        for a, b in (node.args, node.args[::-1]) if node.kind == "=" else ():
            if self._nodes[b].kind == "constant" and self._nodes[b].low == row and self._nodes[a].kind != "constant":
                return a
        return None

    def _made(self, name: str, write: _Write) -> Graph:
        nodes, places = list(self._nodes), list(self._graph.places)
        for n in self._reads:
            nodes[n] = Node("read", self._chosen[n][2], nodes[n].low, nodes[n].high, "r", name)

        def add(kind: str, args: tuple[int, ...], low: int, high: int) -> int:
            nodes.append(Node(kind, args, low, high))
            places.append(places[self._reads[0]] if self._reads else None)
            return len(nodes) - 1

        def choose(which: int, a: int, b: int) -> int:
            x, y = nodes[a], nodes[b]
            return a if a == b else add("choose", (which, a, b), min(x.low, y.low), max(x.high, y.high))

        def built(write: _Write) -> tuple[int, int, int]:
            """The new number, whether it is written, and the address."""
            if len(write) == 2:
                return write[1], always, write[0]
            which, then, otherwise = write
            if _HOLD in (then, otherwise):
                new, enable, address = built(otherwise if then == _HOLD else then)
                bit = which if otherwise == _HOLD else add("not", (which,), 0, 1)
                return new, bit if enable == always else add("and", (enable, bit), 0, 1), address
            a, b = built(then), built(otherwise)
            return choose(which, a[0], b[0]), choose(which, a[1], b[1]), choose(which, a[2], b[2])

        always = add("constant", (), 1, 1)
        end = add("write", (*built(write), *self._reads), 0, 1)
        nodes[end] = replace(nodes[end], side="r", name=name)
        return Graph(tuple(nodes), self._graph.outputs, tuple(places))
