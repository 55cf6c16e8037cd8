"""A state machine over shared streams that write epochs of all their queries, and over those that go on from them."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from splitjoin.base.errors import InputError

from .shared_machine import SharedMachine


class SharedEpochMachine(SharedMachine):
    """Shared streams whose queries' rows are in files, with a crash between any two calls."""

    def begun(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.epochs = self.session.write_to(self.folder)
        self.committed = self.model()

    # Rows are in files, and the state with them.
    end_query = poll_ended = save = None  # type: ignore[assignment]  # rules that epochs take the place of

    @rule()
    def poll(self) -> None:  # type: ignore[override]  # of all queries, so none is drawn
        """The writer alone reads the queries, whenever they were added, and nobody goes back behind an epoch."""
        for refused in (*(query.poll for query in self.session.queries.values()),
                        lambda: self.session.restore(self.session.snapshot())):
            with pytest.raises(InputError, match="so no poll, restore or other writer can have them"):
                refused()

    def files(self, name: str) -> list[tuple[Any, ...]]:
        """The rows of a query in all its files."""
        return [tuple(row.values()) for path in sorted((self.folder / name).glob("*.parquet"))
                for row in pq.read_table(path).to_pylist()]

    @rule()
    def commit(self) -> None:
        if self.epochs.commit():
            self.committed = self.model()
            for name, query in self.queries.items():
                decided = self.answer(query, flushed=False)
                assert self.files(name)[:len(decided)] == decided

    @rule(device=st.sampled_from(["golden", "nested"]), sure=st.integers(0, 3))
    def crash(self, device: str, sure: int) -> None:
        """The streams are lost, and others go on from the last epoch."""
        if sure:  # else hardly a tuple lasts
            return
        self.epochs.close()
        self.open_again(self.committed, device)
        self.epochs = self.session.write_to(self.folder)
        if not self.epochs.epochs:
            self.sources = [self.session.source("rs"[source.side]) for source in self.input.sources]
            return
        delivered = {side: tuple(source.delivered for source in self.input.sources if "rs"[source.side] == side)
                     for side in "rs"}
        assert self.epochs.delivered == delivered
        self.reopen_sources()

    def teardown(self) -> None:
        if getattr(self, "session", None) is None:
            return
        self.session.close()
        self.input.finish()
        self.epochs.commit()
        self.epochs.close()
        for name, query in self.queries.items():
            assert self.files(name) == self.answer(query, flushed=True), query
        shutil.rmtree(self.folder)
