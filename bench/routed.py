"""Cells and clock of each architecture, placed and routed. Run: python -m bench.routed, half an hour on an idle core.

All have the condition of `bench.evaluation` with two cores (Kang: one), a lane and a probe each, and windows by rows.
A clock is the best over some seeds of placement. Results of tools are kept, so a second run takes seconds.
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


def routed(out: Recorder, name: str, seeds: tuple[int, ...]) -> None:
    """One architecture: cells as mapped and as predicted, and with ``seeds`` the clock."""
    case = Case(name, 1 if name == "kang" else CORES, WINDOW, "ROWS")
    config = Bench(out, QUICK, {}, quick=True).device(case).configuration(query_of(case, 3)[0])
    design = whole_design(config, "ecp5")
    mapped = ecp5.utilization(design)["part"]
    predicted = circuit_cost(config).total
    what = case.config
    for metric, cells, unit, foreseen in (("mapped_lut4", mapped.lut4, "LUT4", predicted.lut),
                                          ("mapped_ff", mapped.ff, "FF", predicted.ff),
                                          ("mapped_block_ram", mapped.block_ram, "of 208", None)):
        out.add(metric, cells, unit, what | ({} if foreseen is None else {"predicted": round(foreseen)}),
                f"Yosys, synth_lattice -family ecp5; {ecp5.versions()}")
    out.add("memory_bits", predicted.ram_bits, "bits", what, "predicted")
    if not seeds:
        return
    runs = {seed: ecp5.route(design, seed=seed) for seed in seeds}
    best = max(runs.values(), key=lambda found: found.mhz)
    out.add("routed_mhz", best.mhz, "MHz", what,
            f"nextpnr-ecp5, heap, router1, LFE5U-85F speed grade 6, whole circuit; the best of seeds "
            f"{', '.join(map(str, seeds))}; its critical path is from {best.source} to {best.sink}")


def main() -> None:
    """All architectures, or some."""
    parser = options_of((__doc__ or "").partition("\n")[0])
    parser.add_argument("--architecture", choices=SYSTEMS, nargs="+", default=list(SYSTEMS), help="these alone (all)")
    parser.add_argument("--mapped", action="store_true", help="map the circuits only, without placing and routing")
    options = parser.parse_args()
    for name in options.architecture:
        out = Recorder("routed", quick=options.quick, part=name)
        routed(out, name, () if options.mapped else SEEDS)
        print(out.write())


if __name__ == "__main__":
    main()
