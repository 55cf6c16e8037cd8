"""Placements settled: wires on late paths are routed by themselves, and what is late then is moved a little."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from tqdm import tqdm

from .packed import Bools, Packed
from .refine import Refinement
from .router import Router
from .routes import Routes

__all__ = ["Settled", "settle"]

#: What is close has less slack than this, in ns; wires of what is moved are foreseen to take that much more than in
#: general; and routes of nets with less slack than the last are to be held.
_CLOSE, _AHEAD, _HELD = .8, .1, .2
#: How often close wires are routed.
_ROUNDS = 4


@dataclass(frozen=True)
class Settled:
    """``routes``: of nets with close wires; ``urgent``: those of the latest ones."""

    routes: Routes
    urgent: Routes


def settle(refinement: Refinement, router: Router, rounds: int = _ROUNDS) -> Settled:
    """Route close wires by themselves, move what is late then, and again, always from the best that was found.

    The placement is left as it was best, and what its wires took is learnt, so that `Timing` tells the clock that can
    be had if all else leaves them their routes. Late is what is too slow for the clock of ``refinement``'s period.
    """
    timing, cells = refinement.timing, refinement.cells
    least, known = np.inf, Routes()
    for n in tqdm(range(rounds), desc="settling", disable=not sys.stderr.isatty(), leave=False):
        timing.analyse()
        close = (timing.slack < _CLOSE) & ~cells.inside
        found = router.alone(refinement, close, known)
        close &= ~np.isnan(found.wires)
        timing.learn(close, found.wires)
        timing.analyse()
        _, late = timing.late()
        if late < least:
            least, state, learnt, best = late, refinement.state(), timing.learnt, found
        # What a try that failed took is not what the wires take that are left as they were.
        timing.learnt = learnt
        refinement.restore(state)
        if not late or n == rounds - 1:
            break
        refinement.mend(ahead=_AHEAD, seed=n)
        # What is late where it stayed had bad luck: its route is looked for again, as are those of what moved.
        known = _some(best.routes, cells, ~refinement.moved(state)[cells.source] & (refinement.net_slack() >= 0))
    slack = refinement.net_slack()
    return Settled(_some(best.routes, cells, slack < _CLOSE), _some(best.routes, cells, slack < _HELD))


def _some(routes: Routes, cells: Packed, nets: Bools) -> Routes:
    """The routes of some nets."""
    names = {cells.nets[of] for of in np.flatnonzero(nets)}
    return {name: wires for name, wires in routes.items() if name in names}
