"""The driver's registers, over a circuit that has nothing else."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from splitjoin.circuit.driver import CircuitSession, Transport
from splitjoin.circuit.encode import Words
from splitjoin.circuit.lowering import settings
from splitjoin.circuit.registers import MAGIC, register
from splitjoin.engines.device import ITEM, Items
from splitjoin.engines.registry import device
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Schema


class Registers(Transport):
    """Registers that keep what is written, by their names. Nothing comes back."""

    def __init__(self, **words: int):
        self.words: dict[int, int] = {}
        for name, value in words.items():
            self[name] = value

    def __getitem__(self, name: str) -> int:
        return self.words[register(name).address]

    def __setitem__(self, name: str, value: int) -> None:
        of = register(name)
        for n in range(of.bits // 32):
            self.words[of.address + n] = value >> 32 * n & 0xFFFFFFFF

    def read(self, address: int) -> int:
        return self.words.get(address, 0)

    def write(self, address: int, word: int) -> None:
        self.words[address] = word

    def transfer(self, records: Words, *, until_end: bool) -> Items:
        return np.empty(0, ITEM)


def session(**options: int) -> tuple[CircuitSession, Registers]:
    schema = [Schema.from_arrow(side, pa.schema({"x": pa.int8()})) for side in SIDES]
    query = Query.make(*schema, on="r.x < s.x", window="ROWS 8", order="inner(2)")
    made = device("pysim", **{"cores": 1, "capacity": 16, "core": "scan", **options})
    config = made.configuration(query)  # type: ignore[attr-defined]  # of circuits
    registers = Registers(id=MAGIC, abi=config.abi_hash)
    return CircuitSession(query, made.plan(query), config, settings(query, config), registers), registers  # type: ignore[attr-defined]  # of circuits


def test_a_slice_is_as_long_as_the_precision_and_no_longer_than_a_sub_window() -> None:
    opened, registers = session()
    assert registers["slice"] == 2
    for n, slice_ in ((5, 5), (17, 16), (1, 1)):
        opened.precision(n)
        assert registers["slice"] == slice_


@pytest.mark.parametrize(("cycles", "stalls", "comparisons", "share"), [
    (100, 50, 0, 0.5), (100, 50, 80, 0.4), (100, 5, 80, 0.0), (2**33, 2**32, 0, 0.5), (0, 0, 0, 0.0), (1, 1, 0, 1.0)])
def test_the_share_of_cycles_that_wait_is_that_since_the_last_look(cycles: int, stalls: int, comparisons: int,
                                                                   share: float) -> None:
    """Less those in which both regions compare, with four lanes each."""
    opened, registers = session(lanes=4)
    for look in (1, 2):
        registers["cycles"], registers["input_stalls"] = 7 + look * cycles, 3 + look * stalls
        registers["comparisons"] = 11 + look * comparisons
        found = opened.waiting()
    assert found == pytest.approx(share)
