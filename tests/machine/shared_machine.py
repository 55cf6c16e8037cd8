"""A state machine over shared streams: queries and common joins that come, go, change and fail by themselves."""

from __future__ import annotations

import copy
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

import splitjoin

from .oracle import CONDITIONS, Change, Condition, Spec, Window, rows_of
from .oracle_input import Arrival, R, S
from .sources_machine import AGGREGATES, DEVICES, SCHEMAS, SourcesMachine, choice, selected, specs, windows

BAND = CONDITIONS[0]
#: Conditions that imply `BAND`, as its queries must.
NARROWER = [BAND, Condition("abs(r.x - s.a) <= 0", lambda x, a: x is not None and x == a, BAND.r_out, BAND.s_out),
            Condition("abs(r.x - s.a) <= 1 AND r.x > 1",
                      lambda x, a: x is not None and a is not None and x > 1 and abs(x - a) <= 1,
                      lambda x: x is None or x <= 1, BAND.s_out)]


@dataclass
class _Query:
    """A query as it should be: where in the sequence it began, and which rows it has given."""

    name: str
    spec: Spec
    begun: int
    history: bool
    join: str | None = None
    end: int | None = None  # where `flush` ended it
    rows: list[Any] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)


class SharedMachine(SourcesMachine):
    """Shared streams with several queries in order ``total``, each beside its own single run."""

    @initialize(sides=st.sampled_from([[R, S], [R, S, S]]),
                delays=st.one_of(st.none(), st.tuples(st.integers(0, 4), st.integers(0, 4))))
    def begin(self, sides: list[int], delays: tuple[int | None, int | None] | None) -> None:
        self.delays = delays
        self.session = self.opened()
        self.begin_sources(sides, delays, "min", at_once=False)
        self.queries: dict[str, _Query] = {}
        self.joins: dict[str, Window] = {}
        self.made = 0
        self.saved: Any = None
        self.begun()

    def begun(self) -> None:
        """What else there is to do at the beginning."""

    def opened(self) -> Any:
        """Shared streams without queries that retain all."""
        return splitjoin.share(*SCHEMAS, time="ts", retain="ROWS 100000", lateness=self.delays)

    def add(self, query: _Query, device: str) -> None:
        """Add ``query`` to the streams of the session."""
        window = tuple(map(str, query.spec.windows))
        if query.join is not None:
            self.session_joins[query.join].query(on=query.spec.condition.text, window=window, select=["i", "j"],
                                                 name=query.name, history=query.history)
            return
        spec = query.spec
        self.session.query(on=spec.condition.text, window=window, how=spec.how, name=query.name,
                           aggregate=AGGREGATES if spec.aggregate else None, select=selected(spec),
                           history=query.history, **choice(spec), **DEVICES[device])

    session_joins: dict[str, Any]

    @rule(data=st.data(), history=st.booleans(), device=st.sampled_from(list(DEVICES)))
    def add_query(self, data: st.DataObject, history: bool, device: str) -> None:
        if len(self.queries) < 4:
            spec = data.draw(specs(inner=history))
            self.made += 1
            query = _Query(f"q{self.made}", spec, len(self.input.sequence), history)
            self.add(query, device)
            self.queries[query.name] = query

    @precondition(lambda self: len(self.joins) < 2)
    @rule(window=st.one_of(st.builds(Window, length=st.integers(2, 8)), st.builds(Window, rows=st.integers(1, 4))),
          device=st.sampled_from(list(DEVICES)))
    def add_join(self, window: Window, device: str) -> None:
        if not self.joins:
            self.session_joins = {}
        self.made += 1
        name = f"j{self.made}"
        self.session_joins[name] = self.session.common_join(on=BAND.text, window=str(window), name=name,
                                                            **DEVICES[device])
        self.joins[name] = window

    @precondition(lambda self: self.joins)
    @rule(data=st.data(), condition=st.sampled_from(NARROWER), shorter=st.integers(0, 2), history=st.booleans())
    def add_to_join(self, data: st.DataObject, condition: Condition, shorter: int, history: bool) -> None:
        if len(self.queries) >= 4:
            return
        join = data.draw(st.sampled_from(sorted(self.joins)))
        window = self.joins[join]
        if window.length is not None:
            window = Window(length=window.length - shorter)
        self.made += 1
        query = _Query(f"q{self.made}", Spec(condition, (window, window)), len(self.input.sequence), history, join)
        try:
            self.add(query, "golden")
        except splitjoin.UnsupportedError:
            assert history and window.length is not None, "tuples had left a join whose windows became longer"
            return
        self.queries[query.name] = query

    def answer(self, query: _Query, *, flushed: bool) -> list[Any]:
        """The rows of a query's own single run."""
        sequence: list[Arrival] = self.input.sequence[query.begun:query.end]
        return rows_of(query.spec, sequence, flushed=flushed, changes=query.changes,
                       history=self.input.sequence[:query.begun] if query.history else ())

    def chosen(self, data: st.DataObject) -> _Query | None:
        """A query that runs."""
        names = [name for name, query in self.queries.items() if query.end is None]
        return self.queries[data.draw(st.sampled_from(names))] if names else None

    @precondition(lambda self: self.queries)
    @rule(data=st.data())
    def poll(self, data: st.DataObject) -> None:
        if (query := self.chosen(data)) is None:
            return
        query.rows += [tuple(row.values()) for row in self.session.queries[query.name].poll().to_pylist()]
        decided = self.answer(query, flushed=False)
        assert query.rows[:len(decided)] == decided
        if query.spec.how in ("inner", "semi") and not query.spec.aggregate:
            assert query.rows == decided

    @precondition(lambda self: self.queries)
    @rule(data=st.data(), sure=st.integers(0, 2))
    def end_query(self, data: st.DataObject, sure: int) -> None:
        if sure or (query := self.chosen(data)) is None:
            return
        query.end = len(self.input.sequence)
        running = self.session.queries[query.name]
        query.rows += [tuple(row.values()) for row in running.flush().to_pylist()]
        assert query.rows == self.answer(query, flushed=True)

    @precondition(lambda self: any(query.end is not None for query in self.queries.values()))
    @rule(data=st.data(), close=st.booleans())
    def poll_ended(self, data: st.DataObject, close: bool) -> None:
        """A query that was flushed has no more rows, however far the streams go on."""
        name = data.draw(st.sampled_from([name for name, query in self.queries.items() if query.end is not None]))
        assert self.session.queries[name].poll().num_rows == 0
        assert self.session.queries[name].unread == 0
        if close:
            self.session.queries[name].close()
            del self.queries[name]

    @precondition(lambda self: self.queries)
    @rule(data=st.data(), device=st.sampled_from(list(DEVICES)))
    def restart(self, data: st.DataObject, device: str) -> None:
        query = self.chosen(data)
        if query is not None and query.join is None:
            self.tried(query, lambda: self.session.queries[query.name].restart(**DEVICES[device]))

    @precondition(lambda self: self.joins)
    @rule(data=st.data(), device=st.sampled_from(list(DEVICES)))
    def restart_join(self, data: st.DataObject, device: str) -> None:
        self.session_joins[data.draw(st.sampled_from(sorted(self.joins)))].restart(**DEVICES[device])

    @precondition(lambda self: self.joins)
    @rule(data=st.data(), device=st.sampled_from(list(DEVICES)))
    def move_join(self, data: st.DataObject, device: str) -> None:
        join = self.session_joins[data.draw(st.sampled_from(sorted(self.joins)))]
        with suppress(splitjoin.UnsupportedError):  # a move is under way
            join.move(**DEVICES[device])

    @precondition(lambda self: any(query.join for query in self.queries.values()))
    @rule(data=st.data(), more=st.integers(0, 4))
    def window_of_join(self, data: st.DataObject, more: int) -> None:
        """Another RANGE of a common join, as long as those of its queries at least, which stay as they are."""
        name = data.draw(st.sampled_from(sorted(query.join for query in self.queries.values() if query.join)))
        windows = [next((change.windows for change in reversed(query.changes) if change.windows), query.spec.windows)
                   for query in self.queries.values() if query.join == name]
        lengths = [window.length for both in windows for window in both if window.length is not None]
        if lengths and self.joins[name].rows is None and self.session_joins[name].running:
            self.joins[name] = Window(length=max(lengths) + more)
            self.session_joins[name].window(str(self.joins[name]))

    def tried(self, query: _Query, action: Any) -> Any:
        """The value of ``action``; None if an engine that decides for itself refuses it."""
        try:
            return action()
        except splitjoin.UnsupportedError:
            assert query.join is not None or query.spec.aggregate or query.spec.how != "inner"
            return None

    @precondition(lambda self: self.queries)
    @rule(data=st.data(), both=st.tuples(windows, windows))
    def window(self, data: st.DataObject, both: tuple[Window, Window]) -> None:
        query = self.chosen(data)
        if query is None or query.spec.aggregate or query.history:
            return
        if query.join is not None:
            join = self.joins[query.join]
            if join.length is None:
                return
            length = min(join.length, both[0].length or 0)
            both = Window(length=length), Window(length=length)
        running = self.session.queries[query.name]
        if self.tried(query, lambda: running.window(tuple(map(str, both)))) is not None:
            query.changes.append(Change(len(self.input.sequence) - query.begun, self.input.least_time(), windows=both))

    @precondition(lambda self: self.queries)
    @rule(data=st.data(), of=st.integers(1, 4), cores=st.sets(st.integers(0, 3)))
    def mask(self, data: st.DataObject, of: int, cores: set[int]) -> None:
        query = self.chosen(data)
        masked = frozenset(core for core in cores if core < of)
        if query is None or query.history or len(masked) == of:
            return
        running = self.session.queries[query.name]
        if self.tried(query, lambda: running.mask(sorted(masked), of=of)) is not None:
            query.changes.append(Change(len(self.input.sequence) - query.begun, masked=(masked, of)))

    @precondition(lambda self: self.queries)
    @rule(device=st.sampled_from(list(DEVICES)), both=st.one_of(st.none(), st.tuples(windows, windows)),
          cores=st.one_of(st.none(), st.sets(st.integers(0, 1))))
    def change_all(self, device: str, both: tuple[Window, Window] | None, cores: set[int] | None) -> None:
        """A change of all queries that run, or of none where one refuses it."""
        place, now = len(self.input.sequence), self.input.least_time()
        with suppress(splitjoin.UnsupportedError):
            if any(query.history for query in self.queries.values()) or (both is None and cores is None):
                self.session.move(**DEVICES[device])  # the oracle has no changes behind a history
                return
            places = self.session.window(tuple(map(str, both))) if both else self.session.mask(cores or (), of=3)
            for query in (self.queries[name] for name in places):
                at = place - query.begun
                query.changes.append(Change(at, now, windows=both) if both else Change(
                    at, masked=(frozenset(cores or ()), 3)))

    def model(self) -> Any:
        """All that the machine expects."""
        return copy.deepcopy((self.input, self.queries, self.joins, self.names, self.made))

    @rule()
    def save(self) -> None:
        self.saved = self.session.snapshot(), self.model()

    @precondition(lambda self: self.saved is not None)
    @rule(device=st.sampled_from(["golden", "nested"]), sure=st.integers(0, 3))
    def crash(self, device: str, sure: int) -> None:
        """The streams are lost, and others go on from the last snapshot."""
        if sure:  # else hardly a tuple lasts
            return
        state, model = self.saved
        self.open_again(model, device)
        self.session.restore(state)
        self.reopen_sources()

    def open_again(self, model: Any, device: str) -> None:
        """Open streams with the queries of ``model``."""
        self.input, self.queries, self.joins, self.names, self.made = copy.deepcopy(model)
        self.session = self.opened()
        self.session_joins = {
            name: self.session.common_join(on=BAND.text, window=str(window), name=name, **DEVICES[device])
            for name, window in self.joins.items()}
        for query in self.queries.values():
            self.add(query, device)

    def teardown(self) -> None:
        if getattr(self, "session", None) is None:
            return
        self.session.close()
        self.input.finish()
        for query in self.queries.values():
            query.rows += [tuple(row.values()) for row in self.session.queries[query.name].flush().to_pylist()]
            assert query.rows == self.answer(query, flushed=True), query
