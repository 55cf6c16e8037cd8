"""The search for a design: all kinds, cores, lanes and probes that are worth a look, by the cost and speed models."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from ..circuit.wire import Configuration
from ..cost import Circuit, circuit
from .boards import Device
from .clock import Clock, clock
from .speed import Load, cycles_a_tuple, input_cycles, latency_cycles

__all__ = ["FULL", "Design", "Found", "Wishes", "search", "window_that_fits"]

#: Shares of a device's resources that a design may take: the fullest circuits that were routed took 51 % of the LUT4 or
#: 53 % of the flip-flops of their device, one of 65 % of the LUT4 was placed but not routed (docs/synthesis.md).
FULL = {"lut": 0.55, "ff": 0.55, "block_ram": 1.0, "dsp": 1.0}
#: Probes that are tried; lanes are tried all.
_PROBES = (1, 2, 3, 4, 6, 8, 12, 16)
_LANES = (1, 2, 4, 8)
#: Of cores with an index, how many times as many tuples as they hold there is room for, and as many buckets.
_ROOM = (1, 2, 4)


@dataclass(frozen=True)
class Wishes:
    """What is asked of a design. ``rate``: tuples a second, both streams; ``latency``: seconds, of a probe that waits
    for a pass; None where anything is right. ``cores``, ``lanes``, ``probes``, ``tables``: fixed by the user, or None.
    """

    rate: float | None = None
    latency: float | None = None
    cores: int | None = None
    lanes: int | None = None
    probes: int | None = None
    tables: bool | None = None


@dataclass(frozen=True)
class Design:
    """A configuration on a device, with what is predicted of it. ``load``: what it has to do."""

    config: Configuration
    device: Device
    load: Load

    @cached_property
    def clock(self) -> Clock:
        """Its predicted clock."""
        return clock(self.config)

    @cached_property
    def cost(self) -> Circuit:
        """Its cells."""
        return circuit(self.config, self.device.family)

    @cached_property
    def shares(self) -> dict[str, float]:
        """Resource → share of what may be used of it; above 1 it does not fit."""
        total = self.cost.total
        return {name: getattr(total, name) / (full * getattr(self.device, name)) for name, full in FULL.items()}

    @property
    def rate(self) -> float:
        """Tuples a second, both streams together."""
        return self.clock.mhz * 1e6 / cycles_a_tuple(self.config, self.load)

    @property
    def input_rate(self) -> float:
        """The same, if comparing took no time."""
        return self.clock.mhz * 1e6 / input_cycles(self.config, self.load)

    def latency(self, *, busy: bool) -> float:
        """Seconds from a probe to its star; ``busy``: it comes when a pass has just begun."""
        return latency_cycles(self.config, self.load, busy=busy) / (self.clock.mhz * 1e6)

    @property
    def fits(self) -> bool:
        """Whether the device has room for it."""
        return max(self.shares.values()) <= 1

    def misses(self, wishes: Wishes) -> dict[str, float]:
        """Wish → by what factor the design misses it, of those that it misses."""
        found = {}
        if wishes.rate is not None:
            found["rate"] = wishes.rate / self.rate
        if wishes.latency is not None:
            found["latency"] = self.latency(busy=True) / wishes.latency
        for name in ("cores", "lanes", "probes"):
            wished, has = getattr(wishes, name), getattr(self.config, name)
            if wished is not None:
                found[name] = max(wished / has, has / wished)
        return {name: factor for name, factor in found.items() if factor > 1}


@dataclass(frozen=True)
class Found:
    """``best``: the design that fits and meets the wishes; or, if there is none, the one that fits and comes nearest,
    and then ``wanted``: the one that meets the wishes and comes nearest to fitting; or, where none meets them and none
    fits, the one that comes nearest to fitting. None where there is none of the kind.
    """

    best: Design | None
    wanted: Design | None


def search(bases: Mapping[str, Configuration], device: Device, load: Load,
           wishes: Wishes) -> tuple[Found, dict[str, Found]]:
    """What is found of all kinds of core together, and of each; ``bases``: kind → a configuration of it.

    Best: without a wished rate the fastest, within a percent, else, and among equals, the one that takes least of its
    scarcest resource.
    """
    designs = {kind: list(_designs(base, device, load, wishes)) for kind, base in bases.items()}
    return (_found([d for some in designs.values() for d in some], wishes),
            {kind: _found(some, wishes) for kind, some in designs.items()})


def _found(designs: list[Design], wishes: Wishes) -> Found:
    meeting = [d for d in designs if not d.misses(wishes)]
    both = [d for d in meeting if d.fits]
    if both:
        return Found(min(both, key=lambda d: (-_speed(d) if wishes.rate is None else 0, _scarcest(d))), None)
    near = min((d for d in designs if d.fits), default=None,
               key=lambda d: (sum(map(math.log, d.misses(wishes).values())), -_speed(d), _scarcest(d)))
    # Where nothing fits, wishes that nothing meets say no more than the window does.
    return Found(near, min(meeting if near or meeting else designs, key=_scarcest, default=None))


def window_that_fits(bases: Mapping[str, Configuration], device: Device, load: Load) -> int | None:
    """The largest power of two of tuples in a window, less than that of ``load``, that some design has room for."""
    def fits(power: int) -> bool:
        smaller = replace(load, r=min(load.r, 1 << power), s=min(load.s, 1 << power))
        return any(d.fits for base in bases.values() for d in _designs(base, device, smaller, Wishes()))

    powers = range((load.tuples - 1).bit_length())
    found = bisect_left(powers, True, key=lambda power: not fits(power))
    return 1 << found - 1 if found else None


def _speed(design: Design) -> float:
    """Its rate in percents that count."""
    return round(100 * math.log(design.rate))


def _scarcest(design: Design) -> float:
    return max(design.shares.values())


def _designs(base: Configuration, device: Device, load: Load, wishes: Wishes) -> Iterator[Design]:
    for cores in _cores(wishes.cores):
        least = 1 << max(1, (-(-load.tuples // cores) - 1).bit_length())
        for (capacity, lanes, probes), tables in product(_regions(base, least, wishes), _tables(base, wishes)):
            if capacity <= 65536:
                yield Design(replace(base, cores=cores, lanes=lanes, probes=probes, capacity=capacity, tables=tables),
                             device, load)


def _tables(base: Configuration, wishes: Wishes) -> list[bool]:
    """With tables or without; both where there is something to look up and nothing is wished."""
    if wishes.tables is not None:
        return [wishes.tables]
    return [False, True] if base.core == "scan" and any(wide is not None for wide in base.test_widths) else [False]


def _regions(base: Configuration, least: int, wishes: Wishes) -> Iterator[tuple[int, int, int]]:
    """Capacity, lanes and probes of regions that hold ``least`` tuples."""
    if base.core == "scan":
        for lanes in _with(_LANES, wishes.lanes):
            for probes in _with(_PROBES, wishes.probes):
                yield max(least, 2 * lanes), lanes, probes
    else:
        for room in _ROOM:
            yield room * least, 1, 1


def _with(choices: tuple[int, ...], wished: int | None) -> list[int]:
    return sorted({*choices} | (set() if wished is None else {wished}))


def _cores(wished: int | None) -> list[int]:
    """All up to 16, then ever larger steps."""
    steps = {*range(1, 17), *range(18, 33, 2), *range(36, 65, 4), *range(80, 129, 16), *range(192, 513, 64), 768, 1024}
    return _with(tuple(steps), wished)
