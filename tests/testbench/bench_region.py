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
from .sampling import sampled
from .stimuli import random_operations, random_window


@cocotb.test()
@cocotb.parametrize((("name", "kind", "stalls", "tight"), sampled(
    list(REGIONS), ["rows", "range", "both"], list(MATRIX), [False, True])))
async def same_items_as_the_model(dut: Any, name: str, kind: str, stalls: str, tight: bool) -> None:
    config, side = REGIONS[name]
    if not config.time_bits:
        kind = "rows"
    rng = random.Random(random.getrandbits(32))
    # A tight window fills the ring exactly, if it can.
    window = Window(NO_LIMIT if kind == "range" else config.window_capacity,
                    None if kind == "rows" else config.window_capacity)
    if not tight:
        window = random_window(rng, config, kind)
    tb = CocotbTestbench(dut)
    await tb.reset()
    operations = random_operations(rng, config, 4 * config.capacity + 60)
    await region(tb, config, side, rng.randrange(config.cores), window, operations,
                 MATRIX[stalls].seeded(tight), name=f"{name}__")
