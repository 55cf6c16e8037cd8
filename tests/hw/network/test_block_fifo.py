# amaranth: UnusedElaboratable=no
import pytest

from splitjoin_hw.network.block_fifo import BlockFifo, HalfRateFifo
from tests.testbench.on_amaranth import simulate
from tests.testbench.pauses import scripted


@pytest.mark.parametrize(("kind", "cycles"), [(BlockFifo, 1), (HalfRateFifo, 2)])
def test_rate_and_latency(kind, cycles):
    async def body(tb):
        source, sink = tb.source("i", range(100)), tb.sink("o")
        await tb.run(lambda: len(sink.items) == 100, limit=300)
        assert (source.cycles[0], sink.cycles[0]) == (0, 4)
        assert sink.cycles == [4 + cycles * n for n in range(100)]

    simulate(kind(8, 16), body)


@pytest.mark.parametrize(("kind", "behind"), [(BlockFifo, 16), (HalfRateFifo, 1)])
@pytest.mark.parametrize("depth", [4, 16])
def test_holds_as_many_as_it_says(kind, behind, depth):
    async def body(tb):
        source, sink = tb.source("i", range(80)), tb.sink("o", scripted([True] * 60))
        await tb.steps(60)
        assert len(source.cycles) - behind in (depth - 1, depth)
        await tb.run(lambda: len(sink.items) == 80, limit=300)
        assert sink.items == list(range(80))

    fifo = kind(8, depth)
    assert (fifo.shape, fifo.depth) == (8, depth)
    simulate(fifo, body)
