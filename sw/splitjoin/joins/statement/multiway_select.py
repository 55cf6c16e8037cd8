"""`MultiwaySelect`: a checked SELECT over three streams or more, ready for a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from splitjoin.base.errors import OrderError, WindowError
from splitjoin.lang.order import Order, parse_order
from splitjoin.lang.python.aggregate import AggregateClass
from splitjoin.lang.schema import Schema
from splitjoin.lang.time_columns import TimeSpec
from splitjoin.lang.windows import WindowSpec

from .multiway import NUMBER, TIME, MultiwayStatement, MultiwayStep, Windows, steps
from .select import Select

__all__ = ["MultiwaySelect"]


@dataclass(frozen=True)
class MultiwaySelect:
    """A join of three streams or more, within RANGE windows, as steps of two, of which the last may be a LEFT JOIN;
    `splitjoin.open_multiway` runs it.

    Attributes:
        statement: The text and its parts.
        schemas: The Arrow schema of each stream.
        windows: Their windows and time columns.
        steps: The steps, and the checked SELECT of each.
    """

    statement: MultiwayStatement
    schemas: tuple[pa.Schema, ...]
    windows: Windows
    steps: tuple[tuple[MultiwayStep, Select], ...]

    @classmethod
    def make(cls, statement: MultiwayStatement, schemas: Sequence[pa.Schema], *, window: WindowSpec | None,
             time: TimeSpec | None, order: str | Order,
             aggregates: Mapping[str, AggregateClass] | None = None) -> MultiwaySelect:
        """Check the whole statement; ``aggregates``: classes by name. Raises a `SplitJoinError` that names the wrong
        part.
        """
        if window is None:
            raise WindowError("streams that do not end need a window, such as window='RANGE 15 MINUTES'")
        if parse_order(order).kind != "total":
            raise OrderError(f"a join of three streams and more takes order 'total', not '{order}'")
        known = [Schema.from_arrow("r", schema) for schema in schemas]
        windows = Windows.make(statement.tables, known, window, time)
        first = statement.tables[0].label
        left = pa.schema([field.with_name(f"{first}.{field.name}") for field in schemas[0]])
        made = []
        for step in steps(statement, known, windows, numbers=True):
            at = step.number
            assert step.window is not None
            select = Select.make(
                step.statement, Schema.from_arrow("r", left), Schema.from_arrow("s", schemas[at]),
                window=dict(zip([t.label for t in step.statement.tables], step.window, strict=True)),
                time=windows.of_step(step), aggregates=aggregates if step.statement.grouped else None)
            made.append((step, select))
            left = between(step, select, schemas[at].field(windows.times[at]).type)
        return cls(statement, tuple(schemas), windows, tuple(made))

    def explain(self, **options: Any) -> str:
        """Explain, as text, each step as `Select.explain` does; ``options`` are those of circuits."""
        return "\n\n".join(f"step {n}: {', '.join(t.label for t in step.left)} with {step.right.label}\n"
                           f"{select.explain(**options)}" for n, (step, select) in enumerate(self.steps, 1))

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        step, last = self.steps[-1]
        return pa.schema(list(last.schema)[:len(last.schema) - len(step.left)])


def between(step: MultiwayStep, select: Select, time: pa.DataType) -> pa.Schema:
    """The schema of the rows between ``step`` and the next one."""
    numbers = [f"{t.label}.{NUMBER}" for t in step.made]
    fields = [field for field in select.schema if field.name not in numbers]
    return pa.schema([*fields, *(pa.field(name, pa.int64(), nullable=False) for name in numbers),
                      pa.field(TIME, time, nullable=False)])
