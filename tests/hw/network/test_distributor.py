# amaranth: UnusedElaboratable=no

from splitjoin_hw.network.distributor import Distributor
from tests.testbench.pauses import flowing, scripted

from ...support.simulations import simulation


def test_children_do_not_wait_for_each_other():
    """A child that is ready takes the head item although its sibling is not."""
    async def body(tb):
        tb.source("i", range(5))
        fast = tb.sink("o__0", flowing())
        slow = tb.sink("o__1", scripted([True] * 10))
        await tb.steps(10)
        assert fast.items == [0]
        assert slow.items == []
        await tb.run(lambda: len(slow.items) == 5, limit=20)
        assert fast.items == slow.items == list(range(5))

    simulation(Distributor, 8, 2).run(body)
