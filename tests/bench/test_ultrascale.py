# amaranth: UnusedElaboratable=no
import pytest
from bench.place_and_route.design import part_design
from bench.place_and_route.ultrascale import UltrascaleUtilization, count_cells, utilization

from splitjoin.base.errors import ToolError
from splitjoin_hw.tech.ram import Ram


def test_utilization_is_summed_over_types_of_cells():
    kinds = {"LUT3": 5, "LUT6_2": 2, "INV": 1, "RAM32M16": 1, "FDRE": 7, "FDSE": 2, "RAMB36E2": 1, "RAMB18E2": 1,
             "CARRY8": 9}
    assert count_cells(kinds) == UltrascaleUtilization(lut=16, ff=9, block_ram=3)


def test_unknown_types_of_cells_are_refused():
    with pytest.raises(ToolError, match="but Yosys used NEW, OTHER"):
        count_cells({"LUT2": 1, "OTHER": 1, "NEW": 1, "DSP48E2": 1})


def test_a_part_is_mapped():
    found = utilization(part_design(Ram(36, 512), "ultrascale"))
    assert (found.lut, found.block_ram) == (0, 1)
