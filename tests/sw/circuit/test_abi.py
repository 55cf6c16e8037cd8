"""The ABI hash of circuits that were built before stays, as boards with another one are refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import splitjoin
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.query_circuit import chosen_circuit


@pytest.mark.parametrize(("aggregate", "abi"), [
    (None, 0xe781748748f78556),
    ({"n": "count(*)"}, 0xce66fcfe09920d99),
    ({"n": "sum(s.price)"}, 0x61bb45459fdd2a5a),
    ({"m": "max(s.price)", "a": "avg(s.price)"}, 0x1b44dc1cce79d9e2),
])
def test_circuits_that_exist_keep_their_hash(aggregate: dict[str, Any] | None, abi: int) -> None:
    """A change of the wire, or of how a circuit computes, changes these on purpose; new fields of a description not."""
    r = pa.schema([("ts", pa.int64()), ("x", pa.int32())])
    s = pa.schema([("ts", pa.int64()), ("a", pa.int32()), ("price", pa.int16())])
    query = splitjoin.query(r, s, on="abs(r.x - s.a) <= 10", window="ROWS 64", by="r" if aggregate else None,
                            aggregate=aggregate)
    circuit = chosen_circuit(query, CircuitParameters(cores=2, capacity=64))
    assert f"{circuit.config.abi_hash:016x}" == f"{abi:016x}"
