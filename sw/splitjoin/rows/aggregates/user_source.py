"""Source of a user-defined aggregate's programs and of its fold over pairs, in numba's Python."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from splitjoin.engines.compiled import intrinsics, jit
from splitjoin.engines.compiled.atoms import Atom, ValueRange
from splitjoin.engines.compiled.exact_source import ExactWriter
from splitjoin.engines.compiled.expression_source import PairWriter
from splitjoin.lang.fold import Fold, Program
from splitjoin.lang.ir import Col, Expr
from splitjoin.lang.properties import value_range
from splitjoin.lang.types import Bool

#: What a generated module begins with.
HEAD = f'''# {jit.digest(intrinsics)}
import numpy as np
from splitjoin.engines.compiled.intrinsics import popcount
from splitjoin.engines.compiled.jit import compiled_as_numpy


'''

_STEP = '''@compiled_as_numpy
def {name}({parameters}):
    """The new state, and False if it leaves its width."""
    {lines}
    return {results}


'''

_FOLD = '''@compiled_as_numpy
def fold(lengths, valid, counts, {arrays}):
    """Add the partners of each base tuple to its state; returns the pair with which a state leaves its width, which is
    that of its base tuple then, or a negative one.
    """
    at = np.int64(0)
    for base in range(len(lengths)):
        {load}
        for pair in range(at, at + lengths[base]):
            if valid[pair]:
                {add}
                if not fits:
                    {store}
                    return np.int64(pair)
                counts[base] += 1
        {store_all}
        at += lengths[base]
    return np.int64(-1)
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


@lru_cache(maxsize=256)
def step_source(fold: Fold, name: str) -> str:
    """The function of one program of ``fold``. Raises `NotCompiled` where a number may need more than 64 bits."""
    program: Program | None = getattr(fold, name)
    assert program is not None
    slots = [slot.column("r") for slot in fold.slots]
    incoming = [slot.column("s") for slot in fold.slots] if name == "merge" else [a.column for a in fold.arguments]
    writer = ProgramWriter([*slots, *incoming, *(column for column, _ in program.steps)])
    for column, e in program.steps:
        writer.step(column, e)
    values = [writer.exact.let(writer.pair.number(e).code) for e in program.outputs]
    tests = []
    for slot, e, value in zip(fold.slots, program.outputs, values, strict=True):
        (low, high), (least, most) = slot.width.range, value_range(e)
        if least < low or most > high:
            tests.append(f"{value} >= {low} and {value} <= {high}")
    results = ", ".join([*(f"np.int64({value})" for value in values), " and ".join(tests) or "True"])
    return _STEP.format(name=name, parameters=", ".join(map(writer.name, [*slots, *incoming])),
                        lines="\n    ".join(writer.lines or ["pass"]), results=results)


def fold_source(fold: Fold) -> str:
    """The module whose ``fold`` folds. Raises `NotCompiled` where a number may need more than 64 bits."""
    state, values = ([f"{letter}{n}" for n in range(len(of))] for letter, of in (
        ("a", fold.slots), ("values", fold.arguments)))
    stored = [f"states{n}[base] = {one}" for n, one in enumerate(state)]
    return HEAD + step_source(fold, "add") + _FOLD.format(
        arrays=", ".join([*values, *(f"states{n}" for n in range(len(state)))]),
        load="\n        ".join(f"{one} = states{n}[base]" for n, one in enumerate(state)),
        add=f"{', '.join([*state, 'fits'])} = add({', '.join([*state, *(f'{one}[pair]' for one in values)])})",
        store="\n                    ".join(stored), store_all="\n        ".join(stored))
