# amaranth: UnusedElaboratable=no
import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.circuit.geometry import levels
from splitjoin.circuit.wire import ItemKind
from splitjoin_hw.gather.tree import GatherTree
from tests.testbench.bodies import STANDING, merge, merge_without
from tests.testbench.models import Item
from tests.testbench.on_amaranth import simulate
from tests.testbench.pauses import Stalls

from ...support.sampling import at_length, examples
from ...support.simulations import simulation
from ...support.stimuli import cells, merger_inputs


@given(st.data(), st.integers(1, 9), st.integers(2, 4), st.booleans(), cells())
@settings(max_examples=examples(15, 125))
def test_groups_stay_together(data, leaves, fanin, total, stalls):
    streams = data.draw(merger_inputs(leaves))

    async def body(tb):
        await merge(tb, streams, stalls, total=total)

    simulation(GatherTree, leaves=leaves, fanin=fanin).run(body)


@given(st.data(), st.integers(2, 9), st.integers(2, 4), st.booleans(), cells())
@settings(max_examples=examples(10))
def test_an_input_that_is_dead_is_one_that_has_reached_every_barrier(data, inputs, fanin, total, stalls):
    streams = data.draw(merger_inputs(inputs))
    ends = [None if n == alive else data.draw(st.none() | st.integers(0, len(items)))
            for alive in [data.draw(st.integers(0, inputs - 1))] for n, items in enumerate(streams)]

    async def body(tb):
        await merge_without(tb, streams, ends, stalls, total=total, dead="dead")

    simulation(GatherTree, leaves=inputs, fanin=fanin, isolates=True).run(body)


@pytest.mark.parametrize("fanin", [2, 3, 4])
@pytest.mark.parametrize("leaves", [1, 2, 3, 5, at_length(8), at_length(9)])
def test_latency_is_a_cycle_a_level_and_rate_an_item_a_cycle(leaves, fanin):
    """A group of pairs on all inputs leaves without a gap; the latency of its first pair is one cycle per level."""
    streams = [[Item(ItemKind.PAIR, 0, row) for row in range(n, 10 * leaves, leaves)] + [Item(ItemKind.STAR, 0)]
               for n in range(leaves)]

    async def body(tb):
        sink = await merge(tb, streams, Stalls(False, False), total=False)
        first = sink.cycles[0]
        assert first - STANDING <= circuit.latency == levels(leaves, fanin)
        assert sink.cycles == list(range(first, first + 10 * leaves + 1))

    circuit = GatherTree(leaves=leaves, fanin=fanin)
    simulate(circuit, body)


@pytest.mark.parametrize("fanin", [2, 3, 4])
@pytest.mark.parametrize("leaves", [2, 3, 5, 9])
def test_a_star_takes_a_cycle_a_level(leaves, fanin):
    async def body(tb):
        sink = await merge(tb, [[Item(ItemKind.STAR, 0)]] * leaves, Stalls(False, False), total=True)
        assert sink.cycles == [STANDING + levels(leaves, fanin)]

    simulation(GatherTree, leaves=leaves, fanin=fanin).run(body)
