# amaranth: UnusedElaboratable=no
from itertools import chain, cycle

import pytest

from splitjoin.circuit.geometry import credit_fifo_depth
from splitjoin_hw.network.link import CreditFifo
from splitjoin_hw.network.tree import DistributionTree
from tests.testbench.bodies import distribute
from tests.testbench.pauses import Stalls

from ...support.sampling import at_length
from ...support.simulations import simulation


@pytest.mark.parametrize(("stages", "depth"), [(0, 16), (4, 16), (5, 32), (9, 32), (10, 64)])
def test_the_fifo_holds_what_is_in_flight_and_what_is_taken_until_new_items_arrive(stages, depth):
    assert credit_fifo_depth(stages) == CreditFifo(8, stages).depth == depth
    assert depth >= (2 * stages + 2) + (2 * stages + 3) // 2


@pytest.mark.parametrize("leaves", [2, 3, 8])
def test_a_leaf_that_waits_stalls_the_others_only_when_its_fifo_is_full(leaves):
    """The last leaf is stalled for long: the others get as many items as its FIFO holds."""
    async def body(tb):
        class Late(Stalls):
            def sink(self, port=0):
                return iter([port == leaves - 1] * 200 + [False] * 1000)

        _, sinks = await distribute(tb, leaves, range(40), Late(False, False))
        early = [sum(cycle < 200 for cycle in sink.cycles) for sink in sinks]
        assert early[-1] == 0
        assert all(12 <= count <= 16 for count in early[:-1])

    simulation(DistributionTree, 8, leaves=leaves, fanout=2).run(body)


@pytest.mark.parametrize("leaves", [8, at_length(100)])
def test_a_core_that_takes_an_item_in_two_cycles_never_lacks_one(leaves):
    """In trees of any depth, FIFOs once full are never empty. With a hundred leaves, a depth of 16 is too low."""
    async def body(tb):
        class Slow(Stalls):
            def sink(self, port=0):
                return chain([True] * 100, cycle([True, False]))

        _, sinks = await distribute(tb, leaves, range(60), Slow(False, False))
        for sink in sinks:
            first = sink.cycles[0]
            assert sink.cycles == list(range(first, first + 120, 2))

    simulation(DistributionTree, 8, leaves=leaves, fanout=2).run(body)
