import pytest

from splitjoin_boards.flow.ecp5_placer.fabric import bel_name, parse_bel
from splitjoin_boards.flow.ecp5_placer.netlist import read_netlist


@pytest.mark.parametrize("name", ["X2/Y3/SLICEA.K0", "X124/Y93/SLICED.FF1", "X40/Y50/SLICEC.RAMW"])
def test_bel_names_are_read_and_written(name):
    assert bel_name(*parse_bel(name)) == name


def test_other_bel_names_are_refused():
    with pytest.raises(ValueError, match=r"A bel must be named X\.\./Y\.\./\.\., not 'SLICEA'"):
        parse_bel("SLICEA")


def test_cells_without_a_bel_are_refused(routed_module):
    name = next(iter(routed_module["cells"]))
    del routed_module["cells"][name]["attributes"]["NEXTPNR_BEL"]
    with pytest.raises(ValueError, match="Every cell must have a bel, but"):
        read_netlist(routed_module)
