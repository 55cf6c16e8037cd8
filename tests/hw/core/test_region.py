# amaranth: UnusedElaboratable=no
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.circuit.wire import Configuration, ItemKind, Op
from splitjoin_hw.core.region import Region
from tests.testbench.bodies import region
from tests.testbench.models import NO_LIMIT, Operation, Window, item_of, packed_operation, packed_window
from tests.testbench.pauses import Stalls, scripted

from ...support.sampling import at_length, examples
from ...support.simulations import simulation
from ...support.stimuli import cells, configurations, operations, windows, with_tables

DEPTH = 256
LARGE = Configuration(keys_r=(8,), keys_s=(8,), tests=((0, 0),), tree=0, cores=1, capacity=DEPTH, time_bits=16)


@given(st.data(), st.one_of(configurations(), with_tables()), st.sampled_from("rs"), cells())
@settings(max_examples=examples(15, 125))
def test_same_items_as_the_model(data, config, side, stalls):
    window = data.draw(windows(config))
    index = data.draw(st.integers(0, config.cores - 1))
    ops = data.draw(operations(config))

    async def body(tb):
        await region(tb, config, side, index, window, ops, stalls)

    simulation(Region, config, side).run(body)


def stored(ts):
    return Operation(Op.TUPLE, 1, ts, (1,), ((0, 0),))


def probe(ts, high):
    return Operation(Op.TUPLE, 0, ts, (0,), ((1, high),))


def star_cycles(window, ops, matches):
    """The cycles in which stars leave an unstalled region that stores S; each probe must have ``matches`` pairs."""
    cycles = []

    async def body(tb):
        tb.set("window", packed_window(LARGE, window))
        tb.source("i", [packed_operation(LARGE, op) for op in ops])
        sink = tb.sink("o")
        probes = sum(op.stream == 0 for op in ops)
        await tb.run(lambda: len(sink.items) == probes * (matches + 1), limit=3000 + 600 * probes)
        for cycle, payload in zip(sink.cycles, sink.items, strict=True):
            if item_of(payload).kind == ItemKind.STAR:
                cycles.append(cycle)

    simulation(Region, LARGE, "s").run(body)
    return cycles


@pytest.mark.parametrize("matches", [0, DEPTH], ids=["no match", "all match"])
@pytest.mark.parametrize("stores", [at_length(0), at_length(1), 5])
@pytest.mark.parametrize("window", [Window(rows=DEPTH), Window(rows=NO_LIMIT, length=DEPTH - 1)], ids=["rows", "range"])
def test_a_stored_tuple_a_cycle_whether_tuples_are_stored_or_not(window, stores, matches):
    """Probes back to back take one cycle per stored tuple, also with stores between them. A star costs nothing: only
    where every tuple matches is the output the limit, with its star and a few cycles for the next probe's first result.
    """
    ops = [stored(ts) for ts in range(DEPTH)]
    now = DEPTH - 1
    for _ in range(6):
        ops.append(probe(now, 255 if matches else 0))
        for _ in range(stores):
            now += 1
            ops.append(stored(now))
    cycles = star_cycles(window, ops, matches)
    steps = [b - a for a, b in pairwise(cycles)]
    assert all(DEPTH < n <= DEPTH + 10 for n in steps) if matches else steps == [DEPTH] * 5


def test_passes_of_few_reads_do_not_wait_for_what_leaves_of_the_batch_before():
    """32 reads for eight probes take fewer cycles than those from a batch's last read until all its stars have left."""
    config = Configuration(keys_r=(8,), keys_s=(8,), tests=((0, 0),), tree=0, cores=1, capacity=128, lanes=4, probes=8)
    ops = [stored(0)] * 128 + [probe(0, 0)] * (1 + 5 * 8)

    async def body(tb):
        tb.set("window", packed_window(config, Window(rows=128)))
        tb.source("i", [packed_operation(config, op) for op in ops])
        sink = tb.sink("o")
        await tb.run(lambda: len(sink.items) == 1 + 5 * 8, limit=1000)
        # The first probe is a batch alone: its star is the first one, and then each batch's last star is the eighth.
        assert [b - a for a, b in pairwise(sink.cycles[8::8])] == [32] * 4

    simulation(Region, config, "s").run(body)


