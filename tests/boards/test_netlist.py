# amaranth: UnusedElaboratable=no
"""Whole tops of boards, from pad to pad, as mapped netlists and as bitstreams that are read back, behind the driver."""

import ctypes

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from splitjoin.base.errors import ToolError
from splitjoin.circuit.driver import CircuitSession
from splitjoin.circuit.lowering import settings
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.registry import device
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.link.transport import LinkTransport
from splitjoin.link.uart import SerialChannel
from splitjoin_boards.catalog import find
from splitjoin_boards.flow.bitstream import build, mapped_netlist
from splitjoin_hw.link.linked import LinkedJoin
from splitjoin_hw.link.uart import UartReceiver, UartTransmitter
from splitjoin_sim.emulated import EmulatedTop, Pins, model
from splitjoin_sim.emulator import Emulator
from tests.testbench.netlists import bitstream_top, icebox, netlist_top
from tests.testbench.readback import differences, read_back

from ..hw.link.test_endpoint import CONFIG, Echo
from ..support.conformance import assert_conforms
from ..support.formula_conditions import CONDITIONS, SCHEMAS, rows
from ..support.linked import BIT, small_join
from ..support.packed_items import item_words

CIRCUIT = {"cores": 1, "capacity": 16}
SMALL = {**CIRCUIT, "small": True, "row_bits": 16}


