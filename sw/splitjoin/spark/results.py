"""`ResultRows`: makes the result rows of a Spark task from what was found: pairs, rows of other kinds, aggregates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.joins.statement import Projection
from splitjoin.lang.layouts import take
from splitjoin.lang.query import Query
from splitjoin.rows.aggregates import Decided, FoldedRows, aggregate_fields
from splitjoin.rows.aggregates.state_operator import FoldedBases
from splitjoin.rows.output import OutputColumn, gather, output_schema

__all__ = ["RESULT_ROWS", "ResultRows"]

#: Result rows in a batch handed back to Spark; `take` from string columns of one batch stays below Arrow's 2 GiB.
RESULT_ROWS = 10_000

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ResultRows:
    """The columns of a join's result.

    Attributes:
        query: The query.
        gathered: The columns that are gathered for a row; aggregates follow them.
        projection: The SELECT list of a statement over these; None for `stream_join`.
    """

    query: Query
    gathered: Sequence[OutputColumn]
    projection: Projection | None

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        if self.projection is not None:
            return self.projection.schema
        return pa.schema([*output_schema(self.gathered), *aggregate_fields(self.query)])

    def of_pairs(self, r: pa.Table, s: pa.Table, r_at: Numbers, s_at: Numbers) -> Iterator[pa.Table]:
        """The rows with tuple ``r_at`` of ``r`` and ``s_at`` of ``s`` each, −1 for NULL; some thousand at a time."""
        for start in range(0, len(r_at), RESULT_ROWS):
            chunk = slice(start, start + RESULT_ROWS)
            yield self._projected(gather(self.gathered, r, s, r_at[chunk], s_at[chunk]))

    def of_bases(self, r: pa.Table, s: pa.Table, decided: Decided) -> Iterator[pa.Table]:
        """The rows of base tuples, whose numbers and those of whose partners are positions in ``r`` and ``s``."""
        tables = {"r": r, "s": s}
        folded = FoldedRows(self.query, lambda side, names, rows: [take(tables[side].column(name), pa.array(rows))
                                                                   for name in names])
        for start in range(0, len(decided.bases), RESULT_ROWS):
            part = decided.part(start, min(start + RESULT_ROWS, len(decided.bases)))
            rows = gather(self.gathered, r, s, part.bases, np.full(len(part.bases), -1, np.int64))
            schema = pa.schema([*rows.schema, *aggregate_fields(self.query)])
            yield self._projected(pa.table([*rows.columns, *folded.arrays(part)], schema=schema))

    def of_folded(self, r: pa.Table, s: pa.Table, folded: FoldedBases) -> Iterator[pa.Table]:
        """The rows of base tuples, whose numbers are positions in ``r``, with values that were folded."""
        bases = folded.items["r"]
        for start in range(0, len(bases), RESULT_ROWS):
            part = bases[start:start + RESULT_ROWS]
            rows = gather(self.gathered, r, s, part, np.full(len(part), -1, np.int64))
            schema = pa.schema([*rows.schema, *aggregate_fields(self.query)])
            values = [column.slice(start, len(part)) for column in folded.values]
            yield self._projected(pa.table([*rows.columns, *values], schema=schema))

    def _projected(self, rows: pa.Table) -> pa.Table:
        return rows if self.projection is None else self.projection.rows(rows)
