"""What the machines share: random queries, devices, and the rules of sources."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

import splitjoin
from splitjoin.base.errors import InputError

from .oracle import CONDITIONS, Spec, Window
from .oracle_input import Input, R, S

SCHEMAS = (pa.schema([("ts", pa.int64()), ("x", pa.int64()), ("i", pa.int64())]),
           pa.schema([("ts", pa.int64()), ("a", pa.int64()), ("j", pa.int64())]))
#: Devices between which sessions move.
DEVICES: dict[str, dict[str, Any]] = {"golden": {"device": "golden"}, "cpu": {"device": "cpu"},
                                     "nested": {"device": "cpu", "engine": "nested"}}
AGGREGATES = {"n": "count(*)", "t": "sum(s.a)", "m": "max(s.a)"}

values = st.one_of(st.none(), st.integers(0, 3))
#: What a push brings: steps of time and values.
tuples = st.lists(st.tuples(st.integers(-7, 5), values), min_size=1, max_size=5)
windows = st.one_of(st.builds(Window, length=st.integers(0, 8)), st.builds(Window, rows=st.integers(1, 4)),
                    st.builds(Window, rows=st.integers(1, 4), length=st.integers(0, 8)))


def specs(window: st.SearchStrategy[Window] = windows, *, inner: bool = False) -> st.SearchStrategy[Spec]:
    """Random queries."""
    both = st.tuples(window, window)
    condition = st.sampled_from(CONDITIONS)
    pairs = st.builds(Spec, condition, both, st.sampled_from(["inner"] if inner else [
        "inner", "left", "right", "full", "semi", "anti"]))
    if inner:
        return pairs
    asof = st.builds(Spec, condition, both, st.sampled_from(["asof", "asof_left"]),
                     direction=st.sampled_from(["backward", "forward", "nearest", "nearest"]),
                     allow_exact=st.booleans(), k=st.sampled_from([1, 1, 2, 3]),
                     ties=st.sampled_from(["backward", "last"]))
    folds = st.builds(Spec, condition, both, st.sampled_from(["inner", "left"]), aggregate=st.just(True))
    return st.one_of(pairs, pairs, asof, folds)


def query_of(spec: Spec, order: str) -> Any:
    """The query that ``spec`` describes."""
    return splitjoin.query(*SCHEMAS, on=spec.condition.text, window=tuple(map(str, spec.windows)), time="ts",
                           order=order, how=spec.how, aggregate=AGGREGATES if spec.aggregate else None, **choice(spec))


def choice(spec: Spec) -> dict[str, Any]:
    """The options of an as-of join's choice."""
    options = {"direction": spec.direction, "allow_exact": spec.allow_exact, "k": spec.k} | (
        {"ties": spec.ties} if spec.direction == "nearest" else {})
    return options if spec.how in ("asof", "asof_left") else {}


def selected(spec: Spec) -> list[str]:
    """Columns by which a row is told apart; aggregates follow them."""
    return ["i"] if spec.aggregate or spec.how in ("semi", "anti") else ["i", "j"]


def pushed_table(side: int, rows: list[tuple[int, int | None, int]]) -> pa.Table:
    """Arrow's table of (ts, value, name)."""
    columns = list(zip(*rows, strict=True))
    return pa.table([pa.array(column, pa.int64()) for column in columns], schema=SCHEMAS[side])


