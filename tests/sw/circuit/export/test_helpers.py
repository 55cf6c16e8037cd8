"""The Python module beside a circuit: its records and items are those of the circuit's vectors, of folding ones too."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import splitjoin
from splitjoin.circuit.axi import AxiShape
from splitjoin.circuit.encode import pack
from splitjoin.circuit.export.helpers import wire_helpers
from splitjoin.circuit.export.vectors import random_arrivals, vectors
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.query_circuit import QueryCircuit, chosen_circuit

R = pa.schema([pa.field("ts", pa.int64()), pa.field("x", pa.int32(), nullable=False)])
S = pa.schema([pa.field("ts", pa.int64()), pa.field("a", pa.int32(), nullable=False), pa.field("p", pa.int16())])
QUERY = {"on": "abs(r.x - s.a) <= 3", "window": "RANGE 40", "time": "ts"}


def helpers(circuit: QueryCircuit) -> dict[str, Any]:
    """The names of the module beside ``circuit``."""
    names: dict[str, Any] = {}
    exec(wire_helpers(circuit.config, "none"), names)
    return names


def test_states_are_unpacked_to_the_aggregates() -> None:
    aggregates = {"n": "count(*)", "total": "sum(s.p)", "low": "min(s.p)"}
    short = QUERY | {"on": "r.x = s.a"}
    query = splitjoin.query(R, S, how="left", aggregate=aggregates, **short)
    circuit = chosen_circuit(query, CircuitParameters(cores=2, capacity=64))
    arrivals = random_arrivals(query, 30, seed=5)
    given, wire = vectors(query, circuit, arrivals), helpers(circuit)
    assert given.ordered and wire["SIGNED"] == ["slot1_0", "slot2_0"]
    items = [wire["unpack_item"](item.to_bytes(wire["ITEM_BYTES"], "little")) for item in given.items]
    states = wire["unpack_states"](items)
    assert [row for row, _ in states] == list(range(30))
    rows = splitjoin.join(arrivals.r, arrivals.s, how="left", aggregate=aggregates, device="golden", select=[],
                          **short).to_pylist()
    assert [(s["slot0_0"], s["slot1_0"] if s["added1"] else None, s["slot2_0"] if s["added2"] else None)
            for _, s in states] == [(row["n"], row["total"], row["low"]) for row in rows]
    assert len({row["n"] for row in rows}) > 2 and any(row["low"] is None for row in rows)


def test_records_other_than_tuples() -> None:
    query = splitjoin.query(R, S, how="left", aggregate={"n": "count(*)"}, **QUERY)
    circuit = chosen_circuit(query, CircuitParameters(cores=2, capacity=64))
    given, wire = vectors(query, circuit, random_arrivals(query, 2, seed=5)), helpers(circuit)
    assert int.from_bytes(wire["flush_record"](), "little") == given.records[-1]

    def fields(data: bytes) -> dict[str, int]:
        assert len(data) == wire["RECORD_BYTES"]
        found = wire["unpack"](wire["FIELDS"]["input"], int.from_bytes(data, "little"))
        return {name: value for name, value in found.items() if value}

    ops = wire["OPS"]
    assert fields(wire["flush_record"]()) == {"op": ops["FLUSH"], "stream": 1}
    assert fields(wire["flush_record"](last=False)) == {"op": ops["FLUSH"]}
    assert fields(wire["tick_record"](77)) == {"op": ops["TICK"], "ts": 77}
    assert fields(wire["mask_record"](1, True)) == {"op": ops["MASK"], "stream": 1, "body": 1}
    assert fields(wire["mask_record"](1, False)) == {"op": ops["MASK"], "body": 1}
    with pytest.raises(ValueError, match="ts must be from 0"):
        wire["tick_record"](-1)


def test_a_semi_join_has_a_flag_and_a_circuit_without_time_no_tick() -> None:
    query = splitjoin.query(R, S, on="abs(r.x - s.a) <= 3", window="ROWS 16", how="semi")
    circuit = chosen_circuit(query, CircuitParameters(cores=1, capacity=16))
    given, wire = vectors(query, circuit, random_arrivals(query, 10, seed=5)), helpers(circuit)
    assert "tick_record" not in wire and wire["FIELDS"]["state"] == [("any", 1)]
    items = [wire["unpack_item"](item.to_bytes(wire["ITEM_BYTES"], "little")) for item in given.items]
    assert {tuple(state) for _, state in wire["unpack_states"](items)} == {("any",)}
    assert wire["unpack"](wire["FIELDS"]["input"], given.records[-1]) == {"op": 2, "stream": 0, "body": 0}
    assert int.from_bytes(wire["flush_record"](), "little") == given.records[-1]


@pytest.mark.parametrize("width", [2, 4])
def test_several_items_of_a_beat(width: int) -> None:
    query = splitjoin.query(R, S, **QUERY)
    circuit = chosen_circuit(query, CircuitParameters(cores=2, capacity=64, root_width=width))
    config, wire = circuit.config, helpers(circuit)
    fields = {f"{name}{n}": value for n, item in enumerate(({"kind": 0, "side": 1, "r": 7, "s": 9},
                                                            {"kind": 1, "side": 1, "r": 0, "s": 9}))
              for name, value in item.items()} | {f"kind{n}": 3 for n in range(2, width)}
    data = pack(config.output_record, dict(fields), 1).tobytes().ljust(AxiShape.of(config).item_bytes, b"\0")
    assert wire["unpack_items"](data) == [{"kind": 0, "side": 1, "r": 7, "s": 9},
                                          {"kind": 1, "side": 1, "r": 0, "s": 9}]


def test_a_state_that_leaves_its_width_is_refused() -> None:
    @splitjoin.aggregate
    class Narrow:
        total: splitjoin.unsigned(6) = 0

        def add(self, p: splitjoin.unsigned(5)):
            self.total += p

        def merge(self, other):
            self.total += other.total

        def result(self) -> splitjoin.unsigned(6):
            return self.total

    query = splitjoin.query(R, S, how="left", aggregate={"t": Narrow("s.p")}, **QUERY)
    circuit = chosen_circuit(query, CircuitParameters(cores=1, capacity=64))
    assert circuit.config.folds
    with pytest.raises(splitjoin.InputError, match=r"leaves its width at tuple \d+ of r; give columns"):
        vectors(query, circuit, random_arrivals(query, 40, seed=5))
