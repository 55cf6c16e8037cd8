"""Options of simulated devices: refused by name, before any hardware is made."""

from __future__ import annotations

import math
import re
from typing import Any

import pyarrow as pa
import pytest

from splitjoin import DeviceError, Query, Schema, UnsupportedError
from splitjoin.circuit.driver import CircuitSession, Transport
from splitjoin.circuit.wire import Configuration
from splitjoin_sim import PysimDevice, SimDevice

from ..support.scenarios import SCENARIOS

DEVICES = pytest.mark.parametrize("device", [PysimDevice, SimDevice])


@DEVICES
@pytest.mark.parametrize("options", [
    {"cores": "4"}, {"cores": None}, {"cores": 2.5}, {"cores": True}, {"cores": 0}, {"capacity": "64"},
    {"capacity": 64.0}, {"capacity": 48}, {"fanin": 2.0}, {"fanout": 17}, {"lanes": 3}, {"lanes": 1.0}, {"probes": 0},
    {"probes": 17}, {"probes": True}, {"queue": 48}, {"queue": 8}, {"queue": False},
    {"root_width": 3}, {"root_width": True}, {"core": "tree"}, {"core": None}, {"core": 1}], ids=str)
def test_device_wrong_parameters(device: Any, options: dict[str, Any]) -> None:
    (name, value), = options.items()
    with pytest.raises(UnsupportedError, match=f"^{name} must be .*, not {value!r}$"):
        device(**options)


@DEVICES
def test_lanes_need_two_rows_each(device: Any) -> None:
    with pytest.raises(UnsupportedError, match=r"^capacity with 4 lanes must be 8 or more, not 4$"):
        device(lanes=4, capacity=4)


@DEVICES
@pytest.mark.parametrize(("core", "name", "value"), [("hash", "lanes", 2), ("bucket", "probes", 8)])
def test_an_index_has_one_lane_and_one_probe(device: Any, core: str, name: str, value: int) -> None:
    with pytest.raises(UnsupportedError, match=rf"^{name} of core {core} must be 1, as .*, not {value}$"):
        device(core=core, **{name: value})


@pytest.mark.parametrize(("core", "index", "must"), [
    ("auto", (), "core must be scan, hash, bucket or ordered, not 'auto'"),
    ("scan", (0,), "index of core scan must be empty, not (0,)"),
    ("hash", (), "index of core hash must be one or more of the tests, not ()"),
    ("hash", (0, 0), "index of core hash must be one or more of the tests, not (0, 0)"),
    ("bucket", (2,), "index of core bucket must be one or two of the tests, not (2,)")])
def test_an_index_goes_by_tests(core: str, index: tuple[int, ...], must: str) -> None:
    with pytest.raises(UnsupportedError, match=f"^{re.escape(must)}$"):
        Configuration(keys_r=(8,), keys_s=(8, 8), tests=((0, 0), (0, 1)), tree=("and", 0, 1), core=core, index=index)


@DEVICES
@pytest.mark.parametrize("name", ["stall_in", "stall_out"])
@pytest.mark.parametrize("value", ["x", None, 1.0, -1, math.nan, math.inf, True])
def test_device_wrong_stalls(device: Any, name: str, value: Any) -> None:
    with pytest.raises(DeviceError, match=f"{name} must be a share of cycles, from 0 to less than 1, not {value!r}"):
        device(**{name: value})


@DEVICES
@pytest.mark.parametrize("value", ["x", None, 1.5])
def test_device_wrong_seed(device: Any, value: Any) -> None:
    with pytest.raises(DeviceError, match=f"seed must be a whole number, not {value!r}"):
        device(seed=value)


@DEVICES
@pytest.mark.parametrize("value", ["x", 0, 2.0])
def test_device_wrong_patience(device: Any, value: Any) -> None:
    with pytest.raises(DeviceError, match=f"patience must be a number of cycles from 1, or None, not {value!r}"):
        device(patience=value)


def test_configuration_takes_ints_only() -> None:
    for keys, time_bits in (((8.0,), 0), ((8,), 32.0), ((8,), 1), ((True,), 0)):
        with pytest.raises(UnsupportedError):
            Configuration(keys_r=keys, time_bits=time_bits,  # type: ignore[arg-type]  # wrong on purpose
                          keys_s=(8,), tests=((0, 0),), tree=0)


def test_a_session_that_does_not_start_closes_its_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Transport] = []

    class Mute(Transport):
        def read(self, address: int) -> int:
            return 0

        def write(self, address: int, word: int) -> None:
            raise AssertionError

        def transfer(self, records: Any, *, until_end: bool) -> Any:
            raise AssertionError

        def close(self) -> None:
            closed.append(self)

    monkeypatch.setattr(PysimDevice, "_connect", lambda *_: Mute())
    schema = pa.schema([("x", pa.int32())])
    query = Query.make(Schema.from_arrow("r", schema), Schema.from_arrow("s", schema), on="r.x = s.x", window="ROWS 3")
    with pytest.raises(DeviceError, match="must answer with ID"):
        PysimDevice().open(query)
    assert len(closed) == 1
    assert CircuitSession.close  # which closes it otherwise


def test_a_closed_simulation_is_told() -> None:
    band = next(case for case in SCENARIOS if case.name == "band-rows-17")
    # The circuit of `test_conformance`, which is compiled in any case.
    session = SimDevice(cores=3, capacity=64, fanin=3, lanes=2, probes=4).open(band.query("total"))
    assert session.counters()["matches"] == 0
    session.close()
    session.close()
    for act in (session.counters, lambda: session.mask({0}), session.flush):
        with pytest.raises(DeviceError, match="the simulated circuit is closed"):
            act()
