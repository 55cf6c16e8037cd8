"""The tables and bytes of docs/link.md are those of the code."""

import re
from pathlib import Path

from splitjoin.circuit.registers import MAGIC
from splitjoin.link.frames import NUMBERED, RING, SLOTS, VERSION, Kind, Reply, ReplyKind, Request, encode

from bench.link import carried, table, wire_bytes
from bench.record import Recorder

PAGE = Path(__file__).parents[3] / "docs" / "link.md"


def worked() -> str:
    request = encode(Request(Kind.READ, 5, 7, 7 + SLOTS, b"\x00").content())
    reply = encode(Reply(ReplyKind.WORD, 7, 6, RING - 4, MAGIC.to_bytes(4, "little")).content())
    return f"```\nrequest  {request.hex(' ')}\nreply    {reply.hex(' ')}\n```"


def test_the_page_is_current():
    page = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([A-Z]+) \| (\d) \| (yes|no) \|", page, re.MULTILINE)
    assert rows == [
        *((kind.name, f"{kind.value}", "yes" if kind >= NUMBERED else "no") for kind in Kind),
        *((kind.name, f"{kind.value}", "yes" if kind >= ReplyKind.WORD else "no") for kind in ReplyKind)]
    assert worked() in page
    assert f"version {VERSION} (1)" in page and f"ring of {RING} bytes" in page and f"up to {SLOTS} numbered" in page


def test_what_links_carry_is_current(capsys):
    recorder = Recorder("link", quick=True)
    wire_bytes(recorder)
    carried(recorder)
    assert table(recorder.rows) in PAGE.read_text(encoding="utf-8"), "python -m bench.link writes it"
