"""A state machine over a session that writes epochs, and over those that go on from them."""

from __future__ import annotations

import copy
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from splitjoin.base.errors import InputError

from .oracle import rows_of
from .oracle_input import R, S
from .session_machine import SESSION_DEVICES, SessionMachine


class EpochMachine(SessionMachine):
    """A session whose rows are in files, with a crash between any two calls."""

    def begun(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.epochs = self.session.write_to(self.folder)
        self.committed = copy.deepcopy(self.model())

    def model(self) -> Any:
        """What a crash takes back to the last epoch."""
        return self.input, self.changes, self.names, self.device

    # Rows are in files, and the state with them.
    save = restore_elsewhere = None  # type: ignore[assignment]  # rules that epochs take the place of

    @rule()
    def poll(self) -> None:
        """The writer alone reads, and nobody goes back behind an epoch."""
        for refused in (self.session.poll, lambda: self.session.restore(self.session.snapshot())):
            with pytest.raises(InputError, match="so no poll, restore or other writer can have them"):
                refused()

    def files(self) -> None:
        """Take the rows of all files."""
        self.rows, self.taken = [], 0
        for path in sorted(self.folder.glob("*.parquet")):
            self.take(pq.read_table(path))

    @rule()
    def commit(self) -> None:
        if self.epochs.commit():
            self.committed = copy.deepcopy(self.model())
            self.files()
            if self.order == "total" and not self.lags:
                decided = rows_of(self.spec, self.input.sequence, flushed=False, changes=self.known())
                assert self.rows[:len(decided)] == decided

    @precondition(lambda self: True)
    @rule(device=st.sampled_from(SESSION_DEVICES), sure=st.integers(0, 3))
    def crash(self, device: str, sure: int) -> None:
        if sure:  # else hardly a tuple lasts
            return
        self.epochs.close()
        self.input, self.changes, self.names, self.device = copy.deepcopy(self.committed)
        for tried in (device, self.device):
            self.open(tried)
            epochs = self._tried(lambda: self.session.write_to(self.folder))
            if epochs is not None:
                self.epochs = epochs
                break
        else:
            raise AssertionError("the device that had the state refuses it")
        self.mend()
        if not self.epochs.epochs:
            self.sources = [self.session.source("rs"[source.side]) for source in self.input.sources]
            return
        delivered = {side: tuple(source.delivered for source in self.input.sources if "rs"[source.side] == side)
                     for side in "rs"}
        assert self.epochs.delivered == delivered
        self.reopen_sources()

    def finish(self) -> None:
        for number, source in enumerate(self.input.sources):
            if not source.closed:
                self.sources[number].close()
        self.session.close_r()
        self.session.close_s()
        self.input.finish()
        self.epochs.commit()
        self.epochs.close()
        self.files()
        shutil.rmtree(self.folder)
        assert {arrival.side for arrival in self.input.accepted} <= {R, S}
