"""`LinkRows`, frame by frame: requests, replies, the items that they carry, and damaged frames."""

from __future__ import annotations

from typing import Any

import pytest

from splitjoin.circuit.wire import ItemKind
from splitjoin.link.frames import PACKED_VERSION, About, Reply, ReplyKind, Request, RequestKind, encode
from splitjoin.link.transactions import FROM, TO, LinkRows
from tests.support.packed_items import packed

#: R's tuple, S's tuple, FLUSH, in records of two bytes; and what they are answered by.
RECORDS = b"\x18\x00\x1c\x01\x02\x00"
TOLD = [("TUPLE", "R, 0x3"), ("TUPLE", "S, 0x23"), ("FLUSH", "R, 0x0")]
ITEMS = [(ItemKind.STAR, 0, 0, 0), (ItemKind.PAIR, 1, 0, 0), (ItemKind.STAR, 1, 0, 0), (ItemKind.END, 0, 0, 0)]
ANSWER = [("STAR", "R row 0"), ("PAIR", "R row 0, S row 0, found by S"), ("STAR", "S row 0"), ("END", "")]


def request(kind: RequestKind, seq: int, payload: bytes = b"") -> tuple[str, bytes]:
    return TO, encode(Request(kind, seq, 0, 16, payload).content())


def reply(kind: ReplyKind, seq: int, payload: bytes = b"", *, nak: bool = False) -> tuple[str, bytes]:
    return FROM, encode(Reply(kind, seq, 0, 2048, payload, nak).content())


def session(*, pack: bool = False) -> list[tuple[str, bytes]]:
    """A session with a damaged request, one sent again, and replies that come in the wrong order."""
    data = packed([(int(kind), *rest) for kind, *rest in ITEMS], 32) if pack else b"".join(
        (kind | side << 2 | r << 3 | s << 35).to_bytes(9, "little") for kind, side, r, s in ITEMS)
    cut = len(data) // 2 if pack else 18
    about = About(2, 0x1234, 7, **({"version": PACKED_VERSION} if pack else {}))
    good = request(RequestKind.DATA, 1, RECORDS)
    return [request(RequestKind.OPEN, 0, (7).to_bytes(4, "little")), reply(ReplyKind.ABOUT, 0, about.payload()),
            request(RequestKind.WRITE, 0, b"\x04\x01\x00\x00\x00"), (TO, good[1][:8] + b"\x00" + good[1][9:]), good,
            reply(ReplyKind.ACK, 0, nak=True), good, reply(ReplyKind.ITEMS, 1, data[cut:]),
            request(RequestKind.AGAIN, 2), reply(ReplyKind.ITEMS, 0, data[:cut]), reply(ReplyKind.ITEMS, 0, data[:cut]),
            request(RequestKind.READ, 3, b"\x12")]


def check(rows: list[Any]) -> None:
    """``rows`` are those of `session`, but for their times."""
    told = [(row.way, row.what, row.detail.partition("limit 16")[2] or row.detail) for row in rows]
    assert [one[1:] for one in told if one[0] == TO] == [
        ("OPEN", ", session 0x7"), ("WRITE", ", precision = 0x1"),
        ("damaged", "a frame with a wrong CRC, wrong stuffing or too many bytes"), ("DATA", "seq 1, ack 0, limit 16"),
        *TOLD, ("DATA", ", again"), ("AGAIN", "seq 2, ack 0, limit 16"), ("READ", ", a gap before it, cycles")]
    of_board = [one[1:] for one in told if one[0] == FROM]
    assert of_board[0] == ("reply ABOUT", "seq 0, ack 0, credit 2048, session 0x7, ABI 0000000000001234, records of 2 "
                                          "bytes")
    assert [what for what, _ in of_board] == ["reply ABOUT", "reply ACK", "reply ITEMS", "reply ITEMS",
                                              *(what for what, _ in ANSWER), "reply ITEMS"]
    assert of_board[1][1].endswith("NAK: a request was damaged or out of order")
    assert of_board[2][1].endswith("a gap before it") and of_board[-1][1].endswith("again")
    assert of_board[4:8] == ANSWER


@pytest.mark.parametrize("pack", [False, True])
def test_frames_and_what_they_carry(pack: bool) -> None:
    link = LinkRows()
    check([row for n, (way, data) in enumerate(session(pack=pack)) for row in link.feed(way, data, n)])
    # Another session begins with the same numbers.
    opened = request(RequestKind.OPEN, 0, (8).to_bytes(4, "little"))
    rows = [row for way, data in (opened, request(RequestKind.DATA, 0, RECORDS)) for row in link.feed(way, data, 0)]
    assert [(row.what, row.detail) for row in rows[2:]] == TOLD


def test_frames_that_are_damaged_for_the_listener_alone_and_a_session_in_its_midst() -> None:
    """Both ends say what they have, so later frames are told whole."""
    link, data = LinkRows(), (1 | 5 << 3).to_bytes(9, "little")
    sent = [Request(RequestKind.DATA, 200, 90, 99, b"\x18\x00"), None, Reply(ReplyKind.ITEMS, 90, 201, 0, data),
            Reply(ReplyKind.ACK, 91, 202, 0), Request(RequestKind.DATA, 202, 91, 99, b"\x1c\x00"),
            Request(RequestKind.ACK, 203, 92, 99), Reply(ReplyKind.ITEMS, 92, 203, 0, data)]
    frames = [encode(one.content()) if one else b"\xc0\x01\x02\xc0" for one in sent]
    rows = [row for one, frame in zip(sent, frames, strict=True)
            for row in link.feed(FROM if isinstance(one, Reply) else TO, frame, 0)]
    assert [row.what for row in rows] == ["DATA", "TUPLE", "damaged", "reply ITEMS", "STAR", "reply ACK", "DATA",
                                          "TUPLE", "ACK", "reply ITEMS", "STAR"]
    assert not [row for row in rows if "gap" in row.detail or "again" in row.detail]


def test_items_of_one_session_go_on_behind_another_about() -> None:
    """As after the line was interrupted: packed items are differences to those before."""
    pair, about = int(ItemKind.PAIR), reply(ReplyKind.ABOUT, 0, About(2, 0x1234, 7, version=PACKED_VERSION).payload())
    items = [(pair, 1, 5, 3), (pair, 0, 6, 4)]
    data, cut = packed(items, 32), len(packed(items[:1], 32))
    frames = [request(RequestKind.OPEN, 0, (7).to_bytes(4, "little")), about, reply(ReplyKind.ITEMS, 0, data[:cut]),
              request(RequestKind.STATUS, 0), about, reply(ReplyKind.ITEMS, 1, data[cut:])]
    link = LinkRows()
    rows = [row for way, frame in frames for row in link.feed(way, frame, 0)]
    assert [row.detail for row in rows if row.what == "PAIR"] == ["R row 5, S row 3, found by S",
                                                                 "R row 6, S row 4, found by R"]
