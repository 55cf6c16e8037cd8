"""Wires that are routed by themselves, and what is done with what they took."""

import copy
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from splitjoin.boards.flow import ecp5
from splitjoin.boards.flow.refine.packed import packed
from splitjoin.boards.flow.refine.refine import Refinement
from splitjoin.boards.flow.refine.router import Router
from splitjoin.boards.flow.refine.routes import partial, routes, shared_with, written
from splitjoin.boards.flow.refine.settle import settle
from splitjoin.boards.flow.refine.timing import Timing
from splitjoin.boards.flow.tools import NEXTPNR

from .test_refine import ROUTING, legal, merger

CLOCK = 220


@pytest.fixture(scope="module")
def placed(tmp_path_factory):
    """A placement of nextpnr's, not routed."""
    folder = tmp_path_factory.mktemp("placed")
    (folder / "netlist.json").write_text(ecp5.netlist(merger(), wide=False).read_text())
    NEXTPNR.run([*ROUTING, "--seed", "1", "--no-route", "--json", "netlist.json", "--write", "placed.json"], folder)
    return json.loads((folder / "placed.json").read_text())


@pytest.fixture
def refinement(placed):
    return Refinement(copy.deepcopy(placed["modules"]["top"]), 1e3 / CLOCK)


def router(placed, folder: Path):
    """In a folder with the netlist, as nextpnr needs that if it runs scripts."""
    (folder / "netlist.json").write_text(ecp5.netlist(merger(), wide=False).read_text())
    return Router(placed, ROUTING, folder)


def close(refinement, slack):
    refinement.timing.analyse()
    return (refinement.timing.slack < slack) & ~refinement.cells.inside


def test_some_wires_are_routed_alone(placed, refinement, tmp_path):
    arcs = close(refinement, 1)
    assert arcs.sum() > 20
    found = router(placed, tmp_path).alone(refinement, arcs, {})
    assert (found.wires[arcs] > 0).all()
    with_them = shared_with(refinement.cells, arcs)
    assert with_them.sum() < len(arcs)
    left_out = ~with_them & ~refinement.cells.inside
    assert np.isnan(found.wires[left_out]).all()


def test_what_shares_an_enable_or_reset_is_kept_or_left_out_together(placed, refinement):
    cells = refinement.cells
    enabled = [arc for arc, port in enumerate(cells.sink_port) if port == "CE"]
    for arc in enabled[::10]:
        some = np.zeros(len(cells.net), np.bool_)
        some[arc] = True
        kept = shared_with(cells, some)
        assert {cells.net[other] for other in np.flatnonzero(kept)} == {cells.net[arc]}
        assert all(kept[other] for other in enabled if cells.net[other] == cells.net[arc])
    module = placed["modules"]["top"]
    nothing = partial(module, cells, np.zeros(len(cells.net), np.bool_))
    assert nothing["cells"].keys() == module["cells"].keys()
    for name, cell in nothing["cells"].items():
        wanted = {"TRELLIS_FF": {"CLK", "DI"}, "TRELLIS_COMB": {"WCK", "FCI", "WD", "WAD0", "WAD1", "WAD2", "WAD3"}}
        if cell["type"] in wanted:
            inputs = {port for port, bits in cell["connections"].items()
                      if bits and cell["port_directions"][port] == "input"}
            assert inputs <= wanted[cell["type"]], name


def test_routes_that_are_given_stay(placed, refinement, tmp_path):
    """Those that are held, whatever comes; all of them, while nothing else is there."""
    of = router(placed, tmp_path)
    arcs = close(refinement, 1.5)
    known = of.alone(refinement, arcs, {}).routes
    names = {refinement.cells.nets[refinement.cells.net[arc]] for arc in np.flatnonzero(arcs)}
    known = {name: wires for name, wires in known.items() if name in names}
    assert len(known) > 20
    whole = of.whole(refinement, known, known)
    assert not np.isnan(whole.wires).any()
    few = ("CE", "LSR", "WRE")
    for name, wires in known.items():
        left = {wire: pip for wire, pip in wires.items() if whole.routes[name].get(wire) != pip}
        # Only what leads to inputs that a tile has few of can be taken away.
        assert not left or any(wire.split("/")[-1].startswith(few) for wire in wires)
    again = of.alone(refinement, arcs, known).routes
    assert all(again[name] == wires for name, wires in known.items())


