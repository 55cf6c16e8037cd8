"""Cells of whole cores and circuits: what Yosys maps them to, beside what the cost model predicts.

Run: python -m bench.costs
"""

from __future__ import annotations

from typing import Any

from bench.place_and_route import ecp5, ultrascale
from bench.place_and_route.design import core_design, whole_design
from bench.record import Recorder, arguments
from splitjoin.circuit.architectures.splitjoin.predictions import core_cost
from splitjoin.circuit.cost import circuit_cost
from splitjoin.circuit.wire import Configuration

#: (lanes, probes) of the cores.
CORES = ((1, 4), (1, 8), (4, 4), (4, 8))
#: (core, tests of its index, capacity) of the cores with an index.
INDEXED = (("hash", 1, 512), ("hash", 2, 512), ("bucket", 1, 512), ("bucket", 2, 512), ("bucket", 2, 2048))
ECP5 = "Yosys, synth_lattice -family ecp5: "
LUT4, FF, BLOCK_RAM = ECP5 + "LUT4 + 2 CCU2C + 6 TRELLIS_DPR16X4", ECP5 + "TRELLIS_FF", ECP5 + "DP16KD"
XCUP = "Yosys, synth_xilinx -family xcup: "
XCUP_LUT, XCUP_FF = XCUP + "LUT sites, those of LUT RAM and inverters too", XCUP + "flip-flops"


def bands(*, capacity: int = 512, **options: Any) -> Configuration:
    """Two tests of 32 bits, windows by rows and by time, in all orders."""
    return Configuration(keys_r=(32, 32), keys_s=(32, 32), tests=((0, 0), (1, 1)), tree=("and", 0, 1), time_bits=32,
                         capacity=capacity, **options)


def of_core(out: Recorder, config: Configuration) -> None:
    """One core by itself, for both families."""
    what: dict[str, Any] = {"part": "core", "lanes": config.lanes, "probes": config.probes}
    if config.core != "scan":
        what = {"part": "core", "core": config.core, "tests of the index": len(config.index),
                "capacity": config.capacity}
    cells, predicted = ecp5.utilization(core_design(config, "ecp5"))["part"], core_cost(config, "ecp5")
    out.add("lut4", cells.lut4, "LUT4", {**what, "family": "ecp5", "predicted": predicted.lut}, LUT4)
    out.add("ff", cells.ff, "FF", {**what, "family": "ecp5", "predicted": predicted.ff}, FF)
    out.add("block_ram", cells.block_ram, "blocks", {**what, "family": "ecp5", "predicted": predicted.block_ram},
            BLOCK_RAM)
    mapped, predicted = ultrascale.utilization(core_design(config, "ultrascale")), core_cost(config, "ultrascale")
    out.add("lut", mapped.lut, "LUT", {**what, "family": "ultrascale", "predicted": predicted.lut}, XCUP_LUT)
    out.add("ff", mapped.ff, "FF", {**what, "family": "ultrascale", "predicted": predicted.ff}, XCUP_FF)


def of_circuit(out: Recorder, cores: int, fanin: int) -> None:
    """A whole circuit for ECP5: trees, combiner, registers and counters too."""
    config = bands(cores=cores, lanes=1, probes=1, fanout=fanin, fanin=fanin)
    what = {"part": "whole circuit", "cores": cores, "lanes": 1, "probes": 1, "fanout": fanin, "fanin": fanin,
            "family": "ecp5"}
    cells, predicted = ecp5.utilization(whole_design(config, "ecp5"))["part"], circuit_cost(config).total
    out.add("lut4", cells.lut4, "LUT4", {**what, "predicted": predicted.lut}, LUT4)
    out.add("ff", cells.ff, "FF", {**what, "predicted": predicted.ff}, FF)
    out.add("block_ram", cells.block_ram, "blocks", {**what, "predicted": predicted.block_ram}, BLOCK_RAM)


def main() -> None:
    """All figures."""
    options = arguments(__doc__ or "")
    out = Recorder("costs", quick=options.quick)
    for lanes, probes in CORES[:1] if options.quick else CORES:
        of_core(out, bands(cores=16, lanes=lanes, probes=probes))
    for kind, tests, capacity in INDEXED[:1] if options.quick else INDEXED:
        of_core(out, bands(cores=16, core=kind, index=tuple(range(tests)), capacity=capacity))
    for cores, fanin in ((4, 2),) if options.quick else ((4, 2), (12, 4)):
        of_circuit(out, cores, fanin)
    print(out.write())


if __name__ == "__main__":
    main()
