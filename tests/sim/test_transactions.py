"""What went over the link, told from captured bytes and from the pins in waveforms: frames, records, items, faults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from splitjoin.circuit.wire import ItemKind
from splitjoin.cli import DONE, FAILURE, USAGE, main
from splitjoin.link.frames import PACKED_VERSION, About, Reply, ReplyKind, Request, RequestKind, encode
from splitjoin.link.transactions import FROM, TO, LinkRows
from splitjoin_sim.run_view import read_run
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


def on_pins(frames: list[tuple[str, bytes]], bit: float) -> str:
    """Waveforms in ns of ``frames``, one after the other, in which a bit takes ``bit`` ns; b"!" is a board's input."""
    lines = ["$timescale\n 1 ns\n$end", "$scope module board $end", "$var wire 1 ! rx_pin $end",
             "$var wire 1 % tx_pin $end", "$upscope $end", "$enddefinitions $end", "#0", "1!", "1%"]
    at, level = 100.0, 1
    for way, data in frames:
        for byte in data:
            for value in (0, *(byte >> n & 1 for n in range(8)), 1):
                if value != level:
                    lines += [f"#{round(at)}", f"{value}{'!' if way == TO else '%'}"]
                level, at = value, at + bit
    return "\n".join([*lines, f"#{round(at + bit)}"])


def test_waveforms_of_serial_pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bit = 1e9 / 3e6
    Path("pins.vcd").write_text(on_pins(session(), bit))
    view = read_run(Path("pins.vcd"), pins=("rx_pin", "tx_pin"))
    check(view.rows)
    first = len(session()[0][1])
    assert view.rows[0].time == pytest.approx((100 + (10 * first - 0.5) * bit) * 1e-9, abs=2e-9)
    assert main(["waves", "pins.vcd", "--pins", "rx_pin,tx_pin", "--baud", "3000000", "-o", "link.csv", "-o",
                 "link.html", "-o", "link.gtkw"]) == DONE
    assert len(Path("link.csv").read_text().splitlines()) == 1 + len(view.rows)
    assert "<td>from circuit</td><td>reply ITEMS</td><td>3</td>" in Path("link.html").read_text()
    assert "\nboard.rx_pin\n" in Path("link.gtkw").read_text()
    assert main(["waves", "pins.vcd", "-o", "link.html"]) == FAILURE
    for wrong in (["--pins", "rx"], ["--row-bits", "33"], ["--baud", "0"], ["--replies", "x.bin"]):
        assert main(["waves", "pins.vcd", *wrong, "-o", "link.csv"]) == USAGE
    assert main(["waves", "run.fst", "-o", "link.csv"]) == USAGE


def test_captured_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    for name, of in (("sent", TO), ("received", FROM)):
        Path(f"{name}.bin").write_bytes(b"".join(data for way, data in session() if way == of))
    assert main(["waves", "sent.bin", "--replies", "received.bin", "-o", "link.csv"]) == DONE
    rows = [line.split(",", 3) for line in Path("link.csv").read_text().splitlines()[1:]]
    assert [row[2] for row in rows if row[1] == TO][4:7] == ["TUPLE", "TUPLE", "FLUSH"]
    assert [row[2] for row in rows if row[1] == FROM][4:8] == [what for what, _ in ANSWER]
    assert main(["waves", "none.bin", "-o", "link.csv"]) == FAILURE
    assert "none.bin cannot be read: No such file" in capsys.readouterr().err
