"""LUTs of conditions' datapaths: what Yosys maps them to for ECP5, beside what the cost model predicts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bench.place_and_route import ecp5
from bench.place_and_route.design import part_design
from bench.record import Recorder
from splitjoin.circuit.cost import datapath_cost
from splitjoin.circuit.lowering import configure
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.plan import CircuitPlan
from splitjoin.circuit.wire import Configuration
from splitjoin.lang.query import Query
from splitjoin_hw.hls.matcher import Matcher

#: Lanes and probes of the datapaths.
LANES, PROBES = 1, 4
PARAMETERS = CircuitParameters(capacity=64, lanes=LANES, probes=PROBES)
HOW = ("Yosys, synth_lattice -family ecp5: LUT4 + 2 CCU2C of the module that holds bounds and compares, without the "
       "core around it")


def figures(query: Query, plan: CircuitPlan, *, mapped: bool) -> dict[str, Any]:
    """The datapaths of a core, which are two: of the region that stores R, and of the one that stores S.

    ``lut4``: as Yosys maps both, None unless ``mapped``; ``lut4_predicted``: as the cost model says;
    ``lut4_per_comparison``: ``lut4`` over the comparisons of both in a cycle.
    """
    config = configure(query, plan, PARAMETERS)
    found = sum(lut4(config, side) for side in "rs") if mapped else None
    return {"lut4": found, "dsp": sum(datapath_cost(config, side).total.dsp for side in "rs"),
            "lut4_predicted": sum(datapath_cost(config, side).total.lut for side in "rs"),
            "lut4_per_comparison": None if found is None else found / (2 * LANES * PROBES),
            "stages": config.stages, "lanes": LANES, "probes": PROBES}


def lut4(config: Configuration, side: str) -> int:
    """LUT4 of the datapath of a region that stores ``side``, as Yosys maps it."""
    return ecp5.utilization(part_design(Matcher(config, side), "ecp5"))["part"].lut4


def bands(out: Recorder) -> None:
    """Rows of two 32-bit bands: each comparison by itself, and with the codes that several share."""
    config = Configuration(keys_r=(32, 32), keys_s=(32, 32), tests=((0, 0), (1, 1)), tree=("and", 0, 1))
    what = {"condition": "two 32-bit bands"}
    found = {}
    for lanes, probes in ((1, 1), (1, 4), (1, 8), (4, 8)):
        built = replace(config, lanes=lanes, probes=probes)
        predicted = datapath_cost(built, "s")
        found[lanes, probes] = whole = lut4(built, "s")
        out.add("band_lut4_per_comparison", whole / (lanes * probes), "LUT4",
                {**what, "lanes": lanes, "probes": probes, "codes": "included", "lut4": whole,
                 "lut4_predicted": predicted.total.lut, "stages": config.stages}, HOW)
    out.add("band_lut4_per_comparison", (found[1, 8] - found[1, 4]) / 4, "LUT4",
            {**what, "codes": "not counted", "lut4_predicted": predicted.pair.lut, "stages": config.stages},
            "the same: what each probe beyond the fourth adds, which are its comparators and its Boolean tree")
