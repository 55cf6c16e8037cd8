"""Models of the FIFOs of the gather tree, for its proofs: invariants of pointers and flags, and the contents."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from amaranth.hdl import Cat, Const, Mux, Value
from amaranth.lib import data

from splitjoin.circuit.wire import ItemKind
from splitjoin_hw.layouts import result_layout

from .harness import Harness

#: Bits of row ids that are compared in these proofs.
BITS = 4


#: Bits of row ids in these proofs; the circuits do not depend on their number.
ROW = 5


@contextmanager
def narrow() -> Iterator[None]:
    with patch("splitjoin_hw.layouts.ROW_BITS", ROW), patch("splitjoin_hw.gather.lookahead.ROW_BITS", ROW):
        yield


class Queue:
    """The contents of the `LookaheadFifo` at ``path``.

    ``bits``: compared bits of row ids. ``absent``: the value of ``lets_pass`` while it is empty.
    """

    def __init__(self, h: Harness, path: str, bits: int, absent: Value):
        at = f"{path}." if path else ""
        self.leaves, occupied, self._head, copy, second, third, tail, kind = (h.inner(f"{at}{name}") for name in (
            "pop", "occupied", "head0", "head1", "second", "third", "tail", "kind"))
        self._h, self._at, self.level = h, at, sum(occupied)
        self.some, self.first = occupied[0], data.View(result_layout(), self.at(0))
        flags = ((name, test) for name, test in (
            ("pair", kind == ItemKind.PAIR), ("barrier", kind != ItemKind.PAIR), ("slice", kind == ItemKind.SLICE),
            ("star", kind == ItemKind.STAR), ("end", kind == ItemKind.END), ("not_end", kind != ItemKind.END)))
        row_ids = ((h.inner(f"{at}row_id{n}"), occupied[n], data.View(result_layout(), self.at(n)).stored[:bits])
                for n in range(2 if bits else 0))
        self.sound = (((occupied & (occupied + 1)) == 0) & ((self._head + self.level - tail)[:len(tail)] == 0)
                      & ((self._head + 1 - second)[:len(second)] == 0) & (self._head == copy)
                      & ((self._head + 2 - third)[:len(third)] == 0)
                      & Cat(~present | (row_id == stored) for row_id, present, stored in row_ids).all()
                      & (h.inner(f"{at}lets_pass") == Mux(self.some, kind != ItemKind.PAIR, absent))
                      & (h.inner(f"{at}not_full") == ~occupied[-1])
                      & (~self.some | (kind == self.first.kind))
                      & Cat(h.inner(f"{at}{name}") == (self.some & test) for name, test in flags).all())
        self.kind = kind
        self.pair = self.some & (kind == ItemKind.PAIR)

    def at(self, position: Any) -> Value:
        """The result at ``position``, from the head on."""
        place = (self._head + position)[:len(self._head)]
        return Cat(*(self._h.look(f"{self._at}{rows}", place) for rows in ("kinds", "probes", "stored")))


class Contents:
    """The four places of the FIFO ``queue``, whose groups are ``step`` apart.

    ``bits``: of the number of a group. ``ends``: of each group, whether it ends with an END. ``barriers``: how many the
    FIFO holds; ``marked``: how many marked pairs.
    """

    def __init__(self, queue: Any, bits: int, ends: Any, step: int = 1):
        self._bits, self._ends, self._step = bits, ends, step
        self._items = [(queue.level > n, data.View(result_layout(), queue.at(n))) for n in range(4)]
        self._pairs = [some & (item.kind == ItemKind.PAIR) for some, item in self._items]
        are = [some & (item.kind != ItemKind.PAIR) for some, item in self._items]
        self._before: list[Any] = [sum(are[:n], Const(0)) for n in range(4)]
        self.barriers = sum(are, Const(0))
        self.marked = sum(pair & item.stored[0] for pair, (_, item) in zip(self._pairs, self._items, strict=True))

    def fits(self, start: Value) -> Value:
        """True if each item is of the group that begins with ``start`` at the first one."""
        out = []
        for (some, item), before in zip(self._items, self._before, strict=True):
            group = (start + self._step * before)[:self._bits]
            small = (item.probe[self._bits:] == 0) & (item.stored[self._bits:] == 0)
            out.append(~some | ((item.kind != ItemKind.SLICE) & small & Mux(
                item.kind == ItemKind.PAIR, item.probe[:self._bits] == group,
                (item.kind == ItemKind.END) == self._ends.bit_select(group, 1))))
        return Cat(out).all()

    def count(self, group: Any) -> Value:
        """The pairs of ``group``."""
        return sum((pair & (item.probe[:self._bits] == group)
                    for pair, (_, item) in zip(self._pairs, self._items, strict=True)), Const(0))

    def marked_in(self, group: Any) -> Value:
        """True if every marked pair is of ``group``."""
        return Cat(~(pair & item.stored[0]) | (item.probe[:self._bits] == group)
                   for pair, (_, item) in zip(self._pairs, self._items, strict=True)).all()
