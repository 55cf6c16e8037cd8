# amaranth: UnusedElaboratable=no
"""The watchdog of a core against its definition, cycle by cycle."""

from __future__ import annotations

import random
from typing import Any
from unittest.mock import patch

import pytest
from amaranth.sim import Simulator

from splitjoin.circuit.wire import Configuration, ItemKind
from splitjoin_hw.core.watchdog import Watchdog

from ...support.planting import faulty

CONFIG = Configuration(keys_r=(4,), keys_s=(4,), tests=((0, 0),), tree=0, cores=2, capacity=4, fault_timeout=1000)
SEEDS = range(6)
KINDS = (ItemKind.PAIR, ItemKind.STAR, ItemKind.SLICE, ItemKind.END)


def follow(seed: int) -> int:
    """Fail unless a watchdog does what its definition says; returns the number of times that it left its core out.

    In each stretch of cycles every input is mostly high or mostly low, so that all combinations last for periods.
    """
    rng, dut = random.Random(seed), Watchdog(CONFIG)
    assert dut.config == CONFIG
    deaths = []

    async def body(ctx: Any) -> None:
        still, dead, age = [False] * 3, False, 0
        last = [(2**32 - 1, 1)] * 2
        shares: dict[str, float] = {}
        for cycle in range(600):
            if cycle % 40 == 0:
                shares = {name: rng.choice([0.0, 0.02, 0.5, 1.0]) for name in (
                    "i", "taken", "busy0", "busy1", "works0", "works1", "gives0", "gives1", "out0", "out1")}
                shares["overflow"] = rng.choice([0.0, 0.0, 0.0, 1.0])
            now = {name: rng.random() < share for name, share in shares.items()}
            tick = cycle % 8 == 7
            ctx.set(dut.tick, tick)
            ctx.set(dut.overflow, now["overflow"])
            ctx.set(dut.busy, now["busy0"] | now["busy1"] << 1)
            ctx.set(dut.works, now["works0"] | now["works1"] << 1)
            ctx.set(dut.i.valid, now["i"])
            ctx.set(dut.core_i.ready, now["taken"])
            results = []
            for n, (of_core, out) in enumerate(((dut.core_left, dut.left), (dut.core_right, dut.right))):
                kind, probe = rng.choice(KINDS), rng.randrange(2**32)
                ctx.set(of_core.valid, now[f"gives{n}"])
                ctx.set(of_core.payload.kind, kind)
                ctx.set(of_core.payload.probe, probe)
                ctx.set(out.ready, now[f"out{n}"])
                results.append((kind, probe))
            await ctx.delay(1e-7)
            assert ctx.get(dut.dead) == dead
            assert ctx.get(dut.core_i.valid) == (now["i"] and not dead)
            assert ctx.get(dut.i.ready) == (now["taken"] or dead)
            for n, (of_core, out) in enumerate(((dut.core_left, dut.left), (dut.core_right, dut.right))):
                assert ctx.get(out.valid) == (now[f"gives{n}"] and not dead)
                assert ctx.get(of_core.ready) == (now[f"out{n}"] or dead)
                assert ctx.get(dut.last[n]) == last[n][0] | last[n][1] << 32
                kind, probe = results[n]
                if now[f"gives{n}"] and now[f"out{n}"] and not dead and kind != ItemKind.END:
                    last[n] = probe, int(kind == ItemKind.STAR)
            gives = [now[f"gives{n}"] and not dead for n in (0, 1)]
            stands = [now[f"busy{n}"] and not now[f"works{n}"] and not gives[n] for n in (0, 1)]
            stands.append(now["i"] and not now["taken"] and not now["busy0"] and not now["busy1"])
            stands = [one and not now["overflow"] for one in stands]
            if tick and any(a and b for a, b in zip(still, stands, strict=True)) and not dead:
                dead, age = True, cycle
                deaths.append(cycle)
            still = [b and (a or tick) for a, b in zip(still, stands, strict=True)]
            await ctx.tick()
            if dead and cycle > age + 60:
                break

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(body)
    simulator.run()
    return len(deaths)


def test_it_passes_everything_on_until_something_stands_still_for_a_period() -> None:
    assert sum(map(follow, SEEDS)) > len(SEEDS) // 2


@pytest.mark.parametrize(("old", "new"), [
    ("stands & (still | self.tick.replicate(3))", "still | self.tick.replicate(3)"),
    ("self.tick & (stands & still).any()", "(stands & still).any()"),
    ("self.busy & ~self.works & ~gives", "self.busy & ~self.works"),
    ("~self.overflow.replicate(3)", "-1"),
    ("self.i.valid & ~self.core_i.ready & ~self.busy.any()", "self.i.valid & ~self.core_i.ready"),
    ("out.valid & out.ready & (kind != ItemKind.END)", "out.valid & (kind != ItemKind.END)"),
    ("of_core.valid & alive", "of_core.valid"),
    ("self.core_i.ready | self.dead", "self.core_i.ready")])
def test_planted_faults_are_found(old: str, new: str) -> None:
    fault = patch.object(Watchdog, "elaborate", faulty(Watchdog, "elaborate", old, new))
    with fault, pytest.raises(AssertionError):
        list(map(follow, SEEDS))