def test_a_probe_has_the_stated_latency():
    """Cycles after the probe is accepted: 256 slots, two for the memory, three for the comparison, list, steps."""
    ops = [stored(0) for _ in range(DEPTH)] + [probe(0, 0)]
    (cycle,) = star_cycles(Window(rows=DEPTH), ops, 0)
    assert cycle - 2 * DEPTH == DEPTH + 19


def test_two_batches_are_scanned_and_a_third_collected_before_a_region_whose_results_stand_takes_no_more():
    config = Configuration(keys_r=(8,), keys_s=(8,), tests=((0, 0),), tree=0, cores=1, capacity=64, probes=4)

    async def body(tb):
        tb.set("window", packed_window(config, Window(rows=64)))
        ops = [stored(0) for _ in range(64)] + [probe(0, 255) for _ in range(30)]
        source = tb.source("i", [packed_operation(config, op) for op in ops])
        sink = tb.sink("o", scripted([True] * 800))
        await tb.run(lambda: tb.cycle == 800, limit=801)
        # The first probe came alone, when nothing was under way.
        assert len(source.cycles) == 64 + 1 + 4 + 4 + 1
        assert source.cycles[-1] < 2 * 64 + 64 + 30
        # A probe's place is full with the last of its results, so its part of the list is read once more.
        await tb.run(lambda: len(sink.items) == 30 * 65, limit=2 * 30 * 70)

    simulation(Region, config, "s").run(body)


#: Cycles and stores.
HELD = [(0, 32), (15, 5), (100, 20), (300, 20), (1000, 32)]


@pytest.mark.parametrize("window", [Window(rows=32), Window(rows=NO_LIMIT, length=31)], ids=["rows", "range"])
@pytest.mark.parametrize(("held", "stores"), [*HELD, *(
    at_length(held, stores) for held in (0, 15, 100, 300, 1000) for stores in (1, 5, 20, 32)
    if (held, stores) not in HELD)])
def test_stores_behind_a_stalled_scan_overwrite_nothing_it_has_still_to_read(window, held, stores):
    """The ring is full, and results are stalled for ``held`` cycles. The list has space for those of two scans: with
    300 cycles the third scan stalls halfway while stores wait behind it.
    """
    config = Configuration(keys_r=(8,), keys_s=(8,), tests=((0, 0),), tree=0, cores=1, capacity=32, time_bits=16)
    ops = []
    for n in range(32, 160, stores):
        ops += [Operation(Op.TUPLE, 1, t, (t,), ((0, 0),)) for t in range(n - stores if ops else 0, n)]
        # Matches the keys of just those tuples that are live now, but none of the stores that follow.
        ops.append(Operation(Op.TUPLE, 0, n - 1, (0,), ((n - 32, n - 1),)))

    class Held(Stalls):
        def sink(self, port=0):
            return scripted([True] * held)

    async def body(tb):
        await region(tb, config, "s", 0, window, ops, Held(False, False))

    simulation(Region, config, "s").run(body)


@pytest.mark.parametrize("burst", [3, 5, 16])
@pytest.mark.parametrize(("capacity", "lanes", "probes", "rows"),
                         [(2, 1, 1, 1), (2, 1, 1, 2), (4, 2, 1, 1), (4, 1, 4, 2)])
def test_a_scan_finds_what_was_stored_just_before_it(capacity, lanes, probes, rows, burst):
    """Right behind each burst of stores come probes whose windows hold no more than the youngest of them."""
    config = Configuration(keys_r=(8,), keys_s=(8,), tests=((0, 0),), tree=0, cores=1, capacity=capacity, lanes=lanes,
                           probes=probes)
    ops, key = [], 0
    for _ in range(12):
        ops += [Operation(Op.TUPLE, 0, 0, (0,), ((key - rows + 1, key),))] * (2 * probes + 1)
        for _ in range(burst):
            key += 1
            ops.append(Operation(Op.TUPLE, 1, 0, (key,), ((0, 0),)))
    ops = [op._replace(bounds=((max(0, op.bounds[0][0]), op.bounds[0][1]),)) for op in ops]

    async def body(tb):
        await region(tb, config, "s", 0, Window(rows=rows), [*ops, Operation(Op.FLUSH)], Stalls(False, False))

    simulation(Region, config, "s").run(body)
