from dataclasses import replace

import pytest

from splitjoin.circuit.geometry import STORES, ring_rows
from splitjoin.circuit.wire import Configuration, Op
from splitjoin_hw.core.layouts import task_layout
from splitjoin_hw.core.storage import Storage
from tests.testbench.models import Operation, Window, packed_operation, packed_window

from ...support.simulations import simulation

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
