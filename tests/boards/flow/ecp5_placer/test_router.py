import numpy as np

from splitjoin_boards.flow.ecp5_placer.routes import with_shared_inputs


def arcs_below(annealer, slack):
    annealer.timing.analyse()
    return (annealer.timing.slack < slack) & ~annealer.netlist.in_slice


def test_some_arcs_are_routed_without_the_others(annealer, router):
    arcs = arcs_below(annealer, 1)
    assert arcs.sum() > 20
    found = router.route_arcs(annealer, arcs, {})
    assert (found.arc_delays[arcs] > 0).all()
    kept = with_shared_inputs(annealer.netlist, arcs)
    assert kept.sum() < len(arcs)
    removed = ~kept & ~annealer.netlist.in_slice
    assert np.isnan(found.arc_delays[removed]).all()


def test_given_routes_stay(annealer, router):
    """Fixed routes stay in full routing, and all given routes stay while only their nets are routed."""
    arcs = arcs_below(annealer, 1.5)
    known = router.route_arcs(annealer, arcs, {}).routes
    names = {annealer.netlist.net_names[annealer.netlist.net[arc]] for arc in np.flatnonzero(arcs)}
    known = {name: wires for name, wires in known.items() if name in names}
    assert len(known) > 20
    result = router.route_all(annealer, known, known)
    assert not np.isnan(result.arc_delays).any()
    shared = ("CE", "LSR", "WRE")
    for name, wires in known.items():
        changed = {wire: pip for wire, pip in wires.items() if result.routes[name].get(wire) != pip}
        # The router may rip up only wires to inputs that the cells of a tile share.
        assert not changed or any(wire.split("/")[-1].startswith(shared) for wire in wires)
    again = router.route_arcs(annealer, arcs, known).routes
    assert all(again[name] == wires for name, wires in known.items())
