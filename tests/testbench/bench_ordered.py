"""cocotb bench of the unit that folds in order: the case is JSON in the environment."""

from __future__ import annotations

import json
import os
from typing import Any

import cocotb

from .folding import check_ordered
from .on_cocotb import CocotbTestbench
from .pauses import MATRIX


@cocotb.test()
@cocotb.parametrize(stalls=list(MATRIX))
async def states_are_those_of_the_reference(dut: Any, stalls: str) -> None:
    tb = CocotbTestbench(dut)
    for port in ("operation", "left", "right"):
        tb.set(f"{port}__payload", 0)  # what is not valid may be anything, but not X, which cocotb does not read
    await tb.reset()
    await check_ordered(tb, stalls=MATRIX[stalls], **json.loads(os.environ["SPLITJOIN_CASE"]))
