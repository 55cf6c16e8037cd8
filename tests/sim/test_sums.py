"""Sum tests in the circuit: distances are exact there, with NULL, at types' ends, in scans and beside an index."""

import random
import re

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

SQUARES = "(r.x - s.a) * (r.x - s.a) + (r.y - s.b) * (r.y - s.b)"
#: Conditions that have to be decided in the circuit.
CONDITIONS = {
    "squares": f"{SQUARES} <= 25",
    "outside": f"{SQUARES} > 25 AND r.y <> s.b",
    "ring": f"{SQUARES} BETWEEN 9 AND 25 OR r.x = s.b",
    "radius": f"{SQUARES} <= r.y + s.b - 3",
    "weighed": "9 * (r.x - s.a) * (r.x - s.a) + 2 * (2 * r.y - s.b + 1) * (2 * r.y - s.b + 1) <= 90",
    "four axes": "abs(r.x - s.a) + abs(r.y - s.b) + abs(r.x - s.b) + abs(r.y + s.a) <= 12",
    "bits": "bit_count(r.y ^ s.b) <= 2",
    "bits and squares": f"2 * bit_count(r.x ^ s.a) + (r.y - s.b) * (r.y - s.b) >= 20 OR {SQUARES} = 5",
    "decimal": "(r.p - s.q) * (r.p - s.q) + (r.x - s.a) * (r.x - s.a) <= 6.25",
}
SCHEMAS = {"r": pa.schema([("x", pa.int8()), pa.field("y", pa.int32(), False), ("p", pa.decimal128(5, 2))]),
           "s": pa.schema([("a", pa.int8()), pa.field("b", pa.int16(), False), ("q", pa.decimal128(5, 1))])}


def table(side, n, rng):
    """Small numbers, with some NULL and the ends of types between them."""
    columns = []
    for field in SCHEMAS[side]:
        values = [rng.randint(-9, 9) for _ in range(n)]
        if pa.types.is_integer(field.type):
            low, high = -2**(field.type.bit_width - 1), 2**(field.type.bit_width - 1) - 1
            values = [rng.choice([low, high]) if rng.random() < 0.1 else v for v in values]
        elif pa.types.is_decimal(field.type):
            values = [v / 4 if field.type.scale == 2 else v / 2 for v in values]
            values = [None if v is None else pa.scalar(str(v)).cast(field.type).as_py() for v in values]
        columns.append([None if field.nullable and rng.random() < 0.15 else v for v in values])
    return pa.table([pa.array(v, f.type) for v, f in zip(columns, SCHEMAS[side], strict=True)], schema=SCHEMAS[side])


@pytest.mark.parametrize("name", [
    at_length(name) if name in ("squares", "weighed", "four axes", "outside", "ring") else name for name in CONDITIONS])
def test_decided_in_the_circuit(name):
    rng = random.Random(name)
    r, s = table("r", 40, rng), table("s", 40, rng)
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=CONDITIONS[name], window="ROWS 14")
    some = {"stall_in": 0.3, "stall_out": 0.3, "seed": rng.randrange(99)}
    if name == "bits and squares":
        engine = SimDevice(cores=2, capacity=8, lanes=2, probes=3, **some)
    else:  # slow, and a sum is computed alike in every core
        engine = PysimDevice(cores=1, capacity=16, lanes=2, probes=2, **some)
    plan = engine.plan(query)
    assert plan.sums and plan.residual is None
    golden = run(GoldenDevice(), query, r, s)
    assert len(golden) > 90
    assert_conforms(run(engine, query, r, s, [5, 31]), golden, "total")


def test_beside_an_index():
    """An index finds candidates by a band that the distance implies, and the circuit decides them."""
    rng = random.Random(3)
    r, s = table("r", 60, rng), table("s", 60, rng)
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=CONDITIONS["squares"], window="ROWS 9")
    engine = PysimDevice(cores=1, capacity=16, core="bucket", stall_out=0.3, seed=1)
    plan = engine.plan(query)
    assert plan.sums and plan.tests and plan.residual is None and engine.configuration(query).index
    assert_conforms(run(engine, query, r, s, [7]), run(GoldenDevice(), query, r, s), "total")


def test_what_is_too_wide_is_verified():
    schemas = [Schema.from_arrow(side, pa.schema([pa.field(n, pa.int64(), False) for n in names]))
               for side, names in (("r", "xy"), ("s", "ab"))]
    for on, why in ((f"{SQUARES} <= 25", "the difference '.*' has 65 bits, and a circuit takes up to 64"),
                    ("(r.x % 10000000000000000 - s.a % 1000) * (r.x % 10000000000000000 - s.a % 1000) + "
                     "bit_count(r.y ^ s.b) <= 10000000000000000000000000",
                     "the sum is compared with numbers of 84 bits, and a circuit takes up to 62"),
                    (f"{SQUARES} <= 25 - 3 * bit_count(r.x ^ s.b)", "multiplies '.*' by powers of two only, not by 3"),
                    ("3 * (r.x % 9 - s.a % 9) * (r.x % 9 - s.a % 9) + bit_count(r.y ^ s.b) <= 9",
                     "weighs a square by a square or a power of two only, not by 3"),
                    ("(r.x % 9 - s.a % 9) * (r.x % 9 - s.a % 9) - bit_count(r.y ^ s.b) <= 9",
                     "some of which are added and some subtracted")):
        plan = plan_for(Query.make(*schemas, on=on, window="ROWS 9"), CircuitParameters(verify="host"))
        assert plan.residual is not None
        assert any(re.search(why, reason) for reason in plan.reasons), plan.reasons
