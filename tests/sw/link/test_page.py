"""The tables and bytes of docs/link.md are those of the code."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from bench.link import PACKED, carried, carried_packed, packed_size, table, wire_bytes
from bench.record import RESULTS, Recorder

from splitjoin.circuit.registers import MAGIC
from splitjoin.engines.device import ITEM
from splitjoin.link.frames import NUMBERED, RING, SLOTS, VERSION, Reply, ReplyKind, Request, RequestKind, encode
from splitjoin.link.rate import PACKED_ITEM
from tests.support.packed_items import packed

PAGE = Path(__file__).parents[3] / "docs" / "link.md"


def worked() -> str:
    request = encode(Request(RequestKind.READ, 5, 7, 7 + SLOTS, b"\x00").content())
    reply = encode(Reply(ReplyKind.WORD, 7, 6, RING - 4, MAGIC.to_bytes(4, "little")).content())
    return f"```\nrequest  {request.hex(' ')}\nreply    {reply.hex(' ')}\n```"


def test_the_page_is_current():
    page = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([A-Z]+) \| (\d) \| (yes|no) \|", page, re.MULTILINE)
    assert rows == [
        *((kind.name, f"{kind.value}", "yes" if kind >= NUMBERED else "no") for kind in RequestKind),
        *((kind.name, f"{kind.value}", "yes" if kind >= ReplyKind.WORD else "no") for kind in ReplyKind)]
    assert worked() in page
    assert f"version {VERSION} (1)" in page and f"ring of {RING} bytes" in page and f"up to {SLOTS} numbered" in page


def test_what_links_carry_is_current(capsys):
    recorder = Recorder("link", quick=True)
    wire_bytes(recorder)
    carried(recorder)
    carried_packed(recorder)
    page = PAGE.read_text(encoding="utf-8")
    committed = json.loads((RESULTS / "link.json").read_text())["rows"]
    assert table(recorder.rows) in page, "python -m bench.link writes it"
    ran = {row["metric"]: row["value"] for row in committed if "faulty" in row["config"]}
    assert (f"the {ran['items']:,} items were the golden model's; {ran['retransmissions']:,} times a frame was sent or "
            f"asked for again") in " ".join(page.split())


def test_packed_items_are_as_long_as_the_table_counts():
    """The size that the table counts with is that of the bytes, and the model's bytes an item are the most of them."""
    items = [(0, 0, 300, 7), (0, 0, 300, 6), (1, 0, 300, 99), (1, 1, 0, 40_007), (0, 1, 300, 40_007), (0, 1, 299, 7)]
    assert packed_size(np.array(items, ITEM)) == len(packed(items, 32)) == 19
    rows = json.loads((RESULTS / "link.json").read_text())["rows"]
    of = {(row["metric"], row["config"].get("results")): row["value"] for row in rows}
    most = max(of["packed", name] / of["items_a_tuple", name] for name in PACKED)
    assert most == pytest.approx(PACKED_ITEM, rel=0.01)
