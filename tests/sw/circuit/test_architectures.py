"""The table of architectures, and the parameters that choose one."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from splitjoin.base.errors import OrderError, UnsupportedError
from splitjoin.circuit import architectures
from splitjoin.circuit.architectures import ARCHITECTURES
from splitjoin.circuit.architectures.small import Small
from splitjoin.circuit.parameters import BuildParameters
from splitjoin_hw.top import Top
from splitjoin_sim.pysim import PysimDevice

from ...support.scenarios import SCENARIOS

FOLDER = Path(architectures.__file__).parent


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_folder_is_an_architecture(name: str) -> None:
    one = ARCHITECTURES[name]
    assert Path(importlib.import_module(type(one).__module__).__file__ or "").parent == FOLDER / name.replace("-", "_")
    module, cls = one.component
    assert issubclass(getattr(importlib.import_module(module), cls), Top)
    assert callable(one.predictions.parts)
    assert all(callable(getattr(one.predictions, of)) for of in ("cycles_a_tuple", "latency_cycles"))


def test_every_folder_has_one() -> None:
    assert {path.parent.name for path in FOLDER.glob("*/__init__.py")} == {
        name.replace("-", "_") for name in ARCHITECTURES}


@pytest.mark.parametrize(("given", "architecture", "cores"), [
    ({}, "splitjoin", 4), ({"architecture": "splitjoin"}, "splitjoin", 4), ({"small": False}, "splitjoin", 4),
    ({"small": True}, "small", 1), ({"architecture": "small"}, "small", 1),
    ({"small": True, "architecture": "small"}, "small", 1)])
def test_small_and_the_architecture_say_the_same(given: dict[str, Any], architecture: str, cores: int) -> None:
    found = BuildParameters(**given)
    assert (found.architecture, found.small, found.cores) == (architecture, architecture == "small", cores)
    assert found == BuildParameters(**{"small": True} if architecture == "small" else {})


@pytest.mark.parametrize(("given", "message"), [
    ({"architecture": "split"}, f"architecture must be one of {', '.join(ARCHITECTURES)}, not 'split'"),
    ({"architecture": 3}, f"architecture must be one of {', '.join(ARCHITECTURES)}, not 3"),
    ({"architecture": []}, f"architecture must be one of {', '.join(ARCHITECTURES)}, not []"),
    ({"architecture": "splitjoin", "small": True}, "small with architecture splitjoin must be False, not True"),
    ({"architecture": "small", "small": False}, "small with architecture small must be True, not False"),
    ({"architecture": "small", "lanes": 2}, "lanes of a small circuit must be 1, not 2")])
def test_wrong_architectures(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedError) as error:
        BuildParameters(**given)
    assert str(error.value) == message


def test_the_abi_hash_says_no_more_than_small() -> None:
    """Boards that were built before there were architectures are still found."""
    config = PysimDevice(small=True, capacity=64).configuration(SCENARIOS[0].query())
    assert "architecture" not in config.describe()["configuration"]
    assert config.abi_hash != replace(config, small=False, architecture="splitjoin").abi_hash


def test_an_order_that_an_architecture_does_not_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Small, "orders", ("none", "inner"))
    device = PysimDevice(small=True, capacity=64)
    with pytest.raises(OrderError, match="a small circuit keeps the order none or inner, not outer"):
        device.open(SCENARIOS[0].query("outer(2)"))
    device.open(SCENARIOS[0].query("none")).close()
