"""Pre-routing: critical arcs are routed without all others, and cells whose routed wires are too slow move a little."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from tqdm import tqdm

from .annealer import Annealer
from .arrays import Bools
from .netlist import PlacedNetlist
from .router import Router
from .routes import Routes

__all__ = ["PreRoutes", "preroute"]

#: Slack below which an arc is critical and pre-routed, and below which a net's route is fixed, in ns.
_CRITICAL_SLACK, _FIXED_SLACK = .8, .2
#: Added to the delay estimate of arcs that a repair changes, in ns.
_MARGIN = .1
#: Rounds of routing critical arcs.
_ROUNDS = 4


@dataclass(frozen=True)
class PreRoutes:
    """``routes``: of nets with critical arcs. ``fixed_routes``: of the most critical nets among them."""

    routes: Routes
    fixed_routes: Routes


def preroute(annealer: Annealer, router: Router, rounds: int = _ROUNDS) -> PreRoutes:
    """Route critical arcs, repair the placement by their routed delays, and repeat, each time from the best round.

    Afterwards ``annealer`` has the best placement, with the delays of its pre-routed arcs back-annotated: its timing
    analysis gives the clock for the case that full routing keeps all pre-routes. The best round is the one with the
    least total negative slack for the clock of ``annealer.timing.period``.
    """
    timing, netlist = annealer.timing, annealer.netlist
    least, known = np.inf, Routes()
    for n in tqdm(range(rounds), desc="pre-routing", disable=not sys.stderr.isatty(), leave=False):
        timing.analyse()
        critical = (timing.slack < _CRITICAL_SLACK) & ~netlist.in_slice
        found = router.route_arcs(annealer, critical, known)
        critical &= ~np.isnan(found.arc_delays)
        timing.annotate(critical, found.arc_delays)
        timing.analyse()
        _, negative_slack = timing.violations()
        if negative_slack < least:
            least, snapshot, annotation, best = negative_slack, annealer.snapshot(), timing.annotation, found
        # Delays of a round that made it worse are not those of the best round's routes.
        timing.annotation = annotation
        annealer.restore(snapshot)
        if not negative_slack or n == rounds - 1:
            break
        annealer.repair(margin=_MARGIN, seed=n)
        # Nets that did not move and are late nevertheless are routed anew, as are those that moved.
        keep = ~annealer.moved_since(snapshot)[netlist.driver] & (annealer.net_slack() >= 0)
        known = _routes_of(best.routes, netlist, keep)
    slack = annealer.net_slack()
    return PreRoutes(_routes_of(best.routes, netlist, slack < _CRITICAL_SLACK),
                     _routes_of(best.routes, netlist, slack < _FIXED_SLACK))


def _routes_of(routes: Routes, netlist: PlacedNetlist, nets: Bools) -> Routes:
    """The routes of some nets."""
    names = {netlist.net_names[net] for net in np.flatnonzero(nets)}
    return {name: wires for name, wires in routes.items() if name in names}
