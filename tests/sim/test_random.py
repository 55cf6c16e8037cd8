"""Random joins on random circuits under random stalls, on both simulators, against the golden model.

A distilled version of a long search. The few circuits are built once; windows, orders, data and stalls vary freely.
"""

import random
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.base.errors import WindowOverflow
from splitjoin.engines.registry import device
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin_sim.device import SimDevice
from splitjoin_sim.pysim import PysimDevice
from tests.testbench.models import NO_LIMIT, Window, first_without_room

from ..support.conformance import assert_conforms, run
from ..support.sampling import at_length, examples

#: A sample of the matrix: cores, capacity, fan-out, fan-in, lanes, probes; whether there are event times. Rings of 2
#: are full nearly always.
CIRCUITS = [((1, 4, 2, 2, 1, 1), True), ((3, 2, 2, 2, 1, 8), True), ((2, 32, 2, 2, 4, 8), True)]
FURTHER = [((2, 32, 2, 2, 1, 4), True), ((1, 2, 2, 2, 1, 3), False), ((5, 4, 3, 2, 2, 2), True),
           ((4, 8, 2, 4, 4, 4), False)]
#: Circuit → records that wait ahead of each of its regions.
QUEUES = {(3, 2, 2, 2, 1, 8): 16, (2, 32, 2, 2, 4, 8): 64}
#: The same of circuits with tables, whose batches are complete before their passes begin.
WITH_TABLES = [((3, 8, 2, 2, 2, 8), True), ((1, 4, 2, 2, 1, 3), False)]
ON = "abs(r.x - s.a) <= 2"
SCHEMAS = {side: pa.schema([pa.field("ts", pa.int64(), nullable=False), pa.field(name, pa.int16(), nullable=False)])
           for side, name in (("r", "x"), ("s", "a"))}


@dataclass(frozen=True)
class Join:
    """A join to run: tables, windows as numbers, order, and the positions at which the input is cut into slices."""

    r: pa.Table
    s: pa.Table
    windows: dict[str, Window]
    timed: bool
    order: str
    cuts: tuple[int, ...]
    stalls: tuple[float, float, int]
    on: str = ON

    def query(self):
        texts = {}
        for side, w in self.windows.items():
            parts = [f"ROWS {w.rows}"] * (w.rows != NO_LIMIT) + [f"RANGE {w.length}"] * (w.length is not None)
            texts[side] = " ".join(parts)
        return Query.make(Schema.from_table("r", self.r), Schema.from_table("s", self.s), on=self.on, window=texts,
                          time="ts" if self.timed else None, order=self.order)

    def arrivals(self):
        """(stream, event time) in arrival order."""
        r, s = ([(side, ts) for ts in table["ts"].to_pylist()] for side, table in (("r", self.r), ("s", self.s)))
        return sorted(r + s, key=lambda x: (x[1], x[0]))


@st.composite
def joins(draw, circuit, *, timed, max_rows):
    cores, capacity, *_ = circuit
    largest = cores * capacity
    rows = st.one_of(st.just(largest), st.integers(max(1, largest - cores), largest), st.integers(1, largest))
    windows = {}
    for side in "rs":
        kind = draw(st.sampled_from(["rows", "range", "both", "both"])) if timed else "rows"
        limit = draw(st.one_of(rows, st.integers(largest + 1, largest + 9)) if kind == "both" else rows)
        length = draw(st.sampled_from([0, 1, 4, 11, 40, 10**6]))
        windows[side] = Window(NO_LIMIT if kind == "range" else limit, None if kind == "rows" else length)
    if timed and all(w.length is None for w in windows.values()):
        windows["s"] = Window(windows["s"].rows, 7)  # else the circuit would have no event times
    size = draw(st.integers(0, max_rows))
    rng = random.Random(draw(st.integers(0, 10**9)))
    share, burst, pace = rng.choice([0.05, 0.5, 0.5, 0.9]), rng.choice([1, 4, 20]), rng.choice([0.1, 1, 4])
    span = rng.choice([2, 6, 40])
    columns = {"r": ([], []), "s": ([], [])}
    now = rng.choice([-(2**62), 0, 12345])
    while sum(len(c[0]) for c in columns.values()) < size:
        side = "r" if rng.random() < share else "s"
        for _ in range(rng.randint(1, burst)):
            now += int(rng.expovariate(1 / pace)) + (rng.choice([100, 10**7, 2**45]) if rng.random() < 0.02 else 0)
            columns[side][0].append(now)
            columns[side][1].append(rng.randrange(span))
    tables = [pa.table(list(columns[side]), schema=SCHEMAS[side]) for side in "rs"]
    order = draw(st.sampled_from(["none", "outer(1)", "outer(3)", "outer(1000)", "inner(1)", "inner(2)",
                                  "total", "total"]))
    cuts = tuple(draw(st.lists(st.integers(0, size), max_size=2)))
    stalls = draw(st.tuples(st.sampled_from([0.0, 0.3, 0.9]), st.sampled_from([0.0, 0.5, 0.9]), st.integers(0, 999)))
    return Join(*tables, windows, timed, order, cuts, stalls)


