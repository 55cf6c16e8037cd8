"""Tests of constant width in the circuit: exact at both ends of every interval, and at the ends of the types."""

import random
from dataclasses import replace

import pyarrow as pa
import pytest

from splitjoin.circuit.lowering import plan_for
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.engines.golden import GoldenDevice
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin_sim.device import SimDevice
from splitjoin_sim.pysim import PysimDevice

from ..support.conformance import assert_conforms, run
from ..support.sampling import at_length

SCHEMAS = {"r": pa.schema([pa.field("x", pa.int16(), False), pa.field("n", pa.int8()), pa.field("z", pa.float32()),
                           pa.field("t", pa.string())]),
           "s": pa.schema([pa.field("a", pa.int16(), False), pa.field("m", pa.int8()), pa.field("c", pa.float32()),
                           pa.field("w", pa.string())])}
#: Condition → the widths of its tests.
CONDITIONS = {
    "abs(r.x - s.a) <= 3": (6,),
    "r.x + s.a BETWEEN -2 AND 3": (5,),
    "r.x - s.a BETWEEN 40000 AND 60000 OR r.n = s.m": (20000, 0),
    "abs(r.x - s.a) <= 16 AND r.x <> 4": (None,),  # a selection gives the key a code for NULL
    "r.n = s.m": (0,),
    "r.z = s.c OR abs(r.x - s.a) < 1": (0, 0),
    "r.t = s.w AND r.x >= s.a": (0, None),
    "abs(r.x - s.a) <= 15 AND r.n + s.m BETWEEN -1 AND 1": (30, None),
}


def table(side, rng):
    """Numbers around 0, 16 and the ends of the type: differences are often just within or beyond an interval."""
    low, high = -2**15, 2**15 - 1
    near = [0, 16, low, high]
    columns = []
    for field in SCHEMAS[side]:
        if pa.types.is_int16(field.type):
            values = [min(high, max(low, rng.choice(near) + rng.randint(-5, 5))) for _ in range(60)]
        elif pa.types.is_int8(field.type):
            values = [rng.choice([None, -128, 127, 0, 1, 2]) for _ in range(60)]
        elif pa.types.is_floating(field.type):
            values = [rng.choice([None, float("nan"), 0.0, -0.0, 1.5, float("inf")]) for _ in range(60)]
        else:
            values = [rng.choice([None, "", "a", "ab"]) for _ in range(60)]
        columns.append(pa.array(values, field.type))
    return pa.table(columns, schema=SCHEMAS[side])


@pytest.mark.parametrize("on", [at_length(on) if n % 3 else on for n, on in enumerate(CONDITIONS)])
def test_the_answer_is_the_golden_models(on):
    rng = random.Random(on)
    r, s = table("r", rng), table("s", rng)
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=on, window="ROWS 14")
    golden = run(GoldenDevice(), query, r, s)
    assert len(golden) > 130
    some = {"stall_in": 0.3, "stall_out": 0.3, "seed": 5}
    if on == "abs(r.x - s.a) <= 3":
        engine = SimDevice(cores=2, capacity=8, lanes=2, probes=3, **some)
    else:  # slow, and a test is computed alike in every core
        engine = PysimDevice(cores=1, capacity=16, lanes=2, probes=2, **some)
    config = engine.configuration(query)
    assert config.test_widths == CONDITIONS[on] and config.stages == 3
    assert replace(engine, clock=150).configuration(query) == config, "a slow clock changes nothing"
    assert_conforms(run(engine, query, r, s, [5, 31]), golden, "total")


def test_an_index_needs_both_ends():
    query = Query.make(Schema.from_arrow("r", SCHEMAS["r"]), Schema.from_arrow("s", SCHEMAS["s"]),
                       on="abs(r.x - s.a) <= 3 AND r.n = s.m", window="ROWS 4096")
    for core in ("hash", "bucket"):
        assert set(plan_for(query, CircuitParameters(core=core)).widths) == {None}
    assert plan_for(query, CircuitParameters(core="scan")).widths == (6, 0)
    assert plan_for(query, CircuitParameters(core="scan", clock=250)).widths == (None, 0)


def test_a_low_end_takes_half_of_the_record():
    """Two 32-bit bands: 66 bits of bounds instead of 128."""
    names = ("xy", "ab")
    r, s = (Schema.from_arrow(side, pa.schema([pa.field(n, pa.int32(), False) for n in of]))
            for side, of in zip("rs", names, strict=True))
    query = Query.make(r, s, on="abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10", window="ROWS 64")
    config = PysimDevice().configuration(query)
    assert config.widths == (20, 20) and config.bounds("r").width == 66
