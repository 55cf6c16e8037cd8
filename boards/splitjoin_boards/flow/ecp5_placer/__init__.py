"""An optional timing-driven placer for ECP5: it improves a placement of nextpnr-ecp5's, which nextpnr then routes.

nextpnr legalizes its analytical placement by wire length, which throws a few cells far away from where their timing
needs them. This package anneals the legal placement with a static timing analysis and the delays of routed wires, and
pre-routes critical nets (docs/synthesis.md, docs/adr/0029-placements-are-annealed.md). `splitjoin_boards.flow.ecp5`
imports it only if it is asked to anneal. `place_and_route` and `fit_wire_delays` are the whole interface: nothing else
may be imported from outside, and the package imports nothing of the project but `flow.tools` and `flow.floorplan`.

**In** (`place_and_route`): ``netlist``, Yosys's JSON for nextpnr-ecp5, flat, one clock; ``options``, nextpnr's: an
LFE5U-85F of speed grade 6, placer and router, but no seed; ``folder``, for all files of the run.

**Options**: ``anneal_mhz``, the clock in MHz that slack is computed for while annealing: best a few percent above what
can be reached. ``preroute_mhz``, the same for pre-routing, or None to skip that. ``seed``, of nextpnr's placer.

**Out**: `PlacerResult`. The placement is legal: each slice and tile keeps nextpnr's rules. Cells, nets and their
function are the netlist's; only locations and routes change. Raises `ToolError` if nextpnr fails, and `ValueError` for
a combinational loop.

**What depends on chance.** Annealing draws random moves, from generators with constant seeds. nextpnr's placer and
router break ties by their seeds, and in an order that depends on the names of cells. So the same netlist, options, seed
and versions of nextpnr, NumPy and numba give the same placement; a changed name, arithmetic with another rounding, or
another version gives another one, as good on average. Expect clocks of whole circuits to differ by several percent
between such runs, and compare designs by several seeds. `ecp5.route` caches a result by its inputs, among them the
source of this package.

Modules: `netlist` and `timing` (what is analysed), `delays` and `calibration` (its estimates), `fabric` and `occupancy`
(legality), `cost`, `moves` and `annealer`, `routes`, `router` and `preroute`, `flow` (all in order).
"""

from .calibration import fit_wire_delays
from .flow import PlacerResult, place_and_route

__all__ = ["PlacerResult", "fit_wire_delays", "place_and_route"]
