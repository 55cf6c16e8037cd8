import copy
import json
from pathlib import Path

import pytest

from splitjoin_boards.flow.ecp5_placer.annealer import Annealer
from splitjoin_boards.flow.ecp5_placer.router import Router
from splitjoin_boards.flow.tools import NEXTPNR

from .placements import OPTIONS, SEED, merger_netlist

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items):
    """One process runs nextpnr for all of these tests."""
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.xdist_group("placer"))


@pytest.fixture(scope="session")
def routed_folder(tmp_path_factory):
    """A folder in which one run of nextpnr has placed and routed the merger."""
    folder = tmp_path_factory.mktemp("routed")
    (folder / "netlist.json").write_text(merger_netlist())
    NEXTPNR.run([*OPTIONS, *SEED, "--json", "netlist.json", "--write", "placed.json", "--report", "report.json",
                 "--sdf", "delays.sdf"], folder)
    return folder


@pytest.fixture
def routed_module(routed_folder):
    """The top module of the merger that nextpnr has placed and routed."""
    return json.loads((routed_folder / "placed.json").read_text())["modules"]["top"]


@pytest.fixture(scope="session")
def placed(tmp_path_factory):
    """Nextpnr's JSON of the merger, placed but not routed."""
    folder = tmp_path_factory.mktemp("placed")
    (folder / "netlist.json").write_text(merger_netlist())
    NEXTPNR.run([*OPTIONS, *SEED, "--no-route", "--json", "netlist.json", "--write", "placed.json"], folder)
    return json.loads((folder / "placed.json").read_text())


@pytest.fixture
def annealer(placed):
    return Annealer(copy.deepcopy(placed["modules"]["top"]), 1e3 / 220)


@pytest.fixture
def router(placed, tmp_path):
    (tmp_path / "netlist.json").write_text(merger_netlist())
    return Router(placed, OPTIONS, tmp_path)
