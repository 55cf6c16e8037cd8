"""Clocks of placed and routed circuits, and the prediction of a circuit's clock from them."""

from __future__ import annotations

from dataclasses import dataclass

from splitjoin.base.errors import plural

from ..core_kinds import KINDS
from ..wire import Configuration


@dataclass(frozen=True)
class RoutedClock:
    """A row ``ecp5_mhz`` or ``ecp5_index_mhz`` of bench/results. ``part``: a single core, or a whole circuit of
    ``cores`` cores; ``kind``: the kind of its cores.
    """

    part: str
    kind: str
    cores: int
    lanes: int
    probes: int
    mhz: float


#: Two 32-bit bands (in whole circuits of constant width, that of 8 lanes with tables), RANGE and ROWS, regions of 512
#: or 2,048 tuples, LFE5U-85F of speed grade 6, nextpnr-ecp5: a line for each such row of bench/results/circuits.json.
#: Speed grades 7 and 8 are faster; no prediction is made for them.
ROUTED: tuple[RoutedClock, ...] = (
    RoutedClock("core", "scan", 1, 1, 4, 160.2),
    RoutedClock("whole circuit", "scan", 8, 1, 4, 138.9),
    RoutedClock("whole circuit", "scan", 2, 8, 16, 137.3),
    RoutedClock("core", "hash", 1, 1, 1, 155.5),
    RoutedClock("core", "bucket", 1, 1, 1, 145.4),
)


@dataclass(frozen=True)
class ClockEstimate:
    """A predicted clock in MHz, and the routed circuits from which it is derived."""

    mhz: float
    source: str


def clock(config: Configuration) -> ClockEstimate:
    """The predicted clock of ``config`` on ECP5: that of the most similar routed circuit, compared first by the kind of
    cores, then by the comparators of a region, then by the number of cores; of several the lowest clock.
    """
    size = config.lanes * config.probes

    def distance(routed: RoutedClock) -> tuple[bool, float, float]:
        return (routed.kind != config.core, _ratio(routed.lanes * routed.probes, size),
                _ratio(routed.cores, config.cores))

    like = min(ROUTED, key=distance)
    least = min(r.mhz for r in ROUTED if distance(r) == distance(like))
    whole = like.part == "whole circuit"
    cores = f"{like.cores} {plural(like.cores, 'core')}"
    what = f"{cores} of kind {like.kind}" if whole else f"a core of kind {like.kind} by itself"
    if not KINDS[like.kind].has_index:
        what += f" with lanes {like.lanes}, probes {like.probes}"
    said = f"routed figure of {what}"
    return ClockEstimate(least, said if whole else f"{said}; a whole circuit is slower")


def _ratio(a: float, b: float) -> float:
    return max(a / b, b / a)
