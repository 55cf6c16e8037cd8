"""`ResultRows`: makes the result rows of a Spark task from what was found: pairs, rows of other kinds, aggregates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.lang.query import Query
from splitjoin.rows.aggregates import aggregate_fields
from splitjoin.rows.output import OPERATION, OutputColumn, gather, output_schema
from splitjoin.rows.table_rows import TableRows

#: Result rows in a batch handed back to Spark; `take` from string columns of one batch stays below Arrow's 2 GiB.
RESULT_ROWS = 10_000

Numbers = npt.NDArray[np.int64]


class MadeRows(Protocol):
    """Makes result rows of what is gathered: the SELECT list of a statement, or `NamedRows`."""

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""

    def rows(self, gathered: pa.Table) -> pa.Table:
        """The result rows for gathered ones."""


@dataclass(frozen=True)
class ResultRows:
    """The columns of a join's result.

    Attributes:
        query: The query.
        gathered: The columns that are gathered for a row; aggregates follow them.
        projection: What makes the rows of these; None where they are the rows.
        early: True if rows have an operation.
    """

    query: Query
    gathered: Sequence[OutputColumn]
    projection: MadeRows | None
    early: bool = False

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        rows = self.projection.schema if self.projection is not None else pa.schema(
            [*output_schema(self.gathered), *aggregate_fields(self.query)])
        return rows.append(OPERATION) if self.early else rows

    def of_pairs(self, r: pa.Table, s: pa.Table, r_at: Numbers, s_at: Numbers,
                 operation: str = "+") -> Iterator[pa.Table]:
        """The rows with tuple ``r_at`` of ``r`` and ``s_at`` of ``s`` each, −1 for NULL; some thousand at a time.

        ``operation``: what they are, where rows come early.
        """
        for start in range(0, len(r_at), RESULT_ROWS):
            chunk = slice(start, start + RESULT_ROWS)
            rows = self._projected(gather(self.gathered, r, s, r_at[chunk], s_at[chunk]))
            yield rows.append_column(OPERATION, pa.array([operation] * len(rows))) if self.early else rows

    def of_rows(self, r: pa.Table, s: pa.Table, found: TableRows) -> Iterator[pa.Table]:
        """The rows ``found``, whose row ids are positions in ``r`` and ``s``; some thousand at a time."""
        for part in found.parts(RESULT_ROWS) if len(found) else ():
            rows = gather(self.gathered, r, s, part.r, part.s)
            schema = pa.schema([*rows.schema, *aggregate_fields(self.query)])
            yield self._projected(pa.table([*rows.columns, *part.values], schema=schema))

    def _projected(self, rows: pa.Table) -> pa.Table:
        return rows if self.projection is None else self.projection.rows(rows)
