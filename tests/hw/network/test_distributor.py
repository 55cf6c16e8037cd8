# amaranth: UnusedElaboratable=no
import pytest
from hypothesis import given, settings, strategies as st

from splitjoin_hw.network.distributor import Distributor
from tests.testbench.pauses import flowing, scripted

from ...support.sampling import examples
from ...support.simulations import simulation
from ...support.stimuli import pauses


@given(st.lists(st.integers(0, 255), max_size=16), pauses(), st.lists(pauses(), min_size=1, max_size=4))
@settings(max_examples=examples(30))
def test_every_child_gets_every_item_once(items, idle, backpressure):
    async def body(tb):
        tb.source("i", items, idle)
        sinks = [tb.sink(f"o__{n}", p) for n, p in enumerate(backpressure)]
        await tb.run(lambda: all(len(s.items) >= len(items) for s in sinks), limit=400)
        await tb.steps(5)
        assert [s.items for s in sinks] == [items] * len(sinks)

    simulation(Distributor, 8, len(backpressure)).run(body)


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


@pytest.mark.parametrize("children", [0, -1, "2", 1.5])
def test_distributor_wrong_children(children):
    with pytest.raises(ValueError, match=f"^Children must be a positive integer, not {children!r}$"):
        Distributor(8, children)


def test_arguments_can_be_read_back():
    node = Distributor(8, 3)
    assert (node.shape, node.children) == (8, 3)
