"""Core kind ``bucket``: buckets are cells of neighbouring keys, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data

from splitjoin.circuit.core_kinds.bucket import Span
from splitjoin.circuit.wire import Configuration

from ..buckets import Buckets, Reach

__all__ = ["CellBuckets"]


class CellBuckets(Buckets):
    """Puts the cells of all keys side by side, so that neighbours never share a bucket."""

    def stored_cells(self, config: Configuration, side: str, body: data.View) -> list[Value]:
        return [body[name] for name, _ in config.cells(side).fields]

    def address(self, config: Configuration, cells: Sequence[Value]) -> Value:
        return Cat(*cells)

    def reach(self, m: Module, config: Configuration, task: Any, accept: Signal, step: Signal) -> Reach:
        lookups_due = Signal(config.kind.ways(config))
        reach = [(task.reach[f"first{n}"], task.reach[f"span{n}"]) for n in range(len(config.index))]
        cells = [Signal(first.shape(), name=f"cell{n}") for n, (first, _) in enumerate(reach)]
        nexts = [Signal(first.shape(), name=f"above{n}") for n, (first, _) in enumerate(reach)]
        spans = [Signal(2, name=f"span{n}") for n in range(len(reach))]
        with m.If(accept):
            m.d.sync += [cell.eq(first) for cell, (first, _) in zip(cells, reach, strict=True)]
            m.d.sync += [held.eq(span) for held, (_, span) in zip(spans, reach, strict=True)]
        with m.If(step):
            m.d.sync += [above.eq(cell + 1) for above, cell in zip(nexts, cells, strict=True)]
            m.d.sync += lookups_due.eq(Cat(
                Cat(Const(1), *(spans[d] == Span.TWO for d in range(len(spans)) if n >> d & 1)).all()
                for n in range(len(lookups_due))))
        return Reach(list(zip(cells, nexts, strict=True)), Cat(span == Span.NONE for span in spans).any(),
                     Cat(span == Span.MANY for span in spans).any(), lookups_due)
