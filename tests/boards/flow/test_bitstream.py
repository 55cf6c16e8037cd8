"""Bitstreams of board tops, from the tools of PyPI alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from splitjoin.base.errors import CapacityError, DeviceError, InputError, ToolError
from splitjoin_boards.catalog import CATALOG, find
from splitjoin_boards.flow.bitstream import build, utilization
from splitjoin_boards.flow.tools import NEXTPNR_ICE40, YOSYS
from tests.testbench.readback import differences, read_back

from ...support.sampling import at_length


class Delay(wiring.Component):
    """A circuit whose input at ``rx`` leaves at ``tx`` some cycles later."""

    def __init__(self, cycles: int):
        self._cycles = cycles
        super().__init__({"rx": In(1, init=1), "tx": Out(1, init=1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        rx, line = Signal(init=1), Signal(self._cycles)
        m.submodules.synchronizer = FFSynchronizer(self.rx, rx, init=1)
        m.d.sync += line.eq(line << 1 | rx)
        m.d.comb += self.tx.eq(line[-1])
        return m


class Store(wiring.Component):
    """Block RAM with 256 words of ``width`` bits, which fills from ``rx``; ``tx`` is the parity of a word."""

    def __init__(self, width: int):
        self._width = width
        super().__init__({"rx": In(1, init=1), "tx": Out(1, init=1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        address, word = Signal(8), Signal(self._width)
        m.submodules.store = store = Memory(shape=self._width, depth=256, init=[])
        read, write = store.read_port(), store.write_port()
        m.d.sync += [address.eq(address + 1), word.eq(Cat(self.rx, word))]
        m.d.comb += [read.en.eq(1), read.addr.eq(address), write.addr.eq(~address), write.en.eq(1),
                     write.data.eq(word), self.tx.eq(read.data.xor())]
        return m


@pytest.mark.parametrize("name", ["ulx3s_25f", *map(at_length, (
    "icebreaker", "ulx3s_85f", "tang_nano_9k", "tang_primer_20k", "tang_mega_138k_pro_dock", "gatemate_a1_evb"))])
def test_a_board_gets_a_bitstream_and_a_report(name: str, tmp_path: Path) -> None:
    board = find(name)
    report = build(board, Delay(5), tmp_path / "out")
    assert (tmp_path / "out" / f"top.{board.bitstream}").stat().st_size > 10_000
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count("<rect ") >= 2 and "Critical path" in page
    assert json.loads((tmp_path / "out" / "report.json").read_text())["board"] == name
    assert (tmp_path / "out" / "report.txt").read_text() == f"{report}\n"
    ((reached, demanded),) = report.mhz.values()
    assert demanded == pytest.approx(board.clock_hz / 1e6, rel=0.01)
    assert reached >= demanded
    cells = json.loads((tmp_path / "out" / "top.json").read_text())["modules"]["top"]["cells"].values()
    flip_flops = [cell for cell in cells if cell["type"].startswith(("SB_DFF", "TRELLIS_FF", "DFF", "CC_DFF"))]
    assert len(flip_flops) >= 5 + 2  # those of the line and of the synchronizer
    if board.family == "ecp5":  # every route and LUT is in the packed bitstream, and nothing else
        routed = (tmp_path / "out" / "top.config").read_text()
        assert routed.count("arc: ") > 30
        assert differences(routed, read_back(tmp_path / "out" / "top.bit", tmp_path)) == []


def test_a_route_that_differs_is_found() -> None:
    routed = ".tile R2C3:PLC2\narc: A0 V00B0000\nword: SLICEA.K0.INIT 0110011001100110\narc: F0 F0_SLICE\n"
    assert differences(routed, routed.replace("arc: F0 F0_SLICE\n", "")) == []
    assert differences(routed, routed.replace("V00B", "V01B")) == ["R2C3:PLC2 arc: A0 V00B0000",
                                                                   "R2C3:PLC2 arc: A0 V01B0000"]
    assert len(differences(routed, routed.replace("INIT 01", "INIT 10"))) == 2
    assert len(differences(routed, "")) == 2


def test_too_large_says_by_how_much(tmp_path: Path) -> None:
    with pytest.raises(CapacityError, match=r"33 ICESTORM_RAM, 3 more than the 30 there are; use fewer cores"):
        build(find("icebreaker"), Store(33 * 16), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_missing_program_and_a_file_in_the_way(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="must be a folder"):
        build(find("icebreaker"), Delay(5), tmp_path / "file")
    monkeypatch.setenv(NEXTPNR_ICE40.variable, "no-such-program")
    with pytest.raises(ToolError, match="must name a program"):
        build(find("icebreaker"), Delay(5), tmp_path / "out")


def test_a_tool_has_a_time_limit(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"yosys must end within 0\.01 s"):
        YOSYS.run(["-V"], tmp_path, 0.01)


def test_the_log_names_resources() -> None:
    log = "Info: Device utilisation:\nInfo: \t         ICESTORM_LC:    5313/   5280   100%\nInfo: x: 1\n"
    assert utilization(log) == {"ICESTORM_LC": (5313, 5280)}
    assert utilization("") == {}


def test_the_catalog_knows_its_boards() -> None:
    for name, board in CATALOG.items():
        assert name == board.name
        assert board.link in board.platform().resources, name
    with pytest.raises(DeviceError, match=r"no bitstream can be built for a board 'nexys'.*icebreaker"):
        find("nexys")
