"""A state machine over one session: pushes in random cuts, lateness, idle sources, snapshots, moves and changes."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
from hypothesis import note, strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

import splitjoin
from splitjoin.engines.golden import GoldenDevice
from tests.support.lagging import LaggingDevice

from .mortal import MortalDevice
from .oracle import Change, Lost, Spec, Window, rows_of
from .oracle_input import Input, R, S
from .sources_machine import DEVICES, SourcesMachine, query_of, selected, specs, tuples, windows

#: Those between which a session moves, one whose results come late, and, twice as often, one whose cores stand still.
SESSION_DEVICES = [*DEVICES, "lagging", "mortal", "mortal"]


class SessionMachine(SourcesMachine):
    """One session in order ``total`` or ``none``, with several sources."""

    #: Whether a session goes on without a core that stands still.
    goes_on = True

    @initialize(spec=specs(), order=st.sampled_from(["total", "total", "none"]), early=st.booleans(),
                sides=st.sampled_from([[R, S], [R, S], [R, S, S], [R, R, S]]), device=st.sampled_from(SESSION_DEVICES),
                delays=st.one_of(st.none(), st.tuples(st.integers(0, 4), st.integers(0, 4)),
                                 st.sampled_from([(None, 3), (2, None)])),
                rule=st.sampled_from(["min", "spark", "max", "source"]),
                silence=st.one_of(st.none(), st.tuples(*[st.sampled_from([None, 2, 5])] * 2)),
                capacity=st.one_of(st.none(), st.none(), st.integers(2, 6)),
                on_fault=st.sampled_from(["continue", "restart", "golden"]))
    def begin(self, spec: Spec, order: str, early: bool, sides: list[int], device: str,
              delays: tuple[int | None, int | None] | None, rule: str, silence: tuple[int | None, int | None] | None,
              capacity: int | None, on_fault: str) -> None:
        if delays is None or (None in delays and rule == "source"):
            rule = "min"
        if order == "none" and ((spec.aggregate and not early) or spec.chooses_late):
            order = "total"
        if order == "none":  # tuples are joined as they come where windows are RANGE alone
            r, s = (Window(length=window.rows if window.length is None else window.length) for window in spec.windows)
            spec = replace(spec, windows=(r, s))
        self.early = early and order == "none" and (spec.aggregate or spec.how not in ("inner", "semi"))
        self.spec, self.order = spec, order
        self.options: dict[str, Any] = {"select": selected(spec), "early": self.early}
        self.goes_on = on_fault == "continue"
        self.options["on_fault"] = GoldenDevice() if on_fault == "golden" else on_fault
        if delays is not None:
            self.options |= {"lateness": delays, "watermark": rule}
        if silence is not None:
            self.options |= {"idle": tuple(None if one is None else f"{one} SECONDS" for one in silence),
                             "clock": lambda: self.input.now}
        self.sheds = capacity is not None and order == "total"
        if capacity is not None and self.sheds:
            self.capacity = capacity
            self.options |= {"when_full": "shed", "shedding": splitjoin.Shedding(capacity=capacity,
                                                                                 threshold=capacity - 1)}
        self.query = query_of(spec, order)
        self.input = Input([], None)  # whose clock the session reads
        self.open(device)
        self.begin_sources(sides, delays, rule, at_once=order == "none", silence=silence or (None, None))
        self.rows: list[Any] = []
        self.taken = 0
        self.late: list[int] = []
        self.changes: list[Change] = []
        self.saved: Any = None
        self.ended = False
        self.begun()

    def open(self, device: str) -> None:
        """Open the session."""
        self.device, self.mortal, self.noted = device, MortalDevice(), 0
        self.lags = device == "lagging"
        self.session = splitjoin.open(self.query, **self.on(device), **self.options)

    def on(self, device: str) -> dict[str, Any]:
        """The options of a device."""
        if device == "lagging":
            return {"device": LaggingDevice(lag=3)}
        return {"device": self.mortal} if device == "mortal" else DEVICES[device]

    def begun(self) -> None:
        """What else there is to do at the beginning."""

    def load(self, side: int) -> tuple[int, int]:
        """Tuples that wait count, and those in the stream's RANGE window, which this machine does not follow."""
        mine = [arrival for arrival in self.input.accepted if arrival.side == side]
        waiting = len(mine) - sum(arrival.side == side for arrival in self.input.sequence)
        windows = next((change.windows for change in reversed(self.changes) if change.windows), self.spec.windows)
        return waiting, waiting if windows[side].rows is not None else len(mine)

    def shed(self, side: int, held: tuple[int, int], pushed: int) -> frozenset[int]:
        if not self.sheds:
            return frozenset()
        names = (self.session.shed_r()["i"] if side == R else self.session.shed_s()["j"]).to_pylist()
        late = int(self.session.counters()[f"late_{'rs'[side]}"]) - sum(
            arrival.side == side for arrival in self.input.late)
        kept = pushed - len(names) - late
        assert held[0] + kept <= max(self.capacity, held[0]), "at the capacity, every tuple is dropped"
        assert not names or held[1] + kept >= self.capacity, "below the threshold, none is dropped"
        return frozenset(names)

    @precondition(lambda self: self.input.silence != (None, None))
    @rule(seconds=st.sampled_from([1, 2, 5]))
    def wait(self, seconds: int) -> None:
        self.input.wait(seconds)
        self.session.found_rows()

    def take(self, table: pa.Table) -> None:
        """Count rows that came, or that are taken back."""
        self.taken += len(table)
        for row in table.to_pylist():
            sign = row.pop("operation", "+")
            key = tuple(row.values())
            if sign == "-":
                assert key in self.rows, f"a row is taken back that is not there: {key}"
                self.rows.remove(key)
            else:
                self.rows.append(key)

    @rule()
    def poll(self) -> None:
        self.take(self.session.poll())
        self.late += [*self.session.late_r()["i"].to_pylist(), *self.session.late_s()["j"].to_pylist()]
        assert sorted(self.late) == sorted(arrival.name for arrival in self.input.late)
        if self.order == "total":
            decided = rows_of(self.spec, self.input.sequence, flushed=False, changes=self.known())
            most = min(len(self.rows), len(decided))
            assert self.rows[:most] == decided[:most]
            if not self.lags:
                assert most == len(decided)
                assert most == len(self.rows) or self.spec.how not in ("inner", "semi") or self.spec.aggregate
            return
        as_of = self.spec.how.startswith("asof")
        joined = self.input.joined(S if self.spec.aggregate or as_of else None)
        known = sorted(rows_of(self.spec, joined, flushed=True), key=str)
        if not self.early:
            if not self.lags:
                # Behind a stream whose sources have closed, a row may wait, as another source can still be added.
                due = [row for row in known if self.is_final(row) and not self.is_behind_closed(row)]
                assert not Counter(due) - Counter(self.rows)
            known = [row for row in known if as_of or self.is_final(row) or self.is_ruled_out(row)]
            assert not Counter(self.rows) - Counter(known)
        elif not self.lags:
            assert sorted(self.rows, key=str) == known

    def is_final(self, row: tuple[Any, ...]) -> bool:
        """Whether nothing that can still come changes a row of order ``none``."""
        how, side = self.spec.how, R if row[0] is not None else S
        if how in ("inner", "semi") or (None not in row and how not in ("anti", "asof", "asof_left")):
            return True
        if self.is_behind_closed(row):
            return True
        by_name = {arrival.name: arrival.ts for arrival in self.input.accepted}
        ts, reached, length = by_name[row[side]], self.input.reached[1 - side], self.spec.windows[side].length
        assert length is not None
        last = ts + length
        if how.startswith("asof") and self.spec.direction == "backward":
            last = ts - (not self.spec.allow_exact)
        elif how.startswith("asof") and self.spec.direction == "forward" and row[1] is not None:
            last = by_name[row[1]]
        return reached is not None and last < reached[0]

    def is_behind_closed(self, row: tuple[Any, ...]) -> bool:
        """True if all sources of the other stream have closed."""
        side = R if row[0] is not None else S
        return all(source.closed for source in self.input.sources if source.side != side)

    def is_ruled_out(self, row: tuple[Any, ...]) -> bool:
        """Whether a row has no partner, as its own value allows none: it comes before it is final, though not always at
        once.
        """
        side = R if row[0] is not None else S
        rules_out = (self.spec.condition.r_out, self.spec.condition.s_out)[side]
        return not self.spec.aggregate and any(rules_out(arrival.value) for arrival in self.input.accepted
                                               if arrival.name == row[side])

    @precondition(lambda self: self.device == "mortal" and (not self.goes_on or self.order != "none"))
    @rule(core=st.integers(0, 2), kept=st.integers(0, 1), batches=st.lists(tuples, min_size=4, max_size=4))
    def core_stands_still(self, core: int, kept: int, batches: list[list[tuple[int, int | None]]]) -> None:
        """While tuples come, of which some would meet those that it had stored."""
        self.session.found_rows()  # with all that is ready
        latest = self.mortal.latest
        assert latest is not None
        place = len(self.input.sequence)
        if core not in {fault.core for fault in latest.faults} and len(latest.faults) < 2 and not any(
                change.lost is not None and change.place == place for change in self.changes):
            latest.leave_out(core, kept)
            if self.goes_on:
                self.changes.append(Change(place, lost=Lost(3, kept)))
            for number, batch in enumerate(batches[:len(self.sources)]):
                if not self.input.sources[number].closed:
                    self._push(number, batch)

    def known(self) -> list[Change]:
        """The changes, with what cores had stored that were lost, once the session says it."""
        unknown = [change.lost for change in self.changes if change.lost is not None and change.lost.remainders is None]
        for lost, fault in zip(unknown, self.session.faults[self.noted:], strict=False):
            lost.remainders, self.noted = (fault.lost_r, fault.lost_s), self.noted + 1
        return self.changes

    def mend(self) -> None:
        """A fresh device session has all cores."""
        self.changes = [change for change in self.known() if change.lost is None or change.lost.remainders is not None]
        self.changes.append(Change(len(self.input.sequence), mended=True))

    @rule(device=st.sampled_from(SESSION_DEVICES))
    def restart(self, device: str) -> None:
        if self._tried(lambda: (self.session.restart(**self.on(device)), True)):
            self.device, self.lags = device, device == "lagging"
            self.mend()

    @rule(device=st.sampled_from(SESSION_DEVICES))
    def restore_elsewhere(self, device: str) -> None:
        saved = self.session.snapshot()
        self.known()  # what cores have lost by now, which the next session does not tell
        self.session.close()
        self._reopen(device, saved)

    def _reopen(self, device: str, saved: bytes) -> None:
        for tried in (device, self.device):
            self.open(tried)
            if self._tried(lambda: (self.session.restore(saved), True)):
                break
        else:
            raise AssertionError("the device that had the state refuses it")
        self.mend()
        self.reopen_sources()

    @rule()
    def save(self) -> None:
        state = self.session.snapshot()
        self.known()
        self.saved = state, self.device, *copy.deepcopy(
            (self.input, self.rows, self.taken, self.late, self.changes, self.names))

    @precondition(lambda self: self.saved is not None)
    @rule(device=st.sampled_from(SESSION_DEVICES), sure=st.integers(0, 3))
    def crash(self, device: str, sure: int) -> None:
        """The session is lost, and another one goes on from the last snapshot."""
        if sure:  # else hardly a tuple lasts
            return
        state, self.device, *model = self.saved
        self.input, self.rows, self.taken, self.late, self.changes, self.names = copy.deepcopy(model)
        self._reopen(device, state)

    @precondition(lambda self: self.order != "none" and self.device != "mortal")
    @rule(device=st.sampled_from(list(DEVICES)))
    def move(self, device: str) -> None:
        # Or a move is under way.
        if self._tried(lambda: (self.session.move(**DEVICES[device]), True), always=True):
            self.device = device

    @precondition(lambda self: self.order != "none")
    @rule(of=st.integers(1, 4), cores=st.sets(st.integers(0, 3)))
    def mask(self, of: int, cores: set[int]) -> None:
        masked = frozenset(core for core in cores if core < of)
        if len(masked) < of:
            place = self._tried(lambda: self.session.mask(sorted(masked), of=of))
            self._changed(Change(len(self.input.sequence), masked=(masked, of)), place)

    @precondition(lambda self: self.order != "none" and not self.spec.aggregate)
    @rule(both=st.tuples(windows, windows))
    def window(self, both: tuple[Window, Window]) -> None:
        place = self._tried(lambda: self.session.window(tuple(map(str, both))))
        self._changed(Change(len(self.input.sequence), self.input.least_time(), windows=both), place)
        if place is not None:
            self.mend()

    def _tried(self, action: Callable[[], Any], *, always: bool = False) -> Any:
        """The value of ``action``; None if engines that decide for themselves refuse it, which changes nothing."""
        try:
            return action()
        except splitjoin.UnsupportedError:
            if always or self.spec.aggregate or self.spec.how != "inner":
                return None
            raise

    def _changed(self, change: Change, place: tuple[int, int] | None) -> None:
        sequence = self.input.sequence
        if place is not None:
            assert place == tuple(sum(arrival.side == side for arrival in sequence) for side in (R, S))
            self.changes.append(change)

    @invariant()
    def counted(self) -> None:
        if getattr(self, "session", None) is not None and self.order != "none":
            counters = self.session.counters()
            ready = [arrival.side for arrival in self.input.sequence]
            assert (counters["tuples_r"], counters["tuples_s"]) == (ready.count(R), ready.count(S))
            assert counters["rows"] - counters["unread_rows"] == self.taken

    def finish(self) -> None:
        """End the input and take the last rows."""
        self.take(self.session.flush())
        self.input.finish()

    def teardown(self) -> None:
        if getattr(self, "session", None) is None or self.ended:
            return
        self.ended = True
        self.finish()
        sequence = self.input.sequence if self.order == "total" else sorted(self.input.accepted)
        answer = rows_of(self.spec, sequence, flushed=True, changes=self.known())
        note(f"{sequence}\n{self.changes}")
        if self.order == "total":
            assert self.rows == answer
        else:
            assert sorted(self.rows, key=str) == sorted(answer, key=str)
        self.session.close()