def test_inputs_that_are_few_are_not_held():
    wires = {"X5/Y5/Q0_SLICE": "", "X5/Y5/Q0": "X5/Y5/0_0_Q0_SLICE->0_0_Q0", "X5/Y6/V01S": "X5/Y5/0_0_Q0->0_1_V01S",
             "X5/Y6/CE1": "X5/Y6/0_0_V01S->0_0_CE1", "X5/Y6/CE1_SLICE": "X5/Y6/0_0_CE1->0_0_CE1_SLICE",
             "X5/Y5/A3_SLICE": "X5/Y5/0_0_Q0->0_0_A3_SLICE"}
    said = written({"n": wires, "m": wires}, {"n"})
    strength = dict(zip(said["n"].split(";")[0::3], said["n"].split(";")[2::3], strict=True))
    assert strength == {"X5/Y5/Q0_SLICE": "4", "X5/Y5/Q0": "4", "X5/Y6/V01S": "1", "X5/Y6/CE1": "1",
                        "X5/Y6/CE1_SLICE": "1", "X5/Y5/A3_SLICE": "4"}
    assert set(said["m"].split(";")[2::3]) == {"1"}


def test_routes_are_read_but_for_global_ones_and_those_of_pads():
    def net(said):
        return {"bits": [2], "attributes": {"ROUTING": said} if said else {}}

    module = {"netnames": {
        "none": net(""), "global": net("X1/Y1/Q0_SLICE;;5;X2/Y2/G;X2/Y2/0_0_A->0_0_G;5"),
        "pad": net("X126/Y11/JPADDIA_PIO;;1"), "ram": net("X1/Y1/JDOA3_EBR;;1"),
        "slice": net("X2/Y3/F4_SLICE;;1;X2/Y3/F4;X2/Y3/0_0_F4_SLICE->0_0_F4;1")}}
    assert routes(module) == {"ram": {"X1/Y1/JDOA3_EBR": ""},
                              "slice": {"X2/Y3/F4_SLICE": "", "X2/Y3/F4": "X2/Y3/0_0_F4_SLICE->0_0_F4"}}


def test_a_delay_that_was_learnt_holds_until_a_cell_is_moved(refinement):
    timing, c = refinement.timing, refinement.cells
    arc = np.flatnonzero(~c.inside & c.movable[c.sink] & (c.source[c.net] != c.sink))[0]
    timing.analyse()
    told = timing.wire[arc]
    which = np.arange(len(c.net)) == arc
    timing.learn(which, np.full(len(c.net), 7.5))
    timing.analyse()
    assert timing.wire[arc] == 7.5
    c.x[c.sink[arc]] += 1
    timing.analyse()
    assert timing.wire[arc] < 7.5
    c.x[c.sink[arc]] -= 1
    learnt = timing.learnt
    timing.learn(which, np.full(len(c.net), told))
    timing.analyse()
    assert timing.wire[arc] == told
    timing.learnt = learnt
    timing.analyse()
    assert timing.wire[arc] == 7.5


def test_mending_moves_little_and_makes_less_late(placed, refinement):
    timing = refinement.timing
    timing.period = 1e3 / 190
    timing.analyse()
    before, state = timing.late(), refinement.state()
    refinement.mend()
    assert timing.late()[1] < before[1]
    legal(placed["modules"]["top"], refinement.sites())
    assert 0 < refinement.moved(state).sum() < .5 * len(refinement.cells.names)
    refinement.restore(state)
    assert timing.late() == before
    assert not refinement.moved(state).any()


def test_a_settled_placement_is_legal_and_knows_its_routes(placed, refinement, tmp_path):
    found = settle(refinement, router(placed, tmp_path), rounds=3)
    legal(placed["modules"]["top"], refinement.sites())
    assert found.urgent.keys() <= found.routes.keys()
    assert found.urgent
    slack = dict(zip(refinement.cells.nets, refinement.net_slack(), strict=True))
    assert max(slack[name] for name in found.urgent) < min(
        (slack[name] for name in found.routes.keys() - found.urgent.keys()), default=9)


def test_tries_that_fail_leave_nothing_behind(placed, tmp_path, monkeypatch):
    """After the first try, wires are slower than anything: the first one stands, with what its wires took."""
    def settled(rounds):
        refinement = Refinement(copy.deepcopy(placed["modules"]["top"]), 1e3 / CLOCK)
        found = settle(refinement, router(placed, tmp_path), rounds)
        return found, refinement.sites(), refinement.timing.late(), refinement.timing.wire.copy()

    real, tries = Router.alone, []

    def alone(self, refinement, arcs, known):
        found = real(self, refinement, arcs, known)
        tries.append(found)
        return found if len(tries) <= 2 else replace(found, wires=found.wires + 3)

    monkeypatch.setattr(Router, "alone", alone)
    once = settled(1)
    again = settled(3)
    assert len(tries) == 4
    assert again[:3] == once[:3]
    assert (again[3] == once[3]).all()


def test_it_is_routed(tmp_path):
    found = ecp5.refined(merger(), 300, tmp_path, settled=CLOCK)
    assert found.mhz == pytest.approx(Timing(found.cells, 5.0).analyse(found.wires), rel=1e-5)
    assert packed(json.loads((tmp_path / "placed.json").read_text())["modules"]["top"]).names == found.cells.names
