"""Programs, as folds and kernels have them, as graphs of operations."""

from __future__ import annotations

from collections.abc import Container, Mapping

from splitjoin.base.errors import UnsupportedError
from splitjoin.lang.fold import Program
from splitjoin.lang.ir import text
from splitjoin.lang.types import Bool

from .division import DividingBuilder
from .graph import Graph, Place
from .memories import TupleMemory


def build_graph(program: Program, known: Mapping[str, int] | None = None, names: Mapping[str, str] | None = None, *,
                stated: Container[str] = (), places: Mapping[str, Place] | None = None,
                reads: Mapping[str, TupleMemory] | None = None) -> Graph:
    """The operations of ``program``. Raises `UnsupportedError`, naming the part, for what circuits have none for.

    ``known``: values of columns of stream r, which are constants then. ``names``: other names of columns. ``stated``:
    steps whose values are stated to lie within the column's range. ``places``: of steps of a typed function, where they
    are from. ``reads``: steps that compute the address of what the column is read from, and the memories.
    """
    builder = DividingBuilder(known or {}, names or {})
    builder.saturates = places is not None
    for column, e in program.steps:
        builder.place = (places or {}).get(column.name)
        number, per = builder.number(e)
        if reads and column.name in reads:
            assert column.range is not None
            number = builder.read(reads[column.name], number, *column.range)
        if column.name in stated:
            assert column.range is not None
            number = builder.fit(number, *column.range, promised=True)
        builder.let(column, (number, per))
    outputs = []
    for e in program.outputs:
        number, per = (builder.truth(e), 1) if isinstance(e.type, Bool) else builder.number(e)
        if per != 1:
            raise UnsupportedError(f"{text(e)} is a fraction, but circuits give whole numbers and fixed point; "
                                   f"annotate the result with splitjoin.fixed")
        outputs.append(number)
    return builder.graph(outputs)
