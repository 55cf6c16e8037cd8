# amaranth: UnusedElaboratable=no
import random

import pytest
from amaranth.back import rtlil
from hypothesis import given, settings, strategies as st

from splitjoin.circuit.wire import Configuration, Op
from splitjoin_hw.gate.gate import ScaleGate
from splitjoin_hw.gate.merger import ReadyMerger
from splitjoin_hw.parts import Instances
from tests.testbench.gating import GATE, GateModel, gate, merged, random_sources, record_of
from tests.testbench.models import Operation, packed_operation
from tests.testbench.on_amaranth import simulate
from tests.testbench.pauses import Stalls, random_pauses

from ...support.sampling import examples
from ...support.simulations import simulation
from ...support.stimuli import cells

FLOWING = Stalls(False, False)


def tuples(stream, times, serial=0):
    return [Operation(Op.TUPLE, stream, ts, (serial + n,), ((0, 0),)) for n, ts in enumerate(times)]


def packed(ops):
    return [packed_operation(GATE, op) for op in ops]


def keys(sink):
    """The first key of each tuple that left."""
    return [record_of(GATE, p)["body"] & 0xFFFF for p in sink.items if record_of(GATE, p)["op"] == Op.TUPLE]


@given(st.integers(1, 9), st.integers(0, 2**32), st.integers(0, 2**20), cells())
@settings(max_examples=examples(40))
def test_exactly_the_ready_records_leave_in_arrival_order(count, seed, start, stalls):
    sources = random_sources(random.Random(seed), count, 25, start=start)

    async def body(tb):
        await gate(tb, GATE, sources, stalls)

    simulation(ScaleGate, GATE, count).run(body)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8])
def test_a_record_a_cycle(count):
    """Records of all sources alternate, the worst case for a tree: no node may lose a cycle."""
    sources = [[*tuples(0, range(n, 30 * count, count)), Operation(Op.FLUSH)] for n in range(count)]

    async def body(tb):
        sink = await gate(tb, circuit.config, sources, FLOWING)
        left = sink.cycles[:28 * count]  # the last records wait some cycles until the sources are known to be closed
        assert left == list(range(circuit.latency, circuit.latency + 28 * count))

    circuit = ScaleGate(Configuration(keys_r=(16,), keys_s=(16,), tests=((0, 0),), tree=0, time_bits=16), count)
    simulate(circuit, body)


def test_a_burst_of_one_source_flows_while_the_other_shows_something_later():
    async def body(tb):
        sink = await gate(tb, GATE, [tuples(0, [1] * 40), tuples(1, [2])], FLOWING)
        assert sink.cycles == list(range(2, 42))

    simulation(ScaleGate, GATE, 2).run(body)


@pytest.mark.parametrize(("other", "left"), [
    ([], 0),                                  # silent: any record can still arrive
    (tuples(1, [5], 100), 3),                 # a tie goes to the source with the lower index
    (tuples(0, [5], 100), 2),                 # R before S, whatever the source
    (tuples(0, [4], 100), 1),
    ([Operation(Op.TICK, 0, 5)], 2),          # "nothing below 5": r(5) of source 0 precedes r(5) of source 1
    ([Operation(Op.TICK, 1, 4)], 1),
    ([Operation(Op.TICK, 1, 5)], 3),          # "no S below 5, and no R of 5"
    ([Operation(Op.TICK, 0, 6)], 3),
    ([Operation(Op.FLUSH)], 3),
])
def test_a_tuple_waits_for_what_may_precede_it(other, left):
    """Source 0 has r(4), r(5), s(5)."""
    async def body(tb):
        sink = await gate(tb, GATE, [tuples(0, [4, 5]) + tuples(1, [5], 2), other], FLOWING)
        assert [k for k in keys(sink) if k < 100] == list(range(left))

    simulation(ScaleGate, GATE, 2).run(body)


