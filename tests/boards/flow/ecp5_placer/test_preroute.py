import copy
from dataclasses import replace

from splitjoin_boards.flow.ecp5_placer.annealer import Annealer
from splitjoin_boards.flow.ecp5_placer.preroute import preroute
from splitjoin_boards.flow.ecp5_placer.router import Router

from .placements import OPTIONS, assert_legal


def test_placement_is_legal_and_the_most_critical_nets_are_fixed(placed, annealer, router):
    found = preroute(annealer, router, rounds=3)
    assert_legal(placed["modules"]["top"], annealer.bels())
    assert found.fixed_routes.keys() <= found.routes.keys()
    assert found.fixed_routes
    slack = dict(zip(annealer.netlist.net_names, annealer.net_slack(), strict=True))
    assert max(slack[name] for name in found.fixed_routes) < min(
        (slack[name] for name in found.routes.keys() - found.fixed_routes.keys()), default=9)


def test_rounds_that_make_it_worse_leave_nothing_behind(placed, tmp_path, monkeypatch):
    """From the second round on all wires are slower: placement, routes and delays of the first one remain."""
    def prerouted(rounds):
        annealer = Annealer(copy.deepcopy(placed["modules"]["top"]), 1e3 / 220)
        found = preroute(annealer, Router(placed, OPTIONS, tmp_path), rounds)
        return found, annealer.bels(), annealer.timing.violations(), annealer.timing.arc_delay.copy()

    real, calls = Router.route_arcs, []

    def route_arcs(self, annealer, arcs, routes):
        found = real(self, annealer, arcs, routes)
        calls.append(found)
        return found if len(calls) <= 2 else replace(found, arc_delays=found.arc_delays + 3)

    monkeypatch.setattr(Router, "route_arcs", route_arcs)
    once = prerouted(1)
    again = prerouted(3)
    assert len(calls) == 4
    assert again[:3] == once[:3]
    assert (again[3] == once[3]).all()
