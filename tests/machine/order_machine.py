"""A state machine over a session in order ``outer(n)``: groups, their stars, and precisions that change."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from splitjoin.engines.device import STAR
from tests.support.conformance import groups

from .oracle import Change, Spec, groups_of
from .oracle_input import R, S
from .session_machine import SESSION_DEVICES, SessionMachine
from .sources_machine import query_of, specs


class OrderMachine(SessionMachine):
    """One session of an inner join, whose items are polled: pairs of row ids, and stars."""

    @initialize(spec=specs(inner=True), n=st.integers(1, 4), sides=st.sampled_from([[R, S], [R, S, S]]),
                device=st.sampled_from(SESSION_DEVICES))
    def begin(self, spec: Spec, n: int, sides: list[int], device: str) -> None:
        self.spec, self.n, self.order = spec, n, f"outer({n})"
        self.options = {"select": ["i", "j"], "punctuation": True}
        self.query = query_of(spec, self.order)
        self.open(device)
        self.begin_sources(sides, None, "min", at_once=False)
        self.rows: list[Any] = []
        self.taken = 0
        self.late: list[int] = []
        self.changes: list[Change] = []
        self.saved: Any = None
        self.ended = False

    @rule()
    def poll(self) -> None:
        items, rows = self.session.poll_items()
        self.rows += [tuple(item) for item in items.tolist()]
        self.taken += len(rows)
        for side in (R, S):
            stars = [item[2 + side] for item in self.rows if item[0] == STAR and item[1] == side]
            known = [star for star, _ in groups_of(self.spec, side, self.n, self.input.sequence, flushed=False,
                                                   changes=self.known())]
            assert stars == (known[:len(stars)] if self.lags else known)

    @rule(n=st.integers(1, 4))
    def precision(self, n: int) -> None:
        place = self.session.precision(n)
        self._changed(Change(len(self.input.sequence), precision=n), place)

    def teardown(self) -> None:
        if getattr(self, "session", None) is None:
            return
        self.session.close_r()
        self.session.close_s()
        self.input.finish()
        while not self.session.finished:
            self.rows += [tuple(item) for item in self.session.poll_items()[0].tolist()]
        self.known()
        self.session.close()
        for side in (R, S):
            assert groups(self.rows, side) == groups_of(self.spec, side, self.n, self.input.sequence, flushed=True,
                                                        changes=self.changes)
