"""`tune`: which circuit to build for a query on a board, and what to expect of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ..cost.text import cells_text
from ..device.circuit import configure, settings
from ..device.wire import check_parameters
from ..errors import CapacityError, DeviceError, WindowError
from ..lang.plan import Plan, make_plan
from ..lang.query import Query
from ..lang.types import UNIT_NS
from .boards import Device, board as find_board
from .search import Design, Wishes, nearest
from .speed import Load
from .text import binding_text, quantity, share_lines, wishes_text

__all__ = ["Proposal", "tune"]


@dataclass(frozen=True)
class Proposal:
    """A design for a query, and what is predicted of it.

    Attributes:
        board, device: Where it is to run.
        kind: Of the cores, "scan": every probe is compared with every stored tuple. ``kind_reason``: why.
        design: Configuration, cells and shares of the device.
        tuples: Of each stream's window, that were reckoned with.
        met: Whether all wishes are met. ``misses``: wish → by what factor it is missed.
        binding: The resource that stands in the way of the wishes, in words; empty where they are met.
    """

    board: str
    device: Device
    kind: str
    kind_reason: str
    design: Design
    tuples: int
    wishes: Wishes
    misses: dict[str, float]
    binding: str

    @property
    def met(self) -> bool:
        """Whether all wishes are met."""
        return not self.misses

    @property
    def options(self) -> dict[str, int | str]:
        """What `splitjoin.device.circuit.CircuitDevice` and the command line take for this design."""
        config = self.design.config
        return {"core": config.core, "cores": config.cores, "capacity": config.capacity, "lanes": config.lanes,
                "probes": config.probes, "fanout": config.fanout, "fanin": config.fanin}

    @property
    def tuples_per_s(self) -> float:
        """Predicted, both streams together."""
        return self.design.rate

    @property
    def latency_s(self) -> float:
        """Predicted seconds from a probe to its star, on an idle circuit."""
        return self.design.latency(busy=False)

    @property
    def busy_latency_s(self) -> float:
        """The same where the probe comes when a pass has just begun."""
        return self.design.latency(busy=True)

    @property
    def lut(self) -> int:
        """Predicted LUTs."""
        return self.design.cost.total.lut

    @property
    def block_ram(self) -> int:
        """Predicted block RAMs of 18 Kbit."""
        return self.design.cost.total.block_ram

    def __str__(self) -> str:
        design, config = self.design, self.design.config
        lines = [f"board       {self.board}: {self.device.name}, {self.device.lut:,} LUT4, {self.device.block_ram} "
                 f"block RAMs of 18 Kbit",
                 f"cores       {config.cores} of kind {self.kind}: {self.kind_reason}",
                 f"design      lanes {config.lanes}, probes {config.probes}, {config.capacity} tuples a stream and "
                 f"core ({self.tuples:,} a window), fan-out {config.fanout}, fan-in {config.fanin}",
                 f"clock       {design.clock.mhz:.0f} MHz, {design.clock.source}",
                 f"speed       {quantity(self.tuples_per_s, 'tuples/s')}, {design.cost.comparisons} comparisons a "
                 f"cycle ({quantity(design.cost.comparisons * design.clock.mhz * 1e6, 'comparisons/s')} at most)",
                 f"latency     {quantity(self.latency_s, 's')} idle, {quantity(self.busy_latency_s, 's')} behind a "
                 f"pass",
                 f"cost        {cells_text(design.cost.total, self.device.family)}",
                 *share_lines(design)]
        if self.met:
            lines.append(f"wishes      {wishes_text(self.wishes) or 'none: the fastest that fits'}"
                         + (", met" if wishes_text(self.wishes) else ""))
        else:
            lines += [f"wishes      {wishes_text(self.wishes)}: not to be had; this comes nearest",
                      f"binding     {self.binding}"]
        return "\n".join(lines)


def tune(query: Query, *, board: str = "ulx3s_85f", rate: float | None = None, latency: float | None = None,
         cores: int | None = None, lanes: int | None = None, probes: int | None = None, matches: float = 0.0,
         window_tuples: int | None = None) -> Proposal:
    """The design for ``query`` on ``board``: the fastest that fits, or the smallest that has the wished ``rate``.

    ``rate``: tuples a second, both streams together, in equal shares. ``latency``: seconds from a probe to its star, at
    most, behind a pass that has just begun. ``cores``, ``lanes``, ``probes``: where one is not to be chosen.
    ``matches``: results of a probe, on average. ``window_tuples``: how many tuples a stream's RANGE window holds; else
    it is what arrives in it at ``rate``.

    What cannot be met gives the nearest design that fits, with what binds; no design at all that fits raises
    `CapacityError`. Clocks are those of routed circuits (`splitjoin.tuner.clock`), latencies SplitJoin's model.
    """
    device = find_board(board)
    for name, value in (("rate", rate), ("latency", latency)):
        if value is not None and not (isinstance(value, (int, float)) and 0 < value < math.inf):
            raise DeviceError(f"{name} must be a positive number, not {value!r}")
    if not (isinstance(matches, (int, float)) and 0 <= matches < math.inf):
        raise DeviceError(f"matches must be a number from 0, not {matches!r}")
    plan = make_plan(query.predicate)
    check_parameters(cores=1 if cores is None else cores, capacity=65536, fanout=2, fanin=2,
                     lanes=1 if lanes is None else lanes, probes=1 if probes is None else probes)
    base = configure(query, plan, capacity=65536, core="scan")
    tuples = _window(query, rate, window_tuples)
    settings(query, replace(base, cores=1024), verified=plan.residual is not None)  # refuses what no circuit can run
    wishes = Wishes(rate, latency, cores, lanes, probes)
    best, wanted = nearest(base, device, Load(tuples, matches, query.order.kind == "inner"), wishes)
    if best is None:
        raise CapacityError(f"no circuit for windows of {tuples:,} tuples fits {board}; "
                            f"{binding_text(wanted, wishes)}; use a smaller window, a larger board or device='cpu'")
    misses = best.misses(wishes)
    kind, reason = _kind(plan)
    return Proposal(board, device, kind, reason, best, tuples, wishes, misses,
                    binding_text(wanted, wishes, best) if misses else "")


def _kind(plan: Plan) -> tuple[str, str]:
    """Which cores, and why: the models are of cores that scan."""
    if plan.main is None or plan.main.kind is None:
        return "scan", "no test leads to candidates" if plan.main is None else plan.main.reason
    return "scan", f"index cores, here of kind {plan.main.kind} by T{plan.main.test}, are not in the tuner's models"


def _window(query: Query, rate: float | None, window_tuples: int | None) -> int:
    """Tuples of the longer window."""
    if window_tuples is not None and not (type(window_tuples) is int and window_tuples >= 1):
        raise WindowError(f"window_tuples must be a number of tuples from 1, not {window_tuples!r}")
    sizes = []
    for side in "rs":
        extent = query.window(side)
        held = []
        if extent.rows is not None:
            held.append(extent.rows)
        if extent.length is not None:
            if window_tuples is not None:
                held.append(window_tuples)
            elif rate is not None and query.time is not None and _seconds(query) is not None:
                held.append(math.ceil((extent.length + 1) * (_seconds(query) or 0.0) * rate / 2))
        if not held:
            raise WindowError("a RANGE window holds as many tuples as arrive in it: give window_tuples "
                              "(--window-tuples)" + ("" if _seconds(query) is None else ", or rate (--rate)"))
        sizes.append(max(1, min(held)))
    return max(sizes)


def _seconds(query: Query) -> float | None:
    """Length of the unit in which event times count, None for numbers without a unit."""
    if query.time is None:
        return None
    if query.time.tick is not None:
        return {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[query.time.tick]
    return UNIT_NS["DAY"] / 1e9 if str(query.time.type) == "date" else None
