"""Kernels compiled from typed Python beside the same in Amaranth by hand: LUTs, flip-flops, multipliers and the clock.

Both have one stage and interval 1, are checked against Python by simulation, mapped by Yosys for ECP5, and placed and
routed by nextpnr; with --polyphony beside what Polyphony compiles. Run: python -m bench.hls [--mapped] [--only NAME …]
"""

from __future__ import annotations

import argparse
import random
import statistics
from typing import Any

from amaranth.lib import wiring
from tests.support.kernel_cases import kernel_case
from tests.support.random_kernels import operands
from tests.testbench.kernels import check_kernel
from tests.testbench.on_amaranth import simulate
from tests.testbench.pauses import Stalls

from bench.hls_suite.by_hand import by_hand
from bench.hls_suite.polyphony import VERSION, polyphony
from bench.hls_suite.typed import KERNELS
from bench.place_and_route import ecp5
from bench.place_and_route.design import part_design
from bench.record import Recorder
from splitjoin import hls
from splitjoin.base.errors import ToolError

#: Kernels that are compiled for a clock, in MHz: without one, their sums are chains, smaller and slower than by hand.
CLOCKS = {"Rolling": 175}
#: Operands of each check, and kernels of a quick run.
ROWS, _QUICK = 200, 5
MAPPED = "Yosys, synth_lattice -family ecp5, of the part between registers: LUT4 + 2 CCU2C"


def check(part: Any, fn: Any, rows: list[dict[str, Any]]) -> None:
    """Simulate ``part``; its results must be those of Python."""
    _, case = kernel_case(fn, rows)

    async def body(tb: Any) -> None:
        await check_kernel(tb, stalls=Stalls(True, True, 3), **case)

    simulate(part, body)


def rows_of(fn: Any) -> list[dict[str, Any]]:
    """Operands that reach what random ones seldom do."""
    rows = operands(fn, ROWS, 1)
    rng = random.Random(2)
    if fn.__name__ == "Bins":
        return [{"x": rng.choice([7, 8, rng.randrange(4096)])} for _ in range(ROWS)]
    if fn.__name__ in ("Kmp", "Runs"):
        return [{"x": rng.choice(b"aaabbc")} for _ in range(ROWS)]
    return rows


def measured(part: wiring.Component, placements: int) -> tuple[Any, float | None]:
    """Cells of ``part`` after mapping for ECP5, and its clock in MHz, the mean of so many ``placements``."""
    design = part_design(part, "ecp5")
    clocks = [ecp5.route(design, device="LFE5U-25F", seed=1 + n).mhz for n in range(placements)]
    return ecp5.utilization(design)["part"], statistics.fmean(clocks) if clocks else None


def beside_polyphony(python: str | None, *, quick: bool) -> None:
    """LUTs of Polyphony's circuits, mapped as ours are, and the ratio of ours to them."""
    out = Recorder("hls", quick=quick, part="polyphony")
    for name, found in polyphony(python).items():
        config, how = {"kernel": name}, f"{MAPPED}; Polyphony {VERSION}"
        part = part_design(hls.component(next(fn for fn in KERNELS if fn.__name__ == name)), "ecp5")
        ours = ecp5.utilization(part)["part"]
        for metric, value, unit in (("lut4", found.lut4, "LUT4"), ("ff", found.ff, "flip-flops"),
                                    ("dsp", found.dsp, "MULT18X18D"), ("compiled_lut4", ours.lut4, "LUT4"),
                                    ("lut4_ratio", ours.lut4 / found.lut4, "")):
            out.add(f"polyphony_{metric}", value, unit, config, how)
    print(out.write())


def main() -> None:
    """All figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="five kernels, beside the committed figures")
    parser.add_argument("--mapped", action="store_true", help="without placing and routing")
    parser.add_argument("--placements", type=int, default=1, help="of whose clocks the mean is taken (default: 1)")
    parser.add_argument("--only", nargs="*", help="kernels that are measured; the figures of others stay")
    parser.add_argument("--polyphony", nargs="?", const="", metavar="PYTHON", help="only the functions that Polyphony "
                        "compiles, by it; with a Python from 3.12 on, or the first one on the path")
    options = parser.parse_args()
    if options.polyphony is not None:
        beside_polyphony(options.polyphony or None, quick=options.quick)
        return
    out = Recorder("hls", quick=options.quick, part="kernels")
    ratios = []
    for fn in KERNELS:
        name = fn.__name__
        if (options.only and name not in options.only) or (options.quick and len(ratios) == _QUICK):
            continue
        rows = rows_of(fn)
        clock = CLOCKS.get(name)
        for part in (hls.component(fn, clock=clock), by_hand(name)):
            check(part, fn, rows)
        report, luts = hls.report(fn, clock=clock), dict[str, int]()
        for by, part in (("", hls.component(fn, clock=clock)), ("_by_hand", by_hand(name))):
            try:
                found, mhz = measured(part, 0 if options.quick or options.mapped else options.placements)
            except ToolError as error:  # as docs/hls.md says of the inverse transform by hand
                print(f"{name}{by}: {error}")
                continue
            luts[by] = found.lut4
            for metric, value, unit, predicted in (
                    ("lut4", found.lut4, "LUT4", report.luts), ("ff", found.ff, "flip-flops", report.flip_flops),
                    ("dsp", found.dsp, "MULT18X18D", report.multipliers),
                    *[("block_ram", found.block_ram, "DP16KD", report.block_rams)][:bool(found.block_ram)]):
                out.add(f"ecp5_{metric}{by}", value, unit,
                        {"kernel": name} | ({} if by else {"predicted": predicted}),
                        MAPPED + (f"; compiled for {clock} MHz" if clock and not by else ""))
            if mhz is not None:
                out.add(f"ecp5_mhz{by}", mhz, "MHz", {"kernel": name},
                        f"nextpnr-ecp5, LFE5U-25F of speed grade 6, {options.placements} placement"
                        f"{'s' * (options.placements > 1)}; {ecp5.versions()}")
        if len(luts) == 2:
            ratios.append(luts[""] / luts["_by_hand"])
            out.add("ecp5_lut4_ratio", ratios[-1], "", {"kernel": name}, f"{MAPPED}; compiled / by hand")
    if options.only:
        out.keep_others()
        out.sort(lambda row: [fn.__name__ for fn in KERNELS].index(row["config"]["kernel"]))
    if ratios:
        print(f"median of compiled / by hand: {statistics.median(ratios):.3f}, most {max(ratios):.3f}")
    print(out.write())


if __name__ == "__main__":
    main()
