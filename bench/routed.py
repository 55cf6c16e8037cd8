"""Cells, clock and rate of each architecture, placed and routed. Run: python -m bench.routed, a quarter of an hour
on an idle core.

All have the condition of `bench.evaluation` with two cores (Kang: one), a lane and a probe each, and windows by rows.
A clock is the best over some seeds of placement; a rate is the clock times the sustained rate of the simulated circuit.
Results of tools are kept, so a second run takes seconds.
"""

from __future__ import annotations

from bench.evaluation import QUICK, SYSTEMS, Bench, Case, query_of
from bench.place_and_route import ecp5
from bench.place_and_route.design import whole_design
from bench.record import Recorder, options_of
from splitjoin.circuit.cost import circuit_cost

#: Cores of all but Kang's, and the tuples of each stream in the window: 64 a core.
CORES, WINDOW = 2, 128
SEEDS = (1,)
#: The smallest device that all fit into, and the clock that is asked for: the router ends where a circuit has it.
DEVICE, TARGET_MHZ = "LFE5U-25F", 150


def routed(out: Recorder, name: str, seeds: tuple[int, ...]) -> None:
    """One architecture: cells as mapped and as predicted, and with ``seeds`` the clock and the rate."""
    case = Case(name, 1 if name == "kang" else CORES, WINDOW, "ROWS")
    bench = Bench(out, QUICK, {}, quick=False)
    config = bench.device(case).configuration(query_of(case, 3)[0])
    design = whole_design(config, "ecp5")
    mapped = ecp5.utilization(design)["part"]
    predicted = circuit_cost(config).total
    what = case.config
    for metric, cells, unit, foreseen in (("mapped_lut4", mapped.lut4, "LUT4", predicted.lut),
                                          ("mapped_ff", mapped.ff, "FF", predicted.ff),
                                          ("mapped_block_ram", mapped.block_ram, "of 56", None)):
        out.add(metric, cells, unit, what | ({} if foreseen is None else {"predicted": round(foreseen)}),
                f"Yosys, synth_lattice -family ecp5; {ecp5.versions()}")
    out.add("memory_bits", predicted.ram_bits, "bits", what, "predicted")
    if not seeds:
        return
    runs = {seed: ecp5.route(design, seed=seed, device=DEVICE, target=TARGET_MHZ) for seed in seeds}
    best = max(runs.values(), key=lambda found: found.mhz)
    how = (f"nextpnr-ecp5, heap, router1, {DEVICE} speed grade 6, whole circuit; the best of seeds "
           f"{', '.join(map(str, seeds))}")
    clocks = {"asked": TARGET_MHZ, "all": [round(runs[seed].mhz, 2) for seed in seeds]}
    out.add("routed_mhz", best.mhz, "MHz", what | clocks,
            f"{how}; its critical path is from {best.source} to {best.sink}")
    rate = bench.sustained(case)
    out.add("sustained_rate", 1000 * rate, "tuples/1,000 cycles", what, "simulated, tuples of both streams")
    out.add("routed_rate", 1e6 * rate * best.mhz, "tuples/s", what, "sustained_rate × routed_mhz")


def main() -> None:
    """All architectures, or some."""
    parser = options_of((__doc__ or "").partition("\n")[0])
    parser.add_argument("--architecture", choices=SYSTEMS, nargs="+", default=list(SYSTEMS), help="these alone (all)")
    parser.add_argument("--mapped", action="store_true", help="map the circuits only, without placing and routing")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS, help="of placement (1)")
    options = parser.parse_args()
    for name in options.architecture:
        out = Recorder("routed", quick=options.quick, part=name)
        routed(out, name, () if options.mapped else tuple(options.seeds))
        print(out.write())


if __name__ == "__main__":
    main()
