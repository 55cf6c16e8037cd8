"""The search for a design over kinds, cores, lanes and probes, by the cost and speed models."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, product

from ..cost import CircuitCost, circuit_cost
from ..lowering import too_large
from ..wire import Configuration
from .boards import Fpga
from .clock import ClockEstimate, clock
from .core_kinds import CORE_SPEEDS
from .speed import cycles_a_tuple, input_cycles, latency_cycles
from .workload import BURST, Workload

#: Shares of an FPGA's resources that a design may take: the fullest routed circuits took 51 % of the LUT4 or 53 % of
#: the flip-flops of their FPGA; one with 65 % of the LUT4 was placed but not routed (docs/synthesis.md).
FULL = {"lut": 0.55, "ff": 0.55, "block_ram": 1.0, "dsp": 1.0}


#: Records of a queue ahead of a region: two bursts. A block RAM has room for more, but no more is needed.
QUEUED = 2 * BURST


@dataclass(frozen=True)
class Requirements:
    """The requirements of a design.

    Attributes:
        rate: Least tuples a second, both streams together; None for the highest possible rate.
        latency: Most seconds from a probe that waits for a pass to its star; None for any.
        cores, lanes, probes, queue, tables: Fixed by the user, or None.
    """

    rate: float | None = None
    latency: float | None = None
    cores: int | None = None
    lanes: int | None = None
    probes: int | None = None
    queue: int | None = None
    tables: bool | None = None


@dataclass(frozen=True)
class DesignPoint:
    """A configuration on an FPGA, with its predicted figures. ``load``: its workload."""

    config: Configuration
    fpga: Fpga
    load: Workload

    @cached_property
    def clock(self) -> ClockEstimate:
        """The predicted clock."""
        return clock(self.config)

    @cached_property
    def cost(self) -> CircuitCost:
        """The cost of the circuit."""
        return circuit_cost(self.config, self.fpga.family)

    @cached_property
    def shares(self) -> dict[str, float]:
        """Resource → used share of its allowance; above 1 the design does not fit."""
        total = self.cost.total
        return {name: getattr(total, name) / (full * getattr(self.fpga, name)) for name, full in FULL.items()}

    @property
    def rate(self) -> float:
        """Predicted tuples a second, both streams together."""
        return self.clock.mhz * 1e6 / cycles_a_tuple(self.config, self.load)

    @property
    def input_rate(self) -> float:
        """Predicted tuples a second, both streams together, if comparing took no time."""
        return self.clock.mhz * 1e6 / input_cycles(self.config, self.load)

    def latency(self, *, busy: bool) -> float:
        """Predicted seconds from a probe to its star; ``busy``: the probe arrives when a pass has just begun."""
        return latency_cycles(self.config, self.load, busy=busy) / (self.clock.mhz * 1e6)

    @property
    def fits(self) -> bool:
        """True if the FPGA has room for it."""
        return max(self.shares.values()) <= 1

    def misses(self, requirements: Requirements) -> dict[str, float]:
        """Requirement that the design misses → the factor by which it does."""
        found = {}
        if requirements.rate is not None:
            found["rate"] = requirements.rate / self.rate
        if requirements.latency is not None:
            found["latency"] = self.latency(busy=True) / requirements.latency
        for name in ("cores", "lanes", "probes"):
            required, has = getattr(requirements, name), getattr(self.config, name)
            if required is not None:
                found[name] = max(required / has, has / required)
        return {name: factor for name, factor in found.items() if factor > 1}


@dataclass(frozen=True)
class SearchResult:
    """The outcome of a search.

    Attributes:
        best: The design that fits and meets the requirements; if there is none, the one that fits and misses them
            least; None if none fits.
        wanted: If no design does both, the one that meets the requirements and exceeds the FPGA least; if none meets
            them and none fits, the one that exceeds the FPGA least; else None.
    """

    best: DesignPoint | None
    wanted: DesignPoint | None


#: Kind of core → a configuration of it, and its workload.
Bases = Mapping[str, tuple[Configuration, Workload]]


def search(bases: Bases, fpga: Fpga, requirements: Requirements) -> tuple[SearchResult, dict[str, SearchResult]]:
    """The outcome for all kinds of core together, and of each.

    Without a required rate, the best design is the fastest, to within a percent. With one, and among equally fast
    designs, it is the one that uses the smallest share of its scarcest resource.
    """
    designs = {kind: list(_designs(base, fpga, load, requirements)) for kind, (base, load) in bases.items()}
    return (_chosen([d for some in designs.values() for d in some], requirements),
            {kind: _chosen(some, requirements) for kind, some in designs.items()})


def _chosen(designs: list[DesignPoint], requirements: Requirements) -> SearchResult:
    meeting = [d for d in designs if not d.misses(requirements)]
    # The cost takes longest: without a rate, only those are costed that are not slower than the fastest that fits.
    rank = _speed if requirements.rate is None else lambda _: 0.0
    for _, equals in groupby(sorted(meeting, key=rank, reverse=True), rank):
        if both := [d for d in equals if d.fits]:
            return SearchResult(min(both, key=_scarcest), None)
    near = min((d for d in designs if d.fits), default=None,
               key=lambda d: (sum(map(math.log, d.misses(requirements).values())), -_speed(d), _scarcest(d)))
    # If nothing fits and nothing meets the requirements, the window alone is the obstacle.
    return SearchResult(near, min(meeting if near or meeting else designs, key=_scarcest, default=None))


def window_that_fits(bases: Bases, fpga: Fpga) -> int | None:
    """The largest power of two of tuples in a window, below that of the workloads, for which some design fits."""
    def fits(power: int) -> bool:
        return any(d.fits for base, load in bases.values() for d in _designs(base, fpga, replace(
            load, r=min(load.r, 1 << power), s=min(load.s, 1 << power)), Requirements()))

    powers = range((max(load.tuples for _, load in bases.values()) - 1).bit_length())
    found = bisect_left(powers, True, key=lambda power: not fits(power))
    return 1 << found - 1 if found else None


def _speed(design: DesignPoint) -> float:
    """The rate in steps of a percent, in which designs are compared."""
    return round(100 * math.log(design.rate))


def _scarcest(design: DesignPoint) -> float:
    return max(design.shares.values())


def _designs(base: Configuration, fpga: Fpga, load: Workload, requirements: Requirements) -> Iterator[DesignPoint]:
    for cores in _cores(requirements.cores):
        least = 1 << max(1, (-(-load.tuples // cores) - 1).bit_length())
        shapes = CORE_SPEEDS[base.core].shapes(least, requirements.lanes, requirements.probes)
        for shape, tables, queue in product(shapes, _tables(base, requirements), _queues(load, requirements)):
            if shape.capacity > 65536:
                continue
            config = replace(base, cores=cores, tables=tables, queue=queue, **shape._asdict())
            if not too_large(config):
                yield DesignPoint(config, fpga, load)


def _tables(base: Configuration, requirements: Requirements) -> list[bool]:
    """The values of ``tables`` to try; both if some test can be looked up and the user has fixed none."""
    if requirements.tables is not None:
        return [requirements.tables]
    return [False, True] if base.kind.has_tables and any(wide is not None for wide in base.test_widths) else [False]


def _queues(load: Workload, requirements: Requirements) -> list[int]:
    """The values of ``queue`` to try: none with alternating input, and `QUEUED` for any other."""
    if requirements.queue is not None:
        return [requirements.queue]
    return [0] if load.arrival == "alternating" else [0, QUEUED]


def _cores(required: int | None) -> list[int]:
    """The numbers of cores to try: all up to 16, then in ever larger steps."""
    steps = {*range(1, 17), *range(18, 33, 2), *range(36, 65, 4), *range(80, 129, 16), *range(192, 513, 64), 768, 1024}
    return sorted(steps | (set() if required is None else {required}))