def test_sources_at_the_same_time_leave_by_stream_then_index():
    async def body(tb):
        sources = [tuples(1, [7, 7], 0), tuples(0, [7], 10), tuples(1, [7], 20), tuples(0, [7, 8], 30)]
        sink = await gate(tb, GATE, [[*s, Operation(Op.FLUSH)] for s in sources], FLOWING)
        assert keys(sink) == [10, 30, 0, 1, 20, 31]

    simulation(ScaleGate, GATE, 4).run(body)


@given(st.data(), st.integers(2, 6), st.integers(0, 2**32), cells())
@settings(max_examples=examples(15))
def test_sources_come_and_go(data, count, seed, stalls):
    """In each phase other sources take part; those that are added begin after all records delivered before.

    A node that has passed on a record relies on that. The number of such nodes depends on timing, so there are two
    bounds.
    """
    rng = random.Random(seed)
    phases = data.draw(st.lists(st.integers(0, 2**count - 1), min_size=1, max_size=4))

    async def body(tb):
        least, most = GateModel(), GateModel(trusting=True)
        now, before, must = rng.randrange(1000), 0, 0
        order: list[Operation] = []
        agents = [tb.source(f"i__{n}", (), stalls.source(n)) for n in range(count)]
        sink = tb.sink("o", stalls.sink())
        refused = tb.watch("refused")
        for active in phases:
            tb.set("active", active)
            for n in range(count):
                for model in (least, most):
                    if before >> n & 1 and not active >> n & 1:
                        model.remove(n)
                    if active >> n & 1 and not before >> n & 1:
                        model.add(n)
            must += len(least.ready())
            order += most.ready()
            await tb.steps(circuit.latency)
            sources = random_sources(rng, count, 6, start=now + 1)
            now = max([now, *(op.ts for source in sources for op in source)])
            for n, source in enumerate(sources):
                # Only as many records as surely fit: one still at the port when its source is removed is not accepted.
                ops = [op for op in source if op.op != Op.FLUSH] if active >> n & 1 else []
                for op in ops[:2 - least.waiting(n)]:
                    must += len(least.deliver(n, op))
                    order += most.deliver(n, op)
                    agents[n].queue.append(packed_operation(GATE, op))
            before = active
            await tb.run(lambda: not any(a.queue for a in agents), limit=3000)
            # Bursts of stalls last 40 cycles.
            await tb.steps(60 + 60 * max(0, must - len(sink.items)))
            assert sink.items == packed(order)[:len(sink.items)]
            assert len(sink.items) >= must
        assert refused() == 0

    circuit = ScaleGate(GATE, count)
    simulate(circuit, body)


@given(st.integers(2, 5), st.integers(0, 2**32), st.integers(1, 60), cells())
@settings(max_examples=examples(15))
def test_what_was_taken_from_a_source_that_is_removed_leaves(count, seed, cycles, stalls):
    sources = [[op for op in source if op.op != Op.FLUSH] for source in random_sources(random.Random(seed), count, 25)]
    gone = seed % count

    async def body(tb):
        tb.set("active", 2**count - 1)
        agents = [tb.source(f"i__{n}", packed(source), stalls.source(n)) for n, source in enumerate(sources)]
        sink = tb.sink("o", stalls.sink())
        await tb.steps(cycles)
        tb.set("active", 2**count - 1 - 2**gone)
        await tb.steps(1)
        taken = len(agents[gone].cycles)
        for n, agent in enumerate(agents):
            if n != gone:
                agent.queue.append(packed_operation(GATE, Operation(Op.FLUSH)))
        kept = [[*source[:taken if n == gone else None], Operation(Op.FLUSH)] for n, source in enumerate(sources)]
        wanted = packed(merged(kept))
        await tb.run(lambda: len(sink.items) >= len(wanted), limit=1000 + 60 * len(wanted))
        await tb.steps(24)
        assert sink.items == wanted
        assert len(agents[gone].cycles) == taken

    simulation(ScaleGate, GATE, count).run(body)


def test_an_inactive_source_is_not_taken_from_and_holds_nothing_back():
    async def body(tb):
        silent = tb.source("i__0", packed(tuples(0, [1])))
        tb.source("i__1", packed(tuples(0, [3, 4], 10)))
        sink = tb.sink("o")
        tb.set("active", 0b10)
        await tb.steps(20)
        assert (keys(sink), silent.cycles) == ([10, 11], [])

    simulation(ScaleGate, GATE, 2).run(body)


