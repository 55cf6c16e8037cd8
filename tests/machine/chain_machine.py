"""A state machine over joins of three and four streams, of any kinds, with snapshots, other devices and epochs."""

from __future__ import annotations

import copy
import shutil
import tempfile
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import splitjoin
from tests.support.lagging import LaggingDevice
from tests.support.multiway import Joined, by_steps

_SCHEMA = pa.schema([("t", pa.int64()), ("v", pa.int64()), ("n", pa.int64())])
_NAMES = "abcd"
#: Kinds of a step, twice those that are met most often, and their words.
_KINDS = ["inner", "inner", "left", "semi", "anti", "asof", "asof_left"]
_WORDS = {"inner": "JOIN", "asof_left": "ASOF LEFT JOIN"}
#: Devices of the steps, of which one gives its results late.
_DEVICES: dict[str, Any] = {"golden": "golden", "cpu": "cpu", "lagging": LaggingDevice(lag=3)}

steps = st.lists(st.tuples(st.sampled_from(_KINDS), st.sampled_from([">=", ">", "<=", "<"])), min_size=2, max_size=3)


def _holds(name: str, kind: str, row: Any, one: dict[str, Any]) -> bool:
    """Whether a tuple of stream ``name`` meets a row, by the conditions of `_statement`."""
    return bool(row["a"]["v"] == one["v"] if name == "b" or kind.startswith("asof") else one["v"] <= row["a"]["v"])


def _statement(chain: list[tuple[str, str]], *, grouped: bool) -> tuple[str, list[Joined], list[str]]:
    """A SELECT of the numbers of tuples, its joins, and the streams whose tuples its rows have; ``grouped``: of each
    row of all streams but the last, with aggregates over its partners there.
    """
    there, text, joins = ["a"], "FROM a", list[Joined]()
    for name, (kind, op) in zip(_NAMES[1:], chain, strict=False):
        on = f"a.v = {name}.v" if name == "b" or kind.startswith("asof") else f"{name}.v <= a.v"
        if kind.startswith("asof"):
            latest = "a.t" if there == ["a"] else f"greatest({', '.join(f'{one}.t' for one in there)})"
            on += f" AND {latest} {op} {name}.t"
        text += f" {_WORDS.get(kind, f'{kind.upper()} JOIN')} {name} ON {on}"
        joins.append(Joined(kind, partial(_holds, name, kind), op))
        there += [name] if kind not in ("semi", "anti") else []
    names = [f"{name}.n AS {name}n" for name in there]
    if grouped:
        *names, _ = names
        names += [item.format(there[-1]) for item in (
            "count(*) AS rows", "count({}.n) AS met", "sum({}.n) AS total", "last({}.n) AS late")]
        text += f" GROUP BY {', '.join(there[:-1])}"
    return f"SELECT {', '.join(names)} {text}", joins, there


