from itertools import product

import pytest
from splitjoin.hw.gather.verdict import Verdict
from splitjoin.sim.testbench.on_amaranth import simulate


@pytest.mark.parametrize("older", [False, True])
def test_it_says_what_a_comparison_that_is_asked_says(older):
    """All inputs there are. Without `total` it does not matter what is compared; with it, that must be there."""
    async def body(tb):
        said = tb.watch("o")
        for later, here, others, asked, total in product(range(4), range(2), range(4), range(4), range(2)):
            for name, value in (("later", later), ("here", here), ("others", others), ("asked", asked),
                                ("total", total)):
                tb.set(name, value)
            await tb.step()
            assert said() == any(asked >> n & 1 and (not total or (
                here and others >> n & 1 and (later >> n & 1) != older)) for n in range(2))

    circuit = Verdict(older=older)
    assert circuit.older == older
    simulate(circuit, body)
