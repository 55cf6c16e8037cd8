# amaranth: UnusedElaboratable=no
from itertools import chain, cycle

import pytest
from splitjoin.hw.network.landing import Landing, landing_places
from splitjoin.hw.network.relay import Relay
from splitjoin.hw.network.tree import DistributionTree
from splitjoin.sim.testbench.bodies import distribute
from splitjoin.sim.testbench.on_amaranth import simulate
from splitjoin.sim.testbench.pauses import Stalls


@pytest.mark.parametrize(("hops", "places"), [(0, 16), (4, 16), (5, 32), (9, 32), (10, 64)])
def test_there_are_places_for_all_that_may_come_and_for_what_is_taken_until_it_comes(hops, places):
    assert landing_places(hops) == Landing(8, hops).places == places
    assert places >= (2 * hops + 2) + (2 * hops + 3) // 2


@pytest.mark.parametrize("hops", [-1, "1", None, 1.0])
def test_landing_wrong_hops(hops):
    with pytest.raises(ValueError, match=f"^Hops must be an integer of at least 0, not {hops!r}$"):
        Landing(8, hops)


@pytest.mark.parametrize("children", [0, -1, "2", None])
def test_relay_wrong_children(children):
    with pytest.raises(ValueError, match=f"^Children must be a positive integer, not {children!r}$"):
        Relay(8, children)


def test_arguments_can_be_read_back():
    assert (Landing(8, 3).shape, Landing(8, 3).hops) == (8, 3)
    assert (Relay(8, 3).shape, Relay(8, 3).children) == (8, 3)


@pytest.mark.parametrize("leaves", [2, 3, 8])
def test_a_leaf_that_waits_holds_up_the_others_only_when_its_queue_is_full(leaves):
    """The last leaf takes nothing for long: so many items come to the others as its queue has places for."""
    async def body(tb):
        class Late(Stalls):
            def sink(self, port=0):
                return iter([port == leaves - 1] * 200 + [False] * 1000)

        _, sinks = await distribute(tb, leaves, range(40), Late(False, False))
        early = [sum(cycle < 200 for cycle in sink.cycles) for sink in sinks]
        assert early[-1] == 0
        assert all(12 <= count <= 16 for count in early[:-1])

    simulate(DistributionTree(8, leaves=leaves, fanout=2), body)


@pytest.mark.parametrize("leaves", [8, 32, 100])
def test_a_core_that_takes_an_item_in_two_cycles_never_lacks_one(leaves):
    """However deep the tree is, once its queues are full. With a hundred leaves, sixteen places would not be enough."""
    async def body(tb):
        class Slow(Stalls):
            def sink(self, port=0):
                return chain([True] * 100, cycle([True, False]))

        _, sinks = await distribute(tb, leaves, range(100), Slow(False, False))
        for sink in sinks:
            first = sink.cycles[0]
            assert sink.cycles == list(range(first, first + 200, 2))

    simulate(DistributionTree(8, leaves=leaves, fanout=2), body)
