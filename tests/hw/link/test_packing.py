# amaranth: UnusedElaboratable=no
"""Items packed as differences: the circuit's packer and the host's reader, against each other and by hand."""

import numpy as np
import pytest
from amaranth.sim import Simulator
from hypothesis import given, strategies as st

from splitjoin.base.errors import DeviceError
from splitjoin.circuit.wire import ItemKind, item_record
from splitjoin.link.items import PackedItems
from splitjoin_hw.link.packing import ItemPacker
from tests.support.packed_items import packed
from tests.support.sampling import at_length


def meaning(items: list[tuple[int, int, int, int]], *, whole: bool = False) -> list[tuple[int, int, int, int]]:
    """``items`` with 0 for row ids without a meaning."""
    return [(kind, side, r if kind == ItemKind.PAIR or (kind == ItemKind.STAR and (whole or side == 0)) else 0,
             s if kind == ItemKind.PAIR or (kind == ItemKind.STAR and (whole or side == 1)) else 0)
            for kind, side, r, s in items]


def read(reader: PackedItems) -> list[tuple[int, int, int, int]]:
    return reader.take().tolist()


@st.composite
def sequences(draw, most=30):
    row_bits = draw(st.sampled_from([8, 12, 16, 20, 24, 32]))
    items, at = [], [0, 0]
    for _ in range(draw(st.integers(0, most))):
        for n in range(2):
            step = draw(st.sampled_from([0, 1, -1, 127, 128, -128, -129, 32767, 32768, -32768, -32769, 2**31, 5]))
            at[n] = (at[n] + step) % 2**row_bits
        items.append((draw(st.sampled_from([ItemKind.PAIR, ItemKind.STAR])), draw(st.integers(0, 1)), *at))
    return row_bits, [*items, (int(ItemKind.END), 0, 0, 0)], draw(st.booleans())


@given(sequences(), st.lists(st.integers(1, 9), min_size=1))
def test_what_is_packed_is_read_whatever_the_cuts(case, cuts):
    row_bits, items, whole = case
    data, found, at = packed(items, row_bits, whole=whole), [], 0
    reader = PackedItems(item_record(row_bits), whole_stars=whole)
    while at < len(data):
        for cut in cuts:
            assert not reader.ended or at >= len(data)
            reader.feed(data[at:at + cut])
            at += cut
            if cut % 3 == 0 and at < len(data):
                found += read(reader)
    assert reader.ended and reader.received == len(data)
    assert found + read(reader) == meaning(items, whole=whole)
    assert not reader.ended


def in_simulation(items, row_bits, whole, seed):
    """The bytes that the circuit makes of ``items``, with random pauses on both sides."""
    dut = ItemPacker(item_record(row_bits), whole_stars=whole)
    out, rng = bytearray(), np.random.default_rng(seed)

    async def source(ctx):
        for kind, side, r, s in items:
            while rng.random() < 0.3:
                await ctx.tick()
            ctx.set(dut.i.payload, kind | side << 2 | r << 3 | s << 3 + row_bits)
            ctx.set(dut.i.valid, 1)
            await ctx.tick().until(dut.i.ready)
            ctx.set(dut.i.valid, 0)

    async def sink(ctx):
        left = 20 * len(items) * 9
        held = None
        while len(out) < want:
            ready = rng.random() < 0.6
            ctx.set(dut.o.ready, ready)
            _, _, valid, payload = await ctx.tick().sample(dut.o.valid, dut.o.payload)
            assert held is None or (valid and payload == held), "an offer must stay until it is taken"
            held = payload if valid and not ready else None
            if valid and ready:
                out.append(payload)
            left -= 1
            assert left, "the packer sends nothing any more"

    want = len(packed(items, row_bits, whole=whole))
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(source, background=True)
    simulator.add_testbench(sink)
    simulator.run()
    return bytes(out)


@pytest.mark.parametrize("seed", [0, *(at_length(seed) for seed in range(1, 10))])
@pytest.mark.parametrize("row_bits", [8, 12, 16, 24, 32])
def test_the_circuit_packs_by_the_book(row_bits, seed):
    rng = np.random.default_rng(seed)
    whole, at, items = bool(rng.random() < 0.3), [0, 0], []
    for _ in range(40):
        for n in range(2):
            step = rng.choice([0, 1, -1, 127, 128, -128, -129, 32767, 32768, -32768, -32769, 2**31, 2**23, 5])
            at[n] = int(at[n] + step) % 2**row_bits
        items.append((int(rng.integers(2)), int(rng.integers(2)), *at))
    items.append((int(ItemKind.END), 1, 3, 4))
    assert in_simulation(items, row_bits, whole, seed) == packed(items, row_bits, whole=whole)


def test_bytes_by_hand():
    """A pair of R's row 300 and S's row 7, R's next pair, R's star, and END."""
    items = [(0, 0, 300, 7), (0, 0, 300, 6), (1, 0, 300, 99), (2, 0, 0, 0)]
    assert packed(items, 32).hex(" ") == "30 2c 01 07 20 ff 01 02"


def test_a_byte_that_begins_no_item_is_refused():
    reader = PackedItems(item_record(), whole_stars=False)
    reader.feed(b"\x82")
    with pytest.raises(DeviceError, match="must begin with a byte below 0x80, but 0x82 came"):
        reader.take()
