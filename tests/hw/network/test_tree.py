# amaranth: UnusedElaboratable=no
import pytest

from splitjoin.circuit.geometry import levels
from splitjoin_hw.network.tree import DistributionTree
from tests.testbench.bodies import distribute
from tests.testbench.on_amaranth import simulate
from tests.testbench.pauses import Stalls


@pytest.mark.parametrize("fanout", [2, 3, 4])
@pytest.mark.parametrize("leaves", [1, 2, 3, 4, 5, 8, 9, 16, 17])
def test_latency_is_a_cycle_a_level_and_rate_an_item_a_cycle(leaves, fanout):
    async def body(tb):
        sent, sinks = await distribute(tb, leaves, range(30), Stalls(False, False))
        assert sent == list(range(30))
        for sink in sinks:
            first = sink.cycles[0]
            assert sink.cycles == list(range(first, first + 30))
        assert max(sink.cycles[0] for sink in sinks) == circuit.latency == levels(leaves, fanout)

    circuit = DistributionTree(8, leaves=leaves, fanout=fanout)
    simulate(circuit, body)
