"""Source of a user-defined aggregate's fold, in numba's Python."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from splitjoin.engines.compiled import intrinsics, jit
from splitjoin.engines.compiled.atoms import Atom, ValueRange
from splitjoin.engines.compiled.exact_source import ExactWriter
from splitjoin.engines.compiled.expression_source import PairWriter
from splitjoin.lang.fold import Fold
from splitjoin.lang.ir import Col, Expr
from splitjoin.lang.properties import value_range
from splitjoin.lang.types import Bool

_SOURCE = '''import numpy as np
from splitjoin.engines.compiled.intrinsics import popcount
from splitjoin.engines.compiled.jit import compiled_as_numpy


@compiled_as_numpy
def fold(lengths, valid, counts, {arrays}):
    """Add the partners of each base tuple to its state; returns the pair, the slot and the value that fails, or a
    negative pair.
    """
    at = np.int64(0)
    for base in range(len(lengths)):
        {load}
        added = np.int64(0)
        for pair in range(at, at + lengths[base]):
            if valid[pair]:
                {take}
                {lines}
                added += 1
        {store}
        counts[base] = added
        at += lengths[base]
    return np.int64(-1), np.int64(0), np.int64(0)
'''


class ProgramWriter:
    """Python for the steps of a fold's program, with a variable for each of its columns.

    ``columns``: state slots, arguments and steps. Raises `NotCompiled` where a number may need more than 64 bits.
    """

    def __init__(self, columns: Iterable[Col]):
        self._names, ranges = dict[Expr, Atom](), dict[Expr, ValueRange]()
        count = {"r": 0, "s": 0}
        for column in columns:
            self._names[column] = Atom(column, column.side, count[column.side], 1, np.int64)
            count[column.side] += 1
            low, high = (0, 1) if isinstance(column.type, Bool) else map(int, value_range(column))
            ranges[column] = ValueRange(column.nullable, low, high)
        self.exact = ExactWriter(64)
        self.pair = PairWriter(self._names, ranges, self.exact)

    @property
    def lines(self) -> list[str]:
        """All lines so far; the caller may add to them."""
        return self.exact.lines

    def name(self, column: Col) -> str:
        """The variable of a column."""
        return f"{column.side}{self._names[column].number}"

    def step(self, column: Col, e: Expr) -> None:
        """Assign ``e`` to the variable of ``column``, and its validity to one beside it if it may be NULL."""
        v = self.pair.number(e)
        self.lines.append(f"{self.name(column)} = {v.code}")
        if column.nullable:
            self.lines.append(f"{self.name(column)}v = {v.valid or 'True'}")


def fold_source(fold: Fold) -> str:
    """The module whose ``fold`` folds. Raises `NotCompiled` where a number may need more than 64 bits."""
    slots = [slot.column("r") for slot in fold.slots]
    taken = [argument.column for argument in fold.arguments]
    writer = ProgramWriter([*slots, *taken, *(column for column, _ in fold.add.steps)])
    pair, name = writer.pair, writer.name
    for column, e in fold.add.steps:
        writer.step(column, e)
    values = [pair.number(e).code for e in fold.add.outputs]
    lines = writer.lines
    for n, (slot, e, value) in enumerate(zip(fold.slots, fold.add.outputs, values, strict=True)):
        (low, high), (least, most) = slot.width.range, value_range(e)
        if least < low or most > high:
            lines += [f"if {value} < {low} or {value} > {high}:",
                      f"    return np.int64(pair), np.int64({n}), np.int64({value})"]
    lines += [f"{name(column)} = {value}" for column, value in zip(slots, values, strict=True)]
    arrays = [f"{name(column)}s" for column in (*taken, *slots)]
    return f"# {jit.digest(intrinsics)}\n" + _SOURCE.format(
        arrays=", ".join(arrays),
        load="\n        ".join(f"{name(c)} = {name(c)}s[base]" for c in slots),
        take="\n                ".join(f"{name(c)} = {name(c)}s[pair]" for c in taken) or "pass",
        lines="\n                ".join(lines), store="\n        ".join(f"{name(c)}s[base] = {name(c)}" for c in slots))
