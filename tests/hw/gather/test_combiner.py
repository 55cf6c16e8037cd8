from itertools import pairwise

import pytest

from splitjoin.circuit.wire import ItemKind
from splitjoin_hw.gather.combiner import Combiner
from tests.testbench.bodies import combined
from tests.testbench.models import Item, packed_item

from ...support.simulations import simulation


@pytest.mark.parametrize("side", [0, 1])
def test_the_probe_is_the_tuple_of_the_side(side):
    async def body(tb):
        tb.source(("left", "right")[side], [packed_item(Item(ItemKind.PAIR, 7, 3))])
        sink = tb.sink("o")
        await tb.run(lambda: sink.items, limit=10)
        assert [combined(p) for p in sink.items] == [(side, Item(ItemKind.PAIR, 7, 3))]
        r, s = sink.items[0] >> 3 & 0xFFFFFFFF, sink.items[0] >> 35
        assert (r, s) == ((7, 3) if side == 0 else (3, 7))
        assert sink.cycles == [1]

    simulation(Combiner).run(body)


def test_without_total_the_sides_take_turns():
    items = [packed_item(Item(ItemKind.PAIR, 0, n)) for n in range(10)]

    async def body(tb):
        tb.source("left", items)
        tb.source("right", items)
        sink = tb.sink("o")
        await tb.run(lambda: len(sink.items) == 20, limit=40)
        sides = [combined(p)[0] for p in sink.items]
        assert all(a != b for a, b in pairwise(sides)), sides
        assert sink.cycles == list(range(1, 21))

    simulation(Combiner).run(body)


def test_with_total_a_side_waits_for_its_turn():
    async def body(tb):
        tb.set("total", 1)
        tb.source("left", [packed_item(Item(ItemKind.STAR, 0))])
        right, sink = tb.source("right"), tb.sink("o")
        tb.source("sequence", [1, 0])
        await tb.steps(10)
        assert sink.items == []
        right.queue.append(packed_item(Item(ItemKind.STAR, 0)))
        await tb.steps(10)
        assert [combined(p)[0] for p in sink.items] == [1, 0]

    simulation(Combiner).run(body)


def test_end_waits_for_the_other_side():
    end = packed_item(Item(ItemKind.END))

    async def body(tb):
        tb.source("left", [end])
        right, sink = tb.source("right"), tb.sink("o")
        await tb.steps(10)
        assert sink.items == []
        right.queue.extend([packed_item(Item(ItemKind.PAIR, 4, 2)), end])
        await tb.steps(10)
        assert [combined(p)[1].kind for p in sink.items] == [ItemKind.PAIR, ItemKind.END]

    simulation(Combiner).run(body)
