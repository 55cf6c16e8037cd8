"""The device ``zynq`` over nodes that are files, and a model of the AXI DMA with a simulated circuit behind it."""

from __future__ import annotations

import multiprocessing
import re
import time
from pathlib import Path
from typing import Any

import pytest

from splitjoin.base.errors import DeviceError
from splitjoin.engines.golden import GoldenDevice
from splitjoin.engines.registry import device
from splitjoin.link.mapped import MappedRegisters
from splitjoin.link.zynq import ZynqDevice

from ...support.conformance import assert_conforms, run
from ...support.page_examples import DOCS
from ...support.zynq import FakeZynq
from .test_xdma import BAND, SHAPE, STALLED

SCENARIO = BAND["band-rows-17"]


def board(monkeypatch: pytest.MonkeyPatch, folder: Path, order: str = "total", **options: Any) -> FakeZynq:
    folder.mkdir(exist_ok=True)
    return FakeZynq(monkeypatch, folder, STALLED, STALLED.configuration(SCENARIO.query(order)), **options)


@pytest.mark.parametrize("order", ["total", "none", "outer(3)", "inner(3)"])
@pytest.mark.parametrize("name", ["band-rows-17", "empty-both"])
def test_scenarios_through_the_dma_engine(name: str, order: str, tmp_path: Path,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = BAND[name]
    query = scenario.query(order)
    fake = FakeZynq(monkeypatch, tmp_path, STALLED, STALLED.configuration(query), stale=bytes(160), size=3 << 12)
    with fake:
        zynq = device(fake.name, **SHAPE, **fake.options)
        golden = run(GoldenDevice(cores=3), query, scenario.r, scenario.s)
        for _ in range(2):  # a session resets what the one before left
            assert_conforms(run(zynq, query, scenario.r, scenario.s, [7, 50, 51]), golden, order)
        assert fake.resets == 2 and fake.packets > 2


class PausedTime:
    """The module ``time`` as a driver sees it that is paused for a second whenever it sleeps."""

    def __init__(self) -> None:
        self._paused = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self._paused

    def sleep(self, seconds: float) -> None:
        self._paused += 1


def test_items_of_an_earlier_session_are_dropped_by_a_driver_that_is_paused(tmp_path: Path,
                                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    query = SCENARIO.query()
    for size in range(3, 7):  # the engine needs another number of looks for each
        folder = tmp_path / str(size)
        folder.mkdir()
        with FakeZynq(monkeypatch, folder, STALLED, STALLED.configuration(query), stale=bytes(160),
                      size=size << 12) as fake:
            zynq = device(fake.name, **SHAPE, **fake.options)
            with monkeypatch.context() as paused:
                paused.setattr("splitjoin.link.zynq.time", PausedTime())
                session = zynq.open(query)
            with session:
                assert fake.packets == 1


class DriverTime:
    """The module ``time`` as the driver sees it: adds up the seconds that the driver asks to sleep.

    What the clock shows would include the time in which a busy machine runs something else.
    """

    monotonic = staticmethod(time.monotonic)

    def __init__(self) -> None:
        self.slept = 0.0

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        time.sleep(seconds)


def failing(monkeypatch: pytest.MonkeyPatch, folder: Path, says: str, **options: Any) -> None:
    """Open and flush a session, which must raise after two seconds of waiting at most, and a little."""
    given = {name: options.pop(name) for name in ("length_bits", "stalled_after") if name in options}
    waits = DriverTime()
    for module in ("zynq", "mapped"):
        monkeypatch.setattr(f"splitjoin.link.{module}.time", waits)
    with board(monkeypatch, folder, **options) as fake:
        zynq = device(fake.name, **SHAPE, **fake.options, **given)
        with pytest.raises(DeviceError, match=says), zynq.open(SCENARIO.query()) as session:
            session.flush()
        assert waits.slept < 2.9


def test_a_board_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for n, (options, says) in enumerate((
            ({"ends": False}, "must end its reset within 2 s, but register control still reads 00000001"),
            ({"starts": False}, "the DMA engine must end its reset within 2 s, but its control register still reads"),
            ({"status": 8}, "must be built without scatter gather"),
            ({"status": 1}, "the DMA engine must start within 2 s, but its status still reads 00000001"),
            ({"fails": 0x40}, r"stopped sending: it reports an address that nothing answers \(status 00000041\)"),
            ({"cut": 1}, r"must be 1 to 256 items of 16 bytes, but the DMA engine received \d+ bytes"),
            ({"deaf": True, "stalled_after": 0.2}, r"neither took records nor gave a result for 0.2 s \(0 of 1 rec"),
            ({"size": 4096}, "a packet of 4096 bytes and a record of 32 must fit into the buffer of 4096 bytes"),
            ({"length_bits": 12}, "into transfers of 4095; give u-dma-buf a larger buffer, or"))):
        failing(monkeypatch, tmp_path / str(n), says, **options)


def test_another_circuit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with board(monkeypatch, tmp_path) as fake, pytest.raises(DeviceError, match="built for another config"):
        device(fake.name, **SHAPE, **fake.options).open(BAND["band-range"].query())


def _second(name: str, options: dict[str, Any], answer: Any) -> None:
    try:
        device(name, **SHAPE, **options).open(SCENARIO.query())
    except DeviceError as error:
        answer.put(str(error))


def test_two_sessions_and_two_processes_cannot_open_one_board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with board(monkeypatch, tmp_path) as fake:
        zynq = device(fake.name, **SHAPE, **fake.options)
        with zynq.open(SCENARIO.query()):
            with pytest.raises(DeviceError, match="in use by no other process"):
                zynq.open(SCENARIO.query())
            spawned = multiprocessing.get_context("spawn")
            answer = spawned.Queue()
            other = spawned.Process(target=_second, args=(fake.name, fake.options, answer))
            other.start()
            assert "in use by no other process" in answer.get(timeout=600)
            other.join()
        zynq.open(SCENARIO.query()).close()  # and when it is free, again


def test_missing_nodes_and_wrong_options_are_told(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=r"the nodes /dev/none .*, /dev/uio0x and .* must exist"):
        ZynqDevice(target="none", dma="/dev/uio0x", **SHAPE).open(SCENARIO.query())
    with pytest.raises(DeviceError, match="needs the buffer's name, as in 'zynq:udmabuf0', not ''"):
        ZynqDevice(target="")
    with pytest.raises(DeviceError, match="length_bits must be from 8 to 26, not 27"):
        ZynqDevice(target="a", length_bits=27)
    with pytest.raises(DeviceError, match="stalled_after must be a number of seconds above 0"):
        ZynqDevice(target="a", stalled_after=0)


def test_registers_are_words_of_the_mapped_page(tmp_path: Path) -> None:
    node = tmp_path / "uio0"
    node.write_bytes(bytes(4096))
    registers = MappedRegisters(str(node))
    registers.write(5, 0x12345678)
    assert registers.read(5) == 0x12345678
    assert node.read_bytes()[20:24] == bytes.fromhex("78563412")
    with pytest.raises(OSError, match="unavailable"):
        MappedRegisters(str(node))
    registers.close()
    registers.close()
    MappedRegisters(str(node)).close()


def test_the_examples_of_the_page_make_devices() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "axi.md").read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)
    assert {names[name].name for name in ("board", "other", "zynq")} == {"xdma", "zynq"}