def _folded(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The groups of rows that differ in the last tuple alone, of which they have the time and the number, with their
    aggregates.
    """
    groups: dict[tuple[Any, ...], list[tuple[int, int] | None]] = {}
    for *base, last in rows:
        groups.setdefault(tuple(base), []).append(last)
    met = {base: sorted(one for one in lasts if one is not None) for base, lasts in groups.items()}
    return [(*base, len(lasts), len(met[base]), sum(n for _, n in met[base]) if met[base] else None,
             met[base][-1][1] if met[base] else None) for base, lasts in groups.items()]


class ChainMachine(RuleBasedStateMachine):
    """One join of three or four streams, polled or written to epochs, each stream in order or late within bounds."""

    @initialize(chain=steps, lengths=st.lists(st.integers(0, 8), min_size=4, max_size=4), epochs=st.booleans(),
                shed=st.sampled_from([None, None, 3]), grouped=st.booleans(),
                lateness=st.none() | st.lists(st.integers(0, 4), min_size=4, max_size=4))
    def begin(self, chain: list[tuple[str, str]], lengths: list[int], epochs: bool, shed: int | None,
              grouped: bool, lateness: list[int] | None) -> None:
        self.names = _NAMES[:len(chain) + 1]
        self.grouped = grouped and chain[-1][0] in ("inner", "left")
        text, self.joins, self.there = _statement(chain, grouped=self.grouped)
        self.lengths = dict(zip(self.names, lengths, strict=False))
        self.in_order = chain[-1][0] == "inner" and not self.grouped  # else rows come when they are decided
        windows = {name: f"RANGE {n}" for name, n in self.lengths.items()}
        self.select: Any = splitjoin.sql(text, window=windows, time="t", tables=dict.fromkeys(self.names, _SCHEMA))
        self.options: dict[str, Any] = {} if shed is None else {
            "when_full": "shed", "shedding": splitjoin.Shedding(capacity=shed, threshold=shed - 1)}
        if lateness is not None:
            self.options["lateness"] = dict(zip(self.names, lateness, strict=False))
        self.tuples: dict[str, list[tuple[int, int, int]]] = {name: [] for name in self.names}
        self.promised, self.delivered = dict.fromkeys(self.names, 0), dict.fromkeys(self.names, 0)
        self.closed, self.idled = set[str](), set[str]()
        self.rows: list[Any] = []
        self.saved: Any = None
        self.folder = Path(tempfile.mkdtemp()) if epochs else None
        self.open("golden")
        self.keep()

    def open(self, device: str) -> None:
        """Open the join, and go on from its epochs if there are any."""
        self.session = splitjoin.open_multiway(self.select, _DEVICES[device], **self.options)
        if self.folder is not None:
            self.writer = self.session.write_to(self.folder)

    def model(self) -> Any:
        """All that the machine expects."""
        return copy.deepcopy((self.tuples, self.promised, self.delivered, self.closed, self.idled, self.rows))

    def keep(self) -> None:
        """Save the state, and what is expected of it."""
        state = self.session.snapshot() if self.folder is None else b""
        self.saved = state, self.model()

    @rule(batches=st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 3)), min_size=1,
                                    max_size=2), min_size=4, max_size=4))
    def push(self, batches: list[list[tuple[int, int, int]]]) -> None:
        """A batch to each stream that is open."""
        for name, batch in zip(self.names, batches, strict=False):
            if name not in self.closed:
                self._push(name, batch)

    def _push(self, name: str, batch: list[tuple[int, int, int]]) -> None:
        rows, at, reached = [], self.promised[name], max(self.promised.values())
        for step, value, back in batch:
            at += step
            rows.append((at - back if "lateness" in self.options else at, value, self.delivered[name]))
            self.delivered[name] += 1
        self.promised[name] = at
        self.session.push(name, pa.table(list(zip(*rows, strict=True)), schema=_SCHEMA))
        gone = set(self.session.shed(name)["n"].to_pylist())
        late = self.session.late(name)
        assert not len(late) or name in self.idled or (
            "lateness" in self.options and max(late["t"].to_pylist()) < self.promised[name])
        assert max(late["t"].to_pylist(), default=0) <= max(reached, self.promised[name])
        gone |= set(late["n"].to_pylist())
        self.tuples[name] += [row for row in rows if row[2] not in gone]

    @rule(name=st.sampled_from(_NAMES), ahead=st.integers(0, 6))
    def heartbeat(self, name: str, ahead: int) -> None:
        if name in self.names and name not in self.closed:
            self.promised[name] += ahead
            self.session.heartbeat(self.promised[name], name)

    @rule(names=st.sets(st.sampled_from(_NAMES), min_size=1))
    def idle(self, names: set[str]) -> None:
        """No other stream waits for these; what they bring then may be late."""
        for name in sorted(names.intersection(self.names) - self.closed):
            self.idled.add(name)
            self.session.idle(name)

    @rule(name=st.sampled_from(_NAMES), sure=st.integers(0, 4))
    def finish(self, name: str, sure: int) -> None:
        if name in self.names and not sure:
            self.closed.add(name)
            self.session.finish(name)

    @precondition(lambda self: self.folder is None)
    @rule()
    def poll(self) -> None:
        self.rows += [tuple(row.values()) for row in self.session.poll().to_pylist()]

    @rule(device=st.sampled_from(list(_DEVICES)))
    def restart(self, device: str) -> None:
        self.session.restart(_DEVICES[device])

    @rule()
    def save(self) -> None:
        if self.folder is not None:
            self.writer.commit()
            assert {name: sum(self.writer.delivered.get(name, ())) for name in self.names} == self.delivered
        self.keep()

    @rule(device=st.sampled_from(list(_DEVICES)), sure=st.integers(0, 3))
    def crash(self, device: str, sure: int) -> None:
        if not sure:  # else hardly a tuple lasts
            self.go_on(device)

    @rule(device=st.sampled_from(list(_DEVICES)))
    def go_on_elsewhere(self, device: str) -> None:
        self.save()
        self.go_on(device)

    def go_on(self, device: str) -> None:
        """Open the join again behind the last snapshot or epoch."""
        if self.folder is not None:
            self.writer.close()
        self.session.close()
        state, model = self.saved
        self.tuples, self.promised, self.delivered, self.closed, self.idled, self.rows = copy.deepcopy(model)
        self.open(device)
        if state:
            self.session.restore(state)

    def teardown(self) -> None:
        if getattr(self, "session", None) is None:
            return
        if self.folder is None:
            found = [*self.rows, *(tuple(row.values()) for row in self.session.flush().to_pylist())]
        else:
            for name in self.names:
                self.session.finish(name)
            self.writer.commit()
            self.writer.close()
            found = [tuple(row.values()) for path in sorted(self.folder.glob("*.parquet"))
                     for row in pq.read_table(path).to_pylist()]
            shutil.rmtree(self.folder)
        counted = self.session.counters()
        assert not any(counted[f"{n}_late_r"] for n in range(2, len(self.names))), "rows of a step are lost"
        self.session.close()
        tables = {name: pa.Table.from_pylist([dict(zip(_SCHEMA.names, row, strict=True)) for row in sorted(
            rows, key=itemgetter(0))], _SCHEMA) for name, rows in self.tuples.items()}
        rows = [row for _, row in by_steps(tables, self.joins, list(self.lengths.values()), "t")]
        answer: list[Any] = [tuple(None if (one := row[name]) is None else one["n"] for name in self.there)
                             for row in rows]
        if self.grouped:
            lasts = [None if (one := row[self.there[-1]]) is None else (one["t"], one["n"]) for row in rows]
            answer = _folded([(*row[:-1], last) for row, last in zip(answer, lasts, strict=True)])
        if not self.in_order:
            found, answer = sorted(found, key=repr), sorted(answer, key=repr)
        assert found == answer, self.select.explain()
