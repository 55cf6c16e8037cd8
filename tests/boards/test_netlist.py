# amaranth: UnusedElaboratable=no
"""Whole tops of boards, from pad to pad, as mapped netlists and as bitstreams that are read back, behind the driver."""

import numpy as np
import pytest
from splitjoin.boards.catalog import find
from splitjoin.boards.flow.bitstream import build
from splitjoin.boards.flow.readback import differences, read_back
from splitjoin.boards.netlist import bitstream_top, icebox, netlist_top
from splitjoin.circuit.driver import CircuitSession
from splitjoin.circuit.lowering import settings
from splitjoin.device.registry import device
from splitjoin.hw.link.linked import LinkedJoin
from splitjoin.link.transport import LinkTransport
from splitjoin.link.uart import SerialChannel
from splitjoin.sim.emulator import Emulator

from ..hw.link.test_endpoint import CONFIG, Echo
from ..support.conformance import assert_conforms
from ..support.linked import BIT, small_join

pytestmark = pytest.mark.long
CIRCUIT = {"cores": 1, "capacity": 16}


def connected(board, config):
    return LinkTransport(lambda: SerialChannel(board.path, 3_000_000), config, answer_within=60)


def assert_echoes(top):
    """Registers and records go through the link, and come back as items."""
    with Emulator(top) as board:
        transport = connected(board, CONFIG)
        transport.write(2, 0xC0DBC0DB)
        sent = np.zeros((300, CONFIG.input_record.words), np.uint32)
        sent[:, 0] = np.arange(300) * 0xDBC0 & 0xFFFC
        end = np.full((1, sent.shape[1]), 2, np.uint32)
        items = np.concatenate([transport.transfer(sent, until_end=False), transport.transfer(end, until_end=True)])
        assert [int(n) & 0xFFFF for n in items[:-1, 0]] == [int(n) & 0xFFFF for n in sent[:, 0]]
        assert transport.read(2) == 0xC0DBC0DB
        assert board.received > 0
        transport.close()


@pytest.mark.parametrize("name", ["ulx3s_25f", "ice40_hx8k_b_evn", "tang_primer_20k"])
def test_the_netlist_of_a_join_has_the_golden_model_s_answer(name):
    board = find(name)
    query, arrivals = small_join(60, 0)
    circuit = device("pysim", **CIRCUIT)
    plan, config = circuit.plan(query), circuit.configuration(query)
    top = netlist_top(board, LinkedJoin(config, clock_hz=BIT * 1_000_000, baud=1_000_000), BIT)
    with Emulator(top) as emulated:
        session = CircuitSession(query, plan, config, settings(query, config, verified=False),
                                 connected(emulated, config))
        session.push(arrivals)
        found = session.flush()
        session.close()
    with device("golden").open(query) as golden:
        golden.push(arrivals)
        expected = golden.flush()
    assert len(expected) > 100
    assert_conforms(found, expected, query.order)


def test_a_packed_bitstream_has_the_routes_and_luts_of_the_routed_design(tmp_path):
    """ECP5: a bitstream cannot be run, but what it holds can be compared with what was routed."""
    build(find("ulx3s_25f"), Echo(), tmp_path)
    routed = (tmp_path / "top.config").read_text()
    assert routed.count("arc: ") > 5_000
    assert differences(routed, read_back(tmp_path / "top.bit", tmp_path)) == []


@pytest.mark.skipif(not icebox(), reason="icebox_vlog and iceunpack read bitstreams back; they are of Debian's package "
                                         "fpga-icestorm, not of PyPI")
def test_a_packed_bitstream_of_the_link_answers_the_driver(tmp_path):
    """iCE40: what the bits do is what the circuit did."""
    board = find("ice40_hx8k_b_evn")
    build(board, Echo(), tmp_path)
    assert_echoes(bitstream_top(board, tmp_path / "top.bin", BIT))
