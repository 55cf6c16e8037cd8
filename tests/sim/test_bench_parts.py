"""The benches' own parts: every check of a circuit must be able to fail."""

import random
from itertools import islice

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.wire import ItemKind
from splitjoin_hw.network.skid_buffer import SkidBuffer
from tests.testbench.checks import check_answer, check_combined, check_merged
from tests.testbench.contract import Contract
from tests.testbench.designs import design
from tests.testbench.models import Item
from tests.testbench.on_amaranth import simulate
from tests.testbench.pauses import MATRIX, bursts, random_pauses
from tests.testbench.stimuli import random_groups

PAIR, STAR, END, SLICE = ItemKind.PAIR, ItemKind.STAR, ItemKind.END, ItemKind.SLICE


def test_contract_allows_what_it_should():
    contract = Contract("o")
    for cycle, (valid, ready, payload) in enumerate(
            [(0, 1, 9), (1, 0, 5), (1, 0, 5), (1, 1, 5), (1, 1, 6), (0, 0, 1), (1, 0, 3), (1, 1, 3), (0, 0, 0)]):
        contract.check(cycle, bool(valid), bool(ready), payload)


def test_contract_names_port_and_cycle_of_a_lowered_valid():
    contract = Contract("o__2")
    contract.check(7, True, False, 0x1F)
    with pytest.raises(AssertionError, match=r"^port o__2: valid was lowered in cycle 9, but the offer of cycle 7 "
                                             r"\(0x1f\) had not been taken"):
        contract.check(9, False, True, 0x1F)


def test_contract_names_port_and_cycle_of_a_changed_payload():
    contract = Contract("left")
    contract.check(3, True, False, 1)
    contract.check(4, True, False, 1)
    with pytest.raises(AssertionError, match=r"^port left: payload changed in cycle 5 from 0x1 to 0x2, but the offer "
                                             r"of cycle 3 had not been taken"):
        contract.check(5, True, True, 2)


class Fickle(wiring.Component):
    """A source that breaks the contract: offers in every other cycle, even if the offer was not accepted."""

    o: Out(stream.Signature(8))

    def elaborate(self, platform):
        m = Module()
        count = Signal(8)
        m.d.sync += count.eq(count + 1)
        m.d.comb += [self.o.valid.eq(count[0]), self.o.payload.eq(count)]
        return m


class Deaf(wiring.Component):
    """A sink that accepts nothing."""

    i: In(stream.Signature(8))

    def elaborate(self, platform):
        return Module()


def test_a_sink_fails_the_test_of_a_circuit_that_breaks_the_contract():
    async def body(tb):
        tb.sink("o", iter([True] * 100))
        await tb.steps(20)

    with pytest.raises(AssertionError, match=r"^port o: valid was lowered in cycle 2"):
        simulate(Fickle(), body)


def test_cycle_limit_tells_how_far_each_port_is():
    async def body(tb):
        source = tb.source("i", [1, 2, 3])
        await tb.run(lambda: not source.queue, limit=50)

    with pytest.raises(AssertionError, match=r"^no end after 50 cycles \(at cycle 50\): i has 3 items to send"):
        simulate(Deaf(), body)


def test_pauses_are_a_function_of_their_seed():
    for make in (lambda seed: random_pauses(seed, 0.5), lambda seed: bursts(seed, 9), MATRIX["both"].seeded(3).source):
        once, again, other = (list(islice(make(seed), 300)) for seed in (1, 1, 2))
        assert once == again != other
        assert True in once
        assert False in once
    assert not any(islice(MATRIX["flowing"].source(), 100))
    assert not any(islice(MATRIX["idle"].sink(), 100))
    assert not any(islice(MATRIX["backpressure"].source(), 100))


def test_latency_of_the_buffer_is_seen_by_the_agents():
    async def body(tb):
        source, sink = tb.source("i", [4, 5]), tb.sink("o")
        await tb.run(lambda: len(sink.items) == 2, limit=9)
        assert (source.cycles, sink.cycles, sink.items) == ([0, 1], [1, 2], [4, 5])

    simulate(SkidBuffer(8), body)


