"""Clocks that the tuner predicts from: regions by themselves, placed and routed.

Run: python bench/clocks.py, which takes minutes a region. A changed figure belongs into splitjoin.tuner.clock too.
"""

from __future__ import annotations

from record import Recorder, arguments
from splitjoin.boards.flow import ecp5
from splitjoin.boards.flow.design import part_design
from splitjoin.device.wire import Configuration
from splitjoin.hw.core.region import Region

#: (lanes, probes) of the regions.
REGIONS = ((1, 4),)


def region(out: Recorder, lanes: int, probes: int) -> None:
    """One region for two 32-bit bands, windows by rows and by time, in all orders."""
    config = Configuration(keys_r=(32, 32), keys_s=(32, 32), tests=((0, 0), (1, 1)), tree=("and", 0, 1), cores=16,
                           capacity=512, time_bits=32, lanes=lanes, probes=probes)
    routed = ecp5.route(part_design(Region(config, "s"), "ecp5"))
    out.add("ecp5_mhz", routed.mhz, "MHz", {"part": "region", "lanes": lanes, "probes": probes},
            "nextpnr-ecp5, default router, seed 1, LFE5U-85F speed grade 6: clock, region alone")


def main() -> None:
    """All figures; there is no quicker way to one."""
    options = arguments(__doc__ or "")
    out = Recorder("clocks", quick=options.quick)
    for lanes, probes in REGIONS:
        region(out, lanes, probes)
    print(out.write())


if __name__ == "__main__":
    main()
