"""cocotb bench of the region: both sides, windows of every kind, against a plain model."""

from __future__ import annotations

import random
from typing import Any

import cocotb

from .bodies import region
from .designs import REGIONS
from .models import NO_LIMIT, Window
from .on_cocotb import CocotbTestbench
from .pauses import MATRIX
from .stimuli import random_operations, random_window


@cocotb.test()
@cocotb.parametrize(name=list(REGIONS), kind=["rows", "range", "both"], stalls=list(MATRIX), tight=[False, True])
async def same_items_as_the_model(dut: Any, name: str, kind: str, stalls: str, tight: bool) -> None:
    config, side = REGIONS[name]
    rng = random.Random(random.getrandbits(32))
    if not config.time_bits:
        kind = "rows"  # this circuit has no RANGE windows
    # A tight window fills the ring exactly, if it can.
    window = Window(NO_LIMIT if kind == "range" else config.window_capacity,
                    None if kind == "rows" else config.window_capacity)
    if not tight:
        window = random_window(rng, config, kind)
    tb = CocotbTestbench(dut)
    await tb.reset()
    operations = random_operations(rng, config, 8 * config.capacity + 80)
    await region(tb, config, side, rng.randrange(config.cores), window, operations,
                 MATRIX[stalls].seeded(tight), name=f"{name}__")