def check(circuit, make, join, *, core="auto", tables=False, queue=0):
    """Fail unless the circuit gives the golden model's answer, or overflows where it must."""
    cores, capacity, fanout, fanin, lanes, probes = circuit
    stall_in, stall_out, seed = join.stalls
    engine = make(cores=cores, capacity=capacity, fanout=fanout, fanin=fanin, lanes=lanes, probes=probes,
                  core="scan" if tables else core, tables=tables, queue=queue, stall_in=stall_in, stall_out=stall_out,
                  seed=seed)
    query = join.query()
    overflow = first_without_room(join.arrivals(), engine.configuration(query), join.windows) if join.timed else None
    if overflow is not None:
        with pytest.raises(WindowOverflow) as caught:
            run(engine, query, join.r, join.s, join.cuts)
        assert (caught.value.stream, caught.value.row) == overflow
        return
    golden = run(device("golden", cores=cores), query, join.r, join.s)
    assert_conforms(run(engine, query, join.r, join.s, join.cuts), golden, join.order)


@pytest.mark.parametrize(("circuit", "timed", "tables"), [
    *((*case, False) for case in CIRCUITS[::2]), (*WITH_TABLES[0], True), at_length(*CIRCUITS[1], False),
    at_length(*WITH_TABLES[1], True),
    *(at_length(*case, False) for case in FURTHER)], ids=str)
def test_compiled_circuit(circuit, timed, tables):
    @given(joins(circuit, timed=timed, max_rows=100 + 10 * circuit[1]))
    @settings(max_examples=examples(25))
    def same_answer(join):
        check(circuit, SimDevice, join, tables=tables, queue=QUEUES.get(circuit, 0))

    same_answer()


FULL = [([0, 0, 0, 0, 2], [0, 0, 0, 0, 1], ("s", 4)), ([0, 0, 0, 0, 1], [0, 0, 0, 0, 1], ("r", 4))]


@pytest.mark.parametrize(("make", "r", "s", "first"), [
    *((SimDevice, *case) for case in FULL), *(at_length(PysimDevice, *case) for case in FULL)])
def test_the_first_tuple_without_room_is_named_although_the_other_stream_has_one_too(make, r, s, first):
    """One stream overflows its ring, and the other does an arrival later, before the circuit has stopped."""
    tables = [pa.table([times, [0] * 5], schema=SCHEMAS[side]) for side, times in (("r", r), ("s", s))]
    for order in ("none", "outer(1)", "total") if make is SimDevice else ("total",):  # the slow simulator waits longest
        join = Join(*tables, {side: Window(length=5) for side in "rs"}, True, order, (), (0.0, 0.0, 1))
        with pytest.raises(WindowOverflow) as caught:
            run(make(cores=1, capacity=4), join.query(), join.r, join.s)
        assert (caught.value.stream, caught.value.row) == first


def test_a_stuck_circuit_is_noticed_although_its_patience_is_longer_than_a_pause(monkeypatch):
    monkeypatch.setattr("splitjoin_sim.device._PAUSE", 64)
    table = pa.table([[0] * 9, [0] * 9], schema=SCHEMAS["r"])
    empty = SCHEMAS["s"].empty_table()
    join = Join(table, empty, {side: Window(length=5) for side in "rs"}, True, "total", (), (0.0, 0.0, 0))
    with pytest.raises(WindowOverflow, match="r#4 arrived"):
        run(SimDevice(cores=1, capacity=4), join.query(), table, empty)
