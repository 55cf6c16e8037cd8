# amaranth: UnusedElaboratable=no
from amaranth.hdl import Module, Value
from amaranth.lib import wiring
from hypothesis import given, settings, strategies as st

from splitjoin.circuit.wire import ItemKind
from splitjoin_hw.gather.lookahead import LookaheadFifo, offer_of
from tests.testbench.models import Item, packed_item

from ...support.sampling import examples
from ...support.simulations import simulation
from ...support.stimuli import pauses

ITEMS = st.lists(st.builds(Item, st.sampled_from(list(ItemKind)), st.integers(0, 9), st.integers(0, 2**32 - 1)),
                 max_size=25)


class WithOffer(wiring.Component):
    """A `LookaheadFifo` whose ``i_offer`` is derived from ``i``."""

    def __init__(self, bits):
        self.queue = LookaheadFifo(bits)
        super().__init__({name: member for name, member in self.queue.signature.members.items() if name != "i_offer"})

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self.queue
        m.d.comb += [queue.i_offer[name].eq(value) for name, value in offer_of(self.i).items()]
        inner = {path: value for path, _, value in queue.signature.flatten(queue)}
        for path, member, value in self.signature.flatten(self):
            to, of = (inner[path], value) if member.flow == wiring.In else (value, inner[path])
            m.d.comb += Value.cast(to).eq(Value.cast(of))
        return m


@given(ITEMS, pauses(), pauses(), st.sampled_from([1, 5, 32]), st.booleans())
@settings(max_examples=examples(40))
def test_results_pass_in_order_and_two_are_shown(items, idle, stays, bits, wait_if_empty):
    """``stays``: the cycles in which the first result is not popped."""
    async def body(tb):
        tb.set("wait_if_empty", wait_if_empty)
        await tb.step()
        source = tb.source("i", map(packed_item, items), idle)
        valid, kind, present, first, second, item = (tb.watch(name) for name in (
            "valid", "kind", "present", "row_ids__0", "row_ids__1", "item"))
        flags = [tb.watch(name) for name in ("pair", "slice", "star", "end", "not_end")]
        barrier, lets_pass = tb.watch("barrier"), tb.watch("lets_pass")
        gone, came = 0, 0
        for _ in range(160):
            pop = came > gone and not next(stays, False)
            tb.set("pop", pop)
            await tb.step()
            inside = items[gone:came]
            assert valid() == (came > gone)
            assert present() == (1 << min(2, came - gone)) - 1
            shown = inside[0].kind if inside else None
            assert [flag() for flag in flags] == [
                *(shown == k for k in (ItemKind.PAIR, ItemKind.SLICE, ItemKind.STAR, ItemKind.END)),
                shown not in (None, ItemKind.END)]
            assert barrier() == (shown not in (None, ItemKind.PAIR))
            assert lets_pass() == (barrier() if inside else not wait_if_empty)
            if inside:
                assert kind() == inside[0].kind
                assert item() == inside[0].probe | inside[0].stored << 32
            assert [first(), second()][:len(inside)] == [i.stored % 2**bits for i in inside[:2]]
            gone += pop
            came = len(source.cycles)
            assert came - gone <= 4
        assert gone == len(items)

    simulation(WithOffer, bits).run(body)


def test_the_fifo_takes_four_results_and_no_more():
    async def body(tb):
        source = tb.source("i", [packed_item(Item(ItemKind.PAIR, n, n)) for n in range(9)])
        await tb.steps(9)
        assert len(source.cycles) == 4

    simulation(WithOffer, 8).run(body)
