"""cocotb bench of the whole circuit: register bus, records and results as the driver makes and reads them."""

from __future__ import annotations

import os
import random
from typing import Any

import cocotb

from .designs import TOPS
from .driver import Registers, answer, case, check_counters, overflowing
from .on_cocotb import CocotbTestbench
from .pauses import MATRIX
from .sampling import sampled

_CONFIG = TOPS[os.environ["SPLITJOIN_DESIGN"].removeprefix("top-")]
_LARGEST = _CONFIG.window_capacity
_WINDOWS = {
    "rows": (f"ROWS {_LARGEST}", f"ROWS {max(1, _LARGEST - 1)} RANGE 100000"),
    "range": (f"ROWS {_LARGEST} RANGE 7", f"ROWS {_LARGEST} RANGE 0"),
    "both": ("ROWS 3 RANGE 9", f"ROWS {_LARGEST} RANGE 30"),
}


@cocotb.test()
@cocotb.parametrize((("window", "order", "stalls"), sampled(
    list(_WINDOWS), ["none", "outer(1)", "outer(7)", "inner(1)", "inner(3)", "total"], list(MATRIX))))
async def same_answer_as_the_golden_model(dut: Any, window: str, order: str, stalls: str) -> None:
    job = case(_CONFIG, random.Random(random.getrandbits(32)), window=_WINDOWS[window], order=order)
    tb = CocotbTestbench(dut)
    await tb.reset()
    registers, _ = await answer(tb, job, MATRIX[stalls])
    await check_counters(registers, job)


@cocotb.test()
@cocotb.parametrize(order=["none", "outer(1)", "total"], stalls=list(MATRIX))
async def overflow_names_the_first_tuple(dut: Any, order: str, stalls: str) -> None:
    tb = CocotbTestbench(dut)
    await tb.reset()
    await overflowing(tb, _CONFIG, random.Random(random.getrandbits(32)), order, MATRIX[stalls])
    # A reset clears it, even with reports under way from the cores.
    tb = CocotbTestbench(dut)
    await tb.reset()
    await tb.steps(40)
    assert await Registers(tb).read("overflow") == 0
