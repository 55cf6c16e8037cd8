import random

import pytest
from hypothesis import given, settings, strategies as st
from splitjoin.errors import DeviceError
from splitjoin.link.endpoint import DeviceEndpoint, HostEndpoint
from splitjoin.link.frames import END, Decoder, Kind, Reply, encode


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


def damaged(data: bytes, chance: random.Random, share: float) -> bytes:
    out = bytearray()
    for byte in data:
        if chance.random() >= share:
            out.append(byte)
            continue
        out += chance.choice((b"", bytes((byte, byte)), bytes((byte ^ 1 << chance.randrange(8),)),
                              bytes((chance.randrange(256), byte))))
    return bytes(out)


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=20), st.integers(0, 2**32), st.integers(0, 255))
@settings(max_examples=60, deadline=None)
def test_each_request_is_executed_once_and_in_order(payloads, seed, first):
    """Bytes are lost, doubled, flipped and added in both directions; replies may come after their repetition."""
    chance = random.Random(seed)
    executed = []

    def execute(request):
        executed.append(request.payload)
        return 7, request.payload[::-1]

    host, device = HostEndpoint(first), DeviceEndpoint(execute)
    for n, payload in enumerate([b"", *payloads]):
        data = host.request(Kind.DATA if n else Kind.OPEN, payload)
        for _ in range(10_000):
            reply = host.feed(damaged(device.feed(damaged(data, chance, 0.02)), chance, 0.02))
            if reply is not None:
                break
            data = host.repeat()
        assert reply is not None and reply.payload == payload[::-1] and host.free == 7
    opened = len(executed) - len(payloads)
    assert executed == [b""] * opened + payloads and opened >= 1


def test_a_reply_of_another_device_is_refused():
    with pytest.raises(DeviceError, match=r"a reply must begin with a sequence number.*is this a splitjoin circuit"):
        Reply.parse(b"\x00\x99\x00\x00")


def test_a_second_request_waits_for_the_reply_of_the_first():
    host = HostEndpoint()
    host.request(Kind.DATA)
    with pytest.raises(ValueError, match="the one before has its reply"):
        host.request(Kind.READ, b"\x00")