class SourcesMachine(RuleBasedStateMachine):
    """Rules of the sources of ``session``, each of which ``input`` mirrors."""

    session: Any
    input: Input
    sources: list[Any]
    lateness: Any = None
    sheds = False
    names = 0

    def begin_sources(self, sides: list[int], delays: tuple[int | None, int | None] | None, rule: str,
                      *, at_once: bool, silence: tuple[float | None, float | None] = (None, None)) -> None:
        """Add the sources of a session that was opened."""
        self.lateness = delays
        self.input = Input(list(sides), delays, rule, at_once=at_once, silence=silence)
        self.sources = [self.session.source("rs"[side]) for side in sides]

    def reopen_sources(self) -> None:
        """The sources of a session that continues from a snapshot."""
        self.sources = [self.session.source_at("rs"[source.side], source.number) for source in self.input.sources]

    def open_source(self, data: st.DataObject) -> int | None:
        """The number of a source that is open."""
        number = data.draw(st.sampled_from(range(len(self.sources))), label="source")
        return None if self.input.sources[number].closed else number

    @rule(data=st.data(), batches=st.lists(tuples, min_size=1, max_size=4))
    def push(self, data: st.DataObject, batches: list[list[tuple[int, int | None]]]) -> None:
        """Batches to one source after the other, from any one on."""
        first = data.draw(st.sampled_from(range(len(self.sources))), label="source")
        for n, batch in enumerate(batches, first):
            if not self.input.sources[n % len(self.sources)].closed:
                self._push(n % len(self.sources), batch)

    # Twice as often as other rules.
    push_more = push

    def _push(self, number: int, batch: list[tuple[int, int | None]]) -> None:
        source = self.input.sources[number]
        rows, at = [], self.input.least_in_order(number)
        for step, value in batch:
            at = at + abs(step) if self.lateness is None else max(0, at + step)
            rows.append((at, value, self.names))
            self.names += 1
        held = self.load(source.side) if self.sheds else (0, 0)
        self.sources[number].push(pushed_table(source.side, rows))
        self.input.push(number, rows, self.shed(source.side, held, len(rows)))

    @precondition(lambda self: self.lateness is None and self.input.silence == (None, None))
    @rule(data=st.data(), before=st.lists(st.integers(0, 3), max_size=3))
    def push_out_of_order(self, data: st.DataObject, before: list[int]) -> None:
        """A batch whose last tuple precedes what its source must not fall behind: none of it is taken."""
        number = self.open_source(data)
        if number is None or not (before or self.input.sources[number].delivered):  # a first tuple may be of any time
            return
        side, least = self.input.sources[number].side, self.input.least_in_order(number)
        rows, delivered = [(least + step, 0, -1) for step in sorted(before)], self.session.delivered
        with pytest.raises(InputError, match="must not decrease"):
            self.sources[number].push(pushed_table(side, [*rows, (least - 1, 0, -1)]))
        assert self.session.delivered == delivered

    def load(self, side: int) -> tuple[int, int]:
        """The least and the most that the load of a stream can be."""
        raise NotImplementedError

    def shed(self, side: int, held: tuple[int, int], pushed: int) -> frozenset[int]:
        """The names of the tuples that a push of so many dropped, at a load from ``held`` on."""
        return frozenset()

    @rule(data=st.data(), ahead=st.integers(0, 6))
    def heartbeat(self, data: st.DataObject, ahead: int) -> None:
        number = self.open_source(data)
        if number is not None:
            at = max(0, self.input.least_in_order(number) + ahead - 2 * (self.lateness is not None))
            self.sources[number].heartbeat(at)
            self.input.heartbeat(number, at)

    @precondition(lambda self: self.lateness is not None)
    @rule(data=st.data())
    def idle(self, data: st.DataObject) -> None:
        number = self.open_source(data)
        if number is not None:
            self.sources[number].idle()
            self.input.idle(number)

    @precondition(lambda self: len(self.sources) < 4)
    @rule(side=st.sampled_from([R, S]), sure=st.integers(0, 2))
    def add_source(self, side: int, sure: int) -> None:
        # Once all sources have closed, engines and the oracle agree on what a new one may deliver in order only.
        ended = self.input.at_once and all(source.closed for source in self.input.sources)
        if not sure and not ended:
            self.sources.append(self.session.source("rs"[side]))
            self.input.add(side)

    @rule(data=st.data(), sure=st.integers(0, 3))
    def close(self, data: st.DataObject, sure: int) -> None:
        number = self.open_source(data)
        if number is not None and not sure:
            self.sources[number].close()
            self.input.close(number)
