"""Area and clock of the circuit, by the reports of the synthesis tools.

Run: python -m bench.synthesis, which routes single cores; python -m bench.synthesis --index routes one core of each
kind of index; python -m bench.synthesis --roots maps whole circuits whose roots give one, two or four results a cycle
(minutes); python -m bench.synthesis --full routes whole circuits, one of 16 regions and one of as many comparators as
could be routed, each twice, some three hours with the tools from PyPI, and writes each when it is done; --full
--cores 8 routes only the one of 8 cores, and --runs 1 each only once. What was routed before comes from the cache. Each
replaces its own rows of bench/results/circuits.json. The clocks are those of nextpnr's own report; every row of a
routed circuit names the tools, their versions and how they were installed.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from statistics import median

from bench.place_and_route import ecp5, ultrascale
from bench.place_and_route.design import Design, core_design, part_design, whole_design
from bench.record import Recorder
from splitjoin.circuit.wire import Configuration
from splitjoin_hw.hls.matcher import Matcher

#: Stored tuples of a region.
CAPACITY = 512
#: (lanes, probes) of the cores that are mapped, and of those that are routed too.
MAPPED, ROUTED = ((8, 8), (8, 4), (4, 8), (4, 4), (1, 8), (1, 4)), ((1, 4),)
#: (lanes, probes) of the cores with tables that are mapped, of bands of constant width.
LOOKED_UP = ((8, 16), (8, 8))
#: Kind of index → the tests that it goes by.
INDEXED = {"hash": (0,), "bucket": (0, 1)}


@dataclass(frozen=True)
class Whole:
    """A whole circuit that is routed: its parameters, and the arguments of `ecp5.route`."""

    cores: int
    lanes: int
    probes: int
    placer: str
    tables: bool = False
    capacity: int = CAPACITY


#: With tables a batch of 16 probes takes 80 cycles to collect, and regions of 2,048 tuples 256 to read, in as many
#: memories as those of 512.
WHOLE = (Whole(8, 1, 4, "heap"), Whole(2, 8, 16, "static", tables=True, capacity=2048))
#: Of both bands of the whole circuits, how much more the high end is than the low one: abs(r.x - s.a) <= 10.
WIDTHS = (20, 20)
#: (cores, lanes, probes) of the circuits that are mapped with roots of each width.
ROOTS = ((2, 2, 4),)
LUT4 = "LUT4 + 2 CCU2C + 6 TRELLIS_DPR16X4"
BY_YOSYS = "Yosys, synth_lattice -family ecp5: {}, over comparisons a cycle"
BY_CORE = "Yosys, synth_lattice -family ecp5, of a core: half of {}"
#: Seeds of placement for a single core: the clock is that of the best.
SEEDS = (1, 2, 3, 4, 5, 6, 7, 8)
BY_PLACER = {"heap": "nextpnr-ecp5, timing weight 25, router1, LFE5U-85F speed grade 6",
             "static": "nextpnr-ecp5, placer static, router1, LFE5U-85F speed grade 6"}
XCUP = "Yosys, synth_xilinx -family xcup: {}, over comparisons a cycle"


def band(*, lanes: int, probes: int, cores: int = 16) -> Configuration:
    """The circuit for two 32-bit bands, with windows by rows and by time, in all orders."""
    return Configuration(keys_r=(32, 32), keys_s=(32, 32), tests=((0, 0), (1, 1)), tree=("and", 0, 1), cores=cores,
                         capacity=CAPACITY, time_bits=32, lanes=lanes, probes=probes)


def matcher(out: Recorder, lanes: int, probes: int) -> None:
    """The comparators of one region, and the bounds that they hold."""
    what = {"part": "matcher", "lanes": lanes, "probes": probes}
    cells = ecp5.utilization(part_design(Matcher(band(lanes=lanes, probes=probes), "s"), "ecp5"))["part"]
    out.add("ecp5_lut4_per_comparison", cells.lut4 / (lanes * probes), "LUT4", what, BY_YOSYS.format(LUT4))
    out.add("ecp5_ff_per_comparison", cells.ff / (lanes * probes), "FF", what, BY_YOSYS.format("TRELLIS_FF"))


def core(out: Recorder, lanes: int, probes: int, *, looked_up: bool = False) -> None:
    """One core of two regions, everything in it counted; ``looked_up``: with tables."""
    config, what = band(lanes=lanes, probes=probes), _core(lanes, probes)
    if looked_up:
        config = replace(config, widths=WIDTHS, tables=True)
        what |= {"bands": "of constant width", "tables": True}
    comparisons = 2 * lanes * probes
    design = core_design(config, "ecp5")
    cells = ecp5.utilization(design)["part"]
    out.add("ecp5_lut4_per_comparison", cells.lut4 / comparisons, "LUT4", what, BY_YOSYS.format(LUT4))
    out.add("ecp5_ff_per_comparison", cells.ff / comparisons, "FF", what, BY_YOSYS.format("TRELLIS_FF"))
    out.add("ecp5_block_ram", cells.block_ram, "of 208", what, "Yosys, synth_lattice -family ecp5: DP16KD")
    xcup = ultrascale.utilization(core_design(config, "ultrascale"))
    out.add("xcup_lut_per_comparison", xcup.lut / comparisons, "LUT", what,
            XCUP.format("LUT sites, those of LUT RAM and inverters too"))
    out.add("xcup_ff_per_comparison", xcup.ff / comparisons, "FF", what, XCUP.format("flip-flops"))


def routed_core(out: Recorder, lanes: int, probes: int) -> None:
    """The clock of that core."""
    mhz, how = best_clock(core_design(band(lanes=lanes, probes=probes), "ecp5"))
    out.add("ecp5_mhz", mhz, "MHz", _core(lanes, probes), how)
    out.add("ecp5_peak_gcmps", 2 * lanes * probes * mhz / 1000, "Gcmp/s", _core(lanes, probes),
            "regions × lanes × probes × ecp5_mhz")


def best_clock(design: Design) -> tuple[float, str]:
    """The best clock of a core over `SEEDS`, and how it was measured."""
    found = [ecp5.route(design, seed=seed).mhz for seed in SEEDS]
    seeds = ", ".join(map(str, SEEDS))
    return max(found), (f"{BY_PLACER['heap']}; {ecp5.versions()}: clock by nextpnr's report, core alone, of seeds "
                        f"{seeds}: minimum {min(found):.1f}, median {median(found):.1f}, maximum {max(found):.1f}, "
                        f"which counts")


def indexed(kind: str) -> tuple[Configuration, dict[str, object]]:
    """The configuration of a core with an index, and what rows call it."""
    config = replace(band(lanes=1, probes=1), core=kind, index=INDEXED[kind])
    return config, {**_core(1, 1), "core": kind, "tests of the index": len(config.index)}


def indexed_core(out: Recorder, kind: str) -> None:
    """Cells of one region of a core with an index: half of a core."""
    config, what = indexed(kind)
    cells = ecp5.utilization(core_design(config, "ecp5"))["part"]
    out.add("ecp5_index_lut4_per_region", cells.lut4 / 2, "LUT4", what, BY_CORE.format(LUT4))
    out.add("ecp5_index_ff_per_region", cells.ff / 2, "FF", what, BY_CORE.format("TRELLIS_FF"))
    out.add("ecp5_index_block_ram_per_region", cells.block_ram / 2, "of 208", what, BY_CORE.format("DP16KD"))


def routed_indexed_core(out: Recorder, kind: str) -> None:
    """The clock of that core."""
    config, what = indexed(kind)
    mhz, how = best_clock(core_design(config, "ecp5"))
    out.add("ecp5_index_mhz", mhz, "MHz", what, how)


def _core(lanes: int, probes: int) -> dict[str, object]:
    return {"part": "core", "lanes": lanes, "probes": probes}


def whole(out: Recorder, circuit: Whole, runs: int) -> None:
    """The whole circuit: cores, trees, combiner and registers; ``runs``: how many seeds of placement are tried."""
    config = replace(band(cores=circuit.cores, lanes=circuit.lanes, probes=circuit.probes), widths=WIDTHS,
                     tables=circuit.tables, capacity=circuit.capacity)
    what = {"part": "whole circuit", "cores": circuit.cores, "regions": 2 * circuit.cores, "lanes": circuit.lanes,
            "probes": circuit.probes, "sub_window": circuit.capacity, "bands": "of constant width",
            **({"tables": True} if circuit.tables else {})}
    comparisons = 2 * circuit.cores * circuit.lanes * circuit.probes
    how = f"{BY_PLACER[circuit.placer]}; {ecp5.versions()}"
    design = whole_design(config, "ecp5")
    found = {seed: ecp5.route(design, placer=circuit.placer, seed=seed) for seed in SEEDS[:runs]}
    best = max(found, key=lambda seed: found[seed].mhz)
    routed = found[best]
    clocks = ", ".join(f"seed {seed}: {run.mhz:.1f} MHz" for seed, run in found.items())
    how += f"; seed {best}" + (f", the best of {runs} runs ({clocks})" if runs > 1 else ", the only run")
    out.add("ecp5_lut4_per_comparison", routed.lut4 / comparisons, "LUT4", what, f"{how}: LUT4s, with harness")
    out.add("ecp5_lut4", routed.lut4, "of 83,640", what, f"{how}: LUT4s, with harness")
    out.add("ecp5_ff", routed.ff, "of 83,640", what, f"{how}: DFFs, with harness")
    out.add("ecp5_block_ram", routed.block_ram, "of 208", what, f"{how}: DP16KD")
    out.add("ecp5_mhz", routed.mhz, "MHz", what, f"{how}: clock by nextpnr's report, whole circuit; its critical path "
            f"is from {routed.source} to {routed.sink}")
    out.add("ecp5_peak_gcmps", comparisons * routed.mhz / 1000, "Gcmp/s", what, "regions × lanes × probes × ecp5_mhz")
    out.add("route_seconds", routed.seconds, "s", what, "wall clock of placing and routing")


def root(out: Recorder, cores: int, lanes: int, probes: int, root_width: int) -> None:
    """Cells of a whole circuit whose root gives ``root_width`` results a cycle, mapped but not placed."""
    config = replace(band(cores=cores, lanes=lanes, probes=probes), widths=WIDTHS, root_width=root_width)
    design = whole_design(config, "ecp5")
    cells = ecp5.utilization(design)[design.top]
    what = {"part": "mapped circuit", "cores": cores, "lanes": lanes, "probes": probes, "bands": "of constant width",
            "root_width": root_width}
    how = f"{ecp5.versions().split(';')[0]}, synth_lattice -family ecp5, with harness, not placed"
    out.add("ecp5_mapped_lut4", cells.lut4, "LUT4", what, f"{how}: {LUT4}")
    out.add("ecp5_mapped_ff", cells.ff, "FF", what, f"{how}: TRELLIS_FF")
    out.add("ecp5_mapped_block_ram", cells.block_ram, "of 208", what, f"{how}: DP16KD")


def main() -> None:
    """All figures, or those that take hours."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="mapping only, of the smallest cores; about a minute; "
                        "results go to build/bench/")
    parser.add_argument("--index", action="store_true", help="only route a core of each kind of index")
    parser.add_argument("--roots", action="store_true", help="only map circuits with roots of each width")
    parser.add_argument("--full", action="store_true", help="whole circuits instead of single cores")
    parser.add_argument("--cores", type=int, choices=[circuit.cores for circuit in WHOLE],
                        help="with --full, only the circuit of so many cores")
    parser.add_argument("--runs", type=int, choices=range(1, len(SEEDS) + 1), default=2,
                        help="with --full, how many seeds of placement are tried (default: 2)")
    options = parser.parse_args()
    if options.quick and (options.full or options.index):
        parser.error("--quick maps only, and --full and --index route: give one of them")
    if options.roots and (options.full or options.index):
        parser.error("--roots maps only, and --full and --index route: give one of them")
    if options.cores is not None and not options.full:
        parser.error("--cores chooses among the whole circuits: it needs --full")
    if options.full:
        for circuit in WHOLE:
            if options.cores in (None, circuit.cores):
                out = Recorder("circuits", quick=False, part=f"whole circuit of {circuit.cores} cores")
                whole(out, circuit, options.runs)
                print(out.write())
        return
    if options.roots:
        out = Recorder("circuits", quick=options.quick, part="mapped roots")
        for shape in ROOTS:
            for root_width in (1, 2, 4):
                root(out, *shape, root_width)
    elif options.index:
        out = Recorder("circuits", quick=False, part="routed index cores")
        for kind in INDEXED:
            routed_indexed_core(out, kind)
    else:
        out = Recorder("circuits", quick=options.quick, part="synthesis")
        for lanes, probes in MAPPED[:1] if options.quick else MAPPED:
            matcher(out, lanes, probes)
            core(out, lanes, probes)
        for lanes, probes in () if options.quick else LOOKED_UP:
            core(out, lanes, probes, looked_up=True)
        for lanes, probes in () if options.quick else ROUTED:
            routed_core(out, lanes, probes)
        for kind in () if options.quick else INDEXED:
            indexed_core(out, kind)
    print(out.write())


if __name__ == "__main__":
    main()
