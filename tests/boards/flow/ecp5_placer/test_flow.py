"""The whole flow of the placer, its calibration, and its interface to the rest of the project."""

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from splitjoin_boards.flow import ecp5
from splitjoin_boards.flow.ecp5_placer import PlacerResult, calibration, delays
from splitjoin_boards.flow.ecp5_placer.netlist import read_netlist
from splitjoin_boards.flow.ecp5_placer.timing import TimingAnalysis

from ....support.sampling import at_length
from .placements import merger

ROOT = Path(__file__).parents[4]
PACKAGE = ROOT / "boards" / "splitjoin_boards" / "flow" / "ecp5_placer"


@pytest.mark.parametrize("preroute_mhz", [None, at_length(220)])
def test_annealed_placement_is_routed(tmp_path, preroute_mhz):
    result = ecp5.run_placer(merger(), tmp_path, anneal_mhz=300, preroute_mhz=preroute_mhz)
    assert result.analysed_mhz > 100
    again = TimingAnalysis(result.netlist, 5.0).analyse(result.arc_delays)
    assert result.analysed_mhz == pytest.approx(again, rel=1e-5)
    reported = min(clock["achieved"] for clock in result.report["fmax"].values())
    # PyPI's nextpnr takes some carry cells for slower ones.
    assert 0.85 * again < reported <= 1.001 * again
    assert (result.arc_delays[~result.netlist.in_slice] > 0).all()
    module = json.loads((tmp_path / "placed.json").read_text())["modules"]["top"]
    assert read_netlist(module).cell_names == result.netlist.cell_names


def imported(path):
    """The modules that a file imports, relative ones in full."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(("splitjoin", *parts[:-node.level])) if node.level else ""
            yield from (".".join(filter(None, (base, node.module, alias.name))) for alias in node.names)


def test_only_ecp5_and_its_calibration_import_the_placer():
    """And only what the package itself exports."""
    users = {}
    for folder in ("sw", "hw", "sim", "boards", "bench"):
        for path in (ROOT / folder).rglob("*.py"):
            if PACKAGE not in path.parents and (names := {n for n in imported(path) if "ecp5_placer" in n}):
                users[str(path.relative_to(ROOT))] = {name.partition("ecp5_placer")[2] for name in names}
    assert users == {"boards/splitjoin_boards/flow/ecp5.py": {".PlacerResult", ".place_and_route"},
                     "bench/wires.py": {".fit_wire_delays"}}


def test_the_placer_needs_little_of_the_project():
    names = {name for path in PACKAGE.glob("*.py") for name in imported(path) if name.startswith("splitjoin")}
    outside = {name.rpartition(".")[0] for name in names if ".ecp5_placer" not in name}
    assert outside == {"splitjoin_boards.flow.tools", "splitjoin_boards.flow.floorplan"}


def test_the_placer_is_imported_only_for_annealing():
    code = "import sys, splitjoin_boards.flow.ecp5; assert not [m for m in sys.modules if 'ecp5_placer' in m]"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_wire_delays_are_fitted_to_routed_ones(annealer, tmp_path, monkeypatch):
    """To delays that lie on a line, with another delay at each class of port."""
    c = annealer.netlist
    random = np.random.default_rng(1)
    c.x[:], c.y[:] = random.integers(2, 60, (2, len(c.x)))
    driver = c.driver[c.net]
    distance = abs(c.x[driver] - c.x[c.sink]) + abs(c.y[driver] - c.y[c.sink])
    at_sink = np.array([.3 * (port == "CE") for port in c.sink_port])
    at_driver = np.array([.1 * (c.driver_port[net] == "Q") for net in c.net])
    arc_delays = np.where(c.in_slice, 0, .5 + .05 * distance + at_sink + at_driver)
    result = PlacerResult(log="", report={}, analysed_mhz=0, netlist=c, arc_delays=arc_delays)
    shutil.copy(delays.WIRE_DELAYS, tmp_path)
    monkeypatch.setattr(delays, "WIRE_DELAYS", tmp_path / "wire_delays.json")
    assert calibration.fit_wire_delays(result, 500) == tmp_path / "wire_delays.json"
    table, sinks, drivers = delays.wire_table()
    distances = np.add.outer(np.arange(130), np.arange(100))
    sampled = distances > 8  # few arcs are shorter, since the cells lie at random
    assert table[sampled] == pytest.approx(.5 + .05 * distances[sampled], abs=.03)
    assert (sinks["LUT"], drivers["F"]) == (0, 0)
    assert sinks["CE"] == pytest.approx(.3, abs=.01)
    assert drivers["Q"] == pytest.approx(.1, abs=.01)
