# amaranth: UnusedElaboratable=no
"""Boards with an FT232H: the driver's session over a chip that checks the pins, and the chip's place at connectors."""

from types import SimpleNamespace

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out
from bench import link_fifo

from splitjoin.base.errors import DeviceError, UnsupportedError
from splitjoin.circuit.driver import CircuitSession
from splitjoin.circuit.lowering import settings
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.engines.registry import device
from splitjoin.link.frames import Decoder, Reply, ReplyKind, Request, RequestKind, encode
from splitjoin.link.sidecar import Sidecar
from splitjoin.link.transport import LinkTransport
from splitjoin_boards.catalog import find
from splitjoin_boards.ft232h import with_ft232h
from splitjoin_boards.join import pins
from splitjoin_boards.pads import PadPlatform
from splitjoin_boards.top import BoardTop
from splitjoin_hw.link.ft232h import Ft232hFifo, Ft232hSignature
from splitjoin_hw.link.linked import LinkedJoin

from ..hw.link.test_endpoint import BYTES, CONFIG, ITEM, Echo
from ..support.conformance import assert_conforms
from ..support.ft232h import Chip, ChipTop
from ..support.linked import small_join
from ..support.planting import faulty
from ..support.usb_chips import plug

SMALL = {"cores": 1, "capacity": 16, "small": True, "row_bits": 16}
PINS = [f"gpio_0:{n}{side}" for n in range(8) for side in "+-"][:15]


def board():
    return with_ft232h(find("ulx3s_85f"), ",".join(PINS))


def test_a_session_has_the_golden_model_s_rows():
    """No byte is lost or doubled where flags fall in a burst: nothing is sent again."""
    query, arrivals = small_join(tuples=3, seed=1)
    made = device("pysim", **SMALL)
    plan, config = made.plan(query), made.configuration(query)
    chip = Chip(ChipTop(board(), LinkedJoin(config, clock_hz=60_000_000, baud=None)), stalls=0.4)
    transport = LinkTransport(lambda: chip, config, clock=chip.now, sleep=chip.sleep, session=0xC0DBC0DB)
    session = CircuitSession(query, plan, config, settings(query, config, verified=False), transport)
    session.push(arrivals)
    found = session.flush()
    with device("golden").open(query) as golden:
        golden.push(arrivals)
        assert_conforms(found, golden.flush(), query.order)
    assert transport.retransmissions == transport.rejected == 0
    assert {*chip.strobes[:-1]} == {16}  # the last one is under way


def test_both_directions_are_ten_times_as_fast_as_a_uart_of_12_mbaud():
    """With one clock of 60 MHz, by its cycles: frames of records, while as many bytes of items come back."""
    chip = Chip(ChipTop(board(), Echo(fifo=True, pack=True)))
    transport = LinkTransport(lambda: chip, CONFIG, clock=chip.now, sleep=chip.sleep, session=1)
    sent = np.zeros((100, CONFIG.input_record.words), np.uint32)
    sent[:, 0] = np.arange(100) << 2
    sent[-1] = 2  # the end
    begin, moved = chip.cycles, [*chip.moved]
    assert len(transport.transfer(sent, until_end=True)) == 100
    rates = [(after - before) * 60 / (chip.cycles - begin) for before, after in zip(moved, chip.moved, strict=True)]
    assert min(rates) >= 10 * 1.2  # MB/s
    assert chip.longest == 64  # cycles after which the other direction has its turn
    assert transport.retransmissions == 0


