"""Cycles of a probe by stage: distribution, waiting, scan, gather, against the model PL = d·T + w·P + g·T.

Each stage is measured by itself in simulation of the circuits that make it up, from its first cycle to its last, on an
idle circuit; the whole circuit's latency, measured at its ports, is their sum. SplitJoin, section 7, Figures 14 and 15.

Run: python -m bench.stages; with SPLITJOIN_BENCH_CORES=16 for up to so many cores: large models take minutes to build.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.testbench.models import Operation, Window, packed_operation, packed_window
from tests.testbench.on_amaranth import simulate
from tests.testbench.testbench import Testbench

from bench.circuits import CORES, measured_latency
from bench.record import Recorder, arguments
from splitjoin.circuit.geometry import levels
from splitjoin.circuit.registers import REGION_COUNTERS
from splitjoin.circuit.wire import Configuration, ItemKind, Op
from splitjoin_hw.core.core import Core
from splitjoin_hw.gather.tree import GatherTree
from splitjoin_hw.layouts import result_layout, settings_layout
from splitjoin_hw.network.tree import DistributionTree

#: Children of a distributor and inputs of a merger.
FAN = 2
LIMIT = 100_000


@dataclass(frozen=True)
class InCore:
    """Cycles of a probe in a core: from its input to the first read, the reads, from the last read to the star."""

    waiting: int
    scan: int
    emit: int


@cache
def distribution(cores: int) -> int:
    """Cycles from the tree's input to the input of the core that gets a record last."""
    last: list[int] = []

    async def body(tb: Testbench) -> None:
        source = tb.source("i", [1])
        sinks = [tb.sink(f"o__{n}") for n in range(cores)]
        await tb.run(lambda: all(sink.items for sink in sinks), limit=LIMIT)
        last.append(max(sink.cycles[0] for sink in sinks) - source.cycles[0])

    simulate(DistributionTree(8, leaves=cores, fanout=FAN), body)
    return last[0]


@cache
def gather(cores: int) -> int:
    """Cycles from the star at the cores' outputs to that at the root of the tree."""
    last: list[int] = []

    async def body(tb: Testbench) -> None:
        star = result_layout().const({"kind": ItemKind.STAR}).as_bits()
        sources = [tb.source(f"i__{n}", [star]) for n in range(cores)]
        sink = tb.sink("o")
        await tb.run(lambda: sink.items, limit=LIMIT)
        # A star is taken when all have come: from when it is offered.
        last.append(sink.cycles[0])
        assert all(source.cycles for source in sources)

    simulate(GatherTree(leaves=cores, fanin=FAN), body)
    return last[0]


@cache
def in_core(window: int, lanes: int, probes: int) -> InCore:
    """A probe that finds the region idle, and nothing in its window."""
    config = Configuration(keys_r=(8,), keys_s=(8,), tests=((0, 0),), tree=0, cores=1, capacity=window, lanes=lanes,
                           probes=probes, region_counters=True)
    settings = packed_window(config, Window(rows=window))
    found: list[InCore] = []

    async def body(tb: Testbench) -> None:
        layout = settings_layout(config)
        tb.set("settings", sum(settings << layout[side].offset for side in "rs"))
        await tb.steps(4)  # they stand before the first record
        tb.set("select", next(n for n, c in enumerate(REGION_COUNTERS) if c.name == "reads"))
        source = tb.source("i", [packed_operation(config, Operation(Op.TUPLE, 1, 0, (1,), ((0, 0),)))
                                 for _ in range(window)])
        left, reads = tb.sink("left"), tb.watch("selected__0")
        tb.sink("right")
        await tb.run(lambda: not source.queue, limit=LIMIT)
        await tb.steps(64)
        source.queue.append(packed_operation(config, Operation(Op.TUPLE, 0, 0, (0,), ((9, 9),))))
        history: list[int] = []
        start = tb.cycle
        while not left.items:
            await tb.step()
            history.append(reads())
            assert len(history) < LIMIT
        # The counter's value shows two cycles after a read.
        during = [start + n - 2 for n, (a, b) in enumerate(zip([0, *history], history, strict=False)) if a != b]
        assert len(during) == window // lanes == during[-1] - during[0] + 1
        found.append(InCore(during[0] - source.cycles[-1], len(during), left.cycles[0] - during[-1] - 1))

    simulate(Core(config), body)
    return found[0]


def stages(out: Recorder, cores: int, window: int, lanes: int, probes: int) -> None:
    """All stages of one circuit, and the whole as its ports show it."""
    config: dict[str, Any] = {"cores": cores, "sub_window": window, "lanes": lanes, "probes": probes, "fan": FAN}
    core = in_core(window, lanes, probes)
    cycles = {"distribution": distribution(cores), "waiting": core.waiting, "scan": core.scan, "emitting": core.emit,
              "gather": gather(cores), "combiner": 1}
    how = "simulation of the stage's circuits, idle"
    for stage, value in cycles.items():
        out.add("stage_cycles", value, "cycles", {"stage": stage, **config}, how)
    whole = measured_latency(cores, window, lanes, probes)
    out.add("latency_cycles", whole, "cycles", config, "simulation of the whole circuit: median of 20 probes, idle")
    assert whole == sum(cycles.values()), f"{whole} cycles in all, but stages of {cycles}"
    d = levels(cores, FAN)
    out.add("model_cycles", d + window // lanes + d, "cycles", config, "PL = d·T + w·P + g·T, T = 1, P = 1 / lanes")


def main() -> None:
    """All figures."""
    options = arguments(__doc__ or "")
    out = Recorder("stages", quick=options.quick)
    for cores in (1, 4) if options.quick else CORES:
        stages(out, cores, 16, 1, 1)
    if not options.quick:
        for window, lanes, probes in ((64, 1, 1), (64, 4, 8)):
            stages(out, 4, window, lanes, probes)
    print(out.write())


if __name__ == "__main__":
    main()
