# amaranth: UnusedElaboratable=no
"""A counter adds all that it is given, and its halves are always of the same cycle."""

import pytest
from hypothesis import given, settings, strategies as st

from splitjoin_hw.link.registers import Counter

from ...support.sampling import examples
from ...support.simulations import simulation


@pytest.mark.parametrize("bits", [1, 5, 32])
@given(data=st.data())
@settings(max_examples=examples(15), deadline=None)
def test_steps_are_added_up(bits, data):
    """Steps of 32 bits carry into the high half in most cycles."""
    steps = data.draw(st.lists(st.one_of(st.integers(0, 2**bits - 1), st.just(2**bits - 1)), min_size=10, max_size=60))

    async def body(tb):
        value = tb.watch("value")
        for n, step in enumerate(steps):
            tb.set("step", step)
            await tb.step()
            assert value() == sum(steps[:max(0, n - 1)])

    simulation(Counter, bits).run(body)
