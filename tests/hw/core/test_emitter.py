# amaranth: UnusedElaboratable=no
"""The emitter against a plain model: its results for the outcomes of any passes, under stalls at every port."""

from dataclasses import dataclass
from itertools import chain, pairwise
from unittest.mock import patch

import pytest

from splitjoin.circuit.wire import Configuration, ItemKind
from splitjoin_hw.core.layouts import batch_layout, found_layout
from splitjoin_hw.core.listing import ListEmitter
from splitjoin_hw.core.sorter import SortingEmitter
from tests.testbench.models import Item, Window, item_of, packed_window
from tests.testbench.pauses import flowing, scripted

from ...support.simulations import simulation

PAIR, STAR, END, SLICE = ItemKind.PAIR, ItemKind.STAR, ItemKind.END, ItemKind.SLICE
CAPACITY = 16
#: Cycles from a read to its outcome, here.
LATENCY = 4


def configuration(cores=1, lanes=1, probes=1):
    return Configuration(keys_r=(4,), keys_s=(4,), tests=((0, 0),), tree=0, cores=cores, capacity=CAPACITY, lanes=lanes,
                         probes=probes)


class SmallPlaces(SortingEmitter):
    """An emitter that sorts three items of each probe, so that it must read the list again for the others."""

    def elaborate(self, platform):
        with patch("splitjoin.circuit.geometry.SORTED", 2), patch("splitjoin.circuit.geometry.QUOTA", 4):
            return super().elaborate(platform)


def emitter_of(config, *, small=False):
    """The class of the emitter of a region that scans."""
    return ListEmitter if config.probes == 1 else SmallPlaces if small else SortingEmitter


