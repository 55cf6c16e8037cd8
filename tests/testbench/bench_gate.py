"""cocotb bench of the gate: ready records leave, in arrival order, and no others."""

from __future__ import annotations

import random
from typing import Any

import cocotb

from .designs import GATES
from .gating import GATE, gate, random_sources
from .on_cocotb import CocotbTestbench
from .pauses import MATRIX
from .sampling import sampled


@cocotb.test()
@cocotb.parametrize((("name", "stalls", "case"), sampled(list(GATES), list(MATRIX), [0, 1, 2])))
async def ready_records_leave_in_arrival_order(dut: Any, name: str, stalls: str, case: int) -> None:
    rng = random.Random(random.getrandbits(32))
    sources = random_sources(rng, GATES[name], 30, start=rng.randrange(1000))
    tb = CocotbTestbench(dut)
    await tb.reset()
    await gate(tb, GATE, sources, MATRIX[stalls].seeded(case), name=f"{name}__")
