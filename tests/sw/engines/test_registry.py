"""Options of devices: every call takes them alike, and refuses alike what a device does not have."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import splitjoin
from splitjoin import DeviceError, InputError
from splitjoin.engines.golden import GoldenDevice

R, S = pa.table({"x": [1, 2, 3, 4]}), pa.table({"a": [1, 2, 3, 4]})
SQL = "SELECT r.x, s.a FROM r JOIN s ON r.x >= s.a"


def joined(**device: Any) -> Any:
    return splitjoin.join(R, S, on="r.x >= s.a", window="ROWS 4", **device).to_pydict()


def selected(**device: Any) -> Any:
    return splitjoin.sql(SQL, r=R, s=S, window="ROWS 4", **device).to_pydict()


def opened(**device: Any) -> Any:
    query = splitjoin.query(R.schema, S.schema, on="r.x >= s.a", window="ROWS 4")
    with splitjoin.open(query, **device) as session:
        return fed(session)


def moved(**device: Any) -> Any:
    query = splitjoin.query(R.schema, S.schema, on="r.x >= s.a", window="ROWS 4")
    with splitjoin.open(query, "golden") as session:
        session.restart(**device)
        return fed(session)


def fed(session: Any) -> Any:
    for n in range(4):
        session.push_r(R.slice(n, 1))
        session.push_s(S.slice(n, 1))
    return session.flush().to_pydict()


def opened_async(**device: Any) -> Any:
    async def run() -> Any:
        query = splitjoin.query(R.schema, S.schema, on="r.x >= s.a", window="ROWS 4")
        async with splitjoin.open_async(query, **device) as session:
            for n in range(4):
                await session.push_r(R.slice(n, 1))
                await session.push_s(S.slice(n, 1))
            return (await session.flush()).to_pydict()

    return asyncio.run(run())


CALLS = pytest.mark.parametrize("call", [joined, selected, opened, opened_async, moved])
Call = Callable[..., Any]
MASKED = {"cores": 2, "masked": [1]}


@CALLS
def test_options_by_their_names_in_a_mapping_and_in_both(call: Call) -> None:
    want = joined(device=GoldenDevice(cores=2, masked=[1]))
    assert want != joined(device="golden")
    assert call(device="golden", **MASKED) == want
    assert call(device="golden", device_options=MASKED) == want
    assert call(device="golden", device_options={"cores": 2}, masked=[1]) == want
    assert call(device=GoldenDevice(cores=2, masked=[1])) == want


@CALLS
def test_what_is_no_option(call: Call) -> None:
    with pytest.raises(DeviceError, match=r"^the option 'cores' of the device is given twice, in device_options and by "
                                          r"its name; give it once$"):
        call(device="golden", device_options={"cores": 2}, cores=2)
    with pytest.raises(DeviceError, match=r"^options are for a device given by name, but came with a GoldenDevice: "
                                          r"cores; give a Device its parameters when making it$"):
        call(device=GoldenDevice(), device_options={"cores": 2})
    with pytest.raises(DeviceError, match=r"^device_options must be a mapping, such as {'cores': 8}, not 8$"):
        call(device="golden", device_options=8)
    with pytest.raises(DeviceError, match=r"^the device 'golden' has no option 'lanes'; its options are cores, "):
        call(device="golden", device_options={"lanes": 2})
    text = ("'lanes' is given, but the statement has no such table; its tables are r and s, and the device 'golden' "
            "has the options cores, masked") if call is selected else "the device 'golden' has no option 'lanes'"
    with pytest.raises(InputError if call is selected else DeviceError, match=f"^{text}"):
        call(device="golden", lanes=2)
    if call is joined:
        with pytest.raises(DeviceError, match=r"^the device 'golden' has no option 'zork', nor has join such an "
                                              r"argument; its options are cores"):
            call(device="golden", zork=2)
        with pytest.raises(DeviceError, match=r"nor has join such an argument \(did you mean 'suffixes'\?\)"):
            call(device="golden", suffix=2)


@pytest.mark.parametrize(("call", "meant"), [
    (joined, "window"), (selected, "window"), (joined, "select"), (opened, "select"), (opened, "lateness"),
    (opened_async, "lateness"), (moved, "device_options"), (joined, "cores"), (selected, "cores"), (moved, "cores")])
def test_a_keyword_that_is_nearly_an_argument_or_an_option(call: Call, meant: str) -> None:
    wrong = meant[:-1] if meant.endswith("s") else f"{meant}s"
    given: dict[str, Any] = {wrong: 3, "device": "golden"} if call is not moved or meant == "cores" else {wrong: 3}
    with pytest.raises((DeviceError, InputError), match=rf"'{wrong}'.* \(did you mean '{meant}'\?\)"):
        call(**given)


@pytest.mark.parametrize("call", [joined, opened])
def test_a_keyword_that_other_libraries_have(call: Call) -> None:
    with pytest.raises(DeviceError, match=r"nor has \w+ such an argument \(did you mean 'select'\?\)"):
        call(columns=["x"], device="golden")
    with pytest.raises(DeviceError, match=r"no option 'kind', nor has join such an argument \(did you mean 'how'\?\)"):
        splitjoin.join(R, S, on="r.x = s.a", window="ROWS 4", kind="left")  # type: ignore[call-overload]  # wrong


def test_a_table_may_have_the_name_of_an_option() -> None:
    text = "SELECT cores.x, s.a FROM cores JOIN s ON cores.x >= s.a"
    found = splitjoin.sql(text, cores=R, s=S, window="ROWS 4", device="golden", device_options=MASKED)
    assert found.to_pydict() == joined(device="golden", **MASKED)


def test_options_without_rows() -> None:
    with pytest.raises(InputError, match="a device runs rows, but schemas were given"):
        splitjoin.sql(SQL, r=R.schema, s=S.schema, window="ROWS 4", threads=2)
