"""cocotb bench of the distribution tree."""

from __future__ import annotations

import random
from typing import Any

import cocotb

from splitjoin.circuit.geometry import levels

from .bodies import distribute
from .designs import TREE_BITS, TREES
from .on_cocotb import CocotbTestbench
from .pauses import MATRIX

_ITEMS = 40


@cocotb.test()
@cocotb.parametrize(name=list(TREES), stalls=list(MATRIX))
async def every_leaf_gets_every_item(dut: Any, name: str, stalls: str) -> None:
    fanout, leaves = TREES[name]
    tb = CocotbTestbench(dut)
    await tb.reset()
    items = [random.getrandbits(TREE_BITS) for _ in range(_ITEMS)]
    sent, sinks = await distribute(tb, leaves, items, MATRIX[stalls], name=f"{name}__")
    if stalls == "flowing":
        assert sent == list(range(_ITEMS)), "an unstalled tree takes an item a cycle"
        latencies = [sink.cycles[0] - sent[0] for sink in sinks]
        assert max(latencies) == levels(leaves, fanout)
        for sink in sinks:
            assert sink.cycles == list(range(sink.cycles[0], sink.cycles[0] + _ITEMS)), f"{sink.port}: a gap"
