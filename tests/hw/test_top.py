# amaranth: UnusedElaboratable=no
import random

import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.circuit.wire import ItemKind, Record, item_record
from splitjoin_hw.circuit import circuit
from splitjoin_hw.splitjoin import SplitJoin
from splitjoin_hw.top import padded
from tests.testbench.bodies import combined
from tests.testbench.driver import answer, case, check_counters, overflowing, top_configuration
from tests.testbench.pauses import MATRIX, Stalls

from ..support.sampling import at_length, examples
from ..support.simulations import simulation
from ..support.stimuli import cells


@pytest.mark.long  # the scenarios and random joins of tests/sim run on the same circuits
@given(st.data(), st.integers(1, 4), st.integers(2, 3), st.integers(2, 3),
       st.sampled_from([(2, 1), (4, 1), (4, 2)]), st.sampled_from([1, 2, 3]), cells(),
       st.integers(0, 10**6))
@settings(max_examples=examples(5))
def test_same_answer_as_the_golden_model(data, cores, fanout, fanin, ring, probes, stalls, seed):
    config = top_configuration(cores, fanout, fanin, *ring, probes)
    largest = config.window_capacity
    rows = st.one_of(st.just(largest), st.integers(1, largest))
    both = st.builds("ROWS {} RANGE {}".format, rows, st.integers(0, 30))
    window = (data.draw(st.one_of(both, st.builds("ROWS {}".format, rows))), data.draw(both))
    order = data.draw(st.sampled_from(["none", "outer(1)", "outer(3)", "outer(100)", "inner(1)", "inner(3)", "total"]))
    job = case(config, random.Random(seed), window=window, order=order, count=data.draw(st.integers(0, 40)))

    async def body(tb):
        registers, _ = await answer(tb, job, stalls)
        await check_counters(registers, job)

    simulation(circuit, config).run(body)


OVERFLOWS = [("total", 2)]


@pytest.mark.parametrize(("order", "seed"), [*OVERFLOWS, *(
    at_length(order, seed) for order in ("none", "outer(1)", "total") for seed in range(4)
    if (order, seed) not in OVERFLOWS)])
def test_overflow_names_the_first_tuple_in_arrival_order(order, seed):
    config = top_configuration(1 + seed, 2, 2)

    async def body(tb):
        await overflowing(tb, config, random.Random(seed), order, list(MATRIX.values())[seed])

    simulation(circuit, config).run(body)


def test_total_order_keeps_more_tuples_in_flight_than_it_can_tell_apart():
    """Results are not taken at first, so that the sequence FIFO fills up and stalls the input."""
    config = top_configuration(2, 2, 2)
    job = case(config, random.Random(3), window=("ROWS 1 RANGE 1", "ROWS 1 RANGE 1"), order="total", count=600)

    async def body(tb):
        class Late(Stalls):
            def sink(self, port=0):
                return iter([True] * 900 + [False] * 100_000)

        _, sink = await answer(tb, job, Late(False, False))
        assert sink.cycles[0] > 900

    simulation(circuit, config).run(body)


def first_star(config):
    """The cycle in which the star of a lone tuple leaves, after the same writes of registers each time."""
    job = case(config, random.Random(1), window=("ROWS 1 RANGE 0", "ROWS 1 RANGE 0"), order="total", count=1)
    cycles = []

    async def body(tb):
        _, sink = await answer(tb, job, Stalls(False, False))
        cycles.extend(c for c, p in zip(sink.cycles, sink.items, strict=True) if combined(p)[1].kind == ItemKind.STAR)

    simulation(circuit, config).run(body)
    return cycles[0]


@pytest.mark.parametrize(("cores", "width", "depth"), [(2, 2, 1), at_length(5, 2, 3), at_length(4, 3, 2)])
def test_latency_grows_by_a_cycle_a_level_of_both_trees(cores, width, depth):
    assert first_star(top_configuration(cores, width, width)) - first_star(top_configuration(1, 2, 2)) == 2 * depth


@pytest.mark.parametrize(("width", "bits"), [(1, 96), (96, 96), (97, 128), (128, 128), (129, 160)])
def test_ports_are_whole_words(width, bits):
    assert padded(Record((("a", width),))) == bits


def test_ports_are_as_wide_as_the_padded_records():
    config = top_configuration(2, 2, 2)
    top = SplitJoin(config)
    assert top.config == config
    assert len(top.i.payload) == padded(config.input_record)
    assert len(top.o.payload) == padded(item_record())
