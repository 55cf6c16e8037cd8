"""Tuples in memories: LUT RAM, whose reads take no cycle, and block RAM, whose reads take one.

A tuple that becomes a memory is one object while a function is executed with stand-ins: it records reads, each of which
is an operation of the graph with the address as its operand, and one write at most, which comes behind all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NoReturn

from splitjoin.base.errors import PredicateError
from splitjoin.lang.fold import Slot, Width, scaled
from splitjoin.lang.ir import Col, Expr, Lit
from splitjoin.lang.python.choices import where
from splitjoin.lang.python.values import Value
from splitjoin.lang.refusals import text_of
from splitjoin.lang.types import BOOL, EXACT

from .graph import Graph, Node, needed, width_of

#: Kinds of operations that read a memory: in the cycle of the address, and a cycle later.
READS = ("read", "fetch")


@dataclass(frozen=True)
class TupleMemory:
    """``rows`` numbers of ``width``. ``init``: the one that all of them have in the beginning, or each of them: then
    none is written.
    """

    #: Numbers from which on a tuple is a memory; most numbers of one in LUT RAM, and in block RAM.
    LEAST: ClassVar[int] = 16
    LUT_RAM: ClassVar[int] = 1024
    MOST: ClassVar[int] = 1 << 16

    name: str
    width: Width
    rows: int
    init: tuple[int, ...]

    @classmethod
    def constant(cls, name: str, numbers: tuple[int, ...]) -> TupleMemory:
        """A memory that has ``numbers``, of as few bits as they need."""
        low, high = min(numbers), max(numbers)
        return cls(name, Width(max(width_of(low, high), 1 + (low < 0)), low < 0), len(numbers), numbers)

    @property
    def block(self) -> bool:
        """True if it is in block RAM."""
        return self.rows > self.LUT_RAM

    @property
    def written(self) -> bool:
        """True if a step writes it."""
        return len(self.init) == 1

    @property
    def address_bits(self) -> int:
        """Bits of a row's number."""
        return (self.rows - 1).bit_length()

    def read(self, address: int, low: int, high: int) -> Node:
        """The operation that reads the number at ``address``, from ``low`` to ``high``."""
        return Node("fetch" if self.block else "read", (address,), low, high, "r" if self.written else "", self.name,
                    self.address_bits)


@dataclass(frozen=True)
class TupleWrite:
    """A number that is written at an address if ``enable``."""

    enable: Value | bool
    address: Value | int
    number: Value


class MemoryTuple:
    """The stand-in for a tuple that is ``memory``. ``read_column``: gives the column of the number at an address;
    ``unfit``: takes the names of tuples that are used as no memory is; ``write``: what has been written.
    """

    def __init__(self, memory: TupleMemory, read_column: Callable[[TupleMemory, Expr], Col], unfit: set[str],
                 write: TupleWrite | None = None):
        self.memory, self._column, self._unfit, self._write = memory, read_column, unfit, write

    def __len__(self) -> int:
        return self.memory.rows

    def at_the_end(self, init: tuple[int, ...]) -> TupleMemory:
        """The memory, whose numbers are ``init`` in the beginning, as the step uses it."""
        memory, write = self.memory, self._write
        if write is None and not memory.block:
            self.refuse("is not written")
        if write is not None and isinstance(write.address, int) and not memory.block:
            self.refuse("is written at a place that is known before the run")
        if not memory.written:
            return TupleMemory.constant(memory.name, init)
        return replace(memory, init=init) if write is None else memory

    def outputs(self, raw: Callable[[Expr, Width], Expr]) -> tuple[Expr, ...]:
        """The operands of a step's write: the number, whether it is written, and the address; empty without a write."""
        write = self._write
        if write is None:
            return ()
        enable, address = write.enable, write.address
        return (raw(write.number.expr, self.memory.width),
                enable.expr if isinstance(enable, Value) else Lit(BOOL, enable),
                address.expr if isinstance(address, Value) else Lit(EXACT, address))

    def number(self, index: Value | int) -> Value:
        """The number at ``index``."""
        memory, write = self.memory, self._write
        address = index.expr if isinstance(index, Value) else Lit(EXACT, index)
        if isinstance(address, Lit) and not memory.block:
            self.refuse("is read at a place that is known before the run")
        column = self._column(memory, address)
        value = Value(scaled(column, 2**memory.width.fraction), f"{memory.name}[{text_of(index)}]", atom=True)
        if write is None:
            return value
        if self._is_at(write, index):
            return write.number if write.enable is True else where(write.enable, write.number, value)
        if isinstance(index, int) and isinstance(write.address, int):
            return value
        there = write.address == index
        return where(there if write.enable is True else there & write.enable, write.number, value)

    def with_number(self, index: Value | int, number: Value) -> MemoryTuple:
        """The tuple with ``number`` at ``index``."""
        if not self.memory.written:
            self.refuse("has numbers of its own in the beginning, and is written")
        if self._write is not None and not self._is_at(self._write, index):
            self.refuse("is written at two places in a step")
        return self._with(TupleWrite(True, index, number))

    def chosen(self, condition: Value, other: Any, choose: Callable[[Value, Any, Any], Any]) -> MemoryTuple:
        """The tuple where ``condition`` is true, else ``other``."""
        if not isinstance(other, MemoryTuple) or other.memory != self.memory:
            self.refuse("is used as a whole")
        a, b = self._write, other._write
        if a is None or b is None:
            if a is b:
                return self
            only, case = (a, condition) if a is not None else (b, ~condition)
            assert only is not None
            enable = case if only.enable is True else case & only.enable
            return self._with(replace(only, enable=enable))
        # One place needs no choice, which would have it wait for the condition.
        address = a.address if self._is_at(a, b.address) else choose(condition, a.address, b.address)
        return self._with(TupleWrite(choose(condition, a.enable, b.enable), address,
                                     choose(condition, a.number, b.number)))

    def refuse(self, *said: Any) -> NoReturn:
        """Raise the `PredicateError` that says how a step may use the tuple."""
        name, rows = self.memory.name, self.memory.rows
        self._unfit.add(name)
        how = said[0] if said and isinstance(said[0], str) else "is used as a whole"
        raise PredicateError(f"{name} has {rows:,} numbers, and so is a memory in block RAM, but {how}; a step may "
                             f"read its numbers by their places, and write one of them if all begin with the same "
                             f"value")

    __iter__ = __bool__ = __hash__ = refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __add__ = __mul__ = refuse

    def _is_at(self, write: TupleWrite, index: Value | int) -> bool:
        if isinstance(index, Value) and isinstance(write.address, Value):
            return index.expr == write.address.expr
        return type(index) is int and type(write.address) is int and index == write.address

    def _with(self, write: TupleWrite) -> MemoryTuple:
        return MemoryTuple(self.memory, self._column, self._unfit, write)


