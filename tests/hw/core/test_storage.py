import pytest
from hypothesis import given, settings, strategies as st
from splitjoin.device.wire import Configuration, ItemKind, Op
from splitjoin.hw.core.storage import Storage, task_layout
from splitjoin.sim.bench.models import Operation, RegionModel, Window, packed_operation, packed_window
from splitjoin.sim.bench.on_amaranth import simulate

from ..stimuli import cells, configurations, operations, windows

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
@settings(max_examples=40)
def test_tasks_are_snapshots_of_the_window(data, config, side, stalls):
    window = data.draw(windows(config))
    index = data.draw(st.integers(0, config.cores - 1))
    ops = data.draw(operations(config))
    model = RegionModel(config, side, index, window)
    wanted = []
    for op in ops:
        items = model.apply(op)
        kinds = [item.kind for item in items]
        if model.overflow is not None:
            break
        if op.op == Op.FLUSH:
            wanted.append((0, None, None, ItemKind.STAR in kinds, True, None))
        elif op.op == Op.TUPLE and "rs"[op.stream] != side:
            rows = model.live
            probe = sum(w[4] is False for w in wanted)
            wanted.append((len(rows), rows[0] if rows else None, probe, ItemKind.STAR in kinds, False, op.bounds))

    async def body(tb):
        source = prepare(tb, config, window, ops, index)
        source.pauses = stalls.source()
        sink = tb.sink("task", stalls.sink())
        overflow = tb.watch("overflow")
        await tb.run(lambda: not source.queue or (tb.cycle and overflow()), limit=60 * (len(ops) + 4) + 500)
        await tb.steps(60)
        found = []
        for payload in sink.items:
            task = task_layout(config, side).from_bits(payload)
            bounds = tuple((task.bounds[f"lo{j}"], task.bounds[f"hi{j}"]) for j in range(len(config.tests)))
            found.append((task.count, task.row + index if task.count else None, None if task.end else task.probe,
                          bool(task.star), bool(task.end), None if task.end else bounds))
        assert found == wanted
        assert overflow() == (model.overflow is not None)

    simulate(Storage(config, side), body)


def test_keys_belong_to_the_slot_of_two_cycles_ago():
    async def body(tb):
        source = prepare(tb, PLAIN, Window(), [r(key) for key in (11, 22, 33, 44)])
        keys = tb.watch("keys")
        await tb.run(lambda: not source.queue, limit=20)
        seen = []
        for slot in (2, 0, 3, 1, 1, 1):
            tb.set("slot", slot)
            await tb.step()
            seen.append(keys())
        assert seen[2:] == [33, 11, 44, 22]

    simulate(Storage(PLAIN, "r"), body)


def test_a_store_takes_a_cycle_and_pushes_out_the_oldest():
    async def body(tb):
        source = prepare(tb, PLAIN, Window(rows=4), [r(n) for n in range(20)] + [s()])
        sink = tb.sink("task")
        await tb.run(lambda: sink.items, limit=40)
        task = task_layout(PLAIN, "r").from_bits(sink.items[0])
        assert (task.count, task.row) == (4, 16)
        assert source.cycles == list(range(21))

    simulate(Storage(PLAIN, "r"), body)


@pytest.mark.parametrize("unread", range(4))
def test_a_store_waits_for_the_slot_that_is_still_to_be_read(unread):
    """The ring is full; the scan under way still has to read from slot ``unread`` on; the store wants slot 0."""
    async def body(tb):
        source = prepare(tb, PLAIN, Window(rows=4), [r(n) for n in range(4)])
        await tb.run(lambda: not source.queue, limit=10)
        tb.set("busy", 1)
        tb.set("unread", unread)
        source.queue.extend([packed_operation(PLAIN, r(9))])
        await tb.steps(10)
        assert len(source.queue) == (1 if unread == 0 else 0)
        tb.set("unread", 1)
        await tb.steps(2)
        assert not source.queue

    simulate(Storage(PLAIN, "r"), body)


