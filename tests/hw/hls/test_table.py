# amaranth: UnusedElaboratable=no
"""Tests that are looked up, one by one: exact at both ends of the interval, with low parts of any number of digits."""

import random

import pytest
from amaranth.hdl import Cat, Const, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from splitjoin_hw.hls.table import DIGIT, TableTest

from ...support.simulations import simulation

WIDTH = 8
#: Cycles from a key to the outcome, at most.
LATENCY = 3


class LookUp(wiring.Component):
    """The test of one key, with its tables' outputs for the low end computed directly."""

    def __init__(self, above, *, apart):
        self._test = TableTest("generic", WIDTH, above, apart=apart)
        super().__init__({"key": In(WIDTH), "low": In(WIDTH + 1), "within": Out(1)})

    def elaborate(self, platform):
        m, test = Module(), self._test
        key, bound = test.key(self.key), test.bound(self.low)
        outputs = []
        for digit in test.digits:
            at = Cat(key[digit.first:digit.stop], Const(0, DIGIT))[:DIGIT]
            outputs += test.written(at, bound)[len(outputs):len(outputs) + digit.outputs]
        low = self.low[:test.low] if test.low else None
        m.d.comb += self.within.eq(test.within(m, "", outputs, key, low))
        return m


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("above", [0, 1, 2, 3, 4, 8, 15, 20, 31, 32, 100])
def test_within_is_the_interval(above, apart):
    """Low ends from below all keys, which wrap around, to one beyond them."""
    rng = random.Random(above)
    cases = [(low, key) for low in (-above, -1, 0, 2**WIDTH - 1, 2**WIDTH, *rng.sample(range(2**WIDTH), 8))
             for key in {*(low + edge for edge in (-1, 0, 1, above // 2, above - 1, above, above + 1)),
                         *range(0, 2**WIDTH, 37)} if 0 <= key < 2**WIDTH]

    async def body(tb):
        within = tb.watch("within")
        for low, key in cases:
            tb.set("low", low % 2**(WIDTH + 1))
            tb.set("key", key)
            await tb.steps(LATENCY + 1)
            assert within() == (low <= key <= low + above), (low, key)

    simulation(LookUp, above, apart=apart).run(body)
