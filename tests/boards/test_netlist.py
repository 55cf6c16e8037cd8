# amaranth: UnusedElaboratable=no
"""Whole tops of boards, from pad to pad, as mapped netlists and as bitstreams that are read back, behind the driver."""

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

from ..hw.link.test_endpoint import Echo
from ..support.conformance import assert_conforms
from ..support.linked import BIT, small_join

pytestmark = pytest.mark.long
CIRCUIT = {"cores": 1, "capacity": 16}
SMALL = {**CIRCUIT, "small": True, "row_bits": 8}


def connected(board, config):
    return LinkTransport(lambda: SerialChannel(board.path, 3_000_000), config, answer_within=60)


def linked(options, tuples):
    """A join behind the link: its query, tuples, plan, configuration and circuit."""
    query, arrivals = small_join(tuples, 0)
    circuit = device("pysim", **options)
    plan, config = circuit.plan(query), circuit.configuration(query)
    return query, arrivals, plan, config, LinkedJoin(config, clock_hz=BIT * 1_000_000, baud=1_000_000)


def assert_joins(top, query, arrivals, plan, config):
    """The top answers the driver of boards as the golden model answers."""
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


@pytest.mark.parametrize(("name", "options"), [
    ("ulx3s_25f", CIRCUIT), ("ice40_hx8k_b_evn", CIRCUIT), ("tang_primer_20k", CIRCUIT), ("icebreaker", SMALL),
    ("tang_nano_9k", SMALL), ("ulx3s_12f", SMALL)])
def test_the_netlist_of_a_join_has_the_golden_model_s_answer(name, options):
    board = find(name)
    # More tuples than row ids of eight bits count, on small circuits, which are simulated faster.
    query, arrivals, plan, config, circuit = linked(options, 300 if options is SMALL else 60)
    assert_joins(netlist_top(board, circuit, BIT), query, arrivals, plan, config)


def test_a_packed_bitstream_has_the_routes_and_luts_of_the_routed_design(tmp_path):
    """ECP5: a bitstream cannot be run, but what it holds can be compared with what was routed."""
    build(find("ulx3s_25f"), Echo(), tmp_path)
    routed = (tmp_path / "top.config").read_text()
    assert routed.count("arc: ") > 5_000
    assert differences(routed, read_back(tmp_path / "top.bit", tmp_path)) == []


@pytest.mark.skipif(not icebox(), reason="icebox_vlog and iceunpack read bitstreams back; they are of Debian's package "
                                         "fpga-icestorm, not of PyPI")
@pytest.mark.parametrize("name", ["icebreaker", "ice40_hx8k_b_evn"])
def test_a_packed_bitstream_of_a_join_has_the_golden_model_s_answer(name, tmp_path):
    """iCE40: what the bits do is what the circuit did."""
    query, arrivals, plan, config, circuit = linked(SMALL, 300)
    board = find(name)
    build(board, circuit, tmp_path)
    assert_joins(bitstream_top(board, tmp_path / "top.bin", BIT), query, arrivals, plan, config)
