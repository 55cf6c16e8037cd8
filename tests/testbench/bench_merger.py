"""cocotb bench of mergers and trees of them."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import cocotb

from splitjoin.circuit.geometry import levels

from .bodies import STANDING, merge
from .designs import MERGERS
from .on_cocotb import CocotbTestbench
from .pauses import MATRIX
from .sampling import sampled
from .stimuli import random_groups


@cocotb.test()
@cocotb.parametrize((("name", "total", "stalls", "sliced"),
                     sampled(list(MERGERS), [False, True], list(MATRIX), [False, True])))
async def groups_stay_together(dut: Any, name: str, total: bool, stalls: str, sliced: bool) -> None:
    fanin, leaves = MERGERS[name]
    tb = CocotbTestbench(dut)
    await tb.reset()
    streams = random_groups(random.Random(random.getrandbits(32)), leaves, 20, sliced=sliced)
    sink = await merge(tb, streams, MATRIX[stalls], total=total, name=f"{name}__")
    if stalls == "flowing" and leaves == fanin and not sliced:
        # From the third cycle on results are offered. The comparison of row ids of pairs that have just arrived takes
        # one more cycle; pairs that arrive meanwhile are compared in time.
        waits = [b - a - 1 for a, b in pairwise([STANDING - 1 + levels(leaves, fanin), *sink.cycles])]
        assert set(waits) <= ({0, 1} if total else {0}), "an item a cycle, and a cycle a level"
        assert sum(waits) <= 4, "an item a cycle once there are some"
