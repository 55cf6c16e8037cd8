# amaranth: UnusedElaboratable=no
import pytest

from splitjoin_hw.network.queue import Queue
from tests.testbench.on_amaranth import simulate
from tests.testbench.pauses import scripted


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
