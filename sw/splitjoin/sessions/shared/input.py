"""`SharedInput`: the gate of shared streams, the sequence of what is ready, and what is retained of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from splitjoin.base.errors import InputError, UnsupportedError
from splitjoin.lang.schema import SIDES, Side

from ..gate import GateReader, GateState, ReadySequence
from ..gate_choice import PushGate, make_gate
from ..results import ResultQueue
from ..retained import RetainedWindows
from ..schemas import SessionSchemas
from ..snapshot import Snapshot, identity
from .history import History

__all__ = ["SharedInput"]


@dataclass(frozen=True)
class SharedInput:
    """What the sources of shared streams give.

    Attributes:
        gate: Merges the sources.
        sequence: What is ready.
        history: What is retained for queries to come; None if nothing is.
        default: The index of each stream's default source, if there is one.
    """

    gate: PushGate
    sequence: ReadySequence
    history: History | None
    default: dict[Side, int] = field(default_factory=dict)

    @classmethod
    def make(cls, base: SessionSchemas, *, retains: bool, gate: Mapping[str, Any]) -> SharedInput:
        """The input of streams of ``base``, whose gate has the options ``gate``; nothing has come yet."""
        made = make_gate(base, **gate)
        sequence = made.sequence()
        return cls(made, sequence, History(base, sequence.reader()) if retains else None)

    def restore(self, base: SessionSchemas, streams: Snapshot) -> None:
        """Take over the state of ``streams``; this must be fresh."""
        self.gate.restore(streams.gate())
        self.default.update(streams.default)
        if self.history is not None:
            self.history.windows.restore(streams.retained(base.query), streams.now)

    def snapshot(self, base: SessionSchemas, about: Mapping[str, str]) -> bytes:
        """The state as bytes; ``about`` is the streams' identity."""
        windows = RetainedWindows(base.query, base.streams) if self.history is None else self.history.windows
        return Snapshot.of(about, self.gate.state(), self.default, windows, [], ResultQueue(base.gathered, False),
                           settled=(0, 0), ended=False, restarts=0, kind={}, query=base.query).to_bytes()

    def collect(self) -> None:
        """Let the queries see what has become ready."""
        self.sequence.collect()
        if self.history is not None:
            self.history.collect()

    def default_source(self, side: Side) -> int:
        """The index of the stream's default source, which is added if there is none."""
        if side not in self.default:
            self.default[side] = self.gate.add(side).index
        return self.default[side]

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
        ends = windows.streams["r"].end, windows.streams["s"].end
        frontier = self.sequence.frontier
        gate = GateState(None if frontier is None else (frontier, (0, 0)), dict.fromkeys(SIDES, False),
                         {side: [] for side in SIDES},
                         {side: (0, 0, schemas.streams[side].empty_table()) for side in SIDES})
        return Snapshot.of(identity(schemas.query, schemas.gathered, GateReader.rule, punctuation), gate, {}, windows,
                           [], ResultQueue(schemas.gathered, punctuation), settled=ends, ended=False, restarts=0,
                           kind={}, query=schemas.query)
