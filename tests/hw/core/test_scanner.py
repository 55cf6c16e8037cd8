from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st
from splitjoin.device.wire import Configuration, ItemKind
from splitjoin.hw.core.scanner import Scanner
from splitjoin.hw.core.storage import task_layout
from splitjoin.sim.bench.models import Item, item_of
from splitjoin.sim.bench.on_amaranth import simulate

from ..stimuli import pauses

CONFIG = Configuration(keys_r=(4,), keys_s=(4,), tests=((0, 0),), tree=0, cores=3, capacity=32)
INDEX = 2


class Ring:
    """A memory behind the read port: ``keys`` follow ``slot`` two cycles later. Remembers what was unread."""

    def __init__(self, tb, contents):
        self._tb, self._contents = tb, contents
        self._slot, self._busy, self._unread = tb.watch("slot"), tb.watch("busy"), tb.watch("unread")
        self._pipeline = [0, 0]
        self.busy = []
        self.unread = []

    def drive(self):
        self._tb.set("keys", self._contents[self._pipeline.pop(0)])

    def observe(self, cycle):
        self._pipeline.append(self._slot())
        self.busy.append(self._busy())
        self.unread.append(self._unread())


def task(start=0, count=0, row=0, probe=0, star=0, end=0, low=0, high=15):
    return task_layout(CONFIG, "r").const({
        "start": start, "count": count, "row": row, "probe": probe, "star": star, "end": end,
        "bounds": {"lo0": low, "hi0": high}}).as_bits()


def scan(contents, start, count, row, probe, star, end, low, high):
    """The items of one task."""
    out = []
    for n in range(count):
        if low <= contents[(start + n) % CONFIG.capacity] <= high:
            out.append(Item(ItemKind.PAIR, probe, row + n * CONFIG.cores + INDEX))
    return out + [Item(ItemKind.STAR, probe)] * star + [Item(ItemKind.END)] * end


@given(st.lists(st.integers(0, 15), min_size=32, max_size=32),
       st.lists(st.tuples(st.integers(0, 31), st.one_of(st.integers(0, 3), st.integers(0, 32)), st.integers(0, 100),
                          st.integers(0, 100), st.integers(0, 1), st.integers(0, 1), st.integers(0, 15),
                          st.integers(0, 15)), max_size=8), pauses(), pauses())
@settings(max_examples=40)
def test_items_of_every_task_in_order(contents, tasks, idle, backpressure):
    async def body(tb):
        tb.set("index", INDEX)
        tb.attach(Ring(tb, contents))
        source = tb.source("task", [task(*t) for t in tasks], idle)
        sink = tb.sink("o", backpressure)
        wanted = [item for t in tasks for item in scan(contents, *t)]
        await tb.run(lambda: not source.queue and len(sink.items) >= len(wanted), limit=800)
        await tb.steps(50)
        assert [item_of(p) for p in sink.items] == wanted

    simulate(Scanner(CONFIG, "r"), body)


@pytest.mark.parametrize("star", [0, 1])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 32])
@pytest.mark.parametrize("high", [15, 0], ids=["all match", "none matches"])
def test_a_slot_a_cycle_and_one_for_the_star(count, star, high):
    async def body(tb):
        tb.set("index", INDEX)
        ring = Ring(tb, [1] * 32)
        tb.attach(ring)
        compared, matched = tb.watch("compared"), tb.watch("matched")
        source = tb.source("task", [task(count=count, probe=n, star=star, high=high) for n in range(6)])
        tb.sink("o")
        counts = [0, 0]
        for _ in range(6 * 33 + 20):
            await tb.step()
            counts = [counts[0] + compared(), counts[1] + matched()]
        steps = {b - a for a, b in pairwise(source.cycles)}
        assert steps == {max(1, count + star)}
        assert counts == [6 * count, 6 * count if high else 0]
        assert sum(ring.busy) == 6 * count

    simulate(Scanner(CONFIG, "r"), body)


def test_unread_is_the_next_slot_and_stands_while_results_wait():
    async def body(tb):
        tb.set("index", INDEX)
        ring = Ring(tb, [1] * 32)
        tb.attach(ring)
        tb.source("task", [task(start=30, count=32)])
        sink = tb.sink("o", iter([True] * 60 + [False] * 400))
        await tb.steps(60)
        slots = [u for u, busy in zip(ring.unread, ring.busy, strict=True) if busy]
        assert slots[:3] == [30, 31, 0]
        assert len(set(slots[-30:])) == 1, "no slot is issued while the results have nowhere to go"
        assert ring.busy[-1]
        await tb.steps(60)
        slots = [u for u, busy in zip(ring.unread, ring.busy, strict=True) if busy]
        assert list(dict.fromkeys(slots)) == [*range(30, 32), *range(30)]
        assert len(sink.items) == 32

    simulate(Scanner(CONFIG, "r"), body)
