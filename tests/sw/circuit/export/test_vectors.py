"""Vectors of testbenches: random tuples of every type that a condition can use, and the errors."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import splitjoin
from splitjoin.circuit.encode import decode, unpack
from splitjoin.circuit.export.expected import candidates
from splitjoin.circuit.export.vectors import random_arrivals, vectors
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.query_circuit import chosen_circuit
from splitjoin.engines.device import PAIR
from splitjoin.lang.eval.scalar import compile_condition
from splitjoin_sim.pysim import PysimTransport

TYPES = [pa.int8(), pa.uint64(), pa.float64(), pa.bool_(), pa.string(), pa.large_string(), pa.binary(), pa.date32(),
         pa.date64(), pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.duration("s"), pa.decimal128(1, 0),
         pa.decimal128(7, 2), pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int16(), pa.int32()),
         pa.run_end_encoded(pa.int32(), pa.int16())]


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_random_tuples_have_the_types_of_the_schema(type_: pa.DataType, nullable: bool) -> None:
    fields = [pa.field(name, type_, nullable=nullable) for name in ("x", "a")]
    query = splitjoin.query(*(pa.schema([field]) for field in fields), on="r.x = s.a", window="ROWS 8")
    made = random_arrivals(query, 60, seed=1)
    assert [made.r.schema.field("x").type, made.s.schema.field("a").type] == [type_, type_]
    values = made.r.column("x").to_pylist()
    assert (None in values) == nullable and len(set(values) - {None}) >= (2 if type_ == pa.bool_() else 3)
    circuit = chosen_circuit(query, CircuitParameters(cores=1, capacity=64))
    given = vectors(query, circuit, made)
    assert len(given.records) == 121 and len(given.items) > 121, "some tuples match"


def test_declared_ranges_are_kept() -> None:
    schema = pa.schema([splitjoin.field("x", pa.int32(), min=-3, max=1, nullable=False)])
    query = splitjoin.query(schema, schema, on="r.x = s.x", window="ROWS 8")
    assert set(random_arrivals(query, 60, seed=1).r.column("x").to_pylist()) == {-3, -2, -1, 0, 1}


#: Conditions that circuits decide in part: by bands, and by a sum test.
VERIFIED = ("(r.x & s.a) <= 4 AND abs(r.x - s.a) <= 6", "bit_count(r.x ^ s.a) <= 3 AND (r.x * s.a) % 3 = 1",
            "abs(r.x - s.a) <= 9 AND (r.x * s.a) % 3 = 1")
SCHEMAS = (pa.schema({"x": pa.int32(), "u": pa.string()}), pa.schema({"a": pa.int32(), "w": pa.string()}))


@pytest.mark.parametrize("on", VERIFIED)
def test_candidates_hold_all_pairs_of_the_condition(on: str) -> None:
    query = splitjoin.query(*SCHEMAS, on=on, window="ROWS 16")
    circuit = chosen_circuit(query, CircuitParameters(cores=1, capacity=16, verify="host"))
    assert circuit.plan.residual is not None
    arrivals = random_arrivals(query, 30, seed=1)
    found = candidates(circuit.plan, arrivals)
    condition = compile_condition(query.predicate)
    holds = np.array([[condition(r, s) is True for s in arrivals.s.to_pylist()] for r in arrivals.r.to_pylist()])
    assert (found | ~holds).all() and (found & ~holds).any() and not found.all()


@pytest.mark.long
@pytest.mark.parametrize("on", VERIFIED)
def test_a_circuit_gives_the_candidates(on: str) -> None:
    query = splitjoin.query(*SCHEMAS, on=on, window="ROWS 16")
    circuit = chosen_circuit(query, CircuitParameters(cores=1, capacity=16, verify="host"))
    given = vectors(query, circuit, random_arrivals(query, 30, seed=1))
    transport = PysimTransport(circuit.config, seed=1, stall_in=0.2, stall_out=0.2, patience=20_000)
    for address, word in given.writes:
        transport.write(address, word)
    words = circuit.config.input_record.words
    records = np.array([np.frombuffer(n.to_bytes(4 * words, "little"), "<u4") for n in given.records], np.uint32)
    items = decode(transport.transfer(records, until_end=True))
    wanted = [unpack(circuit.config.item_record, np.array([[n >> 32 * k & 0xFFFFFFFF for k in range(3)]], np.uint32))
              for n in given.items]
    pairs = [(int(item["r"][0]), int(item["s"][0])) for item in wanted if item["kind"][0] == PAIR]
    assert items[["r", "s"]][items["kind"] == PAIR].tolist() == pairs and len(pairs) > 10
