"""cocotb bench of mergers and trees of them."""

from __future__ import annotations

import random
from typing import Any

import cocotb

from .bodies import merge
from .designs import MERGERS
from .models import levels
from .on_cocotb import CocotbTestbench
from .pauses import MATRIX
from .stimuli import random_groups


@cocotb.test()
@cocotb.parametrize(name=list(MERGERS), total=[False, True], stalls=list(MATRIX), sliced=[False, True])
async def groups_stay_together(dut: Any, name: str, total: bool, stalls: str, sliced: bool) -> None:
    fanin, leaves = MERGERS[name]
    tb = CocotbTestbench(dut)
    await tb.reset()
    streams = random_groups(random.Random(random.getrandbits(32)), leaves, 20, sliced=sliced)
    sink = await merge(tb, streams, MATRIX[stalls], total=total, name=f"{name}__")
    if stalls == "flowing" and leaves == fanin and not sliced:
        assert sink.cycles == list(range(sink.cycles[0], sink.cycles[0] + len(sink.items))), "an item a cycle"
        assert sink.cycles[0] == levels(leaves, fanin), "a cycle a level"
