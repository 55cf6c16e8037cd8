"""Records of several items, taken apart for a link: every item in its order, none twice."""

import random

import pytest

from splitjoin.circuit.wire import NO_ITEM, Configuration, ItemKind
from splitjoin_hw.link.packing import RecordUnpacker
from tests.testbench.pauses import Stalls

from ...support.simulations import simulation


@pytest.mark.parametrize(("width", "row_bits"), [(2, 32), (4, 9)])
def test_every_item_leaves_once_and_in_order(width, row_bits):
    config = Configuration(keys_r=(8,), keys_s=(8,), tests=((0, 0),), tree=0, cores=2, capacity=16, root_width=width,
                           row_bits=row_bits)
    rng, bits = random.Random(width), config.item_record.width
    rows = [[rng.getrandbits(bits) & -4 | rng.choice([ItemKind.PAIR, ItemKind.STAR])
             for _ in range(rng.randint(1, width))] for _ in range(60)] + [[int(ItemKind.END)]]
    records = [sum(item << n * bits for n, item in enumerate([*row, *[NO_ITEM] * (width - len(row))])) for row in rows]
    items = [item for row in rows for item in row]

    async def body(tb):
        tb.source("i", records, Stalls(True, True).source())
        sink = tb.sink("o", Stalls(True, True).sink())
        await tb.run(lambda: len(sink.items) == len(items), limit=4_000)
        await tb.steps(12)
        assert sink.items == items

    simulation(RecordUnpacker, config).run(body)
