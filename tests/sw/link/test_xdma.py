"""The device ``xdma`` over pipes and a mapped file, behind which a simulated circuit answers."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace

import numpy as np
import pytest

import splitjoin
from splitjoin.base.errors import DeviceError
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.golden import GoldenDevice
from splitjoin.engines.registry import device
from splitjoin.link import mapped
from splitjoin.link.xdma import CharacterDevices, XdmaDevice, XdmaTransport
from splitjoin_sim.device import SimDevice

from ...sim import test_deciding as deciding
from ...sim.test_folding import AGGREGATES, STALLS, WINDOWS, tables
from ...sim.test_folding_links import SHAPE as FOLDING
from ...support.conformance import assert_conforms, run
from ...support.dma import FakeCard
from ...support.sampling import at_length
from ...support.scenarios import SCENARIOS, Scenario

#: A circuit that other tests build too.
SHAPE = {"cores": 3, "capacity": 64, "fanin": 3, "lanes": 2, "probes": 4}
STALLED = SimDevice(**SHAPE, stall_in=0.3, stall_out=0.3)
BAND = {scenario.name: scenario for scenario in SCENARIOS}


def card(folder: Path, scenario: Scenario, order: str = "total", **options) -> FakeCard:
    return FakeCard(folder, STALLED, STALLED.configuration(scenario.query(order)), **options)


@pytest.mark.parametrize("order", ["total", "none", "outer(3)", "inner(3)"])
@pytest.mark.parametrize("name", ["band-rows-17", "band-rows-64", at_length("band-range"), "empty-both"])
def test_scenarios_through_character_devices(name: str, order: str, tmp_path: Path) -> None:
    scenario = BAND[name]
    with card(tmp_path, scenario, order, stale=bytes(80) + b"\x02" * 9) as fake:
        board = device(f"xdma:{fake.name}", **SHAPE)
        query = scenario.query(order)
        golden = run(GoldenDevice(cores=3), query, scenario.r, scenario.s)
        for _ in range(2):  # a session resets what the one before left
            assert_conforms(run(board, query, scenario.r, scenario.s, [7, 50, 51]), golden, order)
        assert fake.resets == 2


def test_states_through_character_devices(tmp_path: Path) -> None:
    """A circuit that folds, and one that gives the pairs that decide."""
    for number, (r, s, how) in enumerate((
            (*tables(40, 2), {"on": "abs(r.x - s.a) <= 6", "window": WINDOWS[0], "aggregate": AGGREGATES}),
            (*deciding.tables(40, 2), {"on": "abs(r.x - s.a) <= 3", "window": "RANGE 40", "how": "semi"}))):
        query = splitjoin.Query.make(*map(splitjoin.Schema.from_table, "rs", (r, s)), time="ts", **how)
        (folder := tmp_path / str(number)).mkdir()
        with FakeCard(folder, SimDevice(**FOLDING, **STALLS), SimDevice(**FOLDING).configuration(query)) as fake:
            found = splitjoin.join(r, s, device=device(f"xdma:{fake.name}", **FOLDING), time="ts", **how)
            with pytest.raises(DeviceError, match=r"built for another configuration: .*; build the circuit for this q"):
                splitjoin.join(r, s, device=device(f"xdma:{fake.name}", fold="never", **FOLDING), time="ts", **how)
        assert found.table.equals(splitjoin.join(r, s, device="golden", time="ts", **how).table)


def test_counters_come_from_the_mapped_registers(tmp_path: Path) -> None:
    scenario = BAND["band-rows-17"]
    with card(tmp_path, scenario) as fake:
        query = scenario.query()
        with XdmaDevice(target=fake.name, **SHAPE).open(query) as session:
            session.push(arrivals(query, scenario.r, scenario.s))
            session.flush()
            counters = session.counters()
        assert (counters["tuples_r"], counters["matches"]) == (len(scenario.r), scenario.pairs)


def test_two_sessions_cannot_open_one_card(tmp_path: Path) -> None:
    scenario = BAND["band-rows-17"]
    with card(tmp_path, scenario) as fake:
        board = XdmaDevice(target=fake.name, **SHAPE)
        with board.open(scenario.query()), pytest.raises(DeviceError, match="in use by no other process"):
            board.open(scenario.query())


def test_another_circuit_is_refused(tmp_path: Path) -> None:
    with card(tmp_path, BAND["band-rows-17"]) as fake, pytest.raises(DeviceError, match="built for another config"):
        XdmaDevice(target=fake.name, **SHAPE).open(BAND["band-range"].query())


def test_a_card_that_hangs_is_told(tmp_path: Path) -> None:
    scenario = BAND["band-rows-17"]
    (tmp_path / "a").mkdir()
    with card(tmp_path / "a", scenario, resetting=False) as fake, \
            pytest.raises(DeviceError, match="must end its reset within 2 s, but register control still reads"):
        XdmaDevice(target=fake.name, **SHAPE).open(scenario.query())
    with card(tmp_path, scenario, deaf=True) as fake:
        session = XdmaDevice(target=fake.name, **SHAPE, stalled_after=0.3).open(scenario.query())
        with pytest.raises(DeviceError, match=r"neither took a record nor gave a result for 0.3 s"):
            session.flush()
        session.close()


def test_missing_nodes_and_wrong_options_are_told(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=r"the nodes .*a_h2c_0, .* must exist"):
        XdmaDevice(target=str(tmp_path / "a"), **SHAPE).open(BAND["band-rows-17"].query())
    with pytest.raises(DeviceError, match="offset must be a byte address that is a multiple of 4096, not 4"):
        XdmaDevice(target="a", offset=4)
    with pytest.raises(DeviceError, match="needs the nodes' name, as in 'xdma:/dev/xdma0'"):
        XdmaDevice(target="")
    with pytest.raises(DeviceError, match="stalled_after must be a number of seconds above 0"):
        XdmaDevice(target="a", stalled_after=0)


def test_registers_are_words_of_the_mapped_page(tmp_path: Path) -> None:
    with card(tmp_path, BAND["band-rows-17"]) as fake:
        nodes = CharacterDevices(*(f"{fake.name}_{end}" for end in ("h2c_0", "c2h_0", "user")))
        nodes.registers.write(5, 0x12345678)
        assert nodes.registers.read(5) == 0x12345678
        assert Path(f"{fake.name}_user").read_bytes()[20:24] == bytes.fromhex("78563412")
        nodes.close()
        nodes.close()


class Registers:
    """The registers of a card that is never in reset."""

    def read(self, address: int) -> int:
        return 0

    def write(self, address: int, word: int) -> None:
        pass


@pytest.mark.parametrize("silent", [False, True], ids=["after the reset", "for a record"])
def test_a_card_that_sends_for_ever_is_refused(silent: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its packets fill neither the queue nor a transfer without limit."""
    monkeypatch.setattr(mapped, "STALE_BYTES", 1 << 16)
    config = SimDevice(**SHAPE).configuration(BAND["band-rows-17"].query())
    reads, writes = os.pipe()
    ends = Event()

    def flood() -> None:
        with suppress(BrokenPipeError):
            while not ends.is_set():
                os.write(writes, bytes(1 << 12))

    nodes = SimpleNamespace(registers=Registers(), c2h=reads, h2c=os.open(os.devnull, os.O_WRONLY), close=lambda: None)
    flooding = Thread(target=flood)
    transport = None
    try:
        if silent:
            transport = XdmaTransport(nodes, config)  # type: ignore[arg-type]  # stands in for the nodes
            flooding.start()
            with pytest.raises(DeviceError, match=r"the device must give at most .* for the 1 records that"):
                transport.transfer(np.zeros((1, config.input_record.words), np.uint32), until_end=True)
        else:
            flooding.start()
            with pytest.raises(DeviceError, match="the circuit must be silent after its reset, but sent more than 65"):
                XdmaTransport(nodes, config)  # type: ignore[arg-type]  # likewise
    finally:
        ends.set()
        if transport is not None:
            transport.close()
        os.close(reads)
        flooding.join()
        os.close(writes)
        os.close(nodes.h2c)