def with_writes(graph: Graph, first: int, memories: Sequence[TupleMemory]) -> Graph:
    """``graph`` with a write to each of ``memories`` in place of three outputs, from the ``first`` on: the number,
    whether it is written, and the address.
    """
    nodes, places, outputs = list(graph.nodes), list(graph.places), list(graph.outputs)
    for n, memory in enumerate(memories):
        args = graph.outputs[first + 3 * n:first + 3 * n + 3]
        reads = [i for i, node in enumerate(graph.nodes) if node.kind in READS and node.name == memory.name]
        nodes.append(Node("write", (*args, *reads), 0, 1, "r", memory.name, memory.block * memory.address_bits))
        places.append(graph.places[args[0]])
    outputs[first:first + 3 * len(memories)] = range(len(graph.nodes), len(nodes))
    return Graph(tuple(nodes), tuple(outputs), tuple(places))


def forwarded(graph: Graph, slots: int, memories: Sequence[TupleMemory], depth: int) -> tuple[Graph, tuple[Slot, ...]]:
    """``graph``, whose first outputs are so many ``slots``, with registers for the last ``depth`` writes to each memory
    in block RAM, and these. What is read where they wrote is taken from them: writes may come so many intervals later.
    """
    nodes, places = list(graph.nodes), list(graph.places)
    more, new = list[Slot](), list[int]()
    instead: dict[int, int] = {}

    def add(node: Node, of: int) -> int:
        nodes.append(node)
        places.append(graph.places[of])
        return len(nodes) - 1

    for memory in memories:
        reads = [n for n, node in enumerate(graph.nodes) if node.kind == "fetch" and node.name == memory.name]
        write = next((n for n in graph.outputs if (graph.nodes[n].kind, graph.nodes[n].name) == ("write", memory.name)),
                     None)
        if not reads or write is None:
            continue
        number, enable, address = graph.nodes[write].args[:3]
        always = graph.nodes[enable].kind == "constant"
        widths = memory.width, Width(memory.address_bits, False), *([] if always else [Width(1, False)])
        latest, kept = (number, address, enable)[:len(widths)], list[tuple[int, ...]]()
        for n in range(depth):
            # As if the first row had been written before.
            parts = [Slot(f"{memory.name}.{part}{n}", width, init) for part, width, init in zip(
                ("number", "address", "enable"), widths, (memory.init[0], 0, 0), strict=False)]
            more, new = [*more, *parts], [*new, *latest]
            latest = tuple(add(Node("input", (), *slot.width.range, "r", slot.name), write) for slot in parts)
            kept.append(latest)
        for n in reads:
            node, chosen = graph.nodes[n], n
            for last, at, *was in reversed(kept):  # the latest one last
                hit = add(Node("=", (at, node.args[0]), 0, 1), n)
                hit = add(Node("and", (was[0], hit), 0, 1), n) if was else hit
                chosen = add(Node("choose", (hit, last, chosen), node.low, node.high), n)
            instead[n] = chosen
    for n, node in enumerate(graph.nodes):
        nodes[n] = replace(node, args=tuple(instead.get(a, a) for a in node.args))
    outputs = [instead.get(n, n) for n in graph.outputs]
    outputs[slots:slots] = [instead.get(n, n) for n in new]
    return _sorted(nodes, outputs, places), tuple(more)


def _sorted(nodes: list[Node], outputs: list[int], places: list[Any]) -> Graph:
    """The graph of these operations, each behind its operands."""
    order: list[int] = []
    done = set[int]()
    pending = [(n, False) for n in reversed(outputs)]
    while pending:
        n, ready = pending.pop()
        if ready:
            order.append(n)
        elif n not in done:
            done.add(n)
            pending += [(n, True), *((a, False) for a in reversed(nodes[n].args))]
    number = {old: new for new, old in enumerate(order)}
    moved = [replace(nodes[n], args=tuple(number[a] for a in nodes[n].args)) for n in order]
    return needed(moved, [number[n] for n in outputs], [places[n] for n in order])
