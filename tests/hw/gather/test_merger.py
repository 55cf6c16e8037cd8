# amaranth: UnusedElaboratable=no
from itertools import product

import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.circuit.wire import ItemKind
from splitjoin_hw.gather.merger import ComparisonSelect, Merger
from tests.testbench.bodies import STANDING, merge
from tests.testbench.models import Item, item_of, packed_item
from tests.testbench.on_amaranth import simulate
from tests.testbench.pauses import Stalls

from ...support.sampling import examples
from ...support.simulations import simulation
from ...support.stimuli import cells, merger_inputs

FLOWING = Stalls(False, False)


@pytest.mark.parametrize("total", [False, True])
@pytest.mark.parametrize("inputs", [2, 3, 4])
def test_an_item_a_cycle_with_a_latency_of_one(inputs, total):
    """Latency is one cycle more where row ids must be compared. The first items are offered in cycle 2."""
    streams = [[Item(ItemKind.PAIR, 0, row) for row in range(n, 40, inputs)] + [Item(ItemKind.STAR, 0)]
               for n in range(inputs)]

    async def body(tb):
        sink = await merge(tb, streams, FLOWING, total=total)
        assert sink.cycles == list(range(STANDING + 1 + total, STANDING + 42 + total))

    simulation(Merger, inputs).run(body)


@pytest.mark.parametrize("inputs", [2, 3])
def test_an_item_a_cycle_where_one_input_has_all(inputs):
    """Row ids of a long run of one input are compared with one pair of another, and none waits."""
    streams = [[Item(ItemKind.PAIR, 0, row) for row in range(30)] + [Item(ItemKind.STAR, 0)],
               *([[Item(ItemKind.PAIR, 0, 30), Item(ItemKind.STAR, 0)]] * (inputs - 1))]

    async def body(tb):
        sink = await merge(tb, streams, FLOWING, total=True)
        assert sink.cycles == list(range(STANDING + 2, STANDING + 2 + 31 + inputs - 1))

    simulation(Merger, inputs).run(body)


def test_a_group_follows_another_without_a_gap():
    streams = [[item for group in range(8)
                for item in (Item(ItemKind.PAIR, group, 2 * group + n), Item(ItemKind.STAR, group))] for n in range(2)]

    async def body(tb):
        sink = await merge(tb, streams, FLOWING, total=True)
        assert sink.cycles == list(range(STANDING + 2, STANDING + 2 + 24))

    simulation(Merger, 2).run(body)


@given(st.data(), st.integers(2, 3), cells())
@settings(max_examples=examples(15))
def test_few_bits_of_row_ids_tell_the_oldest(data, inputs, stalls):
    """Row ids of a group here differ by less than 16."""
    streams = data.draw(merger_inputs(inputs))

    async def body(tb):
        await merge(tb, streams, stalls, total=True)

    simulation(Merger, inputs, 5).run(body)


def test_without_total_a_silent_input_holds_up_no_pairs():
    async def body(tb):
        tb.set("total", 0)
        tb.source("i__1", [packed_item(Item(ItemKind.PAIR, 0, row)) for row in (1, 3)] +
                  [packed_item(Item(ItemKind.STAR, 0)), packed_item(Item(ItemKind.PAIR, 1, 5))])
        silent, sink = tb.source("i__0"), tb.sink("o")
        await tb.steps(10)
        assert [item_of(p).stored for p in sink.items] == [1, 3]
        silent.queue.extend(packed_item(i) for i in (Item(ItemKind.PAIR, 0, 2), Item(ItemKind.STAR, 0)))
        await tb.steps(10)
        assert [tuple(item_of(p)) for p in sink.items[2:]] == [
            (ItemKind.PAIR, 0, 2), (ItemKind.STAR, 0, 0), (ItemKind.PAIR, 1, 5)]

    simulation(Merger, 2).run(body)


def test_inputs_are_served_in_turn():
    streams = [[Item(ItemKind.PAIR, 0, 3 * row + n) for row in range(5)] + [Item(ItemKind.STAR, 0)] for n in range(3)]

    async def body(tb):
        sink = await merge(tb, streams, FLOWING, total=False)
        served = [item_of(p).stored % 3 for p in sink.items[:-1]]
        assert all(set(served[n:n + 3]) == {0, 1, 2} for n in range(0, 15, 3)), served

    simulation(Merger, 3).run(body)


@pytest.mark.parametrize("older", [False, True])
def test_comparison_select_passes_on_the_outcome_that_is_enabled(older):
    """Without `total` any enabled comparison counts as 1; with it, the compared results must be present."""
    async def body(tb):
        output = tb.watch("o")
        for other_older, present, other_present, enable, total in product(
                range(4), range(2), range(4), range(4), range(2)):
            for name, value in (("other_older", other_older), ("present", present), ("other_present", other_present),
                                ("enable", enable), ("total", total)):
                tb.set(name, value)
            await tb.step()
            assert output() == any(enable >> n & 1 and (not total or (
                present and other_present >> n & 1 and (other_older >> n & 1) != older)) for n in range(2))

    circuit = ComparisonSelect(older=older)
    assert circuit.older == older
    simulate(circuit, body)
