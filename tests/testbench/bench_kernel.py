"""cocotb bench of a typed function as Verilog: the case is JSON in the environment."""

from __future__ import annotations

import json
import os
from typing import Any

import cocotb

from .kernels import check_kernel
from .on_cocotb import CocotbTestbench
from .pauses import MATRIX


@cocotb.test()
@cocotb.parametrize(stalls=list(MATRIX))
async def results_are_those_of_python(dut: Any, stalls: str) -> None:
    tb = CocotbTestbench(dut)
    tb.set("i__payload", 0)  # operands that are not valid may be anything, but not X, which cocotb does not read
    await tb.reset()
    await check_kernel(tb, stalls=MATRIX[stalls], **json.loads(os.environ["SPLITJOIN_KERNEL"]))
