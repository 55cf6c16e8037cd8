"""The steps by which a statement is answered, so that the same one is answered again over other rows."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from splitjoin.lang.schema import Side

from .statement import Statement

#: Runs a statement that is a join alone, over R and S.
RunJoin = Callable[[Statement, Mapping[Side, pa.Table]], pa.Table]
#: A step: it takes what runs a join, and what steps before it have made. It holds no rows.
Step = Callable[..., Any]


@dataclass(frozen=True)
class Answering:
    """The ``steps`` of an answer over the tables of these ``names``: of each the numbers of its inputs, which count
    tables first and then what steps make, and those that no later step takes.
    """

    names: tuple[str, ...]
    steps: tuple[tuple[Step, tuple[int, ...], tuple[int, ...]], ...]

    def rows(self, tables: Mapping[str, pa.Table], run: RunJoin) -> pa.Table | None:
        """The result of the last step over ``tables``; None where a step has none for these rows."""
        made: list[Any] = [tables[name] for name in self.names]
        for step, inputs, last in self.steps:
            if (found := step(run, *(made[n] for n in inputs))) is None:
                return None
            made.append(found)
            for n in last:
                made[n] = None
        rows: pa.Table = made[-1]
        return rows


class AnswerSteps:
    """The steps of an answer over ``tables``, which are taken as they come; ``run`` runs a join."""

    def __init__(self, tables: Mapping[str, pa.Table], run: RunJoin):
        self._names, self.run = tuple(tables), run
        self._known = dict[int, tuple[weakref.ref[Any], int]]()
        self._steps = list[tuple[Step, tuple[int, ...]]]()
        for n, table in enumerate(tables.values()):
            self._known[id(table)] = weakref.ref(table), n
        if len(self._known) < len(tables):  # another time two names may be of different tables
            self._known.clear()

    def made(self, step: Step, *inputs: Any) -> Any:
        """The result of ``step`` over ``inputs``. It is recorded if all of these are tables or recorded results."""
        made, numbers = step(self.run, *inputs), [self._number(of) for of in inputs]
        if None not in numbers and made is not None:
            self._steps.append((step, tuple(n for n in numbers if n is not None)))
            self._known[id(made)] = weakref.ref(made), len(self._names) + len(self._steps) - 1
        return made

    def answering(self, rows: pa.Table) -> Answering | None:
        """The steps that make ``rows``; None where some of it was made otherwise."""
        last, tables = self._number(rows), len(self._names)
        if last is None:
            return None
        needed, places = {last}, dict[int, int]()
        for n in range(last, tables - 1, -1):
            needed |= {*self._steps[n - tables][1]} if n in needed else set()
        kept = [n for n in range(tables, last + 1) if n in needed]
        places = {**{n: n for n in range(tables)}, **{n: tables + at for at, n in enumerate(kept)}}
        ends = {n: max(at for at in kept if n in self._steps[at - tables][1]) for n in needed if n != last}
        return Answering(self._names, tuple(
            (self._steps[n - tables][0], tuple(places[i] for i in self._steps[n - tables][1]),
             tuple(places[i] for i, at in ends.items() if at == n)) for n in kept))

    def _number(self, of: Any) -> int | None:
        found = self._known.get(id(of))
        return found[1] if found is not None and found[0]() is of else None
