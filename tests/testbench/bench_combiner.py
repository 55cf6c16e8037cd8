"""cocotb bench of the combiner."""

from __future__ import annotations

import random
from typing import Any

import cocotb

from .bodies import combine
from .on_cocotb import CocotbTestbench
from .pauses import MATRIX


@cocotb.test()
@cocotb.parametrize(total=[False, True], stalls=list(MATRIX), count=[0, 1, 40])
async def both_sides_become_one(dut: Any, total: bool, stalls: str, count: int) -> None:
    tb = CocotbTestbench(dut)
    await tb.reset()
    await combine(tb, random.Random(random.getrandbits(32)), MATRIX[stalls], total=total, count=count)
