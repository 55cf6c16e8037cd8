"""Options of simulated devices: refused by name, before any hardware is made."""

from __future__ import annotations

import math
import re
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from splitjoin import DeviceError, Query, Schema, UnsupportedError
from splitjoin.circuit.driver import CircuitSession, Transport
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.wire import Configuration
from splitjoin_sim import PysimDevice, SimDevice

from ..support.scenarios import SCENARIOS

#: Wrong values of options, and what is said of them.
WRONG: list[tuple[str, list[Any], type[Exception], str]] = [
    *((name, values, UnsupportedError, f"^{name} must be .*, not {{}}$") for name, values in {
        "cores": ["4", None, 2.5, True, 0], "capacity": ["64", 64.0, 48], "fanin": [2.0], "fanout": [17],
        "lanes": [3, 1.0], "probes": [0, 17, True], "queue": [48, 8, False], "root_width": [3, True],
        "core": ["tree", None, 1], "clock": ["50", 0, -1.5, math.nan, math.inf, True]}.items()),
    *((name, ["x", None, 1.0, -1, math.nan, math.inf, True], DeviceError,
       f"{name} must be a share of cycles, from 0 to less than 1, not {{}}") for name in ("stall_in", "stall_out")),
    ("seed", ["x", None, 1.5], DeviceError, "seed must be a whole number, not {}"),
    ("patience", ["x", 0, 2.0], DeviceError, "patience must be a number of cycles from 1, or None, not {}")]


@pytest.mark.parametrize(("name", "values", "error", "said"), WRONG)
def test_wrong_options_of_devices(name: str, values: list[Any], error: type[Exception], said: str) -> None:
    for value, device in product(values, (PysimDevice, SimDevice)):
        with pytest.raises(error, match=said.format(re.escape(repr(value)))):
            device(**{name: value})


@pytest.mark.parametrize(("options", "said"), [
    ({"lanes": 4, "capacity": 4}, r"^capacity with 4 lanes must be 8 or more, not 4$"),
    ({"core": "hash", "lanes": 2}, r"^lanes of core hash must be 1, as .*, not 2$"),
    ({"core": "bucket", "probes": 8}, r"^probes of core bucket must be 1, as .*, not 8$")])
def test_options_that_do_not_go_together(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UnsupportedError, match=said):
        SimDevice(**options)
    assert CircuitParameters(lanes=4, capacity=8).capacity == 8


@pytest.mark.parametrize(("core", "index", "must"), [
    ("auto", (), "core must be scan, hash, bucket or ordered, not 'auto'"),
    ("scan", (0,), "index of core scan must be empty, not (0,)"),
    ("hash", (), "index of core hash must be one or more of the tests, not ()"),
    ("hash", (0, 0), "index of core hash must be one or more of the tests, not (0, 0)"),
    ("bucket", (2,), "index of core bucket must be one or two of the tests, not (2,)")])
def test_an_index_goes_by_tests(core: str, index: tuple[int, ...], must: str) -> None:
    with pytest.raises(UnsupportedError, match=f"^{re.escape(must)}$"):
        Configuration(keys_r=(8,), keys_s=(8, 8), tests=((0, 0), (0, 1)), tree=("and", 0, 1), core=core, index=index)


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
