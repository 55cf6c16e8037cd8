"""`tune`: the circuit to build for a query on a board, and its predicted figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from splitjoin.base.errors import CapacityError, DeviceError, UnsupportedError, WindowError
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Side
from splitjoin.lang.types import UNIT_NS
from splitjoin.plan.plan import Plan

from ..core_kinds import KINDS
from ..lowering import configure, plan_for, plan_with_bounds, settings, too_large
from ..parameters import CircuitParameters
from ..wire import Configuration
from .boards import board as find_board
from .proposal import Proposal, binding_text
from .sample import measure_sample
from .search import Requirements, search, window_that_fits
from .workload import ARRIVALS, Workload

#: Default share of pairs that meet an index's tests: that of the papers' band benchmark.
SELECTIVITY = 1 / 250_000
#: What follows the name of a kind of core whose candidates the host verifies, where a formula could decide them.
_VERIFIED = ", verified on the host"
#: So many times the rate is worth the host's work.
_FASTER = 2.0


def tune(query: Query, *, board: str = "ulx3s_85f", rate: float | None = None, latency: float | None = None,
         core: str = "auto", cores: int | None = None, lanes: int | None = None, probes: int | None = None,
         queue: int | None = None, tables: bool | None = None, matches: float | None = None,
         selectivity: float | None = None, arrival: str | None = None,
         window_tuples: int | tuple[int, int] | None = None, sample: Sequence[Any] | None = None) -> Proposal:
    """The design for ``query`` on ``board``: the fastest that fits, or the smallest that has the required ``rate``.

    ``rate``: least tuples a second, both streams together, in equal shares. ``latency``: most seconds from a probe to
    its star, if it arrives behind a pass that has just begun. ``core``, ``cores``, ``lanes``, ``probes``, ``queue``,
    ``tables`` (True if tests of constant width are looked up): values fixed by the user, or None for the tuner's
    choice. ``matches``: results of a probe, on average. ``selectivity``: the share of pairs that meet the tests of
    an index. If only one of the two is given, every pair that meets these tests is taken as a result; if neither is,
    the selectivity is `SELECTIVITY`. ``arrival``: the order in which tuples of both streams arrive: ``alternating``,
    ``random`` or ``bursts`` (of 32); None for alternating. Rates are those that a design sustains with these matches
    and this arrival. ``window_tuples``: number of tuples in a RANGE window, of R and S where they differ; by default
    those that arrive in it at ``rate``. ``sample``: a table of R and one of S, consecutive tuples of a typical time, on
    which matches, selectivity, arrival and the tuples of RANGE windows are measured where none of these arguments says
    them (`splitjoin.circuit.tuner.sample.measure_sample`, which raises `InputError` and `SchemaError`).

    If no design meets the requirements, the result is the nearest design that fits, with the limiting resource. Raises
    `CapacityError` if no design fits, and `UnsupportedError` for a ``core`` whose kind has no test in the condition.
    Clocks are those of routed circuits (`splitjoin.circuit.tuner.clock`), latencies follow SplitJoin's model.
    """
    fpga = find_board(board)
    for name, value in (("rate", rate), ("latency", latency)):
        if value is not None and not (isinstance(value, (int, float)) and 0 < value < math.inf):
            raise DeviceError(f"{name} must be a positive number, not {value!r}")
    for name, value, top in (("matches", matches, math.inf), ("selectivity", selectivity, 1)):
        if value is not None and not (isinstance(value, (int, float)) and 0 <= value <= top and value < math.inf):
            raise DeviceError(f"{name} must be a number from 0{'' if top == math.inf else f' to {top}'}, not {value!r}")
    if arrival is not None and arrival not in ARRIVALS:
        raise DeviceError(f"arrival must be one of {', '.join(ARRIVALS)}, not {arrival!r}")
    if tables is not None and not isinstance(tables, bool):
        raise DeviceError(f"tables must be True, False, or None to have it chosen, not {tables!r}")
    fixed: dict[str, Any] = {"cores": cores, "lanes": lanes, "probes": probes, "queue": queue}
    CircuitParameters(core=core, **{name: value for name, value in fixed.items() if value is not None})
    plan = plan_with_bounds(query.predicate)
    measured = None if sample is None else measure_sample(query, sample)
    if measured is not None and window_tuples is None and rate is None:
        window_tuples = measured.held
    windows = (_window(query, "r", rate, window_tuples), _window(query, "s", rate, window_tuples))
    assumed = matches is None and selectivity is None
    if measured is not None:
        if assumed:
            matches, selectivity = measured.matches(*windows), measured.selectivity
        arrival = arrival or measured.arrival
    load = _load(query, plan, windows, matches, selectivity, arrival or "alternating")
    built, refused = _bases(query, core, tables is True, lanes, probes)
    bases = {kind: (base, load) for kind, base in built.items()}
    # Raises for queries that no circuit can run.
    settings(query, replace(next(iter(built.values())), cores=1024), verified=plan.residual is not None)
    requirements = Requirements(rate, latency, cores, lanes, probes, queue, tables)
    found, each = search(bases, fpga, requirements)
    if any(base.formula is not None for base in built.values()):
        on_host, _ = _bases(query, core, tables is True, lanes, probes, verify="host")
        bases |= {f"{kind}{_VERIFIED}": (base, _with_candidates(base, load)) for kind, base in on_host.items()}
        all_, each = search(bases, fpga, requirements)
        if found.best is None or (all_.best is not None and (
                bool(found.best.misses(requirements)) > bool(all_.best.misses(requirements))
                or (rate is None and all_.best.rate > _FASTER * found.best.rate))):
            found = all_
    if found.best is None:
        most = window_that_fits(bases, fpga)
        smaller = "" if most is None else f" ({most:,} tuples fit)"
        raise CapacityError(f"no circuit for windows of {load.tuples:,} tuples fits {board}; "
                            f"{binding_text(found.wanted, requirements)}; use a smaller window{smaller}, a larger "
                            f"board or device='cpu'")
    misses = found.best.misses(requirements)
    chosen = next(kind for kind, other in each.items() if other.best == found.best)
    others = {kind: other.best for kind, other in each.items() if kind != chosen}
    binding = binding_text(found.wanted, requirements, found.best) if misses else ""
    return Proposal(board, fpga, found.best, others, refused, assumed, requirements, misses, binding, measured,
                    verified=chosen.endswith(_VERIFIED))


def _with_candidates(base: Configuration, load: Workload) -> Workload:
    """``load`` where all candidates leave a circuit like ``base``, of its index or of the whole window."""
    return replace(load, matches=max(load.matches, (load.selectivity if base.index else 1.0) * load.tuples))


def _bases(query: Query, core: str, tables: bool, lanes: int | None, probes: int | None, *,
           verify: str = "auto") -> tuple[dict[str, Configuration], dict[str, str]]:
    """Kind → a configuration with such cores, for the kinds to choose from; and for the others, kind → reason why not.
    ``tables``: the cores must have tables. ``lanes``, ``probes``: those that the user demands. Raises
    `UnsupportedError` if there is no kind to choose from.
    """
    bases, refused = dict[str, Configuration](), dict[str, UnsupportedError]()
    for kind in KINDS:
        if core not in ("auto", kind):
            continue
        try:
            parameters = CircuitParameters(capacity=65536, core=kind, tables=tables, verify=verify)
            base = configure(query, plan_for(query, parameters), parameters)
            if not base.index and (reason := too_large(replace(base, lanes=lanes or 1, probes=probes or 1))):
                raise UnsupportedError(reason)
            bases[kind] = base
        except UnsupportedError as error:
            if core == kind or (tables and KINDS[kind].has_tables):
                raise
            refused[kind] = error
    if not bases:
        raise refused["scan"]
    return bases, {kind: str(error).partition(";")[0] for kind, error in refused.items()}


def _load(query: Query, plan: Plan, windows: tuple[int, int], matches: float | None, selectivity: float | None,
          arrival: str) -> Workload:
    tuples = max(windows)
    if selectivity is None:
        selectivity = SELECTIVITY if matches is None else min(1.0, matches / tuples)
    if matches is None:
        matches = selectivity * tuples
    points = frozenset(j for j, test in enumerate(plan.tests) if test.is_point)
    kind, n = query.order.kind, query.order.n
    stars = {"none": 0.0, "outer": 1 / n, "inner": 1 + tuples / n, "total": 1.0}[kind]
    return Workload(*windows, matches, kind == "inner", selectivity, points, stars, arrival)


def _window(query: Query, side: Side, rate: float | None, window_tuples: int | tuple[int, int] | None) -> int:
    given = window_tuples["rs".index(side)] if isinstance(window_tuples, tuple) and len(window_tuples) == 2 \
        else window_tuples
    if given is not None and not (type(given) is int and given >= 1):
        raise WindowError(f"window_tuples must be a number of tuples from 1, or one for R and one for S, not "
                          f"{window_tuples!r}")
    extent = query.window(side)
    held = []
    if extent.rows is not None:
        held.append(extent.rows)
    if extent.length is not None:
        if given is not None:
            held.append(given)
        elif rate is not None and query.time is not None and _seconds(query) is not None:
            held.append(math.ceil((extent.length + 1) * (_seconds(query) or 0.0) * rate / 2))
    if not held:
        raise WindowError("a RANGE window holds as many tuples as arrive in it: give window_tuples "
                          "(--window-tuples), a sample (--sample)"
                          + ("" if _seconds(query) is None else ", or rate (--rate)"))
    return max(1, min(held))


def _seconds(query: Query) -> float | None:
    """Length in seconds of the unit of event times, None for numbers without a unit."""
    if query.time is None:
        return None
    if query.time.tick is not None:
        return {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[query.time.tick]
    return UNIT_NS["DAY"] / 1e9 if str(query.time.type) == "date" else None