@dataclass(frozen=True)
class Batch:
    """A batch whose pass reads ``count`` tuples, the first of which has row id ``row``, less the index, and lies in
    ``lane``. ``hits``: for each member, the tuples that it finds. ``flush``: the last member is no probe.
    """

    row: int
    lane: int
    count: int
    hits: tuple[frozenset[int], ...]
    flush: bool

    def payload(self, config):
        return batch_layout(config).const({"row": self.row, "lane": self.lane, "probes": len(self.hits) - 1,
                                           "flush": self.flush, "count": self.count}).as_bits()

    def outcomes(self, config):
        """The outcome of each read of the pass, which has one read if the window is empty."""
        lanes, words = config.lanes, [0] * max(1, -(-self.count // config.lanes))
        for member, found in enumerate(self.hits):
            for at in found:
                words[at // lanes] |= 1 << member * lanes + (self.lane + at) % lanes
        return [found_layout(config).const({"hits": word, "last": n == len(words) - 1}).as_bits()
                for n, word in enumerate(words)]


def wanted(config, index, window, batches):
    """The results that must leave."""
    out, probe, since = [], 0, 0  # the row id of the next probe; probes since the last star
    for batch in batches:
        for n, found in enumerate(batch.hits):
            if batch.flush and n == len(batch.hits) - 1:
                out += [Item(STAR, probe - 1)] * bool(window.precision and since)
                out.append(Item(END))
                since = 0
                continue
            inner = range(window.slice, batch.count, window.slice) if window.slice else ()
            for at in sorted({*found, *inner}):
                out += [Item(SLICE, probe)] * (at in inner)
                out += [Item(PAIR, probe, (batch.row + index + config.cores * at) % 2**32)] * (at in found)
            since += 1
            if since == window.precision:
                out.append(Item(STAR, probe))
                since = 0
            probe += 1
    return out


class Passes:
    """Begins the pass of a batch when the batch can be offered, reads only with ``room``, and drives the outcomes."""

    def __init__(self, tb, config, batches, idle):
        self._tb, self._idle, self._room = tb, idle, tb.watch("room")
        self._waiting = [(batch.payload(config), batch.outcomes(config)) for batch in batches]
        self._reads, self._under_way = [], []  # of the pass; with the cycles in which they are due
        self._source = tb.source("batch")
        self.reads = 0
        tb.attach(self)

    @property
    def done(self):
        return not (self._waiting or self._reads or self._under_way or self._source.queue)

    def drive(self):
        due = bool(self._under_way) and self._under_way[0][0] == self._tb.cycle
        self._tb.set("found_valid", due)
        if due:
            self._tb.set("found", self._under_way.pop(0)[1])

    def observe(self, cycle):
        if self._reads and self._room() and not next(self._idle):
            self._under_way.append((cycle + LATENCY, self._reads.pop(0)))
            self.reads += 1
        elif not self._reads and self._waiting and not self._source.queue and not next(self._idle):
            payload, self._reads = self._waiting.pop(0)
            self._source.queue.append(payload)


async def run(tb, config, index, window, batches, idle, backpressure):
    """Returns the sink, and what was counted as matches."""
    tb.set("window", packed_window(config, window))
    tb.set("index", index)
    await tb.steps(4)  # settings must be stable before the first batch
    passes, sink = Passes(tb, config, batches, idle), tb.sink("o", backpressure)
    matched, matches = tb.watch("matched"), 0
    expected = wanted(config, index, window, batches)
    limit = 300 + 20 * len(expected) + sum(12 + 4 * batch.count for batch in batches)
    for _ in range(limit):
        await tb.step()
        matches += matched()
        if passes.done and len(sink.items) >= len(expected):
            break
    for _ in range(40):  # no further result may leave
        await tb.step()
        matches += matched()
    assert [item_of(payload) for payload in sink.items] == [item.essence() for item in expected]
    assert matches == sum(item.kind == PAIR for item in expected)
    assert passes.done
    return sink


EVERY = frozenset(range(CAPACITY))


@pytest.mark.parametrize(("lanes", "probes", "small"), [(1, 1, False), (1, 4, True), (2, 2, True), (4, 8, False)])
def test_reads_stop_when_the_list_is_full_and_nothing_is_lost(lanes, probes, small):
    """Results are not taken for so long that the list and the FIFO behind it are full of them."""
    config = configuration(1, lanes, probes)
    found = [Batch(0, 0, CAPACITY, (EVERY,) * probes, False)] * 12

    async def body(tb):
        level, room, levels = tb.watch("list_high"), tb.watch("room"), []

        class Level:
            def drive(self):
                pass

            def observe(self, cycle):
                levels.append((level(), room()))

        tb.attach(Level())
        await run(tb, config, 0, Window(), found, flowing(), scripted([True] * 400))
        depth = max(64, 2 * CAPACITY // lanes)
        assert max(level for level, _ in levels) <= depth
        # A batch waits for the one whose results are stalled, so the list holds two passes, even if it has more space.
        assert max(level for level, _ in levels) >= 2 * CAPACITY // lanes
        assert all(room for level, room in levels[8:] if level <= CAPACITY // lanes)

    simulation(emitter_of(config, small=small), config, latency=LATENCY).run(body)


def test_a_result_takes_a_cycle_and_the_end_of_a_probe_two():
    config = configuration(1, 1, 2)

    async def body(tb):
        sink = await run(tb, config, 0, Window(), [Batch(0, 0, CAPACITY, (EVERY, EVERY), False)], flowing(), flowing())
        steps = [b - a for a, b in pairwise(sink.cycles)]
        assert steps == [*[1] * (CAPACITY - 1), 2, 1, *[1] * (CAPACITY - 1), 2]

    simulation(emitter_of(config), config, latency=LATENCY).run(body)


@pytest.mark.parametrize("precision", [0, 1, 3])
def test_a_flush_ends_what_has_no_star_yet(precision):
    config = configuration(1, 1, 4)
    one, none = frozenset({1}), frozenset()
    found = [Batch(0, 0, 2, (one, none, one, none), True), Batch(0, 0, 2, (one, none), True),
             Batch(0, 0, 0, (none,), True)]
    kinds = {0: [PAIR, PAIR, END, PAIR, END, END], 1: [PAIR, STAR, STAR, PAIR, STAR, END, PAIR, STAR, END, END],
             3: [PAIR, PAIR, STAR, END, PAIR, STAR, END, END]}
    assert [item.kind for item in wanted(config, 0, Window(precision=precision), found)] == kinds[precision]

    async def body(tb):
        await run(tb, config, 0, Window(precision=precision), found, flowing(), flowing())

    simulation(emitter_of(config), config, latency=LATENCY).run(body)


def test_inner_stars_stand_before_the_first_tuple_of_a_slice():
    config = configuration(2)
    found = [Batch(0, 0, 9, (frozenset({0, 3, 4, 8}),), False), Batch(4, 0, 9, (frozenset(),), False)]
    stars = [Item(SLICE, 1)] * 2
    assert wanted(config, 1, Window(slice=4), found) == [
        Item(PAIR, 0, 1), Item(PAIR, 0, 7), Item(SLICE, 0), Item(PAIR, 0, 9), Item(SLICE, 0), Item(PAIR, 0, 17),
        Item(STAR, 0), *stars, Item(STAR, 1)]

    async def body(tb):
        await run(tb, config, 1, Window(slice=4), found, flowing(), scripted(chain.from_iterable([[True, False]] * 30)))

    simulation(emitter_of(config), config, latency=LATENCY).run(body)