@pytest.mark.parametrize("out", [
    [Item(PAIR, 0, 1), Item(STAR, 0), Item(END)],  # a pair is missing
    [Item(PAIR, 0, 1), Item(PAIR, 0, 2), Item(PAIR, 0, 2), Item(STAR, 0), Item(END)],  # one came twice
    [Item(PAIR, 0, 1), Item(STAR, 0), Item(PAIR, 0, 2), Item(END)],  # one is in the wrong group
    [Item(PAIR, 0, 1), Item(PAIR, 0, 2), Item(STAR, 1), Item(END)],  # another star
    [Item(PAIR, 0, 1), Item(PAIR, 0, 2), Item(STAR, 0)],  # no END
    [Item(PAIR, 0, 2), Item(PAIR, 0, 1), Item(STAR, 0), Item(END)],  # not sorted
])
def test_check_merged_finds(out):
    inputs = [[Item(PAIR, 0, 1), Item(STAR, 0), Item(END)], [Item(PAIR, 0, 2), Item(STAR, 0), Item(END)]]
    check_merged(inputs, [Item(PAIR, 0, 1), Item(PAIR, 0, 2), Item(STAR, 0), Item(END)], total=True)
    with pytest.raises(AssertionError):
        check_merged(inputs, out, total=True)


@pytest.mark.parametrize("out", [
    [Item(PAIR, 0, 1), Item(PAIR, 0, 2), Item(SLICE, 0), Item(PAIR, 0, 3), Item(STAR, 0), Item(END)],  # wrong slice
    [Item(PAIR, 0, 1), Item(SLICE, 0), Item(SLICE, 0), Item(PAIR, 0, 2), Item(PAIR, 0, 3), Item(STAR, 0), Item(END)],
    [Item(PAIR, 0, 1), Item(PAIR, 0, 2), Item(PAIR, 0, 3), Item(STAR, 0), Item(END)],  # no inner star
])
def test_check_merged_finds_wrong_slices(out):
    """One input has two slices, the other one has one."""
    inputs = [[Item(PAIR, 0, 1), Item(SLICE, 0), Item(PAIR, 0, 2), Item(PAIR, 0, 3), Item(STAR, 0), Item(END)],
              [Item(STAR, 0), Item(END)]]
    check_merged(inputs, inputs[0], total=True)
    with pytest.raises(AssertionError):
        check_merged(inputs, out, total=True)


@pytest.mark.parametrize("sequence", [None, [1, 0]])
@pytest.mark.parametrize("out", [
    [(0, Item(STAR, 0)), (1, Item(STAR, 1))],  # no END
    [(0, Item(STAR, 0)), (0, Item(END))],  # a side is missing
    [(0, Item(STAR, 1)), (1, Item(STAR, 0)), (0, Item(END))],  # the sides are exchanged
])
def test_check_combined_finds(out, sequence):
    left, right = [Item(STAR, 0), Item(END)], [Item(STAR, 1), Item(END)]
    check_combined(left, right, [(1, Item(STAR, 1)), (0, Item(STAR, 0)), (0, Item(END))], sequence)
    with pytest.raises(AssertionError):
        check_combined(left, right, out, sequence)


def test_check_combined_finds_a_side_out_of_turn():
    left, right = [Item(STAR, 0), Item(END)], [Item(STAR, 1), Item(END)]
    with pytest.raises(AssertionError):
        check_combined(left, right, [(0, Item(STAR, 0)), (1, Item(STAR, 1)), (0, Item(END))], [1, 0])


@pytest.mark.parametrize("order", ["none", "outer", "total"])
def test_check_answer_finds(order):
    wanted = [(0, Item(PAIR, 0, 0)), (0, Item(STAR, 0)), (0, Item(PAIR, 1, 0)), (0, Item(STAR, 1))]
    check_answer(wanted, wanted, order)
    for wrong in (wanted[1:], [wanted[0], *wanted], [wanted[1], wanted[0], *wanted[2:]], wanted[:3]):
        with pytest.raises(AssertionError):
            check_answer(wrong, wanted, order)


def test_groups_end_with_their_barriers():
    streams = random_groups(random.Random(1), 3, 30)
    assert [i.kind for i in streams[0]].count(STAR) == 30
    assert all(s[-1].kind == END for s in streams)


def test_design_wrong_name():
    with pytest.raises(ValueError, match=r"^Design must be combiner, not 'bogus'$"):
        design("bogus")
