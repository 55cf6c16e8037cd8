"""`SharedInput`: the gate of shared streams, the sequence of what is ready, and what is retained of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from splitjoin.base.errors import InputError, UnsupportedError
from splitjoin.lang.schema import SIDES

from ..gate import Columns, GateReader, GateState, ReadySequence, SourceGate
from ..limit import GateOptions
from ..results import ResultQueue
from ..retained import RetainedState, RetainedWindows
from ..schemas import SessionSchemas
from ..snapshot import DeviceProgress, Snapshot, identity

__all__ = ["SharedInput"]


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


@dataclass(frozen=True)
class SharedInput:
    """What the sources of shared streams give.

    Attributes:
        gate: Merges the sources.
        sequence: What is ready.
        history: What is retained for queries to come; None if nothing is.
    """

    gate: SourceGate
    sequence: ReadySequence
    history: History | None

    @classmethod
    def make(cls, base: SessionSchemas, *, retains: bool, gate: GateOptions) -> SharedInput:
        """The input of streams of ``base``, whose gate has the options ``gate``; nothing has come yet."""
        made = gate.opened(base)
        sequence = made.sequence()
        return cls(made, sequence, History(base, sequence.reader()) if retains else None)

    def restore(self, base: SessionSchemas, streams: Snapshot) -> None:
        """Take over the state of ``streams``; this must be fresh."""
        self.gate.restore(streams.gate())
        if self.history is not None:
            self.history.windows.restore(streams.retained(base.query), streams.now)

    def snapshot(self, base: SessionSchemas, about: Mapping[str, str]) -> bytes:
        """The state as bytes; ``about`` is the streams' identity."""
        windows = RetainedWindows(base.query, base.streams) if self.history is None else self.history.windows
        return Snapshot.of(about, base.query, self.gate.state(), windows, ResultQueue(base.gathered, False)).to_bytes()

    def collect(self) -> None:
        """Let the queries see what has become ready."""
        self.sequence.collect()
        if self.history is not None:
            self.history.collect()

    def windows_for(self, schemas: SessionSchemas) -> RetainedWindows:
        """What a query of ``schemas`` finds in its windows. Raises a `SplitJoinError` where it can find nothing."""
        if self.history is None:
            raise InputError("history=True needs streams that retain tuples; give share() a window to retain, such as "
                             "retain='RANGE 10 MINUTES'")
        query = schemas.query
        if not query.is_pairs:
            raise UnsupportedError(f"history=True needs how='inner' without aggregates, as rows of tuples from before "
                                   f"may have been decided then, but the query is of kind '{query.kind}'"
                                   f"{' with aggregates' if query.aggregates else ''}; leave history out")
        return self.history.windows_of(schemas)

    def past(self, schemas: SessionSchemas, punctuation: bool) -> Snapshot:
        """The state of a query of ``schemas`` whose windows hold the retained tuples, all of them settled."""
        windows = self.windows_for(schemas)
        about = identity(schemas.query, schemas.gathered, GateReader.rule, punctuation)
        return Snapshot.of(about, schemas.query, GateState.of(schemas.streams, self.sequence.frontier), windows,
                           ResultQueue(schemas.gathered, punctuation),
                           progress=DeviceProgress((windows.streams["r"].end, windows.streams["s"].end)))
