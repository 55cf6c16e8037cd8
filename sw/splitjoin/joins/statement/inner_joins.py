"""The inner joins of three tables and more in a statement of which DuckDB computes the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from splitjoin.lang.schema import Schema

from .clauses import Clauses, named_columns
from .join_order import JoinOrder, join_order
from .multiway import MultiwayStatement, parse_multiway
from .multiway_trees import named_column
from .parts import SelectItem

__all__ = ["InnerJoins", "RunSeveral"]

#: Runs a statement that is a join alone, over three tables and more.
RunSeveral = Callable[[MultiwayStatement, Sequence[pa.Table], JoinOrder], pa.Table]


@dataclass(frozen=True)
class InnerJoins:
    """FROM and WHERE of ``found`` as a join of ``tables``, which it calls by these labels, in their order."""

    found: Clauses
    tables: Mapping[str, pa.Table]

    def statement(self) -> MultiwayStatement:
        """The join. Raises `StatementError` if it is none of inner joins."""
        found, where = self.found, self.found.text[self.found.where]
        return parse_multiway(f"SELECT * FROM {found.text[found.source]}{f' WHERE {where}' if where else ''}")

    def order(self) -> JoinOrder:
        """The order of the joins. Raises `StatementError` if they are not inner joins of three tables and more."""
        tables = list(self.tables.values())
        return join_order(self.statement(), [Schema.from_table("r", t) for t in tables], tables)

    def rows(self, run: RunSeveral, order: JoinOrder) -> dict[str, pa.Table]:
        """The columns of each table, of which the statement says anything, in the joined rows; one at least."""
        found, statement = self.found, self.statement()
        rest = f"{found.text[found.head]} FROM x {found.text[found.tail]}"
        items = list[SelectItem]()
        for n, (t, table) in enumerate(zip(statement.tables, self.tables.values(), strict=True)):
            said = named_columns(rest, table.column_names)
            items += [SelectItem(named_column((t.label, name)), f"{n}.{name}", name, 0, 0)
                      for name in [c for c in table.column_names if c in said] or table.column_names[:1]]
        rows = run(replace(statement, items=tuple(items)), list(self.tables.values()), order)
        parts = {}
        for n, t in enumerate(statement.tables):
            part = rows.select([c for c in rows.column_names if c.startswith(f"{n}.")])
            parts[t.label] = part.rename_columns([c.split(".", 1)[1] for c in part.column_names])
        return parts