@pytest.mark.long
def test_replies_are_full_where_many_are_not_acknowledged():
    """Each request brings a record, long after the last, and none acknowledges: of eight replies, three are full."""
    chip = Chip(ChipTop(board(), Echo(fifo=True, slots=8, slot_bytes=32)))
    chip.write(encode(Request(RequestKind.OPEN, 0, 0, 8, bytes((1, 0, 0, 0))).content()))
    for number in range(20):
        chip.sleep(250e-6)
        chip.write(encode(Request(RequestKind.DATA, number, 0, 8, bytes(BYTES)).content()))
    chip.sleep(250e-6)
    replies = [Reply.parse(content) for content in Decoder().feed(chip.read(0))]
    assert [len(one.payload) // ITEM for one in replies if one.kind == ReplyKind.ITEMS] == [1] * 5 + [3] * 3


class Loop(wiring.Component):
    """Sends what it receives, but not in the first 300 cycles, in which its queue is filled."""

    def __init__(self):
        super().__init__({"ft232h": Out(Ft232hSignature())})

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = Ft232hFifo()
        wiring.connect(m, fifo.pins, wiring.flipped(self.ft232h))
        left = Signal(range(301), init=300)
        m.d.sync += left.eq(left - (left != 0))
        m.d.comb += [fifo.i.payload.eq(fifo.data), fifo.i.valid.eq(fifo.stb),
                     fifo.stall.eq((left != 0) | ~fifo.i.ready)]
        return m


def looped():
    """The chip, the bytes that come back, and as many of those that were sent."""
    chip = Chip(ChipTop(board(), Loop()), stalls=0.3)
    sent = bytes(n * 37 & 0xFF for n in range(150))
    chip.write(sent)
    chip.sleep(1900e-6)
    received = chip.read(0)
    return chip, received, sent[:len(received)]


def test_no_byte_is_lost_where_queues_are_full():
    chip, received, sent = looped()
    assert received == sent
    assert len(sent) == 150
    assert chip.strobes == [16]


@pytest.mark.parametrize(("old", "new", "found"), [
    ("pins.oe.eq(stays)", "pins.oe.eq(0)", "RD# must not be low with OE# high"),
    ("pins.oe.eq(1)", "[pins.oe.eq(1), pins.rd.eq(1)]", "OE# must be low for a cycle before RD#"),
    ("pins.oe.eq(stays)", "[pins.oe.eq(stays), pins.d_oe.eq(~stays)]", "the bus must be idle for a cycle"),
    ("pins.d_oe.eq(stays)", "pins.d_oe.eq(0)", "WR# must not be low without data"),
    ("pins.wr & pins.txe", "pins.wr", None),
    ("pins.rd & pins.rxf", "pins.rd", None),
    ("received.w_level < _DEPTH - _ROOM", "received.w_level < 2 * _DEPTH", None),
])
def test_a_fault_is_found(old, new, found, monkeypatch):
    """By the chip's check of the rule, or by a byte that is lost or comes twice."""
    monkeypatch.setattr(Ft232hFifo, "elaborate", faulty(Ft232hFifo, "elaborate", old, new))
    if found is None:
        _, received, sent = looped()
        assert received != sent
    else:
        with pytest.raises(AssertionError, match=found):
            looped()


def test_the_chip_s_pins_are_those_of_the_connector():
    text = PadPlatform(board().platform()).prepare(BoardTop(board(), Loop()), "top")
    for port in ("inout [7:0] ft232h_0__d__io", "input ft232h_0__clkout__io", "output ft232h_0__rd__io"):
        assert port in text
    assert pins(board())["d"] == "B11 C11 A10 A11 A9 B10 B9 C10"


@pytest.mark.parametrize(("name", "given", "error"), [
    ("icebreaker", ",".join(PINS), "an FT232H needs a board with an ECP5, but icebreaker is of ice40"),
    ("ulx3s_85f", ",".join(PINS[1:]), "--ft232h must be 15 different pins, of D0 to D7, .* CLKOUT, not 'gpio"),
    ("ulx3s_85f", ",".join(["gpio_9:1", *PINS[1:]]), "board ulx3s_85f has no pins gpio_9:1; its connectors have gpio"),
    ("ulx3s_85f", ",".join(["G2", *PINS[1:]]), "must be free, but G2 of board ulx3s_85f are those of its clock"),
])
def test_pins_that_cannot_be(name, given, error):
    with pytest.raises(UnsupportedError, match=error):
        with_ft232h(find(name), given)


@pytest.mark.long
def test_an_emulated_board_with_the_chip():
    """In time of its cycles, with replies that are on their way for a while."""
    query, given = link_fifo.band(60)
    for trip in (0.0, 0.001):
        top, clock_hz = link_fifo.board(device("uart:none", **link_fifo.CIRCUIT).configuration(query))
        running, transport, channel = link_fifo.session(query, top, clock_hz, trip)
        running.push(given)
        found = running.flush()
        with device("golden").open(query) as golden:
            golden.push(given)
            assert_conforms(found, golden.flush(), query.order)
        assert transport.retransmissions == transport.rejected == 0 and not channel.broken
        running.close()


@pytest.mark.long
@pytest.mark.parametrize("spoil", [False, True])
def test_a_design_for_the_chip_is_emulated(spoil, tmp_path, monkeypatch):
    """The driver of boards joins through the emulated chip, at the pins and the clock of the design. A circuit that
    breaks a rule of the chip's bus ends in an error.
    """
    if spoil:
        monkeypatch.setattr(Ft232hFifo, "elaborate", faulty(Ft232hFifo, "elaborate", "pins.d_oe.eq(stays)",
                                                            "pins.d_oe.eq(0)"))
    query, given = link_fifo.band(60)
    options = dict(link_fifo.CIRCUIT, capacity=16 << spoil)  # another model
    config = device("pysim", **options).configuration(query)
    Sidecar.of(CircuitParameters(**options), config, board="ulx3s_85f", clock_hz=50_000_000, baud=3_000_000,
               link="ft232h", pins=pins(board())).write(tmp_path / "design.json")
    with device("golden").open(query) as golden:
        golden.push(given)
        expected = golden.flush()
    try:
        with device(f"emulator:{tmp_path / 'design.json'}").open(query) as session:
            session.push(given)
            assert_conforms(session.flush(), expected, query.order)
        assert not spoil
    except DeviceError as error:
        assert spoil and "WR# must not be low without data on the bus; report it" in str(error)


@pytest.mark.long
def test_a_session_over_pyftdi_and_an_emulated_chip(monkeypatch):
    """The device that users open, with a stand-in for pyftdi alone."""
    query, given = link_fifo.band(60)
    config = device("uart:none", **link_fifo.CIRCUIT).configuration(query)
    top, clock_hz = link_fifo.board(config)
    chip = link_fifo.ModelChannel(top, clock_hz)
    plug(monkeypatch, SimpleNamespace(feed=chip.write, take=lambda: chip.read(0.001)))
    with device("uart:ftdi://ftdi:232h/1", **link_fifo.CIRCUIT, timeout=60.0).open(query) as session:
        session.push(given)
        found = session.flush()
    with device("golden").open(query) as golden:
        golden.push(given)
        assert_conforms(found, golden.flush(), query.order)
    chip.close()