def test_a_store_does_not_wait_when_no_scan_is_under_way():
    async def body(tb):
        tb.set("busy", 0)
        tb.set("unread", 0)
        source = prepare(tb, PLAIN, Window(rows=4), [r(n) for n in range(9)])
        await tb.run(lambda: not source.queue, limit=9)

    simulate(Storage(PLAIN, "r"), body)


def test_expired_slots_are_not_overwritten_before_they_are_read():
    """All tuples expire by time while a scan is about to read them: new ones wait until it has."""
    async def body(tb):
        source = prepare(tb, TIMED, Window(length=5), [r(n, ts=0) for n in range(4)] + [s(ts=5)])
        tb.sink("task")
        await tb.run(lambda: not source.queue, limit=20)
        tb.set("busy", 1)
        tb.set("unread", 0)
        source.queue.extend(packed_operation(TIMED, r(50 + n, ts=1000)) for n in range(3))
        await tb.steps(30)
        assert len(source.queue) == 3
        keys = tb.watch("keys")
        read = []
        for slot in (0, 1, 2, 3, 3, 3):
            tb.set("slot", slot)
            tb.set("unread", slot)
            await tb.step()
            read.append(keys())
        assert read[2:] == [0, 1, 2, 3]
        assert not source.queue

    simulate(Storage(TIMED, "r"), body)


@pytest.mark.parametrize("last", [Operation(Op.TICK, 0, 1000), s(ts=1000), r(ts=1000)])
def test_any_arrival_expires_a_tuple_in_two_cycles(last):
    async def body(tb):
        source = prepare(tb, TIMED, Window(length=5), [r(n, ts=n) for n in range(4)] + [last, s(ts=1000)])
        sink = tb.sink("task")
        await tb.run(lambda: not source.queue, limit=30)
        assert source.cycles[4] - source.cycles[3] == 2 * 4
        task = task_layout(TIMED, "r").from_bits(sink.items[-1])
        assert task.count == (last.stream == 0 and last.op == Op.TUPLE)

    simulate(Storage(TIMED, "r"), body)


@pytest.mark.parametrize(("now", "live"), [(10, 2), (11, 1), (12, 0)])
def test_a_difference_of_exactly_the_range_is_live(now, live):
    async def body(tb):
        prepare(tb, TIMED, Window(length=5), [r(ts=5), r(ts=6), s(ts=now)])
        sink = tb.sink("task")
        await tb.run(lambda: sink.items, limit=30)
        assert task_layout(TIMED, "r").from_bits(sink.items[0]).count == live

    simulate(Storage(TIMED, "r"), body)


def test_event_time_wraps_around():
    async def body(tb):
        top = 2**16
        prepare(tb, TIMED, Window(length=5), [r(ts=top - 3), r(ts=top - 1), r(ts=top), r(ts=top + 2), s(ts=top + 3)])
        sink = tb.sink("task")
        await tb.run(lambda: sink.items, limit=30)
        task = task_layout(TIMED, "r").from_bits(sink.items[0])
        assert (task.count, task.row) == (3, 1)

    simulate(Storage(TIMED, "r"), body)


@pytest.mark.parametrize("probes", [0, 3])
def test_overflow_is_sticky_and_stops_the_input(probes):
    async def body(tb):
        ops = [s(ts=1)] * probes + [r(ts=1)] * 5 + [s(ts=10000)]
        source = prepare(tb, TIMED, Window(length=5), ops)
        sink = tb.sink("task")
        overflow, row, after = tb.watch("overflow"), tb.watch("overflow_row"), tb.watch("overflow_after")
        await tb.run(lambda: tb.cycle and overflow(), limit=30)
        for _ in range(20):
            await tb.step()
            assert (overflow(), row(), after()) == (1, 4, probes)
        assert len(source.queue) == 2
        assert len(sink.items) == probes

    simulate(Storage(TIMED, "r"), body)


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

    simulate(Storage(config, "r"), body)
