"""Late tuples of one stream: counted, and kept within a bound until they are taken."""

from __future__ import annotations

from collections import deque

import pyarrow as pa

__all__ = ["LateRows"]


class LateRows:
    """A bounded buffer of late rows of ``schema``; beyond ``limit`` rows it forgets the oldest.

    Attributes:
        count: Number of late rows.
        forgotten: Number of late rows that were forgotten.
    """

    def __init__(self, schema: pa.Schema, limit: int):
        self._schema, self._limit = schema, limit
        self._tables: deque[pa.Table] = deque()
        self._rows = 0
        self.count = 0
        self.forgotten = 0

    def add(self, rows: pa.Table) -> None:
        """Keep ``rows``, or as many of them as the limit allows."""
        self.count += len(rows)
        self._rows += len(rows)
        self._tables.append(rows)
        while (over := self._rows - self._limit) > 0:
            oldest = self._tables.popleft()
            drop = min(over, len(oldest))
            self._rows -= drop
            self.forgotten += drop
            if drop < len(oldest):
                self._tables.appendleft(oldest.slice(drop))

    def peek(self) -> pa.Table:
        """The kept rows, oldest first."""
        return pa.concat_tables(self._tables) if self._tables else self._schema.empty_table()

    def take(self) -> pa.Table:
        """Remove and return the kept rows, oldest first."""
        rows = self.peek()
        self._tables.clear()
        self._rows = 0
        return rows

    def restore(self, count: int, forgotten: int, rows: pa.Table) -> None:
        """Take over the counts and the ``rows`` of another buffer."""
        self.take()
        self.forgotten = forgotten
        self.add(rows)
        self.count = count
