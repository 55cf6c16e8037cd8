# amaranth: UnusedElaboratable=no
import random

import pytest

from splitjoin.circuit.wire import NO_ITEM, ItemKind, item_record
from splitjoin_hw.gather.root import Root
from splitjoin_hw.gather.rows import RowQueue
from tests.testbench.bodies import combined
from tests.testbench.checks import check_combined
from tests.testbench.models import Item, packed_item
from tests.testbench.pauses import Stalls

from ...support.simulations import simulation

PAIR, STAR, END, SLICE = ItemKind.PAIR, ItemKind.STAR, ItemKind.END, ItemKind.SLICE


def items_of(record: int, width: int) -> list[int]:
    """The items of an output record, as integers; those behind the last must be empty, and an END must come alone."""
    bits = item_record().width
    items = [record >> n * bits & (1 << bits) - 1 for n in range(width)]
    kinds = [item & 3 for item in items]
    there = [item for item, kind in zip(items, kinds, strict=True) if kind != NO_ITEM]
    assert there == items[:len(there)] and there, f"a record has kinds {kinds}"
    assert END not in kinds or len(there) == 1
    return there


def dealt(stream: list[Item], ways: int, spread: bool) -> list[list[Item]]:
    """``stream`` as a `WaySplitter` deals it out."""
    found: list[list[Item]] = [[] for _ in range(ways)]
    way = 0
    for item in stream:
        if item.kind == END or (spread and item.kind == STAR):
            for out in found:
                out.append(item)
        else:
            found[way].append(item)
            if spread or item.kind == STAR:
                way = (way + 1) % ways
    return found


@pytest.mark.parametrize(("width", "mode"), [(2, "total"), (4, "total"), (4, "probes"), (4, "spread"), (2, "none")])
def test_rows_of_both_sides_become_records(width, mode):
    """Groups as mergers give them, from none to some rows of pairs, without a star at all in order none."""
    rng, count, ways = random.Random(width), 24, width // 2
    spread = mode in ("spread", "none") and ways > 1

    def side(n):
        out = []
        for probe in range(count):
            out += [Item(PAIR, probe, 100 * n + k) for k in range(rng.choice([0, 0, 1, 3, 4, 9]))]
            out += [Item(STAR, probe)] * (mode != "none")
        return [*out, Item(END)]

    sides = [side(0), side(1)]
    order = [0] * count + [1] * count
    rng.shuffle(order)

    async def body(tb):
        tb.set("total", mode == "total")
        tb.set("spread", spread)
        await tb.steps(4)
        for name, stream in zip(("left", "right"), sides, strict=True):
            for n, items in enumerate(dealt(stream, ways, spread)):
                tb.source(f"{name}__{n}", map(packed_item, items), Stalls(True, True).source(n))
        sequence = tb.source("sequence", order if mode == "total" else [], Stalls(True, True).source(9))
        sink = tb.sink("o", Stalls(True, True).sink())
        await tb.run(lambda: bool(sink.items) and sink.items[-1] & 3 == END, limit=20_000)
        await tb.steps(24)
        found = [combined(item) for record in sink.items for item in items_of(record, width)]
        if not spread:
            check_combined(*sides, found, order if mode == "total" else None)
            return
        assert not sequence.queue
        for n, stream in enumerate(sides):
            groups = [sorted(group) for group in split_groups([item for of, item in found if of == n and
                                                               item.kind != END])]
            assert groups == [sorted(group) for group in split_groups([i.essence() for i in stream[:-1]])]

    simulation(Root, width=width).run(body)


def split_groups(items: list[Item]) -> list[list[Item]]:
    """``items`` cut behind each star."""
    found: list[list[Item]] = [[]]
    for item in items:
        found[-1].append(item)
        if item.kind == STAR:
            found.append([])
    return found


def test_a_full_queue_gives_full_records():
    """Pairs that came while nothing left fill whole rows; the one that came first does not wait for them."""
    items = [*(Item(PAIR, 0, n) for n in range(41)), Item(STAR, 0)]

    async def body(tb):
        tb.source("i", map(packed_item, items), Stalls(False, False).source())
        await tb.steps(60)
        sink = tb.sink("o", Stalls(False, False).sink())
        await tb.run(lambda: len(sink.items) == 11, limit=100)
        assert sink.cycles == list(range(sink.cycles[0], sink.cycles[0] + 11))

    simulation(RowQueue, width=4).run(body)
