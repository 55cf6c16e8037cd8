"""`SharedInput`: the gate of shared streams, the sequence of what is ready, and what is retained of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from splitjoin.base.errors import InputError, UnsupportedError
from splitjoin.lang.schema import SIDES

from ..gate import Columns, GateReader, GateState
from ..limit import GateOptions
from ..results import ResultQueue
from ..retained import RetainedState, RetainedWindows
from ..schemas import SessionSchemas
from ..snapshot import DeviceProgress, Snapshot, identity


class SharedInput:
    """What the sources of shared streams of ``base`` give; nothing has come yet. With ``retains``, the tuples that its
    window holds are kept for queries to come.

    Attributes:
        gate: Merges the sources.
        sequence: What is ready.
        windows: The tuples that are kept; none if nothing is.
    """

    def __init__(self, base: SessionSchemas, gate: GateOptions, *, retains: bool):
        self.gate, self._base = gate.opened(base), base
        self.sequence = self.gate.sequence()
        self.windows = RetainedWindows(base.query, base.streams)
        self._reader = self.sequence.reader() if retains else None

    @property
    def retains(self) -> bool:
        """True if tuples are kept for queries to come."""
        return self._reader is not None

    def restore(self, streams: Snapshot) -> None:
        """Take over the state of ``streams``; this must be fresh."""
        self.gate.restore(streams.gate())
        if self.retains:
            self.windows.restore(streams.retained(self._base.query), streams.now)

    def snapshot(self, about: Mapping[str, str]) -> bytes:
        """The state as bytes; ``about`` is the streams' identity."""
        return Snapshot.of(about, self._base.query, self.gate.state(), self.windows,
                           ResultQueue(self._base.gathered, False)).to_bytes()

    def collect(self) -> None:
        """Let the queries see what has become ready; retain it, and drop what no longer lies in the window."""
        self.sequence.collect()
        if self._reader is not None:
            if len(arrivals := self._reader.ready()):
                self.windows.append(arrivals)
            if self._reader.frontier is not None:
                self.windows.advance(dict.fromkeys(SIDES, self._reader.frontier))
            self._trim(self.windows)

    def counters(self) -> dict[str, int]:
        """Counters of what is retained by name; none if nothing is."""
        kept = self.windows.streams
        return {} if not self.retains else {**{f"retained_{side}": len(kept[side]) for side in SIDES},
                                            "retained_bytes": sum(rows.nbytes for rows in kept.values())}

    def windows_for(self, schemas: SessionSchemas) -> RetainedWindows:
        """What a query of ``schemas`` finds in its windows, with row ids from 0 on. Raises a `SplitJoinError` where it
        can find nothing.
        """
        if not self.retains:
            raise InputError("history=True needs streams that retain tuples; give share() a window to retain, such as "
                             "retain='RANGE 10 MINUTES'")
        query = schemas.query
        if not query.is_pairs:
            raise UnsupportedError(f"history=True needs how='inner' without aggregates, as rows of tuples from before "
                                   f"may have been decided then, but the query is of kind '{query.kind}'"
                                   f"{' with aggregates' if query.aggregates else ''}; leave history out")
        shorter = self._restored(schemas, self.windows, schemas.kept_of)
        self._trim(shorter)
        return self._restored(schemas, shorter, lambda side, kept: kept)

    def past(self, schemas: SessionSchemas, punctuation: bool) -> Snapshot:
        """The state of a query of ``schemas`` whose windows hold the retained tuples, all of them settled."""
        windows = self.windows_for(schemas)
        about = identity(schemas.query, schemas.gathered, GateReader.rule, punctuation)
        return Snapshot.of(about, schemas.query, GateState.of(schemas.streams, self.sequence.frontier), windows,
                           ResultQueue(schemas.gathered, punctuation),
                           progress=DeviceProgress((windows.streams["r"].end, windows.streams["s"].end)))

    @staticmethod
    def _trim(windows: RetainedWindows) -> None:
        windows.trim((windows.streams["r"].end, windows.streams["s"].end))

    @staticmethod
    def _restored(schemas: SessionSchemas, windows: RetainedWindows, columns: Columns) -> RetainedWindows:
        """``windows`` for a query of ``schemas``, with the ``columns`` that this makes of them."""
        made = RetainedWindows(schemas.query, {side: schemas.kept_schema(side) for side in SIDES})
        r, s = windows.streams["r"], windows.streams["s"]
        before = np.clip(r.s_before.values - s.first, 0, len(s))
        times = [None if schemas.query.time is None else rows.ts.values.copy() for rows in (r, s)]
        made.restore({"r": RetainedState(0, columns("r", r.table()), times[0], before),
                      "s": RetainedState(0, columns("s", s.table()), times[1], None)}, windows.now)
        return made
