"""Refined placements keep to what a slice and a tile can hold, and their clock is what nextpnr itself would say."""

import copy
import json
from collections import defaultdict

import pytest
from splitjoin.boards.flow import ecp5
from splitjoin.boards.flow.design import part_design
from splitjoin.boards.flow.refine.packed import COMB, FF, packed
from splitjoin.boards.flow.refine.refine import Refinement
from splitjoin.boards.flow.refine.routes import routed_wires
from splitjoin.boards.flow.refine.sites import fabric, site, site_name
from splitjoin.boards.flow.refine.timing import Timing, slowest
from splitjoin.boards.flow.tools import NEXTPNR
from splitjoin.hw.gather.merger import Merger
from splitjoin.hw.link.counter import Counter

ROUTING = ["--85k", "--package", "CABGA756", "--speed", "6", "--lpf-allow-unconstrained", "--timing-allow-fail",
           "--freq", "300", "--router", "router1"]
OPTIONS = [*ROUTING, "--seed", "1"]


def merger():
    """LUTs, flip-flops with enables and resets of two kinds, carry chains and LUT RAM."""
    return part_design(Merger(2, 12), "ecp5")


@pytest.fixture(scope="module")
def routed(tmp_path_factory):
    """A folder in which nextpnr has placed and routed it, all in one run."""
    folder = tmp_path_factory.mktemp("routed")
    (folder / "netlist.json").write_text(ecp5.netlist(merger(), wide=False).read_text())
    NEXTPNR.run([*OPTIONS, "--json", "netlist.json", "--write", "placed.json", "--report", "report.json", "--sdf",
                 "wires.sdf"], folder)
    return folder


@pytest.fixture
def module(routed):
    return json.loads((routed / "placed.json").read_text())["modules"]["top"]


def test_the_clock_is_that_of_nextpnrs_report(routed, module):
    cells = packed(module)
    timing = Timing(cells, 5.0)
    report = json.loads((routed / "report.json").read_text())
    mhz = timing.analyse(routed_wires((routed / "wires.sdf").read_text(), cells))
    assert mhz == pytest.approx(min(clock["achieved"] for clock in report["fmax"].values()), rel=1e-5)
    path = next(path["path"] for path in report["critical_paths"] if path["from"] == path["to"])
    assert slowest(cells, timing) == (path[0]["from"]["cell"], path[-1]["to"]["cell"])


def legal(module, sites):
    """What nextpnr demands of a slice and of a tile, looked at cell by cell, and that nothing was lost."""
    cells, tiles, slices, lanes = module["cells"], defaultdict(set), defaultdict(set), defaultdict(dict)
    assert len(set(sites.values())) == len(sites)
    of_device = fabric()
    for name, where in sites.items():
        cell, at = cells[name], site(where)
        if at.lane < 0:
            assert cell["type"] == "DP16KD"
            continue
        assert of_device.tile[at.x, at.y] >= 0
        says = {key: value.strip() for key, value in cell["parameters"].items()}
        net = {port: bits[0] for port, bits in cell["connections"].items() if bits}
        lanes[at.x, at.y, at.lane][at.kind] = net
        if at.kind == "FF":
            tiles[at.x, at.y].add((net.get("CLK"), net.get("LSR"), says.get("CLKMUX"), says.get("LSRMUX"),
                                   says.get("SRMODE")))
            slices[at.x, at.y, at.lane // 2].add((net.get("CE"), says.get("CEMUX"), says.get("GSR")))
        elif at.kind == "K":
            slices[at.x, at.y, at.lane // 2, "carry"].add(says.get("MODE") == "CCU2")
            if says.get("MODE") == "DPRAM":
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


@pytest.mark.parametrize("mhz", [100, 250, 350])
def test_a_placement_gets_no_worse(module, mhz):
    """With a clock that is easily kept moves are for short wires; with one that nothing keeps most paths are late."""
    refinement = Refinement(copy.deepcopy(module), 1e3 / mhz)
    before = refinement.timing.analyse()
    after = refinement.run(rounds=12, tries=40)
    assert after >= before
    assert after == refinement.timing.analyse()
    sites = refinement.sites()
    legal(module, sites)
    assert sites.keys() == {name for name, cell in module["cells"].items()
                            if cell["type"] in ("TRELLIS_COMB", "TRELLIS_FF", "TRELLIS_RAMW", "DP16KD")}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_is_moved_fits_where_it_goes(module, seed):
    """Every move that the fabric allows is made: nothing is too hot."""
    refinement = Refinement(copy.deepcopy(module), 5.0)
    c = refinement.cells
    x, y = c.x.copy(), c.y.copy()
    refinement.timing.analyse()
    for n in range(3):
        refinement._round(20_000, tau=.5, temperature=1e9, radius=8, seed=10 * seed + n)
        legal(module, refinement.sites())
    moved = (c.x != x) | (c.y != y)
    assert all((moved & which).any() for which in (c.kind == COMB, c.kind == FF, c.carry, c.lut_ram))


def test_a_refined_placement_is_routed(tmp_path):
    found = ecp5.refined(merger(), 300, tmp_path)
    assert found.mhz > 100
    assert found.mhz == pytest.approx(Timing(found.cells, 5.0).analyse(found.wires), rel=1e-5)
    assert (found.wires[~found.cells.inside] > 0).all()


def test_long_carry_chains_keep_together(tmp_path):
    """Counters have chains of four tiles, with a flip-flop at every bit."""
    (tmp_path / "netlist.json").write_text(ecp5.netlist(part_design(Counter(8), "ecp5"), wide=False).read_text())
    NEXTPNR.run([*OPTIONS, "--no-route", "--json", "netlist.json", "--write", "placed.json"], tmp_path)
    module = json.loads((tmp_path / "placed.json").read_text())["modules"]["top"]
    refinement = Refinement(module, 5.0)
    c = refinement.cells
    before = c.y[c.carry].copy()
    refinement.timing.analyse()
    refinement._round(20_000, tau=.5, temperature=1e9, radius=8, seed=1)
    legal(module, refinement.sites())
    assert (c.y[c.carry] != before).any()


def test_cells_without_a_site_are_refused(module):
    name = next(iter(module["cells"]))
    del module["cells"][name]["attributes"]["NEXTPNR_BEL"]
    with pytest.raises(ValueError, match="Every cell must have a site, but"):
        packed(module)


@pytest.mark.parametrize("name", ["X2/Y3/SLICEA.K0", "X124/Y93/SLICED.FF1", "X40/Y50/SLICEC.RAMW"])
def test_names_of_sites_are_read_and_written(name):
    assert site_name(*site(name)) == name


def test_other_names_of_sites_are_refused():
    with pytest.raises(ValueError, match="A site must be named"):
        site("SLICEA")