def test_what_comes_too_late_is_refused_and_counted():
    """A source out of its own order, and one that was added too late. A late heartbeat is not counted."""
    async def body(tb):
        first = tb.source("i__0", packed([*tuples(0, [10, 20]), *tuples(0, [15], 50), *tuples(0, [20, 30], 2)]))
        late = tb.source("i__1")
        sink, refused = tb.sink("o"), tb.watch("refused")
        tb.set("active", 0b01)
        await tb.steps(20)
        assert (keys(sink), refused()) == ([0, 1, 2, 3], 1)
        tb.set("active", 0b11)
        late.queue.extend(packed([*tuples(0, [29], 60), Operation(Op.TICK, 0, 28), *tuples(1, [29, 30], 61),
                                  Operation(Op.FLUSH)]))
        first.queue.extend(packed([*tuples(0, [30], 4), Operation(Op.FLUSH)]))
        await tb.steps(20)
        assert (keys(sink), refused()) == ([0, 1, 2, 3, 4, 62], 3)

    simulation(ScaleGate, GATE, 2).run(body)


def test_a_flush_ends_a_round_and_the_next_begins():
    async def body(tb):
        def offer(n, times, serial):
            agents[n].queue.extend(packed([*tuples(0, times, serial), Operation(Op.FLUSH)]))

        agents = [tb.source(f"i__{n}") for n in range(3)]
        sink = tb.sink("o", stalled)
        tb.set("active", 0b111)
        for n, times in enumerate([[1, 3], [2], []]):
            offer(n, times, 10 * n)
        offer(0, [200], 90)
        await tb.steps(60)
        tb.set("active", 0b011)  # the second round lacks source 2; source 1 delivers no tuple
        offer(1, [], 0)
        await tb.steps(60)
        ops = [record_of(GATE, p)["op"] for p in sink.items]
        assert ops == [Op.TUPLE] * 3 + [Op.FLUSH, Op.TUPLE, Op.FLUSH]
        assert keys(sink) == [0, 10, 1, 90]
        # Sources that are removed end no round, even if a FLUSH ended an earlier one.
        tb.set("active", 0b001)
        agents[0].queue.extend(packed(tuples(0, [300], 95)))
        await tb.steps(60)
        tb.set("active", 0)
        await tb.steps(60)
        assert [record_of(GATE, p)["op"] for p in sink.items[6:]] == [Op.TUPLE]

    for share in (0, 0.5, 0.9):
        stalled = random_pauses(7, share)
        simulation(ScaleGate, GATE, 3).run(body)


def test_a_round_of_a_single_cycle_in_a_deep_tree_keeps_its_record():
    """The FLUSH is accepted before the root's ``o_open`` shows that a source is open."""
    async def body(tb):
        sources = [[*tuples(0, [5]), Operation(Op.FLUSH)], *[[Operation(Op.FLUSH)]] * 15]
        sink = await gate(tb, GATE, sources, FLOWING)
        assert sink.cycles[0] == circuit.latency == 5

    circuit = ScaleGate(GATE, 16)
    simulate(circuit, body)


@pytest.mark.parametrize("make", [lambda c: ScaleGate(c, 2), ReadyMerger])
def test_gate_without_a_time_column(make):
    untimed = Configuration(keys_r=(4,), keys_s=(4,), tests=((0, 0),), tree=0)
    with pytest.raises(ValueError, match=r"^A gate merges by event time, so time_bits must be from 2 to 64, not 0; "):
        make(untimed)


def test_nodes_can_be_instances_of_one_module():
    parts = Instances("g")
    text = rtlil.convert(ScaleGate(GATE, 4, parts=parts), name="g")
    assert text.count("cell \\g_ready_merger ") == 3
    assert text.count("cell \\g_reset ") == 3
    assert set(parts.modules) == {"g_ready_merger", "g_reset"}
    for name, part in parts.modules.items():
        assert f"module \\{name}\n" in rtlil.convert(part, name=name)
