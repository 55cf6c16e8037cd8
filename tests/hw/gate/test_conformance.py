"""The conformance scenarios, split over several sources, merged by the circuit and by the software gate."""

import random

import numpy as np
import pyarrow as pa
import pytest

from splitjoin.circuit.wire import Configuration, Op
from splitjoin.sessions.gate import ScaleGate as SoftwareGate
from splitjoin_hw.gate.gate import ScaleGate
from tests.testbench.gating import gate, record_of
from tests.testbench.models import Operation
from tests.testbench.pauses import MATRIX

from ...support.scenarios import SCENARIOS, arrivals_of
from ...support.simulations import simulation

#: Times of 64 bits: sources may be arbitrarily far apart.
CONFIG = Configuration(keys_r=(32,), keys_s=(32,), tests=((0, 0),), tree=0, time_bits=64)
TIMED = [scenario for scenario in SCENARIOS if scenario.query().time is not None]
SCHEMA = pa.schema([("ts", pa.int64()), ("row", pa.int64())])


def split(rng, stream, ts, counts):
    """The tuples of an arrival order dealt out to ``counts`` sources of R and of S, with heartbeats; key 0 is the row
    id. Among tuples of one stream and event time, arrival order is by source, so these go to sources in rising order.
    """
    sources: list[list[Operation]] = [[] for _ in range(sum(counts))]
    owners = range(counts[0]), range(counts[0], sum(counts))
    rows = [0, 0]
    at = 0
    while at < len(ts):
        tie = at
        while tie < len(ts) and (stream[tie], ts[tie]) == (stream[at], ts[at]):
            tie += 1
        for n in sorted(rng.choices(owners[stream[at]], k=tie - at)):
            sources[n].append(Operation(Op.TUPLE, stream[at], ts[at], (rows[stream[at]],), ((0, 0),)))
            rows[stream[at]] += 1
        at = tie
        idle = rng.randrange(sum(counts))
        if rng.random() < 0.2 and at < len(ts) and (idle >= counts[0] or stream[at] == 0):
            sources[idle].append(Operation(Op.TICK, int(idle >= counts[0]), ts[at]))
    return sources


def by_software(sources, counts, closed):
    """The records that are ready after all sources have delivered: (stream, event time, row id) each."""
    software = SoftwareGate(SCHEMA, SCHEMA, time="ts")
    ends = [software.add("r") for _ in range(counts[0])] + [software.add("s") for _ in range(counts[1])]
    for n, (end, source) in enumerate(zip(ends, sources, strict=True)):
        for op in source:
            if op.op == Op.TICK:
                end.heartbeat(op.ts)
            else:
                end.push(pa.table({"ts": [op.ts], "row": [op.keys[0]]}, schema=SCHEMA))
        if n in closed:
            end.close()
    ready = software.ready()
    tables = [iter(ready.table(side).to_pylist()) for side in "rs"]
    rows = [(int(n), next(tables[n])) for n in ready.stream]
    return [(n, row["ts"], row["row"]) for n, row in rows]


@pytest.mark.parametrize("scenario", TIMED, ids=str)
@pytest.mark.parametrize("ends", [True, False], ids=["closed", "open"])
def test_sources_are_merged_to_the_arrival_order(scenario, ends):
    rng = random.Random(f"{scenario.name}{ends}")
    whole = arrivals_of(scenario)
    stream, ts = whole.stream.tolist(), (whole.ts - whole.ts.min(initial=0)).tolist()
    counts = rng.choice([(1, 1), (1, 2), (3, 2), (4, 1)])
    stalls = rng.choice(list(MATRIX.values())).seeded(rng.randrange(1000))
    sources = split(rng, stream, ts, counts)
    closed = set(range(len(sources))) if ends else {0} if len(sources) > 3 else set()
    numbers = [whole.stream[:n].tolist().count(side) for n, side in enumerate(stream)]
    order = list(zip(stream, ts, numbers, strict=True))
    ready = by_software(sources, counts, closed)
    assert ready == order[:len(ready)]
    assert len(ready) == len(order) or not ends

    async def body(tb):
        ended = [[*source, Operation(Op.FLUSH)] if n in closed else source for n, source in enumerate(sources)]
        sink = await gate(tb, CONFIG, ended, stalls)
        tuples = [r for r in (record_of(CONFIG, p) for p in sink.items) if r["op"] == Op.TUPLE]
        assert [(r["stream"], r["ts"], r["body"] & 0xFFFFFFFF) for r in tuples] == ready

    simulation(ScaleGate, CONFIG, len(sources)).run(body)


def test_there_are_scenarios_with_ties_of_both_streams():
    assert len(TIMED) >= 9
    assert any(np.any((w.ts[1:] == w.ts[:-1]) & (w.stream[1:] != w.stream[:-1])) for w in map(arrivals_of, TIMED)
               if w.ts is not None)
