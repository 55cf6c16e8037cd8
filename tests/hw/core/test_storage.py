from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.circuit.geometry import STORES, ring_rows
from splitjoin.circuit.wire import Configuration, Op
from splitjoin_hw.core.layouts import task_layout
from splitjoin_hw.core.storage import Storage
from tests.testbench.models import Operation, RegionModel, Window, packed_operation, packed_window

from ...support.sampling import examples
from ...support.simulations import simulation
from ...support.stimuli import cells, configurations, operations, windows

#: One core of four slots, with and without event times; stream R is stored.
PLAIN = Configuration(keys_r=(8,), keys_s=(8,), tests=((0, 0),), tree=0, cores=1, capacity=4)
TIMED = Configuration(keys_r=(8,), keys_s=(8,), tests=((0, 0),), tree=0, cores=1, capacity=4, time_bits=16)


def r(key=0, ts=0):
    return Operation(Op.TUPLE, 0, ts, (key,), ((0, 255),))


def s(ts=0):
    return Operation(Op.TUPLE, 1, ts, (0,), ((3, 200),))


def prepare(tb, config, window, ops, index=0):
    tb.set("window", packed_window(config, window))
    tb.set("index", index)
    return tb.source("i", [packed_operation(config, op) for op in ops])


@given(st.data(), configurations(), st.sampled_from("rs"), cells())
@settings(max_examples=examples(40))
def test_tasks_are_snapshots_of_the_window(data, config, side, stalls):
    window = data.draw(windows(config))
    index = data.draw(st.integers(0, config.cores - 1))
    ops = data.draw(operations(config))
    model = RegionModel(config, side, index, window)
    wanted = []
    masked = False
    for op in ops:
        if op.op == Op.MASK and op.core == index:
            masked = bool(op.stream)
        model.apply(op)
        if model.overflow is not None:
            break
        if op.op == Op.FLUSH:
            wanted.append((0, None, True, None, None))
        elif op.op == Op.TUPLE and "rs"[op.stream] != side:
            rows = model.live
            wanted.append((len(rows), rows[0] if rows else None, False, masked, op.bounds))

    async def body(tb):
        source = prepare(tb, config, window, [], index)
        sink = tb.sink("task", stalls.sink())
        overflow = tb.watch("overflow")
        await tb.steps(4)  # settings must be stable before the first record
        source.queue.extend(packed_operation(config, op) for op in ops)
        source.pauses = stalls.source()
        await tb.run(lambda: not source.queue or (tb.cycle and overflow()), limit=60 * (len(ops) + 4) + 500)
        await tb.steps(60)
        found = []
        for payload in sink.items:
            task = task_layout(config, side).from_bits(payload)
            bounds = tuple((task.bounds[f"lo{j}"], task.bounds[f"hi{j}"]) for j in range(len(config.tests)))
            found.append((task.count, task.row + index if task.count else None, bool(task.flush),
                          None if task.flush else bool(task.masked), None if task.flush else bounds))
        assert found == wanted
        assert overflow() == (model.overflow is not None)

    simulation(Storage, config, side).run(body)


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_keys_belong_to_the_rows_of_two_cycles_ago(lanes):
    """Position p lies in lane p mod lanes, row p div lanes, and the ring wraps around."""
    config = replace(PLAIN, lanes=lanes, capacity=8)

    async def body(tb):
        slots = ring_rows(config) * lanes
        source = prepare(tb, config, Window(rows=8), [r(key) for key in range(10, 10 + slots + 3)])
        keys = [tb.watch(f"keys__{lane}") for lane in range(lanes)]
        await tb.run(lambda: not source.queue, limit=3 * slots)
        await tb.steps(2)
        ring = [10 + slots, 11 + slots, 12 + slots, *range(13, 10 + slots)]
        wanted = []
        for n in range(9):
            rows = [(3 * n + lane) % (slots // lanes) for lane in range(lanes)]
            for lane, row in enumerate(rows):
                tb.set(f"rows__{lane}", row)
            wanted.append([ring[row * lanes + lane] for lane, row in enumerate(rows)])
            await tb.step()
            if n >= 2:
                assert [key() for key in keys] == wanted[n - 2]

    simulation(Storage, config, "r").run(body)


def test_a_store_takes_two_cycles_and_pushes_out_the_oldest():
    async def body(tb):
        source = prepare(tb, PLAIN, Window(rows=4), [r(n) for n in range(20)] + [s()])
        sink = tb.sink("task")
        await tb.run(lambda: sink.items, limit=60)
        task = task_layout(PLAIN, "r").from_bits(sink.items[0])
        assert (task.count, task.row) == (4, 16)
        assert source.cycles == list(range(1, 43, 2))

    simulation(Storage, PLAIN, "r").run(body)


@pytest.mark.parametrize("guard", ["scanning", "waiting"])
@pytest.mark.parametrize("unread", range(4))
def test_so_many_stores_go_ahead_of_what_is_unread_and_no_more(unread, guard):
    """Slots from ``unread`` on have still to be read."""
    async def body(tb):
        source = prepare(tb, PLAIN, Window(rows=4), [r(n) for n in range(4)])
        sink = tb.sink("task")
        await tb.run(lambda: not source.queue, limit=20)
        written = tb.watch("written")
        tb.set(guard, 1)
        tb.set("position" if guard == "scanning" else "first", unread)
        source.queue.extend(packed_operation(PLAIN, op) for op in [r(50)] * (STORES + 4) + [s()])
        await tb.steps(3 * STORES + 20)
        assert (written(), len(source.queue)) == (4 + STORES + unread, 5 - unread)
        tb.set(guard, 0)
        await tb.steps(20)
        assert (written(), len(source.queue)) == (8 + STORES, 0)
        task = task_layout(PLAIN, "r").from_bits(sink.items[0])
        assert (task.start, task.count, task.row) == (4 + STORES, 4, 4 + STORES)

    simulation(Storage, PLAIN, "r").run(body)


@pytest.mark.parametrize("last", [Operation(Op.TICK, 0, 1000), s(ts=1000), r(ts=1000)])
def test_any_arrival_expires_a_tuple_in_four_cycles(last):
    async def body(tb):
        source = prepare(tb, TIMED, Window(length=5), [r(n, ts=n) for n in range(4)] + [last, s(ts=1000)])
        sink = tb.sink("task")
        await tb.run(lambda: not source.queue, limit=60)
        assert source.cycles[4] - source.cycles[3] == 2 + 4 * 3 + 2  # the last one leaves no tuple to be checked
        task = task_layout(TIMED, "r").from_bits(sink.items[-1])
        assert task.count == (last.stream == 0 and last.op == Op.TUPLE)

    simulation(Storage, TIMED, "r").run(body)


@pytest.mark.parametrize(("now", "live"), [(10, 2), (11, 1), (12, 0)])
def test_a_difference_of_exactly_the_range_is_live(now, live):
    async def body(tb):
        prepare(tb, TIMED, Window(length=5), [r(ts=5), r(ts=6), s(ts=now)])
        sink = tb.sink("task")
        await tb.run(lambda: sink.items, limit=60)
        assert task_layout(TIMED, "r").from_bits(sink.items[0]).count == live

    simulation(Storage, TIMED, "r").run(body)


def test_event_time_wraps_around():
    async def body(tb):
        top = 2**16
        prepare(tb, TIMED, Window(length=5), [r(ts=top - 3), r(ts=top - 1), r(ts=top), r(ts=top + 2), s(ts=top + 3)])
        sink = tb.sink("task")
        await tb.run(lambda: sink.items, limit=60)
        task = task_layout(TIMED, "r").from_bits(sink.items[0])
        assert (task.count, task.row) == (3, 1)

    simulation(Storage, TIMED, "r").run(body)


@pytest.mark.parametrize("probes", [0, 3])
def test_overflow_is_sticky_and_stops_the_input(probes):
    async def body(tb):
        ops = [s(ts=1)] * probes + [r(ts=1)] * 5 + [s(ts=10000)]
        source = prepare(tb, TIMED, Window(length=5), ops)
        sink = tb.sink("task")
        overflow, row, after = tb.watch("overflow"), tb.watch("overflow_row"), tb.watch("overflow_after")
        await tb.run(lambda: tb.cycle and overflow(), limit=60)
        for _ in range(20):
            await tb.step()
            assert (overflow(), row(), after()) == (1, 4, probes)
        assert len(source.queue) == 2
        assert len(sink.items) == probes

    simulation(Storage, TIMED, "r").run(body)


@pytest.mark.parametrize("index", range(3))
def test_cores_store_in_turn(index):
    config = Configuration(keys_r=(8,), keys_s=(8,), tests=((0, 0),), tree=0, cores=3, capacity=4)

    async def body(tb):
        ops = []
        for n in range(11):
            ops += [r(n), s()]
        prepare(tb, config, Window(rows=12), ops, index)
        sink = tb.sink("task")
        await tb.run(lambda: len(sink.items) == 11, limit=60)
        tasks = [task_layout(config, "r").from_bits(p) for p in sink.items]
        assert [t.count for t in tasks] == [len(range(index, n + 1, 3)) for n in range(11)]

    simulation(Storage, config, "r").run(body)
