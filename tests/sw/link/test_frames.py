import pytest
from hypothesis import given, strategies as st

from splitjoin.base.errors import DeviceError
from splitjoin.link.frames import (
    END,
    ESC,
    ESC_ESC,
    VERSION,
    About,
    Decoder,
    Reply,
    ReplyKind,
    Request,
    RequestKind,
    encode,
)

BYTE = st.integers(0, 255)


@given(st.lists(st.binary(min_size=2, max_size=60), max_size=6), st.binary(max_size=20))
def test_frames_are_found_after_garbage(contents, garbage):
    decoder = Decoder()
    decoder.feed(garbage + bytes((END,)))
    assert decoder.feed(b"".join(map(encode, contents))) == contents


@given(st.binary(min_size=2, max_size=60), st.data())
def test_a_damaged_byte_is_detected(content, data):
    wire = bytearray(encode(content))
    at = data.draw(st.integers(1, len(wire) - 2))
    wire[at] ^= data.draw(st.integers(1, 255))
    assert content not in Decoder().feed(wire) and Decoder().feed(wire) == []


def test_what_no_sender_writes_is_rejected():
    """Also where the checksum of the rest would fit, as that of all bytes does if none is stuffed."""
    wire, decoder = encode(bytes((1, ESC, 2))), Decoder()
    for wrong in (bytes((ESC, 0)), bytes((ESC,))):
        assert decoder.feed(wire.replace(bytes((ESC, ESC_ESC)), wrong, 1)) == []
    assert decoder.feed(encode(bytes(2000))) == []
    assert decoder.rejected == 3
    assert decoder.feed(wire) == [bytes((1, ESC, 2))]


@given(st.sampled_from(RequestKind), BYTE, BYTE, BYTE, st.binary(max_size=20))
def test_requests_are_read_as_they_were_written(kind, seq, ack, limit, payload):
    request = Request(kind, seq, ack, limit, payload)
    assert Request.parse(request.content()) == request
    assert Request.parse(bytes((8,)) + request.content()[1:]) is None


@given(st.sampled_from(ReplyKind), BYTE, BYTE, st.integers(0, 0xFFFF), st.binary(max_size=20), st.booleans())
def test_replies_are_read_as_they_were_written(kind, seq, ack, credit, payload, nak):
    reply = Reply(kind, seq, ack, credit, payload, nak)
    assert Reply.parse(reply.content()) == reply


def test_about_is_read_as_it_was_written():
    about = About(record_bytes=7, abi=0x0123456789ABCDEF, session=0xDEADBEEF)
    assert About.parse(about.payload()) == about


def test_a_reply_of_another_device_is_refused():
    with pytest.raises(DeviceError, match=r"a reply must begin with a kind.*is this a splitjoin circuit"):
        Reply.parse(b"\x44\x99\x00\x00\x00")
    with pytest.raises(DeviceError, match=rf"must speak version {VERSION} or 3 of the link, but answered 01 05 00"):
        About.parse(b"\x01\x05\x00")
