"""The host's endpoint and transport against a model of the circuit's, over a line in simulated time with faults."""

import random

import numpy as np
import pytest

from splitjoin.base.errors import DeviceError, DeviceLost
from splitjoin.circuit.wire import Op
from splitjoin.engines.registry import device
from splitjoin.link.endpoint import HostEndpoint
from splitjoin.link.frames import END, FIFO_RING, FIFO_SLOTS, About, Reply, ReplyKind, encode
from splitjoin.link.items import ItemBound
from splitjoin.link.transport import ChannelLost, LinkTransport
from tests.support.link_model import ITEM_BYTES, Line, ModelDevice
from tests.support.linked import small_join
from tests.support.packed_items import item_words
from tests.support.sampling import at_length

CONFIG = device("uart:none", cores=1, capacity=16).configuration(small_join(1, 0)[0])
BYTES = -(-CONFIG.input_record.width // 8)


def records(count, seed):
    chance = random.Random(seed)
    words = CONFIG.input_record.words
    out = np.array([[chance.getrandbits(30) << 2, *(chance.getrandbits(32) for _ in range(1, words))]
                    for _ in range(count)], np.uint32).reshape(count, -1)
    end = np.full((1, out.shape[1]), Op.FLUSH, np.uint32)
    return out, end


def wire(words):
    """The bytes of each record on the wire."""
    return [bytes(row)[:BYTES] for row in np.ascontiguousarray(words).view(np.uint8).reshape(len(words), -1)]


def opened(line, *, session=1, **options):
    """The transport of ``line``: nothing of it depends on chance, as the number of its session is given."""
    return LinkTransport(line.open, CONFIG, clock=line.now, sleep=line.sleep, session=session, **options)


def model():
    return ModelDevice(BYTES, CONFIG.abi_hash)


def exchange(line, count, seed):
    """Write registers, send records in slices, read a register; each must be executed once, and all items come."""
    sent, end = records(count, seed)
    transport = opened(line, byte_seconds=10 / 3e6)
    transport.write(5, 77)
    items = [transport.transfer(part, until_end=False) for part in np.array_split(sent, 3)]
    transport.write(6, 78)
    assert transport.read(5) == 77
    items.append(transport.transfer(end, until_end=True))
    writes = [bytes((n, value, 0, 0, 0)) for n, value in ((5, 77), (6, 78))]
    assert line.device.executed == [writes[0], *wire(sent), writes[1], *wire(end)]
    found = item_words(CONFIG.item_record, np.concatenate(items)).view(np.uint8).reshape(count + 1, -1)
    assert [bytes(row)[1:BYTES] for row in found[:-1]] == [record[1:] for record in wire(sent)]
    return transport


def test_a_reply_that_was_overtaken_takes_no_credit_back():
    endpoint = HostEndpoint(session=7)
    endpoint.open()
    endpoint.output(0.0)
    about = About(record_bytes=BYTES, abi=1, session=7).payload()
    endpoint.feed(encode(Reply(ReplyKind.ABOUT, 0, 0, 3 * BYTES, about).content()), 0.0)
    assert endpoint.room(BYTES) == 3
    for credit, room in (5 * BYTES, 5), (4 * BYTES, 5), (6 * BYTES, 6):
        endpoint.feed(encode(Reply(ReplyKind.ACK, 0, 0, credit).content()), 0.0)
        assert endpoint.room(BYTES) == room


def schedule(seed):
    """A random line: its faults, its latency, and when the plug is pulled."""
    chance = random.Random(seed)
    pulled = sorted(chance.uniform(0.001, 0.4) for _ in range(chance.choice((0, 0, 1, 2))))
    events = [event for at in pulled for event in ((at, "unplug"), (at + chance.uniform(0.001, 0.5), "plug"))]
    return {"share": chance.choice((0, 0.0003, 0.002, 0.01)), "seed": seed, "events": tuple(events),
            "byte_seconds": 10 / chance.choice((115_200, 1e6, 3e6, 12e6)), "latency": chance.choice((1e-5, 1e-3, 8e-3))}


@pytest.mark.parametrize("seed", [*range(30), *(at_length(seed) for seed in range(30, 1000))])
def test_each_request_is_executed_once_and_in_order_and_all_items_come(seed):
    exchange(Line(model(), **schedule(seed)), 300, seed)


def test_a_line_without_faults_has_no_retransmissions_and_is_kept_busy():
    """At 3 Mbaud with a millisecond each way, as behind USB: the replies have twice the bytes of the requests."""
    line = Line(model())
    sent, end = records(6000, 0)
    transport = opened(line, byte_seconds=10 / 3e6)
    start = line.now(), line.replied
    transport.transfer(sent, until_end=False)
    transport.transfer(end, until_end=True)
    assert transport.retransmissions == 0
    assert (line.replied - start[1]) * 10 / 3e6 > 0.85 * (line.now() - start[0])


def test_a_device_with_larger_buffers_has_more_bytes_under_way():
    """Behind a FIFO of 20 MB/s with half a millisecond each way: three times what buffers of a UART allow."""
    seconds = []
    for sizes in ({}, {"ring": FIFO_RING, "slots": FIFO_SLOTS}):
        line = Line(ModelDevice(BYTES, CONFIG.abi_hash, **sizes), byte_seconds=1 / 20e6, latency=0.0005)
        sent, end = records(4000, 0)
        transport = opened(line, byte_seconds=1 / 20e6)
        start = line.now()
        transport.transfer(sent, until_end=False)
        transport.transfer(end, until_end=True)
        assert transport.retransmissions == 0
        seconds.append(line.now() - start)
    assert seconds[0] > 3 * seconds[1]


@pytest.mark.parametrize("baud", [9600, 115_200, 1_000_000, 3_000_000, 12_000_000])
@pytest.mark.parametrize("latency", [0, 0.0001, 0.008])
def test_a_reply_that_waits_behind_long_ones_is_not_overdue(baud, latency):
    """A lone request after many records: its acknowledgement waits until the items of all records are on the line."""
    for session in (1, 0xC0DBC0DB):
        for count in (12, 20, 40):
            line = Line(model(), byte_seconds=10 / baud, latency=latency)
            sent, end = records(count, 0)
            sent[:, 0] = 0xC0C0C0C0  # a byte that takes two on the line
            transport = opened(line, byte_seconds=10 / baud, session=session)
            transport.write(5, 77)
            transport.transfer(sent, until_end=False)
            transport.transfer(end, until_end=True)
            assert transport.retransmissions == 0


def test_damaged_frames_cost_little():
    line = Line(model(), share=0.0005, seed=1)
    transport = exchange(line, 3000, 1)
    assert transport.rejected > 0 and line.sent + line.replied < 2.5 * 3000 * (BYTES + 9)


def test_a_silent_device_is_reported_within_two_seconds():
    line = Line(model(), share=1.0)
    line._damaged = lambda data: b""
    with pytest.raises(DeviceError, match=r"^the device must reply within 2 s, but sent nothing; check that it is p"):
        opened(line)
    assert 1.9 < line.now() < 2.2


def test_garbage_is_reported_within_two_seconds():
    device = model()
    chance = random.Random(0)
    device.reply = lambda: chance.randbytes(40)
    line = Line(device)
    with pytest.raises(DeviceError, match=r"^the device must reply within 2 s, but sent \d+ bytes without a valid"):
        opened(line)
    assert 1.9 < line.now() < 2.2


def test_a_device_that_hangs_after_valid_replies_has_sent_nothing_since():
    """Bytes without a valid reply would speak for another baud rate."""
    line = Line(model())
    transport = opened(line)
    reply = line.device.reply
    line.device.reply = lambda: reply() if line.now() < 0.02 else b""
    with pytest.raises(DeviceError, match=r"^the device must reply within 2 s, but sent nothing"):
        transport.transfer(records(6000, 0)[0], until_end=False)
    assert line.replied > 1000 and line.now() < 2.3


def test_a_device_that_hangs_is_reported_within_two_seconds():
    line = Line(model())
    transport = opened(line)
    line.device.reply = lambda: b""
    before = line.now()
    with pytest.raises(DeviceError, match=r"^the device must reply within 2 s, but sent nothing"):
        transport.transfer(records(10, 0)[0], until_end=False)
    assert line.now() - before < 2.2


@pytest.mark.parametrize(("about", "match"), [
    (About(BYTES, CONFIG.abi_hash ^ 1, 0), "the device holds another circuit"),
    (About(BYTES + 1, CONFIG.abi_hash, 0), "the device holds another circuit"),
    (About(BYTES, CONFIG.abi_hash, 0, version=1), "must speak version 2 or 3 of the link"),
])
def test_another_circuit_is_refused_at_once(about, match):
    line = Line(model())
    introduced = []

    def reply():
        if introduced:
            return b""
        introduced.append(1)
        answer = About(about.record_bytes, about.abi, line.device._session, about.version)
        return encode(Reply(ReplyKind.ABOUT, 0, 0, 0, answer.payload()).content())

    request = line.device._request
    line.device._request = lambda r: (request(r), introduced.clear())
    line.device.reply = lambda: reply() if line.device._session else b""
    with pytest.raises(DeviceError, match=match):
        opened(line)
    assert line.now() < 0.5


def test_a_session_goes_on_after_the_plug_was_pulled_at_any_time():
    for seed in range(8):
        at = 0.002 + 0.004 * seed
        line = Line(model(), events=((at, "unplug"), (at + 0.3, "plug")))
        assert exchange(line, 1500, seed).reconnections == 1


def test_a_plug_that_stays_out_is_reported():
    line = Line(model(), events=((0.004, "unplug"),))
    transport = opened(line, reconnect_within=3)
    with pytest.raises(DeviceError, match=r"^the plug was pulled; it did not come back within 3 s; plug the board in"):
        transport.transfer(records(3000, 0)[0], until_end=False)
    assert 3 < line.now() < 3.3


@pytest.mark.parametrize("unplugged", [False, True])
def test_a_board_that_lost_its_session_is_reported(unplugged):
    """With the plug pulled, or by its reset button alone."""
    plug = ((0.01, "unplug"), (0.02, "plug")) if unplugged else ()
    line = Line(model(), events=((0.015, "power"), *plug))
    transport = opened(line)
    with pytest.raises(DeviceLost, match="the device must keep its session, but has lost it"):
        transport.transfer(records(6000, 0)[0], until_end=False)
    assert line.now() < 2


def test_a_board_that_lost_its_session_is_not_given_a_new_one_of_the_same_number():
    """The plug is pulled again while the driver asks for the session."""
    plugs = ((0.04, "unplug"), (0.05, "plug"), (0.146, "unplug"), (0.16, "plug"))
    line = Line(model(), events=((0.045, "power"), *plugs), latency=0.005)
    transport = opened(line)
    with pytest.raises(DeviceLost, match="the device must keep its session, but has lost it"):
        transport.transfer(records(6000, 0)[0], until_end=False)
    assert transport.reconnections == 2


def test_a_lost_session_is_noticed_soon_however_long_a_device_may_be_silent():
    """Also after it has been silent, and has kept its session; and what it gave before is not lost."""
    line = Line(model(), events=((0.9, "power"),), byte_seconds=1e-5)
    transport = opened(line, answer_within=60)
    reply, line.device.reply = line.device.reply, lambda: reply() if not 0.02 < line.now() < 0.7 else b""
    with pytest.raises(DeviceLost):
        transport.transfer(records(60_000, 0)[0], until_end=False)
    assert line.now() < 1.8
    assert len(transport.received()) > 1000 and len(transport.received()) == 0


def test_a_device_whose_frames_make_no_sense_is_refused():
    line = Line(model())
    transport = opened(line)
    line.device.reply = lambda: encode(b"\x55\x00\x00\x00\x00")
    with pytest.raises(DeviceError, match="is this a splitjoin circuit"):
        transport.read(0)


def test_a_channel_that_cannot_be_opened_is_an_error():
    def connect():
        raise ChannelLost("there is no port")

    with pytest.raises(ChannelLost, match="there is no port"):
        LinkTransport(connect, CONFIG)


def test_garbage_before_the_session_does_no_harm():
    line = Line(model())
    line.device.feed(random.Random(3).randbytes(500) + bytes((END, 1, 2, END)))
    assert line.device.reply() == b""
    transport = opened(line)
    assert transport.read(9) == 0


class Flooding(ModelDevice):
    """A device that sends items for ever."""

    def _collect(self):
        self._items.extend([bytes(ITEM_BYTES)] * (20 - len(self._items)))
        super()._collect()


class Talkative(ModelDevice):
    """A device that sends a register word that nobody asked for."""

    def _collect(self):
        if self._session and not self._top:
            self._fill(ReplyKind.WORD, bytes(4))
        super()._collect()


class Silent(ModelDevice):
    """A device that replies, but never with the register word that was asked for."""

    def _collect(self):
        self._reading = None
        super()._collect()


@pytest.mark.parametrize(("kind", "message"), [
    (Flooding, r"the device must give at most \d+ items for the \d+ records that it got, as its windows hold 16 "),
    (Talkative, "the device must send register words that were asked for, but sent another one"),
    (Silent, "did not take or answer a request for a register within 60 s"),
])
def test_a_device_that_sends_for_ever_is_refused(kind, message):
    line = Line(kind(BYTES, CONFIG.abi_hash))

    def used():
        transport = opened(line)
        transport.write(6, 1)
        transport.read(5)

    with pytest.raises(DeviceError, match=message):
        used()
    if kind is Flooding:
        assert line.now() < 1


def test_the_bound_grows_with_the_records_and_the_windows():
    bound = ItemBound(CONFIG)
    none = bound.most
    bound.records = 10
    assert bound.most - none == 5 * 5 + 10 * 8, "five tuples of each stream have 25 pairs at most"
    bound.records = 1000
    assert bound.most - none == 1000 * (16 + 8), "each has as many partners as a window holds"
    bound.check(bound.most)
    with pytest.raises(DeviceError, match=f"but gave {bound.most + 1}; check its cable"):
        bound.check(bound.most + 1)
