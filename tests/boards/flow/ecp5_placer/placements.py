"""A small design with all kinds of cells, nextpnr's options for it, and a check that a placement is legal."""

from collections import defaultdict

from splitjoin_boards.flow import ecp5
from splitjoin_boards.flow.design import part_design
from splitjoin_boards.flow.ecp5_placer.fabric import fabric, parse_bel
from splitjoin_hw.gather.merger import Merger

OPTIONS = ["--85k", "--package", "CABGA756", "--speed", "6", "--lpf-allow-unconstrained", "--timing-allow-fail",
           "--freq", "300", "--router", "router1"]
SEED = ["--seed", "1"]


def merger():
    """LUTs, flip-flops with enables and resets of two kinds, carry chains and LUT RAM."""
    return part_design(Merger(2, 12), "ecp5")


def merger_netlist():
    return ecp5.netlist(merger(), wide=False).read_text()


def assert_legal(module, bels):
    """Check nextpnr's rules of slices and tiles cell by cell, and that every bel has one cell at most."""
    cells, tiles, slices, lanes = module["cells"], defaultdict(set), defaultdict(set), defaultdict(dict)
    assert len(set(bels.values())) == len(bels)
    of_device = fabric()
    for name, bel in bels.items():
        cell, at = cells[name], parse_bel(bel)
        if at.lane < 0:
            assert cell["type"] == "DP16KD"
            continue
        assert of_device.tile[at.x, at.y] >= 0
        parameters = {key: value.strip() for key, value in cell["parameters"].items()}
        net = {port: bits[0] for port, bits in cell["connections"].items() if bits}
        lanes[at.x, at.y, at.lane][at.kind] = net
        if at.kind == "FF":
            tiles[at.x, at.y].add((net.get("CLK"), net.get("LSR"), parameters.get("CLKMUX"), parameters.get("LSRMUX"),
                                   parameters.get("SRMODE")))
            slices[at.x, at.y, at.lane // 2].add((net.get("CE"), parameters.get("CEMUX"), parameters.get("GSR")))
        elif at.kind == "K":
            slices[at.x, at.y, at.lane // 2, "carry"].add(parameters.get("MODE") == "CCU2")
            if parameters.get("MODE") == "DPRAM":
                assert at.lane < 4
    assert all(len(shared) == 1 for shared in (*tiles.values(), *slices.values()))
    for (x, y, lane), there in lanes.items():
        if "DI" in there.get("FF", {}):
            assert there["FF"]["DI"] == there["K"]["F"]
        if "FCI" in there.get("K", {}):
            before = (x, y, lane - 1) if lane else (x - 1, y, 7)
            assert there["K"]["FCI"] == lanes[before]["K"]["FCO"]
        if "RAMW" in there:
            assert lane == 4
            assert {lanes[x, y, n]["K"]["WD"] for n in range(4) if "WD" in lanes[x, y, n]["K"]} == {
                there["RAMW"][f"WDO{n}"] for n in range(4) if f"WDO{n}" in there["RAMW"]}
