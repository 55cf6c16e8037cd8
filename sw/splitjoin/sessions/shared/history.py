"""The tuples of shared streams that queries to come find in their windows."""

from __future__ import annotations

import numpy as np

from splitjoin.lang.schema import SIDES

from ..gate import Columns, GateReader
from ..retained import RetainedState, RetainedWindows
from ..schemas import SessionSchemas

__all__ = ["History"]


class History:
    """The tuples that queries to come find in their windows.

    Attributes:
        windows: The tuples, of the window to retain.
    """

    def __init__(self, base: SessionSchemas, reader: GateReader):
        self.windows = RetainedWindows(base.query, base.streams)
        self._reader = reader

    def collect(self) -> None:
        """Retain what has become ready, and drop what no longer lies in the window."""
        if len(arrivals := self._reader.ready()):
            self.windows.append(arrivals)
        if self._reader.frontier is not None:
            self.windows.advance(dict.fromkeys(SIDES, self._reader.frontier))
        self.windows.trim((self.windows.streams["r"].end, self.windows.streams["s"].end))

    def counters(self) -> dict[str, int]:
        """Counters by name."""
        kept = self.windows.streams
        return {**{f"retained_{side}": len(kept[side]) for side in SIDES},
                "retained_bytes": sum(rows.nbytes for rows in kept.values())}

    def windows_of(self, schemas: SessionSchemas) -> RetainedWindows:
        """The windows of a query, from these tuples, which get row ids from 0 on."""
        shorter = self._restored(schemas, self.windows, schemas.kept_of)
        shorter.trim((shorter.streams["r"].end, shorter.streams["s"].end))
        return self._restored(schemas, shorter, lambda side, kept: kept)

    def _restored(self, schemas: SessionSchemas, windows: RetainedWindows, columns: Columns) -> RetainedWindows:
        made = RetainedWindows(schemas.query, {side: schemas.kept_schema(side) for side in SIDES})
        r, s = windows.streams["r"], windows.streams["s"]
        before = np.clip(r.s_before.values - s.first, 0, len(s))
        times = [None if schemas.query.time is None else rows.ts.values.copy() for rows in (r, s)]
        made.restore({"r": RetainedState(0, columns("r", r.table()), times[0], before),
                      "s": RetainedState(0, columns("s", s.table()), times[1], None)}, windows.now)
        return made
