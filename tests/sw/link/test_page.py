"""The tables and bytes of docs/link.md are those of the code."""

from pathlib import Path

from splitjoin.circuit.registers import MAGIC
from splitjoin.link.frames import Kind, Reply, Request, encode

PAGE = Path(__file__).parents[3] / "docs" / "link.md"


def kinds() -> str:
    """The table of requests. A kind's comment in the code says the same in words."""
    payloads = {Kind.OPEN: ("none", "version (1), bytes of a record (1), bytes of the ring (2)"),
                Kind.READ: ("word address (1)", "register word (4)"),
                Kind.WRITE: ("word address (1), register word (4)", "none"),
                Kind.DATA: ("whole records, or none", "whole items")}
    return "\n".join(["| kind | number | payload of the request | payload of the reply |", "|---|---|---|---|",
                      *(f"| {kind.name} | {kind.value} | {asked} | {told} |"
                        for kind, (asked, told) in payloads.items())])


def worked() -> str:
    request = encode(Request(5, Kind.READ, b"\x00").content())
    reply = encode(Reply(5, Kind.READ, 507, MAGIC.to_bytes(4, "little")).content())
    return f"```\nrequest  {request.hex(' ')}\nreply    {reply.hex(' ')}\n```"


def test_the_page_is_current():
    page = PAGE.read_text(encoding="utf-8")
    assert kinds() in page
    assert worked() in page