class Table(wiring.Component):
    """A table in block RAM with first contents: each byte received is sent as what the table has for it, and that is
    replaced by its complement.

    ``bits``: of a word of the memory. The answer is the sum of a word's bytes.
    """

    def __init__(self, bits: int):
        self.bits = bits
        super().__init__({"rx": In(1, init=1), "tx": Out(1, init=1)})

    def contents(self, address: int) -> int:
        return (address * 0x9E3779B1 >> 7 ^ address) % (1 << self.bits)

    @property
    def depth(self) -> int:
        """Words: at least the 256 that a byte can name, which are the last ones."""
        return 256 if self.bits > 16 else max(256, 4096 // self.bits)

    def elaborate(self, platform):
        m = Module()
        m.submodules.receiver = receiver = UartReceiver(BIT, 1)
        m.submodules.transmitter = transmitter = UartTransmitter(BIT, 1)
        m.submodules.table = table = Memory(shape=self.bits, depth=self.depth,
                                            init=[self.contents(n) for n in range(self.depth)],
                                            attrs={"ram_style": "block"})
        read, write = table.read_port(), table.write_port()
        fetched = Signal(2)
        m.d.sync += write.addr.eq(read.addr)  # so that synthesis uses two ports
        m.d.comb += [
            receiver.rx.eq(self.rx), self.tx.eq(transmitter.tx), read.addr.eq(self.depth - 256 + receiver.data),
            write.data.eq(~read.data), write.en.eq(fetched[1]),
            transmitter.i.payload.eq(sum(read.data[n:n + 8] for n in range(0, self.bits, 8))),
            transmitter.i.valid.eq(fetched[1]),
        ]
        m.d.sync += fetched.eq(fetched << 1 | receiver.stb)
        return m

    def answers(self, data: bytes) -> bytes:
        """The bytes that it sends for ``data``."""
        words = [self.contents(n) for n in range(self.depth - 256, self.depth)]
        out = bytearray()
        for name in data:
            out.append(sum(words[name] >> n & 0xFF for n in range(0, self.bits, 8)) & 0xFF)
            words[name] ^= (1 << self.bits) - 1
        return bytes(out)


def assert_answers(top, table):
    """``top`` holds ``table``."""
    lib, room = model(top), ctypes.create_string_buffer(64)
    board = ctypes.c_void_p(lib.em_open(float(BIT)))
    lib.em_run(board, b"", 0, room, len(room), 2000)  # the reset after configuration
    sent, found = bytes(n * 37 & 0xFF for n in range(300)), b""
    for byte in sent:  # one by one, as the transmitter takes a cycle longer than the receiver
        got = lib.em_run(board, bytes((byte,)), 1, room, len(room), 30 * BIT)
        found += room.raw[:got]
    lib.em_close(board)
    assert found == table.answers(sent)


@pytest.mark.long  # synthesis, and a library of cells to compile; `tests/boards/flow` makes bitstreams of the same tops
@pytest.mark.parametrize(("name", "bits"), [
    *(("icebreaker", bits) for bits in (2, 4, 8, 16, 32)),
    *((name, bits) for name in ("ulx3s_12f", "tang_nano_9k") for bits in (1, 2, 4, 8, 9, 18, 36)),
    ("tang_mega_138k_pro_dock", 16), ("tang_mega_138k_pro_dock", 36),
    *(("gatemate_a1_evb", bits) for bits in (1, 2, 5, 10, 20, 40, 72)),
])
def test_the_netlist_of_a_board_has_pads_clock_and_first_contents_of_memories(name, bits):
    """Each way in which families' block RAMs divide their contents into words."""
    assert_answers(netlist_top(find(name), Table(bits), BIT), Table(bits))


def test_a_pin_that_is_inout_is_refused():
    """Verilator would make it a constant: the circuit would never see a clock, and send nothing."""
    text = "module top(clk, rx, tx);\n  inout clk;\n  input rx;\n  output tx;\nendmodule"
    top = EmulatedTop(("inout",), lambda: (text, Pins("top", "clk", "rx", "tx", None)), BIT)
    with pytest.raises(ToolError, match=r"^the pins of an emulated circuit must be inputs or outputs, but clk"):
        model(top)


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
        words = item_words(CONFIG.item_record, items)
        assert [int(n) & 0xFFFF for n in words[:-1, 0]] == [int(n) & 0xFFFF for n in sent[:, 0]]
        assert transport.read(2) == 0xC0DBC0DB
        assert board.received > 0
        transport.close()


def linked_join(circuit, **join):
    """A small join, its arrivals, plan, configuration, and circuit with UART."""
    return with_circuit(*small_join(60, 0, **join), circuit)


def with_circuit(query, arrivals, circuit):
    """A join, its arrivals, plan, configuration, and circuit with UART."""
    device_of = device("pysim", **circuit)
    config = device_of.configuration(query)
    return query, arrivals, device_of.plan(query), config, LinkedJoin(config, clock_hz=BIT * 1_000_000, baud=1_000_000)


def assert_joins(top, query, arrivals, plan, config):
    """The driver gets the golden model's answer from ``top``. Returns it, with the session's counters."""
    with Emulator(top) as emulated:
        session = CircuitSession(query, plan, config, settings(query, config, verified=False),
                                 connected(emulated, config))
        session.push(arrivals)
        found, counters = session.flush(), session.counters()
        session.close()
    with device("golden").open(query) as golden:
        golden.push(arrivals)
        expected = golden.flush()
    assert len(expected) > 100
    assert_conforms(found, expected, query.order)
    return found, counters


@pytest.mark.long
@pytest.mark.parametrize(("name", "circuit"), [
    ("ulx3s_25f", CIRCUIT), ("ice40_hx8k_b_evn", CIRCUIT), ("icebreaker", SMALL), ("ulx3s_12f", SMALL),
    ("tang_primer_20k", CIRCUIT), ("tang_nano_9k", SMALL),
    ("tang_mega_138k_pro_dock", CIRCUIT), ("tang_mega_138k_pro_dock", SMALL), ("gatemate_a1_evb", SMALL),
])
def test_the_netlist_of_a_join_has_the_golden_model_s_answer(name, circuit):
    *of, linked = linked_join(circuit)
    assert_joins(netlist_top(find(name), linked, BIT), *of)


@pytest.mark.long
def test_the_netlist_of_a_formula_multiplies_in_dsp_blocks():
    """The products of two lanes and two probes are those of the cells."""
    *of, config, linked = linked_join({**CIRCUIT, "lanes": 2, "probes": 2}, on="r.x * s.y + 3 * r.x > 70 - s.y * s.y")
    assert config.formula is not None
    assert mapped_netlist(find("ulx3s_25f"), linked).read_text().count('"type": "MULT18X18D"') >= 4
    assert_joins(netlist_top(find("ulx3s_25f"), linked, BIT), *of, config)


@pytest.mark.long
def test_the_netlist_of_a_formula_sends_its_answer_alone():
    """No other pair leaves the cores, which verify the condition."""
    query = Query.make(*(Schema.from_arrow(side, SCHEMAS[side]) for side in "rs"),
                       on=CONDITIONS["product of distances"], window="ROWS 14", order="total")
    pushed = arrivals(query, rows("r", 40, 7), rows("s", 40, 7))
    *of, config, linked = with_circuit(query, pushed, CIRCUIT | {"verify": "core"})
    assert config.formula is not None
    found, counters = assert_joins(netlist_top(find("ulx3s_85f"), linked, BIT), *of, config)
    assert 40 < np.count_nonzero(found["kind"] == 0) == counters["matches"] < 2 * 40 * 14


@pytest.mark.long
def test_a_packed_bitstream_has_the_routes_and_luts_of_the_routed_design(tmp_path):
    """ECP5: a bitstream cannot be run, but what it holds can be compared with what was routed."""
    build(find("ulx3s_25f"), Echo(), tmp_path)
    routed = (tmp_path / "top.config").read_text()
    assert routed.count("arc: ") > 5_000
    assert differences(routed, read_back(tmp_path / "top.bit", tmp_path)) == []


needs_icebox = pytest.mark.skipif(not icebox(), reason="icebox_vlog and iceunpack read bitstreams back; they are of "
                                                       "Debian's package fpga-icestorm, not of PyPI")


@needs_icebox
@pytest.mark.long
@pytest.mark.parametrize("bits", [2, 4, 8, 16])
def test_a_packed_bitstream_has_first_contents_of_memories(bits, tmp_path):
    build(find("icebreaker"), Table(bits), tmp_path)
    assert_answers(bitstream_top(find("icebreaker"), tmp_path / "top.bin", BIT), Table(bits))


@needs_icebox
@pytest.mark.long
def test_a_packed_bitstream_of_the_link_answers_the_driver(tmp_path):
    """iCE40: what the bits do is what the circuit did."""
    board = find("ice40_hx8k_b_evn")
    build(board, Echo(), tmp_path)
    assert_echoes(bitstream_top(board, tmp_path / "top.bin", BIT))


@needs_icebox
@pytest.mark.long
@pytest.mark.parametrize("name", ["ice40_hx8k_b_evn", "icebreaker"])
def test_a_packed_bitstream_of_a_small_join_has_the_golden_model_s_answer(name, tmp_path):
    *of, linked = linked_join(SMALL)
    build(find(name), linked, tmp_path)
    assert_joins(bitstream_top(find(name), tmp_path / "top.bin", BIT), *of)
