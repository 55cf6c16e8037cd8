# amaranth: UnusedElaboratable=no
import json

import pytest
from bench.place_and_route import ecp5
from bench.place_and_route.design import part_design
from bench.place_and_route.ecp5 import parse, route, utilization

from splitjoin.base.errors import ToolError
from splitjoin_hw.tech.ram import Ram

from ..support.sampling import at_length

LOG = """
Info: Logic utilisation before packing:
Info:     Total LUT4s:      2744/83640     3%
Info:         logic LUTs:    924/83640     1%
Info:         carry LUTs:   1028/83640     1%
Info:           RAM LUTs:    528/10455     5%
Info:          RAMW LUTs:    264/20910     1%

Info:      Total DFFs:      2948/83640     3%
Info: Device utilisation:
Info: 	              DP16KD:       4/    208     1%
"""
CLOCK = "posedge clk"


def hop(cell):
    return {"from": {"cell": cell}, "to": {"cell": cell}}


REPORT = {
    "fmax": {"clk": {"achieved": 63.97, "constraint": 300}},
    "critical_paths": [{"from": "<async>", "to": CLOCK, "path": [hop("pin")]},
                       {"from": CLOCK, "to": CLOCK, "path": [hop("a"), hop("b"), hop("c")]}],
}


def test_modules_count_as_often_as_they_are_instantiated(tmp_path, monkeypatch):
    cells = {"leaf": {"LUT4": 2, "CCU2C": 1, "TRELLIS_FF": 4}, "node": {"leaf": 2, "DP16KD": 1},
             "top": {"node": 3, "leaf": 1, "MULT18X18D": 5}}
    modules = {f"\\{name}": {"num_cells_by_type": types} for name, types in cells.items()}
    (tmp_path / "cells.json").write_text(json.dumps({"modules": modules}))
    monkeypatch.setattr(ecp5, "netlist", lambda design: tmp_path / "netlist.json")
    found = utilization(None)
    assert found["leaf"] == ecp5.Ecp5Utilization(lut4=4, ff=4, block_ram=0, dsp=0)
    assert found["top"] == ecp5.Ecp5Utilization(lut4=28, ff=28, block_ram=3, dsp=5)


def test_reports_are_parsed():
    found = parse(LOG, REPORT, 12.5)
    assert (found.lut4, found.logic, found.carry, found.ram) == (2744, 924, 1028, 792)
    assert (found.ff, found.block_ram) == (2948, 4)
    assert (found.mhz, found.source, found.sink, found.seconds) == (63.97, "a", "c", 12.5)


def test_incomplete_reports_are_refused():
    with pytest.raises(ToolError, match="nextpnr's log must have a line 'Total DFFs', but has none"):
        parse(LOG.replace("DFFs", "registers"), REPORT, 1.0)


def test_unknown_placers_are_refused():
    with pytest.raises(ValueError, match="Placer must be one of heap, static, not 'sa'"):
        route(part_design(Ram(64, 512), "ecp5"), placer="sa")


@pytest.mark.parametrize("placer", ["heap", at_length("static")])  # an option of nextpnr, and much slower
def test_a_part_is_mapped_placed_and_routed(placer):
    """The mapped part has the expected cells, and placement adds none."""
    design = part_design(Ram(64, 512), "ecp5")
    mapped = utilization(design)
    assert (mapped["part"].lut4, mapped["part"].ff, mapped["part"].block_ram) == (0, 0, 2)
    assert mapped["harness"].block_ram == 2
    routed = route(design, seed=2, placer=placer)
    assert routed.block_ram == 2
    assert routed.ff == mapped["harness"].ff
    assert mapped["harness"].lut4 <= routed.lut4 <= mapped["harness"].lut4 + 2  # constants
    assert 50 < routed.mhz < 1000
