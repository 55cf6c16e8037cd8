# amaranth: UnusedElaboratable=no
import pytest
from hypothesis import given, settings, strategies as st

from splitjoin_hw.network.queue import Queue
from tests.testbench.on_amaranth import simulate
from tests.testbench.pauses import scripted

from ...support.sampling import examples
from ...support.simulations import simulation
from ...support.stimuli import pauses


@given(st.integers(2, 9), st.lists(st.integers(0, 255), max_size=30), pauses(), pauses())
@settings(max_examples=examples(30))
def test_items_pass_in_order_and_level_counts_them(depth, items, idle, backpressure):
    async def body(tb):
        source, sink = tb.source("i", items, idle), tb.sink("o", backpressure)
        level = tb.watch("level")
        held = 0
        for _ in range(150):
            await tb.step()
            assert level() == held
            held = len(source.cycles) - len(sink.cycles)
            assert held <= depth
        assert sink.items == items

    simulation(Queue, 8, depth).run(body)


@pytest.mark.parametrize("depth", [2, 3, 16])
def test_holds_as_many_as_it_says_at_full_rate(depth):
    async def body(tb):
        source, sink = tb.source("i", range(60)), tb.sink("o", scripted([True] * 40))
        await tb.steps(40)
        assert len(source.cycles) == depth
        await tb.run(lambda: len(sink.items) == 60, limit=100)
        assert sink.cycles == list(range(40, 100))

    queue = Queue(8, depth)
    assert queue.depth == depth
    simulate(queue, body)


@pytest.mark.parametrize("depth", [1, 0, -3, "16", 2.0])
def test_queue_wrong_depth(depth):
    with pytest.raises(ValueError, match=f"^Depth must be an integer of at least 2, not {depth!r}$"):
        Queue(8, depth)
