"""Searches of the tuner cost the same designs again and again; here each is costed once."""

from functools import lru_cache

import pytest

from splitjoin.circuit.cost import circuit_cost
from splitjoin.circuit.tuner import search

_circuit_cost = lru_cache(maxsize=None)(circuit_cost)


@pytest.fixture(autouse=True)
def each_design_is_costed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "circuit_cost", _circuit_cost)
